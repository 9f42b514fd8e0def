package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

func updateOrder(w *world) Ordered {
	u := wire.Update{Version: "1.4.0", URL: "/x", Size: 1, Digest: []byte{1}, Signature: []byte{2}}
	return Ordered{Command: w.command(wire.CmdUpdate, nil, u), Update: &u}
}

// An update is wanted until its outcome, through any number of starts, and has one outcome.
func TestUpdateIsWantedUntilItsOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	o := updateOrder(w)
	out := w.step(o)
	require.Contains(t, out.Actions, UpdateWanted{})
	require.Empty(t, out.Records, "it is not done yet")
	require.Contains(t, out.Put, keyMeta, "the intent is kept")
	require.Contains(t, out.Put, keyCommand+o.Command.CommandID)
	require.Empty(t, w.step(o).Actions, "a repeat")
	for range 2 {
		w.restart(time.Minute, wire.ClockUnset)
		require.Equal(t, *o.Update, w.s.Meta.Update.Want)
		require.Equal(t, o.Command.ExpiresAt, w.s.Meta.Update.ExpiresAt)
	}
	w.step(Updated{CommandID: "another", Outcome: wire.OutcomeDone})
	require.NotNil(t, w.s.Meta.Update)
	done := Updated{CommandID: o.Command.CommandID, Outcome: wire.OutcomeDone}
	w.step(done)
	w.restart(time.Minute, wire.ClockUnset)
	w.step(done)
	require.Nil(t, w.s.Meta.Update)
	require.Equal(t, []wire.CommandOutcome{{CommandID: done.CommandID, Outcome: wire.OutcomeDone}}, bodies[wire.CommandOutcome](w))
}

// An update that cannot be taken is refused, and nothing is kept of it but that it was seen.
func TestUpdateIsRefused(t *testing.T) {
	t.Parallel()
	refused := func(reason string, change func(*world, *Ordered)) {
		w := newWorld(t, 1)
		o := updateOrder(w)
		change(w, &o)
		require.Empty(t, w.step(o).Actions, reason)
		all := bodies[wire.CommandOutcome](w)
		require.Equal(t, wire.CommandOutcome{CommandID: o.Command.CommandID, Outcome: wire.OutcomeRefused, Reason: reason}, all[len(all)-1])
	}
	refused(wire.ReasonUnsupported, func(_ *world, o *Ordered) { o.Update = nil })
	refused(wire.ReasonNotNewer, func(_ *world, o *Ordered) { o.Problem = wire.ReasonNotNewer })
	refused(wire.ReasonUpdating, func(w *world, _ *Ordered) { w.step(updateOrder(w)) })
	refused(wire.ReasonClock, func(w *world, _ *Ordered) { w.now.Clock = wire.ClockCarried })
}
