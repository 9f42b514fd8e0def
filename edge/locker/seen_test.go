package locker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// "Command ids are kept for 24 h past their expiry." A repeat until then writes
// nothing, whatever starts and clocks lie in between; then the id goes.
func TestCommandIDsAreKeptADayPastTheirExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := w.command(wire.CmdBeep, nil, nil)
	w.step(Ordered{Command: c})
	expiry := time.Duration(c.ExpiresAt - w.now.Wall(w.now.Mono))
	repeat := func(why string) {
		t.Helper()
		before := len(w.records)
		out := w.step(Ordered{Command: c})
		require.Empty(t, out.Records, why)
		require.Empty(t, out.Put, why)
		require.Empty(t, out.Actions, why)
		require.Len(t, w.records, before, why)
		require.Contains(t, w.kept, keyCommand+c.CommandID, why)
	}
	repeat("at once")
	w.now.Mono += int64(expiry + 23*time.Hour + 59*time.Minute)
	w.step(Tick{})
	repeat("23 h 59 min after its expiry")

	wall := w.now.Wall(w.now.Mono)
	w.restart(0, wire.ClockUnset)
	repeat("after a start, without a clock")
	w.restart(0, wire.ClockCarried)
	w.now.Offset = wall + int64(1000*time.Hour)
	w.step(Tick{})
	repeat("with a clock of its own that is wrong")
	w.now.Offset, w.now.Clock = wall-w.now.Mono, wire.ClockSynced

	w.now.Mono += int64(2 * time.Minute)
	w.now.ErrMS = 300_000
	w.step(Tick{})
	repeat("as far as the clock can tell it has not been a day")
	w.now.ErrMS = 5
	w.step(Tick{})
	repeat("it is one of the newest")
	for i := range minCommands {
		w.s.Commands[fmt.Sprintf("later-%d", i)] = w.now.Wall(w.now.Mono)
	}
	w.step(Tick{})
	require.Len(t, w.s.Commands, minCommands)
	require.NotContains(t, w.kept, keyCommand+c.CommandID, "dropped")
	outcomes := bodies[wire.CommandOutcome](w)
	require.Len(t, outcomes, 1)
}

// A command that expired days ago is replayed over and over: its id was forgotten
// in the same step, and every time wrote an outcome.
func TestLongExpiredCommandIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := w.command(wire.CmdBeep, nil, nil)
	c.ExpiresAt -= int64(72 * time.Hour)
	for range 5 {
		w.step(Ordered{Command: c})
		w.now.Mono += int64(4 * time.Hour)
	}
	outcomes := bodies[wire.CommandOutcome](w)
	require.Len(t, outcomes, 1)
	require.Equal(t, wire.OutcomeExpired, outcomes[0].Outcome)
}
