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

func (w *world) larger(id string) Answer {
	n := edge.DoorNumber(0)
	if o, ok := w.s.Openings[id]; ok {
		n = o.Doors[0].Door
	}
	return w.another(id, n, TooSmall)
}

func (w *world) another(id string, n edge.DoorNumber, reason string) Answer {
	return w.step(TakeAnother{OpeningID: id, Door: n, Reason: reason}).Answer
}

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
		require.Equal(t, edge.DoorNumber(2), w.s.Another(id, 1, TooSmall, w.now), name)
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

func TestACompartmentThatCannotBeUsedIsBlockedAndAnotherGiven(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{wire.BlockOccupied, wire.BlockDirty, wire.BlockBroken} {
		w := sized(t, "S", "L", "S", "S")
		first := w.typed(5)
		require.Equal(t, wire.ReasonOccupied, w.another(first.OpeningID, 1, reason).Outcome, "its door was not seen open")
		w.swing()
		require.Equal(t, wire.ReasonOccupied, w.another(first.OpeningID, 3, reason).Outcome, "a door of another opening, or of none")
		require.Equal(t, wire.ReasonOccupied, w.another(first.OpeningID, 1, "ugly").Outcome)
		require.Empty(t, bodies[wire.CompartmentBlocked](w))
		a := w.another(first.OpeningID, 1, reason)
		require.Equal(t, []any{wire.CodeOK, []edge.DoorNumber{3}}, []any{a.Outcome, a.Doors}, "one of the same size")
		blocked := bodies[wire.CompartmentBlocked](w)
		require.Len(t, blocked, 1)
		require.NotEmpty(t, blocked[0].BlockID)
		blocked[0].BlockID = ""
		require.Equal(t, wire.CompartmentBlocked{Door: 1, Reason: reason, OpeningID: first.OpeningID, Who: "courier"}, blocked[0])
		require.Equal(t, map[uint][]string{3: {"PK1"}}, bodies[wire.OpeningStarted](w)[1].Packages)
		require.Equal(t, wire.ReasonOccupied, w.another(first.OpeningID, 1, reason).Outcome, "once for each opening and door")
		w.swing()
		if reason == wire.BlockOccupied {
			w.step(Reading{Door: 1, Open: true, Item: wire.ItemPresent, Mono: w.now.Mono})
		}
		w.setDoor(1, false)
		w.setDoor(3, false)
		w.wait(3 * time.Second)
		require.Empty(t, w.s.Openings)
		require.Empty(t, w.s.Exceptions)
		require.Equal(t, []string{"", reason, "LD-1"}, []string{w.s.Doors[1].Delivery, w.s.Doors[1].Blocked, w.s.Doors[3].Delivery})
		w.restart(time.Second, wire.ClockSynced)
		w.readAll()
		w.openDoors("op_9", 1)
		require.Equal(t, wire.ReasonSuspect, bodies[wire.CommandOutcome](w)[0].Reason, "it is not given again, by the cloud neither")
		w.step(Ordered{Command: w.command(wire.CmdUnblock, map[uint]uint64{1: 9}, wire.DoorReason{Door: 1})})
		w.order("op_10", wire.OpenDeposit, 1)
		require.Equal(t, "op_10", w.s.Doors[1].Opening)
	}
}

func TestACompartmentIsBlockedThoughNoOtherIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(w *world){
		"smaller":     func(w *world) { w.s.Config.Layout[1].Size = "XS" },
		"holds one":   func(w *world) { d := w.s.Doors[2]; d.Delivery = "LD-2"; w.s.Doors[2] = d },
		"of no size":  func(w *world) { w.s.Config.Layout[0].Size = "" },
		"memory lost": func(w *world) { w.s.Meta.Lost = true },
	} {
		w := sized(t, "S", "S")
		id := w.typed(5).OpeningID
		w.swing()
		c(w)
		a := w.another(id, 1, wire.BlockDirty)
		require.Equal(t, Answer{Outcome: NoOther, OpeningID: id, Doors: []edge.DoorNumber{1}}, a, name)
		require.Equal(t, wire.BlockDirty, w.s.Doors[1].Blocked, name)
		require.Empty(t, w.takePulses(), name)
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		require.Equal(t, wire.ReasonSuspect, w.typed(5).Outcome, name)
		require.Equal(t, []wire.OpeningEnded{{OpeningID: id, Reason: wire.EndCancelled}}, bodies[wire.OpeningEnded](w), name)
		require.Empty(t, w.s.Doors[1].Delivery, name)
		require.NotEmpty(t, w.s.Codes[1], "the delivery stays")
	}
}

