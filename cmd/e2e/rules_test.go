package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

func refusal(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// listed waits until the cabinet holds all of the code list.
func (w *world) listed(c *cabinet) {
	w.t.Helper()
	w.awaits("the whole list", time.Minute, func() bool {
		rows, err := w.cloud.Store.ListAllDevices(context.Background(), 0, 10)
		require.NoError(w.t, err)
		return c.agent.Loop().State().Meta.CodeList == rows[0].CodeList
	})
}

func (w *world) confirm(ref string, packages ...locker.ConfirmPackage) error {
	_, err := w.cloud.Lockers.Confirm(context.Background(), w.box.ProviderCaller, locker.ConfirmInput{Delivery: locker.DeliveryKey("ref:" + ref), Packages: packages})
	return err
}

// shut closes all doors of an opening and waits until the cloud knows.
func (w *world) shut(c *cabinet, ref string, out locker.OpenOutput) {
	w.t.Helper()
	w.shown(ref, "open")
	c.close(out)
	w.shown(ref, "closed")
}

func (w *world) shown(ref, status string) {
	w.t.Helper()
	w.awaits("the cloud sees all doors "+status, 10*time.Second, func() bool {
		d, err := w.cloud.Lockers.Doors(context.Background(), w.box.ProviderCaller, locker.DeliveryKey("ref:"+ref))
		require.NoError(w.t, err)
		for _, x := range d.Doors {
			if x.DoorStatus != status {
				return false
			}
		}
		return true
	})
}

// The list on the cabinet named the doors of before the move: a courier with no
// network was refused.
func TestCodesFollowAPackageThatWasMovedFromAJammedDoor(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		d := w.create("R-1", 0, "PK-1")
		w.listed(c)
		jammed := c.agent.Loop().State().Codes[1].Doors[0]
		require.NoError(t, c.sim.Jam(jammed))
		_, err := w.open("R-1")
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
		w.awaits("moved", time.Minute, func() bool { return *w.find("R-1").Packages[0].GridID != *d.Packages[0].GridID })
		w.listed(c)
		c.setCut(true)
		time.Sleep(2 * time.Minute)
		a := c.try(*d.DeliveryCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Len(t, a.Doors, 1)
		require.NotEqualValues(t, jammed, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.True(t, c.sim.OpenAt(uint(a.Doors[0]), time.Now()))
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))
		time.Sleep(10 * time.Second)
		require.Empty(t, c.agent.Loop().State().Openings)
		codes, err := w.cloud.Lockers.Find(context.Background(), w.box.ProviderCaller, "ref:R-1")
		require.NoError(t, err)
		require.Nil(t, codes.Delivery.PickupCode, "the cloud knows of no opening yet")
		c.setCut(false)
		w.delivered("R-1")
		code := *w.find("R-1").PickupCode
		c.setCut(true)
		time.Sleep(time.Minute)
		b := c.try(code)
		require.Equal(t, wire.CodeOK, b.Outcome)
		require.Equal(t, a.Doors, b.Doors)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(b.Doors[0])))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.Equal(t, map[string]bool{cloud.DevDoorShut: true}, w.faults(), "the first door has not opened since")
	})
}

