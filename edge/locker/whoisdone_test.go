package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A courier who is done and comes again, by the cloud or by the code, gets the closed door
// opened: what is answered is what happens.
func TestWhoIsDoneMayOpenAgain(t *testing.T) {
	twoDoors := func(t *testing.T) (w *world, opening string) {
		w = newWorld(t, 2)
		w.list(wire.CodeEntry{Number: 1, Op: wire.CodeSet, Kind: wire.CodeDelivery, Verifier: verifier(8), DeliveryRef: "LD-1", Doors: []uint{1, 2}, Packages: map[uint][]string{1: {"PK1"}, 2: {"PK2"}}})
		opening = w.step(CodeTried{Verifier: verifier(8), Input: "keypad"}).Answer.OpeningID
		w.swing()
		w.setDoor(1, false)
		w.wait(3 * time.Second)
		w.step(PressedDone{OpeningID: opening})
		w.takePulses()
		return w, opening
	}
	t.Run("by code", func(t *testing.T) {
		w, _ := twoDoors(t)
		a := w.step(CodeTried{Verifier: verifier(8), Input: "keypad"}).Answer
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
	})
	t.Run("by command", func(t *testing.T) {
		w, opening := twoDoors(t)
		before := len(bodies[wire.CommandOutcome](w))
		w.step(Ordered{Command: w.command(wire.CmdOpenDoors, map[uint]uint64{1: w.s.Doors[1].Version + 1}, wire.OpenDoors{OpeningID: opening, Kind: wire.OpenDeposit, Doors: []uint{1}, DeliveryRef: "LD-1"})})
		require.Equal(t, []edge.DoorNumber{1}, w.takePulses())
		require.Len(t, bodies[wire.CommandOutcome](w), before, "it is answered when the door has opened")
	})
}
