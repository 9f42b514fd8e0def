package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/tracking"
)

func TestHoldReleaseReady(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.create(w.customer, input(cloud.DeliveryOrder))
		in := order.ReasonInput{OrderID: o.OrderID, Reason: "address to be checked", Until: "2099-01-01"}
		for _, c := range []cloud.Caller{w.customer, w.broker, w.driver} {
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Hold(ctx, c, in)))
		}
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Hold(ctx, w.stranger, in)))
		out, err := w.orders.Hold(ctx, w.staff, in)
		require.NoError(t, err)
		require.Equal(t, "HOLD", out.Order.Status)
		ops, err := w.orders.Operations(ctx, w.staff, order.OperationsInput{Key: order.Key{OrderID: o.OrderID}})
		require.NoError(t, err)
		require.Equal(t, cloud.FieldChange{To: "2099-01-01T00:00:00-05:00"}, ops.Events[1].Changes["hold_until"])
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Hold(ctx, w.staff, in)))
		_, err = w.orders.Ready(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, cloud.OrderHold, e.Details["order_status_id"])
		_, err = w.orders.Release(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
		require.NoError(t, err)
		out, err = w.orders.Ready(ctx, w.staff, order.ReasonInput{OrderID: o.OrderID})
		require.NoError(t, err)
		require.Equal(t, "awaiting_pickup", string(*out.Order.OTEPStatus))
		require.Equal(t, "information_submitted awaiting_pickup", w.codes(o.OrderID), "a hold tells nothing")
		require.Equal(t, []string{"6001:0>1", "6005:1>3", "6006:3>1", "6002:1>4"}, w.did(o.OrderID))
		made := input(cloud.DeliveryOrder)
		made.Hold = true
		require.Equal(t, "HOLD", w.create(w.staff, made).Status)
	})
}

func TestCancel(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		a := w.create(w.customer, input(cloud.DeliveryOrder))
		out, err := w.orders.Cancel(ctx, w.customer, order.ReasonInput{OrderID: a.OrderID, Reason: "bought twice"})
		require.NoError(t, err)
		require.Equal(t, "CANCELLED", out.Order.Status)
		require.Equal(t, "bought twice", *out.Order.CancelReason)
		require.NotNil(t, out.Order.CancelledAt)
		require.Equal(t, cloud.OrderPackageCancelled, out.Order.Packages[1].Status)
		require.Equal(t, "ORDER_NOT_CANCELLABLE", failure(w.orders.Cancel(ctx, w.admin, order.ReasonInput{OrderID: a.OrderID})), "once")

		b := w.create(w.customer, input(cloud.DeliveryOrder))
		w.move(b.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(b.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		_, err = w.orders.Cancel(ctx, w.customer, order.ReasonInput{OrderID: b.OrderID})
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "ORDER_NOT_CANCELLABLE", e.Code, "a customer's order is on its way")
		require.Equal(t, cloud.OrderOutForDelivery, e.Details["order_status_id"])
		_, err = w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: b.OrderID})
		require.NoError(t, err, "staff may")
		require.Equal(t, "information_submitted out_for_delivery cancelled", w.codes(b.OrderID))

		c := w.create(w.customer, input(cloud.DeliveryOrder))
		w.move(c.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(c.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		w.move(c.OrderID, cloud.OrderDelivered, order.DeliveryResult)
		require.Equal(t, "ORDER_NOT_CANCELLABLE", failure(w.orders.Cancel(ctx, w.admin, order.ReasonInput{OrderID: c.OrderID})))
		web := w.customer
		web.Surface = "web"
		d := w.create(web, input(cloud.DeliveryOrder))
		_, err = w.orders.Cancel(ctx, web, order.ReasonInput{OrderID: d.OrderID})
		require.NoError(t, err)
		require.Equal(t, []string{"5001:0>1", "5002:1>50"}, w.did(d.OrderID), "by the portal")
		require.Equal(t, "web", w.find(d.OrderID).Source)
	})
}

