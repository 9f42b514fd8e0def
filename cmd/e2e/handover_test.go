package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// former is a code that opens a delivery's doors, or did, with the kind of its entry.
type former struct {
	code, kind string
	replaced   uint64 // number of the list in which another code took its place; 0: none did
}

// formerCode is a code that another one has just replaced.
func (w *world) formerCode(x *task, code, kind string) former {
	d, err := w.server().Store.FindDeviceByCode(context.Background(), w.cabinets[x.cabinet].code)
	if err != nil {
		return former{code, kind, 0}
	}
	return former{code, kind, d.CodeList}
}

// collects is the kind of the code that opens a delivery's doors now.
func (w *world) collects(x *task) string {
	d, err := w.server().Store.FindDelivery(context.Background(), w.box.ProviderCaller.Provider.ID, x.id)
	if err == nil && d.Handover != nil {
		return wire.CodeHandover
	}
	return wire.CodePickup
}

// handOver has a recipient name another person, or take that back: their partner,
// staff or the holder of the parcel's link asks for it.
func (w *world) handOver(x *task, rnd *rand.Rand) {
	before, ok := w.codes(x)
	kind := w.collects(x)
	if !ok {
		return
	}
	back, ctx, id := kind == wire.CodeHandover && rnd.IntN(3) > 0, context.Background(), locker.DeliveryKey(strconv.FormatInt(int64(x.id), 10))
	l := w.server().Lockers
	var err error
	switch by := rnd.IntN(3); {
	case by == 0 && back:
		_, err = l.TakeBack(ctx, w.box.ProviderCaller, locker.TakeBackInput{Delivery: x.key()})
	case by == 0:
		_, err = l.HandOver(ctx, w.box.ProviderCaller, locker.HandoverInput{Delivery: x.key(), Name: "Sam Smith"})
	case by == 1 && back:
		_, err = l.TakeBackByStaff(ctx, w.box.AdminCaller, locker.TakeBackInput{Delivery: id})
	case by == 1:
		_, err = l.HandOverByStaff(ctx, w.box.AdminCaller, locker.HandoverInput{Delivery: id, Name: "Sam Smith"})
	case back:
		_, err = l.TakeBackParcel(ctx, cloud.Caller{}, locker.ParcelTakeBackInput{Number: x.number, Key: w.link(x)})
	default:
		_, err = l.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: x.number, Key: w.link(x), Name: "Sam Smith"})
	}
	if back {
		w.effect("take back", err)
	} else {
		w.effect("hand over", err)
	}
	if err == nil {
		x.former = append(x.former, w.formerCode(x, before.Pickup, kind))
	}
}

// link is the secret of a parcel's link, as its notice has it.
func (w *world) link(x *task) string {
	list, err := w.server().Store.ListDeliveryShipments(context.Background(), x.id)
	if err != nil || len(list) == 0 {
		return ""
	}
	return w.server().Keys.Links().OfShipment(list[0].ID, list[0].LinkFrom)
}

// A recipient hands a parcel over: the own code is dead, the handover code opens, with
// no network too. What has not reached the cabinet yet it cannot know; a handover
// that is taken back leaves the recipient with another code.
func TestAParcelIsHandedOver(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, by := t.Context(), w.box.ProviderCaller
		own, _ := w.deposited(c, "R-1")
		listed := func() {
			t.Helper()
			w.awaits("list", time.Minute, func() bool {
				d, err := w.cloud.Store.FindDeviceByCode(ctx, c.code)
				return err == nil && c.agent.Loop().State().Meta.CodeList == d.CodeList
			})
			time.Sleep(time.Second) // two changes of a code are not of one moment
		}
		first, err := w.cloud.Lockers.HandOver(ctx, by, locker.HandoverInput{Delivery: "ref:R-1", Name: "Sam Smith", Phone: "+14165550199"})
		require.NoError(t, err)
		require.Equal(t, "Sam Smith", w.find("R-1").Handover.Name)
		listed()
		require.Equal(t, wire.CodeUnknown, c.try(own).Outcome, "the own code is dead")

		back, err := w.cloud.Lockers.TakeBack(ctx, by, locker.TakeBackInput{Delivery: "ref:R-1"})
		require.NoError(t, err)
		require.Nil(t, w.find("R-1").Handover)
		listed()
		require.Equal(t, wire.CodeUnknown, c.try(*first.PickupCode).Outcome, "taken back")
		require.NotContains(t, []string{own, *first.PickupCode}, *back.PickupCode)

		second, err := w.cloud.Lockers.HandOver(ctx, by, locker.HandoverInput{Delivery: "ref:R-1", Name: "Kim Jones"})
		require.NoError(t, err)
		listed()
		c.setCut(true)
		third, err := w.cloud.Lockers.HandOver(ctx, by, locker.HandoverInput{Delivery: "ref:R-1", Name: "Lee Brown"})
		require.NoError(t, err)
		require.False(t, third.AppliedOnDevice)
		require.Equal(t, wire.CodeUnknown, c.try(*third.PickupCode).Outcome, "the cabinet has not been told")
		a := c.try(*second.PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome, "the cabinet cannot know that it is dead")
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(uint(a.Doors[0])))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.Nil(t, w.find("R-1").PickupCode)
		_, err = w.cloud.Lockers.TakeBack(ctx, by, locker.TakeBackInput{Delivery: "ref:R-1"})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
		w.judge(t)
	})
}

