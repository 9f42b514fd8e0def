package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// announced are the codes of a delivery without a deposit, for all that
// the cloud knows: one package behind door 1.
func announced() []wire.CodeEntry {
	packages := map[uint][]string{1: {"PK1"}}
	return []wire.CodeEntry{
		{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: packages, Active: wire.ActiveNow},
		{Number: 2, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: packages, Active: wire.ActiveAtSettle},
	}
}

// anywhere are the codes of a delivery whose compartment the cabinet chooses.
func anywhere(number uint64) wire.CodeEntry {
	return wire.CodeEntry{Number: number, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(8), DeliveryRef: "LD-2", Sizes: []string{"M"},
		Packages: map[uint][]string{0: {"PK2"}}, Active: wire.ActiveNow}
}

// afterLoss is a cabinet of so many doors with a new store, its boards read, that
// was given a whole list.
func afterLoss(t *testing.T, doors int, item wire.Item, entries ...wire.CodeEntry) *world {
	w := newWorld(t, doors)
	w.step(Started{Fresh: true})
	for n := 1; n <= doors; n++ {
		w.step(Reading{Door: edge.DoorNumber(n), Mono: w.now.Mono, Item: item})
	}
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: entries}))
	return w
}

func (w *world) typed(v byte) Answer {
	return w.step(CodeTried{Verifier: verifier(v), Input: "keypad"}).Answer
}

// The courier had put the parcel in, and the store was lost before the doors were
// closed: the box counted as empty at the cabinet, and the next courier was given
// it.
func TestABoxThatMayHoldAParcelAfterALossIsKept(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 2, wire.ItemUnknown, append(announced(), anywhere(3))...)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	require.True(t, w.s.Doors[1].Unverified)
	require.Empty(t, w.s.Deliveries, "nothing is settled by that")
	require.Empty(t, bodies[wire.Exception](w))
	require.Equal(t, wire.CodeNotActive, w.typed(7).Outcome)
	require.Equal(t, []edge.DoorNumber{2}, w.typed(8).Doors, "another delivery is given another box")
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_x", Kind: wire.OpenDeposit, Doors: []uint{1}, DeliveryRef: "LD-3"})})
	require.Equal(t, wire.ReasonOccupied, bodies[wire.CommandOutcome](w)[0].Reason)

	w.restart(time.Minute, wire.ClockCarried)
	w.readAll()
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery, "kept")
}

// The courier comes once more: the opening whose doors are seen settles.
func TestTheNextOpeningOfItsDeliverySettlesAnUnverifiedBox(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 1, wire.ItemUnknown, announced()...)
	require.Equal(t, wire.CodeOK, w.typed(5).Outcome)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, wire.ByDoorClose, bodies[wire.OpeningSettled](w)[0].ConfirmedBy)
	require.False(t, w.s.Doors[1].Unverified)
	require.Equal(t, []edge.DoorNumber{1}, w.typed(7).Doors)
}

// A cancelled opening whose door was seen leaves the box empty, as the cloud has it.
func TestACancelledOpeningLetsAnUnverifiedBoxGo(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 1, wire.ItemUnknown, announced()...)
	id := w.typed(5).OpeningID
	w.swing()
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: id, How: wire.CloseCancel})})
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, wire.EndCancelled, bodies[wire.OpeningEnded](w)[0].Reason)
	require.Empty(t, w.s.Doors[1].Delivery)
}

// Nothing of a cancelled opening whose door was never seen is known.
func TestACancelledOpeningThatOpenedNothingKeepsAnUnverifiedBox(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 1, wire.ItemUnknown, announced()...)
	id := w.typed(5).OpeningID
	for range 2 {
		w.takePulses()
		w.step(Pulsing{Door: 1, Outcome: edge.PulseUnanswered, Mono: w.now.Mono})
		w.wait(2 * time.Second)
	}
	w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, wire.CloseSession{OpeningID: id, How: wire.CloseCancel})})
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningEnded](w), 1)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
}

