package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

var nonceA, nonceB, nonceC = []byte("nonce A"), []byte("nonce B"), []byte("nonce C")

// entry is a pickup code of LD-1 that is active in door 1 by the cloud's word.
func entry(number uint64, v byte) wire.CodeEntry {
	return wire.CodeEntry{Number: number, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(v), DeliveryRef: "LD-1", Doors: []uint{1},
		Packages: map[uint][]string{1: {"PK1"}}, Active: wire.ActiveNow}
}

// take hands a keyed cabinet a piece of the list, asked for by nonceA, and tells
// what it did: applied, asked (for a whole list), tamper or nothing.
func (w *world) take(c wire.Codes, change ...func(*CodesCame)) string {
	in := CodesCame{Codes: c, Asked: nonceA, Keyed: true}
	for _, f := range change {
		f(&in)
	}
	before := w.s.Meta
	applies := w.s.Applies(in)
	out := w.step(in)
	for _, r := range out.Records {
		if b, ok := r.Body.(wire.Tamper); ok {
			require.Equal(w.t, wire.TamperOldList, b.What)
			require.Equal(w.t, before, w.s.Meta)
			require.NotContains(w.t, out.Actions, StatusChanged{}, "a status would bring the same list again")
			return "tamper"
		}
	}
	for _, a := range out.Actions {
		if a == (AskList{}) {
			return "asked"
		}
	}
	if w.s.Meta.CodeList != before.CodeList || w.s.Meta.Generation != before.Generation || string(w.s.Meta.ListNonce) != string(before.ListNonce) {
		require.True(w.t, applies)
		return "applied"
	}
	require.False(w.t, applies)
	return "nothing"
}

// keyed is a cabinet with generation 3, number 9, by an answer to nonceA.
func keyed(t *testing.T) *world {
	w := newWorld(t, 2)
	w.s.Meta.Lost = true
	require.Equal(t, "applied", w.take(wire.Codes{From: 0, To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{entry(9, 9)}}))
	require.Equal(t, uint64(3), w.s.Meta.Generation)
	require.False(t, w.s.Meta.Lost)
	return w
}

