package e2e

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// onSite is what the recipient of a delivery, who stands before the cabinet, asks for.
func (w *world) onSite(c *cabinet, x *task) locker.ParcelOpenInput {
	return locker.ParcelOpenInput{Number: x.number, Key: w.link(x), OnSiteToken: c.agent.OnSite()}
}

func (w *world) openParcel(in locker.ParcelOpenInput) (locker.ParcelOpenOutput, error) {
	return w.server().Lockers.OpenParcel(w.soon(), cloud.Caller{}, in)
}

// collectByLink has a recipient open the doors with the link of the parcel: they take out what
// lies behind those that open, and close most of them.
func (w *world) collectByLink(x *task, rnd *rand.Rand) {
	c, began := w.cabinets[x.cabinet], time.Now().Add(-time.Millisecond)
	boxes := w.boxes(x)
	out, err := w.openParcel(w.onSite(c, x))
	w.effect("collect_link", err)
	if err != nil && refusal(err) != "DEVICE_TIMEOUT" {
		return
	}
	var doors []uint
	for n := range boxes {
		if _, opened := c.openedFor(n, began, out.Opening); opened {
			doors = append(doors, n)
		}
	}
	if len(doors) > 0 {
		w.recipient(x, doors, rnd)
	}
}

// task is the delivery of a reference, as the recipient's notice names it.
func (w *world) task(ref string) *task {
	d := w.find(ref)
	return &task{ref: ref, id: d.DeliveryID, number: d.DeliveryNumber}
}

// A recipient in the rain opens the door with the link of the notice, and no code is typed.
func TestARecipientOpensTheDoorByTheLink(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		out := w.begin("R-1", "PK-1", "PK-2")
		early := w.onSite(c, w.task("R-1"))
		_, err := w.openParcel(early)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err), "nothing lies inside yet")
		c.close(out)
		w.delivered("R-1")
		x := w.task("R-1")
		wrong := func(code string, change func(*locker.ParcelOpenInput)) {
			t.Helper()
			in := w.onSite(c, x)
			change(&in)
			_, err := w.openParcel(in)
			require.Equal(t, code, refusal(err))
		}
		require.Len(t, c.agent.OnSite(), passcode.OnSiteLength)
		wrong("DELIVERY_NOT_FOUND", func(in *locker.ParcelOpenInput) { in.Key = in.Key[1:] + "A" })
		wrong("DELIVERY_NOT_FOUND", func(in *locker.ParcelOpenInput) { in.Key = "" })
		wrong("DELIVERY_NOT_FOUND", func(in *locker.ParcelOpenInput) { in.Number = "LD-999999999" })
		wrong("NOT_AT_LOCKER", func(in *locker.ParcelOpenInput) { in.OnSiteToken = "" })
		wrong("NOT_AT_LOCKER", func(in *locker.ParcelOpenInput) { in.OnSiteToken = "222222" })
		old := w.onSite(c, x)
		time.Sleep(5 * time.Minute)
		wrong("NOT_AT_LOCKER", func(in *locker.ParcelOpenInput) { in.OnSiteToken = old.OnSiteToken })
		for n := uint(1); n <= doors; n++ {
			require.False(t, c.sim.OpenAt(n, time.Now()))
		}

		got, err := w.openParcel(w.onSite(c, x))
		require.NoError(t, err)
		require.False(t, got.Pending)
		require.Equal(t, wire.OpenPickup, got.Opening.Kind)
		require.Equal(t, "recipient", got.Opening.RequestedBy.Type)
		require.Len(t, got.Opening.Compartments, len(out.Opening.Compartments))
		again, err := w.openParcel(w.onSite(c, x))
		require.NoError(t, err)
		require.Equal(t, got.Opening.OpeningID, again.Opening.OpeningID, "the same opening goes on")
		for _, b := range got.Opening.Compartments {
			_, err := c.sim.TakeOut(b.Door)
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			require.NoError(t, c.sim.CloseDoor(b.Door))
		}
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.NotEqual(t, wire.CodeOK, c.try(*out.PickupCode).Outcome)
		wrong("DELIVERY_STATE_CONFLICT", func(*locker.ParcelOpenInput) {})
		c.drained()
		w.judge(t)
		require.Empty(t, w.faults())
	})
}

