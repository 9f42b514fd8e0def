package locker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A door that is named twice is one door: it gets one pulse, and its opening ends.
func TestADoorNamedTwiceIsOneDoor(t *testing.T) {
	pulses := func(actions []Action) (doors []edge.DoorNumber) {
		for _, a := range actions {
			if p, is := a.(Pulse); is {
				doors = append(doors, p.Door)
			}
		}
		return doors
	}
	t.Run("staff code", func(t *testing.T) {
		w := newWorld(t, 3)
		verifier := make([]byte, 32)
		w.step(CodesCame{Codes: wire.Codes{DeviceCode: "A-1", To: 1, Entries: []wire.CodeEntry{{Number: 1, Op: wire.CodeSet, Active: wire.ActiveNow, Kind: wire.CodeStaff, Verifier: verifier}}}})
		out := w.step(CodeTried{Verifier: verifier, Input: "keypad", Doors: []edge.DoorNumber{2, 2, 1}})
		require.Equal(t, []edge.DoorNumber{2, 1}, out.Answer.Doors)
		require.Equal(t, []edge.DoorNumber{2, 1}, pulses(out.Actions))
	})
	t.Run("command", func(t *testing.T) {
		w := newWorld(t, 3)
		out := w.step(Ordered{Command: wire.Command{CommandID: "c1", DeviceCode: "A-1", IssuedAt: w.now.Wall(w.now.Mono), ExpiresAt: w.now.Wall(w.now.Mono) + 60*second, Kind: wire.CmdOpenDoors,
			Body: wire.MustEncode(wire.OpenDoors{OpeningID: "o1", Kind: wire.OpenStaff, Doors: []uint{2, 2}})}})
		require.Equal(t, []edge.DoorNumber{2}, pulses(out.Actions))
	})
}
