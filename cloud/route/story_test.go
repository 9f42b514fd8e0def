package route_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/recall"
	"github.com/postern-io/postern/cloud/order/thirdparty"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// world is a business with its people, and another one.
type world struct {
	t      testing.TB
	db     *store.DB
	orders *order.Service
	routes *route.Service

	admin, staff, customer, broker, rival    cloud.Caller
	driver, second, theirs, idle             cloud.Caller // theirs is the broker's, idle is switched off
	stranger, foreignDriver, foreignCustomer cloud.Caller // of another business
}

func newWorld(t testing.TB, db *store.DB) *world {
	w := &world{t: t, db: db, orders: order.New(order.Config{Store: db})}
	w.routes = route.New(route.Config{Store: db, Orders: w.orders})
	ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme", Timezone: "America/Toronto"}, {ID: 43, Code: "rival", Name: "Rival", Timezone: "UTC"}}}}
	add := func(id cloud.AccountID, b cloud.BusinessID, kind cloud.AccountType) cloud.Caller {
		a := cloud.Account{ID: id, BusinessID: b, Type: kind, Email: fmt.Sprintf("%d@x.example", id), Name: fmt.Sprint(kind, " ", id), Enabled: id != 9}
		ch.Accounts = append(ch.Accounts, a)
		return cloud.Caller{Account: a, Language: "en", BaseURL: "https://acme.example"}
	}
	w.admin, w.staff, w.customer = add(1, 42, cloud.ClientAdmin), add(2, 42, cloud.ClientEmployee), add(3, 42, cloud.Customer)
	w.broker, w.rival = add(4, 42, cloud.Broker), add(5, 42, cloud.Broker)
	w.driver, w.second, w.theirs, w.idle = add(6, 42, cloud.DriverAccount), add(7, 42, cloud.DriverAccount), add(8, 42, cloud.DriverAccount), add(9, 42, cloud.DriverAccount)
	w.stranger, w.foreignDriver, w.foreignCustomer = add(10, 43, cloud.ClientAdmin), add(11, 43, cloud.DriverAccount), add(12, 43, cloud.Customer)
	ch.Drivers = []cloud.Driver{{Account: w.theirs.Account, BrokerID: w.broker.Account.ID}}
	w.write(ch)
	return w
}

func (w *world) write(ch *cloud.Changes) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
}

// onBoth runs a test on each database.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, storetest.OpenSQLite(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, storetest.OpenSecondPostgres(t))) })
}

func (w *world) create(kind cloud.OrderType) cloud.OrderID {
	w.t.Helper()
	at := &cloud.Address{Name: "Jane Smith", Line1: "1 Secret Lane", City: "Toronto", Province: "ON", PostalCode: "M5V 2T6", Country: "CA"}
	in := order.CreateInput{Type: kind, Packages: []order.PackageInput{{Weight: 2}, {Weight: 500, WeightUnit: "g"}}}
	if kind != cloud.PickupOrder {
		in.Recipient = at
	}
	if kind != cloud.DeliveryOrder {
		from := *at
		from.Name = "Bob Sender"
		in.Sender = &from
	}
	out, err := w.orders.Create(w.t.Context(), w.staff, in)
	require.NoError(w.t, err)
	return out.OrderID
}

func (w *world) order(id cloud.OrderID) (o cloud.Order) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) (err error) { o, err = v.Order(42, id); return err }))
	return o
}

