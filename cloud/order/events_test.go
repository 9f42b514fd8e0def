package order_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/proof"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
)

var update = flag.Bool("update", false, "rewrite the golden events")

// open is a guard that takes every address but those inside.
type open struct{}

func (open) CheckURL(_ context.Context, url string) error {
	if strings.Contains(url, "inside") {
		return errors.New("it leads inside")
	}
	return nil
}

const hookSecret = "0123456789abcdef0123456789abcdef"

// set changes the settings of the business, or of a customer.
func (w *world) set(customer cloud.AccountID, members map[string]any) webhook.SettingsOutput {
	w.t.Helper()
	raw, err := json.Marshal(members)
	require.NoError(w.t, err)
	var in webhook.SettingsInput
	require.NoError(w.t, json.Unmarshal(raw, &in))
	in.CustomerID = customer
	out, err := w.hooks.SaveSettings(w.t.Context(), w.admin, in)
	require.NoError(w.t, err)
	return out
}

// listen has everything sent to a level.
func (w *world) listen(customer cloud.AccountID) {
	w.t.Helper()
	all := map[string]any{"webhook_sign_secret": hookSecret}
	for _, s := range cloud.HookSettings() {
		if customer != 0 && s == cloud.HookDriverPlace {
			continue // the business's own
		}
		all[s] = fmt.Sprintf("https://%d.example.com/hook", customer)
	}
	all["tracking_events"] = "tracking.*,pod.files_updated"
	w.set(customer, all)
}

// log is what was sent, oldest first.
func (w *world) log(f cloud.AccountLog) []cloud.OutboxWork {
	w.t.Helper()
	f.BusinessID, f.Limit = 42, 10_000
	listed, rows, err := w.db.ListAccountOutbox(w.t.Context(), f)
	require.NoError(w.t, err)
	require.Len(w.t, rows, listed.Total)
	var out []cloud.OutboxWork
	for _, r := range slices.Backward(rows) {
		x, err := w.db.FindOutbox(w.t.Context(), r.Delivery.ID)
		require.NoError(w.t, err)
		out = append(out, x)
	}
	return out
}

// body is an event as it was sent.
type body struct {
	EventID    string         `json:"event_id"`
	Event      string         `json:"event"`
	CustomerID *int           `json:"customer_id"`
	Data       map[string]any `json:"data"`
}

func (w *world) body(x cloud.OutboxWork) (b body) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal(x.Event.Body, &b))
	require.Equal(w.t, x.Event.EventID, b.EventID)
	require.Equal(w.t, x.Event.Event, b.Event)
	return b
}

// The events that were sent of an order: their names, and apart from them the
// codes of its timeline.
func (w *world) heard(id cloud.OrderID) (names []string, codes string) {
	w.t.Helper()
	type at struct {
		code string
	}
	var told []at
	for _, x := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(id)}) {
		if x.Event.Event != "tracking.event" {
			names = append(names, x.Event.Event)
			continue
		}
		told = append(told, at{code: w.body(x).Data["tracking_event_key"].(string)})
	}
	var list []string
	for _, x := range told {
		list = append(list, x.code)
	}
	return names, strings.Join(list, " ")
}

