package order_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
)

const subscriber = "https://subscriber.example.com/hook"

// subscribe makes a subscription.
func (w *world) subscribe(c cloud.Caller, change func(in *webhook.SubscriptionInput)) webhook.SubscriptionOutput {
	w.t.Helper()
	in := webhook.SubscriptionInput{URL: subscriber, Secret: hookSecret}
	change(&in)
	out, err := w.hooks.Subscribe(w.t.Context(), c, in)
	require.NoError(w.t, err)
	return out
}

func to(numbers ...string) func(in *webhook.SubscriptionInput) {
	return func(in *webhook.SubscriptionInput) { in.Numbers = numbers }
}

// deliveries are what goes to the endpoint of a subscription, oldest first.
func (w *world) deliveries(s webhook.SubscriptionOutput) (out []cloud.OutboxWork) {
	w.t.Helper()
	rows, err := w.db.ListBusinessOutbox(w.t.Context(), cloud.BusinessLog{BusinessID: 42, EndpointID: s.Subscription.URLID, Limit: 1000})
	require.NoError(w.t, err)
	for _, r := range slices.Backward(rows) {
		x, err := w.db.FindOutbox(w.t.Context(), r.Delivery.ID)
		require.NoError(w.t, err)
		out = append(out, x)
	}
	return out
}

// got are the events that went to a subscription: kind, code and the number of the package.
func (w *world) got(s webhook.SubscriptionOutput) (out []string) {
	w.t.Helper()
	for _, x := range w.deliveries(s) {
		b := w.body(x)
		number := "-"
		if p, ok := b.Data["package"].(map[string]any); ok {
			number = p["tracking_number"].(string)
		}
		out = append(out, fmt.Sprint(strings.TrimPrefix(b.Event, "tracking."), " ", b.Data["tracking_event_key"], " ", number))
	}
	return out
}

// partnerParcel is a parcel without an order, of a provider.
func (w *world) partnerParcel(c cloud.Caller, id cloud.ShipmentID, number string) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: id, BusinessID: 42, Number: number, ProviderID: c.Provider.ID, Profile: "parcel", CreatedAt: time.Now()}}}}, nil
	}))
}

// ingestAll is ingest with subscribers of parcels without an order.
func (w *world) ingestAll(c cloud.Caller, body []byte) {
	w.t.Helper()
	out, err := tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).SendParcels(order.ParcelsOf(w.orders)).Ingest(w.t.Context(), c, tracking.IngestInput{Body: body})
	require.NoError(w.t, err)
	require.Zero(w.t, out.Rejected)
}

