package tracking_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/protocol/otep"
)

// ridden writes an order of a customer that is on its way, third on a route that
// has started, and gives it for tests to change.
func ridden(t *testing.T, w *webtest.World) cloud.Order {
	now := time.Now().UTC().Truncate(time.Second)
	order := func(id cloud.OrderID, number string, s cloud.OrderStatus, stop int) cloud.Order {
		return cloud.Order{ID: id, BusinessID: 42, Number: number, Type: cloud.DeliveryOrder, Status: s, RouteID: 9, Stop: stop, DriverID: 4, DriverName: "Sam van der Berg", CreatedAt: now, UpdatedAt: now}
	}
	o := order(501, "SR000000501", cloud.OrderOutForDelivery, 3)
	o.CustomerID, o.SelfDelivery, o.ETA = 5, true, now.Add(time.Hour)
	o.Recipient = &cloud.Address{Name: "Jane Smith", Phone: "+1 (416) 555-0123", Line1: "1 Secret Lane", City: "Toronto", Province: "ON", PostalCode: "M5V 2T6", Country: "CA", BuzzCode: "4471"}
	price := cloud.Money(1899)
	o.COD, o.Declared, o.Prices = &price, &price, &cloud.OrderPrices{Total: price, Currency: "CAD"}
	o.Note, o.Instruction = "knows the dog", "key under the mat"
	done := order(502, "SR000000502", cloud.OrderDelivered, 1)
	w.Write(t, cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{{ID: 9, BusinessID: 42, Date: "2026-11-20", DriverID: 4, LastStop: 4, DispatchedAt: now, StartedAt: now, CreatedAt: now, UpdatedAt: now}}},
		OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o, done, order(503, "SR000000503", cloud.OrderOutForDelivery, 2), order(504, "SR000000504", cloud.OrderDriverAssigned, 4)}}})
	w.Write(t, cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 501, BusinessID: 42, Number: o.Number, OrderID: o.ID, CustomerID: 5, Profile: "parcel", CreatedAt: now}},
		Events: []cloud.TimelineEvent{event(o.Number, otep.OutForDelivery, now.Add(-time.Hour), nil)}}})
	return o
}

func event(number string, code otep.Code, at time.Time, pod *otep.Proof) cloud.TimelineEvent {
	e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: at}, StatusCode: code, Source: &otep.Source{Type: "self_delivery"}, PoD: pod}
	e.EventID = otep.ID(otep.Subject{TrackingNumber: number}, e)
	return cloud.TimelineEvent{ShipmentID: 501, BusinessID: 42, Event: e.Fill("parcel")}
}

// delivered ends an order: a person took it, and there are files.
func delivered(t *testing.T, w *webtest.World, o cloud.Order) {
	now := time.Now().UTC().Truncate(time.Second)
	o.Status, o.DeliveredAt = cloud.OrderDelivered, now
	o.Files = []cloud.ProofFile{{ID: 1, Type: "photo", Path: "proof/door.jpg", Event: otep.Delivered, Service: 1, Result: 1, AddedAt: now},
		{ID: 2, Type: "photo", Path: "proof/try.jpg", Event: otep.DeliveryFailed, Service: 1, Result: 2, AddedAt: now}}
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}, TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{event(o.Number, otep.Delivered, now, &otep.Proof{Recipient: "Robert Neighbour", SignatureURL: "https://x.example/sign"})}}})
}

// guarded shows old numbers, which the orders of these tests have, like others.
func guarded(w *webtest.World) *tracking.Service {
	return tracking.New(w.DB).Guard(tracking.GuardConfig{Links: cloud.LinkKey("0123456789abcdef"), Legacy: tracking.LegacyOpen})
}

func signer(path string, until time.Time) string {
	return "/signed/" + path + "?" + until.UTC().Format(time.DateOnly)
}

