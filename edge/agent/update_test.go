package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/edge/update"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

// programs are what an agent installs; they outlive its starts.
type programs struct {
	mu        sync.Mutex
	hold      bool  // Install waits for the end of the start
	cut       bool  // power goes right after Install
	err       error // of Install
	problem   string
	installed string
	calls     int
	restarts  int
	halt      func()
}

func (p *programs) Judge(wire.Update) string { return p.problem }

func (p *programs) Install(ctx context.Context, u wire.Update) error {
	p.mu.Lock()
	p.calls++
	hold := p.hold
	p.mu.Unlock()
	if hold {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", update.ErrFetch, ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.installed = u.Version
	}
	if p.cut {
		p.halt()
		return errors.New("the power is gone")
	}
	return p.err
}

func (p *programs) Waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.installed != "" && p.restarts == 0
}

func (p *programs) State(string) wire.UpdateState {
	return wire.UpdateState{GivenUp: "9.0.0", Reason: "r"}
}
func (p *programs) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts++
}

// seen is what was done.
func (p *programs) seen() (installed string, calls, restarts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.installed, p.calls, p.restarts
}

func (b *bench) orderUpdate() wire.Command {
	b.t.Helper()
	c := wire.Command{CommandID: "u-1", DeviceCode: "CAB-1", IssuedAt: time.Now().UnixNano(), ExpiresAt: time.Now().Add(24 * time.Hour).UnixNano(), Kind: wire.CmdUpdate,
		Body: wire.MustEncode(wire.Update{Version: "1.4.0", URL: "/x", Size: 1, Digest: []byte{1}, Signature: []byte{1}})}
	(*handler)(b.agent).Command(b.seal(b.old, signed.ForCommand, c))
	synctest.Wait()
	return c
}

// outcomes are those of commands that are kept.
func (b *bench) outcomes() (out []wire.CommandOutcome) {
	b.t.Helper()
	run, err := b.agent.store.Read(wire.Settlement, 1, 1000, 1<<20)
	require.NoError(b.t, err)
	for _, raw := range run.Records {
		r, err := wire.DecodeRecord(raw)
		require.NoError(b.t, err)
		var body wire.CommandOutcome
		if r.Kind == wire.KindCommandOutcome {
			require.NoError(b.t, wire.Decode(r.Body, &body))
			out = append(out, body)
		}
	}
	return out
}

// updating runs f in a bubble with an agent whose clock is good.
func updating(t *testing.T, p *programs, f func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.halt()
		b.change = func(c *Config) { c.Updates = p }
		p.halt = func() { b.stop() }
		b.start()
		b.sync("n1")
		time.Sleep(time.Minute) // a command must be younger than the store
		f(t, b)
	})
}

// An update is done when it is installed, and then the program ends.
func TestUpdateIsInstalledByCommand(t *testing.T) {
	t.Parallel()
	p := &programs{}
	updating(t, p, func(t *testing.T, b *bench) {
		require.Equal(t, &wire.UpdateState{GivenUp: "9.0.0", Reason: "r"}, b.agent.status().Update)
		c := b.orderUpdate()
		time.Sleep(time.Minute)
		require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: wire.OutcomeDone}}, b.outcomes())
		installed, _, restarts := p.seen()
		require.Equal(t, "1.4.0", installed)
		require.Equal(t, 1, restarts)
	})
}