// A courier brings three parcels, and the compartment of one cannot be used: the others go on
// as they stand, one closed over its parcel already and one that did not open.
func TestOneOfSeveralCompartmentsIsLeft(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{TooSmall, wire.BlockDirty, "none free"} {
		w := sized(t, "M", "S", "S", "M", "M")
		w.list(wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(6), DeliveryRef: "LD-1", Doors: []uint{2, 3, 4}, Packages: map[uint][]string{2: {"PK2"}, 3: {"PK3"}, 4: {"PK4"}}})
		id := w.typed(6).OpeningID
		for _, n := range w.takePulses() {
			w.step(Pulsing{Door: n, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
		}
		w.setDoor(2, true)
		w.setDoor(3, true)
		w.wait(time.Second)
		require.Equal(t, wire.ReasonOccupied, w.another(id, 3, TooSmall).Outcome, "door 4 waits for its pulse")
		w.setDoor(2, false)
		w.wait(5 * time.Second)
		w.answer(edge.PulseUnanswered)
		w.wait(3 * time.Second)
		require.Equal(t, OpenFailed, w.s.Openings[id].door(4).Phase)
		w.takePulses()
		require.Equal(t, wire.ReasonOccupied, w.another(id, 2, TooSmall).Outcome, "it is closed")
		into := edge.DoorNumber(1)
		if reason == "none free" {
			into = 0
			w.s.Meta.Lost = true
			require.Equal(t, NoOther, w.another(id, 3, wire.BlockBroken).Outcome)
		} else {
			a := w.another(id, 3, reason)
			require.Equal(t, []any{wire.CodeOK, []edge.DoorNumber{into}}, []any{a.Outcome, a.Doors}, reason)
			require.Equal(t, map[uint][]string{1: {"PK3"}, 2: {"PK2"}, 4: {"PK4"}}, bodies[wire.OpeningStarted](w)[1].Packages)
		}
		require.Equal(t, len(w.asked), map[edge.DoorNumber]int{0: 0, 1: 1}[into], "no other door is pulsed again")
		w.swing()
		w.setDoor(3, false)
		if into != 0 {
			w.setDoor(into, false)
		}
		w.wait(4 * time.Second)
		require.Empty(t, w.s.Openings)
		settled := bodies[wire.OpeningSettled](w)
		require.Len(t, settled, 1)
		got := map[string]string{}
		for _, p := range settled[0].Packages {
			got[p.Ref] = p.Outcome
		}
		want := map[string]string{"PK2": wire.Deposited, "PK3": wire.Deposited, "PK4": wire.Failed}
		if into == 0 {
			delete(want, "PK3")
		}
		require.Equal(t, want, got)
		require.Equal(t, []string{"LD-1", ""}, []string{w.s.Doors[2].Delivery, w.s.Doors[3].Delivery})
		require.Equal(t, []wire.OpeningEnded{{OpeningID: id, Reason: wire.EndCancelled}}, bodies[wire.OpeningEnded](w))
		w.endsOnce()
	}
}

// The power fails after any step of a courier who has a compartment blocked: what was recorded
// is blocked, and what is blocked was recorded; each opening ends once.
func TestAPowerCutWhileACompartmentIsBlocked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := sized(t, "S", "S", "M")
		cut := rapid.IntRange(0, 7).Draw(rt, "cut")
		reason := rapid.SampledFrom([]string{wire.BlockOccupied, wire.BlockDirty, wire.BlockBroken}).Draw(rt, "reason")
		id := w.typed(5).OpeningID
		for i, do := range []func(){
			w.swing,
			func() { id = w.another(id, 1, reason).OpeningID },
			w.swing,
			func() { w.setDoor(1, false); w.wait(time.Second) },
			func() { id = w.another(id, 2, reason).OpeningID },
			w.swing,
			func() { w.another(id, 3, reason) },
		} {
			if i >= cut {
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
		recorded := map[edge.DoorNumber]bool{}
		for _, b := range bodies[wire.CompartmentBlocked](w) {
			require.False(rt, recorded[edge.DoorNumber(b.Door)], "once")
			recorded[edge.DoorNumber(b.Door)] = true
		}
		for n, d := range w.s.Doors {
			require.Equal(rt, recorded[n], d.Blocked == reason)
			require.False(rt, d.Blocked != "" && d.Delivery != "")
		}
	})
}

// One code has few compartments blocked, also by several sessions, and a sender's one.
func TestOneCodeBlocksFewCompartments(t *testing.T) {
	for purpose, most := range map[string]int{"": 2, wire.PurposeReturn: 1} {
		w := sized(t, "S", "S", "S", "S", "S", "S", "S", "S")
		if purpose != "" {
			e := w.s.Codes[1]
			e.Purpose = purpose
			w.s.Codes[1] = e
		}
		a := w.typed(5)
		w.swing()
		n := a.Doors[0]
		for i := range 4 {
			w.wait(time.Second)
			b := w.another(a.OpeningID, n, wire.BlockDirty)
			if i >= most {
				require.Equal(t, TooManyBlocked, b.Outcome, purpose)
				continue
			}
			require.Equal(t, wire.CodeOK, b.Outcome, purpose)
			w.swing()
			a, n = b, b.Doors[0]
		}
		blocked := 0
		for _, d := range w.s.Doors {
			if d.Blocked != "" {
				blocked++
			}
		}
		require.Equal(t, most, blocked, purpose)
	}
}

// A parcel that lies inside is known by its label no more, and another delivery with the same
// label is brought by its own code.
func TestALabelOfAParcelThatWaits(t *testing.T) {
	w := sized(t, "S", "S", "S", "S")
	w.typed(5)
	w.swing()
	w.setDoor(1, false)
	w.wait(10 * time.Second)
	require.NotEmpty(t, w.s.Deliveries["LD-1"].Doors)
	require.Empty(t, w.s.Labelled("pk1"))
	w.list(wire.CodeEntry{Number: 3, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(8), DeliveryRef: "LD-2", Doors: []uint{2}, Packages: map[uint][]string{2: {"PK1"}}})
	require.Equal(t, "LD-2", w.s.Labelled("pk1"))
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(8), Input: "keypad", Label: "PK1", Choose: true}).Answer.Outcome)
}