func answerOf(t *testing.T, s *tracking.Service, c cloud.Caller, number, verify string) (m map[string]any, raw string) {
	t.Helper()
	c.Language, c.BaseURL = "en", "https://acme.example"
	out, err := s.Public(t.Context(), c, tracking.PublicInput{Number: number, Verify: verify})
	require.NoError(t, err)
	b, err := json.Marshal(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &m))
	return m, string(b)
}

func callerOf(typ cloud.AccountType, id cloud.AccountID, b cloud.BusinessID) cloud.Caller {
	return cloud.Caller{Account: cloud.Account{ID: id, BusinessID: b, Type: typ}}
}

// Every member with personal data, by everybody who may and may not see it,
// while an order is under way and when it is done.
func TestWhatAnOrderShowsToWhom(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := guarded(w).SignFiles(signer)
	o := ridden(t, w)
	type who struct {
		c      cloud.Caller
		verify string
	}
	whole := []who{{cloud.Caller{}, "0123"}, {callerOf(cloud.ClientAdmin, 1, 42), ""}, {callerOf(cloud.ClientEmployee, 2, 42), ""}, {callerOf(cloud.Customer, 5, 42), ""},
		{callerOf(cloud.ClientAdmin, 23, 43), "0123"}}
	masked := []who{{cloud.Caller{}, ""}, {callerOf(cloud.PlatformAdmin, 6, 0), ""}, {cloud.Caller{}, "9999"}, {cloud.Caller{}, "123"}, {cloud.Caller{}, "50123"}, {callerOf(cloud.ClientAdmin, 23, 43), ""},
		{callerOf(cloud.ClientAdmin, 23, 43), "9999"}, {callerOf(cloud.Customer, 27, 43), ""}, {callerOf(cloud.Customer, 28, 42), ""}, {callerOf(cloud.Broker, 3, 42), ""},
		{callerOf(cloud.DriverAccount, 4, 42), ""}, {owner(), ""}}
	never := []string{"Secret Lane", "4471", "555", "van der", "18.99", "1899", "CAD", "dog", "mat", "try.jpg", "sign\"", "driver_id"}
	check := func(list []who, recipient string, postal any, proof map[string]any, hidden ...string) {
		t.Helper()
		for _, x := range list {
			m, raw := answerOf(t, s, x.c, o.Number, x.verify)
			require.Equal(t, map[string]any{"name": recipient, "city": "Toronto", "province": "ON", "postal_code": postal, "country": "CA"}, m["recipient"], "%+v", x)
			require.Equal(t, proof, m["proof"], "%+v", x)
			for _, secret := range append(hidden, never...) {
				if secret == "555" { // the business's own number is no secret
					require.NotContains(t, raw, "555-0123")
					continue
				}
				require.NotContains(t, raw, secret, "%+v", x)
			}
		}
	}
	none := map[string]any{"available": false, "recipient_name": nil, "files": []any{}}
	check(whole, "Jane Smith", "M5V 2T6", none)
	check(masked, "J*** S***", nil, none, "Jane", "2T6")
	delivered(t, w, o)
	file := "https://acme.example/signed/proof/door.jpg?" + time.Now().UTC().AddDate(0, 0, 7).Format(time.DateOnly)
	check(whole, "Jane Smith", "M5V 2T6", map[string]any{"available": true, "recipient_name": "Robert Neighbour", "files": []any{file}})
	check(masked, "J*** S***", nil, map[string]any{"available": true, "recipient_name": nil, "files": []any{}}, "Jane", "2T6", "Robert", "door.jpg", "/signed/")
	bare, _ := answerOf(t, guarded(w), cloud.Caller{}, o.Number, "0123")
	require.Equal(t, []any{}, bare["proof"].(map[string]any)["files"], "there is nothing that signs")
}

// A driver is shown while on the way and at no other time; what it is asked
// before is counted on its route.
func TestDriverAndStopsBefore(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); driverShown(t, webtest.New(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); driverShown(t, webtest.NewOn(t, storetest.OpenSecondPostgres(t))) })
}

