package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/otep"
)

// put puts an order where it is for a case: in a status, with a carrier or with its business.
func (w *world) put(id cloud.OrderID, status cloud.OrderStatus, with cloud.ProviderID) {
	w.t.Helper()
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(42, id)
		require.NoError(w.t, err)
		s, err := v.OrderShipment(42, id)
		o.Status, o.SelfDelivery, s.ProviderID = status, with == 0, with
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s}}}, err
	}))
}

// Of every code in every status, staff are asked about a report if the order would follow it, and about no other;
// once it is accepted the order is where the table of custody says.
func TestReportsThatStaffDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	w.carrier(31, "swift")
	rival := w.carrier(32, "rival")
	table := map[otep.Code]cloud.OrderStatus{"received": 32, "arrival_scan": 32, "in_transit": 32, "package_outbound": 32, "out_for_delivery": 40, "x-available_for_pickup": 40, "delivered": 41,
		"delivery_failed": 43, "delivery_rescheduled": 44, "rejected_by_recipient": 45, "return_to_sender": 47}
	carried := map[cloud.OrderStatus]bool{13: true, 32: true, 40: true, 42: true, 43: true, 44: true}
	asked := 0
	for _, status := range cloud.OrderStates() {
		for n, code := range otep.Vocabulary() {
			with, c := cloud.ProviderID(31), rival
			if resting := status.ID == 1 || status.ID == 4 || status.ID == 30; resting {
				with, c.Provider.Authority = 0, cloud.AuthorityReports
			}
			o := w.single(fmt.Sprint("C-", int(status.ID), "-", n))
			w.put(o.OrderID, status.ID, with)
			w.ingest(c, said{o.Number, "r", string(code.Code), time.Now().Add(time.Second), ""})
			to, follows := table[code.Code]
			want := status.ID
			e := otep.Event{StatusCode: code.Code, Phase: code.Phase}
			switch {
			case with == 0 && (follows || e.IsCollected()):
				if want = to; !follows {
					want = 13
				}
			case carried[status.ID] && follows:
				want = to
			case status.ID == 48 && code.Code == "delivered":
				want = 41
			}
			name := fmt.Sprint(status.ID, " ", code.Code)
			_, reports, _ := w.shown(o.Number)
			list := w.openReviews(w.staff)
			if want == status.ID {
				require.Empty(t, list, name)
				continue
			}
			require.Equal(t, string(code.Code), reports, name)
			require.Len(t, list, 1, name)
			require.Equal(t, []any{cloud.ReviewCustody, "r", o.Number}, []any{list[0].Kind, list[0].EventID, list[0].TrackingNumber}, name)
			require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "accept", ""), name)
			require.Equal(t, want, w.find(o.OrderID).StatusID, name)
			codes, reports, _ := w.shown(o.Number)
			require.Contains(t, codes, string(code.Code), name)
			require.Empty(t, reports, name)
			asked++
		}
	}
	require.Greater(t, asked, 60)
}

// A report waits for staff once. Accepted, it is sent and in the feed; rejected, it stays a report.
func TestAReportIsAcceptedOrRejected(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		w.set(0, map[string]any{"tracking_events": nil})
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		o := w.single("A-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "in_transit", at, ""})
		for range 2 {
			w.ingest(rival, said{o.Number, "b", "delivered", at.Add(time.Second), ""})
		}
		w.ingest(rival, said{o.Number, "c", "picked_up", at.Add(2 * time.Second), ""})
		list := w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.Equal(t, "REVIEW_NOT_FOUND", w.decide(w.stranger, list[0].ID, "accept", ""))
		require.Equal(t, "REVIEW_ACTION_NOT_ALLOWED", w.decide(w.staff, list[0].ID, "withdraw", ""))
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "accept", ""))
		require.Equal(t, "REVIEW_ALREADY_DECIDED", w.decide(w.staff, list[0].ID, "reject", ""))
		require.Equal(t, cloud.OrderDelivered, w.find(o.OrderID).StatusID)
		require.Equal(t, "delivered in_transit information_submitted", w.sent(o.OrderID))
		codes, reports, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted in_transit delivered", codes)
		require.Equal(t, "picked_up", reports)

		o, at = w.single("A-2"), time.Now()
		w.ingest(swift, said{o.Number, "a", "in_transit", at, ""})
		w.ingest(rival, said{o.Number, "b", "delivered", at.Add(time.Second), ""})
		require.Equal(t, "<nil>", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "reject", ""))
		require.Equal(t, cloud.OrderInTransit, w.find(o.OrderID).StatusID)
		_, reports, _ = w.shown(o.Number)
		require.Equal(t, "delivered", reports)
		w.ingest(rival, said{o.Number, "b", "delivered", at.Add(time.Second), ""})
		require.Empty(t, w.openReviews(w.staff), "it was decided")

		o, at = w.single("A-3"), time.Now() // taken back, and too late
		w.ingest(swift, said{o.Number, "a", "in_transit", at, ""})
		w.ingest(rival, said{o.Number, "b", "delivered", at.Add(time.Second), ""})
		gone := w.openReviews(w.staff)
		require.Len(t, gone, 1)
		w.takeBack(rival, o.Number, "b")
		require.Empty(t, w.openReviews(w.staff))
		require.Equal(t, "REVIEW_ALREADY_DECIDED", w.decide(w.staff, gone[0].ID, "accept", ""))
		w.ingest(rival, said{o.Number, "c", "delivery_failed", at.Add(time.Hour / 20), ""})
		w.ingest(swift, said{o.Number, "d", "return_to_sender", at.Add(time.Second), ""})
		require.Equal(t, "ORDER_STATUS_CONFLICT", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "accept", ""))
	})
}