// A broker keeps what the cloud once sent and sends it again.
func TestACodeListNeverGoesBack(t *testing.T) {
	t.Parallel()
	old := []wire.CodeEntry{entry(5, 5)}
	asked := func(n []byte) func(*CodesCame) { return func(in *CodesCame) { in.Asked = n } }
	before := func(in *CodesCame) { in.Asked, in.Earlier = nonceB, [][]byte{nonceA} }
	for name, c := range map[string]struct {
		list   wire.Codes
		change func(*CodesCame)
		want   string
	}{
		"a whole list of an older generation, with the right nonce": {wire.Codes{To: 40, Generation: 2, Nonce: nonceB, Entries: old}, asked(nonceB), "nothing"},
		"a whole list of an older generation":                       {wire.Codes{To: 40, Generation: 2, Nonce: nonceB, Entries: old}, nil, "tamper"},
		"a tail of an older generation":                             {wire.Codes{From: 9, To: 10, Generation: 2, Entries: old}, nil, "tamper"},
		"a whole list without a generation":                         {wire.Codes{To: 40, Entries: old}, nil, "tamper"},
		"a tail without a generation":                               {wire.Codes{From: 9, To: 10, Entries: old}, nil, "tamper"},
		"a whole list without a nonce":                              {wire.Codes{To: 40, Generation: 3, Entries: old}, nil, "tamper"},
		"a whole list without a nonce, none was asked":              {wire.Codes{To: 40, Generation: 3, Entries: old}, asked(nil), "tamper"},
		"a whole list with a foreign nonce":                         {wire.Codes{To: 40, Generation: 3, Nonce: []byte("other"), Entries: old}, asked(nonceB), "tamper"},
		"a newer whole list with a foreign nonce":                   {wire.Codes{To: 40, Generation: 4, Nonce: []byte("other"), Entries: old}, asked(nonceB), "tamper"},
		"a whole list with the used nonce":                          {wire.Codes{To: 40, Generation: 3, Nonce: nonceA, Entries: old}, nil, "nothing"},
		"a whole list with the used nonce of another connection":    {wire.Codes{To: 40, Generation: 3, Nonce: nonceA, Entries: old}, asked(nonceB), "tamper"},
		"the list held, once more":                                  {wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: old}, nil, "nothing"},
		"the list held, in another connection":                      {wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: old}, asked(nonceB), "tamper"},
		"a late answer to the nonce before":                         {wire.Codes{To: 40, Generation: 3, Nonce: nonceB, Entries: old}, func(in *CodesCame) { in.Asked, in.Earlier = []byte("C"), [][]byte{nonceB} }, "nothing"},
		"a whole list that ends below":                              {wire.Codes{To: 8, Generation: 3, Nonce: nonceB, Entries: old}, asked(nonceB), "nothing"},
		"a whole list that ends below, of another connection":       {wire.Codes{To: 8, Generation: 3, Nonce: nonceB, Entries: old}, nil, "tamper"},
		"a whole list that ends below, to the nonce before":         {wire.Codes{To: 8, Generation: 3, Nonce: nonceA, Entries: old}, before, "nothing"},
		"a tail that ends below":                                    {wire.Codes{From: 4, To: 5, Generation: 3, Entries: old}, nil, "tamper"},
		"a tail that ends below, of another connection":             {wire.Codes{From: 4, To: 5, Generation: 3, Nonce: nonceB, Entries: old}, nil, "tamper"},
		"a tail that ends below, of this connection":                {wire.Codes{From: 4, To: 5, Generation: 3, Nonce: nonceA, Entries: old}, nil, "nothing"},
		"a tail that ends below, from before the newest nonce":      {wire.Codes{From: 4, To: 5, Generation: 3, Nonce: nonceA, Entries: old}, before, "nothing"},
		"a tail that does not follow":                               {wire.Codes{From: 11, To: 12, Generation: 3, Entries: old}, nil, "asked"},
		"a tail of a newer generation":                              {wire.Codes{From: 9, To: 10, Generation: 4, Entries: old}, nil, "asked"},
		"a tail that follows":                                       {wire.Codes{From: 9, To: 10, Generation: 3, Entries: old}, nil, "applied"},
		"a whole list, asked for":                                   {wire.Codes{To: 12, Generation: 3, Nonce: nonceB, Entries: old}, asked(nonceB), "applied"},
		"a newer generation may lower the number":                   {wire.Codes{To: 2, Generation: 4, Nonce: nonceB, Entries: old}, asked(nonceB), "applied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := keyed(t)
			if c.change == nil {
				c.change = func(*CodesCame) {}
			}
			require.Equal(t, c.want, w.take(c.list, c.change))
			_, came := w.s.Codes[5]
			require.Equal(t, c.want == "applied", came)
		})
	}
}

// An honest cloud answers two statuses while a list is made longer: its messages
// cross on their way, in any order, and none of them is a recorded one.
func TestListsThatCrossAreNoTampering(t *testing.T) {
	t.Parallel()
	entries := []wire.CodeEntry{entry(10, 10)}
	crossing := []wire.Codes{
		{From: 9, To: 10, Generation: 3, Nonce: nonceA, Entries: entries},                                       // pushed
		{To: 9, Generation: 3, Nonce: nonceB, Entries: []wire.CodeEntry{entry(9, 9)}},                           // read just before
		{To: 10, Generation: 3, Nonce: nonceC, Entries: append(entries, entry(9, 9))},                           // the next answer
		{From: 9, To: 10, Generation: 3, Nonce: nonceB, Entries: entries},                                       // pushed again
		{To: 10, Generation: 3, Nonce: nonceC, Entries: append(entries, entry(9, 9)), Part: 0},                  // delivered twice
		{From: 0, To: 9, Generation: 3, Nonce: nonceB, Part: 1, End: 9, Entries: []wire.CodeEntry{entry(9, 9)}}, // in parts
	}
	for n := range pow(len(crossing), 3) {
		w := keyed(t)
		for range 3 {
			got := w.take(crossing[n%len(crossing)], func(in *CodesCame) { in.Asked, in.Earlier = nonceC, [][]byte{nonceB, nonceA} })
			require.NotEqual(t, "tamper", got, "%d", n)
			require.GreaterOrEqual(t, w.s.Meta.CodeList, uint64(9))
			n /= len(crossing)
		}
	}
	for _, c := range crossing { // the same, recorded and played in a later connection
		w := keyed(t)
		w.s.Meta.CodeList = 11
		require.Equal(t, "tamper", w.take(c, func(in *CodesCame) { in.Asked = []byte("D") }))
	}
}