func TestReroute(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		in := input(cloud.DeliveryOrder)
		in.Ref, in.Metadata, in.Note = "PO-1", map[string]string{"k": "v"}, "n"
		old := w.create(w.customer, in)
		w.move(old.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		out, err := w.orders.Reroute(ctx, w.customer, order.RerouteInput{OrderID: old.OrderID, NewAddress: address("New Place"), Reason: "moved"})
		require.NoError(t, err)
		require.Equal(t, old.OrderID, out.Cancelled)
		n := out.NewOrder
		require.Equal(t, "PO-1", *n.Ref)
		require.Equal(t, "NEW_ORDER", n.Status)
		require.Equal(t, "New Place", n.Recipient.Name)
		require.Equal(t, old.Metadata, n.Metadata)
		require.NotEqual(t, old.Number, n.Number)
		require.Equal(t, n.Number+"-2", n.Packages[1].Number)
		require.NotEqual(t, old.Packages[0].PackageID, n.Packages[0].PackageID)
		before := w.find(old.OrderID)
		require.Equal(t, "PO-1-R1", *before.Ref)
		require.Equal(t, "CANCELLED", before.Status)
		require.Equal(t, "information_submitted cancelled", w.codes(old.OrderID))
		require.Equal(t, "information_submitted", w.codes(n.OrderID))
		found, err := w.orders.Search(ctx, w.staff, order.SearchInput{Query: "po-1"})
		require.NoError(t, err)
		require.Len(t, found.Matches, 2)
		require.Equal(t, n.OrderID, found.Matches[0].OrderID, "the same text is best")

		second, err := w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: n.OrderID, NewAddress: address("Third Place")})
		require.NoError(t, err)
		require.Equal(t, "PO-1", *second.NewOrder.Ref)
		require.Equal(t, "PO-1-R2", *w.find(n.OrderID).Ref)

		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: n.OrderID, NewAddress: address("X")})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Reroute)(ctx, w.staff, order.RerouteInput{OrderID: second.NewOrder.OrderID})))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Reroute(ctx, w.other, order.RerouteInput{OrderID: second.NewOrder.OrderID, NewAddress: address("X")})))
		id := second.NewOrder.OrderID
		w.move(id, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(id, cloud.OrderOutForDelivery, order.StartDelivery)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: id, NewAddress: address("X")})))
		pickup := w.create(w.staff, input(cloud.PickupOrder))
		third, err := w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: pickup.OrderID, NewAddress: address("Other Sender")})
		require.NoError(t, err)
		require.Equal(t, "Other Sender", third.NewOrder.Sender.Name)
		require.Nil(t, third.NewOrder.Ref)
	})
}

func TestDelete(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1")
		for _, c := range []cloud.Caller{w.staff, w.customer, w.broker} {
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Delete(ctx, c, order.OrderRef{OrderID: o.OrderID})))
		}
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Delete(ctx, w.stranger, order.OrderRef{OrderID: o.OrderID})))
		w.move(o.OrderID, cloud.OrderReady, order.MarkReady)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: o.OrderID})))
		_, err := w.orders.Cancel(ctx, w.admin, order.ReasonInput{OrderID: o.OrderID})
		require.NoError(t, err)
		out, err := w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: o.OrderID})
		require.NoError(t, err)
		require.True(t, out.Result)
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Find(ctx, w.admin, order.Key{OrderID: o.OrderID})))
		require.Equal(t, []string{"6004:50>50"}, w.did(o.OrderID), "the word of it stays")
		_, err = tracking.New(w.db).Public(ctx, cloud.Caller{}, tracking.PublicInput{Number: o.Number})
		require.Equal(t, "TRACKING_NOT_FOUND", code(err))
		w.ref("PO-1")
	})
}

