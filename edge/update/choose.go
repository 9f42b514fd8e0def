package update

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/postern-io/postern/protocol/release"
)

// Choice is the program to start.
type Choice struct {
	Version string // as manifests name it; of the packaged program what it says of itself
	Path    string // "" is the packaged one
	Trial   bool   // it has yet to report that it is healthy
}

// Choose says what is to be started now. A start on trial is kept before it is returned, so
// that one which takes the power along counts. There always is a choice: what cannot be
// read, kept or verified is logged and passed over.
func (v *Versions) Choose() Choice {
	var s state
	var chosen *Choice
	err := v.change(func(kept *state) bool {
		changed := false
		if kept.Trial != nil {
			changed = true
			chosen = v.chooseTrial(kept)
		}
		s = *kept
		return changed
	})
	if err != nil { // a start that is not kept could be tried for ever
		v.cfg.Log.Error("no program is tried", "err", err)
		chosen = nil
		if s, err = v.read(); err != nil {
			v.cfg.Log.Error("the packaged program is started", "err", err)
		}
	}
	if chosen != nil {
		return *chosen
	}
	if s.Good != nil {
		switch m, err := v.verify(s.Good); {
		case err == nil:
			return v.choice(m, false)
		case !errors.Is(err, errPackaged):
			v.cfg.Log.Error("the program is not started, the packaged one is", "err", err)
		}
	}
	return Choice{Version: v.cfg.Packaged}
}

// chooseTrial counts a start of the program on trial, or gives it up and returns nil.
func (v *Versions) chooseTrial(s *state) *Choice {
	m, err := v.verify(s.Trial.Envelope)
	if err == nil && s.Trial.Starts >= MaxStarts {
		err = fmt.Errorf("it was started %d times and did not report that it is healthy", s.Trial.Starts)
	}
	if isPassing(err) {
		v.cfg.Log.Error("an update is not tried now", "version", m.Version, "err", err)
		return nil
	}
	if err != nil {
		v.giveUp(s, m.Version, err.Error())
		return nil
	}
	s.Trial.Starts++
	c := v.choice(m, true)
	return &c
}

// isPassing reports whether a program could not be judged for a reason that lies in the
// machine of this moment.
func isPassing(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

func (v *Versions) choice(m release.Manifest, trial bool) Choice {
	return Choice{Version: m.Version, Path: v.disk.Path(programFile(m)), Trial: trial}
}

// errPackaged says that the packaged program takes the place of another one.
var errPackaged = errors.New("the packaged version is not below this one")

// verify judges a program as it lies on the disk now.
func (v *Versions) verify(envelope []byte) (release.Manifest, error) {
	m, err := release.Verify(envelope, v.keys)
	if err != nil {
		return m, err
	}
	if err := v.checkMachine(m); err != nil {
		return m, err
	}
	if !release.IsNewer(m.Version, v.packaged) {
		return m, fmt.Errorf("%w: %s, and this is %s", errPackaged, v.packaged, m.Version)
	}
	f, err := v.disk.Open(programFile(m))
	if err != nil {
		return m, err
	}
	defer f.Close()
	if err := m.Copy(io.Discard, f); err != nil {
		return m, fmt.Errorf("%s: %w", programFile(m), err)
	}
	return m, nil
}

func (v *Versions) giveUp(s *state, version, reason string) {
	v.cfg.Log.Error("an update is given up", "version", version, "reason", reason)
	s.Trial, s.GivenUp = nil, &givenUp{Version: version, Reason: reason}
}

// onTrial changes the state when c is the program on trial still.
func (v *Versions) onTrial(c Choice, f func(*state)) error {
	return v.change(func(s *state) bool {
		if s.Trial == nil {
			return false
		}
		if m, err := release.Verify(s.Trial.Envelope, v.keys); err != nil || m.Version != c.Version {
			return false
		}
		f(s)
		return true
	})
}

// Confirm ends the trial of a program that has reported that it is healthy.
func (v *Versions) Confirm(c Choice) error {
	return v.onTrial(c, func(s *state) { s.Good, s.Trial = s.Trial.Envelope, nil })
}

// GiveUp ends the trial of a program that does not work. It is never tried again.
func (v *Versions) GiveUp(c Choice, reason string) error {
	return v.onTrial(c, func(s *state) { v.giveUp(s, c.Version, reason) })
}

// Withdraw takes back a start that was ended from outside before the program could report.
func (v *Versions) Withdraw(c Choice) error {
	return v.onTrial(c, func(s *state) { s.Trial.Starts = max(0, s.Trial.Starts-1) })
}

// Report is what there is, for people.
type Report struct {
	Packaged string `json:"packaged"`
	Floor    string `json:"newest_accepted,omitempty"`
	Good     string `json:"proven,omitempty"`
	Trial    string `json:"on_trial,omitempty"`
	Starts   int    `json:"trial_starts,omitempty"`
	GivenUp  string `json:"given_up,omitempty"`
	Reason   string `json:"given_up_reason,omitempty"`
}

// Report reads what there is.
func (v *Versions) Report() Report {
	s, err := v.read()
	if err != nil {
		v.cfg.Log.Error("the versions are not known", "err", err)
	}
	r := Report{Packaged: v.cfg.Packaged, Floor: s.Floor}
	if m, err := release.Verify(s.Good, v.keys); err == nil {
		r.Good = m.Version
	}
	if s.Trial != nil {
		r.Starts = s.Trial.Starts
		if m, err := release.Verify(s.Trial.Envelope, v.keys); err == nil {
			r.Trial = m.Version
		}
	}
	if s.GivenUp != nil {
		r.GivenUp, r.Reason = s.GivenUp.Version, s.GivenUp.Reason
	}
	return r
}
