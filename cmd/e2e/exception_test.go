package e2e

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/wire"
)

// exception waits for the only open exception of the business, which is of a type.
func (w *world) exception(typ string) (id cloud.ExceptionID) {
	w.t.Helper()
	w.awaits(typ, 15*time.Minute, func() bool {
		out, err := w.cloud.Lockers.ListCabinetExceptions(context.Background(), w.box.AdminCaller, locker.CabinetExceptionsInput{})
		require.NoError(w.t, err)
		if len(out.Exceptions) != 1 || out.Exceptions[0].Type != typ {
			return false
		}
		id = out.Exceptions[0].ExceptionID
		return true
	})
	return id
}

func (w *world) resolve(id cloud.ExceptionID, action string) error {
	_, err := w.cloud.Lockers.ResolveException(context.Background(), w.box.AdminCaller, locker.ResolveInput{ID: id, Action: action, Note: "Seen on the spot"})
	return err
}

// removed removes the device order of the only parcel inside.
func (w *world) removed(reason string) error {
	out, err := w.cloud.Lockers.ListDeviceOrders(context.Background(), w.box.AdminCaller, locker.DeviceOrdersInput{})
	require.NoError(w.t, err)
	_, err = w.cloud.Lockers.RemoveDeviceOrder(context.Background(), w.box.AdminCaller, locker.RemoveInput{ID: out.DeviceOrders[0].ID, Reason: reason})
	return err
}

// A courier leaves a door open and goes. No word of staff shuts it; once it is shut the deposit
// settles, and the exception ends, by itself.
func TestADoorThatWasLeftOpenIsShut(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		door := out.Opening.Compartments[0].Door
		require.NoError(t, c.sim.Put(door, "PK-1"))
		left := w.exception(wire.ExDoorLeftOpen)
		require.Equal(t, "DOOR_OPEN", refusal(w.resolve(left, "door_closed_on_site")))
		require.Equal(t, "DOOR_OPEN", refusal(w.resolve(left, "package_lost")))
		require.NoError(t, c.sim.CloseDoor(door))
		w.delivered("R-1")
		require.Equal(t, "EXCEPTION_CLOSED", refusal(w.resolve(left, "no_action")))
		c.drained()
		w.judge(t)
	})
}

// The store of a cabinet is lost in the middle of a deposit. A person who has looked says what
// lies inside, and the cabinet does as was said.
func TestStaffResolveADoubtfulDeposit(t *testing.T) {
	for _, action := range []string{"deposit_confirmed", "deposit_cancelled"} {
		t.Run(action, func(t *testing.T) {
			story(t, func(t *testing.T, w *world, c *cabinet) {
				out := w.begin("R-1", "PK-1")
				door := out.Opening.Compartments[0].Door
				if action == "deposit_confirmed" {
					require.NoError(t, c.sim.Put(door, "PK-1"))
				}
				c.drained()
				c.loseStore()
				require.NoError(t, c.sim.CloseDoor(door))
				w.ready(c)
				w.unverified(c, door, w.find("R-1").DeliveryNumber)
				doubt := w.exception(wire.ExDepositUnverified)
				if action == "deposit_cancelled" {
					w.noteEmpty(c, door)
				}
				require.NoError(t, w.resolve(doubt, action))
				if action == "deposit_confirmed" {
					w.awaits("the code works", time.Minute, func() bool { return c.try(*out.PickupCode).Outcome == wire.CodeOK })
					w.atDoors(c, []uint{door}, func(n uint) error { _, err := c.sim.TakeOut(n); return err })
					time.Sleep(2 * time.Second)
					require.NoError(t, c.sim.CloseDoor(door))
					w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
				} else {
					w.awaits("the cabinet forgets it", time.Minute, func() bool { return c.doorOf(door).Delivery == "" && !c.doorOf(door).Unverified })
					require.NotEqual(t, wire.CodeOK, c.try(*out.PickupCode).Outcome)
					c.drained()
					_, next := w.deposited(c, "R-2")
					require.Equal(t, door, next, "the compartment is of use again")
				}
				c.drained()
				w.judge(t)
			})
		})
	}
}