func TestSetWindows(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b, done := w.ref("PO-1"), w.ref("PO-2"), w.ref("PO-3")
		_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: done.OrderID})
		require.NoError(t, err)
		date := "2099-03-01"
		in := order.WindowsInput{Refs: []string{"PO-1", "PO-2", "PO-1", "PO-3", "PO-9"}, ScheduledDate: &date, WindowStart: "08:00", WindowEnd: "10:30"}
		out, err := w.orders.SetWindows(ctx, w.staff, in)
		require.NoError(t, err)
		require.Equal(t, 2, out.Updated)
		require.Equal(t, 2, out.Skipped)
		require.Equal(t, "PO-3", out.Errors[0].Ref)
		require.Equal(t, "ORDER_STATUS_CONFLICT", out.Errors[0].Code)
		require.NotEmpty(t, out.Errors[0].Message)
		require.Equal(t, "ORDER_NOT_FOUND", out.Errors[1].Code)
		for _, o := range []order.OrderBody{a, b} {
			got := w.find(o.OrderID)
			require.Equal(t, &order.TimeWindow{Start: "08:00", End: "10:30"}, got.TimeWindow)
			require.Equal(t, date, *got.ScheduledDate)
			require.Equal(t, []string{"6001:0>1", "6009:1>1"}, w.did(o.OrderID))
		}
		for _, bad := range []order.WindowsInput{{WindowStart: "08:00", WindowEnd: "09:00"}, {Refs: []string{"PO-1"}}, {Refs: []string{"PO-1"}, WindowStart: "09:00", WindowEnd: "08:00"},
			{Refs: make([]string, 101), WindowStart: "08:00", WindowEnd: "09:00"}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.SetWindows)(ctx, w.staff, bad)))
		}
	})
}

func TestOverride(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx, o := t.Context(), w.ref("PO-1")
		set := func(to cloud.OrderStatus) error {
			_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: o.OrderID, Status: to, Reason: "found on the shelf"})
			return err
		}
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Override(ctx, w.customer, order.OverrideInput{OrderID: o.OrderID, Status: 30, Reason: "x"})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Override)(ctx, w.staff, order.OverrideInput{OrderID: o.OrderID, Status: 30})))
		require.Equal(t, "VALIDATION_FAILED", code(set(cloud.OrderIntercepted)))
		require.Equal(t, "VALIDATION_FAILED", code(set(99)))
		require.NoError(t, set(cloud.OrderOutForDelivery))
		require.NoError(t, set(cloud.OrderReady))
		require.NoError(t, set(cloud.OrderRoutePlanned))
		w.move(o.OrderID, cloud.OrderReady, order.TakeOffRoute)
		require.NoError(t, set(cloud.OrderOutForDelivery))
		require.NoError(t, set(cloud.OrderRejected))
		require.NoError(t, set(cloud.OrderReceived), "refused goods came back")
		require.Equal(t, "information_submitted out_for_delivery removed_from_route out_for_delivery rejected_by_recipient", w.codes(o.OrderID))
		require.NoError(t, set(cloud.OrderDelivered))
		require.Equal(t, "ORDER_STATUS_CONFLICT", code(set(cloud.OrderNew)))
		require.Equal(t, "3020:30>41", w.did(o.OrderID)[8])
	})
}

