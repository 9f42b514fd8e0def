package order_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/otep"
)

type ev map[string]any

// timelineOf is one timeline about a number as a provider writes it.
func timelineOf(subject map[string]any, withdrawn []string, events ...ev) []byte {
	list := []any{}
	for _, e := range events {
		list = append(list, e)
	}
	body := map[string]any{"otep_version": "0.1", "subject": subject, "events": list}
	if len(withdrawn) > 0 {
		var w []any
		for _, id := range withdrawn {
			w = append(w, ev{"event_id": id, "reason": "did_not_occur"})
		}
		body["withdrawals"] = w
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return b
}

func about(number string) map[string]any { return map[string]any{"tracking_number": number} }

func (w *world) send(c cloud.Caller, body []byte) (tracking.IngestOutput, error) {
	return w.parcels().Ingest(w.t.Context(), c, tracking.IngestInput{Body: body})
}

func e(id, code string, at time.Time, more ...string) ev {
	out := ev{"status_code": code, "occurred_at": at.Format(time.RFC3339Nano)}
	if id != "" {
		out["event_id"] = id
	}
	for i := 0; i+1 < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// A correction may come with what it corrects, which counts for nothing then.
func TestCorrectionsInOneRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("C-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})
		_, err := w.send(swift, timelineOf(about(o.Number), nil, e("x", "delivered", at.Add(3*time.Second)), e("y", "out_for_delivery", at.Add(2*time.Second), "corrects", "x")))
		require.NoError(t, err)
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted in_transit out_for_delivery", codes)
		require.Equal(t, 40, int(w.find(o.OrderID).StatusID))
	})
}

// What is to happen in an hour is stored, and moves the order with the first news after its time.
func TestEventsOfTheFutureMoveNothingYet(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("F-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})
		require.Equal(t, "32 moved=false", w.after(o.OrderID, w.ingest(swift, said{o.Number, "x", "delivered", at.Add(time.Hour), ""})))
		require.Equal(t, "40 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "y", "out_for_delivery", at.Add(2 * time.Second), ""})))
	})
}

// Two parcels that were in different places are delivered in the same second.
func TestParcelsScannedAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("S-1")
		one, two := o.Packages[0].Number, o.Packages[1].Number
		at := time.Now().Truncate(time.Second).Add(time.Second)
		w.ingest(swift, said{one, "a", "in_transit", at.Add(time.Second), ""})
		w.ingest(swift, said{two, "b", "out_for_delivery", at.Add(2 * time.Second), ""})
		w.ingest(swift, said{one, "c", "delivered", at.Add(4 * time.Second), ""})
		w.ingest(swift, said{two, "d", "delivered", at.Add(4 * time.Second), ""})
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted in_transit delivered", codes)
		require.Equal(t, 41, int(w.find(o.OrderID).StatusID))
	})
}

// Any id is an id: one that ends as keys of package events might is stored like others.
func TestIDsThatLookLikeKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("K-1")
		one := o.Packages[0]
		at := time.Now()
		w.ingest(swift, said{one.Number, "e", "in_transit", at.Add(time.Second), ""})
		out := w.ingest(swift, said{o.Number, fmt.Sprintf("e#%d", one.PackageID), "out_for_delivery", at.Add(2 * time.Second), ""})
		require.Equal(t, "accepted", outcome(out))
		codes, _, _ := w.shown(o.Number)
		require.Contains(t, codes, "out_for_delivery")
	})
}

// An id that stands for an event of the order and for one of a parcel: by the number of the order it is that of the order.
func TestWithdrawalNamesTheWholeFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		for _, first := range []bool{true, false} {
			o := w.ref(fmt.Sprint("WP-", first))
			at := time.Now()
			a, b := at.Add(time.Second), at.Add(2*time.Second)
			if first {
				a, b = b, a
			}
			w.ingest(swift, said{o.Number, "e", "in_transit", a, ""})
			w.ingest(swift, said{o.Packages[0].Number, "e", "arrival_scan", b, ""})
			_, err := w.send(swift, timelineOf(about(o.Number), []string{"e"}))
			require.NoError(t, err)
			codes, _, _ := w.shown(o.Packages[0].Number)
			require.Equal(t, "information_submitted arrival_scan", codes, "the event of the whole was taken back")
		}
	})
}

