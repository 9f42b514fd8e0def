package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// twoBoxes is a cabinet in whose doors 1 and 2 a delivery lies: code 7 is for
// both, code 8 for the second one.
func twoBoxes(t *testing.T) *world {
	w := newWorld(t, 2)
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	w.openDoors("op_1", 1, 2)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	second := entry(2, 8)
	second.Kind, second.Doors = wire.CodeHandover, []uint{2}
	w.list(second)
	return w
}

// The other person's code named one compartment, and all doors of the pickup
// that ran were pulsed.
func TestASecondCodePulsesTheDoorsThatItNames(t *testing.T) {
	t.Parallel()
	w := twoBoxes(t)
	require.Equal(t, []edge.DoorNumber{1, 2}, w.typed(7).Doors)
	w.swing()
	w.setDoor(1, false)
	w.setDoor(2, false)
	w.wait(time.Second)
	a := w.typed(8)
	require.Equal(t, wire.CodeOK, a.Outcome)
	require.Equal(t, []edge.DoorNumber{2}, a.Doors)
	require.Equal(t, []edge.DoorNumber{2}, w.takePulses())
}

// A pickup runs, and the code is for a compartment that is none of it.
func TestASecondCodeForAnotherDoorWaits(t *testing.T) {
	t.Parallel()
	w := twoBoxes(t)
	first := entry(3, 9)
	first.Doors = []uint{1}
	w.list(first)
	require.Equal(t, []edge.DoorNumber{1}, w.typed(9).Doors)
	require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
	require.Equal(t, wire.ReasonBusy, w.typed(8).Outcome)
	require.Empty(t, w.takePulses())
}

// Each reopening began a session of its own, so that the doors could be opened
// for ever by a code of an hour ago.
func TestReopeningsEndWithTheSessionOfTheCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.deposit()
	id := w.typed(7).OpeningID
	began, item := w.now.Mono, func(i wire.Item) { w.step(Reading{Door: 1, Open: w.open[1], Mono: w.now.Mono, Item: i}) }
	item(wire.ItemPresent)
	reopened := 0
	for w.now.Mono < began+1000*second {
		w.swing()
		w.setDoor(1, false)
		w.wait(40 * time.Second)
		doors, until := w.s.Reopenable(id, w.now)
		a := w.step(Reopen{OpeningID: id}).Answer
		require.Equal(t, len(doors) > 0, a.Outcome == wire.CodeOK)
		require.LessOrEqual(t, until, began+600*second, "the session of the code")
		if a.Outcome != wire.CodeOK {
			break
		}
		reopened++
		id = a.OpeningID
		require.LessOrEqual(t, w.s.Openings[id].Ends.Mono, began+600*second)
	}
	require.Greater(t, reopened, 5)
	require.Less(t, w.now.Mono, began+650*second)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "something is left, and its code works")
	require.Equal(t, wire.CodeOK, w.typed(7).Outcome)
}
