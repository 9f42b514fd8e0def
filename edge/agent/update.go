package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/protocol/wire"
)

// Updates takes new versions of the agent's program; update.Remote and a launcher do.
type Updates interface {
	// Judge says why an update is refused, one of wire's reasons; "" when it is not.
	Judge(wire.Update) string
	// Install fetches and installs one that Judge let pass, and does nothing when it is
	// installed. Its errors are those of update.Remote.
	Install(context.Context, wire.Update) error
	// Waiting reports whether an installed version waits for the end of this program.
	Waiting() bool
	// State is where updates stand for the agent of a version.
	State(version string) wire.UpdateState
	// Restart ends this program, for another one to be started. It does not block.
	Restart()
}

// Waits of updates.
const (
	updateLook  = 5 * time.Second  // between looks at whether the cabinet is in use, and at the trial
	updateAgain = 10 * time.Second // before an outcome that was not kept is kept again
)

// updater takes the updates of an agent.
type updater struct {
	agent  *Agent
	wanted chan struct{} // has room for one
	state  atomic.Pointer[wire.UpdateState]
}

// newUpdater reads where updates stand.
func newUpdater(a *Agent) *updater {
	u := &updater{agent: a, wanted: make(chan struct{}, 1)}
	u.readState()
	return u
}

// wake has it look for an update at once.
func (x *updater) wake() {
	select {
	case x.wanted <- struct{}{}:
	default:
	}
}

// judgeCommand adds to a command what the rules cannot know.
func (x *updater) judgeCommand(c wire.Command) locker.Ordered {
	in := locker.Ordered{Command: c}
	if c.Kind != wire.CmdUpdate {
		return in
	}
	var u wire.Update
	if wire.Decode(c.Body, &u) != nil {
		return in // unsupported
	}
	programs := x.agent.cfg.Updates
	if programs == nil {
		in.Problem = wire.ReasonNoLauncher
		return in
	}
	in.Update, in.Problem = &u, programs.Judge(u)
	return in
}

// run carries out updates that are wanted, those of earlier starts too, one at a
// time, and ends the program for one that waits for that. Neither is begun while an opening
// runs.
func (x *updater) run(ctx context.Context) error {
	a := x.agent
	t := time.NewTicker(updateLook)
	defer t.Stop()
	// One that waits already could not be chosen by the launch of this program, as with a
	// full disk: the next launch tries it, and this program does not end for it.
	passedOver := a.cfg.Updates != nil && a.cfg.Updates.Waiting()
	for ctx.Err() == nil {
		s := a.loop.State()
		switch u := s.Meta.Update; {
		case u != nil && a.cfg.Updates == nil:
			x.endUpdate(ctx, u, wire.OutcomeRefused, wire.ReasonNoLauncher)
		case u != nil && len(s.Openings) == 0:
			if x.takeUpdate(ctx, u) {
				passedOver = false
			}
		case u == nil && !passedOver && len(s.Openings) == 0 && a.cfg.Updates != nil && a.cfg.Updates.Waiting():
			a.log.Info("this program ends for another version")
			a.cfg.Updates.Restart()
			<-ctx.Done()
		}
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-x.wanted:
		}
		if x.readState() {
			a.link.StatusChanged()
		}
	}
	return nil
}

// takeUpdate fetches and installs an update and keeps its outcome. One that is cut short is
// wanted still. It reports whether the version is installed.
func (x *updater) takeUpdate(ctx context.Context, u *locker.Update) (installed bool) {
	a := x.agent
	a.log.Info("an update is fetched", "version", u.Want.Version, "command", u.CommandID)
	fetching, cancel := ctx, context.CancelFunc(func() {})
	if now := a.Now(); now.Clock == wire.ClockSynced { // its order ends
		fetching, cancel = context.WithTimeout(ctx, time.Duration(u.ExpiresAt-now.Wall(now.Mono)))
	}
	err := a.cfg.Updates.Install(fetching, u.Want)
	cancel()
	if err != nil && ctx.Err() != nil {
		return false
	}
	switch {
	case err == nil:
		x.endUpdate(ctx, u, wire.OutcomeDone, "")
	case errors.Is(err, update.ErrFetch) || update.Reason(err) == wire.ReasonDisk:
		a.log.Error("an update was not installed", "version", u.Want.Version, "err", err)
		x.endUpdate(ctx, u, wire.OutcomeFailed, update.Reason(err))
	default:
		a.log.Error("an update is refused", "version", u.Want.Version, "err", err)
		x.endUpdate(ctx, u, wire.OutcomeRefused, update.Reason(err))
	}
	return err == nil
}

// endUpdate keeps the outcome of an update; it tries until the store takes it.
func (x *updater) endUpdate(ctx context.Context, u *locker.Update, outcome, reason string) {
	for ctx.Err() == nil {
		step, cancel := context.WithTimeout(ctx, stepWait)
		_, err := x.agent.loop.Do(step, locker.Updated{CommandID: u.CommandID, Outcome: outcome, Reason: reason})
		cancel()
		if err == nil {
			return
		}
		x.agent.log.Error("keep the outcome of an update", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(updateAgain):
		}
	}
}

// readState reads where updates stand, and reports whether that has changed.
func (x *updater) readState() (changed bool) {
	programs := x.agent.cfg.Updates
	if programs == nil {
		return false
	}
	s := programs.State(x.agent.cfg.Version)
	was := x.state.Swap(&s)
	return was != nil && *was != s
}