// A subscription gets the events of its parcels, each once, and of no others: of an order, of one of its
// packages, of a partner's parcel, of all.
func TestSubscribersOfParcels(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		order.SetNumber(w.orders, storetest.OldNumber)
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		at, n := time.Now(), 0
		say := func(c cloud.Caller, number, code string) string {
			at, n = at.Add(time.Second), n+1
			id := fmt.Sprint("e-", n)
			w.ingestAll(c, written(said{number, id, code, at, ""}))
			return id
		}
		o, other := w.ref("S-1"), w.single("S-2")
		first, second := o.Packages[0].Number, o.Packages[1].Number
		w.partnerParcel(swift, 9001, "SWIFT-1")

		whole := w.subscribe(w.staff, to(o.Number))
		part := w.subscribe(w.staff, to(strings.ToLower(second)))
		parcel := w.subscribe(w.staff, to("SWIFT-1", o.Number))
		all := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) { in.All = true })
		gone := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) {
			in.Numbers, in.Events = []string{o.Number, "SWIFT-1"}, []string{"tracking.event_withdrawn"}
		})
		coded := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) { in.All, in.Codes = true, []string{"delivered"} })

		say(swift, o.Number, "arrival_scan")
		one := say(swift, first, "in_transit")
		say(swift, second, "out_for_delivery")
		say(rival, first, "delivered") // a report
		w.takeBack(swift, first, one)
		say(swift, "SWIFT-1", "in_transit")
		taken := say(swift, "SWIFT-1", "out_for_delivery")
		say(swift, "SWIFT-1", "delivered")
		w.ingestAll(swift, fmt.Appendf(nil, `{"otep_version":"0.1","subject":{"tracking_number":"SWIFT-1"},"events":[],"withdrawals":[{"event_id":%q,"reason":"did_not_occur"}]}`, taken))
		say(swift, other.Number, "in_transit")

		require.Equal(t, []string{"event arrival_scan -", "event in_transit " + first, "event out_for_delivery " + second}, w.got(whole))
		require.Equal(t, []string{"event arrival_scan -", "event out_for_delivery " + second}, w.got(part))
		require.Equal(t, append(w.got(whole), "event in_transit SWIFT-1", "event out_for_delivery SWIFT-1", "event delivered SWIFT-1"), w.got(parcel))
		require.Equal(t, append(w.got(parcel), "event in_transit "+other.Packages[0].Number), w.got(all))
		require.Equal(t, []string{"event_withdrawn in_transit " + first, "event_withdrawn out_for_delivery SWIFT-1"}, w.got(gone))
		require.Equal(t, []string{"event delivered SWIFT-1"}, w.got(coded))

		log := w.deliveries(parcel)
		last := log[len(log)-1]
		b := w.body(last)
		require.Nil(t, b.Data["order"])
		require.Equal(t, map[string]any{"package_id": nil, "package_ref": nil, "tracking_number": "SWIFT-1"}, b.Data["package"])
		require.Equal(t, []any{"parcel", "SWIFT-1", int64(3)}, []any{last.Event.ReferenceType, last.Event.ReferenceID, last.Event.Sequence - w.deliveries(parcel)[3].Event.Sequence + 1})
		require.Equal(t, "subscription", last.Delivery.Setting)
		require.Equal(t, o.Number, w.body(log[0]).Data["order"].(map[string]any)["tracking_number"])

		// One that is taken out gets nothing more.
		_, err := w.hooks.Unsubscribe(t.Context(), w.admin, webhook.SubscriptionRef{ID: int64(all.Subscription.ID)})
		require.NoError(t, err)
		before := len(w.got(all))
		say(swift, other.Number, "out_for_delivery")
		require.Len(t, w.got(all), before)
		_, err = w.hooks.FindSubscription(t.Context(), w.admin, webhook.SubscriptionRef{ID: int64(all.Subscription.ID)})
		require.Equal(t, "TRACKING_SUBSCRIPTION_NOT_FOUND", code(err))
	})
}