func TestOldListsAreRecordedOnceAMinute(t *testing.T) {
	t.Parallel()
	w := keyed(t)
	for range 10 {
		w.take(wire.Codes{To: 40, Generation: 2})
		w.now.Mono += 5 * second
	}
	w.now.Mono += 20 * second
	w.take(wire.Codes{To: 40, Generation: 2})
	require.Equal(t, []wire.Tamper{{What: wire.TamperOldList}, {What: wire.TamperOldList, Count: 9}}, bodies[wire.Tamper](w))
}

// The store was damaged, or an older copy was put in its place: the marks
// beside it say how far the list had come.
func TestMarksOutliveTheStore(t *testing.T) {
	t.Parallel()
	marks := func(in *CodesCame) { in.Marks = Marks{Generation: 3, Number: 9}; in.Asked = nonceB }
	recorded := nonceA
	w := newWorld(t, 1)
	w.step(Started{Fresh: true})
	require.True(t, w.s.Meta.Lost)
	require.Zero(t, w.s.ListNumber(Marks{Generation: 3, Number: 9}))
	require.EqualValues(t, 3, w.s.HeldList(Marks{Generation: 3, Number: 9}).Generation)
	require.Equal(t, "tamper", w.take(wire.Codes{To: 40, Generation: 2, Nonce: recorded}, marks))
	w.now.Mono += 100 * second
	require.Equal(t, "tamper", w.take(wire.Codes{To: 8, Generation: 3, Nonce: recorded}, marks))
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceB}, marks))

	w = keyed(t) // its copy of before
	marks = func(in *CodesCame) { in.Marks = Marks{Generation: 3, Number: 15}; in.Asked = nonceB }
	require.Zero(t, w.s.ListNumber(Marks{Generation: 3, Number: 15}), "a whole list is needed")
	require.Equal(t, "asked", w.take(wire.Codes{From: 14, To: 16, Generation: 3}, marks))
	require.Equal(t, "tamper", w.take(wire.Codes{To: 14, Generation: 3, Nonce: recorded}, marks))
	require.Equal(t, "asked", w.take(wire.Codes{From: 9, To: 16, Generation: 3}, marks))
	require.Equal(t, "applied", w.take(wire.Codes{To: 16, Generation: 3, Nonce: nonceB}, marks))
}

// A device without a key at a cloud that names no generation works as it did.
func TestAListWithoutGenerations(t *testing.T) {
	t.Parallel()
	plain := func(in *CodesCame) { in.Keyed, in.Asked = false, nil }
	w := newWorld(t, 1)
	require.Equal(t, "applied", w.take(wire.Codes{To: 3, Entries: []wire.CodeEntry{entry(3, 3)}}, plain))
	require.Equal(t, "applied", w.take(wire.Codes{From: 3, To: 4}, plain))
	require.Equal(t, "asked", w.take(wire.Codes{From: 6, To: 7}, plain))
	require.Equal(t, "applied", w.take(wire.Codes{To: 8}, plain))
	require.Equal(t, "tamper", w.take(wire.Codes{To: 2}, plain))
	require.Equal(t, "asked", w.take(wire.Codes{From: 8, To: 9, Generation: 1}, plain), "the cloud names generations from now on")
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 1, Nonce: nonceA}, func(in *CodesCame) { in.Keyed = false }))
	w.now.Mono += 100 * second
	require.Equal(t, "tamper", w.take(wire.Codes{To: 10}, plain), "and it never goes back to none")
}

