package order_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/recall"
	"github.com/postern-io/postern/cloud/order/scan"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/otep"
)

// states are what became of an order's packages.
func states(o order.OrderBody) (out []string) {
	for _, p := range o.Packages {
		out = append(out, string(p.Status))
	}
	return out
}

func (w *world) scan(code, action string) scan.ScanOutput {
	w.t.Helper()
	out, err := scan.New(w.orders).Scan(w.t.Context(), w.staff, scan.ScanInput{Code: code, Action: action})
	require.NoError(w.t, err)
	return out
}

// collected is an order of a kind whose goods the driver has.
func (w *world) collected(kind cloud.OrderType) order.OrderBody {
	w.t.Helper()
	in := input(kind)
	in.Ref = "COL-" + string(kind)
	o := w.create(w.staff, in)
	w.move(o.OrderID, cloud.OrderDriverAssigned, order.AssignDriver)
	w.move(o.OrderID, cloud.OrderDriverAccepted, order.DriverAccepts)
	w.move(o.OrderID, cloud.OrderOutForPickup, order.StartPickup)
	w.move(o.OrderID, cloud.OrderPickedUp, order.PickupResult)
	return w.find(o.OrderID)
}

func TestScansOfAPickupOrderEndIt(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.collected(cloud.PickupOrder)
		first := w.scan(o.Packages[0].Number, "receive")
		require.Equal(t, []any{true, false, o.Packages[0].PackageID}, []any{first.Changed, first.Held, *first.PackageID})
		require.Equal(t, []string{"received", "in_transit"}, states(first.Order))
		require.Equal(t, cloud.OrderPickedUp, first.Order.StatusID, "another package is on its way")
		again := w.scan(o.Packages[0].Number, "receive")
		require.False(t, again.Changed, "it had been scanned")
		last := w.scan(o.Packages[1].Number, "receive")
		require.Equal(t, cloud.OrderDelivered, last.Order.StatusID)
		require.Equal(t, []string{"delivered", "delivered"}, states(last.Order))
		require.Equal(t, []string{"4001:21>21", "4001:21>30", "1005:30>41"}, w.did(o.OrderID)[5:])
		require.Equal(t, "information_submitted booking_confirmed out_for_pickup picked_up received delivered", w.codes(o.OrderID))

		whole := w.collected(cloud.PointToPoint)
		require.Equal(t, cloud.OrderReceived, w.scan(*whole.Ref, "receive").Order.StatusID, "by reference")
	})
}

func TestScansOnTheWay(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.collected(cloud.PointToPoint)
		one, two := o.Packages[0].Number, o.Packages[1].Number
		for _, x := range []struct {
			code, action, status string
			packages             []string
		}{
			{one, "receive", "RECEIVED", []string{"received", "in_transit"}},
			{two, "receive", "RECEIVED", []string{"received", "received"}},
			{two, "outbound", "PACKAGE_OUTBOUND", []string{"received", "in_transit"}},
			{one, "outbound", "PACKAGE_OUTBOUND", []string{"in_transit", "in_transit"}},
			{o.Number, "arrive", "ARRIVAL_SCAN", []string{"received", "received"}},
			{o.Number, "line_haul", "IN_TRANSIT", []string{"in_transit", "in_transit"}},
			{one, "receive", "RECEIVED", []string{"received", "in_transit"}},
		} {
			out := w.scan(x.code, x.action)
			require.Equal(t, []any{true, x.status, x.packages}, []any{out.Changed, out.Order.Status, states(out.Order)}, "%v", x)
			require.False(t, w.scan(x.code, x.action).Changed, "%v", x)
		}
		require.Equal(t, []string{"4001:21>30", "4001:30>30", "4003:30>33", "4003:33>33", "4002:33>31", "4003:31>32", "4001:32>30"}, w.did(o.OrderID)[5:])
		refused := func(in scan.ScanInput, want string, c cloud.Caller) {
			t.Helper()
			require.Equal(t, want, failure(checktest.Given(scan.New(w.orders).Scan)(t.Context(), c, in)))
		}
		refused(scan.ScanInput{Code: one, Action: "arrive"}, "ORDER_STATUS_CONFLICT", w.staff)
		refused(scan.ScanInput{Code: o.Number + "-3", Action: "receive"}, "ORDER_NOT_FOUND", w.staff)
		refused(scan.ScanInput{Code: "none", Action: "receive"}, "ORDER_NOT_FOUND", w.staff)
		refused(scan.ScanInput{Code: "\x00", Action: "receive"}, "VALIDATION_FAILED", w.staff)
		refused(scan.ScanInput{Code: one, Action: "load"}, "VALIDATION_FAILED", w.staff)
		refused(scan.ScanInput{Action: "receive"}, "VALIDATION_FAILED", w.staff)
		refused(scan.ScanInput{Code: one, Action: "outbound"}, "ORDER_NOT_FOUND", w.stranger)
		refused(scan.ScanInput{Code: one, Action: "outbound"}, "ACCOUNT_TYPE_NOT_ALLOWED", w.customer)

		// A number that was replaced is on the label still.
		_, err := w.orders.ReplaceNumber(t.Context(), w.staff, order.ReplaceNumberInput{OrderID: o.OrderID})
		require.NoError(t, err)
		require.Equal(t, o.Packages[1].PackageID, *w.scan(two, "receive").PackageID)
	})
}

