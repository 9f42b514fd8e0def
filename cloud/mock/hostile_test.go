package mock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
)

func (r *rehearsal) staff() (c cloud.Caller) {
	r.t.Helper()
	r.Look(func(v cloud.View) error {
		all, _, err := v.Accounts(cloud.AccountFilter{BusinessID: r.me.Provider.BusinessID, Types: []cloud.AccountType{cloud.ClientAdmin}, Page: cloud.Page{Sort: "id", Limit: 1}})
		c = cloud.Caller{Account: all[0], Language: "en"}
		return err
	})
	return c
}

// with makes a test delivery of one package with a number.
func (r *rehearsal) with(ref, number string) {
	r.t.Helper()
	_, err := r.Lockers.Create(ctx, r.me, locker.CreateInput{ReferenceNumber: ref, DeviceID: r.device.ID, Recipient: cloud.Recipient{Name: "Eve", Phone: "+14165550123"},
		Packages: []locker.PackageInput{{TrackingNumber: number, Size: "S"}}})
	require.NoError(r.t, err)
}

// A rehearsal changes nothing that is real, whatever numbers its parcels have.
func TestMockCabinetMovesNothingReal(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	rehearse(t, "the number of an order", func(r *rehearsal) {
		orders := order.New(order.Config{Store: r.Store, Sealer: r.Server.Box, Webhooks: webhook.New(r.Store, nil)})
		made, err := orders.Create(ctx, r.staff(), order.CreateInput{Type: cloud.DeliveryOrder, Packages: []order.PackageInput{{Weight: 1}},
			Recipient: &cloud.Address{Name: "Jane Smith", Phone: "+1 (416) 555-0123", Line1: "1 Front St", City: "Toronto", Province: "ON", PostalCode: "M5V 2T6", Country: "CA"}})
		require.NoError(r.t, err)
		status := func() string {
			o, err := orders.Find(ctx, r.staff(), order.Key{OrderID: made.Order.OrderID})
			require.NoError(r.t, err)
			return o.Order.Status
		}
		before := status()
		r.with("X-1", made.Order.Packages[0].Number)
		grids := r.open("X-1")
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("X-1").Status)
		_, err = r.Mocks.PickUp(ctx, r.me, mock.PickupInput{Device: r.device.ID, Delivery: r.find("X-1").DeliveryID})
		require.NoError(r.t, err)
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryPickedUp, r.find("X-1").Status)
		require.Equal(r.t, before, status())
	})
	rehearse(t, "the number of a real parcel", func(r *rehearsal) {
		_, err := r.Lockers.Create(ctx, r.me, locker.CreateInput{ReferenceNumber: "LIVE", DeviceID: r.Box.Devices[0].DeviceID, Recipient: cloud.Recipient{Name: "Ada", Phone: "+14165550123"},
			Packages: []locker.PackageInput{{TrackingNumber: "REAL-1", Size: "M"}}})
		require.NoError(r.t, err)
		story := func() (s cloud.Shipment, events int) {
			r.Look(func(v cloud.View) error {
				var err error
				if s, err = v.ShipmentByNumber("REAL-1"); err != nil {
					return err
				}
				rows, err := v.Timeline(s.ID)
				events = len(rows)
				return err
			})
			return s, events
		}
		shipment, events := story()
		r.with("TEST", "REAL-1")
		r.close(r.open("TEST")...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("TEST").Status)
		after, more := story()
		require.Equal(r.t, []any{shipment, events}, []any{after, more})
	})
	rehearse(t, "staff have no part in it", func(r *rehearsal) {
		_, err := r.Lockers.Unblock(ctx, r.staff(), locker.UnblockInput{Device: r.device.ID})
		require.Equal(r.t, "DEVICE_NOT_FOUND", code(err))
		in := locker.DeviceEdit{Device: r.device.ID}
		_, err = r.Lockers.EditDevice(ctx, r.staff(), in)
		require.Equal(r.t, "DEVICE_NOT_FOUND", code(err))
	})
}

func TestMockCabinetIsNotStopped(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	yes, no := new(true), new(false)
	rehearse(t, "by what it keeps while it is offline", func(r *rehearsal) {
		r.create("R-1", "S")
		r.faults(mock.FaultsInput{Offline: yes})
		g := r.faults(mock.FaultsInput{}).Locker.Doors[5].GridID
		var err error
		for n := 0; err == nil && n < 1000; n++ {
			_, err = r.Mocks.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: g, Action: []string{"open", "close"}[n%2]})
		}
		require.Equal(r.t, "DEVICE_OFFLINE", code(err))
		r.faults(mock.FaultsInput{Offline: no})
		synctest.Wait()
		r.close(r.open("R-1")...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
	})
	rehearse(t, "by a record of what is not there", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		require.NoError(r.t, r.Store.Decide(ctx, r.device.ID, func(v cloud.View) (*cloud.Changes, error) {
			o, err := v.RunningOpenings(r.device.ID)
			o[0].DeviceID = r.Box.Devices[0].DeviceID
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Openings: o[:1]}}, err
		}))
		r.close(grids...)
		r.faults(mock.FaultsInput{Clear: true})
		r.deposit("R-2", "S")
	})
	rehearse(t, "one clear brings back what is in doubt", func(r *rehearsal) {
		r.create("R-1", "S")
		grids := r.open("R-1")
		r.faults(mock.FaultsInput{Offline: yes})
		r.move(grids[0], "close", no)
		r.close()
		out := r.faults(mock.FaultsInput{Clear: true, Offline: yes})
		require.False(r.t, out.Locker.Online && !out.Locker.Faults.Offline)
		require.Empty(r.t, r.exceptions())
		require.Equal(r.t, cloud.DeliveryFailed, r.find("R-1").Status)
		_, err := r.Lockers.OpenDoors(ctx, r.me, locker.OpenInput{Delivery: "ref:R-1"})
		require.Equal(r.t, "DEVICE_OFFLINE", code(err), "it went offline after that")
	})
	rehearse(t, "and an abandoned one costs nothing", func(r *rehearsal) {
		r.create("R-1", "S", "L")
		grids := r.open("R-1")
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		r.Look(func(v cloud.View) error {
			m, err := v.MockCabinet(r.device.ID)
			require.Zero(r.t, m.DueAt)
			require.Less(r.t, len(m.State), 16<<10)
			return err
		})
		r.close(grids...)
		require.Equal(r.t, cloud.DeliveryDelivered, r.find("R-1").Status)
	})
}

// Two nodes step the same cabinets: nothing is said twice.
func TestMockCabinetOfTwoNodes(t *testing.T) {
	ring.SkipUnlessCheck(t, "TestMockCabinet")
	t.Parallel()
	rehearse(t, "acts at both", func(r *rehearsal) {
		there := mock.New(mock.Config{Store: r.Store, Lockers: r.Lockers, Sealer: r.Server.Box})
		nodes, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { _ = there.Run(nodes) })
		defer wg.Wait()
		defer stop()
		for _, ref := range []string{"R-1", "R-2", "R-3"} {
			r.create(ref, "S")
			grids := r.open(ref)
			var both sync.WaitGroup
			for _, m := range []*mock.Service{r.Mocks, there} {
				both.Go(func() {
					_, err := m.MoveDoor(ctx, r.me, mock.DoorsInput{Device: r.device.ID, Grid: grids[0], Action: "close"})
					require.NoError(r.t, err)
				})
			}
			both.Wait()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			r.told(ref, "doors_opened", "delivered")
		}
	})
}