// The second correction of an event has nothing to take the place of.
func TestEventIsCorrectedOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("TC-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "x", "in_transit", at.Add(time.Second), ""})
		_, err := w.send(swift, timelineOf(about(o.Number), nil, e("y", "arrival_scan", at.Add(2*time.Second), "corrects", "x")))
		require.NoError(t, err)
		_, err = w.send(swift, timelineOf(about(o.Number), nil, e("z", "out_for_delivery", at.Add(3*time.Second), "corrects", "x")))
		require.Equal(t, "OTEP_NOT_CONFORMANT", code(err))
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted arrival_scan", codes, "x has been corrected: it is there no more")
	})
}

// Without ids of their own both of two events that disagree have the same one. Staff choose between them all the same.
func TestOverrideOfAnIDThatWasMade(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("OM-1")
		at := time.Now().Add(time.Second)
		_, err := w.send(swift, timelineOf(about(o.Number), nil, e("", "in_transit", at, "message", "Toronto")))
		require.NoError(t, err)
		_, err = w.send(swift, timelineOf(about(o.Number), nil, e("", "in_transit", at, "message", "Montreal")))
		require.Equal(t, "OTEP_EVENT_CONFLICT", code(err))
		list := w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "override", ""))
		out, err := w.parcels().Events(t.Context(), w.staff, tracking.EventsInput{Number: o.Number})
		require.NoError(t, err)
		raw, _ := json.Marshal(out.Data)
		require.Contains(t, string(raw), "Montreal")
		require.NotContains(t, string(raw), "Toronto")
		_, err = w.send(swift, timelineOf(about(o.Number), nil, e("", "in_transit", at, "message", "Montreal")))
		require.NoError(t, err, "it repeats what stands")
	})
}

// A provider repeats what staff have taken at another time.
func TestRepeatOfWhatStaffHaveTaken(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("RA-1")
		at := time.Now()
		x := said{o.Number, "x", "in_transit", at.Add(99 * time.Hour), ""}
		w.ingest(swift, x)
		list := w.openReviews(w.staff)
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "accept_at", at.Add(time.Second).Format(time.RFC3339Nano)))
		_, err := w.send(swift, written(x))
		require.NoError(t, err, "repeats are harmless")
		require.Empty(t, w.openReviews(w.staff))
	})
}

// A provider repeats what staff have put in the place of what it sent before.
func TestRepeatOfWhatStaffHaveChosen(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("RO-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "x", "in_transit", at.Add(time.Second), ""})
		y := written(said{o.Number, "x", "out_for_delivery", at.Add(time.Second), ""})
		_, err := w.send(swift, y)
		require.Equal(t, "OTEP_EVENT_CONFLICT", code(err))
		require.Equal(t, "<nil>", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "override", ""))
		_, err = w.send(swift, y)
		require.NoError(t, err, "repeats are harmless")
		require.Empty(t, w.openReviews(w.staff))
	})
}

// The same id is another event for the order than for its parcel.
func TestReviewsOfParcelsAreApart(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("RP-1")
		at := time.Now()
		w.ingest(swift, said{o.Packages[0].Number, "x", "in_transit", at.Add(99 * time.Hour), ""})
		w.ingest(swift, said{o.Number, "x", "delivered", at.Add(98 * time.Hour), ""})
		require.Len(t, w.openReviews(w.staff), 2)
	})
}

