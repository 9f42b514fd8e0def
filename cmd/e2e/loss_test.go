package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge"
	edgelocker "github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// loseStore ends the agent and starts it with a new store.
func (c *cabinet) loseStore() {
	c.w.t.Helper()
	c.kill()
	require.NoError(c.w.t, os.Remove(c.storePath()))
	c.rolled = true
	c.forget(c.unsentSince, 0)
	c.start()
}

// unverified waits until the cabinet keeps a box for a delivery after a loss.
func (w *world) unverified(c *cabinet, door uint, number string) {
	w.t.Helper()
	w.awaits("the box is kept", time.Minute, func() bool {
		d := c.doorOf(door)
		return d.Delivery == number && d.Unverified && !c.agent.Loop().State().Meta.Lost
	})
	c.drained()
	time.Sleep(11 * time.Minute) // one more status
	require.False(w.t, w.faults()[cloud.DevContentsMismatch])
	cell := w.cellOf(c, door)
	require.NotEqual(w.t, cloud.GridFree, cell.State)
	require.False(w.t, cell.OutOfUse())
}

// A courier puts a parcel in without a network; the store is lost before anything
// was sent. The box is kept for the delivery, and the courier, who has no answer,
// closes it properly with the same code: the recipient collects.
func TestAnUnsentDepositSurvivesTheLossOfTheStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		x := &task{ref: "R-1", cabinet: 0, packages: []string{"PK-1"}}
		d := w.create(x.ref, 0, x.packages...)
		x.number, x.id = d.DeliveryNumber, d.DeliveryID
		codes, ok := w.codes(x)
		require.True(t, ok)
		w.awaits("the codes are there", time.Minute, func() bool { return c.agent.Loop().State().Meta.CodeList == 2 })
		c.setCut(true)
		courier := truth.Act{Delivery: x.number, Code: wire.CodeDelivery}
		a, err := w.enter(c, courier, codes.Delivery, false)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome)
		door := uint(a.Doors[0])
		w.atDoors(c, []uint{door}, func(n uint) error { return c.sim.Put(n, "PK-1") })
		c.loseStore()
		require.NoError(t, c.sim.CloseDoor(door))
		c.setCut(false)
		w.unverified(c, door, x.number)
		require.Equal(t, cloud.DeliveryCreated, w.find(x.ref).Status, "nothing is settled")
		require.Equal(t, wire.CodeNotActive, c.try(codes.Pickup).Outcome)
		for _, ref := range []string{"R-2", "R-3", "R-4"} {
			for _, p := range w.create(ref, 0, "PK-"+ref).Packages {
				require.NotEqual(t, w.cellOf(c, door).GridID, *p.GridID)
			}
		}

		a, err = w.enter(c, courier, codes.Delivery, false)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(4 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.delivered(x.ref)
		a, err = w.enter(c, truth.Act{Delivery: x.number, Code: wire.CodePickup}, codes.Pickup, false)
		require.NoError(t, err)
		require.Equal(t, wire.CodeOK, a.Outcome)
		w.atDoors(c, []uint{door}, func(n uint) error { _, err := c.sim.TakeOut(n); return err })
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("collected", time.Minute, func() bool { return w.find(x.ref).Status == cloud.DeliveryPickedUp })
		w.judge(t)
	})
}

// Doors stand open for a remote deposit when the store is lost. The cloud knows of
// it and asks its staff; the partner confirms, and the recipient's code works.
func TestAConfirmedDepositIsCollectedAfterTheLossOfTheStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		door := out.Opening.Compartments[0].Door
		require.NoError(t, c.sim.Put(door, "PK-1"))
		c.drained()
		c.loseStore()
		require.NoError(t, c.sim.CloseDoor(door))
		w.ready(c)
		d := w.find("R-1")
		w.unverified(c, door, d.DeliveryNumber)
		require.Equal(t, cloud.DeliveryDoorsOpened, w.find("R-1").Status)
		list, err := w.cloud.Store.ListExceptions(t.Context(), w.staff.Account.BusinessID, "", 0, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []string{wire.ExDepositUnverified, "open"}, []string{list[0].Type, list[0].Status})

		_, err = w.cloud.Lockers.Confirm(context.Background(), w.box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
		require.NoError(t, err)
		w.awaits("the code works", time.Minute, func() bool { return c.try(*out.PickupCode).Outcome == wire.CodeOK })
		w.atDoors(c, []uint{door}, func(n uint) error { _, err := c.sim.TakeOut(n); return err })
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		w.judge(t)
	})
}

func (c *cabinet) doorOf(door uint) edgelocker.Door {
	return c.agent.Loop().State().Doors[edge.DoorNumber(door)]
}

func (w *world) cellOf(c *cabinet, door uint) cloud.Compartment {
	w.t.Helper()
	d, err := w.cloud.Store.FindDeviceByCode(context.Background(), c.code)
	require.NoError(w.t, err)
	cells, err := w.cloud.Store.ListCompartments(context.Background(), d.ID)
	require.NoError(w.t, err)
	return cells[slices.IndexFunc(cells, func(x cloud.Compartment) bool { return x.Door == door })]
}