// Customers subscribe to their orders, providers to parcels that are handed to them; each sees what the
// timeline shows to it, and only while the parcel is its own.
func TestSubscriptionsOfOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		own := w.carrier(33, "own")
		own.Provider.Scope = ""
		require.NoError(t, w.db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{own.Provider}}}, nil
		}))
		w.partnerParcel(swift, 9001, "SWIFT-1")
		w.partnerParcel(own, 9002, "OWN-1")
		in := input(cloud.DeliveryOrder)
		in.Packages, in.Ref, in.Note, in.ExternalID, in.Metadata = in.Packages[:1], "secret-ref", "secret-note", "secret-shop", map[string]string{"cart": "secret-cart"}
		o, foreign := w.create(w.customer, in), w.create(w.other, input(cloud.DeliveryOrder))

		unseen := func(c cloud.Caller, numbers ...string) []string {
			t.Helper()
			_, err := w.hooks.Subscribe(t.Context(), c, webhook.SubscriptionInput{URL: subscriber, Numbers: numbers})
			var e *cloud.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []any{cloud.NotFound, "OTEP_TRACKING_NOT_FOUND"}, []any{e.Kind, e.Code})
			return e.Details["tracking_numbers"].([]string)
		}
		require.Equal(t, []string{foreign.Number, "SWIFT-1", "NONE"}, unseen(w.customer, foreign.Number, o.Number, "SWIFT-1", "NONE"))
		require.Equal(t, []string{o.Number, "SWIFT-1"}, unseen(own, o.Number, "SWIFT-1", "OWN-1"))
		require.Equal(t, []string{o.Number, "OWN-1"}, unseen(w.stranger, o.Number, "OWN-1"), "another business")
		narrow := w.admin
		narrow.Scopes = cloud.Scopes{"webhooks:write"}
		require.Equal(t, []string{o.Number}, unseen(narrow, o.Number), "what a key may not read")
		for _, c := range []cloud.Caller{w.customer, swift} {
			_, err := w.hooks.Subscribe(t.Context(), c, webhook.SubscriptionInput{URL: subscriber, All: true})
			var e *cloud.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, e.Fields, "all")
		}
		for _, c := range []cloud.Caller{w.broker, w.driver} {
			_, err := w.hooks.Subscribe(t.Context(), c, webhook.SubscriptionInput{URL: subscriber, Numbers: []string{o.Number}})
			require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", code(err))
		}

		hers := w.subscribe(w.customer, to(o.Number))
		theirs := w.subscribe(swift, to(o.Number, "SWIFT-1"))
		mine := w.subscribe(own, to("OWN-1"))
		at := time.Now()
		w.ingestAll(swift, written(said{o.Number, "a", "in_transit", at.Add(time.Second), ""}))
		w.ingestAll(swift, written(said{"SWIFT-1", "b", "in_transit", at.Add(time.Second), ""}))
		w.ingestAll(own, written(said{"OWN-1", "c", "in_transit", at.Add(time.Second), ""}))
		number := o.Packages[0].Number
		require.Equal(t, []string{"event in_transit " + number}, w.got(hers))
		require.Equal(t, []string{"event in_transit " + number, "event in_transit SWIFT-1"}, w.got(theirs))
		require.Equal(t, []string{"event in_transit OWN-1"}, w.got(mine))
		require.Equal(t, "secret-ref", w.body(w.deliveries(hers)[0]).Data["order"].(map[string]any)["order_ref"])
		sent := w.deliveries(theirs)[0]
		require.NotContains(t, string(sent.Event.Body), "secret-")
		b := w.body(sent)
		require.Nil(t, b.CustomerID)
		require.Nil(t, b.Data["order"].(map[string]any)["customer_id"])
		require.Equal(t, o.Number, b.Data["order"].(map[string]any)["tracking_number"])
		require.EqualValues(t, 31, sent.Event.ProviderID)
		require.NotEqual(t, sent.Event.EventID, w.deliveries(hers)[0].Event.EventID)

		// Each sees and ends its own, and nothing of the others.
		for name, c := range map[string]struct {
			by cloud.Caller
			of webhook.SubscriptionOutput
		}{"staff": {w.admin, hers}, "a customer": {w.other, hers}, "a rival": {rival, theirs}, "another business": {w.stranger, hers}} {
			ref := webhook.SubscriptionRef{ID: int64(c.of.Subscription.ID)}
			_, err := w.hooks.FindSubscription(t.Context(), c.by, ref)
			require.Equal(t, "TRACKING_SUBSCRIPTION_NOT_FOUND", code(err), name)
			_, err = w.hooks.Unsubscribe(t.Context(), c.by, ref)
			require.Equal(t, "TRACKING_SUBSCRIPTION_NOT_FOUND", code(err), name)
			list, err := w.hooks.ListSubscriptions(t.Context(), c.by, webhook.SubscriptionsInput{})
			require.NoError(t, err)
			require.Empty(t, list.Subscriptions, name)
		}
		list, err := w.hooks.ListSubscriptions(t.Context(), swift, webhook.SubscriptionsInput{})
		require.NoError(t, err)
		require.Equal(t, theirs.Subscription.SubscriptionRow, list.Subscriptions[0])
		found, err := w.hooks.FindSubscription(t.Context(), swift, webhook.SubscriptionRef{ID: int64(theirs.Subscription.ID)})
		require.NoError(t, err)
		require.Equal(t, webhook.SubscriptionOutput{Result: true, Subscription: theirs.Subscription}, found)
		require.Equal(t, []string{o.Number, "SWIFT-1"}, found.Subscription.Numbers)
		logs, err := w.hooks.ListLogs(t.Context(), w.customer, webhook.AccountLogInput{})
		require.NoError(t, err)
		require.Len(t, logs.Logs, 1)
		require.Equal(t, "subscription", logs.Logs[0].Level)
		of, err := w.hooks.List(t.Context(), swift, webhook.LogInput{})
		require.NoError(t, err)
		require.Len(t, of.Deliveries, 2)

		// A parcel that is another's now, and a customer that was switched off, are sent nothing.
		require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			s, err := v.ShipmentByNumber("OWN-1")
			s.ProviderID = 31
			a := w.customer.Account
			a.Enabled = false
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}, AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}}, err
		}))
		w.ingestAll(swift, written(said{o.Number, "d", "out_for_delivery", at.Add(2 * time.Second), ""}, said{"OWN-1", "e", "out_for_delivery", at.Add(2 * time.Second), ""}))
		require.Len(t, w.got(mine), 1)
		require.Len(t, w.got(hers), 1)
		require.Len(t, w.got(theirs), 3)
	})
}

