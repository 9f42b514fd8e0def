package locker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-io/postern/cloud/server"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/device/devicetest"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/contractor"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// parcels is an order of the cabinet's business, and a delivery R-1 that brings
// its packages to the cabinet.
type parcels struct {
	*story
	service *order.Service
	staff   cloud.Caller
	made    order.OrderBody
	bubble  bool
}

type anyURL struct{}

func (anyURL) CheckURL(context.Context, string) error { return nil }

// carried plays a story on each database: in a bubble of simulated time on
// SQLite, in real time on PostgreSQL.
func carried(t *testing.T, name string, packages int, play func(s *parcels)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Run("SQLite", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { carry(t, devicetest.New(t, nil), packages, true, play) })
		})
		t.Run("PostgreSQL", func(t *testing.T) {
			t.Parallel()
			carry(t, devicetest.NewOn(t, storetest.SecondPostgresURL(t), nil), packages, false, play)
		})
	})
}

func carry(t *testing.T, w *devicetest.World, packages int, bubble bool, play func(s *parcels)) {
	defer w.Stop()
	s := &parcels{story: &story{t: t, World: w, Device: w.Connect("CAB-1", nil)}, bubble: bubble}
	s.Greet(nil)
	hooks := webhook.New(w.Store, anyURL{})
	s.service = order.New(order.Config{Store: w.Store, Sealer: w.Server.Box, Webhooks: hooks})
	s.Look(func(v cloud.View) error {
		all, _, err := v.Accounts(cloud.AccountFilter{BusinessID: w.Box.ProviderCaller.Provider.BusinessID, Types: []cloud.AccountType{cloud.ClientAdmin}, Page: cloud.Page{Sort: "id", Limit: 1}})
		s.staff = cloud.Caller{Account: all[0], Language: "en"}
		return err
	})
	var in webhook.SettingsInput
	settings := map[string]string{"webhook_sign_secret": strings.Repeat("s", 32)}
	for _, name := range cloud.HookSettings() {
		settings[name] = "https://8.8.8.8/orders"
	}
	require.NoError(t, json.Unmarshal(mustJSON(settings), &in))
	_, err := hooks.SaveSettings(ctx, s.staff, in)
	require.NoError(t, err)

	s.made = s.order(packages)
	var numbers []string
	for _, p := range s.made.Packages {
		numbers = append(numbers, p.Number)
	}
	d, err := s.bring("R-1", numbers...)
	require.NoError(t, err)
	s.code = d.DeliveryNumber
	require.EqualValues(t, s.made.OrderID, *d.OrderID)
	s.wait(time.Minute)
	play(s)
	if bubble {
		synctest.Wait()
	}
	again, err := s.Rebuild(ctx, false)
	require.NoError(t, err)
	require.Empty(t, again.Missing)
	require.Empty(t, again.Different)
	folded, err := server.RefoldTimelines(ctx, s.Store, server.Refold{})
	require.NoError(t, err)
	require.Empty(t, folded.List)
}

// wait lets simulated time pass; real time is not waited for.
func (s *parcels) wait(d time.Duration) {
	if s.bubble {
		time.Sleep(d)
	}
}

func (s *parcels) order(packages int) order.OrderBody {
	s.t.Helper()
	in := order.CreateInput{Type: cloud.DeliveryOrder, ExternalID: "shop-7", Recipient: &cloud.Address{Name: "Jane Smith", Phone: "+1 (416) 555-0123", Line1: "1 Secret Lane", City: "Toronto", Province: "ON",
		PostalCode: "M5V 2T6", Country: "CA"}}
	for i := range packages {
		in.Packages = append(in.Packages, order.PackageInput{Weight: 1, ExternalNumber: fmt.Sprint("UPS-", i+1)})
	}
	out, err := s.service.Create(ctx, s.staff, in)
	require.NoError(s.t, err)
	return out.Order
}

func (s *parcels) bring(ref string, numbers ...string) (locker.DeliveryBody, error) {
	in := locker.CreateInput{ReferenceNumber: ref, DeviceID: s.ID, Recipient: cloud.Recipient{Name: "Jane Smith", Phone: "+14165550123"}}
	for _, n := range numbers {
		in.Packages = append(in.Packages, locker.PackageInput{TrackingNumber: n, Size: "M"})
	}
	out, err := s.Lockers.Create(ctx, s.Box.ProviderCaller, in)
	return out.Delivery, err
}

