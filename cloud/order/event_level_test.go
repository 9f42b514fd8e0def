package order_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/proof"
)

// The events of a level, names only.
func (w *world) told(f cloud.AccountLog) (out []string) {
	for _, x := range w.log(f) {
		out = append(out, fmt.Sprint(x.Event.Event, " ", x.Delivery.Setting, " ", x.Delivery.CustomerID))
	}
	return out
}

// A customer's address stands in place of the business's, setting by setting;
// "none" is no endpoint; a level that is off sends nothing and stays in place.
func TestLevelsOfSettings(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		customer := w.customer.Account.ID
		make := func() []string {
			o := w.create(w.customer, input(cloud.DeliveryOrder))
			return w.told(cloud.AccountLog{ReferenceID: fmt.Sprint(o.OrderID)})
		}
		require.Empty(t, make(), "nobody is set")
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_create_webhook_url": "https://a.example.com/1, https://a.example.com/2,https://a.example.com/1"})
		require.Equal(t, []string{"order.created order_create_webhook_url 0", "order.created order_create_webhook_url 0"}, make())
		for i, x := range w.log(cloud.AccountLog{}) {
			require.Equal(t, fmt.Sprintf("%s-%d", x.Event.EventID, i+1), x.Delivery.WebhookID, "one event, an address each")
		}
		w.set(customer, map[string]any{"tracking_event_webhook_url": "https://c.example.com/"})
		require.Equal(t, []string{"order.created order_create_webhook_url 0", "order.created order_create_webhook_url 0", "tracking.event tracking_event_webhook_url 3"}, make())
		w.set(customer, map[string]any{"order_create_webhook_url": "https://c.example.com/", "enabled": false})
		require.Empty(t, make(), "off, and in place of the business's")
		w.set(customer, map[string]any{"enabled": nil})
		require.Equal(t, []string{"order.created order_create_webhook_url 3", "tracking.event tracking_event_webhook_url 3"}, make())
		w.set(customer, map[string]any{"order_create_webhook_url": "none", "tracking_event_webhook_url": ""})
		require.Empty(t, make())
		before := len(w.log(cloud.AccountLog{}))
		w.create(w.other, input(cloud.DeliveryOrder))
		w.create(w.staff, input(cloud.DeliveryOrder))
		require.Len(t, w.log(cloud.AccountLog{}), before+4, "others hear of theirs as before")
		w.set(customer, map[string]any{"order_create_webhook_url": nil})
		require.Len(t, make(), 2, "the business's again")

		// The lifecycle narrowed, by the customer for its own orders.
		w.set(0, map[string]any{"order_create_webhook_url": nil, "order_lifecycle_webhook_url": "https://a.example.com/"})
		w.set(customer, map[string]any{"order_lifecycle_events": "order.deliver*,order.cancelled"})
		o := w.create(w.customer, input(cloud.DeliveryOrder))
		_, err := w.orders.Ready(t.Context(), w.staff, order.ReasonInput{OrderID: o.OrderID})
		require.NoError(t, err)
		_, err = w.orders.Cancel(t.Context(), w.staff, order.ReasonInput{OrderID: o.OrderID})
		require.NoError(t, err)
		require.Equal(t, []string{"order.cancelled order_lifecycle_webhook_url 0"}, w.told(cloud.AccountLog{ReferenceID: fmt.Sprint(o.OrderID)}))
	})
}