// held gives an order to a contractor as its assignment would.
func (w *world) held(id cloud.OrderID, broker cloud.Caller) {
	o := w.order(id)
	o.BrokerID = broker.Account.ID
	w.write(&cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
}

// open makes a route with orders, and a driver unless it is the zero caller.
func (w *world) open(c, driver cloud.Caller, ids ...cloud.OrderID) cloud.RouteID {
	w.t.Helper()
	date := "2026-11-20"
	in := route.CreateInput{RouteInput: route.RouteInput{Date: &date}}
	if driver.Account.ID != 0 {
		in.DriverID = &driver.Account.ID
	}
	out, err := w.routes.Create(w.t.Context(), c, in)
	require.NoError(w.t, err)
	if len(ids) > 0 {
		w.add(c, out.Route.RouteID, ids...)
	}
	return out.Route.RouteID
}

func (w *world) add(c cloud.Caller, id cloud.RouteID, ids ...cloud.OrderID) {
	w.t.Helper()
	out, err := w.routes.Add(w.t.Context(), c, route.OrdersInput{RouteID: id, OrderIDs: ids})
	require.NoError(w.t, err)
	require.Empty(w.t, out.Errors)
	require.Equal(w.t, len(ids), out.Added)
}

func (w *world) dispatch(id cloud.RouteID) {
	w.t.Helper()
	_, err := w.routes.Dispatch(w.t.Context(), w.staff, route.ByRoute{RouteID: id})
	require.NoError(w.t, err)
}

func (w *world) route(id cloud.RouteID) route.RouteBody {
	w.t.Helper()
	out, err := w.routes.Find(w.t.Context(), w.staff, route.ByRoute{RouteID: id})
	require.NoError(w.t, err)
	return out.Route
}

// stops are a route's status and the states of its stops in order.
func (w *world) stops(id cloud.RouteID) string {
	w.t.Helper()
	x := w.route(id)
	out := []string{string(x.Status) + ":"}
	for _, s := range x.Stops {
		out = append(out, string(s.Status))
	}
	return strings.Join(out, " ")
}

// codes is the order's timeline, in which no move is out of turn.
func (w *world) codes(id cloud.OrderID) string {
	w.t.Helper()
	var out []string
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error {
		s, err := v.OrderShipment(42, id)
		require.NoError(w.t, err)
		rows, err := v.Timeline(s.ID)
		require.NoError(w.t, err)
		o, err := v.Order(42, id)
		require.NoError(w.t, err)
		packages := cloud.IDsOfPackages(o.Packages)
		t := otep.Fold(s.Profile, otep.Subject{TrackingNumber: s.Number}, timeline.OfOrder(rows, packages, time.Time{}))
		require.Empty(w.t, otep.BadMoves(t.Events))
		for _, e := range t.Events {
			text := string(e.StatusCode)
			if e.IncidentReason != "" {
				text += "(" + e.IncidentReason + ")"
			}
			out = append(out, text)
		}
		return nil
	}))
	return strings.Join(out, " ")
}

// last is the newest event of an order.
func (w *world) last(id cloud.OrderID) (e otep.Event) {
	w.t.Helper()
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error {
		s, err := v.OrderShipment(42, id)
		require.NoError(w.t, err)
		rows, err := v.Timeline(s.ID)
		for _, r := range rows {
			if e.EventID == "" || r.Event.OccurredAt.After(e.OccurredAt.Time) {
				e = r.Event
			}
		}
		return err
	}))
	return e
}