func (s *parcels) move(to cloud.OrderStatus, by order.Trigger, set func(*cloud.Order)) {
	s.t.Helper()
	require.NoError(s.t, s.service.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: s.staff.Account.BusinessID, OrderID: s.made.OrderID, To: to, Trigger: by, Operation: 1005, Set: set}))
}

func (s *parcels) now() order.OrderBody {
	s.t.Helper()
	out, err := s.service.Find(ctx, s.staff, order.Key{OrderID: s.made.OrderID})
	require.NoError(s.t, err)
	return out.Order
}

// is checks the order: its status, those of its packages, and its timeline.
func (s *parcels) is(status cloud.OrderStatus, packages, codes string) {
	s.t.Helper()
	o := s.now()
	var states []string
	for _, p := range o.Packages {
		states = append(states, string(p.Status))
	}
	require.Equal(s.t, []string{status.String(), packages, strings.TrimSpace("information_submitted " + codes)}, []string{o.Status, strings.Join(states, " "), s.codes()})
}

// codes is the order's timeline, valid and with its cached fold.
func (s *parcels) codes() string {
	s.t.Helper()
	var codes []string
	s.Look(func(v cloud.View) error {
		sh, err := v.OrderShipment(s.staff.Account.BusinessID, s.made.OrderID)
		require.NoError(s.t, err)
		rows, err := v.Timeline(sh.ID)
		require.NoError(s.t, err)
		list, err := v.PackagesOf(sh.BusinessID, sh.OrderID)
		var packages []cloud.PackageID
		for _, p := range list {
			packages = append(packages, p.ID)
		}
		t := otep.Fold(sh.Profile, otep.Subject{TrackingNumber: sh.Number}, timeline.OfOrder(rows, packages, time.Time{}))
		require.Empty(s.t, otep.BadMoves(t.Events))
		require.Equal(s.t, *t.Current, sh.Current)
		for _, e := range t.Events {
			codes = append(codes, string(e.StatusCode))
			if e.Source.Type == otep.Locker && e.StatusCode != otep.OutForDelivery {
				require.Equal(s.t, "CAB-1", e.Location.FacilityID)
			}
		}
		return err
	})
	return strings.Join(codes, " ")
}

// did are the order's operations after it was made, all of them the cabinet's.
func (s *parcels) did(from int) (out []string) {
	s.t.Helper()
	ops, err := s.Store.ListOrderOperations(ctx, s.staff.Account.BusinessID, s.made.OrderID)
	require.NoError(s.t, err)
	for _, x := range ops[from:] {
		require.Equal(s.t, cloud.Operator{Type: "device", ID: cloud.AccountID(s.ID), Name: "One"}, x.Operator)
		out = append(out, fmt.Sprintf("%d:%d>%d", x.Type, x.Before, x.After))
	}
	return out
}

// The events that were sent of the order, oldest first.
func (s *parcels) hears() (out []string) {
	s.t.Helper()
	_, rows, err := s.Store.ListAccountOutbox(ctx, cloud.AccountLog{BusinessID: s.staff.Account.BusinessID, ReferenceType: "order", ReferenceID: fmt.Sprint(s.made.OrderID), Page: cloud.Page{Limit: 1000}})
	require.NoError(s.t, err)
	for _, r := range slices.Backward(rows) {
		x, err := s.Store.FindOutbox(ctx, r.Delivery.ID)
		require.NoError(s.t, err)
		var body struct {
			Event string
			Data  struct {
				Key      string `json:"tracking_event_key"`
				ID       int    `json:"tracking_event_status_id"`
				Location *struct{ Name string }
			}
		}
		require.NoError(s.t, json.Unmarshal(x.Event.Body, &body))
		name := body.Event
		if body.Data.Key != "" {
			name = fmt.Sprint(body.Data.ID, " ", body.Data.Key)
			if body.Data.Key == string(otep.AvailableForPickup) {
				require.Equal(s.t, "One", body.Data.Location.Name, "the cabinet's place")
			}
		}
		out = append(out, name)
	}
	slices.Sort(out) // what one decision tells has one moment
	return out
}

func (s *parcels) public(number string) tracking.PublicOutput {
	s.t.Helper()
	out, err := tracking.New(s.Store).Public(ctx, cloud.Caller{Language: "en"}, tracking.PublicInput{Number: number})
	require.NoError(s.t, err)
	return out
}