// What is not stored is not sent: neither when a decision is refused, nor when
// the database refuses what it would write.
func TestNothingIsSentOfChangesThatFailed(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.listen(0)
		o := w.ref("TAKEN")
		before := w.told(cloud.AccountLog{})
		move := order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderRoutePlanned, Trigger: order.PutOnRoute, Operation: 1005}
		fails := errors.New("the power is gone")
		err := w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			ch, err := w.orders.Steps(v, cloud.Caller{}, move)
			require.NoError(t, err)
			require.Len(t, ch.Outbox, 1)
			return nil, fails
		})
		require.ErrorIs(t, err, fails)
		err = w.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			ch, err := w.orders.Steps(v, cloud.Caller{}, move)
			require.NoError(t, err)
			twin := cloud.Order{ID: 999, BusinessID: 42, Ref: "TAKEN", Number: "SR1", Type: cloud.DeliveryOrder, Status: cloud.OrderNew}
			ch.Orders = append(ch.Orders, twin) // refused by the database when the rest is written
			return ch, err
		})
		require.ErrorIs(t, err, cloud.ErrExists)
		require.Equal(t, cloud.OrderNew, w.find(o.OrderID).StatusID)
		require.Equal(t, before, w.told(cloud.AccountLog{}))
		require.Equal(t, "ORDER_STATUS_CONFLICT", code(w.orders.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderDelivered, Trigger: order.Collect})))
		require.Equal(t, before, w.told(cloud.AccountLog{}))
		// What a customer may not see was not refused to it.
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Cancel(ctx, w.other, order.ReasonInput{OrderID: o.OrderID})))
		require.Equal(t, before, w.told(cloud.AccountLog{}))
	})
}

// The end of a batch in the background is sent once, to its own address or where the
// settings say; there its orders are not sent one by one as well.
func TestBatchesAreSentOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		count := func(f cloud.AccountLog) map[string]int {
			n := map[string]int{}
			for _, x := range w.log(f) {
				n[fmt.Sprint(x.Event.Event, " ", x.Delivery.CustomerID)]++
			}
			return n
		}
		rows := 0
		batch := func(c cloud.Caller, postback string) map[string]int {
			before := count(cloud.AccountLog{})
			list := numbered(3)
			for i := range list {
				rows++
				list[i].Ref = fmt.Sprint("B-", rows)
			}
			job, err := w.orders.BatchAsync(ctx, c, order.BatchInput{Orders: list, PostbackURL: postback})
			require.NoError(t, err)
			w.run(job.AsyncID, 3)
			after := count(cloud.AccountLog{})
			for name, n := range before {
				if after[name] -= n; after[name] == 0 {
					delete(after, name)
				}
			}
			return after
		}
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.BatchAsync)(ctx, w.staff, order.BatchInput{Orders: numbered(1), PostbackURL: "https://p.example.com/"})), "unsigned")
		require.Equal(t, "BLOCKED_URL", failure(w.orders.BatchAsync(ctx, w.staff, order.BatchInput{Orders: numbered(1), PostbackURL: "https://inside.example.com/"})))
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_create_webhook_url": "https://a.example.com/"})
		require.Equal(t, map[string]int{"order.created 0": 3}, batch(w.staff, ""))
		require.Equal(t, map[string]int{"order.created 0": 3, "order.batch_processed 0": 1}, batch(w.staff, "https://p.example.com/"), "the setting's address hears nothing of the batch")
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.BatchAsync)(ctx, w.customer, order.BatchInput{Orders: numbered(1), PostbackURL: "https://p.example.com/"})), "the business's secret is not the customer's")
		w.set(w.customer.Account.ID, map[string]any{"webhook_sign_secret": hookSecret})
		require.Equal(t, map[string]int{"order.created 0": 3, "order.batch_processed 3": 1}, batch(w.customer, "https://p.example.com/"))
		w.set(0, map[string]any{"order_create_async_postback_url": "https://a.example.com/batch"})
		require.Equal(t, map[string]int{"order.batch_processed 0": 1}, batch(w.staff, ""))
		require.Equal(t, map[string]int{"order.batch_processed 0": 1, "order.created 0": 3}, batch(w.staff, "https://p.example.com/"))
		w.set(w.customer.Account.ID, map[string]any{"order_create_webhook_url": "https://c.example.com/"})
		require.Equal(t, map[string]int{"order.batch_processed 0": 1, "order.created 3": 3}, batch(w.customer, ""), "not the same recipient")
		// Only another batch with the same address ends the pause of a batch's own address.
		paused := func() (n int) {
			var all []cloud.Endpoint
			require.NoError(t, w.db.Look(ctx, func(v cloud.View) (err error) {
				all, err = v.AccountEndpoints(42)
				return err
			}))
			for _, e := range all {
				if e.Kind == cloud.PostbackEndpoint && e.CustomerID == 0 {
					if e.Status == "paused" {
						n++
					} else {
						require.NoError(t, w.db.SetEndpointStatus(ctx, e.ID, "paused", cloud.PausedByRule, time.Now()))
					}
				}
			}
			return n
		}
		require.Zero(t, paused())
		require.Equal(t, 1, paused())
		batch(w.staff, "https://p.example.com/")
		require.Zero(t, paused())
		w.create(w.staff, in2("ALONE"))
		names, _ := w.heard(w.ref("ALONE-2").OrderID)
		require.Equal(t, []string{"order.created"}, names, "no batch")

		// A batch whose results are too long for a body is sent in parts, each row once.
		// Each row is refused for as many packages as an answer names, so that few do.
		list := numbered(120)
		for i := range list {
			list[i].Ref = fmt.Sprint("LONG-", i)
			list[i].Packages = slices.Repeat([]order.PackageInput{{Weight: -1}}, 90)
		}
		job, err := w.orders.BatchAsync(ctx, w.staff, order.BatchInput{Orders: list})
		require.NoError(t, err)
		w.run(job.AsyncID, 1)
		ended := w.log(cloud.AccountLog{ReferenceID: job.AsyncID})
		require.Greater(t, len(ended), 1)
		told := map[float64]int{}
		for _, x := range ended {
			b := w.body(x)
			require.Equal(t, fmt.Sprintf("OBP-%s-%v", job.AsyncID, b.Data["part"]), b.EventID)
			require.Equal(t, []any{float64(len(list)), float64(len(ended)), "https://acme.example/api/v1/client/async/" + job.AsyncID},
				[]any{b.Data["failed"], b.Data["parts"], b.Data["results_url"]})
			for _, row := range b.Data["results"].([]any) {
				told[row.(map[string]any)["row"].(float64)]++
			}
		}
		require.Len(t, told, len(list))
		for row, n := range told {
			require.Equal(t, 1, n, "row %v", row)
		}
	})
}