// The partner confirms the deposit whose opening the cabinet does not know any
// more: the recipient's code had stayed dead.
func TestAConfirmationAfterALossMakesTheCodeWork(t *testing.T) {
	t.Parallel()
	confirm := func(w *world, b wire.CloseSession) string {
		b.OpeningID, b.How, b.ConfirmedBy = "op_lost", wire.CloseSettle, wire.ByPartnerAPI
		w.step(Ordered{Command: w.command(wire.CmdCloseSession, nil, b)})
		all := bodies[wire.CommandOutcome](w)
		return all[len(all)-1].Outcome
	}
	w := afterLoss(t, 1, wire.ItemUnknown, announced()...)
	require.Equal(t, wire.OutcomeRefused, confirm(w, wire.CloseSession{}), "it names no delivery")
	require.Equal(t, wire.OutcomeRefused, confirm(w, wire.CloseSession{DeliveryRef: "LD-9"}))
	require.Equal(t, wire.CodeNotActive, w.typed(7).Outcome)
	require.Equal(t, wire.OutcomeDone, confirm(w, wire.CloseSession{DeliveryRef: "LD-1"}))
	require.Equal(t, map[edge.DoorNumber][]string{1: {"PK1"}}, w.s.Deliveries["LD-1"].Doors)
	require.Equal(t, []edge.DoorNumber{1}, w.typed(7).Doors)

	w = afterLoss(t, 2, wire.ItemUnknown, announced()...)
	require.Equal(t, wire.OutcomeDone, confirm(w, wire.CloseSession{DeliveryRef: "LD-1", Packages: map[uint][]string{1: {"PK1"}}}))
	require.Equal(t, []edge.DoorNumber{1}, w.typed(7).Doors)
	require.Equal(t, wire.OutcomeRefused, confirm(w, wire.CloseSession{DeliveryRef: "LD-1"}), "nothing of it waits for a word")
}

// A parcel that was settled in another box does not lie in this one.
func TestAnUnverifiedBoxIsFreeOnceItsParcelIsSettledElsewhere(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 2, wire.ItemUnknown, announced()...)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, map[uint]uint64{2: 1}, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{2}, DeliveryRef: "LD-1",
		Packages: map[uint][]string{2: {"PK1"}}})})
	w.swing()
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	w.setDoor(2, false)
	w.wait(3 * time.Second)
	require.Equal(t, "LD-1", w.s.Doors[2].Delivery)
	require.Empty(t, w.s.Doors[1].Delivery)
	require.Equal(t, []edge.DoorNumber{2}, w.typed(7).Doors)
}

func TestAnItemSensorDecidesAboutAnUnverifiedBox(t *testing.T) {
	t.Parallel()
	w := afterLoss(t, 1, wire.ItemAbsent, announced()...)
	require.Empty(t, w.s.Doors[1].Delivery, "read empty before the list came")

	w = afterLoss(t, 1, wire.ItemUnknown, announced()...)
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemAbsent})
	require.Empty(t, w.s.Doors[1].Delivery, "read empty afterwards")
	require.Empty(t, bodies[wire.Exception](w))

	w = afterLoss(t, 1, wire.ItemPresent, announced()...)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
	e := bodies[wire.Exception](w)
	require.Len(t, e, 1)
	require.Equal(t, []any{wire.ExDepositUnverified, uint(1), "something seen inside after a loss of memory"}, []any{e[0].Type, e[0].Door, e[0].Evidence})
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemPresent})
	require.Len(t, bodies[wire.Exception](w), 1)

	w = afterLoss(t, 1, wire.ItemUnknown, announced()...)
	w.step(Reading{Door: 1, Mono: w.now.Mono, Item: wire.ItemPresent})
	require.Len(t, bodies[wire.Exception](w), 1)
	require.Equal(t, "LD-1", w.s.Doors[1].Delivery)
}

// What is known here counts more than the list.
func TestOnlyABoxOfWhichNothingIsKnownBecomesUnverified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: announced()}))
	require.Empty(t, w.s.Doors[1].Delivery, "the cabinet has its memory")

	w = newWorld(t, 1)
	w.step(Started{Fresh: true})
	w.readAll()
	w.order("op_1", wire.OpenPickup, 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: announced()}))
	require.Empty(t, w.s.Doors[1].Delivery, "it was collected since")

	w = newWorld(t, 1)
	w.step(Started{Fresh: true})
	w.readAll()
	w.order("op_1", wire.OpenDeposit, 1)
	w.swing()
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: announced()}))
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Len(t, bodies[wire.OpeningSettled](w), 1)
	require.False(t, w.s.Doors[1].Unverified)
	require.Equal(t, []edge.DoorNumber{1}, w.typed(7).Doors)
}

// An older copy of a store holds codes, and does not know what was brought since.
func TestACabinetWithoutItsMemoryChoosesNoBox(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.list(anywhere(1))
	w.step(Started{Behind: true})
	w.readAll()
	require.Equal(t, wire.ReasonOccupied, w.typed(8).Outcome)
	require.Equal(t, "applied", w.take(wire.Codes{To: 9, Generation: 3, Nonce: nonceA, Entries: append(announced(), anywhere(3))}))
	require.Equal(t, []edge.DoorNumber{2}, w.typed(8).Doors)
}