// did is what was done to an order: types with the statuses after.
func (w *world) did(id cloud.OrderID) string {
	w.t.Helper()
	ops, err := w.db.ListOrderOperations(w.t.Context(), 42, id)
	require.NoError(w.t, err)
	var out []string
	for _, x := range ops {
		out = append(out, fmt.Sprintf("%d>%d", x.Type, x.After))
	}
	return strings.Join(out, " ")
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func failure[T any](_ T, err error) string { return code(err) }

func (w *world) status(want cloud.OrderStatus) func(route.OrderOutput, error) {
	return func(out route.OrderOutput, err error) {
		w.t.Helper()
		require.NoError(w.t, err)
		require.Equal(w.t, want, out.StatusID)
		require.Equal(w.t, want, w.order(out.OrderID).Status)
	}
}

// TestARun walks a route from its making to its end: one parcel is delivered,
// one fails and is delivered on the second try, one is refused.
func TestARun(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b, c := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		id := w.open(w.staff, cloud.Caller{})
		require.Equal(t, "draft:", w.stops(id))
		w.add(w.staff, id, a, b, c)
		require.Equal(t, "planned: pending pending pending", w.stops(id))
		require.Equal(t, cloud.OrderRoutePlanned, w.order(a).Status)
		require.Equal(t, "DRIVER_REQUIRED", failure(w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: id})))
		out, err := w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: id, RouteInput: route.RouteInput{DriverID: &w.driver.Account.ID}})
		require.NoError(t, err)
		require.Equal(t, "driver 6", *out.Route.DriverName)
		require.Equal(t, cloud.OrderDriverAssigned, w.order(b).Status)
		require.Equal(t, 7.5, out.Route.Load.Weight)
		require.Equal(t, "Jane Smith", out.Route.Stops[1].Address.Name)

		require.Equal(t, "ROUTE_STATUS_CONFLICT", failure(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: a})), "nobody has sent it to the driver")
		w.dispatch(id)
		require.Equal(t, "ROUTE_STATUS_CONFLICT", failure(w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: id})))
		w.status(cloud.OrderDriverAccepted)(w.routes.Accept(ctx, w.driver, route.ByOrder{OrderID: a}))
		require.Equal(t, "dispatched: pending pending pending", w.stops(id))
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: a}))
		require.Equal(t, "in_progress: pending pending pending", w.stops(id))
		require.Equal(t, "ROUTE_STATUS_CONFLICT", failure(w.routes.Cancel(ctx, w.staff, route.ByRoute{RouteID: id})))
		require.Equal(t, "ROUTE_STATUS_CONFLICT", failure(w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: id, RouteInput: route.RouteInput{DriverID: &w.second.Account.ID}})))
		lat, long := 43.65, -79.38
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Deliver)(ctx, w.driver, route.ResultInput{OrderID: a, Result: "success", Latitude: &lat})))
		w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: a, Result: "success", Recipient: "Jo Smith", Latitude: &lat, Longitude: &long}))
		last := w.last(a)
		require.Equal(t, "Jo Smith", last.PoD.Recipient)
		require.Equal(t, &otep.Location{Type: otep.PlaceAddress, City: "Toronto", Region: "ON", Country: "CA", Latitude: &lat, Longitude: &long}, last.Location)
		require.Equal(t, "J. Smith", last.PoD.Public().Recipient)
		require.Nil(t, last.Location.Public().Latitude)

		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: b}))
		w.status(cloud.OrderDeliveryFailed)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: b, Result: "failed", FailureCode: "recipient_unavailable"}))
		require.Equal(t, "in_progress: done failed pending", w.stops(id))
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: c}))
		w.status(cloud.OrderRejected)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: c, Result: "failed", FollowUp: "refused"}))
		require.Equal(t, "completed: done failed failed", w.stops(id))
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: b}))
		require.Equal(t, "in_progress: done pending failed", w.stops(id))
		w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: b, Result: "success"}))
		require.Equal(t, "completed: done done failed", w.stops(id))
		x := w.route(id)
		require.Equal(t, []int{3, 3, 2, 1}, []int{x.OrderCount, x.StopCount, x.Completed, x.Failed})
		require.Equal(t, "ROUTE_STATUS_CONFLICT", failure(w.routes.Add(ctx, w.staff, route.OrdersInput{RouteID: id, OrderIDs: []cloud.OrderID{w.create(cloud.DeliveryOrder)}})))

		require.Equal(t, "information_submitted booking_confirmed out_for_delivery delivered", w.codes(a))
		require.Equal(t, "information_submitted out_for_delivery delivery_failed(recipient_unavailable) out_for_delivery delivered", w.codes(b))
		require.Equal(t, "information_submitted out_for_delivery rejected_by_recipient(recipient_refused)", w.codes(c))
		require.Equal(t, "6001>1 3010>10 3012>11 2001>12 2006>40 2007>41", w.did(a))
		require.Equal(t, "6001>1 3010>10 3012>11 2006>40 2008>43 2006>40 2007>41", w.did(b))
		list, err := w.routes.Mine(ctx, w.driver, route.MineInput{Date: "2026-11-20"})
		require.NoError(t, err)
		require.Len(t, list.Routes, 1)
	})
}

