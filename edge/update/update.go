// Package update keeps the programs of the agent that came after the packaged one, and
// decides which one is started.
//
// What it promises, whenever power goes and whatever is written half by then:
//   - There is always a program to start: the packaged one, if no other.
//   - A program is started only when its manifest is signed by a key of the release, its
//     digest is right and it is for this system, judged at each start.
//   - A version is accepted only when it is above every one that was accepted before and
//     above the packaged one.
//   - An accepted program is on trial until it has reported that it is healthy. One that
//     was started MaxStarts times without a report is given up for good, and the one
//     before it is started.
//
// The folder has:
//
//	state.json     what is kept, replaced in one step
//	edge-VERSION   programs, mode 0700
//	incoming       a program that is being written
//	lock           of state.json, for a moment
//	lock.install   of an installation
//
// It starts no program itself. Methods are safe for concurrent use, by several processes
// too.
package update

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/postern-io/postern/internal/lockfile"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// MaxStarts is how often a program on trial is started.
const MaxStarts = 3

// Names in the folder.
const (
	stateFile     = "state.json"
	stateIncoming = "state.json.incoming"
	incoming      = "incoming"
	lockName      = "lock"
	lockInstall   = "lock.install"
	programPrefix = release.Edge + "-"
)

// lockWait is how long a change of the state waits for another one.
const lockWait = 5 * time.Second

// Errors of Install beside those of the artefact and the disk.
var (
	ErrNoKeys = errors.New("no release key is known: enrol again at a cloud whose setting release_keys names it")
	ErrOther  = errors.New("the update is for another machine")
	ErrOlder  = errors.New("the update's version is not above those that were accepted before")
	ErrBusy   = errors.New("another update is being installed")
	ErrTrial  = errors.New("another update is on trial: install this one once that is healthy or was given up, which takes 30 minutes at most while the agent runs")
)

// Config is what New needs. All fields but Log and Disk are required.
type Config struct {
	Dir          string           // of the versions, made when it is missing
	Keys         []wire.PinnedKey // of releases
	Packaged     string           // version of the packaged program, as it says it of itself
	System, Arch string           // of this machine, as Go names them
	Log          *slog.Logger
	Disk         Disk // the folder of tests; nil: the one at Dir
}

// Versions are the agent's programs.
type Versions struct {
	cfg      Config
	keys     signed.Keys
	packaged string // as manifests name it; "" is before all
	disk     Disk
}

// New makes the folder.
func New(cfg Config) (*Versions, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	v := &Versions{cfg: cfg, keys: signed.PinnedKeys(cfg.Keys), packaged: release.VersionOf(cfg.Packaged), disk: cfg.Disk}
	if v.disk == nil {
		var err error
		if v.disk, err = openFolder(cfg.Dir); err != nil {
			return nil, fmt.Errorf("make the folder of versions: %w", err)
		}
	}
	return v, nil
}

// state is what is kept, JSON.
type state struct {
	// Floor is the newest version that was ever accepted: none that is not above it
	// will be.
	Floor string `json:"floor"`
	// Good is the envelope of the newest program that was healthy.
	Good []byte `json:"good,omitempty"`
	// Trial is the program that has yet to be.
	Trial *trial `json:"trial,omitempty"`
	// GivenUp is the newest version that was not, and why.
	GivenUp *givenUp `json:"given_up,omitempty"`
}

type trial struct {
	Envelope []byte `json:"envelope"`
	Starts   int    `json:"starts"` // each is kept before it happens
}

