package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/postern-io/postern/edge/locker"
)

// marksFile lies beside the store.
const marksFile = "edge.marks"

// marks is what the cabinet remembers of its code list outside the store: a
// damaged store that begins anew, or an older copy of one, does not take it back.
// It is written and synced before the list that it tells of is applied.
type marks struct {
	name string
	mu   sync.Mutex
	held locker.Marks // guarded by mu; as the file has it
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
	return m.held
}

// raise keeps a newer generation, or a higher number of the same one. On nil it
// survives a power cut; what is not newer changes nothing.
func (m *marks) raise(next locker.Marks) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if next.Generation < m.held.Generation || next.Generation == m.held.Generation && next.Number <= m.held.Number {
		return nil
	}
	raw, err := json.Marshal(next)
	if err == nil {
		err = replaceFile(m.name, raw)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", marksFile, err)
	}
	m.held = next
	return nil
}

// replaceFile puts data in place of a file: whole or not at all, also across a
// power cut.
func replaceFile(name string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