// Whatever hinders an update is said, with its own outcome.
func TestUpdateSaysWhatHinderedIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p       *programs
		outcome wire.CommandOutcome
	}{
		"judged": {&programs{problem: wire.ReasonForged}, wire.CommandOutcome{Outcome: wire.OutcomeRefused, Reason: wire.ReasonForged}},
		"older":  {&programs{err: update.ErrOlder}, wire.CommandOutcome{Outcome: wire.OutcomeRefused, Reason: wire.ReasonNotNewer}},
		"cut":    {&programs{err: update.ErrFetch}, wire.CommandOutcome{Outcome: wire.OutcomeFailed, Reason: wire.ReasonFetch}},
		"disk":   {&programs{err: errors.New("no room")}, wire.CommandOutcome{Outcome: wire.OutcomeFailed, Reason: wire.ReasonDisk}},
		"slow":   {&programs{hold: true}, wire.CommandOutcome{Outcome: wire.OutcomeFailed, Reason: wire.ReasonFetch}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			updating(t, c.p, func(t *testing.T, b *bench) {
				c.outcome.CommandID = b.orderUpdate().CommandID
				time.Sleep(25 * time.Hour)
				require.Equal(t, []wire.CommandOutcome{c.outcome}, b.outcomes())
				_, _, restarts := c.p.seen()
				require.Zero(t, restarts)
			})
		})
	}
	t.Run("no launcher", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			defer func() { b.halt() }()
			b.sync("n1")
			time.Sleep(time.Minute)
			c := b.orderUpdate()
			require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: wire.OutcomeRefused, Reason: wire.ReasonNoLauncher}}, b.outcomes())
		})
	})
}

// Power goes while an update is fetched, and again when it is installed and its outcome is
// not kept: it goes on, and there is one outcome.
func TestUpdateOutlivesPower(t *testing.T) {
	t.Parallel()
	p := &programs{hold: true}
	updating(t, p, func(t *testing.T, b *bench) {
		c := b.orderUpdate()
		b.halt()
		p.hold, p.cut = false, true
		b.start()
		b.run.Wait()
		require.Equal(t, "1.4.0", p.installed)
		p.cut = false
		b.start()
		require.Equal(t, []wire.CommandOutcome{{CommandID: c.CommandID, Outcome: wire.OutcomeDone}}, b.outcomes())
		b.halt()
		b.start()
		b.sync("n2")
		b.orderUpdate()
		require.Len(t, b.outcomes(), 1, "a repeat")
		require.Equal(t, 3, p.calls)
	})
}

// An update that the launch of this program could not try, as with a full disk, does not end
// it again and again: the doors are served. One that comes meanwhile ends it once.
func TestAnUpdateThatALaunchPassedOverEndsNothing(t *testing.T) {
	t.Parallel()
	p := &programs{installed: "1.3.0"}
	updating(t, p, func(t *testing.T, b *bench) {
		time.Sleep(time.Hour)
		_, _, restarts := p.seen()
		require.Zero(t, restarts)
		p.mu.Lock()
		p.err = errors.New("no room")
		p.mu.Unlock()
		b.orderUpdate()
		time.Sleep(time.Hour)
		_, calls, restarts := p.seen()
		require.Equal(t, []int{1, 0}, []int{calls, restarts})
	})
}

// Neither fetching nor the end of the program begins while an opening runs.
func TestUpdateWaitsForOpenings(t *testing.T) {
	t.Parallel()
	p := &programs{}
	updating(t, p, func(t *testing.T, b *bench) {
		b.config(b.old, 1, nil)
		s := b.agent.loop.State()
		s.Openings = maps.Clone(s.Openings)
		ends := b.agent.Now()
		s.Openings["op"] = locker.Opening{ID: "op", Kind: wire.OpenStaff, Doors: []locker.OpeningDoor{{Door: 1, Phase: locker.Opened}},
			Ends: locker.Instant{Boot: ends.Boot, Mono: ends.Mono + int64(time.Hour), Wall: ends.Wall(ends.Mono) + int64(time.Hour), Clock: ends.Clock}}
		require.NoError(t, b.agent.store.Commit(t.Context(), buffer.Change{Put: s.Dump(), Urgent: true}))
		b.halt()
		b.start()
		b.sync("n2")
		b.orderUpdate()
		time.Sleep(30 * time.Second)
		require.NotEmpty(t, b.agent.loop.State().Openings)
		_, calls, _ := p.seen()
		require.Zero(t, calls)
		p.mu.Lock()
		p.installed = "1.3.0"
		p.mu.Unlock()
		time.Sleep(30 * time.Second)
		require.NotEmpty(t, b.agent.loop.State().Openings)
		_, _, restarts := p.seen()
		require.Zero(t, restarts)
	})
}
