package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/tracking"
)

// takeBack has a provider take back an event.
func (w *world) takeBack(c cloud.Caller, number, id string) {
	w.t.Helper()
	body := fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[],"withdrawals":[{"event_id":%q,"reason":"did_not_occur"}]}`, number, id)
	_, err := tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).Ingest(w.t.Context(), c, tracking.IngestInput{Body: []byte(body)})
	require.NoError(w.t, err)
}

// tracked are the events of timelines that were sent about an order: the event, its level and the code.
func (w *world) tracked(id cloud.OrderID) (out []string) {
	w.t.Helper()
	for _, x := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(id)}) {
		if x.Delivery.Setting == cloud.HookTrackingEvent {
			out = append(out, fmt.Sprint(x.Event.Event, " ", x.Delivery.CustomerID, " ", w.body(x).Data["tracking_event_key"]))
		}
	}
	return out
}

// An event that is taken back is sent where a level asks for it, once, and nowhere else. A report was
// sent to no receiver, and so its end is sent to none.
func TestWithdrawnEventIsSentWhereItIsAskedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		at, n := time.Now(), 0
		say := func(c cloud.Caller, o order.OrderBody, code string) string {
			at, n = at.Add(time.Second), n+1
			id := fmt.Sprint("e-", n)
			w.ingest(c, said{o.Number, id, code, at, ""})
			return id
		}
		w.listen(0)
		w.set(0, map[string]any{"tracking_events": nil})
		usual := w.single("W-1")
		w.takeBack(swift, usual.Number, say(swift, usual, "in_transit"))
		require.Equal(t, []string{"tracking.event 0 information_submitted", "tracking.event 0 in_transit"}, w.tracked(usual.OrderID), "as before")

		set := w.set(0, map[string]any{"tracking_events": "tracking.event_withdrawn,tracking.event"})
		require.Equal(t, "tracking.event_withdrawn,tracking.event", *set.Settings.TrackingEvents)
		require.Equal(t, "business", set.Effective["tracking_events"])
		o := w.single("W-2")
		id := say(swift, o, "in_transit")
		w.takeBack(rival, o.Number, say(rival, o, "delivered"))
		w.takeBack(swift, o.Number, id)
		w.takeBack(swift, o.Number, id)
		require.Equal(t, []string{"tracking.event 0 information_submitted", "tracking.event 0 in_transit", "tracking.event_withdrawn 0 in_transit"}, w.tracked(o.OrderID))
		log := w.log(cloud.AccountLog{Event: "tracking.event_withdrawn"})
		require.Len(t, log, 1)
		sent := w.body(log[0])
		require.Regexp(t, `^TRC-\d+$`, sent.EventID)
		gone := sent.Data["withdrawn"].(map[string]any)
		require.Equal(t, []any{id, "did_not_occur", "swift", nil}, []any{gone["event_id"], gone["reason"], gone["by"], gone["corrected_by"]})
		require.NotEmpty(t, gone["at"])
		require.Equal(t, o.Number, sent.Data["order"].(map[string]any)["tracking_number"])
		require.Equal(t, o.Packages[0].Number, sent.Data["package"].(map[string]any)["tracking_number"])

		// One event in the place of another, and one whose time has not come: that was not sent, and its end is not.
		body := fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[{"event_id":"new","corrects":%q,"status_code":"arrival_scan","occurred_at":%q,"source":{"type":"carrier"}}]}`,
			o.Number, say(swift, o, "in_transit"), at.Add(time.Millisecond).Format(time.RFC3339Nano))
		_, err := tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).Ingest(t.Context(), swift, tracking.IngestInput{Body: []byte(body)})
		require.NoError(t, err)
		w.ingest(swift, said{o.Number, "ahead", "out_for_delivery", time.Now().Add(2 * time.Hour), ""})
		w.takeBack(swift, o.Number, "ahead")
		require.Equal(t, []string{"tracking.event 0 in_transit", "tracking.event_withdrawn 0 in_transit", "tracking.event 0 arrival_scan"}, w.tracked(o.OrderID)[3:])
		log = w.log(cloud.AccountLog{Event: "tracking.event_withdrawn"})
		require.Equal(t, "new", w.body(log[1]).Data["withdrawn"].(map[string]any)["corrected_by"])

		// A customer has a list of its own for its orders, at its address or the business's.
		w.set(w.customer.Account.ID, map[string]any{"tracking_events": "tracking.event_*"})
		in := input(cloud.DeliveryOrder)
		in.Packages = in.Packages[:1]
		hers := w.create(w.customer, in)
		w.takeBack(swift, hers.Number, say(swift, hers, "in_transit"))
		require.Equal(t, []string{"tracking.event_withdrawn 0 in_transit"}, w.tracked(hers.OrderID))
		set = w.set(w.customer.Account.ID, map[string]any{"tracking_events": ""})
		require.Nil(t, set.Settings.TrackingEvents)
		require.Equal(t, "business", set.Effective["tracking_events"])
	})
}