// A handover code is the pickup code in everything: a correction shuts it and its end
// makes it work again, and a cabinet that lost its memory knows it from the list alone.
func TestAHandoverCodeOutlivesACorrectionAndALostStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, by := t.Context(), w.box.ProviderCaller
		own, door := w.deposited(c, "R-1")
		out, err := w.cloud.Lockers.HandOver(ctx, by, locker.HandoverInput{Delivery: "ref:R-1", Name: "Sam Smith"})
		require.NoError(t, err)
		_, err = w.cloud.Lockers.Correct(w.soon(), by, locker.CorrectInput{Delivery: "ref:R-1", Reason: "forgot a label"})
		require.NoError(t, err)
		_, err = w.cloud.Lockers.TakeBack(ctx, by, locker.TakeBackInput{Delivery: "ref:R-1"})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err), "no code works during a correction")
		require.NotEqual(t, wire.CodeOK, c.try(*out.PickupCode).Outcome)
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("corrected", time.Minute, func() bool { return w.find("R-1").PickupCodeActive })
		require.Equal(t, *out.PickupCode, *w.find("R-1").PickupCode)

		c.drained()
		c.halt()
		require.NoError(t, os.RemoveAll(c.dir))
		c.start()
		w.ready(c)
		w.awaits("contents", time.Minute, func() bool { return len(c.agent.Loop().State().Deliveries) == 1 })
		c.setCut(true)
		require.Equal(t, wire.CodeUnknown, c.try(own).Outcome)
		a := c.try(*out.PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.EqualValues(t, door, a.Doors[0])
		time.Sleep(5 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		time.Sleep(10 * time.Second)
		c.setCut(false)
		w.awaits("picked up", 5*time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
	})
}

// A code that was rotated during a correction works although the cabinet lost its
// memory before the correction ended.
func TestACodeRotatedDuringACorrectionOutlivesALostStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		_, door := w.deposited(c, "R-1")
		_, err := w.cloud.Lockers.Correct(w.soon(), w.box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "forgot a label"})
		require.NoError(t, err)
		rotated, err := w.cloud.Lockers.RotatePickupCode(t.Context(), w.box.ProviderCaller, locker.RotateInput{Delivery: "ref:R-1", Reason: "security"})
		require.NoError(t, err)
		c.drained()
		c.halt()
		require.NoError(t, os.RemoveAll(c.dir))
		require.NoError(t, c.sim.CloseDoor(door))
		c.start()
		w.ready(c)
		w.awaits("the correction is over", 5*time.Minute, func() bool { return w.find("R-1").PickupCodeActive })
		w.awaits("contents", time.Minute, func() bool { return len(c.agent.Loop().State().Deliveries) == 1 })
		require.Equal(t, wire.CodeOK, c.try(rotated.PickupCode).Outcome)
	})
}

// A parcel was reassigned while the first door stood open, and is being corrected when
// the cabinet loses its memory: it lies where the reassignment settled it, for the cloud
// and for the cabinet.
func TestAReassignedParcelStaysWhereItWasSettledAfterALostStore(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		by := w.box.ProviderCaller
		w.begin("R-1", "PK-1") // its door stays open
		second, err := w.cloud.Lockers.Reassign(t.Context(), by, locker.ReassignInput{Delivery: "ref:R-1", Size: "M", Reason: "dirty"})
		require.NoError(t, err)
		c.close(second)
		w.delivered("R-1")
		door := second.Opening.Compartments[0].Door
		_, err = w.cloud.Lockers.Correct(w.soon(), by, locker.CorrectInput{Delivery: "ref:R-1", Reason: "forgot a label"})
		require.NoError(t, err)
		c.drained()
		c.halt()
		require.NoError(t, os.RemoveAll(c.dir))
		require.NoError(t, c.sim.CloseDoor(door))
		c.start()
		w.ready(c)
		w.awaits("the correction is over", 5*time.Minute, func() bool { return w.find("R-1").PickupCodeActive })
		w.awaits("contents", time.Minute, func() bool { return len(c.agent.Loop().State().Deliveries) == 1 })
		a := c.try(*w.find("R-1").PickupCode)
		require.Equal(t, wire.CodeOK, a.Outcome)
		require.Len(t, a.Doors, 1)
		require.EqualValues(t, door, a.Doors[0])
	})
}
