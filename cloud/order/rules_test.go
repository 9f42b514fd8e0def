package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// A large sum has its tax to the cent.
func TestTaxOfALargeSum(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		l := list
		l.Base = 100_000_000 // a million dollars, to see the last digit
		w.priceList(&l)
		o := w.create(w.customer, input(cloud.DeliveryOrder))
		require.Equal(t, cloud.Money(100_000_000+50+205), *o.ShippingPrice)
		require.Equal(t, cloud.Money(13_000_033), *o.Tax, "13 % of 1,000,002.55 is 130,000.3315")
		require.Equal(t, *o.ShippingPrice+*o.Tax, *o.TotalPrice)
	})
}

// A list of exceptions has only the types that were asked for.
func TestExceptionsHaveTheTypesThatWereAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		late := w.stored(w.ref("late").OrderID)
		late.Status, late.ScheduledDate = cloud.OrderOutForDelivery, time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)
		w.write(late)
		held := w.ref("held").OrderID
		_, err := w.orders.Hold(t.Context(), w.staff, order.ReasonInput{OrderID: held, Reason: "Waits for customs"})
		require.NoError(t, err)
		list := func(types ...string) (ids []cloud.OrderID) {
			out, err := w.orders.Exceptions(t.Context(), w.staff, order.ExceptionsInput{Types: types})
			require.NoError(t, err)
			for _, x := range out.Exceptions {
				ids = append(ids, x.OrderID)
			}
			return ids
		}
		require.ElementsMatch(t, []cloud.OrderID{late.ID, held}, list("overdue", "on_hold"))
		require.Equal(t, []cloud.OrderID{held}, list("on_hold"))
		require.Equal(t, []cloud.OrderID{late.ID}, list("overdue"))
	})
}

// An order of which some packages were delivered says so as the reason of its
// exception: the status has a reason of its own.
func TestAPartlyDeliveredOrderSaysSo(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		id := w.ref("some").OrderID
		w.override(id, cloud.OrderOutForDelivery)
		w.override(id, cloud.OrderPartlyDelivered)
		out, err := w.orders.Exceptions(t.Context(), w.staff, order.ExceptionsInput{})
		require.NoError(t, err)
		require.Len(t, out.Exceptions, 1)
		require.Equal(t, "delivery_failed", out.Exceptions[0].Type)
		require.NotNil(t, out.Exceptions[0].Reason)
		require.Equal(t, "x-partial_delivery", *out.Exceptions[0].Reason)
	})
}
