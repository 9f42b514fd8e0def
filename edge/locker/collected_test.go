package locker

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// What was collected is not opened for once more: neither by its pickup code, nor
// by a list that was made before the cloud knew, whose newest entry is exactly the
// last that the cabinet had when the goods were taken.
func TestWhatWasCollectedIsNotOpenedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	pickup := wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodePickup, Verifier: verifier(7), DeliveryRef: "LD-1", Active: wire.ActiveAtSettle}
	courier := wire.CodeEntry{Number: 2, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(5), DeliveryRef: "LD-1", Doors: []uint{1}, Packages: map[uint][]string{1: {"PK1"}}}
	w.list(pickup, courier)
	for _, code := range []byte{5, 7} {
		require.Equal(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(code), Input: "keypad"}).Answer.Outcome)
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
	}
	require.Len(t, bodies[wire.PickupCompleted](w), 1)
	refused := func(why string) {
		for _, code := range []byte{5, 7} {
			require.NotEqual(t, wire.CodeOK, w.step(CodeTried{Verifier: verifier(code), Input: "keypad"}).Answer.Outcome, "%s: %d", why, code)
		}
		require.Empty(t, w.takePulses(), why)
	}
	refused("at once")
	pickup.Active = wire.ActiveNow
	w.step(CodesCame{Codes: wire.Codes{To: 3, Entries: []wire.CodeEntry{pickup, courier}}})
	refused("listed again by a cloud that does not know yet")
	w.restart(time.Minute, wire.ClockCarried)
	w.readAll()
	refused("after a restart")
	require.Len(t, bodies[wire.PickupCompleted](w), 1, "it is collected once")
	require.Len(t, bodies[wire.OpeningSettled](w), 1, "and deposited once")
}

// A pickup that the cloud orders opens what waits for that recipient, and nothing else.
func TestAnOrderedPickupOpensWhatWaits(t *testing.T) {
	t.Parallel()
	refused := func(w *world) string {
		list := bodies[wire.CommandOutcome](w)
		last := list[len(list)-1]
		require.Equal(t, wire.OutcomeRefused, last.Outcome)
		return last.Reason
	}
	w := newWorld(t, 3)
	w.order("op_empty", wire.OpenPickup, 1)
	require.Equal(t, wire.ReasonNotInside, refused(w), "nothing was ever deposited")
	w = newWorld(t, 3)
	w.deposit()
	doors, other := uints(sorted(w.s.Deliveries["LD-1"].Doors)), uint(1)
	for slices.Contains(doors, other) {
		other++
	}
	w.order("op_other", wire.OpenPickup, other)
	require.Equal(t, wire.ReasonNotInside, refused(w), "another door than the delivery's")
	w.order("op_pick", wire.OpenPickup, doors...)
	require.Contains(t, w.s.Openings, "op_pick")
}