// A point-to-point order has two stops; a pickup ends at the warehouse.
func TestPickups(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		direct, fetch, fails, later := w.create(cloud.PointToPoint), w.create(cloud.PickupOrder), w.create(cloud.PointToPoint), w.create(cloud.PickupOrder)
		id := w.open(w.staff, w.driver, direct, fetch, fails, later)
		w.dispatch(id)
		x := w.route(id)
		require.Equal(t, 6, x.StopCount)
		require.Equal(t, cloud.PickupStop, x.Stops[0].Kind)
		require.Equal(t, "Bob Sender", x.Stops[0].Address.Name)
		require.Equal(t, cloud.DeliveryStop, x.Stops[1].Kind)
		for _, o := range []cloud.OrderID{direct, fetch, fails, later} {
			require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: o})), "there is nothing to deliver yet")
			w.status(cloud.OrderOutForPickup)(w.routes.StartPickup(ctx, w.driver, route.ByOrder{OrderID: o}))
		}
		w.status(cloud.OrderPickedUp)(w.routes.Pickup(ctx, w.driver, route.PickupInput{OrderID: direct, Result: "success"}))
		w.status(cloud.OrderPickedUp)(w.routes.Pickup(ctx, w.driver, route.PickupInput{OrderID: fetch, Result: "success"}))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Pickup)(ctx, w.driver, route.PickupInput{OrderID: fails, Result: "failed", FailureCode: "not_ready", FollowUp: "refused"})))
		w.status(cloud.OrderPickupFailed)(w.routes.Pickup(ctx, w.driver, route.PickupInput{OrderID: fails, Result: "failed", FailureCode: "not_ready"}))
		w.status(cloud.OrderPickupRescheduled)(w.routes.Pickup(ctx, w.driver, route.PickupInput{OrderID: later, Result: "failed", FailureCode: "shipper_closed", FollowUp: "reschedule", Date: "2099-01-02"}))
		require.Equal(t, "in_progress: done pending done failed skipped failed", w.stops(id))
		o := w.order(later)
		require.Zero(t, o.RouteID)
		require.Zero(t, o.DriverID)
		require.Equal(t, "2099-01-02", o.ScheduledDate)
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: direct}))
		w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: direct, Result: "success"}))
		require.NoError(t, w.orders.Move(ctx, w.staff, order.MoveInput{BusinessID: 42, OrderID: fetch, To: cloud.OrderReceived, Trigger: order.ReceiveScan, Operation: 4001}))
		require.Equal(t, cloud.OrderDelivered, w.order(fetch).Status)
		require.Equal(t, "completed: done done done failed skipped failed", w.stops(id))
		require.Equal(t, "information_submitted out_for_pickup pickup_failed(shipper_closed) pickup_rescheduled", w.codes(later))

		// What failed goes on another route, and the first one keeps what came of it.
		next := w.open(w.staff, w.second, fails, later)
		require.Equal(t, "planned: pending pending pending", w.stops(next))
		require.Equal(t, "completed: done done done failed skipped failed", w.stops(id))
		w.codes(direct)
	})
}

// A driver who has started loses an order that staff take back; another takes it on.
func TestStartedOrdersAreTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		fetch, bring, stays := w.create(cloud.PickupOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		id := w.open(w.staff, w.driver, fetch, bring, stays)
		w.dispatch(id)
		w.status(cloud.OrderOutForPickup)(w.routes.StartPickup(ctx, w.driver, route.ByOrder{OrderID: fetch}))
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: bring}))
		from := time.Now().Add(-time.Millisecond)
		for o, want := range map[cloud.OrderID]cloud.OrderStatus{fetch: cloud.OrderPickupRescheduled, bring: cloud.OrderDeliveryRescheduled} {
			_, err := recall.New(w.orders).TakeBack(ctx, w.staff, recall.TakeBackInput{OrderID: o, Reason: "The van broke down"})
			require.NoError(t, err)
			require.Equal(t, []any{want, cloud.RouteID(0), cloud.AccountID(0)}, []any{w.order(o).Status, w.order(o).RouteID, w.order(o).DriverID})
		}
		list, err := w.db.ListPushes(ctx, 42, w.driver.Account.ID, from, 10)
		require.NoError(t, err)
		list = slices.DeleteFunc(list, func(p cloud.PushRow) bool { return p.Type == "route_assigned" }) // of the same millisecond
		require.Len(t, list, 2, "the driver is told of both")
		for _, p := range list {
			require.Equal(t, "order_unassigned", p.Type)
		}
		require.Equal(t, "in_progress: skipped skipped pending", w.stops(id))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: bring, Result: "success"})))
		next := w.open(w.staff, w.second, bring, fetch)
		w.dispatch(next)
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.second, route.ByOrder{OrderID: bring}))
		w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.second, route.ResultInput{OrderID: bring, Result: "success"}))
		w.codes(bring)
		w.codes(fetch)
	})
}

