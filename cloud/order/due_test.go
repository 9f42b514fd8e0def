package order_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
)

// dues is a node that has events count when their time comes.
func (w *world) dues() tracking.Dues {
	return tracking.DuesOf(tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).SendParcels(order.ParcelsOf(w.orders)))
}

// come has events that are due count, at two nodes at once.
func (w *world) come() {
	w.t.Helper()
	var g sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		g.Go(func() { errs[i] = w.dues().Follow(w.t.Context()) })
	}
	g.Wait()
	require.NoError(w.t, errors.Join(errs...))
}

// sent are the codes of the tracking.event of an order that were sent, in the order of their codes.
func (w *world) sent(id cloud.OrderID) string {
	w.t.Helper()
	_, codes := w.heard(id)
	list := strings.Fields(codes)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// An event ahead of its time moves its order and is sent when the time comes, once, and not before. What is
// taken back or corrected before leaves no trace outside of the feed.
func TestEventsAheadCountWhenTheirTimeComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := storetest.OpenSQLite(t)
		w := newWorld(t, db)
		w.listen(0)
		w.set(0, map[string]any{"tracking_events": "tracking.event,tracking.event_withdrawn"})
		swift := w.carrier(31, "swift")
		o := w.single("D-1")
		start := time.Now()
		require.Equal(t, "1 no_rule", w.after(o.OrderID, w.ingest(swift, said{o.Number, "e-1", "in_transit", start.Add(24 * time.Hour), ""})))
		w.ingest(swift, said{o.Number, "e-1", "in_transit", start.Add(24 * time.Hour), ""}) // once more
		w.come()
		require.Equal(t, cloud.OrderNew, w.find(o.OrderID).StatusID)
		require.Equal(t, "information_submitted", w.sent(o.OrderID))
		time.Sleep(23 * time.Hour)
		w.come()
		require.Equal(t, cloud.OrderNew, w.find(o.OrderID).StatusID)
		time.Sleep(time.Hour - 4*time.Minute)
		w.come()
		require.Equal(t, cloud.OrderInTransit, w.find(o.OrderID).StatusID)
		require.Equal(t, "in_transit information_submitted", w.sent(o.OrderID))
		did := w.did(o.OrderID)
		w.come()
		require.Equal(t, did, w.did(o.OrderID))
		require.Equal(t, "in_transit information_submitted", w.sent(o.OrderID))

		gone := w.single("D-2")
		w.ingest(swift, said{gone.Number, "e-2", "in_transit", time.Now().Add(time.Hour), ""})
		w.takeBack(swift, gone.Number, "e-2")
		w.ingest(swift, said{gone.Number, "e-3", "in_transit", time.Now().Add(time.Hour), ""})
		time.Sleep(time.Hour - time.Minute) // due, and taken back before a node looks
		w.takeBack(swift, gone.Number, "e-3")
		w.come()
		require.Equal(t, cloud.OrderNew, w.find(gone.OrderID).StatusID)
		require.Equal(t, []string{"tracking.event 0 information_submitted"}, w.tracked(gone.OrderID))

		rivals := w.single("D-3") // another carrier has it by then
		w.ingest(swift, said{rivals.Number, "e-4", "delivered", time.Now().Add(time.Hour), ""})
		w.ingest(w.carrier(32, "rival"), said{rivals.Number, "e-5", "in_transit", time.Now(), ""})
		time.Sleep(time.Hour)
		w.come()
		require.Equal(t, cloud.OrderInTransit, w.find(rivals.OrderID).StatusID)
		require.Equal(t, "in_transit information_submitted", w.sent(rivals.OrderID))
		_, reports, _ := w.shown(rivals.Number)
		require.Equal(t, "delivered", reports)

		both := w.single("D-4") // two at once: the later one counts
		w.ingest(swift, said{both.Number, "e-6", "in_transit", time.Now().Add(time.Hour), ""}, said{both.Number, "e-7", "out_for_delivery", time.Now().Add(time.Hour + time.Second), ""})
		time.Sleep(2 * time.Hour)
		w.come()
		require.Equal(t, cloud.OrderOutForDelivery, w.find(both.OrderID).StatusID)
		require.Equal(t, "in_transit information_submitted out_for_delivery", w.sent(both.OrderID))

		dropped := w.single("D-5")
		w.ingest(swift, said{dropped.Number, "e-8", "in_transit", time.Now().Add(time.Hour), ""})
		_, err := w.orders.Cancel(t.Context(), w.staff, order.ReasonInput{OrderID: dropped.OrderID, Reason: "sold twice"})
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		w.come()
		require.Equal(t, cloud.OrderCancelled, w.find(dropped.OrderID).StatusID)

		list, err := db.DueEvents(t.Context(), time.Now().Add(72*time.Hour), 10)
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

// On either database, two nodes at once send an event that comes to count once.
func TestEventsAheadOnBoth(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		swift := w.carrier(31, "swift")
		o := w.single("D-1")
		w.ingest(swift, said{o.Number, "e-1", "in_transit", time.Now().Add(5*time.Minute + 700*time.Millisecond), ""})
		require.Equal(t, "information_submitted", w.sent(o.OrderID))
		ring.Await(t, func() bool { w.come(); return w.find(o.OrderID).StatusID == cloud.OrderInTransit })
		w.come()
		require.Equal(t, "in_transit information_submitted", w.sent(o.OrderID))

		w.partnerParcel(swift, 7001, "PARTNER-1") // without an order
		all := w.subscribe(w.staff, func(in *webhook.SubscriptionInput) {
			in.All, in.Events = true, []string{"tracking.event", "tracking.event_withdrawn"}
		})
		w.ingestAll(swift, written(said{"PARTNER-1", "p-1", "in_transit", time.Now().Add(5*time.Minute + 700*time.Millisecond), ""}, said{"PARTNER-1", "p-2", "delivered", time.Now().Add(6 * time.Minute), ""}))
		w.takeBack(swift, "PARTNER-1", "p-2")
		require.Empty(t, w.got(all))
		ring.Await(t, func() bool { w.come(); return len(w.got(all)) > 0 })
		w.come()
		require.Equal(t, []string{"event in_transit PARTNER-1"}, w.got(all))
		require.NoError(t, w.db.Look(t.Context(), func(v cloud.View) error {
			s, err := v.ShipmentByNumber("PARTNER-1")
			require.EqualValues(t, "in_transit", s.Current)
			return err
		}))
	})
}
