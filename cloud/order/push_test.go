package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// What a cabinet says reaches the driver who brings the order; of a sandbox's
// deliveries it is logged.
func TestDriversHearOfTheirDeposits(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		id := w.ref("A").OrderID
		o, err := func() (o cloud.Order, err error) {
			err = w.db.Look(ctx, func(v cloud.View) (err error) { o, err = v.Order(42, id); return err })
			return o, err
		}()
		require.NoError(t, err)
		write := func(c *cloud.Changes) {
			t.Helper()
			require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
		}
		hear := func(kind cloud.LockerNewsKind) {
			t.Helper()
			require.NoError(t, w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
				return w.orders.FromLocker(v, []cloud.LockerNews{{Kind: kind, BusinessID: 42, OrderID: id, Packages: []cloud.PackageID{0}, DeliveryID: 9, Moment: cloud.Moment{At: time.Now()},
					Device: cloud.Operator{Type: "device", ID: 77}, DeviceCode: "CAB-1"}})
			}))
		}
		for live, want := range map[bool]cloud.PushState{true: cloud.PushWaiting, false: cloud.PushLogged} {
			time.Sleep(5 * time.Millisecond) // what came before is not listed
			o.DriverID, o.DriverName, o.Status = w.driver.Account.ID, "Sam", cloud.OrderOutForDelivery
			write(&cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}, LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{{ID: 9, Number: "LD-9", BusinessID: 42, DeviceID: 7, Status: cloud.DeliveryCreated, Livemode: live, CreatedAt: time.Now()}}}})
			from := time.Now().Add(-time.Millisecond)
			hear(cloud.LockerOpened)
			time.Sleep(2 * time.Millisecond) // pushes of one moment have no order
			hear(cloud.LockerDeposited)
			hear(cloud.LockerDeposited)
			list, err := w.db.ListPushes(ctx, 42, w.driver.Account.ID, from, 10)
			require.NoError(t, err)
			require.Len(t, list, 2)
			for i, kind := range []string{"locker_doors_opened", "locker_deposit_settled"} {
				require.Equal(t, kind, list[i].Type)
				require.Equal(t, want, list[i].State)
				require.Equal(t, o.Number+" · Toronto", list[i].Body)
			}
		}
	})
}
