package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// sized is a cabinet whose doors have these sizes, with a delivery LD-1 that is to be
// brought to door 1 by code 5 and collected by code 7.
func sized(t testing.TB, letters ...string) *world {
	w := newWorld(t, len(letters))
	for i, size := range letters {
		w.s.Config.Layout[i].Size = size
	}
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}},
		wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	return w
}

func (w *world) larger(id string) Answer { return w.step(TakeLarger{OpeningID: id}).Answer }

func TestAParcelThatDoesNotFitGetsALargerCompartment(t *testing.T) {
	t.Parallel()
	w := sized(t, "S", "XL", "M", "L")
	first := w.typed(5)
	require.Equal(t, wire.ReasonOccupied, w.larger(first.OpeningID).Outcome, "nothing is open yet")
	w.swing()
	w.wait(time.Minute)
	ends := w.s.Openings[first.OpeningID].Ends
	a := w.larger(first.OpeningID)
	require.Equal(t, wire.CodeOK, a.Outcome)
	require.Equal(t, []edge.DoorNumber{3}, a.Doors, "the smallest that is larger")
	require.Equal(t, ends, w.s.Openings[a.OpeningID].Ends, "in what is left of the session")
	started := bodies[wire.OpeningStarted](w)[1]
	require.Equal(t, wire.OpenReassign, started.Kind)
	require.Equal(t, "courier", started.Who)
	by := w.asked[0].By
	require.Equal(t, []any{a.OpeningID, edge.ByLarger, uint64(1), w.now.Mono}, []any{by.OpeningID, by.Kind, by.CodeNumber, by.Mono})
	w.swing()
	require.Equal(t, wire.ReasonOccupied, w.larger(first.OpeningID).Outcome, "it was left")
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, []wire.OpeningEnded{{OpeningID: first.OpeningID, Reason: wire.EndCancelled}}, bodies[wire.OpeningEnded](w))
	require.Empty(t, bodies[wire.OpeningSettled](w))
	again := w.larger(a.OpeningID)
	require.Equal(t, []edge.DoorNumber{4}, again.Doors, "larger still")
	w.swing()
	w.setDoor(3, false)
	w.setDoor(4, false)
	w.wait(3 * time.Second)
	settled := bodies[wire.OpeningSettled](w)
	require.Len(t, settled, 1)
	require.Equal(t, []wire.SettledPackage{{Ref: "PK1", Door: 4, Outcome: wire.Deposited, CodeNumber: 2}}, settled[0].Packages)
	require.Equal(t, []string{"", "", "", "LD-1"}, []string{w.s.Doors[1].Delivery, w.s.Doors[2].Delivery, w.s.Doors[3].Delivery, w.s.Doors[4].Delivery})
	require.Equal(t, []edge.DoorNumber{4}, w.typed(7).Doors, "the recipient finds it there")
}