// Collected while offline, rotated in the cloud, then reconnected: the tail's
// renewed code filled the empty compartment with a parcel that is gone.
func TestATailFillsNoCompartment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deposit()
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(7), Input: "keypad"}).Answer.Outcome)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	w.list(wire.CodeEntry{Number: 2, Op: wire.CodeRevoke, Kind: wire.CodePickup, DeliveryRef: "LD-1"}, entry(3, 3))
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Empty(t, w.s.Deliveries)
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(3), Input: "keypad"}).Answer.Outcome)
	// Nor is one filled that the cabinet never held for the delivery.
	foreign := entry(4, 9)
	foreign.DeliveryRef = "LD-9"
	w.list(foreign)
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Empty(t, w.s.Deliveries)
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(9), Input: "keypad"}).Answer.Outcome)
	// Nor does a whole list, as long as the cabinet has its memory.
	w.step(CodesCame{Codes: wire.Codes{To: 6, Entries: []wire.CodeEntry{entry(5, 4)}}})
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(4), Input: "keypad"}).Answer.Outcome)
}

func TestARotatedCodeOpensWhatTheCabinetHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.deposit()
	elsewhere := entry(2, 2)
	elsewhere.Doors = []uint{3}
	w.list(elsewhere, entry(3, 3))
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(2), Input: "keypad"}).Answer.Outcome, "the cabinet holds it elsewhere")
	require.Equal(t, []edge.DoorNumber{1}, w.step(CodeTried{Verifier: verifier(3), Input: "keypad"}).Answer.Doors)
}

func TestContentsComeBackAfterADeclaredLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.step(Started{Fresh: true})
	w.readAll()
	require.Equal(t, "asked", w.take(wire.Codes{From: 8, To: 9, Generation: 3, Entries: []wire.CodeEntry{entry(9, 9)}}), "a tail brings nothing back")
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{entry(9, 9)}}))
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	require.True(t, w.s.Doors[1].Unverified)
	w.restart(time.Second, wire.ClockCarried)
	w.readAll()
	require.True(t, w.s.Doors[1].Unverified, "kept")
	require.False(t, w.s.Meta.Lost, "kept")
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(9), Input: "keypad"}).Answer.Outcome)
	w.swing()
	require.False(t, w.s.Doors[1].Unverified, "it was seen")
}

func TestAnItemSensorVerifiesWhatCameBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.step(Started{Fresh: true})
	w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{entry(9, 9)}})
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemAbsent})
	require.True(t, w.s.Doors[1].Unverified)
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemPresent})
	require.False(t, w.s.Doors[1].Unverified)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
}

// The parcel was collected between the loss and the whole list, which the cloud
// had made before it knew.
func TestWhatWasCollectedSinceTheLossDoesNotComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.step(Started{Fresh: true})
	w.readAll()
	w.order("op_1", wire.OpenPickup, 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{entry(9, 9)}}))
	require.Empty(t, w.s.Doors[1].Delivery)
}

// The delivery code comes again in a list that the cloud made before it knew of
// the pickup. Listed anew after it, it works.
func TestAUsedDeliveryCodeStaysUsedAfterThePickup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	courier := func(n uint64) wire.CodeEntry {
		return wire.CodeEntry{Number: n, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}}
	}
	w.list(courier(1), wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle})
	for _, code := range []byte{5, 7} {
		require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(code), Input: "keypad"}).Answer.Outcome)
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
	}
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	w.step(CodesCame{Codes: wire.Codes{To: 3, Entries: []wire.CodeEntry{courier(1)}}})
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome)
	w.restart(time.Minute, wire.ClockCarried)
	w.readAll()
	require.Equal(t, wire.CodeExpired, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome)
	w.list(courier(4))
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome)
}