// Nothing of the cloud opens a door for a recipient while the cabinet cannot be reached, another
// person collects, or the courier is putting the deposit right.
func TestALinkOpensNothingElse(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		_, door := w.deposited(c, "R-1")
		x, ctx := w.task("R-1"), context.Background()
		in := w.onSite(c, x)
		_, err := w.cloud.Lockers.Correct(ctx, w.box.ProviderCaller, locker.CorrectInput{Delivery: "ref:R-1", Reason: "Wrong label"})
		require.NoError(t, err)
		_, err = w.openParcel(in)
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.delivered("R-1")

		handed, err := w.cloud.Lockers.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: x.number, Key: w.link(x), Name: "Sam Smith"})
		require.NoError(t, err)
		_, err = w.openParcel(w.onSite(c, x))
		require.Equal(t, "DELIVERY_STATE_CONFLICT", refusal(err))
		list := w.parcels(x)
		require.Len(t, list, 1)
		require.Nil(t, list[0].PickupCode, "the recipient's own is dead")
		require.False(t, list[0].CanOpen)
		_, err = w.cloud.Lockers.TakeBackParcel(ctx, cloud.Caller{}, locker.ParcelTakeBackInput{Number: x.number, Key: w.link(x)})
		require.NoError(t, err)

		in = w.onSite(c, x)
		c.setCut(true)
		w.awaits("offline", 5*time.Minute, func() bool { return !w.cloud.Devices.Online(c.code) })
		require.Empty(t, c.agent.OnSite(), "it would open nothing")
		in.OnSiteToken = passcode.OnSite(w.secrets(c.code).CodeKey, c.code, time.Now())
		_, err = w.openParcel(in)
		require.Equal(t, "DEVICE_OFFLINE", refusal(err))
		list = w.parcels(x)
		require.False(t, list[0].CanOpen)
		code := *list[0].PickupCode
		require.Equal(t, passcode.QR(c.code, code), *list[0].PickupQR)
		require.NotEqual(t, *handed.PickupCode, code)
		c.setCut(false)
		w.ready(c)
		w.listed(c)
		require.False(t, c.sim.OpenAt(door, time.Now()))
		require.Equal(t, wire.CodeOK, c.try(code).Outcome)
		w.atDoors(c, []uint{door}, func(n uint) error { _, err := c.sim.TakeOut(n); return err })
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		require.Empty(t, w.parcels(x))
		c.drained()
		w.judge(t)
	})
}

// A person who was named types the code; the recipient takes the parcel back and opens by the
// link: the same opening goes on, and the command of the link has its audit line.
func TestALinkGoesOnWithWhatAnotherBegan(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		ctx := t.Context()
		_, door := w.deposited(c, "R-1")
		x := w.task("R-1")
		handed, err := w.cloud.Lockers.HandOverParcel(ctx, cloud.Caller{}, locker.ParcelHandoverInput{Number: x.number, Key: w.link(x), Name: "Sam Smith"})
		require.NoError(t, err)
		w.awaits("list", time.Minute, func() bool { return c.try(*handed.PickupCode).Outcome == wire.CodeOK })
		time.Sleep(2 * time.Second)
		_, err = w.cloud.Lockers.TakeBackParcel(ctx, cloud.Caller{}, locker.ParcelTakeBackInput{Number: x.number, Key: w.link(x)})
		require.NoError(t, err)
		_, err = w.openParcel(w.onSite(c, x))
		require.NoError(t, err)
		_, err = c.sim.TakeOut(door)
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.NoError(t, c.sim.CloseDoor(door))
		w.awaits("collected", time.Minute, func() bool { return w.find("R-1").Status == cloud.DeliveryPickedUp })
		rows, err := w.cloud.Store.ListAudits(ctx, w.box.ProviderCaller.Provider.BusinessID, 0, 1000)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(rows, func(r store.AuditRow) bool { return r.Action == "parcel_opened" && r.Target == x.number }))
	})
}

func (w *world) parcels(x *task) []locker.ParcelBody {
	w.t.Helper()
	list, err := w.server().Store.ListDeliveryShipments(context.Background(), x.id)
	require.NoError(w.t, err)
	out, err := w.server().Lockers.ListParcels(context.Background(), cloud.Caller{}, locker.ParcelsInput{Number: list[0].Number, Key: w.link(x)})
	require.NoError(w.t, err)
	_, err = w.server().Lockers.ListParcels(context.Background(), cloud.Caller{}, locker.ParcelsInput{Number: list[0].Number, Key: "no link"})
	require.Equal(w.t, "TRACKING_NOT_FOUND", refusal(err))
	return out.Parcels
}