func TestMoves(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		type step struct {
			to cloud.OrderStatus
			by order.Trigger
		}
		f := func(name string, kind cloud.OrderType, codes string, end cloud.OrderStatus, steps ...step) cloud.OrderID {
			t.Helper()
			o := w.create(w.staff, input(kind))
			for _, s := range steps {
				w.move(o.OrderID, s.to, s.by)
			}
			require.Equal(t, codes, w.codes(o.OrderID), name)
			require.Equal(t, end, w.find(o.OrderID).StatusID, name)
			return o.OrderID
		}
		f("a pickup order ends at its warehouse", cloud.PickupOrder, "information_submitted booking_confirmed out_for_pickup picked_up received delivered", cloud.OrderDelivered,
			step{11, order.AssignDriver}, step{12, order.DriverAccepts}, step{20, order.StartPickup}, step{21, order.PickupResult}, step{30, order.ReceiveScan})
		f("a booking is confirmed once", cloud.DeliveryOrder, "information_submitted booking_confirmed removed_from_route", cloud.OrderDriverAccepted,
			step{11, order.AssignDriver}, step{12, order.DriverAccepts}, step{11, order.DriverDeclines}, step{12, order.DriverAccepts}, step{1, order.TakeOffRoute},
			step{10, order.PutOnRoute}, step{11, order.AssignDriver}, step{12, order.DriverAccepts})
		given := f("a third party gives back", cloud.DeliveryOrder, "information_submitted picked_up route_cancelled", cloud.OrderNew,
			step{13, order.HandOver}, step{1, order.FallBack})
		require.True(t, w.find(given).SelfDelivery)
		given = f("a third party gives back and takes again", cloud.DeliveryOrder,
			"information_submitted picked_up route_cancelled package_outbound in_transit", cloud.OrderInTransit,
			step{13, order.HandOver}, step{1, order.FallBack}, step{13, order.HandOver}, step{32, order.ThirdPartyTracking})
		require.False(t, w.find(given).SelfDelivery)
		f("a locker", cloud.DeliveryOrder, "information_submitted out_for_delivery x-available_for_pickup delivered", cloud.OrderDelivered, step{46, order.Deposit}, step{41, order.Collect})
		f("removed from a locker and returned", cloud.DeliveryOrder, "information_submitted out_for_delivery x-available_for_pickup x-removed_from_device return_to_sender",
			cloud.OrderReturned, step{46, order.Deposit}, step{43, order.RemoveFromLocker}, step{47, order.DeliveryResult})
		id := f("planning remembers where from", cloud.PointToPoint, "information_submitted out_for_pickup pickup_failed removed_from_route", cloud.OrderPickupFailed,
			step{10, order.PutOnRoute}, step{20, order.StartPickup}, step{22, order.PickupResult}, step{10, order.PutOnRoute}, step{22, order.TakeOffRoute})

		refuse := func(in order.MoveInput) {
			t.Helper()
			before := w.find(id)
			in.BusinessID, in.OrderID, in.Operation = 42, id, 1005
			err := w.orders.Move(t.Context(), cloud.Caller{}, in)
			require.Equal(t, "ORDER_STATUS_CONFLICT", code(err))
			require.Equal(t, before, w.find(id), "nothing is written")
		}
		refuse(order.MoveInput{To: cloud.OrderDelivered, Trigger: order.DeliveryResult})
		refuse(order.MoveInput{To: cloud.OrderNew, Trigger: order.TakeOffRoute})
		refuse(order.MoveInput{To: cloud.OrderOutForPickup, Trigger: order.StartPickup})
		require.Equal(t, "ORDER_NOT_FOUND", code(w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 43, OrderID: id, To: 3, Trigger: order.Hold})))

		// Some packages are delivered, the others later.
		o := w.create(w.staff, input(cloud.DeliveryOrder))
		w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		part := order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderPartlyDelivered, Trigger: order.DeliveryResult, Operation: 2008}
		for _, list := range [][]cloud.PackageID{nil, {1 << 40}, {o.Packages[0].PackageID, o.Packages[1].PackageID}} {
			part.Delivered = list
			require.Equal(t, "ORDER_STATUS_CONFLICT", code(w.orders.Move(t.Context(), w.driver, part)))
		}
		part.Delivered = []cloud.PackageID{o.Packages[1].PackageID}
		require.NoError(t, w.orders.Move(t.Context(), w.driver, part))
		got := w.find(o.OrderID)
		require.Equal(t, cloud.OrderPackageFailed, got.Packages[0].Status)
		require.Equal(t, cloud.OrderPackageDelivered, got.Packages[1].Status)
		w.move(o.OrderID, cloud.OrderReturned, order.DeliveryResult)
		got = w.find(o.OrderID)
		require.Equal(t, cloud.OrderPackageReturned, got.Packages[0].Status)
		require.Equal(t, cloud.OrderPackageDelivered, got.Packages[1].Status, "what was delivered stays so")
		require.Equal(t, "information_submitted out_for_delivery delivery_failed return_to_sender", w.codes(o.OrderID))
	})
}

