package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// toSend are the entries of a parcel LD-1 that its sender brings with code 5, and an entry
// of a pickup code 7 for it that no cloud makes.
func toSend(purpose string) []wire.CodeEntry {
	packages := map[uint][]string{1: {"PK1"}}
	return []wire.CodeEntry{
		{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: packages, Active: wire.ActiveNow, Purpose: purpose},
		{Number: 2, Op: wire.CodeSet, Kind: wire.CodeOutgoing, DeliveryRef: "LD-1", Doors: []uint{1}, Packages: packages, Active: wire.ActiveAtSettle, Purpose: purpose},
		{Number: 3, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: packages, Active: wire.ActiveNow},
	}
}

func (w *world) bring(t *testing.T) {
	require.Equal(t, wire.CodeOK, w.typed(5).Outcome)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
}

func TestNoCodeOfARecipientOpensAnOutgoingParcel(t *testing.T) {
	t.Parallel()
	for _, purpose := range []string{wire.PurposeSend, wire.PurposeReturn} {
		w := newWorld(t, 2)
		w.list(toSend(purpose)...)
		require.Equal(t, purpose, w.s.Purpose("LD-1"), "before the deposit")
		w.bring(t)
		require.Equal(t, []wire.SettledPackage{{Ref: "PK1", Door: 1, Outcome: wire.Deposited, CodeNumber: 2}}, bodies[wire.OpeningSettled](w)[0].Packages)
		require.Equal(t, purpose, w.s.Deliveries["LD-1"].Purpose)
		require.Equal(t, wire.CodeNotActive, w.typed(7).Outcome)
		require.Equal(t, wire.CodeExpired, w.typed(5).Outcome, "a deposit is made once")
		require.Equal(t, wire.CodeUnknown, w.step(CodeTried{Input: "keypad"}).Answer.Outcome, "an entry without a verifier is no code")
		w.restart(time.Minute, wire.ClockUnset)
		w.readAll()
		require.Equal(t, purpose, w.s.Deliveries["LD-1"].Purpose, "after a power cut")
		require.Equal(t, wire.CodeNotActive, w.typed(7).Outcome)
	}
}

// The cloud has opened the doors before its list came.
func TestThePurposeIsLearntAfterTheDeposit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.openDoors("op_1", 1)
	w.swing()
	w.setDoor(1, false)
	w.wait(3 * time.Second)
	require.Empty(t, w.s.Deliveries["LD-1"].Purpose)
	w.list(toSend(wire.PurposeSend)...)
	require.Equal(t, wire.PurposeSend, w.s.Deliveries["LD-1"].Purpose)
	w.restart(time.Minute, wire.ClockUnset)
	require.Equal(t, wire.PurposeSend, w.s.Deliveries["LD-1"].Purpose, "kept")
}

func TestAnOutgoingParcelIsFoundAgainAfterALossOfMemory(t *testing.T) {
	t.Parallel()
	active := toSend(wire.PurposeReturn)[1]
	active.Active = wire.ActiveNow
	w := afterLoss(t, 2, wire.ItemUnknown, active, anywhere(3))
	require.Equal(t, Delivery{Ref: "LD-1", Purpose: wire.PurposeReturn, Doors: map[edge.DoorNumber][]string{1: {"PK1"}}}, w.s.Deliveries["LD-1"])
	require.Equal(t, []edge.DoorNumber{2}, w.typed(8).Doors, "another delivery is given another compartment")

	w = afterLoss(t, 2, wire.ItemUnknown, append(toSend(wire.PurposeReturn)[:2], anywhere(3))...)
	require.True(t, w.s.Doors[1].Unverified, "it may have been deposited")
	require.Equal(t, []edge.DoorNumber{2}, w.typed(8).Doors)
	w.bring(t)
	require.Equal(t, wire.PurposeReturn, w.s.Deliveries["LD-1"].Purpose)
}

// A delivery whose compartment is chosen here gets a larger one where none of its size is free.
func TestTheNextLargerFreeCompartmentIsChosen(t *testing.T) {
	t.Parallel()
	at := func(size string, sizes ...string) Answer {
		w := newWorld(t, len(sizes))
		for i, s := range sizes {
			w.s.Config.Layout[i].Size = s
		}
		w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(9), DeliveryRef: "LD-0", Doors: []uint{1}},
			wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Sizes: []string{size}, Packages: map[uint][]string{0: {"PK1"}}, Purpose: wire.PurposeSend})
		return w.typed(5)
	}
	require.Equal(t, []edge.DoorNumber{3}, at("S", "S", "L", "M").Doors, "the first is reserved")
	require.Equal(t, []edge.DoorNumber{3}, at("S", "S", "M", "S").Doors)
	require.Equal(t, []edge.DoorNumber{2}, at("", "S", "M", "L").Doors, "any that is free")
	require.Equal(t, wire.ReasonOccupied, at("L", "L", "S", "M").Outcome)
}