// story does with orders of the customer what makes every event there is, and
// gives one of each.
func (w *world) story() map[string]cloud.OutboxWork {
	ctx, t := w.t.Context(), w.t
	w.driver.Account.Name = "Sam Lee"
	step := func(c cloud.Caller, id cloud.OrderID, to cloud.OrderStatus, by order.Trigger, set func(*cloud.Order)) {
		t.Helper()
		require.NoError(t, w.orders.Move(ctx, c, order.MoveInput{BusinessID: 42, OrderID: id, To: to, Trigger: by, Operation: 2006, Note: "a word", Set: set}))
	}
	w.files.names = true
	driver := func(id cloud.AccountID) func(*cloud.Order) {
		return func(o *cloud.Order) { o.DriverID, o.DriverName, o.RouteID = id, "Sam Lee", int64(id) }
	}
	in := input(cloud.PointToPoint)
	in.Ref, in.ExternalID, in.Metadata, in.Note, in.WindowStart, in.WindowEnd = "PO-7781", "shop-99812", map[string]string{"cart": "<c-88>"}, "fragile", "13:00", "17:00"
	in.ScheduledDate = "2099-11-21"
	in.CustomerID = w.customer.Account.ID
	o := w.create(w.staff, in).OrderID
	_, err := w.orders.Ready(ctx, w.staff, order.ReasonInput{OrderID: o})
	require.NoError(t, err)
	step(w.staff, o, cloud.OrderDriverAssigned, order.AssignDriver, driver(6))
	step(w.driver, o, cloud.OrderDriverAccepted, order.DriverAccepts, nil)
	step(w.driver, o, cloud.OrderReady, order.DriverDeclines, driver(0))
	step(w.staff, o, cloud.OrderDriverAssigned, order.AssignDriver, driver(6))
	step(w.driver, o, cloud.OrderOutForPickup, order.StartPickup, nil)
	attach := func(kind string, service, result int) int64 {
		out, err := proof.New(w.orders, w.files).Attach(ctx, w.staff, proof.AttachInput{OrderID: o, Type: kind, File: photo(), Service: service, Result: result,
			CapturedAt: "2026-11-20T18:11:40-05:00", Latitude: new(float64), Longitude: new(float64)})
		require.NoError(t, err)
		return out.File.FileID
	}
	attach("photo", 2, 1)
	step(w.driver, o, cloud.OrderPickedUp, order.PickupResult, nil)
	step(w.driver, o, cloud.OrderOutForDelivery, order.RunDirect, nil)
	_, err = w.orders.Cancel(ctx, w.customer, order.ReasonInput{OrderID: o})
	require.Equal(t, "ORDER_NOT_CANCELLABLE", code(err))
	attach("photo", 1, 2)
	step(w.driver, o, cloud.OrderDeliveryFailed, order.DeliveryResult, nil)
	stop := w.intercept(w.customer, interception.InterceptInput{OrderID: o, Outcome: "redeliver", Reason: "Fraud check"}).ID
	_, err = interception.New(w.orders).Withdraw(ctx, w.customer, interception.StopInput{ID: stop})
	require.NoError(t, err)
	w.rules(cloud.Rules{InterceptionReview: true})
	stop = w.intercept(w.customer, interception.InterceptInput{OrderID: o, Outcome: "redeliver"}).ID
	_, err = interception.New(w.orders).Reject(ctx, w.staff, interception.StopInput{ID: stop, Reason: "Too late"})
	require.NoError(t, err)
	stop = w.intercept(w.staff, interception.InterceptInput{OrderID: o, Outcome: "redeliver"}).ID
	_, err = interception.New(w.orders).Fail(ctx, w.staff, interception.FailInput{ID: stop, Reason: "delivered_before_notice"})
	require.NoError(t, err)
	stop = w.intercept(w.staff, interception.InterceptInput{OrderID: o, Outcome: "redeliver", Reason: "Fraud check"}).ID
	_, err = interception.New(w.orders).Held(ctx, w.staff, interception.StopInput{ID: stop})
	require.NoError(t, err)
	_, err = interception.New(w.orders).Execute(ctx, w.staff, interception.StopInput{ID: stop})
	require.NoError(t, err)
	step(w.staff, o, cloud.OrderDriverAssigned, order.AssignDriver, driver(6))
	step(w.driver, o, cloud.OrderOutForDelivery, order.StartDelivery, nil)
	attach("photo", 1, 1)
	attach("signature", 1, 1)
	step(w.driver, o, cloud.OrderDelivered, order.DeliveryResult, nil)
	_, err = proof.New(w.orders, w.files).Detach(ctx, w.staff, proof.DetachInput{OrderID: o, FileID: attach("photo", 1, 1)})
	require.NoError(t, err)
	gone := w.create(w.customer, in2("PO-7782")).OrderID
	_, err = w.orders.Cancel(ctx, w.customer, order.ReasonInput{OrderID: gone, Reason: "customer_request"})
	require.NoError(t, err)
	_, err = w.orders.Delete(ctx, w.admin, order.OrderRef{OrderID: gone})
	require.NoError(t, err)
	list := numbered(2)
	list[1].Packages = nil
	job, err := w.orders.BatchAsync(ctx, w.customer, order.BatchInput{Orders: list})
	require.NoError(t, err)
	w.run(job.AsyncID, 1)
	swift := w.carrier(31, "swift")
	back := in2("PO-7783")
	back.Packages = back.Packages[:1]
	taken := w.create(w.customer, back)
	w.ingest(swift, said{taken.Number, "swift-1", "booking_confirmed", time.Now().Add(time.Second), ""})
	_, err = w.parcels().Dispute(ctx, w.customer, tracking.DisputeInput{Number: taken.Number, EventID: "swift-1", Kind: "other", Note: "not yet"})
	require.NoError(t, err)
	w.takeBack(swift, taken.Number, "swift-1")
	last := map[string]cloud.OutboxWork{}
	for _, x := range w.log(cloud.AccountLog{}) {
		if b := w.body(x); x.Event.Event == "pod.files_updated" && b.Data["action"] != "added" {
			last["pod.files_updated removed"] = x
			continue
		} else if x.Event.Event == "tracking.event" && b.Data["tracking_event_key"] != "delivered" {
			continue // the one with proof
		}
		last[x.Event.Event] = x
		if x.Event.Event == "order.created" && last["first order.created"].Event.Event == "" {
			last["first order.created"] = x
		}
	}
	last["order.created"] = last["first order.created"]
	delete(last, "first order.created")
	return last
}

func in2(ref string) order.CreateInput {
	in := input(cloud.DeliveryOrder)
	in.Ref = ref
	return in
}