func TestSearch(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		named := func(c cloud.Caller, name, phone, ref string) order.OrderBody {
			in := input(cloud.DeliveryOrder)
			in.Recipient.Name, in.Recipient.Phone, in.Ref = name, phone, ref
			in.Packages[0].ExternalNumber = "1Z999AA1" + ref
			return w.create(c, in)
		}
		a := named(w.customer, "Jonathan Appleseed", "+1 (416) 555-0177", "INV-2041")
		b := named(w.other, "Élodie Dubois", "647.555.0188", "INV-2042")
		c := named(w.stranger, "Jonathan Appleseed", "+1 (416) 555-0177", "INV-2041")
		f := func(who cloud.Caller, in order.SearchInput, field string, want ...cloud.OrderID) {
			t.Helper()
			out, err := w.orders.Search(ctx, who, in)
			require.NoError(t, err)
			var got []cloud.OrderID
			for _, m := range out.Matches {
				got = append(got, m.OrderID)
				require.Greater(t, m.Score, 0.0)
				require.LessOrEqual(t, m.Score, 1.0)
			}
			require.Equal(t, want, got, "%+v", in)
			if field != "" {
				require.Equal(t, field, out.Matches[0].Field)
			}
		}
		f(w.staff, order.SearchInput{Query: a.Number}, "tracking_number", a.OrderID)
		f(w.staff, order.SearchInput{Query: "jonathan appelseed"}, "recipient_name", a.OrderID)
		f(w.staff, order.SearchInput{Query: "JONATHAN"}, "recipient_name", a.OrderID)
		f(w.staff, order.SearchInput{Query: "élodie"}, "recipient_name", b.OrderID)
		f(w.staff, order.SearchInput{Query: "416-555-0177", Fields: []string{"phone"}}, "phone", a.OrderID)
		f(w.staff, order.SearchInput{Query: "6475550188"}, "phone", b.OrderID)
		f(w.staff, order.SearchInput{Query: "INV-2041"}, "order_ref", a.OrderID)
		f(w.staff, order.SearchInput{Query: "INV-2047"}, "order_ref", b.OrderID, a.OrderID)
		f(w.staff, order.SearchInput{Query: "INV-2047", Limit: new(1)}, "order_ref", b.OrderID)
		f(w.staff, order.SearchInput{Query: "appleseed jonathan"}, "recipient_name", a.OrderID)
		f(w.staff, order.SearchInput{Query: "aplpeseed"}, "recipient_name", a.OrderID)
		f(w.staff, order.SearchInput{Query: "aa1inv-2042"}, "external_tracking_number", b.OrderID)
		f(w.customer, order.SearchInput{Query: "inv-204"}, "order_ref", a.OrderID)
		f(w.stranger, order.SearchInput{Query: "appleseed"}, "recipient_name", c.OrderID)
		f(w.driver, order.SearchInput{Query: "appleseed"}, "")
		f(w.staff, order.SearchInput{Query: "appleseed", Fields: []string{"phone", "order_ref"}}, "")
		f(w.staff, order.SearchInput{Query: `"*" OR (% _ \`}, "")
		f(w.staff, order.SearchInput{Query: "(2041)"}, "") // digits alone are looked for in telephone numbers only
		for _, in := range []order.SearchInput{{Query: "ab"}, {Query: "  a  "}, {Query: "abc", Limit: new(51)}, {Query: "abc", Fields: []string{"note"}}, {Query: string(make([]byte, 200))}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Search)(ctx, w.staff, in)))
		}
	})
}
