package order_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/protocol/otep"
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

// A move to a status that has a reason of its own writes it into the timeline.
func TestTheTimelineHasTheReasonOfAStatus(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.create(w.staff, input(cloud.DeliveryOrder))
		w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		require.NoError(t, w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderPartlyDelivered, Trigger: order.DeliveryResult,
			Operation: 2008, Delivered: []cloud.PackageID{o.Packages[0].PackageID}}))
		var events []cloud.TimelineEvent
		require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) error {
			sh, err := v.OrderShipment(42, o.OrderID)
			if err == nil {
				events, err = v.Timeline(sh.ID)
			}
			return err
		}))
		i := slices.IndexFunc(events, func(e cloud.TimelineEvent) bool { return e.Event.StatusCode == otep.DeliveryFailed })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, "x-partial_delivery", events[i].Event.IncidentReason)
	})
}

// Why a driver declined is in the event, but not in the one to the customer.
func TestAnEventOfADeclineHasItsReason(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		o := w.create(w.staff, input(cloud.DeliveryOrder))
		drives := func(o *cloud.Order) { o.DriverID = w.driver.Account.ID }
		step := func(to cloud.OrderStatus, by order.Trigger, set func(*cloud.Order)) {
			require.NoError(t, w.orders.Move(t.Context(), w.staff, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: to, Trigger: by, Operation: 2006, Note: "van is full", Set: set}))
		}
		step(cloud.OrderDriverAssigned, order.AssignDriver, drives)
		step(cloud.OrderDriverAccepted, order.DriverAccepts, nil)
		step(cloud.OrderDriverAssigned, order.DriverDeclines, nil)
		var reasons []any
		for _, x := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(o.OrderID)}) {
			if x.Event.Event == "order.driver_declined" {
				reasons = append(reasons, w.body(x).Data["reason"])
			}
		}
		require.Equal(t, []any{"van is full"}, reasons)
	})
}

// The new address of an interception has its country in capitals, as an order's.
func TestTheNewAddressHasItsCountryInCapitals(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		given := address("Next Door")
		i := w.intercept(w.staff, interception.InterceptInput{OrderID: w.onTheRoad(), Outcome: "redeliver", NewAddress: given})
		require.Equal(t, "CA", i.NewAddress.Country)
		require.Equal(t, "ca", given.Country, "the caller's own stays")
	})
}