// The order of a parcel that came back shows an event that no source has sent: what led to it is disputed.
func TestDisputeOfADerivedEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("DM-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "out_for_delivery", at.Add(time.Second), ""})
		w.ingest(swift, said{o.Packages[0].Number, "b", "delivered", at.Add(2 * time.Second), ""})
		w.ingest(swift, said{o.Packages[1].Number, "c", "return_to_sender", at.Add(3 * time.Second), ""})
		_, _, out := w.shown(o.Number)
		raw, _ := json.Marshal(out.Data)
		var doc struct {
			Events []struct {
				ID   string `json:"event_id"`
				Code string `json:"status_code"`
			}
		}
		require.NoError(t, json.Unmarshal(raw, &doc))
		last := doc.Events[len(doc.Events)-1]
		require.Equal(t, "delivery_failed", last.Code)
		require.Equal(t, "<nil>", failure(w.parcels().Dispute(t.Context(), w.staff, tracking.DisputeInput{Number: o.Number, EventID: last.ID, Kind: "other"})))
		list := w.openReviews(w.staff)
		require.Equal(t, []string{"c", o.Packages[1].Number}, []string{list[0].EventID, list[0].TrackingNumber})
		require.Equal(t, "<nil>", w.decide(w.staff, list[0].ID, "withdraw", ""))
		codes, _, _ := w.shown(o.Packages[1].Number)
		require.Equal(t, "information_submitted out_for_delivery", codes)
	})
}

// Ids of providers stay texts in the audit log.
func TestAuditOfDisputes(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("AQ-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, `a","code":"1`, "out_for_delivery", at.Add(time.Second), ""})
		require.Equal(t, "<nil>", failure(w.parcels().Dispute(t.Context(), w.staff, tracking.DisputeInput{Number: o.Number, EventID: `a","code":"1`, Kind: "other"})))
		list, err := w.db.ListAudits(t.Context(), 42, 1<<60, 100)
		require.NoError(t, err)
		for _, x := range list {
			var got map[string]any
			require.NoError(t, json.Unmarshal([]byte(x.Detail), &got), x.Detail)
			require.NotContains(t, got, "code")
		}
	})
}

// Goods that staff have taken back from a carrier are the business's own: another carrier may take them over,
// and the former one sees no more of them than anybody.
func TestStaffTakeGoodsBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		swift.Provider.Scope = "own"
		all := swift
		all.Provider.Scope = cloud.ScopeAll
		override := func(to cloud.OrderStatus) func(o order.OrderBody) {
			return func(o order.OrderBody) {
				_, err := w.orders.Override(t.Context(), w.staff, order.OverrideInput{OrderID: o.OrderID, Status: to, Reason: "back"})
				require.NoError(t, err)
			}
		}
		for i, c := range []struct {
			code string
			back func(o order.OrderBody)
		}{{"picked_up", override(4)}, {"in_transit", override(4)}, {"in_transit", override(30)}, {"out_for_delivery", override(1)}, {"delivery_failed", override(30)}, {"in_transit", func(o order.OrderBody) {
			stop := w.intercept(w.staff, interception.InterceptInput{OrderID: o.OrderID, Outcome: "hold_at_warehouse"})
			for _, step := range []func(context.Context, cloud.Caller, interception.StopInput) (interception.InterceptionOutput, error){interception.New(w.orders).Held, interception.New(w.orders).Execute} {
				_, err := step(t.Context(), w.staff, interception.StopInput{ID: stop.ID})
				require.NoError(t, err)
			}
		}}} {
			o := w.single(fmt.Sprint("TB-", i))
			w.ingest(all, said{o.Number, "t", "picked_up", time.Now().Add(time.Second), ""})
			w.ingest(all, said{o.Number, "a", c.code, time.Now().Add(2 * time.Second), ""})
			require.False(t, w.find(o.OrderID).SelfDelivery)
			c.back(o)
			require.True(t, w.find(o.OrderID).SelfDelivery, "case %d", i)
			_, err := w.parcels().Events(t.Context(), swift, tracking.EventsInput{Number: o.Number, Include: "withdrawn"})
			require.Equal(t, "OTEP_PROVIDER_FORBIDDEN", code(err))
			w.ingest(rival, said{o.Number, "r", "in_transit", time.Now().Add(3 * time.Second), ""})
			require.Equal(t, 32, int(w.find(o.OrderID).StatusID), "the goods rest, and another carrier has taken them: case %d", i)
		}
	})
}