// TestPartsAndFollowUps: packages that were handed over, and days that come.
func TestPartsAndFollowUps(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		parts, later := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		id := w.open(w.staff, w.driver, parts, later)
		w.dispatch(id)
		for _, o := range []cloud.OrderID{parts, later} {
			w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: o}))
		}
		first := w.order(parts).Packages[0].ID
		for _, bad := range []route.ResultInput{{Result: "maybe"}, {Result: "failed"}, {Result: "failed", FailureCode: "aliens"}, {Result: "failed", FailureCode: "weather", FollowUp: "never"},
			{Result: "success", FailureCode: "weather"}, {Result: "success", Delivered: []cloud.PackageID{99999}}, {Result: "failed", FailureCode: "weather", Delivered: []cloud.PackageID{first}},
			{Result: "failed", FailureCode: "weather", Date: "2099-01-01"}, {Result: "failed", FailureCode: "weather", FollowUp: "reschedule", Date: "2001-01-01"}} {
			bad.OrderID = parts
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Deliver)(ctx, w.driver, bad)), "%+v", bad)
		}
		w.status(cloud.OrderPartlyDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: parts, Result: "success", Delivered: []cloud.PackageID{first, first}}))
		require.Equal(t, []cloud.OrderPackageStatus{"delivered", "failed"}, []cloud.OrderPackageStatus{w.order(parts).Packages[0].Status, w.order(parts).Packages[1].Status})
		require.Equal(t, "in_progress: failed pending", w.stops(id))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Deliver)(ctx, w.driver, route.ResultInput{OrderID: parts, Result: "success", Delivered: []cloud.PackageID{first}})))
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: parts, Result: "failed", FollowUp: "refused"})))
		w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: parts, Result: "success"}))
		w.status(cloud.OrderDeliveryRescheduled)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: later, Result: "failed", FailureCode: "weather", FollowUp: "reschedule", Date: "2099-01-02"}))
		require.Equal(t, "completed: done failed", w.stops(id))
		require.Equal(t, "information_submitted out_for_delivery delivery_failed(x-partial_delivery) delivered", w.codes(parts))
		require.Equal(t, "information_submitted out_for_delivery delivery_failed(weather) delivery_rescheduled", w.codes(later))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: later})), "it is not the driver's any more")
	})
}

// Whatever else becomes of an order, no route waits for it and it names none.
func TestOtherWaysOffARoute(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for name, x := range map[string]struct {
			start bool // it is out for delivery when it happens
			then  func(id cloud.OrderID) error
			stop  string
		}{
			"cancel": {false, func(id cloud.OrderID) error {
				_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: id})
				return err
			}, " skipped"},
			"cancel on the way": {true, func(id cloud.OrderID) error {
				_, err := w.orders.Cancel(ctx, w.staff, order.ReasonInput{OrderID: id})
				return err
			}, " skipped"},
			"intercept": {true, func(id cloud.OrderID) error {
				_, err := interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: id, Outcome: "redeliver"})
				return err
			}, " skipped"},
			"deposit": {true, func(id cloud.OrderID) error {
				return w.orders.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: id, To: cloud.OrderInLocker, Trigger: order.Deposit, Operation: 7002})
			}, " done"},
			"override": {true, func(id cloud.OrderID) error {
				_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: id, Status: cloud.OrderReceived, Reason: "it lies here"})
				return err
			}, " skipped"},
			"override to another carrier": {false, func(id cloud.OrderID) error {
				_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: id, Status: cloud.OrderHandedOver, Reason: "given away"})
				return err
			}, " skipped"},
			"override back": {false, func(id cloud.OrderID) error {
				_, err := w.orders.Override(ctx, w.staff, order.OverrideInput{OrderID: id, Status: cloud.OrderNew, Reason: "not today"})
				return err
			}, ""},
			"reroute": {false, func(id cloud.OrderID) error {
				at := &cloud.Address{Name: "Eve", Line1: "2 Mill St", City: "Toronto", Province: "ON", PostalCode: "M5A 3C4", Country: "CA"}
				out, err := w.orders.Reroute(ctx, w.staff, order.RerouteInput{OrderID: id, NewAddress: at})
				require.Nil(t, out.NewOrder.RouteID)
				return err
			}, " skipped"},
			"decline": {false, func(id cloud.OrderID) error {
				_, err := w.routes.Decline(ctx, w.driver, route.DeclineInput{OrderID: id, Reason: "too heavy"})
				return err
			}, ""},
			"no driver": {false, func(id cloud.OrderID) error {
				_, err := w.routes.Assign(ctx, w.staff, route.AssignInput{OrderID: id})
				return err
			}, ""},
		} {
			gone, stays := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
			id := w.open(w.staff, w.driver, gone, stays)
			w.dispatch(id)
			w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: stays}))
			if x.start {
				w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: gone}))
			}
			require.NoError(t, x.then(gone), name)
			o := w.order(gone)
			require.Zero(t, o.RouteID, name)
			require.Zero(t, o.Stop, name)
			require.Zero(t, o.DriverID, name)
			require.Empty(t, o.DriverName, name)
			want := "in_progress:" + x.stop + " pending"
			require.Equal(t, want, w.stops(id), name)
			w.status(cloud.OrderDelivered)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: stays, Result: "success"}))
			require.Contains(t, w.stops(id), "completed", name)
			w.codes(gone)
		}
	})
}