// Bodies as they go out, but for times and random ids.
func TestGoldenEvents(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		order.SetNumber(w.orders, storetest.OldNumber)
		w.listen(0)
		w.listen(w.customer.Account.ID)
		times := regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)"`)
		until := regexp.MustCompile(`until=\d{4}-\d\d-\d\d`)
		random := regexp.MustCompile(`bat_[0-9a-f]{32}`)
		millis := regexp.MustCompile(`("occurred_at_ms": )\d+`)
		numbers := regexp.MustCompile(`("event_id": "(?:OSC|OCF|TRE|TRC|PFU|OIE|OLE)-|"tracking_event_id": )\d+`)
		for name, x := range w.story() {
			require.Equal(t, w.customer.Account.ID, x.Delivery.CustomerID, "the customer's own address has the event")
			require.Equal(t, 6, x.Delivery.MaxAttempts)
			require.NotContains(t, string(x.Event.Body), `\u003c`, "nothing is escaped that need not be")
			require.NotContains(t, string(x.Event.Body), "fragile", "notes are for staff")
			var b bytes.Buffer
			require.NoError(t, json.Indent(&b, x.Event.Body, "", "  "))
			got := millis.ReplaceAllString(times.ReplaceAllString(b.String(), `"<time>"`), `$1<ms>`)
			got = until.ReplaceAllString(got, "until=<date>")
			got = numbers.ReplaceAllString(random.ReplaceAllString(got, "bat_<id>"), `$1<n>`)
			file := filepath.Join("testdata", "events", strings.ReplaceAll(name, " ", "_")+".json")
			if *update && t.Name() == "TestGoldenEvents/SQLite" {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got+"\n", name)
		}
	})
}

// found reads a list of the interface.
func found(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../docs/interface", name))
	require.NoError(t, err)
	return b
}

// alike compares names and types of members with an example; either may be null
// where the other is not.
func alike(t *testing.T, path string, want, got any) {
	t.Helper()
	if want == nil || got == nil || strings.HasSuffix(path, ".metadata") || strings.HasSuffix(path, ".errors") {
		return
	}
	require.IsType(t, want, got, path)
	switch x := want.(type) {
	case map[string]any:
		g := got.(map[string]any)
		for _, price := range []string{"shipping_price", "tax", "total_price", "currency", "price_details"} {
			if _, ok := g[price]; !ok && path == "order.created.data" {
				delete(x, price) // no order has one when it is made
			}
		}
		require.Equal(t, slices.Sorted(maps.Keys(x)), slices.Sorted(maps.Keys(g)), path)
		for name := range x {
			alike(t, path+"."+name, x[name], g[name])
		}
	case []any:
		for i, item := range got.([]any) {
			if len(x) > 0 {
				alike(t, fmt.Sprint(path, ".", i), x[min(i, len(x)-1)], item)
			}
		}
	}
}

func TestEventsHaveTheMembersOfTheDescription(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		var examples struct {
			Events []struct {
				Channel, Event string
				Reference      string `json:"reference_type"`
				Body           map[string]any
			}
		}
		require.NoError(t, json.Unmarshal(found(t, "webhook-examples.json"), &examples))
		w.listen(0)
		told := w.story()
		seen := 0
		for _, x := range examples.Events {
			if x.Channel != "account" || !regexp.MustCompile(`^(order|tracking|pod|order_intercept)\.`).MatchString(x.Event) {
				continue
			}
			got, ok := told[x.Event]
			require.True(t, ok, "%s is told", x.Event)
			require.Equal(t, x.Reference, got.Event.ReferenceType, x.Event)
			prefix, _, _ := strings.Cut(x.Body["event_id"].(string), "-")
			require.True(t, strings.HasPrefix(got.Event.EventID, prefix+"-"), "%s of %s", got.Event.EventID, x.Event)
			var body map[string]any
			require.NoError(t, json.Unmarshal(got.Event.Body, &body))
			alike(t, x.Event, x.Body, body)
			seen++
		}
		require.GreaterOrEqual(t, seen, 26)
		require.Contains(t, string(told["order.created"].Event.Body), "fragile", "the business sees notes")
		proofs := map[string]int{}
		for _, x := range w.log(cloud.AccountLog{}) {
			if d := w.body(x).Data; x.Event.Event == "tracking.event" {
				proofs[d["tracking_event_key"].(string)] = len(d["proof_files"].([]any))
			}
		}
		maps.DeleteFunc(proofs, func(_ string, n int) bool { return n == 0 })
		require.Equal(t, map[string]int{"picked_up": 1, "delivery_failed": 1, "delivered": 1}, proofs, "of a pickup, of a failure and of a delivery")
		data := w.body(told["tracking.event"]).Data
		require.NotEmpty(t, data["proof_files_detail"])
		for _, f := range data["proof_files_detail"].([]any) {
			require.Equal(t, data["tracking_event_id"], f.(map[string]any)["tracking_event_id"], "a file names the event that it goes with")
		}
	})
}
