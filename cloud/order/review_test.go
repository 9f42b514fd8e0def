package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
)

func (w *world) parcels() *tracking.Service {
	return tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).SendParcels(order.ParcelsOf(w.orders))
}

// openReviews are those that wait for a decision.
func (w *world) openReviews(c cloud.Caller) []tracking.ReviewBody {
	w.t.Helper()
	out, err := tracking.Desk{Service: w.parcels()}.Reviews(w.t.Context(), c, tracking.ReviewsInput{Status: "open"})
	require.NoError(w.t, err)
	return out.Reviews
}

func (w *world) decide(c cloud.Caller, id cloud.ReviewID, action, at string) string {
	return failure(tracking.Desk{Service: w.parcels()}.Decide(w.t.Context(), c, tracking.DecideInput{ID: id, Action: action, OccurredAt: at}))
}

func outcome(out tracking.IngestOutput) string { return out.Timelines[0].Events[0].Outcome }

// Events far ahead and far back wait for staff, each once, and are nowhere until then.
func TestStrangeTimesWaitForStaff(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("R-1")
		times := []time.Time{time.Date(2062, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(49 * time.Hour), time.Now().AddDate(-2, 0, -3)}
		for i, at := range times {
			x := said{o.Number, fmt.Sprint("s", i), "delivered", at, ""}
			require.Equal(t, "quarantined", outcome(w.ingest(swift, x)))
			require.Equal(t, "quarantined", outcome(w.ingest(swift, x)), "once more")
		}
		list := w.openReviews(w.staff)
		require.Len(t, list, 4)
		require.Equal(t, []cloud.ReviewKind{"past", "future", "past", "future"}, []cloud.ReviewKind{list[0].Kind, list[1].Kind, list[2].Kind, list[3].Kind})
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted", codes)
		require.Equal(t, 1, int(w.find(o.OrderID).StatusID))
		require.Empty(t, w.openReviews(w.stranger), "another business has none")
		require.Equal(t, "REVIEW_NOT_FOUND", w.decide(w.stranger, list[0].ID, "accept", ""))

		require.Equal(t, "REVIEW_ACTION_NOT_ALLOWED", w.decide(w.staff, list[0].ID, "withdraw", ""))
		require.Equal(t, "VALIDATION_FAILED", w.decide(w.staff, list[0].ID, "accept_at", ""))
		require.Equal(t, "VALIDATION_FAILED", w.decide(w.staff, list[0].ID, "accept", time.Now().Format(time.RFC3339)))
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "accept", ""))
		require.Equal(t, "REVIEW_ALREADY_DECIDED", w.decide(w.staff, list[0].ID, "reject", ""))
		codes, _, _ = w.shown(o.Number)
		require.Equal(t, "delivered information_submitted", codes, "it was two years ago")
		require.Equal(t, 1, int(w.find(o.OrderID).StatusID), "a late event moves nothing")

		require.Equal(t, "<nil>", w.decide(w.staff, list[1].ID, "reject", ""))
		_, err := w.parcels().Ingest(t.Context(), swift, tracking.IngestInput{Body: written(said{o.Number, "s2", "delivered", times[2], ""})})
		require.Equal(t, "OTEP_NOT_CONFORMANT", code(err), "staff have seen it")
		require.Equal(t, "<nil>", w.decide(w.staff, list[3].ID, "accept_at", time.Now().Add(2*time.Second).Format(time.RFC3339Nano)))
		require.Equal(t, 41, int(w.find(o.OrderID).StatusID), "the goods were delivered a moment ago")
		got, err := tracking.Desk{Service: w.parcels()}.Review(t.Context(), w.staff, collection.ByID[cloud.Review]{ID: int64(list[3].ID)})
		require.NoError(t, err)
		require.Equal(t, "decided", string(got.Review.Status))
		require.Empty(t, got.Review.Actions)
	})
}

// What a provider sends again with other content waits for staff, who choose between both.
func TestConflictsWaitForStaff(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		at := time.Now().Add(time.Second)
		for _, action := range []string{"override", "dismiss"} {
			o := w.single("X-" + action)
			w.ingest(swift, said{o.Number, "e", "in_transit", at, ""})
			_, err := w.parcels().Ingest(t.Context(), swift, tracking.IngestInput{Body: written(said{o.Number, "e", "out_for_delivery", at, ""})})
			require.Equal(t, "OTEP_EVENT_CONFLICT", code(err))
			list := w.openReviews(w.staff)
			require.Len(t, list, 1)
			require.Equal(t, cloud.ReviewConflict, list[0].Kind)
			require.Contains(t, string(list[0].Event), "out_for_delivery")
			require.NotContains(t, string(list[0].Event), "0001-01-01", "it is not recorded yet")
			require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, action, ""))
			codes, _, _ := w.shown(o.Number)
			if action == "override" {
				require.Equal(t, "information_submitted out_for_delivery", codes)
				require.Equal(t, 40, int(w.find(o.OrderID).StatusID))
			} else {
				require.Equal(t, "information_submitted in_transit", codes)
				require.Equal(t, 32, int(w.find(o.OrderID).StatusID))
			}
		}
	})
}