// "Whichever came first is confirmed_by; a later one is kept as evidence."
func TestPartnerConfirmsWhileTheCabinetIsOffline(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		w.shut(c, "R-1", out)
		c.setCut(true)
		require.NoError(t, w.confirm("R-1"))
		time.Sleep(time.Minute) // it settles by itself meanwhile
		require.Empty(t, c.agent.Loop().State().Openings)
		c.setCut(false)
		c.drained()
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 1)
		require.Equal(t, wire.ByDoorClose, settled[0].ConfirmedBy)
		require.Equal(t, wire.ByPartnerAPI, *w.find("R-1").ConfirmedBy)
		w.awaits("answered", time.Minute, func() bool {
			outcomes, _ := kept[wire.CommandOutcome](w, wire.KindCommandOutcome)
			return len(outcomes) == 2 && outcomes[1].Outcome == wire.OutcomeDone
		})

		out = w.begin("R-2", "PK-2")
		time.Sleep(5 * time.Second)
		c.setCut(true)
		time.Sleep(2 * time.Minute)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(w.confirm("R-2")), "a door is known to be open")
		c.close(out)
		time.Sleep(time.Minute)
		c.setCut(false)
		w.delivered("R-2")
		require.Equal(t, wire.ByDoorClose, *w.find("R-2").ConfirmedBy)
		require.NoError(t, w.confirm("R-2"), "evidence")
		require.Equal(t, wire.ByDoorClose, *w.find("R-2").ConfirmedBy)
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// A deposit and its collection while the cabinet is offline, and between the two and their
// records the partner's word that it was made: the timeline ends with the collection.
func TestAPartnersWordComesAfterTheCollection(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1")
		w.shut(c, "R-1", out)
		c.setCut(true)
		time.Sleep(time.Minute)
		a := c.try(*out.PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))
		time.Sleep(10 * time.Minute)
		require.NoError(t, w.confirm("R-1"))
		c.setCut(false)
		w.awaits("picked up", 10*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		c.drained()
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// "The code opens only confirmed compartments."
func TestPartnerConfirmsOneOfTwoPackages(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1", "PK-2")
		w.shut(c, "R-1", out)
		require.NoError(t, w.confirm("R-1", locker.ConfirmPackage{TrackingNumber: "PK-2"}))
		w.awaits("settled at the cabinet", time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
		c.drained()
		settled, _ := kept[wire.OpeningSettled](w, wire.KindOpeningSettled)
		require.Len(t, settled, 1)
		require.Equal(t, wire.ByPartnerAPI, settled[0].ConfirmedBy)
		a := c.try(*out.PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Len(t, a.Doors, 1)
		require.EqualValues(t, out.Opening.Compartments[1].Door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))
		w.awaits("picked up", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.Equal(t, cloud.PackageFailed, w.find("R-1").Packages[0].Status)
		next := w.begin("R-2", "PK-3", "PK-4", "PK-5", "PK-6") // every compartment is free
		c.close(next)
		w.delivered("R-2")
		require.Empty(t, w.faults())
	})
}

// A courier's parcel is too large for the compartment that was opened, and
// another one lies wrong: reassignment, then correction.
func TestReassignmentAndCorrection(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, caller := context.Background(), w.box.ProviderCaller
		first := w.begin("R-1", "PK-1")
		second, err := w.cloud.Lockers.Reassign(ctx, caller, locker.ReassignInput{Delivery: "ref:R-1", Size: "M", Reason: "too small"})
		require.NoError(t, err)
		require.False(t, second.Pending)
		require.NotEqual(t, first.Opening.Compartments[0].Door, second.Opening.Compartments[0].Door)
		c.close(second)
		w.delivered("R-1")
		require.Equal(t, 1, len(c.agent.Loop().State().Openings), "the first one's door still stands open")
		c.close(first)
		w.awaits("the first one ends", time.Minute, func() bool { return len(c.agent.Loop().State().Openings) == 0 })
		deposited := *w.find("R-1").DepositedAt

		code, door := *second.PickupCode, second.Opening.Compartments[0].Door
		again, err := w.cloud.Lockers.Correct(ctx, caller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "wrong_parcel"})
		require.NoError(t, err)
		require.False(t, again.Pending)
		require.Equal(t, door, again.Opening.Compartments[0].Door)
		require.Equal(t, cloud.DeliveryCorrecting, w.find("R-1").Status)
		require.Equal(t, wire.CodeNotActive, c.try(code).Outcome, "inactive while open")
		c.close(locker.OpenOutput{Opening: again.Opening})
		w.delivered("R-1")
		d := w.find("R-1")
		require.Equal(t, deposited, *d.DepositedAt)
		require.Equal(t, wire.ByDoorClose, *d.ConfirmedBy)
		require.Equal(t, "wrong_parcel", d.Correction.Reason)
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("picked up", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		rest := w.begin("R-2", "PK-3", "PK-4", "PK-5", "PK-6")
		c.close(rest)
		w.delivered("R-2")
		// The fourth opening within ten seconds finds the lock at rest: that door stays shut, its
		// compartment is not given out, and staff learn which door it is.
		require.Equal(t, map[string]bool{cloud.DevDoorShut: true}, w.faults())
		cells, err := w.cloud.Store.ListCompartments(ctx, w.box.Devices[0].DeviceID)
		require.NoError(t, err)
		for _, x := range cells {
			require.Equal(t, x.Door == door, x.DoorStatus == cloud.DoorJammed, "%+v", x)
		}
	})
}