// An interception that is withdrawn gives the order back to where it was, unless
// that route is over.
func TestInterceptionsTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		stop := func(id cloud.OrderID) cloud.InterceptionID {
			out, err := interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: id, Outcome: "redeliver"})
			require.NoError(t, err)
			return out.Interception.ID
		}
		withdraw := func(i cloud.InterceptionID) {
			_, err := interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: i})
			require.NoError(t, err)
		}
		a, b := w.create(cloud.PointToPoint), w.create(cloud.DeliveryOrder)
		id := w.open(w.staff, w.driver, a, b)
		before := w.order(a)
		i, j := stop(a), stop(b)
		require.Equal(t, "planned: skipped skipped skipped", w.stops(id))
		_, err := w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: id, RouteInput: route.RouteInput{DriverID: &w.second.Account.ID}})
		require.NoError(t, err)
		withdraw(i)
		after := w.order(a)
		require.Equal(t, []any{before.RouteID, before.Stop, before.SecondStop, before.Status}, []any{after.RouteID, after.Stop, after.SecondStop, after.Status})
		require.Equal(t, w.second.Account.ID, after.DriverID, "the route has another driver meanwhile")
		require.Equal(t, "planned: pending pending skipped", w.stops(id))

		_, err = w.routes.Cancel(ctx, w.staff, route.ByRoute{RouteID: id})
		require.NoError(t, err)
		require.Equal(t, cloud.OrderNew, w.order(a).Status)
		withdraw(j)
		o := w.order(b)
		require.Equal(t, cloud.OrderDriverAssigned, o.Status, "what the interception remembers")
		require.Zero(t, o.RouteID)
		require.Zero(t, o.DriverID)
		again := w.open(w.staff, w.driver, a, b) // it can be planned all the same
		require.Equal(t, "planned: pending pending pending", w.stops(again))
		require.Equal(t, w.driver.Account.ID, w.order(b).DriverID)
		require.Equal(t, "cancelled: skipped", w.stops(id))
		w.codes(a)
		w.codes(b)
	})
}

