package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
)

// onTheRoad is an order of the customer that is out for delivery.
func (w *world) onTheRoad() cloud.OrderID {
	w.t.Helper()
	o := w.create(w.customer, input(cloud.DeliveryOrder))
	w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
	w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
	return o.OrderID
}

// rules are what the business chooses from now on.
func (w *world) rules(r cloud.Rules) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(42)
		b.Settings.Rules = r
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
}

func (w *world) intercept(c cloud.Caller, in interception.InterceptInput) order.InterceptionBody {
	w.t.Helper()
	out, err := interception.New(w.orders).Intercept(w.t.Context(), c, in)
	require.NoError(w.t, err)
	return out.Interception
}

func TestInterceptionOutcomes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		f := func(id cloud.OrderID, in interception.InterceptInput, end cloud.OrderStatus, codes string) cloud.OrderID {
			t.Helper()
			in.OrderID = id
			before := w.find(id).StatusID
			i := w.intercept(w.staff, in)
			require.Equal(t, "in_force", i.Status)
			require.Equal(t, before, i.Before)
			require.Equal(t, cloud.OrderIntercepted, *i.After)
			require.Equal(t, 6012, i.OperationType)
			o := w.find(id)
			require.Equal(t, "INTERCEPTED", o.Status)
			require.Equal(t, &order.InterceptionRef{ID: i.ID, Status: "in_force"}, o.Interception)
			require.Equal(t, "x-intercepted", string(*o.OTEPStatus))
			held, err := interception.New(w.orders).Held(ctx, w.staff, interception.StopInput{ID: i.ID})
			require.NoError(t, err)
			require.Equal(t, "held", held.Interception.Status)
			out, err := interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: i.ID})
			require.NoError(t, err)
			require.Equal(t, "executed", out.Interception.Status)
			require.Equal(t, in.Outcome, *out.Interception.Outcome)
			require.NotNil(t, out.Interception.EndedAt)
			require.Equal(t, end, w.find(id).StatusID)
			require.Equal(t, codes, w.codes(id))
			require.Equal(t, "INTERCEPTION_STATUS_CONFLICT", failure(interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: i.ID})))
			require.Equal(t, "INTERCEPTION_STATUS_CONFLICT", failure(interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: i.ID})))
			return id
		}
		road := "information_submitted out_for_delivery x-intercepted "
		f(w.onTheRoad(), interception.InterceptInput{Outcome: "return_to_sender"}, cloud.OrderReturned, road+"return_to_sender")
		f(w.create(w.staff, input(cloud.DeliveryOrder)).OrderID, interception.InterceptInput{Outcome: "return_to_sender"}, cloud.OrderCancelled,
			"information_submitted x-intercepted cancelled")
		id := f(w.onTheRoad(), interception.InterceptInput{Outcome: "redeliver", NewAddress: address("Next Door"), NewDate: "2099-05-05"}, cloud.OrderDeliveryRescheduled, road+"delivery_rescheduled")
		require.Equal(t, "Next Door", w.find(id).Recipient.Name)
		require.Equal(t, "2099-05-05", *w.find(id).ScheduledDate)
		id = f(w.onTheRoad(), interception.InterceptInput{Outcome: "hold_at_warehouse"}, cloud.OrderReceived, road+"received")
		require.Equal(t, []string{"6001:0>1", "1005:1>10", "1005:10>40", "6012:40>48", "4006:48>48", "6013:48>30"}, w.did(id))
		f(id, interception.InterceptInput{Outcome: "dispose"}, cloud.OrderCancelled, road+"received x-intercepted cancelled")
		all, err := w.orders.Interceptions(ctx, w.customer, order.OrderRef{OrderID: id})
		require.NoError(t, err)
		require.Len(t, all.Interceptions, 2)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: id, Outcome: "dispose"})))
	})
}

