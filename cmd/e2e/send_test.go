package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// purposed makes one delivery in five of a random day one that its sender brings.
func purposed(s step, in *locker.CreateInput) bool {
	if s.seed%5 != 0 {
		return false
	}
	in.Purpose = []string{wire.PurposeSend, wire.PurposeReturn}[s.seed/5%2]
	in.Sender = &cloud.Sender{Name: "Sid Sender", Phone: "+14165550199"}
	return true
}

// collectOutgoing has a courier of the partner collect what a sender has brought, now and then
// after a person has tried a code of a recipient.
func (w *world) collectOutgoing(x *task, rnd *rand.Rand) {
	if w.leavesOutgoing {
		return
	}
	if rnd.IntN(3) == 0 {
		_, _ = w.enter(w.cabinets[x.cabinet], truth.Act{Code: "wrong"}, wrongCode(rnd), false)
	}
	w.retrieve(x)
}

// sends makes a delivery that its sender brings.
func (w *world) sends(purpose, ref string) locker.DeliveryBody {
	w.t.Helper()
	out, err := w.cloud.Lockers.Create(context.Background(), w.box.ProviderCaller, locker.CreateInput{ReferenceNumber: ref, DeviceID: w.box.Devices[0].DeviceID, Purpose: purpose,
		Sender: &cloud.Sender{Name: "Sid Sender", Phone: "+14165550199"}, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123", Address: "1 Main St"},
		Packages: []locker.PackageInput{{TrackingNumber: "PK-" + ref, Size: "M"}}})
	require.NoError(w.t, err)
	return out.Delivery
}

// purposeOf is what the cabinet knows of a delivery's purpose.
func (c *cabinet) purposeOf(number string) string {
	s := c.agent.Loop().State()
	return s.Purpose(number)
}

// brings types a sender's code and leaves the parcel.
func (w *world) brings(c *cabinet, code, item string) (door uint) {
	w.t.Helper()
	a := c.try(code)
	require.Equal(w.t, wire.CodeOK, a.Outcome)
	door = uint(a.Doors[0])
	w.awaits("the door opens", time.Minute, func() bool { return c.doorOf(door).Open })
	require.NoError(w.t, c.sim.Put(door, item))
	time.Sleep(2 * time.Second)
	require.NoError(w.t, c.sim.CloseDoor(door))
	w.awaits("the deposit is settled", time.Minute, func() bool { return c.doorOf(door).Delivery != "" })
	return door
}

// A sender brings a parcel with the code of the message while the network is cut, the power
// fails, and a courier collects it later. No code of a recipient opens it.
func TestASenderBringsAParcelWithoutANetwork(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx, caller := context.Background(), w.box.ProviderCaller
		d := w.sends(wire.PurposeSend, "R-1")
		require.Nil(t, d.PickupCode)
		w.awaits("the cabinet has the list", time.Minute, func() bool { return c.purposeOf(d.DeliveryNumber) == wire.PurposeSend })
		c.setCut(true)
		door := w.brings(c, *d.DeliveryCode, "PK-R-1")
		require.Equal(t, wire.CodeExpired, c.try(*d.DeliveryCode).Outcome, "once")
		require.Equal(t, cloud.DeliveryCreated, w.find("R-1").Status)
		c.sim.PowerOff()
		c.kill()
		time.Sleep(time.Minute)
		c.sim.PowerOn()
		c.start()
		w.awaits("the cabinet is back", time.Minute, func() bool { return c.doorOf(door).Known })
		require.Equal(t, wire.PurposeSend, c.agent.Loop().State().Deliveries[d.DeliveryNumber].Purpose, "it knows what is outgoing")
		c.setCut(false)
		w.delivered("R-1")
		d = w.find("R-1")
		require.Nil(t, d.PickupCode)
		require.False(t, d.PickupCodeActive)
		_, err := w.cloud.Lockers.Retrieve(ctx, caller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "collection"})
		require.NoError(t, err)
		w.shown("R-1", "open")
		_, err = c.sim.TakeOut(door)
		require.NoError(t, err)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("the courier has it", time.Minute, func() bool {
			_, err := w.cloud.Lockers.RetrieveConfirm(ctx, caller, locker.RetrieveConfirmInput{Delivery: "ref:R-1"})
			return err == nil
		})
		require.Equal(t, cloud.DeliveryPickedUp, w.find("R-1").Status)
		w.awaits("the cabinet forgets it", time.Minute, func() bool { return c.doorOf(door).Delivery == "" })
		_, err = w.cloud.Lockers.Retrieve(ctx, caller, locker.RetrieveInput{Delivery: "ref:R-1", Reason: "collection"})
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err), "it is collected once")
		c.drained()
		_, next := w.deposited(c, "R-2")
		require.Equal(t, door, next, "the compartment is free")
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// A recipient returns by the link of the parcel what was collected, at a cabinet whose store
// is lost afterwards: the list brings back what lies where.
func TestARecipientReturnsAParcelByTheLink(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx := context.Background()
		code, door := w.deposited(c, "R-1")
		a := c.try(code)
		require.Equal(t, wire.CodeOK, a.Outcome)
		w.awaits("the door opens", time.Minute, func() bool { return c.doorOf(door).Open })
		_, err := c.sim.TakeOut(door)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		in := locker.ParcelReturnInput{Number: w.find("R-1").DeliveryNumber, Key: w.link(w.task("R-1"))}
		_, err = w.cloud.Lockers.ReturnParcel(ctx, cloud.Caller{}, in)
		require.Equal(t, "RETURN_NOT_OFFERED", refusal(err))
		require.NoError(t, w.cloud.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			b, err := v.Business(w.box.ProviderCaller.Provider.BusinessID)
			b.Settings.LockerReturns = true
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
		}))
		out, err := w.cloud.Lockers.ReturnParcel(ctx, cloud.Caller{}, in)
		require.NoError(t, err)
		ref := "RETURN-" + out.Return.DeliveryNumber
		w.awaits("the cabinet has the list", time.Minute, func() bool {
			return c.purposeOf(out.Return.DeliveryNumber) == wire.PurposeReturn
		})
		door = w.brings(c, *out.Return.DropoffCode, out.Return.TrackingNumbers[0])
		w.delivered(ref)
		c.kill()
		c.damageStore(1)
		c.forget(c.unsentSince, time.Minute)
		c.start()
		w.awaits("the list brings it back", 5*time.Minute, func() bool {
			dl := c.agent.Loop().State().Deliveries[out.Return.DeliveryNumber]
			return dl.Purpose == wire.PurposeReturn && len(dl.Doors) == 1
		})
		c.drained()
		tl, err := w.cloud.Store.FindShipment(ctx, out.Return.TrackingNumbers[0])
		require.NoError(t, err)
		require.Equal(t, otep.AwaitingPickup, tl.Current)
		w.judge(t)
	})
}