// The courier closed the door over nothing: the delivery code opens it once more.
func TestADeliveryCodeStaysGoodWhenNothingWasDeposited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemAbsent})
	w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}})
	for range 2 {
		require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(5), Input: "keypad"}).Answer.Outcome)
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
	}
	require.Len(t, bodies[wire.OpeningSettled](w), 2)
}

// Numbers were given anew while a command's doors were open: its code's number
// lies ahead of the new list, and nothing tells whether it was revoked.
func TestACodeOfAnOlderGenerationDoesNotJoinTheList(t *testing.T) {
	t.Parallel()
	w := keyed(t)
	versions := map[uint]uint64{1: w.s.Doors[2].Version + 1}
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, versions, wire.OpenDoors{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{2}, DeliveryRef: "LD-2",
		Packages: map[uint][]string{2: {"PK2"}}, Code: &wire.CodeEntry{Number: 12, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(12), DeliveryRef: "LD-2"}})})
	w.swing()
	require.Equal(t, "applied", w.take(wire.Codes{To: 2, Generation: 4, Nonce: nonceB}, func(in *CodesCame) { in.Asked = nonceB }))
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	require.Empty(t, w.s.Codes)
}

// A deposit had settled one package and left the other unverified: both
// compartments are kept, and the pickup code opens the first.
func TestACompartmentLeftUnverifiedComesBackUnconfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.step(Started{Fresh: true})
	w.readAll()
	e := entry(9, 9)
	e.Packages = map[uint][]string{1: {"PK1"}, 2: {"PK2"}}
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{e}}))
	require.Equal(t, []string{"LD-1", "LD-1", ""}, []string{w.s.Doors[1].Delivery, w.s.Doors[2].Delivery, w.s.Doors[3].Delivery})
	require.Equal(t, []bool{false, true}, []bool{w.s.IsUnconfirmed(1), w.s.IsUnconfirmed(2)})
	require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(9), Input: "keypad"}).Answer.Outcome)
	require.Equal(t, []edge.DoorNumber{1}, w.takePulses(), "the code opens what was settled")
}

// Of such a delivery staff took out what was settled: the compartment that is left is
// kept, and no code opens it.
func TestOnlyACompartmentLeftUnverifiedComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.step(Started{Fresh: true})
	w.readAll()
	e := entry(9, 9)
	e.Doors, e.Packages = nil, map[uint][]string{2: {"PK2"}}
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: []wire.CodeEntry{e}}))
	require.Equal(t, []string{"", "LD-1", ""}, []string{w.s.Doors[1].Delivery, w.s.Doors[2].Delivery, w.s.Doors[3].Delivery})
	require.True(t, w.s.IsUnconfirmed(2))
	require.Equal(t, wire.CodeNotActive, w.step(CodeTried{Verifier: verifier(9), Input: "keypad"}).Answer.Outcome)
	require.Empty(t, w.takePulses())
}

// A courier whose delivery has no compartment of its own gets none that the list keeps for
// another delivery, though it is free.
func TestAKeptCompartmentIsGivenToNoOtherDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	other := wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}, Active: wire.ActiveNow}
	w.list(other, anywhere(2))
	require.Equal(t, []edge.DoorNumber{2}, w.typed(8).Doors)
	require.Equal(t, []edge.DoorNumber{1}, w.typed(5).Doors, "it is there for whom it was kept")

	w = newWorld(t, 2)
	other.NotAfter = w.now.Mono + w.now.Offset + int64(time.Hour)
	w.list(other, anywhere(2))
	w.wait(2 * time.Hour)
	w.readAll()
	require.Equal(t, []edge.DoorNumber{1}, w.typed(8).Doors, "the other did not come in time")
}