// A parcel shows events of the whole order, and the order those of parcels.
func TestDisputeNamesTheStoredEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("DP-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""}, said{o.Packages[0].Number, "b", "out_for_delivery", at.Add(2 * time.Second), ""}, said{o.Packages[1].Number, "b", "out_for_delivery", at.Add(3 * time.Second), ""})
		for number, event := range map[string]string{o.Packages[0].Number: "a", o.Number: "b"} {
			require.Equal(t, "<nil>", failure(w.parcels().Dispute(t.Context(), w.staff, tracking.DisputeInput{Number: number, EventID: event, Kind: "other"})))
			require.Equal(t, "<nil>", w.decide(w.staff, w.openReviews(w.staff)[0].ID, "withdraw", ""))
		}
		codes, _, _ := w.shown(o.Packages[0].Number)
		require.Equal(t, "information_submitted out_for_delivery", codes)
		codes, _, _ = w.shown(o.Packages[1].Number)
		require.Equal(t, "information_submitted", codes, "the order's timeline has shown this one")

		// What was taken back from one parcel is not shown at the other one, and EPCIS names the parcel.
		withdrawn := func(number, format string) tracking.EventsOutput {
			out, err := w.parcels().Events(t.Context(), w.staff, tracking.EventsInput{Number: number, Include: "withdrawn", Format: format})
			require.NoError(t, err)
			return out
		}
		declared := map[string]int{}
		for _, number := range []string{o.Number, o.Packages[0].Number, o.Packages[1].Number} {
			n := 0
			for _, e := range withdrawn(number, "otep").Data.([]tracking.ShownEvent) {
				if e.Withdrawn != nil {
					n++
				}
			}
			list := withdrawn(number, "epcis").Data.([]projection.EPCISEvent)
			for _, e := range list {
				if e.Error != nil {
					n--
					declared["order"+number[len(o.Number):]+" of order"+e.EPCs[0][strings.LastIndex(e.EPCs[0], "/")+1+len(o.Number):]]++
				}
			}
			require.Zero(t, n, "each in both formats")
		}
		require.Equal(t, map[string]int{"order of order": 1, "order of order-2": 1, "order-1 of order-1": 1, "order-2 of order-2": 2}, declared)

	})
}

// A request that sends an event and takes it back does the same each time.
func TestWithdrawalInOneRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		swift := w.carrier(31, "swift")
		o := w.single("WO-1")
		body := timelineOf(about(o.Number), []string{"x"}, e("x", "delivered", time.Now().Add(time.Second)))
		out, err := w.send(swift, body)
		require.NoError(t, err)
		require.Equal(t, []int{1, 1}, []int{out.Accepted, out.Withdrawn})
		require.Equal(t, 1, int(w.find(o.OrderID).StatusID))
		out, err = w.send(swift, body)
		require.NoError(t, err)
		require.Equal(t, []int{0, 0, 2}, []int{out.Accepted, out.Withdrawn, out.Duplicates})
		_, heard := w.heard(o.OrderID)
		require.Equal(t, "information_submitted", heard)
	})
}

// Nothing of a deleted order stays in its reviews.
func TestReviewsOfDeletedOrders(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o, other := w.single("RD-1"), w.single("RD-2")
		for _, x := range []order.OrderBody{o, other} {
			w.ingest(swift, said{x.Number, "x", "delivered", time.Now().Add(99 * time.Hour), ""})
		}
		_, err := w.orders.Delete(t.Context(), w.admin, order.OrderRef{OrderID: o.OrderID})
		require.NoError(t, err)
		list := w.openReviews(w.staff)
		require.Len(t, list, 1)
		require.Equal(t, other.Number, list[0].TrackingNumber)
	})
}

// A request about a hundred parcels of one order is a request like others.
func TestManyParcelsInOneRequest(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		in := input(cloud.DeliveryOrder)
		in.Packages = slices.Repeat(in.Packages[:1], 100)
		o := w.create(w.staff, in)
		at := time.Now()
		for round, code := range []string{"in_transit", "out_for_delivery"} {
			var list []said
			for i, p := range o.Packages {
				list = append(list, said{p.Number, fmt.Sprint(round, "-", i), code, at.Add(time.Duration(round+1) * time.Second), ""})
			}
			require.Equal(t, 100, w.ingest(swift, list...).Accepted)
		}
		require.Equal(t, 40, int(w.find(o.OrderID).StatusID))
	})
}

