package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// The reason that staff give for a block is the one that a start finds again.
func TestABlockedDoorKeepsItsReason(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"dirty": "dirty", "": "blocked"} {
		w := newWorld(t, 2)
		w.step(Ordered{Command: w.command(wire.CmdBlock, nil, wire.DoorReason{Door: 2, Reason: given})})
		require.Equal(t, want, w.s.Doors[2].Blocked)
		w.restart(time.Minute, wire.ClockCarried)
		require.Equal(t, want, w.s.Doors[2].Blocked)
		require.Empty(t, w.s.Doors[1].Blocked)
	}
}

// An opening that ended is forgotten after seven days, in the store too: a start
// does not bring it back.
func TestForgottenOpeningsLeaveTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	require.Contains(t, w.s.Ended, "op_1")
	require.Contains(t, w.kept, keyEnded+"op_1")
	w.now.Mono += keepEnded - int64(time.Hour)
	w.step(Tick{})
	require.Contains(t, w.kept, keyEnded+"op_1", "not before its time")
	w.now.Mono += 2 * int64(time.Hour)
	w.step(Tick{})
	require.NotContains(t, w.s.Ended, "op_1")
	require.NotContains(t, w.kept, keyEnded+"op_1")
	w.restart(time.Minute, wire.ClockCarried)
	require.NotContains(t, w.s.Ended, "op_1")
}

// How long a door was open is known across a start only when both ends have a time
// of day; without, it is said to be unknown and never guessed.
func TestOpenTimeAcrossAStartNeedsBothClocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opened, closed wire.Clock
		want           int64 // least
	}{
		"both known":      {wire.ClockSynced, wire.ClockCarried, int64(time.Hour / time.Millisecond)},
		"opened without":  {wire.ClockUnset, wire.ClockSynced, -1},
		"closed without":  {wire.ClockSynced, wire.ClockUnset, -1},
		"neither has one": {wire.ClockUnset, wire.ClockUnset, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.openDoors("op_1", 1)
			if w.now.Clock = c.opened; c.opened == wire.ClockUnset {
				w.now.Offset = 0
			}
			w.swing()
			w.restart(time.Hour, c.closed)
			if c.closed == wire.ClockSynced {
				w.now.Offset = 1_800_010_000 * second
			}
			w.readAll()
			w.setDoor(1, false)
			w.wait(time.Second)
			got := bodies[wire.DoorClosed](w)
			require.Len(t, got, 1)
			if c.want < 0 {
				require.EqualValues(t, -1, got[0].OpenMS)
			} else {
				require.GreaterOrEqual(t, got[0].OpenMS, c.want)
			}
		})
	}
}

// A start that does not know the time of day gives a session what was left of it when
// the power went, however long the boot before had run.
func TestASessionOutlivesAStartWithoutAClockByWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.now.Mono += 5 * 3600 * second
	w.openDoors("op_1", 1)
	w.restart(time.Minute, wire.ClockUnset)
	o := w.s.Openings["op_1"]
	require.Equal(t, 600*second, o.Ends.Mono-w.now.Mono)
	require.True(t, o.Unsure)
}