// Which orders go on whose routes.
func TestWhatMayBePlanned(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		free, held, other, away, hold, taken := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder),
			w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		w.held(held, w.broker)
		w.held(other, w.rival)
		require.NoError(t, w.orders.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: away, To: cloud.OrderHandedOver, Trigger: order.HandOver, Operation: 8002}))
		_, err := w.orders.Hold(ctx, w.staff, order.ReasonInput{OrderID: hold})
		require.NoError(t, err)
		w.open(w.staff, cloud.Caller{}, taken)
		ours := w.open(w.staff, w.driver)
		brokers := w.open(w.broker, w.theirs)
		all := []cloud.OrderID{free, free, held, other, away, hold, taken, 999999}
		codes := func(c cloud.Caller, id cloud.RouteID) (out []string) {
			got, err := w.routes.Add(ctx, c, route.OrdersInput{RouteID: id, OrderIDs: all})
			require.NoError(t, err)
			for _, e := range got.Errors {
				require.Equal(t, locale.Error(c.Language, e.Code), e.Message)
				require.NotContains(t, e.Message, "UNKNOWN")
				out = append(out, fmt.Sprintf("%d %s", slicesIndex(all, e.OrderID), e.Code))
			}
			return append(out, fmt.Sprint(got.Result, got.Added, got.Skipped))
		}
		german := w.staff
		german.Language = locale.German
		rest := []string{"4 HELD_BY_THIRD_PARTY", "5 STATUS_NOT_PLANNABLE", "6 ALREADY_ON_ROUTE", "7 ORDER_NOT_FOUND"}
		require.Equal(t, append([]string{"2 HELD_BY_CONTRACTOR", "3 HELD_BY_CONTRACTOR"}, append(rest, "true 1 0")...), codes(german, ours))
		require.Equal(t, append([]string{"2 HELD_BY_CONTRACTOR", "3 HELD_BY_CONTRACTOR"}, append(rest, "false 0 1")...), codes(w.staff, ours))
		require.Equal(t, []string{"0 NOT_HELD_BY_CONTRACTOR", "3 HELD_BY_CONTRACTOR", "4 HELD_BY_THIRD_PARTY", "5 NOT_HELD_BY_CONTRACTOR", "6 NOT_HELD_BY_CONTRACTOR", "7 ORDER_NOT_FOUND", "true 1 0"}, codes(w.staff, brokers))
		require.Equal(t, []string{"0 ORDER_NOT_FOUND", "3 ORDER_NOT_FOUND", "4 ORDER_NOT_FOUND", "5 ORDER_NOT_FOUND", "6 ORDER_NOT_FOUND", "7 ORDER_NOT_FOUND", "false 0 1"}, codes(w.broker, brokers))
		require.Equal(t, w.theirs.Account.ID, w.order(held).DriverID)
		for _, c := range []cloud.Caller{w.rival, w.stranger} {
			require.Equal(t, "ROUTE_NOT_FOUND", failure(w.routes.Add(ctx, c, route.OrdersInput{RouteID: brokers, OrderIDs: all})))
		}
		require.Equal(t, "ROUTE_NOT_FOUND", failure(w.routes.Add(ctx, w.broker, route.OrdersInput{RouteID: ours, OrderIDs: all})))

		// Drivers of the one side do not drive for the other, and strangers for neither.
		date := "2026-11-20"
		for _, x := range []struct {
			who    cloud.Caller
			driver cloud.AccountID
			want   string
		}{{w.staff, w.theirs.Account.ID, "DRIVER_NOT_AVAILABLE"}, {w.staff, w.idle.Account.ID, "DRIVER_NOT_AVAILABLE"}, {w.staff, w.foreignDriver.Account.ID, "DRIVER_NOT_FOUND"},
			{w.staff, w.customer.Account.ID, "DRIVER_NOT_FOUND"}, {w.staff, 999, "DRIVER_NOT_FOUND"}, {w.broker, w.driver.Account.ID, "DRIVER_NOT_FOUND"}} {
			require.Equal(t, x.want, failure(w.routes.Create(ctx, x.who, route.CreateInput{RouteInput: route.RouteInput{Date: &date, DriverID: &x.driver}})))
		}
		for _, id := range []cloud.AccountID{w.driver.Account.ID, 999, w.stranger.Account.ID} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Create)(ctx, w.staff, route.CreateInput{RouteInput: route.RouteInput{Date: &date}, BrokerID: &id})))
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Create)(ctx, w.broker, route.CreateInput{RouteInput: route.RouteInput{Date: &date}, BrokerID: &w.rival.Account.ID})))

		// One order alone.
		assign := func(c cloud.Caller, id cloud.OrderID, d cloud.AccountID) string {
			return failure(w.routes.Assign(ctx, c, route.AssignInput{OrderID: id, DriverID: &d}))
		}
		loose := w.create(cloud.DeliveryOrder)
		require.Equal(t, "NOT_HELD_BY_CONTRACTOR", assign(w.staff, loose, w.theirs.Account.ID))
		require.Equal(t, "HELD_BY_CONTRACTOR", assign(w.staff, other, w.driver.Account.ID))
		require.Equal(t, "HELD_BY_THIRD_PARTY", assign(w.staff, away, w.driver.Account.ID))
		swift := cloud.Provider{ID: 17, BusinessID: 42, Code: "swift", Name: "Swift", Services: []string{"third_party"}}
		require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{swift}}}, nil
		}))
		_, err = thirdparty.New(w.orders).Assign(ctx, w.staff, thirdparty.ThirdPartyInput{OrderID: loose, ProviderID: 17})
		require.NoError(t, err)
		require.Equal(t, "HELD_BY_THIRD_PARTY", assign(w.staff, loose, w.driver.Account.ID), "although nothing was handed over")
		loose = w.create(cloud.DeliveryOrder)
		require.Equal(t, "ALREADY_ON_ROUTE", assign(w.staff, free, w.second.Account.ID))
		require.Equal(t, "DRIVER_NOT_AVAILABLE", assign(w.staff, loose, w.idle.Account.ID))
		require.Equal(t, "ORDER_NOT_FOUND", assign(w.broker, loose, w.theirs.Account.ID))
		require.Equal(t, "ORDER_NOT_FOUND", assign(w.stranger, loose, w.foreignDriver.Account.ID))
		w.status(cloud.OrderDriverAssigned)(w.routes.Assign(ctx, w.staff, route.AssignInput{OrderID: loose, DriverID: &w.driver.Account.ID}))
		w.status(cloud.OrderDriverAccepted)(w.routes.Accept(ctx, w.driver, route.ByOrder{OrderID: loose}))
		w.status(cloud.OrderDriverAssigned)(w.routes.Assign(ctx, w.staff, route.AssignInput{OrderID: loose, DriverID: &w.second.Account.ID}))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.routes.Accept(ctx, w.driver, route.ByOrder{OrderID: loose})))
		w.add(w.staff, ours, loose)
		require.Equal(t, w.driver.Account.ID, w.order(loose).DriverID, "on a route the route's driver has it")
		w.status(cloud.OrderNew)(w.routes.Assign(ctx, w.staff, route.AssignInput{OrderID: loose}))
		require.Equal(t, "6001>1 3012>11 2001>12 3012>11 3010>11 3013>1", w.did(loose))
	})
}

