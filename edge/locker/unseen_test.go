package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// settledDoor is the one door of the one settlement.
func (w *world) settledDoor() wire.SettledDoor {
	w.t.Helper()
	got := bodies[wire.OpeningSettled](w)
	require.Len(w.t, got, 1)
	require.Len(w.t, got[0].Doors, 1)
	return got[0].Doors[0]
}

func TestACloseThatWasSeenHasNoBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.wait(10 * time.Second)
	at := w.now.Wall(w.now.Mono)
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	got := w.settledDoor()
	require.Equal(t, at, got.ClosedAt)
	require.Zero(t, got.ClosedAfter)
	require.Zero(t, got.ClosedBefore)
}

// The clock was an hour behind while the door closed, and was set before the
// settlement: both tell their times by the clock as it is now.
func TestAClockThatIsSetBeforeTheSettlementDatesTheClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.takePulses()
	true0 := w.now.Offset
	w.now.Offset, w.now.Clock = true0-3600*second, wire.ClockCarried
	w.step(Pulsing{Door: 1, Outcome: edge.PulseConfirmed, Mono: w.now.Mono})
	w.setDoor(1, true)
	w.wait(10 * time.Second)
	closed := w.now.Mono
	w.setDoor(1, false)
	w.now.Offset, w.now.Clock = true0, wire.ClockSynced
	w.wait(3 * time.Second)
	got := w.settledDoor()
	require.Equal(t, closed+true0, got.ClosedAt)
	require.Less(t, got.ClosedAt-got.OpenedAt, 11*second)
}

// The agent was down while the courier closed the door. It was open when it was
// last kept, and closed when it was first read.
func TestACloseWhileTheAgentWasDownHasBounds(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]time.Duration{"just opened": 0, "open for half a minute": 30 * time.Second, "open for minutes": 200 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.openDoors("op_1", 1)
			w.swing()
			w.wait(open)
			killed := w.now.Wall(w.now.Mono)
			w.open[1] = false
			w.restart(50*time.Second, wire.ClockCarried)
			w.now.Mono += 3 * second
			read := w.now.Wall(w.now.Mono)
			w.readAll()
			w.wait(3 * time.Second)
			got := w.settledDoor()
			require.Equal(t, read, got.ClosedBefore)
			require.Equal(t, read, got.ClosedAt)
			require.LessOrEqual(t, got.ClosedAfter, killed)
			require.GreaterOrEqual(t, got.ClosedAfter, max(got.OpenedAt, killed-63*second), "kept every minute")
		})
	}
}

// A board fell silent over an open door; its driver knows which poll was the last
// to read it open.
func TestACloseBehindASilentBoardHasBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.wait(20 * time.Second)
	last := w.now.Mono - 700*milli
	w.step(Lost{Doors: []edge.DoorNumber{1}, Mono: w.now.Mono, LastOpen: map[edge.DoorNumber]int64{1: last}})
	w.wait(40 * time.Second)
	w.setDoor(1, false)
	read := w.now.Wall(w.now.Mono)
	w.wait(3 * time.Second)
	got := w.settledDoor()
	require.Equal(t, w.now.Wall(last), got.ClosedAfter)
	require.Equal(t, read, got.ClosedBefore)
}

func TestADoorThatIsOpenAgainAfterTheSilenceIsSeenClosing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.restart(5*time.Second, wire.ClockCarried)
	w.readAll()
	w.wait(5 * time.Second)
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Zero(t, w.settledDoor().ClosedBefore)
}

// Without a clock before the start nothing bounds the close from below; and a
// clock that was set back says nothing either.
func TestBoundsThatNoClockSupportsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{0, -time.Hour} {
		w := newWorld(t, 1)
		if off == 0 {
			w.now.Clock = wire.ClockUnset
		}
		w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}})
		w.step(CodeTried{Verifier: verifier(5), Input: "keypad"})
		w.swing()
		w.open[1] = false
		w.restart(off, wire.ClockCarried)
		w.readAll()
		w.wait(3 * time.Second)
		got := w.settledDoor()
		require.NotZero(t, got.ClosedBefore)
		require.Zero(t, got.ClosedAfter)
	}
}

// A door whose lock was never pulsed, as its board was silent, is forced while the
// session runs: it is reported as forced, and nothing says that its parcel lies inside.
func TestAForcedDoorIsNoDeposit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op_1", 1, 2)
	for _, n := range w.takePulses() {
		out := edge.PulseConfirmed
		if n == 2 {
			out = edge.PulseNotSent
		}
		w.step(Pulsing{Door: n, Outcome: out, Mono: w.now.Mono, By: w.s.Openings["op_1"].door(n).By})
	}
	w.setDoor(1, true)
	w.wait(20 * time.Second)
	w.setDoor(2, true)
	w.wait(5 * time.Second)
	require.Equal(t, []wire.Tamper{{What: wire.TamperDoorForced, Door: 2}}, bodies[wire.Tamper](w))
	w.setDoor(2, false)
	w.wait(5 * time.Second)
	w.setDoor(1, false)
	w.wait(20 * time.Minute)
	settled := bodies[wire.OpeningSettled](w)
	require.Len(t, settled, 1)
	got := map[uint]string{}
	for _, p := range settled[0].Packages {
		got[p.Door] = p.Outcome
	}
	require.Equal(t, map[uint]string{1: wire.Deposited, 2: wire.Unverified}, got)
}

// A door that was forced is the courier's once an act asks for it: it stands open.
func TestADoorThatAnActFindsOpenIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.openDoors("op_1", 1, 2)
	for _, n := range w.takePulses() {
		out := edge.PulseConfirmed
		if n == 2 {
			out = edge.PulseNotSent
		}
		w.step(Pulsing{Door: n, Outcome: out, Mono: w.now.Mono, By: w.s.Openings["op_1"].door(n).By})
	}
	w.setDoor(1, true)
	w.setDoor(2, true)
	w.wait(20 * time.Second)
	w.openDoors("op_1", 1, 2)
	require.Empty(t, w.takePulses())
	w.wait(5 * time.Second)
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(5 * time.Second)
	settled := bodies[wire.OpeningSettled](w)
	require.Len(t, settled, 1)
	for _, p := range settled[0].Packages {
		require.Equal(t, wire.Deposited, p.Outcome)
	}
}

// Of two doors one was seen and one was not: what was to lie behind the other is
// settled as unverified.
func TestADoorThatNoReportNamesIsSettledAsUnverified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.pickup()
	w.openDoors("op_1", 1, 2)
	w.takePulses()
	for _, n := range []edge.DoorNumber{1, 2} {
		w.step(Pulsing{Door: n, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	}
	w.setDoor(1, true)
	w.step(Lost{Doors: []edge.DoorNumber{2}, Mono: w.now.Mono})
	w.wait(time.Second)
	w.setDoor(1, false)
	w.wait(11 * time.Minute)
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	outcomes := map[uint]string{}
	for _, p := range bodies[wire.OpeningSettled](w)[0].Packages {
		outcomes[p.Door] = p.Outcome
	}
	require.Equal(t, map[uint]string{1: wire.Deposited, 2: wire.Unverified}, outcomes)
	opened, _ := w.exceptions(wire.ExDepositUnverified)
	require.Len(t, opened, 1)
	require.EqualValues(t, 2, opened[0].Door)
	require.Equal(t, []edge.DoorNumber{1}, w.try(7).Doors, "its code opens the other one alone")
}
