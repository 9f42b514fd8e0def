package device_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// lose takes a device's store away: it comes back with a new one, declares the
// loss and asks for the whole list, which it gives.
func lose(t *testing.T, w *devicetest.World, d *devicetest.Device, reason string) (*devicetest.Device, wire.Codes) {
	t.Helper()
	d.Drop()
	old := d.Epoch
	d.NewEpoch(devicetest.EpochOf(100), &old)
	d.List, d.Lost = 0, true
	clear(d.Contents)
	clear(d.Versions)
	d = w.Connect(d.Code, d.Memory)
	d.Greet(nil)
	d.Tell(wire.KindGap, wire.Gap{Epoch: old, Reason: reason})
	c := ask(t, d, "lost")
	require.EqualValues(t, 0, c.From)
	d.List, d.Generation, d.Lost = c.To, c.Generation, false
	return d, c
}

// The courier had put the parcel in, and the store was lost before the door was
// closed: cabinet and cloud disagreed about the compartment until staff came, and
// a confirmation reached a cabinet that did not know the opening.
func TestADepositOpenAtALossIsKeptUntilItIsConfirmed(t *testing.T) {
	t.Run("damaged", func(t *testing.T) { depositOpenAtALoss(t, wire.GapStoreDamaged) })
	t.Run("rolled back", func(t *testing.T) { depositOpenAtALoss(t, wire.GapStoreRolledBack) })
}

func depositOpenAtALoss(t *testing.T, reason string) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref := create(w, "R-1", d.Code, "PK-1").DeliveryNumber
		confirm(w, d)
		o := startOpening(w, d, "R-1")
		door := o.Doors[0]
		d.Tell(wire.KindDoorOpened, wire.DoorOpened{OpeningID: o.OpeningID, Door: door})
		d, c := lose(t, w, d, reason)
		i := len(c.Entries) - 1
		require.Equal(t, []any{wire.CodePickup, wire.ActiveAtSettle, []uint{door}, ref}, []any{c.Entries[i].Kind, c.Entries[i].Active, c.Entries[i].Doors, c.Entries[i].DeliveryRef})
		d.Contents[door] = ref // unverified, at the cabinet
		tellContents(d, nil)
		require.NotContains(t, d.Faults(), cloud.DevContentsMismatch)
		require.Equal(t, cloud.DeliveryDoorsOpened, deliveryOf(w, ref).Status, "nothing is settled")
		require.Equal(t, cloud.GridOccupied, cell(w, d, door).State)
		list, err := w.Store.ListExceptions(t.Context(), w.Box.ProviderCaller.Account.BusinessID, "", 0, 10)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []string{wire.ExDepositUnverified, "the cabinet lost its store during the opening"}, []string{list[0].Type, list[0].Note})

		_, err = w.Lockers.Confirm(context.Background(), w.Box.ProviderCaller, locker.ConfirmInput{Delivery: "ref:R-1"})
		require.NoError(t, err)
		var body wire.CloseSession
		d.Command(&body)
		require.Equal(t, wire.CloseSession{OpeningID: o.OpeningID, How: wire.CloseSettle, ConfirmedBy: wire.ByPartnerAPI, DeliveryRef: ref}, body)
		tellContents(d, nil)
		faults := d.Faults()
		if reason == wire.GapStoreRolledBack {
			require.Contains(t, faults, cloud.DevStoreFork)
			delete(faults, cloud.DevStoreFork)
		}
		require.Empty(t, faults)
		require.Equal(t, cloud.DeliveryDelivered, deliveryOf(w, ref).Status)
	})
}

// The cabinet had chosen the compartment by itself: no list names it, so it could
// choose it again for the next parcel.
func TestABoxChosenByTheCabinetIsBlockedAfterALoss(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		no := false
		out, err := w.Lockers.Create(context.Background(), w.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-1", DeviceID: d.ID, Reserve: &no,
			Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-1", Size: "M"}}})
		require.NoError(t, err)
		confirm(w, d)
		d.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_1", Kind: wire.OpenDeposit, Doors: []uint{2}, CommandID: wire.LocalCommand, Who: "courier",
			DeliveryRef: out.Delivery.DeliveryNumber})
		d, _ = lose(t, w, d, wire.GapStoreDamaged)
		var body wire.DoorReason
		c := d.Command(&body)
		require.Equal(t, []any{wire.CmdBlock, wire.DoorReason{Door: 2, Reason: wire.ExDepositUnverified}}, []any{c.Kind, body})
		now := cell(w, d, 2)
		require.Equal(t, []any{cloud.GridBlocked, wire.ExDepositUnverified, cloud.DeliveryID(0)}, []any{now.State, now.BlockReason, now.DeliveryID})
		require.Equal(t, now.Version, c.Versions[2])
		for _, ref := range []string{"R-2", "R-3"} {
			for _, p := range create(w, ref, d.Code, "PK-"+ref).Packages {
				require.NotEqual(t, now.GridID, *p.GridID)
			}
		}
		_, err = w.Lockers.Unblock(context.Background(), cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: w.Box.ProviderCaller.Account.BusinessID}},
			locker.UnblockInput{Device: d.ID, Grid: now.GridID, Reason: "looked"})
		require.NoError(t, err)
		require.Equal(t, cloud.GridFree, cell(w, d, 2).State)
	})
}

// One package was settled and the other left unverified: no list named the second
// compartment, and hardware that was replaced counted it as free with the package
// inside. Once staff have looked, it is in no list.
func TestACompartmentLeftUnverifiedIsKeptAfterALoss(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		ref := create(w, "R-1", d.Code, "PK-1", "PK-2").DeliveryNumber
		confirm(w, d)
		o := startOpening(w, d, "R-1")
		inside, doubtful := o.Doors[0], o.Doors[1]
		d.Tell(wire.KindCommandOutcome, wire.CommandOutcome{CommandID: o.CommandID, Outcome: wire.OutcomeDone})
		settled := settlement(o.OpeningID, "PK-1", inside)
		settled.Packages = append(settled.Packages, wire.SettledPackage{Ref: "PK-2", Door: doubtful, Outcome: wire.Unverified})
		d.Tell(wire.KindOpeningSettled, settled)
		require.Equal(t, cloud.DeliveryDelivered, deliveryOf(w, ref).Status)
		pickup := func(c wire.Codes) (e wire.CodeEntry) {
			for _, x := range c.Entries {
				if x.Kind == wire.CodePickup {
					e = x
				}
			}
			return e
		}
		d, c := lose(t, w, d, wire.GapStoreDamaged)
		e := pickup(c)
		require.Equal(t, []any{[]uint{inside}, map[uint][]string{inside: {"PK-1"}, doubtful: {"PK-2"}}}, []any{e.Doors, e.Packages})
		d.Contents[inside], d.Contents[doubtful] = ref, ref
		tellContents(d, nil)
		require.NotContains(t, d.Faults(), cloud.DevContentsMismatch)

		staff := employee(w)
		_, err := w.Lockers.Clear(context.Background(), staff, locker.ClearInput{Device: d.ID, Grid: cell(w, d, doubtful).GridID, Reason: "empty"})
		require.NoError(t, err)
		drain(d)
		d.List = 0
		e = pickup(ask(t, d, "whole"))
		require.Equal(t, map[uint][]string{inside: {"PK-1"}}, e.Packages)
	})
}