func TestParcelsOfOrders(t *testing.T) {
	ring.SkipUnlessCheck(t, "the seeds of cmd/e2e and the other stories of this package")
	t.Parallel()
	f := func(name string, packages int, play func(s *parcels)) { t.Helper(); carried(t, name, packages, play) }
	f("deposited and collected", 1, func(s *parcels) {
		s.move(cloud.OrderRoutePlanned, order.PutOnRoute, nil)
		s.move(cloud.OrderOutForDelivery, order.StartDelivery, nil)
		s.wait(10 * time.Minute)
		require.Equal(s.t, cloud.DeliveryCreated, s.now().Locker.Status)
		require.Nil(s.t, s.public(s.made.Number).Locker, "nothing was in it yet")
		a := s.open()
		time.Sleep(3 * time.Second) // doors close two seconds before their record
		s.settle(a)
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup")
		require.Equal(s.t, &order.LockerRef{DeviceID: s.ID, DeviceName: "One", DeliveryID: s.find().DeliveryID, Status: cloud.DeliveryDelivered}, s.now().Locker)
		for _, number := range []string{s.made.Number, s.made.Packages[0].Number} {
			public := s.public(number)
			require.Equal(s.t, "local_delivery", public.Family)
			require.Equal(s.t, "x-available_for_pickup", string(*public.OTEPStatus))
			require.Equal(s.t, []any{s.ID, "One", "waiting", *s.find().DueAt}, []any{public.Locker.DeviceID, public.Locker.DeviceName, public.Locker.Status, *public.Locker.DueAt})
			require.Equal(s.t, "in_locker", *public.Packages[0].Status)
			require.Equal(s.t, *s.find().DepositedAt, public.Events[0].OccurredAt, "when it happened, not when it was told")
		}
		s.wait(10 * time.Minute)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.is(cloud.OrderDelivered, "delivered", "out_for_delivery x-available_for_pickup delivered")
		require.Equal(s.t, *s.find().PickedUpAt, *s.now().DeliveredAt)
		require.Equal(s.t, "collected", s.public(s.made.Number).Locker.Status)
		require.Equal(s.t, cloud.DeliveryPickedUp, s.now().Locker.Status)
		require.Equal(s.t, []string{"7001:40>40", "7002:40>46", "7003:46>41"}, s.did(3))
		require.Equal(s.t, []string{"10 information_submitted", "40 out_for_delivery", "41 delivered", "46 x-available_for_pickup", "order.created", "order.delivered",
			"order.out_for_delivery", "order.status_change", "order.status_change", "order.status_change", "order.status_change"}, s.hears())
		require.Empty(s.t, s.Faults())
	})
	f("a repeated batch", 1, func(s *parcels) {
		a := s.open()
		settled := s.Record(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose,
			Packages: []wire.SettledPackage{{Ref: s.made.Packages[0].Number, Door: a.Doors[0], Outcome: wire.Deposited}}})
		b := s.Send(wire.KindOpeningSettled.Lane(), settled)
		s.Ack()
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup")
		before, did := s.hears(), s.did(1)
		s.Up(wire.MustEncode(b))
		s.Ack()
		s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose,
			Packages: []wire.SettledPackage{{Ref: s.made.Packages[0].Number, Door: a.Doors[0], Outcome: wire.Deposited}}})
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup")
		require.Equal(s.t, before, s.hears())
		require.Equal(s.t, did, s.did(1))
	})
	f("all of it in one batch, with a scan of the order between", 1, func(s *parcels) {
		a := s.open()
		ref := s.made.Packages[0].Number
		s.Send(wire.KindOpeningSettled.Lane(),
			s.Record(wire.KindTrackingEvent, wire.TrackingEvent{Subject: s.made.Number, StatusCode: "in_transit"}),
			s.Record(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: a.OpeningID, ConfirmedBy: wire.ByDoorClose, Packages: []wire.SettledPackage{{Ref: ref, Door: a.Doors[0], Outcome: wire.Deposited}}}),
			s.Record(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_p", Kind: wire.OpenPickup, Doors: a.Doors, CommandID: wire.LocalCommand, Who: "recipient", DeliveryRef: s.code}),
			s.Record(wire.KindPickupCompleted, wire.PickupCompleted{DeliveryRef: s.code, OpeningID: "op_p", Doors: a.Doors, How: "keypad", CodeNumber: 2, ListNumber: 2}))
		s.Ack()
		s.is(cloud.OrderDelivered, "delivered", "in_transit x-available_for_pickup delivered")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46", "7003:46>41"}, s.did(1))
	})
	f("labels of its packages, scanned one by one", 2, func(s *parcels) {
		s.move(cloud.OrderDriverAssigned, order.AssignDriver, nil)
		s.move(cloud.OrderOutForDelivery, order.StartDelivery, nil)
		s.move(cloud.OrderDeliveryFailed, order.DeliveryResult, nil)
		scan := func(i int, at time.Time) {
			s.wait(time.Minute)
			s.Tell(wire.KindTrackingEvent, wire.TrackingEvent{Subject: s.made.Packages[i].Number, StatusCode: "received", ScannedAt: at.UnixNano()})
			require.Empty(s.t, s.Faults())
		}
		s.wait(time.Minute)
		first := time.Now()
		scan(0, first)
		scan(0, first)                                                                            // the scanner was docked twice
		s.is(cloud.OrderReceived, "received failed", "out_for_delivery delivery_failed received") // where its least package is
		scan(1, first.Add(time.Second))
		s.is(cloud.OrderReceived, "received received", "out_for_delivery delivery_failed received")
		require.Equal(s.t, []string{"4001:43>30", "4001:30>30"}, s.did(4))
		scan(0, first.Add(2*time.Second))
		heard := s.hears()
		require.Len(s.t, slices.DeleteFunc(heard, func(name string) bool { return name != "30 received" }), 3)
	})
	f("confirmed by the partner, and by the cabinet afterwards", 1, func(s *parcels) {
		a := s.open()
		require.NoError(s.t, s.confirm())
		s.settle(a)
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46"}, s.did(1))
	})
	f("collected although its deposit was never confirmed", 1, func(s *parcels) {
		a := s.open()
		s.end(a, wire.EndDepositUnverified)
		s.is(cloud.OrderNew, "created", "")
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.is(cloud.OrderDelivered, "delivered", "out_for_delivery x-available_for_pickup delivered")
	})
	f("overdue, extended, collected", 1, func(s *parcels) {
		a := s.open()
		s.settle(a)
		s.soon(time.Second)
		s.until(func() bool { return s.find().Status == cloud.DeliveryExpired })
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup x-pickup_overdue")
		require.Equal(s.t, "overdue", s.public(s.made.Number).Locker.Status)
		require.Contains(s.t, s.hears(), "51 x-pickup_overdue")
		_, err := s.Lockers.Extend(ctx, s.Box.ProviderCaller, locker.ExtendInput{Delivery: "ref:R-1", Hours: 24})
		require.NoError(s.t, err)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.is(cloud.OrderDelivered, "delivered", "out_for_delivery x-available_for_pickup x-pickup_overdue delivered")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46", "7004:46>46", "7003:46>41"}, s.did(1))
	})
	f("never brought", 1, func(s *parcels) {
		s.soon(time.Second)
		s.until(func() bool { return s.find().Status == cloud.DeliveryExpired })
		s.is(cloud.OrderNew, "created", "")
		require.Equal(s.t, []string{"7004:1>1"}, s.did(1))
		require.Equal(s.t, cloud.DeliveryExpired, s.now().Locker.Status)
	})
	f("deposited again in a correction", 1, func(s *parcels) {
		s.settle(s.open())
		_, err := s.correct(func(b asked) { s.opened(b); s.settle(b) })
		require.NoError(s.t, err)
		s.is(cloud.OrderInLocker, "in_locker", "out_for_delivery x-available_for_pickup")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46"}, s.did(1))
	})
	f("taken out in a correction", 2, func(s *parcels) {
		a := s.open()
		s.settle(a)
		s.takeOut(a, 0)
		d := s.find()
		require.Equal(s.t, cloud.DeliveryDelivered, d.Status, "the other one is where it was")
		require.True(s.t, d.PickupCodeActive)
		require.Equal(s.t, []cloud.PackageStatus{cloud.PackageFailed, cloud.PackageInCompartment}, []cloud.PackageStatus{d.Packages[0].Status, d.Packages[1].Status})
		require.Equal(s.t, []uint{a.Doors[1]}, s.listed(wire.CodePickup)[0].Doors, "and the code opens it")
		s.is(cloud.OrderInLocker, "failed in_locker", "out_for_delivery x-available_for_pickup")
		s.takeOut(a, 1)
		s.is(cloud.OrderDeliveryFailed, "failed failed", "out_for_delivery x-available_for_pickup x-removed_from_device")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46", "7005:46>46", "7005:46>43"}, s.did(1))
		require.Contains(s.t, s.hears(), "52 x-removed_from_device")
	})
	f("cancelled, and put in all the same", 1, func(s *parcels) {
		_, err := s.service.Cancel(ctx, s.staff, order.ReasonInput{OrderID: s.made.OrderID})
		require.NoError(s.t, err)
		before := s.hears()
		a := s.open()
		s.settle(a)
		s.is(cloud.OrderCancelled, "cancelled", "cancelled")
		require.Equal(s.t, cloud.DeliveryDelivered, s.now().Locker.Status)
		require.Equal(s.t, "waiting", s.public(s.made.Number).Locker.Status)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.is(cloud.OrderCancelled, "cancelled", "cancelled")
		require.Equal(s.t, before, s.hears())
		s.told("doors_opened", "delivered", "picked_up")
	})
	f("deleted", 1, func(s *parcels) {
		_, err := s.service.Delete(ctx, s.staff, order.OrderRef{OrderID: s.made.OrderID})
		require.NoError(s.t, err)
		a := s.open()
		s.settle(a)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.told("doors_opened", "delivered", "picked_up")
		require.Empty(s.t, s.Faults())
	})
	f("intercepted", 1, func(s *parcels) {
		_, err := interception.New(s.service).Intercept(ctx, s.staff, interception.InterceptInput{OrderID: s.made.OrderID, Outcome: "redeliver"})
		require.NoError(s.t, err)
		a := s.open()
		s.settle(a)
		s.is(cloud.OrderInLocker, "in_locker", "x-intercepted out_for_delivery x-available_for_pickup")
		require.Equal(s.t, "failed", s.now().Interception.Status)
		// Stopped once more while it waits: a person with the code still gets it.
		_, err = interception.New(s.service).Intercept(ctx, s.staff, interception.InterceptInput{OrderID: s.made.OrderID, Outcome: "redeliver"})
		require.NoError(s.t, err)
		s.pickUp("op_p", 2, nil, a.Doors...)
		s.is(cloud.OrderDelivered, "delivered", "x-intercepted out_for_delivery x-available_for_pickup x-intercepted x-available_for_pickup delivered")
		require.Equal(s.t, "failed", s.now().Interception.Status)
	})
	f("on a route, held by a contractor", 1, func(s *parcels) {
		var broker cloud.AccountID
		s.Look(func(v cloud.View) error {
			all, _, err := v.Accounts(cloud.AccountFilter{BusinessID: s.staff.Account.BusinessID, Types: []cloud.AccountType{cloud.Broker}, Page: cloud.Page{Sort: "id", Limit: 1}})
			broker = all[0].ID
			return err
		})
		out, err := contractor.New(s.service).Assign(ctx, s.staff, contractor.AssignInput{OrderIDs: []cloud.OrderID{s.made.OrderID}, BrokerID: broker})
		require.NoError(s.t, err)
		require.True(s.t, out.Result, "%+v", out)
		s.move(cloud.OrderRoutePlanned, order.PutOnRoute, func(o *cloud.Order) { o.RouteID, o.Stop = 7, 1 })
		a := s.open()
		s.settle(a)
		require.Nil(s.t, s.now().RouteID)
		s.Look(func(v cloud.View) error {
			o, err := v.Order(s.staff.Account.BusinessID, s.made.OrderID)
			require.Len(s.t, o.Past, 1)
			require.EqualValues(s.t, cloud.StopDone, o.Past[0].State)
			return err
		})
		require.Equal(s.t, broker, s.now().BrokerAssignment.BrokerID)
		s.pickUp("op_p", 2, nil, a.Doors...)
		require.Equal(s.t, cloud.OrderDelivered, s.now().StatusID)
		require.Nil(s.t, s.now().BrokerAssignment, "released with its completion")
	})
	f("two packages, collected one by one", 2, func(s *parcels) {
		a := s.open()
		s.settle(a)
		s.is(cloud.OrderInLocker, "in_locker in_locker", "out_for_delivery x-available_for_pickup")
		s.pickUp("op_p", 2, a.Doors[1:], a.Doors[0])
		s.is(cloud.OrderInLocker, "delivered in_locker", "out_for_delivery x-available_for_pickup")
		s.pickUp("op_q", 2, nil, a.Doors[1])
		s.is(cloud.OrderDelivered, "delivered delivered", "out_for_delivery x-available_for_pickup delivered")
		require.Equal(s.t, []string{"7001:1>1", "7002:1>46", "7003:46>46", "7003:46>41"}, s.did(1))
	})
	f("two packages, one of which did not go in, and comes later", 2, func(s *parcels) {
		a := s.open()
		s.settle(a, wire.Deposited, wire.Failed)
		s.is(cloud.OrderInLocker, "in_locker created", "out_for_delivery x-available_for_pickup")
		s.pickUp("op_p", 2, nil, a.Doors[0])
		s.is(cloud.OrderPartlyDelivered, "delivered created", "out_for_delivery x-available_for_pickup delivery_failed")
		d, err := s.bring("R-2", s.made.Packages[1].Number)
		require.NoError(s.t, err)
		require.Equal(s.t, d.DeliveryID, s.now().Locker.DeliveryID, "the latest")
		_, err = s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: "ref:R-2"})
		require.NoError(s.t, err)
		require.Equal(s.t, cloud.OrderPartlyDelivered, s.now().StatusID, "a delivery that ends before its deposit moves nothing")
		d, err = s.bring("R-3", "UPS-2")
		require.NoError(s.t, err)
		s.code = d.DeliveryNumber
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{3}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{3}, Packages: map[uint][]string{3: {"UPS-2"}}}})
		require.Equal(s.t, cloud.OrderInLocker, s.now().StatusID)
		s.pickUp("op_q", 4, nil, 3)
		require.Equal(s.t, cloud.OrderDelivered, s.now().StatusID)
		require.Equal(s.t, "information_submitted out_for_delivery x-available_for_pickup delivery_failed x-available_for_pickup delivered", s.codes())
		require.Equal(s.t, cloud.OrderPackageDelivered, s.now().Packages[1].Status)
	})
	// The number leads to the order's own timeline, which is not made of records.
	f("brought under the order's number", 2, func(s *parcels) {
		require.NoError(s.t, s.cancel())
		d, err := s.bring("R-2", s.made.Number)
		require.NoError(s.t, err)
		s.code = d.DeliveryNumber
		s.Tell(wire.KindOpeningStarted, wire.OpeningStarted{OpeningID: "op_l", Kind: wire.OpenDeposit, Doors: []uint{1}, CommandID: wire.LocalCommand, Who: "courier", DeliveryRef: s.code})
		s.settle(asked{OpenDoors: wire.OpenDoors{OpeningID: "op_l", Doors: []uint{1}, Packages: map[uint][]string{1: {s.made.Number}}}})
		s.is(cloud.OrderInLocker, "in_locker in_locker", "out_for_delivery x-available_for_pickup")
		s.pickUp("op_q", 4, nil, 1)
		s.is(cloud.OrderDelivered, "delivered delivered", "out_for_delivery x-available_for_pickup delivered")
	})
	f("failed doors move nothing", 1, func(s *parcels) {
		s.failDoors()
		s.is(cloud.OrderNew, "created", "")
		require.Empty(s.t, s.did(1))
	})
}