// What a subscription cannot be, how many there are, and its end.
func TestSubscriptionsHaveBounds(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		o := w.single("B-1")
		good := webhook.SubscriptionInput{URL: subscriber, Numbers: []string{o.Number}}
		for member, change := range map[string]func(in *webhook.SubscriptionInput){
			"url":              func(in *webhook.SubscriptionInput) { in.URL = "" },
			"tracking_numbers": func(in *webhook.SubscriptionInput) { in.Numbers = nil },
			"secret":           func(in *webhook.SubscriptionInput) { in.Secret = "short" },
			"events":           func(in *webhook.SubscriptionInput) { in.Events = []string{"order.created"} },
			"codes":            func(in *webhook.SubscriptionInput) { in.Codes = []string{"gone"} },
			"format":           func(in *webhook.SubscriptionInput) { in.Format = "xml" },
			"signature":        func(in *webhook.SubscriptionInput) { in.Signature = "none" },
			"expires_at":       func(in *webhook.SubscriptionInput) { in.ExpiresAt = "2020-01-01" },
		} {
			in := good
			change(&in)
			err := check.Input(&in)
			if err == nil {
				_, err = w.hooks.Subscribe(ctx, w.staff, in)
			}
			var e *cloud.Error
			require.True(t, errors.As(err, &e), member)
			require.Contains(t, e.Fields, member)
		}
		in := good
		in.Numbers = make([]string, 1001)
		require.Error(t, check.Input(&in))
		in = good
		in.All = true
		_, err := w.hooks.Subscribe(ctx, w.staff, in)
		require.Equal(t, "VALIDATION_FAILED", code(err), "numbers or all")
		in = good
		in.URL = "https://inside.example.com"
		_, err = w.hooks.Subscribe(ctx, w.staff, in)
		require.Equal(t, "BLOCKED_URL", code(err))
		tool := w.staff
		tool.Surface = "mcp"
		_, err = w.hooks.Subscribe(ctx, tool, good)
		require.Equal(t, "VALIDATION_FAILED", code(err), "no person reads the secret")

		made, err := w.hooks.Subscribe(ctx, w.staff, good)
		require.NoError(t, err)
		require.Len(t, made.Secret, 43)
		require.NotEmpty(t, made.StandardSecret)
		found, err := w.hooks.FindSubscription(ctx, w.staff, webhook.SubscriptionRef{ID: int64(made.Subscription.ID)})
		require.NoError(t, err)
		require.Empty(t, found.Secret)
		require.Equal(t, made.Subscription, found.Subscription)
		e, err := w.db.FindEndpoint(ctx, made.Subscription.URLID)
		require.NoError(t, err)
		require.Equal(t, made.Secret, string(e.Secret), "it signs with its own secret")

		short := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) {
			in.Numbers, in.ExpiresAt = []string{o.Number}, time.Now().Add(time.Hour).Format(time.RFC3339)
		})
		for range 98 {
			w.subscribe(w.staff, to(o.Number))
		}
		_, err = w.hooks.Subscribe(ctx, w.admin, good)
		require.Equal(t, "SUBSCRIPTION_LIMIT_REACHED", code(err))
		hers := w.create(w.customer, input(cloud.DeliveryOrder))
		w.subscribe(w.customer, to(hers.Number))

		// Past its time it gets nothing, whether the job has removed it or not.
		require.NoError(t, w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			row, err := cloud.Find(v, cloud.Subscription{Kept: cloud.Kept[cloud.SubscriptionID]{ID: short.Subscription.ID, BusinessID: 42}})
			if err != nil {
				return nil, err
			}
			dropped := row
			row.ID += 100_000
			row.ExpiresAt = time.Now().Add(-time.Second)
			return &cloud.Changes{RowChanges: cloud.RowChanges{DroppedRows: []cloud.Row{dropped}, Rows: []cloud.Row{row, cloud.SubscribedParcel{
				Kept: cloud.Kept[cloud.SubscribedParcelID]{ID: 100_000, BusinessID: 42, CreatedAt: row.CreatedAt, UpdatedAt: row.CreatedAt}, SubscriptionID: row.ID}}}}, nil
		}))
		expired, err := w.hooks.FindSubscription(ctx, w.staff, webhook.SubscriptionRef{ID: int64(short.Subscription.ID) + 100_000})
		require.NoError(t, err)
		require.Equal(t, "expired", expired.Subscription.Status)
		w.ingestAll(w.carrier(31, "swift"), written(said{o.Number, "x", "in_transit", time.Now().Add(time.Second), ""}))
		require.Empty(t, w.got(short))
		require.Len(t, w.got(made), 1)

		// Others are those to all, and those that were made after the end of their parcels.
		swift := w.carrier(31, "swift")
		everything := w.subscribe(w.stranger, func(in *webhook.SubscriptionInput) { in.All = true })
		require.NoError(t, w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 9001, BusinessID: 42, Number: "OLD-1", ProviderID: 31, Profile: "parcel", Current: "delivered",
				LastAt: time.Now().Add(-40 * 24 * time.Hour), CreatedAt: time.Now().Add(-50 * 24 * time.Hour)}}}}, nil
		}))
		late := w.subscribe(swift, to("OLD-1"))

		// What is past its time is removed; those whose parcels go on stay.
		now := time.Now()
		require.NoError(t, w.db.EndSubscriptions(ctx, now, now.Add(-30*24*time.Hour)))
		_, err = w.hooks.FindSubscription(ctx, w.staff, webhook.SubscriptionRef{ID: int64(short.Subscription.ID) + 100_000})
		require.Equal(t, "TRACKING_SUBSCRIPTION_NOT_FOUND", code(err))
		list, err := w.hooks.ListSubscriptions(ctx, w.staff, webhook.SubscriptionsInput{})
		require.NoError(t, err)
		require.Equal(t, 99, list.Total)
		for _, x := range []struct {
			by cloud.Caller
			of webhook.SubscriptionOutput
		}{{w.stranger, everything}, {swift, late}} {
			_, err = w.hooks.FindSubscription(ctx, x.by, webhook.SubscriptionRef{ID: int64(x.of.Subscription.ID)})
			require.NoError(t, err)
		}
		w.ingestAll(swift, written(said{o.Number, "y", "delivered", time.Now().Add(2 * time.Second), ""}))
		require.NoError(t, w.db.EndSubscriptions(ctx, now, now.Add(-time.Hour)))
		list, err = w.hooks.ListSubscriptions(ctx, w.staff, webhook.SubscriptionsInput{})
		require.NoError(t, err)
		require.Equal(t, 99, list.Total, "not yet")
		require.NoError(t, w.db.EndSubscriptions(ctx, now, now.Add(time.Hour)))
		list, err = w.hooks.ListSubscriptions(ctx, w.staff, webhook.SubscriptionsInput{})
		require.NoError(t, err)
		require.Zero(t, list.Total)
		e, err = w.db.FindEndpoint(ctx, made.Subscription.URLID)
		require.NoError(t, err)
		require.False(t, e.Enabled)
		_, err = w.hooks.FindSubscription(ctx, w.stranger, webhook.SubscriptionRef{ID: int64(everything.Subscription.ID)})
		require.NoError(t, err)
		list, err = w.hooks.ListSubscriptions(ctx, w.customer, webhook.SubscriptionsInput{})
		require.NoError(t, err)
		require.Equal(t, 1, list.Total)
	})
}
