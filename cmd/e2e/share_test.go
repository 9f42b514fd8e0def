package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// statusCodes counts the events of a parcel's timeline by their status codes.
func (w *world) statusCodes(number string) map[string]int {
	w.t.Helper()
	timeline, err := w.cloud.Store.FindTimeline(context.Background(), number, nil)
	events := timeline.Events
	require.NoError(w.t, err)
	out := map[string]int{}
	for _, e := range events {
		out[string(e.Event.StatusCode)]++
	}
	return out
}

// A courier asks for two compartments for three parcels: the last two share one. Each has a
// timeline of its own; one that is taken out again fails alone, and one code opens both
// compartments, without a network, for the two that are left.
func TestSeveralParcelsShareACompartment(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, by := t.Context(), w.box.ProviderCaller
		w.create("R-1", 0, "PK-1", "PK-2", "PK-3")
		own, shared := w.cellOf(c, 2).GridID, w.cellOf(c, 4).GridID
		out, err := w.cloud.Lockers.OpenDoors(ctx, by, locker.OpenInput{Delivery: "ref:R-1", Compartments: []cloud.GridID{own, shared}})
		require.NoError(t, err)
		require.Len(t, out.Opening.Compartments, 2)
		for door, parcels := range map[uint][]string{2: {"PK-1"}, 4: {"PK-2", "PK-3"}} {
			for _, p := range parcels {
				require.NoError(t, c.sim.Put(door, p))
			}
		}
		c.close(out)
		w.delivered("R-1")
		held := map[cloud.GridID]int{}
		for _, p := range w.find("R-1").Packages {
			held[*p.GridID]++
		}
		require.Equal(t, map[cloud.GridID]int{own: 1, shared: 2}, held)
		for n := uint(1); n <= doors; n++ {
			require.Equal(t, n == 2 || n == 4, w.cellOf(c, n).State != cloud.GridFree, "door %d: none is kept for parcels that lie elsewhere", n)
		}

		_, err = w.cloud.Lockers.Correct(ctx, by, locker.CorrectInput{Delivery: "ref:R-1", Compartments: []cloud.GridID{shared}, Reason: "Another recipient's"})
		require.NoError(t, err)
		require.NotEqual(t, wire.CodeOK, c.try(*out.PickupCode).Outcome, "it waits for the doors")
		items, err := c.sim.TakeOut(4)
		require.NoError(t, err)
		require.Equal(t, []string{"PK-2", "PK-3"}, items)
		_, err = w.cloud.Lockers.Fail(ctx, by, locker.FailInput{Delivery: "ref:R-1", Packages: []locker.FailPackage{{TrackingNumber: "PK-3", FailureCode: "RECIPIENT_UNKNOWN"}}})
		require.NoError(t, err)
		require.NoError(t, c.sim.Put(4, "PK-2"))
		require.NoError(t, c.sim.CloseDoor(4))
		w.delivered("R-1")
		require.Equal(t, cloud.GridOccupied, w.cellOf(c, 4).State, "one is left in it")

		c.setCut(true)
		a := c.try(*out.PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Len(t, a.Doors, 2)
		for _, n := range a.Doors {
			w.awaits("the doors open one after the other", time.Minute, func() bool { return c.sim.OpenAt(uint(n), time.Now()) })
			_, err := c.sim.TakeOut(uint(n))
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			require.NoError(t, c.sim.CloseDoor(uint(n)))
		}
		time.Sleep(time.Minute)
		c.setCut(false)
		w.awaits("collected", 10*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		c.drained()
		for _, n := range []uint{2, 4} {
			require.Equal(t, cloud.GridFree, w.cellOf(c, n).State)
		}
		waited := string(otep.AvailableForPickup)
		collected := map[string]int{"information_submitted": 1, waited: 1, "delivered": 1}
		require.Equal(t, []map[string]int{collected, collected, {"information_submitted": 1, waited: 1, string(otep.RemovedFromDevice): 1}},
			[]map[string]int{w.statusCodes("PK-1"), w.statusCodes("PK-2"), w.statusCodes("PK-3")})
		ends := map[string]string{}
		require.NoError(t, w.cloud.Store.Look(ctx, func(v cloud.View) error {
			rows, err := v.DeviceOrders(w.task("R-1").id)
			for _, row := range rows {
				ends[row.Tracking] = row.Status
			}
			return err
		}))
		require.Equal(t, map[string]string{"PK-1": "picked_up", "PK-2": "picked_up", "PK-3": "removed"}, ends)
		w.judge(t)
		require.Empty(t, w.faults())
	})
}