// until waits for what a look at the deadlines brings.
func (s *parcels) until(done func() bool) {
	s.t.Helper()
	for range 40 {
		if done() {
			return
		}
		time.Sleep(time.Second)
	}
	require.FailNow(s.t, "it did not come about")
}

// takeOut takes a package out of its compartment in a correction.
func (s *parcels) takeOut(a asked, i int) {
	s.t.Helper()
	_, err := s.correct(func(b asked) {
		s.opened(b)
		s.Tell(wire.KindOpeningSettled, wire.OpeningSettled{OpeningID: b.OpeningID, ConfirmedBy: wire.ByDoorClose,
			Packages: []wire.SettledPackage{{Ref: a.Packages[a.Doors[i]][0], Door: a.Doors[i], Outcome: wire.Failed, FailureCode: "NOT_DEPOSITED"}}})
	}, s.cell(a.Doors[i]).GridID)
	require.NoError(s.t, err)
}

// What a tracking number of a package names.
func TestNumbersThatLeadToOrders(t *testing.T) {
	t.Parallel()
	carried(t, "numbers", 2, func(s *parcels) {
		field := func(err error) (out []string) {
			s.t.Helper()
			require.Equal(s.t, "VALIDATION_FAILED", code(err))
			for name, messages := range err.(*cloud.Error).Fields {
				out = append(out, name+": "+messages[0])
			}
			return out
		}
		other := s.order(1) // UPS-1 is in use again
		d, err := s.bring("R-2", strings.ToLower(other.Number))
		require.NoError(s.t, err)
		require.EqualValues(s.t, other.OrderID, *d.OrderID, "all of the order")
		d, err = s.bring("R-3", "ups-1")
		require.NoError(s.t, err)
		require.EqualValues(s.t, other.OrderID, *d.OrderID, "of several the newest")
		for _, ref := range []string{"R-1", "R-2", "R-3"} {
			_, err := s.Lockers.Cancel(ctx, s.Box.ProviderCaller, locker.CancelInput{Delivery: locker.DeliveryKey("ref:" + ref)})
			require.NoError(s.t, err)
		}
		_, err = s.bring("R-4", s.made.Packages[0].Number, other.Number)
		require.Equal(s.t, []string{"packages.1.tracking_number: The tracking_number belongs to another order than the other packages."}, field(err))
		for _, twice := range [][]string{{"UPS-2", s.made.Packages[1].Number}, {s.made.Number, "UPS-2"}, {"UPS-2", s.made.Number}} {
			_, err = s.bring("R-4", twice...)
			require.Equal(s.t, []string{"packages.1.tracking_number: packages[1].tracking_number is in the list twice."}, field(err))
		}
		require.Nil(s.t, s.cellsOf("R-4"), "nothing is kept of what was refused")

		d, err = s.bring("R-5", "PK-1")
		require.NoError(s.t, err)
		require.Nil(s.t, d.OrderID)
		add := func(number string) error {
			_, err := s.Lockers.AddPackage(ctx, s.Box.ProviderCaller, locker.AddPackageInput{Delivery: "ref:R-5", PackageInput: locker.PackageInput{TrackingNumber: number, Size: "M"}})
			return err
		}
		require.NoError(s.t, add("PK-2"))
		require.Equal(s.t, "device", s.public("PK-2").Family, "a package that came later has its timeline too")
		require.NoError(s.t, add("UPS-2"))
		require.Equal(s.t, d.DeliveryID, s.now().Locker.DeliveryID)
		require.Equal(s.t, []string{"tracking_number: The tracking_number belongs to another order than the other packages."}, field(add("UPS-1")))
		_, err = s.Lockers.RemovePackage(ctx, s.Box.ProviderCaller, locker.RemovePackageInput{Delivery: "ref:R-5", TrackingNumber: "UPS-2"})
		require.NoError(s.t, err)
		require.Nil(s.t, s.now().Locker)
		require.Nil(s.t, s.public(s.made.Number).Locker)

		// Another business's order belongs to no account here.
		require.NoError(s.t, s.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 900, Code: "rival", Name: "Rival", Timezone: "UTC"}}}}, nil
		}))
		ours := s.staff
		s.staff.Account = cloud.Account{ID: 901, BusinessID: 900, Type: cloud.ClientAdmin, Enabled: true}
		theirs := s.order(3)
		s.staff = ours
		d, err = s.bring("R-6", "UPS-3")
		require.NoError(s.t, err)
		require.Nil(s.t, d.OrderID)
		_, err = s.bring("R-7", theirs.Number)
		require.Equal(s.t, []string{"packages.0.tracking_number: The tracking_number is in use."}, field(err))
	})
}

// cellsOf are the compartments that a delivery by its reference has.
func (s *parcels) cellsOf(ref string) (out []uint) {
	s.t.Helper()
	s.Look(func(v cloud.View) error {
		d, err := v.DeliveryByReference(s.Box.ProviderCaller.Provider.ID, ref)
		if err != nil {
			return nil
		}
		cells, err := v.Compartments(s.ID)
		for _, c := range cells {
			if c.DeliveryID == d.ID {
				out = append(out, c.Door)
			}
		}
		return err
	})
	return out
}