func driverShown(t *testing.T, w *webtest.World) {
	s := guarded(w)
	o := ridden(t, w)
	shown := func() map[string]any {
		m, _ := answerOf(t, s, cloud.Caller{}, o.Number, "")
		if d, _ := m["driver"].(map[string]any); d != nil {
			require.Nil(t, d["latitude"], "where somebody is needs proof")
			require.Nil(t, d["updated_at"])
		}
		m, _ = answerOf(t, s, callerOf(cloud.ClientAdmin, 1, 42), o.Number, "")
		return m
	}
	m := shown()
	nowhere := map[string]any{"first_name": "Sam", "latitude": nil, "longitude": nil, "updated_at": nil}
	require.Equal(t, nowhere, m["driver"])
	at := func(driver cloud.AccountID, ago time.Duration) string {
		recorded := time.Now().Add(-ago).UTC().Truncate(time.Second)
		w.Write(t, cloud.Changes{PlaceChanges: cloud.PlaceChanges{DriverPlaces: []cloud.DriverPlace{{AccountID: driver, BusinessID: 42, Latitude: 43.65123, Longitude: -79.38349, RecordedAt: recorded}}}})
		return recorded.In(w.Business.Location()).Format(time.RFC3339)
	}
	duty := func(on, enabled bool, since time.Time) any {
		w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: o.DriverID, BusinessID: 42, Type: cloud.DriverAccount, Email: "sam@acme.example", Enabled: enabled}}},
			RouteChanges: cloud.RouteChanges{Drivers: []cloud.Driver{{Account: cloud.Account{ID: o.DriverID, BusinessID: 42}, OnDuty: on, DutySince: since}}}})
		return shown()["driver"]
	}
	duty(false, true, time.Time{})
	at(o.DriverID, 15*time.Minute+time.Second)
	require.Equal(t, nowhere, shown()["driver"], "that was a while ago")
	at(24, 0)
	require.Equal(t, nowhere, shown()["driver"], "another driver")
	when := at(o.DriverID, 14*time.Minute)
	require.Equal(t, map[string]any{"first_name": "Sam", "latitude": 43.651, "longitude": -79.383, "updated_at": when}, shown()["driver"], "to about a hundred metres")
	require.EqualValues(t, 1, m["stops_before"], "one is done, one comes later")
	require.NotNil(t, m["eta"])
	here := shown()["driver"]
	require.Equal(t, here, duty(false, true, time.Time{}), "who never says when work begins")
	require.Equal(t, here, duty(true, true, time.Now().Add(-time.Hour)))
	require.Equal(t, nowhere, duty(false, true, time.Now().Add(-time.Hour)), "where somebody is after work is nobody's business")
	require.Equal(t, nowhere, duty(true, false, time.Now().Add(-time.Hour)), "switched off")
	require.Equal(t, here, duty(true, true, time.Now().Add(-time.Hour)))
	for _, state := range cloud.OrderStates() {
		o.Status = state.ID
		w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
		m, raw := answerOf(t, s, callerOf(cloud.ClientAdmin, 1, 42), o.Number, "")
		if state.ID == cloud.OrderOutForPickup || state.ID == cloud.OrderOutForDelivery {
			require.NotNil(t, m["driver"], state.Name)
		} else {
			require.Nil(t, m["driver"], state.Name)
			require.NotContains(t, raw, "Sam")
			require.NotContains(t, raw, "43.65")
		}
	}
	o.Status, o.DriverName = cloud.OrderOutForDelivery, " "
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	require.Nil(t, shown()["driver"], "nobody with a name")
	o.RouteID, o.Stop, o.ETA = 0, 0, time.Time{}
	w.Write(t, cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	m = shown()
	require.Nil(t, m["stops_before"])
	require.Nil(t, m["eta"])
}

func TestStopsBeforeNeedARouteThatHasStarted(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := guarded(w)
	o := ridden(t, w)
	r := cloud.Route{ID: 9, BusinessID: 42, Date: "2026-11-20", DispatchedAt: time.Now()}
	w.Write(t, cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{r}}})
	m, _ := answerOf(t, s, cloud.Caller{}, o.Number, "")
	require.Nil(t, m["stops_before"])
}