// The courier's code opens the compartment that the parcel is for now, though the list
// names the former one.
func TestTheCodeOpensTheLargerCompartmentAgain(t *testing.T) {
	t.Parallel()
	w := sized(t, "S", "M")
	first := w.typed(5)
	w.swing()
	a := w.larger(first.OpeningID)
	w.step(Pulsing{Door: 2, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
	w.takePulses()
	w.wait(200 * time.Millisecond)
	again := w.typed(5)
	require.Equal(t, wire.CodeOK, again.Outcome)
	require.Equal(t, a.OpeningID, again.OpeningID)
	require.Equal(t, []edge.DoorNumber{2}, again.Doors)
}

func TestNoLargerCompartmentIsGivenWhereNoneIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(w *world, id string) string{
		"same size":      func(w *world, id string) string { w.s.Config.Layout[1].Size = "S"; return id },
		"unknown size":   func(w *world, id string) string { w.s.Config.Layout[1].Size = "huge"; return id },
		"holds a parcel": func(w *world, id string) string { d := w.s.Doors[2]; d.Delivery = "LD-2"; w.s.Doors[2] = d; return id },
		"out of service": func(w *world, id string) string { d := w.s.Doors[2]; d.Blocked = "x"; w.s.Doors[2] = d; return id },
		"reserved": func(w *world, id string) string {
			w.list(wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(6), DeliveryRef: "LD-2", Doors: []uint{2}})
			return id
		},
		"for staff":        func(w *world, id string) string { w.s.Config.Layout[1].Size = wire.SizeStaff; return id },
		"first of no size": func(w *world, id string) string { w.s.Config.Layout[0].Size = ""; return id },
		"board silent":     func(w *world, id string) string { w.step(Lost{Doors: []edge.DoorNumber{2}}); return id },
		"memory lost":      func(w *world, id string) string { w.s.Meta.Lost = true; return id },
		"done":             func(w *world, id string) string { w.step(PressedDone{OpeningID: id}); return id },
		"session over":     func(w *world, id string) string { w.wait(11 * time.Minute); return id },
		"door shut":        func(w *world, id string) string { w.setDoor(1, false); return id },
		"unknown opening":  func(*world, string) string { return "op_x" },
		"settled": func(w *world, id string) string {
			w.setDoor(1, false)
			w.wait(3 * time.Second)
			return id
		},
	} {
		w := sized(t, "S", "L")
		id := w.typed(5).OpeningID
		w.swing()
		require.Equal(t, edge.DoorNumber(2), w.s.Larger(id, w.now), name)
		id = c(w, id)
		before := len(bodies[wire.OpeningStarted](w))
		a := w.larger(id)
		require.Contains(t, []string{wire.ReasonOccupied, wire.ReasonNoOpening}, a.Outcome, name)
		require.Len(t, bodies[wire.OpeningStarted](w), before, name)
		require.Empty(t, w.takePulses(), name)
	}
	w := sized(t, "S", "L") // a deposit from afar is the partner's to move
	w.openDoors("op_1", 1)
	w.swing()
	require.Equal(t, wire.ReasonOccupied, w.larger("op_1").Outcome)
}

// The power fails after any step of a courier who takes a larger compartment: no pulse
// follows that was asked for before, the parcel counts as being where it was put, once
// every door is closed, and each opening ends once.
func TestAPowerCutWhileALargerCompartmentIsTaken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := sized(t, "S", "M", "L")
		cut := rapid.IntRange(0, 8).Draw(rt, "cut")
		step, put := 0, edge.DoorNumber(0)
		dead := func() bool { step++; return step > cut }
		id := w.typed(5).OpeningID
		for _, do := range []func(){
			w.swing,
			func() { id = w.larger(id).OpeningID },
			w.swing,
			func() { w.setDoor(1, false); w.wait(time.Second) },
			func() { id = w.larger(id).OpeningID },
			w.swing,
			func() { put = 3; w.setDoor(2, false); w.wait(time.Second) },
			func() { w.setDoor(3, false) },
		} {
			if dead() {
				break
			}
			do()
		}
		w.restart(time.Duration(rapid.IntRange(1, 900).Draw(rt, "off"))*time.Second, rapid.SampledFrom([]wire.Clock{wire.ClockUnset, wire.ClockCarried, wire.ClockSynced}).Draw(rt, "clock"))
		w.readAll()
		require.Empty(rt, w.takePulses())
		w.wait(2 * time.Second)
		for n := range w.open {
			w.setDoor(n, false)
		}
		w.wait(time.Duration(ring.Count(21, 25)) * time.Minute)
		require.Empty(rt, w.s.Openings)
		w.endsOnce()
		require.LessOrEqual(rt, len(bodies[wire.OpeningSettled](w)), 1)
		if put != 0 {
			require.Equal(rt, "LD-1", w.s.Doors[put].Delivery)
			require.Empty(rt, w.s.Doors[1].Delivery+w.s.Doors[2].Delivery)
		}
	})
}
