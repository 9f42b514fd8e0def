package locker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// A pickup is remembered for as long as no signed time says that it is over: a code that was
// used, a loss of memory and a machine whose clock was set ahead do not bring the parcel back.
func TestAUsedCodeStaysUsedWhateverTheMachinesClockSays(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{time.Hour, 8 * 24 * time.Hour, 400 * 24 * time.Hour} {
		w := newWorld(t, 1)
		w.deposit()
		w.step(Tampered{What: wire.TamperStoreRolledBack})
		require.True(t, w.s.Meta.Lost)
		require.Equal(t, wire.CodeOK, w.try(7).Outcome)
		w.swing()
		w.setDoor(1, false)
		w.wait(5 * time.Second)
		require.Len(t, bodies[wire.PickupCompleted](w), 1)
		w.restart(ahead, wire.ClockCarried)
		w.readAll()
		w.step(Tick{})
		w.takePulses()
		w.step(CodesCame{Codes: wire.Codes{To: 5, Generation: 1, Nonce: []byte("n"), Entries: []wire.CodeEntry{{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7),
			DeliveryRef: "LD-1", Active: wire.ActiveNow, Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}}}}, Asked: []byte("n"), Keyed: true})
		require.NotEqual(t, wire.CodeOK, w.try(7).Outcome, ahead)
		require.Empty(t, w.takePulses())
		require.Empty(t, w.s.Doors[1].Delivery)
	}
}

// Ends are forgotten a week after them by signed times, and where there are none the oldest
// of many.
func TestEndsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	require.Len(t, w.s.Ended, 1)
	w.restart(7*24*time.Hour+time.Minute, wire.ClockSynced)
	require.Empty(t, w.s.Ended)

	w = newWorld(t, 1)
	for i := range maxEnded + 3 {
		w.s.Ended[fmt.Sprintf("op_%04d", i)] = EndedOpening{ID: fmt.Sprintf("op_%04d", i), At: Instant{Boot: w.now.Boot, Mono: int64(i)}}
	}
	w.step(Tick{})
	require.Len(t, w.s.Ended, maxEnded)
	require.NotContains(t, w.s.Ended, "op_0002")
	require.Contains(t, w.s.Ended, "op_0003")
}

// A time of the cloud that was two days ahead for a moment lets no recorded command through
// again, and ids do not pile up.
func TestCommandsAreNotRepeatedAfterAWrongTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	c := w.command(wire.CmdResetTries, nil, wire.DoorReason{})
	c.ExpiresAt = w.now.Wall(w.now.Mono) + 24*hour
	w.step(Ordered{Command: c})
	for range 5 {
		w.wrongly(BudgetTyped)
	}
	w.now.Offset += 49 * hour
	w.step(Tick{})
	w.now.Offset -= 49 * hour
	w.step(Ordered{Command: c})
	require.Equal(t, wire.CodeLockedOut, w.wrongly(BudgetTyped).Outcome)
	for range 3 * minCommands {
		w.step(Ordered{Command: w.command(wire.CmdBeep, nil, wire.DoorReason{})})
		w.now.Mono += hour
	}
	w.step(Tick{})
	require.InDelta(t, minCommands, len(w.s.Commands), 26)
	require.NotContains(t, w.s.Commands, c.CommandID)
}