type givenUp struct {
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

// read reads the state. One that is damaged by more than a power cut counts as none: what
// is accepted is signed all the same. One that the disk does not give now is an error, and
// is not written over.
func (v *Versions) read() (s state, err error) {
	raw, err := v.disk.ReadFile(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the state of versions: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		v.cfg.Log.Error("the state of versions is damaged: the packaged program runs", "err", err)
		return state{}, nil
	}
	return s, nil
}

// write replaces the state in one step.
func (v *Versions) write(s state) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = write(v.disk, stateIncoming, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
	if err == nil {
		err = v.disk.Rename(stateIncoming, stateFile)
	}
	if err == nil {
		err = v.disk.Sync()
	}
	if err != nil {
		return fmt.Errorf("keep the state of versions: %w", err)
	}
	return nil
}

// change changes the state; with change false nothing is written.
func (v *Versions) change(f func(*state) (changed bool)) error {
	held, err := v.disk.Lock(lockName, lockWait)
	if err != nil {
		return fmt.Errorf("lock the state of versions: %w", err)
	}
	defer held.Close()
	s, err := v.read()
	if err != nil || !f(&s) {
		return err
	}
	return v.write(s)
}

// Install takes an artefact: it is started from the next Choose on, on trial. On an error
// nothing has changed, or the trial stands nevertheless after one of the disk. The errors
// are those above, release.ErrArtefact, signed.ErrSignature, and those of r and the disk.
func (v *Versions) Install(r io.Reader) (release.Manifest, error) {
	if len(v.keys) == 0 {
		return release.Manifest{}, ErrNoKeys
	}
	one, err := v.disk.Lock(lockInstall, 0)
	if errors.Is(err, lockfile.ErrHeld) {
		return release.Manifest{}, ErrBusy
	}
	if err != nil {
		return release.Manifest{}, err
	}
	defer one.Close()
	m, envelope, err := release.Read(r, v.keys)
	if err == nil {
		err = v.checkMachine(m)
	}
	if err == nil {
		var s state
		if s, err = v.read(); err == nil {
			err = v.checkFloor(m, s)
		}
	}
	if err != nil {
		return m, err
	}
	if err := write(v.disk, incoming, func(w io.Writer) error { return m.Copy(w, r) }); err != nil {
		if gone := v.disk.Remove(incoming); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return m, err
	}
	return m, v.accept(m, envelope)
}

// accept puts the written program in place, and then on trial.
func (v *Versions) accept(m release.Manifest, envelope []byte) error {
	var refused error
	err := v.change(func(s *state) bool {
		if refused = v.checkFloor(m, *s); refused != nil {
			return false
		}
		if refused = v.disk.Rename(incoming, programFile(m)); refused == nil {
			refused = v.disk.Sync()
		}
		if refused != nil {
			return false
		}
		s.Floor, s.Trial = m.Version, &trial{Envelope: envelope}
		return true
	})
	if err = errors.Join(refused, err); err != nil {
		return err
	}
	v.removeRest()
	return nil
}

func (v *Versions) checkMachine(m release.Manifest) error {
	if m.Product != release.Edge || m.System != v.cfg.System || m.Arch != v.cfg.Arch {
		return fmt.Errorf("%w: it is %s for %s/%s, this needs %s for %s/%s", ErrOther, m.Product, m.System, m.Arch, release.Edge, v.cfg.System, v.cfg.Arch)
	}
	return nil
}

// checkFloor refuses what is not newer than all that was accepted, and what would take the
// place of a program that runs on trial.
func (v *Versions) checkFloor(m release.Manifest, s state) error {
	floor := s.Floor
	if !release.IsNewer(floor, v.packaged) {
		floor = v.packaged
	}
	if !release.IsNewer(m.Version, floor) {
		return fmt.Errorf("%w: it is %s, and must be above %s", ErrOlder, m.Version, floor)
	}
	if s.Trial != nil && s.Trial.Starts > 0 {
		return ErrTrial
	}
	return nil
}

func programFile(m release.Manifest) string { return programPrefix + m.Version }

// removeRest removes what the state does not name.
func (v *Versions) removeRest() {
	s, err := v.read()
	if err != nil {
		v.cfg.Log.Warn("remove programs that are needed no more", "err", err)
		return
	}
	named := map[string]bool{stateFile: true, lockName: true, lockInstall: true}
	for _, envelope := range [][]byte{s.Good, s.trialEnvelope()} {
		if m, err := release.Verify(envelope, v.keys); err == nil {
			named[programFile(m)] = true
		}
	}
	names, err := v.disk.Names()
	for _, name := range names {
		if !named[name] && (strings.HasPrefix(name, programPrefix) || name == incoming) {
			err = errors.Join(err, v.disk.Remove(name))
		}
	}
	if err != nil {
		v.cfg.Log.Warn("remove programs that are needed no more", "err", err)
	}
}

func (s state) trialEnvelope() []byte {
	if s.Trial == nil {
		return nil
	}
	return s.Trial.Envelope
}