// Ingest finds a shipment and then its order; a driver's move reads the order and then its shipment.
// On PostgreSQL, where both are locked, they waited for each other until the server ended one.
func TestIngestAndMovesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSecondPostgres(t))
	o := w.single("DL-1")
	found, read := make(chan struct{}), make(chan struct{})
	var runs atomic.Int32
	var wg sync.WaitGroup
	for _, fn := range []func(cloud.View) error{func(v cloud.View) error {
		if _, err := v.ShipmentsBySubject(42, otep.Subject{TrackingNumber: o.Number}); err != nil {
			return err
		}
		if runs.Add(1) <= 2 {
			close(found)
			<-read
		}
		_, err := v.Order(42, o.OrderID)
		return err
	}, func(v cloud.View) error {
		if runs.Add(1) <= 2 {
			<-found
		}
		if _, err := v.Order(42, o.OrderID); err != nil {
			return err
		}
		if runs.Load() <= 2 {
			close(read)
		}
		_, err := v.OrderShipment(42, o.OrderID)
		return err
	}} {
		wg.Go(func() {
			require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) { return nil, fn(v) }))
		})
	}
	wg.Wait()
	require.EqualValues(t, 2, runs.Load())
}

// Every parcel of a full timeline comes to its end.
func TestFullTimelineTakesAnEndOfEachParcel(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		in := input(cloud.DeliveryOrder)
		in.Packages = slices.Repeat(in.Packages[:1], 60)
		o := w.create(w.staff, in)
		at := time.Now()
		w.ingest(swift, said{o.Number, "t", "in_transit", at.Add(time.Second), ""})
		require.NoError(t, w.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			s, err := v.OrderShipment(42, o.OrderID)
			ch := &cloud.Changes{}
			for i := range 1998 {
				then := otep.Time{Time: at.Add(time.Duration(i) * time.Millisecond)}
				ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: s.ID, BusinessID: 42, Event: otep.Event{EventID: fmt.Sprint("full-", i), OccurredAt: then, RecordedAt: then, StatusCode: otep.InTransit,
					Source: &otep.Source{Type: otep.Carrier, Provider: "swift"}}.Fill("parcel")})
			}
			return ch, err
		}))
		var list []said
		for i, p := range o.Packages {
			list = append(list, said{p.Number, fmt.Sprint("d", i), "delivered", at.Add(3 * time.Second), ""})
		}
		require.Equal(t, 60, w.ingest(swift, list...).Accepted)
		require.Equal(t, 41, int(w.find(o.OrderID).StatusID))
	})
}

// A package that a subject names by its id is meant, also beside the number of its order. Two names of
// different packages mean neither.
func TestPackagesNamedByID(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.ref("PI-1")
		at := time.Now()
		w.ingest(swift, said{o.Number, "t", "out_for_delivery", at.Add(time.Second), ""})
		body := func(number string, id string) []byte {
			return timelineOf(map[string]any{"tracking_number": number, "package_id": o.Packages[1].PackageID}, nil, e(id, "delivered", at.Add(2*time.Second)))
		}
		_, err := w.send(swift, body(o.Packages[0].Number, "x"))
		require.Equal(t, "OTEP_NOT_CONFORMANT", code(err))
		out, err := w.send(swift, body(o.Number, "y"))
		require.NoError(t, err)
		require.Equal(t, 1, out.Accepted)
		require.Equal(t, 40, int(w.find(o.OrderID).StatusID))
		codes, _, _ := w.shown(o.Packages[1].Number)
		require.Equal(t, "information_submitted out_for_delivery delivered", codes)
		codes, _, _ = w.shown(o.Packages[0].Number)
		require.Equal(t, "information_submitted out_for_delivery", codes)
	})
}