func TestScansHoldWhatIsIntercepted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		o := w.collected(cloud.PointToPoint)
		i := w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "return_to_sender"})
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(scan.New(w.orders).Scan(t.Context(), w.staff, scan.ScanInput{Code: o.Number, Action: "outbound"})))
		held := w.scan(o.Packages[0].Number, "receive")
		require.Equal(t, []any{true, true, "INTERCEPTED", "held"}, []any{held.Changed, held.Held, held.Order.Status, held.Order.Interception.Status})
		again := w.scan(o.Packages[1].Number, "receive")
		require.Equal(t, []any{false, true}, []any{again.Changed, again.Held})
		names, _ := w.heard(o.OrderID)
		require.Contains(t, names, "order_intercept.held")
		require.Equal(t, "4006:48>48", w.did(o.OrderID)[6])
		_, err := interception.New(w.orders).Execute(t.Context(), w.staff, interception.StopInput{ID: i.ID})
		require.NoError(t, err)
	})
}

// A post's scanner says the same as a scan by staff.
func TestPostsHoldWhatIsIntercepted(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		o := w.collected(cloud.PointToPoint)
		w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "return_to_sender"})
		at := time.Now().UTC().Truncate(time.Millisecond)
		for n := range 2 {
			require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				sh, err := v.OrderShipment(42, o.OrderID)
				if err != nil {
					return nil, err
				}
				e := otep.Event{EventID: fmt.Sprint("scan-", n), Version: otep.Version, OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: at}, StatusCode: otep.Received, Source: &otep.Source{Type: otep.IoT}}.Fill(sh.Profile)
				return w.orders.FromLocker(v, []cloud.LockerNews{{Kind: cloud.LockerEvent, BusinessID: 42, OrderID: o.OrderID, Device: cloud.Operator{Type: "device", ID: 9, Name: "Post"},
					Event: &cloud.TimelineEvent{ShipmentID: sh.ID, BusinessID: 42, Event: e}, Moment: cloud.Moment{At: at}}})
			}))
			require.Equal(t, []any{cloud.OrderIntercepted.String(), "held"}, []any{w.find(o.OrderID).Status, w.find(o.OrderID).Interception.Status})
		}
		names, _ := w.heard(o.OrderID)
		require.Equal(t, 1, strings.Count(strings.Join(names, " "), "order_intercept.held"))
	})
}