// noteEmpty tells the judge that staff declare a door empty.
func (w *world) noteEmpty(c *cabinet, door uint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleared = append(w.cleared, truth.Clear{Cabinet: c.code, Door: door, At: time.Now()})
}

// Staff hand a parcel over in person: its code is dead at the cabinet, and the compartment takes
// another delivery.
func TestStaffHandAParcelOver(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		require.NoError(t, w.removed("handover"))
		require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
		w.awaits("the cabinet forgets it", time.Minute, func() bool { return c.doorOf(door).Delivery == "" })
		require.NotEqual(t, wire.CodeOK, c.try(code).Outcome)
		c.drained()
		_, next := w.deposited(c, "R-2")
		require.Equal(t, door, next)
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// While the link is cut a parcel is handed over by staff and collected by its code: both stand,
// and a person is asked.
func TestAParcelIsHandedOverAndCollectedWithoutANetwork(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		code, door := w.deposited(c, "R-1")
		c.setCut(true)
		require.NoError(t, w.removed("handover"))
		require.Equal(t, wire.CodeOK, c.try(code).Outcome, "the cabinet decides by its own list")
		time.Sleep(4 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		c.setCut(false)
		id := w.exception(wire.ExItemMissing)
		require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
		require.NoError(t, w.resolve(id, "package_found"))
		c.drained()
		w.awaits("the compartment is of use again", time.Minute, func() bool { return w.cellOf(c, door).State == cloud.GridFree })
		w.judge(t)
	})
}

// staffRemove has staff open a compartment of a delivery that waits, take out what lies there, and
// state why.
func (w *world) staffRemove(x *task, rnd *rand.Rand) {
	c, id := w.cabinets[x.cabinet], w.box.Devices[x.cabinet].DeviceID
	reason := []string{"overdue_return", "handover", "relay", "pending_area", "destroyed"}[rnd.IntN(5)]
	boxes := w.boxes(x)
	if len(boxes) == 0 {
		return
	}
	doors := slices.Sorted(maps.Keys(boxes))
	door := doors[rnd.IntN(len(doors))]
	cell := w.cellOf(c, door)
	if _, opened := w.openForStaff(c, id, cell, "remove_open"); !opened {
		return
	}
	if !slices.ContainsFunc(c.sim.ItemsAt(door, time.Now()), func(item string) bool { return slices.Contains(boxes[door], item) }) {
		_ = c.sim.CloseDoor(door) // it is not there any more
		return
	}
	taken, _ := c.sim.TakeOut(door)
	time.Sleep(2 * time.Second)
	_ = c.sim.CloseDoor(door)
	err := errors.New("not asked")
	for range 8 { // until the cloud knows that the door is shut
		time.Sleep(3 * time.Second)
		if err = w.removeRows(id, x.id, cell.GridCode, reason); err == nil {
			break
		}
	}
	w.effect("remove", err)
	w.noteEmpty(c, door)
	if err != nil && len(taken) > 0 { // the parcel is gone, and no word of it is taken
		c.disturb("forgot", door, 30*time.Second)
	}
}

// removeRows removes all device orders of a delivery in a compartment.
func (w *world) removeRows(id cloud.DeviceID, of cloud.DeliveryID, grid, reason string) error {
	list, err := w.server().Lockers.ListDeviceOrders(context.Background(), w.staff, locker.DeviceOrdersInput{DeviceID: id})
	if err != nil {
		return err
	}
	for _, o := range list.DeviceOrders {
		if o.DeliveryID == nil || *o.DeliveryID != of || o.GridCode != grid || o.EndedAt != nil {
			continue
		}
		if _, err := w.server().Lockers.RemoveDeviceOrder(context.Background(), w.staff, locker.RemoveInput{ID: o.ID, Reason: reason}); err != nil {
			return err
		}
		time.Sleep(time.Second) // each is a statement of its own
	}
	return nil
}