// A driver who comes in place of another causes an event whatever the status says.
func TestDriversWhoComeAndGo(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_lifecycle_webhook_url": "https://a.example.com/"})
		o := w.create(w.staff, input(cloud.DeliveryOrder)).OrderID
		seen := 0
		drive := func(to cloud.OrderStatus, by order.Trigger, driver cloud.AccountID) (told []string) {
			t.Helper()
			require.NoError(t, w.orders.Move(t.Context(), w.staff, order.MoveInput{BusinessID: 42, OrderID: o, To: to, Trigger: by, Operation: 3010,
				Set: func(o *cloud.Order) { o.DriverID = driver }}))
			all := w.log(cloud.AccountLog{})
			for _, x := range all[seen:] {
				d := w.body(x).Data
				id := any(nil)
				if who, ok := d["driver"].(map[string]any); ok {
					id = who["driver_id"]
				}
				told = append(told, fmt.Sprint(x.Event.Event, " ", id, " ", d["previous_driver_id"], " ", d["source"], " ", d["reason"]))
			}
			seen = len(all)
			return told
		}
		require.Equal(t, []string{"order.driver_assigned 6 <nil> manual <nil>"}, drive(cloud.OrderDriverAssigned, order.AssignDriver, 6))
		require.Equal(t, []string{"order.driver_unassigned 8 6 staff handover", "order.driver_assigned 8 6 manual <nil>"}, drive(0, "", 8))
		require.Empty(t, drive(0, "", 8))
		require.Equal(t, []string{"order.driver_unassigned <nil> 8 staff revoked"}, drive(cloud.OrderNew, order.TakeOffRoute, 0))
		require.Equal(t, []string{"order.driver_assigned 6 <nil> manual <nil>"}, drive(cloud.OrderRoutePlanned, order.PutOnRoute, 6))
	})
}

