package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/internal/wholefile"
	"github.com/postern-io/postern/protocol/wire"
)

// marksFile lies beside the store.
const marksFile = "edge.marks"

// marks is what the cabinet remembers outside the store, of its code list and of
// the cloud's keys: a damaged store that begins anew, or an older copy of one,
// takes neither back. It is written and synced before what it tells of is applied.
type marks struct {
	name string
	mu   sync.Mutex
	held keptMarks // guarded by mu; as the file has it
}

// keptMarks is the file, JSON.
type keptMarks struct {
	locker.Marks
	// Keys are those of the cloud that proved themselves last, none for those of
	// the secrets file. Basis names the secrets that they followed: after another
	// enrolment they count no more.
	Keys  []wire.PinnedKey `json:"keys,omitempty"`
	Basis string           `json:"basis,omitempty"`
	// Start is the random id of the newest start, which the store has as well.
	Start string `json:"start,omitempty"`
}

// keyStart remembers in the store what the marks have as Start: the newest start,
// and the one that the marks named before, as power may go between the two writes.
const keyStart = "agent/start"

// keptStart is what is kept under keyStart.
type keptStart struct {
	Now    string `cbor:"1,keyasint"`
	Before string `cbor:"2,keyasint,omitempty"`
}

// behind reports whether a store is an older copy: it does not know the start that
// the marks name.
func (m *marks) behind(k keptStart) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held.Start != "" && m.held.Start != k.Now && m.held.Start != k.Before
}

// newest is the start that the marks name, or without one the store's. It stays
// known to the store until another one is named: where the marks cannot be
// written, many starts in a row are no older copy.
func (m *marks) newest(store string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held.Start == "" {
		return store
	}
	return m.held.Start
}

// begin names a start that the store knows already.
func (m *marks) begin(start string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.held
	next.Start = start
	return m.write(next)
}

// openMarks reads the file in dir. Without one nothing was ever held. An error
// says why a file that is there cannot be read.
func openMarks(dir string) (*marks, error) {
	m := &marks{name: filepath.Join(dir, marksFile)}
	raw, err := os.ReadFile(m.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, nil
	case err != nil:
		return m, fmt.Errorf("read %s: %w", marksFile, err)
	}
	if err := json.Unmarshal(raw, &m.held); err != nil {
		return m, fmt.Errorf("read %s: %w", marksFile, err)
	}
	return m, nil
}

func (m *marks) now() locker.Marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held.Marks
}

// raise keeps a newer generation, or a higher number of the same one. On nil it
// survives a power cut; what is not newer changes nothing.
func (m *marks) raise(next locker.Marks) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next.Generation < m.held.Generation || next.Generation == m.held.Generation && next.Number <= m.held.Number {
		return nil
	}
	kept := m.held
	kept.Marks = next
	return m.write(kept)
}

// write replaces the file. m.mu is held.
func (m *marks) write(next keptMarks) error {
	raw, err := json.Marshal(next)
	if err == nil {
		err = wholefile.Replace(m.name, raw)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", marksFile, err)
	}
	m.held = next
	return nil
}

// pin keeps the cloud's keys that have proven themselves, instead of those of the
// secrets file.
func (m *marks) pin(keys, own []wire.PinnedKey) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.held
	next.Keys, next.Basis = keys, basis(own)
	return m.write(next)
}

// pinned are the keys that pin kept for these secrets, nil when it was for others:
// the device was enrolled again. known is false when nothing was ever kept.
func (m *marks) pinned(own []wire.PinnedKey) (keys []wire.PinnedKey, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held.Basis == basis(own) {
		keys = m.held.Keys
	}
	return keys, m.held.Basis != ""
}

// basis names the keys of a secrets file.
func basis(own []wire.PinnedKey) string {
	sum := sha256.Sum256(wire.MustEncode(own))
	return hex.EncodeToString(sum[:8])
}