func slicesIndex(all []cloud.OrderID, id cloud.OrderID) int {
	for i, x := range all {
		if x == id {
			return i
		}
	}
	return -1
}

func TestTakingOff(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		a, b, c, d := w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder), w.create(cloud.DeliveryOrder)
		id := w.open(w.staff, w.driver, a, b, c)
		w.dispatch(id)
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: b}))
		w.status(cloud.OrderOutForDelivery)(w.routes.StartDelivery(ctx, w.driver, route.ByOrder{OrderID: c}))
		w.status(cloud.OrderDeliveryFailed)(w.routes.Deliver(ctx, w.driver, route.ResultInput{OrderID: c, Result: "failed", FailureCode: "weather"}))
		remove := func(ids ...cloud.OrderID) route.RemoveOutput {
			out, err := w.routes.Remove(ctx, w.staff, route.OrdersInput{RouteID: id, OrderIDs: ids})
			require.NoError(t, err)
			return out
		}
		out := remove(a, b, c, d, 999999)
		require.True(t, out.Result)
		require.Equal(t, 2, out.Removed)
		require.Equal(t, []string{"ORDER_STATUS_CONFLICT", "NOT_ON_ROUTE", "ORDER_NOT_FOUND"}, []string{out.Errors[0].Code, out.Errors[1].Code, out.Errors[2].Code})
		require.Equal(t, "in_progress: pending failed", w.stops(id))
		require.Equal(t, 1, remove(c).Skipped)
		o := w.order(c)
		require.Equal(t, cloud.OrderDeliveryFailed, o.Status)
		require.Zero(t, o.RouteID)
		require.Equal(t, "information_submitted removed_from_route", w.codes(a))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Remove)(ctx, w.staff, route.OrdersInput{RouteID: id})))
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.routes.Remove)(ctx, w.staff, route.OrdersInput{RouteID: id, OrderIDs: make([]cloud.OrderID, 501)})))

		// A driver who is taken off takes nothing along.
		e := w.create(cloud.DeliveryOrder)
		none := cloud.AccountID(0)
		next := w.open(w.staff, w.driver, e)
		_, err := w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: next, RouteInput: route.RouteInput{DriverID: &none}})
		require.NoError(t, err)
		o = w.order(e)
		require.Equal(t, []any{cloud.OrderRoutePlanned, next, cloud.AccountID(0)}, []any{o.Status, o.RouteID, o.DriverID})
		require.Equal(t, "planned: pending", w.stops(next))
	})
}

// An order that was stopped comes back to its route as the route is now: without
// a driver when that was taken off, with one when it got one.
func TestAStoppedOrderComesBackToTheRouteAsItIs(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		none, driver := cloud.AccountID(0), w.driver.Account.ID
		for _, x := range []struct {
			first, then *cloud.AccountID
			want        cloud.OrderStatus
		}{{&driver, &none, cloud.OrderRoutePlanned}, {&none, &driver, cloud.OrderDriverAssigned}, {&driver, &driver, cloud.OrderDriverAssigned}} {
			id, r := w.create(cloud.DeliveryOrder), w.open(w.staff, cloud.Caller{})
			_, err := w.routes.Add(ctx, w.staff, route.OrdersInput{RouteID: r, OrderIDs: []cloud.OrderID{id}})
			require.NoError(t, err)
			set := func(d *cloud.AccountID) {
				_, err := w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: r, RouteInput: route.RouteInput{DriverID: d}})
				require.NoError(t, err)
			}
			set(x.first)
			out, err := interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: id, Outcome: "hold_at_warehouse"})
			require.NoError(t, err)
			set(x.then)
			_, err = interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: out.Interception.ID})
			require.NoError(t, err)
			o := w.order(id)
			require.Equal(t, []any{x.want, *x.then, r}, []any{o.Status, o.DriverID, o.RouteID})
		}
	})
}
