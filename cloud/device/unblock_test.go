package device_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
)

// A door that did not open for one delivery is blocked while another delivery has
// the compartment reserved: unblocked it is reserved again, not occupied, and free
// when that delivery has gone elsewhere meanwhile.
func TestUnblockedCompartmentsAreAsTheirDeliveriesAre(t *testing.T) {
	signing(t, func(t *testing.T, w *devicetest.World, d *devicetest.Device) {
		staff := employee(w)
		out, err := w.Lockers.Create(context.Background(), w.Box.ProviderCaller, locker.CreateInput{ReferenceNumber: "R-1", DeviceID: d.ID,
			Recipient: cloud.Recipient{Name: "Ada Moreau", Phone: "+14165550123"}, Packages: []locker.PackageInput{{TrackingNumber: "PK-1", Size: "M"}}})
		require.NoError(t, err)
		door := uint(0)
		block := func() {
			require.NoError(t, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
				cells, err := v.Compartments(d.ID)
				for _, c := range cells {
					if c.DeliveryID == out.Delivery.DeliveryID {
						door, c.State, c.BlockReason = c.Door, cloud.GridBlocked, "open_failed"
						return &cloud.Changes{LockerChanges: cloud.LockerChanges{Compartments: []cloud.Compartment{c}}}, err
					}
				}
				return nil, err
			}))
		}
		unblock := func() string {
			got, err := w.Lockers.Unblock(context.Background(), staff, locker.UnblockInput{Device: d.ID, Grid: cell(w, d, door).GridID, Reason: "looked"})
			require.NoError(t, err)
			return got.Grid.State
		}
		block()
		require.NotZero(t, door)
		require.Equal(t, cloud.GridReserved, unblock())
		require.Equal(t, out.Delivery.DeliveryID, cell(w, d, door).DeliveryID)

		block()
		require.NoError(t, w.Store.Decide(context.Background(), d.ID, func(v cloud.View) (*cloud.Changes, error) {
			x, err := v.Delivery(out.Delivery.DeliveryID)
			x.Packages[0].GridID = 0 // it was given another compartment
			return &cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{x}}}, err
		}))
		require.Equal(t, cloud.GridFree, unblock())
		require.Zero(t, cell(w, d, door).DeliveryID)
	})
}