func TestInterceptionsThatEndOtherwise(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		stop := interception.InterceptInput{Outcome: "redeliver"}

		// Withdrawn: the order goes on as before, planning included.
		o := w.create(w.customer, input(cloud.DeliveryOrder))
		w.move(o.OrderID, cloud.OrderReady, order.MarkReady)
		w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		stop.OrderID = o.OrderID
		i := w.intercept(w.customer, stop)
		require.Equal(t, cloud.Operator{Type: "customer", ID: w.customer.Account.ID, Name: "customer 3"}, i.RequestedBy)
		_, err := interception.New(w.orders).Intercept(ctx, w.staff, stop)
		require.Equal(t, "INTERCEPTION_OPEN", code(err))
		for _, c := range []cloud.Caller{w.other, w.stranger} {
			require.Equal(t, "INTERCEPTION_NOT_FOUND", failure(interception.New(w.orders).Withdraw(ctx, c, interception.StopInput{ID: i.ID})))
		}
		require.Equal(t, "INTERCEPTION_NOT_FOUND", failure(interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: 999})))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(interception.New(w.orders).Execute(ctx, w.customer, interception.StopInput{ID: i.ID})))
		out, err := interception.New(w.orders).Withdraw(ctx, w.customer, interception.StopInput{ID: i.ID})
		require.NoError(t, err)
		require.Equal(t, "withdrawn", out.Interception.Status)
		require.Equal(t, cloud.OrderRoutePlanned, *out.Interception.After)
		require.Equal(t, "information_submitted awaiting_pickup x-intercepted awaiting_pickup", w.codes(o.OrderID))
		w.move(o.OrderID, cloud.OrderReady, order.TakeOffRoute)

		// Failed: not reached, then delivered before anybody knew.
		id := w.onTheRoad()
		stop.OrderID = id
		_, err = interception.New(w.orders).Fail(ctx, w.staff, interception.FailInput{ID: w.intercept(w.staff, stop).ID, Reason: "not reached"})
		require.NoError(t, err)
		require.Equal(t, "OUT_FOR_DELIVERY", w.find(id).Status)
		out, err = interception.New(w.orders).Fail(ctx, w.staff, interception.FailInput{ID: w.intercept(w.staff, stop).ID, Delivered: true})
		require.NoError(t, err)
		require.Equal(t, "failed", out.Interception.Status)
		require.Equal(t, "DELIVERED", w.find(id).Status)
		require.Equal(t, "information_submitted out_for_delivery x-intercepted out_for_delivery x-intercepted delivered", w.codes(id))

		// Reviewed: nothing changes until it is approved.
		id = w.onTheRoad()
		stop.OrderID = id
		w.rules(cloud.Rules{InterceptionReview: true, SignatureRequired: true})
		i = w.intercept(w.customer, stop)
		require.Equal(t, "requested", i.Status)
		require.Equal(t, "OUT_FOR_DELIVERY", w.find(id).Status)
		require.Equal(t, "INTERCEPTION_STATUS_CONFLICT", failure(interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: i.ID})))
		out, err = interception.New(w.orders).Reject(ctx, w.staff, interception.StopInput{ID: i.ID, Reason: "too late"})
		require.NoError(t, err)
		require.Equal(t, "too late", *out.Interception.RejectReason)
		i = w.intercept(w.customer, stop)
		out, err = interception.New(w.orders).Approve(ctx, w.staff, interception.StopInput{ID: i.ID})
		require.NoError(t, err)
		require.Equal(t, "in_force", out.Interception.Status)
		require.Equal(t, "INTERCEPTED", w.find(id).Status)

		// A cabinet's word is never refused, and a cancelled order is not stopped.
		w.move(id, cloud.OrderInLocker, order.Deposit)
		require.Equal(t, "failed", w.find(id).Interception.Status)
		i = w.intercept(w.staff, stop)
		require.Equal(t, "FORBIDDEN", failure(interception.New(w.orders).Withdraw(ctx, w.customer, interception.StopInput{ID: i.ID})), "staff asked for it")
		_, err = w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: id})
		require.NoError(t, err)
		require.Equal(t, "failed", w.find(id).Interception.Status)

		held := w.create(w.staff, input(cloud.DeliveryOrder))
		require.True(t, held.Signature, "the business asks for it")
		in := input(cloud.DeliveryOrder)
		in.SignatureRequired = new(bool)
		require.False(t, w.create(w.staff, in).Signature, "this once not")
		_, err = w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: held.OrderID})
		require.NoError(t, err)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: held.OrderID, Outcome: "dispose"})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(interception.New(w.orders).Intercept)(ctx, w.staff, interception.InterceptInput{OrderID: held.OrderID, Outcome: "burn"})))
	})
}