// The recipient disputes a delivery; staff take it back, and the order leaves its end by a decision alone.
func TestDisputedDeliveryIsTakenBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		w.listen(0)
		w.set(0, map[string]any{"tracking_events": nil})
		o := w.single("D-1")
		disputed := []string{cloud.HookEventDisputed}
		ours := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) { in.Numbers, in.Events = []string{o.Number}, disputed })
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "out_for_delivery", at.Add(time.Second), ""})
		w.ingest(swift, said{o.Number, "b", "delivered", at.Add(2 * time.Second), ""})
		dispute := func(c cloud.Caller, verify, event string) string {
			return failure(w.parcels().Dispute(t.Context(), c, tracking.DisputeInput{Number: o.Number, Verify: verify, EventID: event, Kind: "not_received", Note: "the locker was empty"}))
		}
		require.Equal(t, "OTEP_CREDENTIALS_REQUIRED", dispute(cloud.Caller{}, "", "b"), "a number alone proves nothing")
		require.Equal(t, "OTEP_CREDENTIALS_REQUIRED", dispute(cloud.Caller{}, "9999", "b"))
		require.Equal(t, "OTEP_INVALID_REQUEST", dispute(cloud.Caller{}, "0123", "nothing"))
		theirs := w.subscribe(swift, func(in *webhook.SubscriptionInput) { in.Numbers, in.Events = []string{o.Number}, disputed })
		require.Equal(t, "<nil>", dispute(cloud.Caller{}, "0123", "b"))
		require.Equal(t, "<nil>", dispute(cloud.Caller{}, "0123", "b"), "once more")
		require.NotContains(t, fmt.Sprint(w.tracked(o.OrderID)), "disputed", "it is not named")
		for s, note := range map[cloud.SubscriptionID]any{ours.Subscription.ID: "the locker was empty", theirs.Subscription.ID: nil} {
			out := ours
			if s == theirs.Subscription.ID {
				out = theirs
			}
			sent := w.deliveries(out)
			require.Len(t, sent, 1)
			b := w.body(sent[0])
			require.Regexp(t, `^TRC-\d+$`, b.EventID)
			require.Equal(t, "delivered", b.Data["tracking_event_key"])
			x := b.Data["dispute"].(map[string]any)
			require.Equal(t, []any{"b", "not_received", note, "recipient", float64(w.openReviews(w.staff)[0].ID)}, []any{x["event_id"], x["kind"], x["note"], x["by"], x["review_id"]})
		}
		w.set(0, map[string]any{"tracking_events": "tracking.disputed"})
		require.Equal(t, "<nil>", dispute(w.staff, "", "a"))
		require.Equal(t, "tracking.disputed 0 out_for_delivery", w.tracked(o.OrderID)[len(w.tracked(o.OrderID))-1])
		require.Equal(t, "<nil>", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "dismiss", ""))

		w.partnerParcel(swift, 7001, "PARTNER-1") // without an order
		all := w.subscribe(swift, func(in *webhook.SubscriptionInput) { in.Numbers, in.Events = []string{"PARTNER-1"}, disputed })
		w.ingestAll(swift, written(said{"PARTNER-1", "p-1", "in_transit", at, ""}))
		require.NoError(t, func() error {
			_, err := w.parcels().Dispute(t.Context(), w.staff, tracking.DisputeInput{Number: "PARTNER-1", EventID: "p-1", Kind: "other", Note: "a secret"})
			return err
		}())
		require.Equal(t, []string{"disputed in_transit PARTNER-1"}, w.got(all))
		require.NotContains(t, string(w.deliveries(all)[0].Event.Body), "a secret")
		require.Equal(t, "<nil>", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "dismiss", ""))
		list := w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.Equal(t, "the locker was empty", *list[0].Note)
		require.Equal(t, 41, int(w.find(o.OrderID).StatusID), "it stays")

		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "withdraw", ""))
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted out_for_delivery", codes)
		require.Equal(t, 41, int(w.find(o.OrderID).StatusID), "an end is left by a decision alone")
		list = w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.Equal(t, cloud.ReviewDisagrees, list[0].Kind)
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "override", ""))
		got := w.find(o.OrderID)
		require.Equal(t, 40, int(got.StatusID))
		require.Equal(t, cloud.OrderPackageOutForDelivery, got.Packages[0].Status)
		require.Equal(t, "41 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "c", "delivered", at.Add(3 * time.Second), ""})), "it goes on from there")
	})
}

// A carrier that cancels does not cancel the order: staff do.
func TestCarrierCancelsByReview(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		at := time.Now()
		for action, want := range map[string]int{"accept": 50, "dismiss": 32} {
			o := w.single("CC-" + action)
			w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})
			require.Equal(t, "32 no_rule", w.after(o.OrderID, w.ingest(swift, said{o.Number, "b", "cancelled", at.Add(2 * time.Second), ""})))
			list := w.openReviews(w.staff)
			require.Len(t, list, 1)
			require.Equal(t, cloud.ReviewCancelled, list[0].Kind)
			require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, action, ""))
			require.Equal(t, want, int(w.find(o.OrderID).StatusID))
		}
	})
}

// Reviews that wait too long end.
func TestReviewsEnd(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("E-1")
		w.ingest(swift, said{o.Number, "a", "delivered", time.Now().Add(99 * time.Hour), ""})
		list := w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.NoError(t, w.db.EndReviews(t.Context(), time.Now()))
		require.Len(t, w.openReviews(w.staff), 1)
		require.NoError(t, w.db.EndReviews(t.Context(), time.Now().Add(cloud.ReviewLasts+time.Hour)))
		require.Empty(t, w.openReviews(w.staff))
		require.Equal(t, "REVIEW_ALREADY_DECIDED", w.decide(w.staff, list[0].ID, "accept", ""))
	})
}
