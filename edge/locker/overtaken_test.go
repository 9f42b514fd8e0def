package locker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// An opening of which another took a door over ends as any, also where the agent starts anew before it has: the door
// is the other's from then on.
func TestAnOvertakenOpeningEndsAfterAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.openDoors("op_1", 1, 3)
	w.step(Ordered{Command: w.command(wire.CmdOpenDoors, nil, wire.OpenDoors{OpeningID: "op_2", Kind: wire.OpenReassign, Doors: []uint{2, 3}, SessionSeconds: 600, DeliveryRef: "LD-1",
		Packages: map[uint][]string{2: {"PK1"}, 3: {"PK3"}}, Replaces: "op_1"})})
	require.Len(t, w.s.Openings, 2)
	w.restart(2*time.Second, wire.ClockSynced)
	w.readAll()
	w.wait(time.Hour)
	require.Empty(t, w.s.Openings)
	w.endsOnce()
}