// A move and a change of settings do not cross: once an answer says that an
// address was taken out, nothing is sent there later.
func TestSettingsStayForADecision(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_status_change_webhook_url": "https://a.example.com/"})
		o := w.create(w.staff, input(cloud.DeliveryOrder)).OrderID
		read, goOn, saved := make(chan struct{}), make(chan struct{}), make(chan struct{})
		moved := make(chan error, 1)
		go func() {
			first := true
			moved <- w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
				ch, err := w.orders.Steps(v, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o, To: cloud.OrderRoutePlanned, Trigger: order.PutOnRoute, Operation: 1005})
				if err == nil && first { // ids may have to be leased first
					first = false
					close(read)
					<-goOn
				}
				return ch, err
			})
		}()
		<-read
		go func() {
			defer close(saved)
			w.set(0, map[string]any{"order_status_change_webhook_url": nil})
		}()
		select {
		case <-saved:
			t.Error("settings changed while a decision used them")
		case <-time.After(200 * time.Millisecond):
		}
		close(goOn)
		require.NoError(t, <-moved)
		<-saved
		require.Equal(t, []string{"order.status_change order_status_change_webhook_url 0"}, w.told(cloud.AccountLog{}))
		w.move(o, cloud.OrderOutForDelivery, order.StartDelivery)
		require.Len(t, w.told(cloud.AccountLog{}), 1)
	})
}

// A customer's level that had addresses before levels had secrets of their own is
// signed for by the business's until it is given one, which begins with an
// overlap. It is not given one by any other change.
func TestLevelsGetTheirOwnSecretByARotation(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		customer := w.customer.Account.ID
		level := func() (s cloud.WebhookSettings) {
			require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) (err error) { s, err = v.WebhookSettings(42, customer); return err }))
			return s
		}
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "order_create_webhook_url": "https://a.example.com/"})
		made := w.set(customer, map[string]any{"order_create_webhook_url": "https://c.example.com/"})
		require.Equal(t, made.Generated, string(level().Secret))
		old := level()
		old.Secret = nil // as it was stored before
		require.NoError(t, w.db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{old}}}, nil
		}))
		out := w.set(customer, map[string]any{"order_status_change_webhook_url": "https://c.example.com/"})
		require.Empty(t, out.Generated)
		require.Empty(t, level().Secret, "no change but a rotation gives it one")
		w.set(customer, map[string]any{"webhook_sign_secret_next": "own-secret-0123456789abcdef"})
		require.Equal(t, []string{hookSecret, "own-secret-0123456789abcdef"}, []string{string(level().Secret), string(level().SecretNext)})
		require.WithinDuration(t, time.Now().Add(24*time.Hour), level().NextUntil, time.Minute)
	})
}

// A file in place of another is one event, updated, with the new file alone; what was
// replaced is never sent again. Both settings of files get it.
func TestReplacedFilesAreSentAsUpdated(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.set(0, map[string]any{"webhook_sign_secret": hookSecret, "tracking_event_webhook_url": "https://a.example.com/", "pod_files_webhook_url": "https://b.example.com/"})
		o := w.ref("PO-1").OrderID
		attach := func(replaces int64) order.FileBody {
			out, err := proof.New(w.orders, w.files).Attach(t.Context(), w.staff, proof.AttachInput{OrderID: o, Type: "photo", File: photo(), Service: 1, Result: 1, Replaces: replaces})
			require.NoError(t, err)
			return out.File
		}
		first := attach(0)
		before := len(w.log(cloud.AccountLog{}))
		second := attach(first.FileID)
		sent := w.log(cloud.AccountLog{})[before:]
		var settings []string
		for _, x := range sent {
			settings = append(settings, x.Event.Event+" "+x.Delivery.Setting)
			data := w.body(x).Data
			require.Equal(t, "updated", data["action"])
			require.EqualValues(t, second.FileID, data["file"].(map[string]any)["file_id"])
			require.Len(t, data["proof_files"], 1)
			require.Len(t, data["proof_files_detail"], 1)
			require.NotContains(t, string(x.Event.Body), first.URL)
		}
		require.ElementsMatch(t, []string{"pod.files_updated tracking_event_webhook_url", "pod.files_updated pod_files_webhook_url"}, settings)
	})
}
