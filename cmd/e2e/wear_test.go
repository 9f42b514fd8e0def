package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// A lock that opens its door at the second pulse only is shown as failing while recipients
// notice nothing yet, also after the agent has started anew.
func TestAWeakLockShowsBeforeItFails(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code := w.drawStaffCodes(c)[0].Code
		open := func(door uint, weak bool) {
			t.Helper()
			if weak {
				require.NoError(t, c.sim.Inject("A", board.LostUnlock, 1))
			}
			a, err := c.agent.Codes().Type(t.Context(), code, []edge.DoorNumber{edge.DoorNumber(door)})
			require.NoError(t, err)
			require.Equal(t, wire.CodeOK, a.Outcome)
			w.awaits("open door", 20*time.Second, func() bool { return c.agent.Loop().State().Doors[edge.DoorNumber(door)].Counted })
			require.NoError(t, c.sim.CloseDoor(door))
			time.Sleep(time.Minute) // the lock rests, the session ends
		}
		for i := range 4 {
			open(1, false)
			open(2, i > 0)
		}
		c.restart(time.Second)
		w.ready(c)
		open(1, false)
		var locks []locker.LockHealth
		w.awaits("wear of locks", 2*time.Hour, func() bool {
			out, err := w.cloud.Lockers.FindHealth(t.Context(), w.staff, locker.HealthInput{Device: w.box.Devices[0].DeviceID})
			require.NoError(t, err)
			locks = out.Health.Locks
			return len(locks) > 0
		})
		require.Len(t, locks, 2)
		for i, want := range []locker.LockHealth{{Door: 2, Condition: "failing", Cycles: 4, Acts: 4, Troubled: 3}, {Door: 1, Condition: "ok", Cycles: 5, Acts: 5}} {
			got := locks[i]
			require.Positive(t, got.OpeningMS)
			require.Less(t, got.OpeningMS, uint32(3000))
			got.GridID, got.DoorName, got.OpeningMS = 0, "", 0
			require.Equal(t, want, got)
		}
	})
}