func TestAnotherDay(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		id := w.onTheRoad()
		later := func(c cloud.Caller, in order.RescheduleInput) error {
			in.OrderID = id
			_, err := checktest.Given(w.orders.Reschedule)(ctx, c, in)
			return err
		}
		require.Equal(t, "ORDER_STATUS_CONFLICT", code(later(w.staff, order.RescheduleInput{ScheduledDate: "2099-02-03"})), "it is with its driver")
		w.move(id, cloud.OrderDeliveryFailed, order.DeliveryResult)
		for name, in := range map[string]order.RescheduleInput{"no day": {}, "a day that is over": {ScheduledDate: "2020-01-01"},
			"half a window": {ScheduledDate: "2099-02-03", WindowStart: new("09:00")}} {
			require.Equal(t, "VALIDATION_FAILED", code(later(w.staff, in)), name)
		}
		require.Equal(t, "ORDER_NOT_FOUND", code(later(w.stranger, order.RescheduleInput{ScheduledDate: "2099-02-03"})))
		web := w.staff
		web.Surface = "web"
		require.NoError(t, later(web, order.RescheduleInput{ScheduledDate: "2099-02-03", WindowStart: new("09:00"), WindowEnd: new("12:00"), Reason: "nobody in"}))
		o := w.find(id)
		require.Equal(t, []any{"DELIVERY_RESCHEDULED", "2099-02-03", "09:00"}, []any{o.Status, *o.ScheduledDate, o.TimeWindow.Start})
		require.NoError(t, later(w.staff, order.RescheduleInput{ScheduledDate: "2099-02-04"}))
		require.NoError(t, later(w.staff, order.RescheduleInput{ScheduledDate: "2099-02-04"}), "nothing changes")
		did := w.did(id)
		require.Equal(t, []string{"3021:43>44", "6009:44>44"}, did[len(did)-2:])
	})
}

func TestTakenBackFromTheDriver(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		id := w.onTheRoad()
		back := func(c cloud.Caller, in recall.TakeBackInput) error {
			in.OrderID = id
			_, err := checktest.Given(recall.New(w.orders).TakeBack)(ctx, c, in)
			return err
		}
		require.Equal(t, "VALIDATION_FAILED", code(back(w.staff, recall.TakeBackInput{})))
		require.Equal(t, "VALIDATION_FAILED", code(back(w.staff, recall.TakeBackInput{Reason: "x", ScheduledDate: "2020-01-01"})))
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(back(w.customer, recall.TakeBackInput{Reason: "x"})))
		require.Equal(t, "ORDER_NOT_FOUND", code(back(w.stranger, recall.TakeBackInput{Reason: "x"})))
		require.NoError(t, back(w.staff, recall.TakeBackInput{Reason: "The van broke down", ScheduledDate: "2099-02-03"}))
		o := w.find(id)
		require.Equal(t, []any{"DELIVERY_RESCHEDULED", "2099-02-03", 0}, []any{o.Status, *o.ScheduledDate, o.Attempts})
		require.Equal(t, "ORDER_STATUS_CONFLICT", code(back(w.staff, recall.TakeBackInput{Reason: "twice"})))
		require.Equal(t, "information_submitted out_for_delivery delivery_rescheduled", w.codes(id))
		require.Equal(t, "received", states(w.scan(o.Number, "receive").Order)[0], "back on the shelf")
		did := w.did(id)
		require.Equal(t, []string{"3011:40>44", "4005:44>44"}, did[len(did)-2:])
		w.move(id, cloud.OrderRoutePlanned, order.PutOnRoute)
	})
}

func TestHoldsEndInTheFutureAndKeysNameSomething(t *testing.T) {
	w := newWorld(t, storetest.OpenSQLite(t))
	o := w.ref("LETTERS-1")
	_, err := w.orders.Hold(t.Context(), w.staff, order.ReasonInput{OrderID: o.OrderID, Until: "2020-01-01T00:00:00Z"})
	require.ErrorContains(t, err, "VALIDATION_FAILED")
	var e *cloud.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, []string{"until must lie in the future."}, e.Fields["until"])
	require.Equal(t, "NEW_ORDER", w.find(o.OrderID).Status, "nothing is done")
	_, err = w.orders.Hold(t.Context(), w.staff, order.ReasonInput{OrderID: o.OrderID, Until: "2099-01-01T00:00:00Z"})
	require.NoError(t, err)
	_, err = w.orders.Operations(t.Context(), w.staff, order.OperationsInput{})
	require.ErrorAs(t, err, &e)
	require.Equal(t, []string{"Give one of order_id, order_ref, tracking_number."}, e.Fields["order_id"])
}
