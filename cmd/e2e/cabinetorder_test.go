package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/protocol/wire"
)

// An order's parcel goes into a cabinet and is collected while the cabinet has
// no network: the order follows when it has.
func TestOrderThroughACabinet(t *testing.T) {
	story(t, func(t *testing.T, w *world, c *cabinet) {
		orders := order.New(order.Config{Store: w.cloud.Store, Sealer: w.cloud.Box})
		staff := cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: w.box.ProviderCaller.Provider.BusinessID, Type: cloud.ClientAdmin}}
		made, err := orders.Create(t.Context(), staff, order.CreateInput{Type: cloud.DeliveryOrder, Packages: []order.PackageInput{{Weight: 1}},
			Recipient: &cloud.Address{Name: "Jane", Phone: "+14165550123", Line1: "1 Queen St", City: "Toronto", Province: "ON", PostalCode: "M5V 2T6", Country: "CA"}})
		require.NoError(t, err)
		now := func() order.OrderBody {
			out, err := orders.Find(context.Background(), staff, order.Key{OrderID: made.Order.OrderID})
			require.NoError(t, err)
			return out.Order
		}
		out := w.begin("R-1", made.Order.Packages[0].Number)
		require.EqualValues(t, made.Order.OrderID, *w.find("R-1").OrderID)
		c.close(out)
		w.delivered("R-1")
		require.Equal(t, cloud.OrderInLocker, now().StatusID)
		require.Equal(t, w.box.Devices[0].DeviceID, now().Locker.DeviceID)

		time.Sleep(time.Minute) // the cabinet has the code by then
		c.setCut(true)
		require.Equal(t, wire.CodeOK, c.try(*out.PickupCode).Outcome)
		time.Sleep(5 * time.Second)
		c.close(out)
		time.Sleep(5 * time.Minute)
		require.Equal(t, cloud.OrderInLocker, now().StatusID, "nobody knows")
		c.setCut(false)
		w.awaits("the order is delivered", 30*time.Minute, func() bool { return now().StatusID == cloud.OrderDelivered })
		require.Equal(t, *w.find("R-1").PickedUpAt, *now().DeliveredAt, "when it was collected")
		w.judge(t)
	})
}
