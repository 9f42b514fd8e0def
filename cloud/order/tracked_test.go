package order_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
)

// carrier is a provider whose events may be about any order of the business.
func (w *world) carrier(id cloud.ProviderID, code string) cloud.Caller {
	w.t.Helper()
	p := cloud.Provider{ID: id, BusinessID: 42, Code: code, Name: strings.ToUpper(code), Services: []string{"otep"}, SourceType: "carrier", Scope: cloud.ScopeAll}
	require.NoError(w.t, w.db.Decide(w.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}}}, nil
	}))
	return cloud.Caller{Provider: p, Account: cloud.Account{ID: cloud.AccountID(100 + id), BusinessID: 42, Type: cloud.ProviderType, Name: code, Enabled: true}, Language: "en"}
}

// said is one event as a provider writes it.
type said struct {
	Number string
	ID     string
	Code   string
	At     time.Time
	Type   string // of time
}

// ingest sends events about numbers, one timeline for each, and gives the answer.
func (w *world) ingest(c cloud.Caller, list ...said) tracking.IngestOutput {
	w.t.Helper()
	out, err := tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).Ingest(w.t.Context(), c, tracking.IngestInput{Body: written(list...)})
	require.NoError(w.t, err)
	return out
}

func written(list ...said) []byte {
	var timelines []map[string]any
	for _, x := range list {
		e := map[string]any{"event_id": x.ID, "status_code": x.Code, "occurred_at": x.At.Format(time.RFC3339Nano), "source": map[string]any{"type": "carrier"}}
		if x.Type != "" {
			e["time_type"] = x.Type
		}
		timelines = append(timelines, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": x.Number}, "events": []any{e}})
	}
	b, err := json.Marshal(map[string]any{"timelines": timelines})
	if err != nil {
		panic(err)
	}
	return b
}

// status is where an order is, with the reason of the answer's only timeline.
func (w *world) after(id cloud.OrderID, out tracking.IngestOutput) string {
	w.t.Helper()
	require.Len(w.t, out.Timelines, 1)
	got := out.Timelines[0].Order
	require.NotNil(w.t, got)
	o := w.find(id)
	require.Equal(w.t, o.StatusID, got.Status)
	if got.Reason == nil {
		return fmt.Sprintf("%d moved=%v", o.StatusID, got.Moved)
	}
	return fmt.Sprintf("%d %s", o.StatusID, *got.Reason)
}

// shown is a number's timeline as staff see it: codes of its events, and of its reports.
func (w *world) shown(number string) (codes, reports string, out tracking.TimelineOutput) {
	w.t.Helper()
	out, err := tracking.New(w.db).Timeline(w.t.Context(), w.staff, tracking.TimelineInput{Number: number})
	require.NoError(w.t, err)
	raw, err := json.Marshal(out.Data)
	require.NoError(w.t, err)
	var doc struct {
		Events, Reports []struct {
			Code string `json:"status_code"`
		}
	}
	require.NoError(w.t, json.Unmarshal(raw, &doc))
	var a, b []string
	for _, e := range doc.Events {
		a = append(a, e.Code)
	}
	for _, e := range doc.Reports {
		b = append(b, e.Code)
	}
	return strings.Join(a, " "), strings.Join(b, " "), out
}

// single is an order with one package.
func (w *world) single(ref string) order.OrderBody {
	in := input(cloud.DeliveryOrder)
	in.Ref, in.Packages = ref, in.Packages[:1]
	return w.create(w.staff, in)
}

// An order rests with its business. A carrier's events move it from the first that says that the goods
// are with it, and receivers and pages hear of it.
func TestCarrierMovesAnOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		swift, rival := w.carrier(31, "swift"), w.carrier(32, "rival")
		o := w.single("C-1")
		at, n := time.Now(), 0
		say := func(c cloud.Caller, code string) string {
			at, n = at.Add(time.Second), n+1
			return w.after(o.OrderID, w.ingest(c, said{o.Number, fmt.Sprint("e-", n), code, at, ""}))
		}
		require.Equal(t, "1 no_rule", say(swift, "booking_confirmed"))
		require.Equal(t, "32 moved=true", say(swift, "arrival_scan"))
		require.Equal(t, "32 custody", say(rival, "delivered"), "another carrier has it")
		require.Equal(t, "32 moved=false", say(swift, "in_transit"))
		require.Equal(t, "40 moved=true", say(swift, "out_for_delivery"))
		require.Equal(t, "43 moved=true", say(swift, "delivery_failed"))
		require.Equal(t, "44 moved=true", say(swift, "delivery_rescheduled"))
		require.Equal(t, "40 moved=true", say(swift, "out_for_delivery"))
		require.Equal(t, "41 moved=true", say(swift, "delivered"))
		require.Equal(t, "41 terminal", say(swift, "in_transit"), "after the end")

		codes, reports, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted booking_confirmed arrival_scan in_transit out_for_delivery delivery_failed delivery_rescheduled out_for_delivery delivered", codes)
		require.Equal(t, "delivered in_transit", reports)
		names, heard := w.heard(o.OrderID)
		require.Equal(t, codes, heard, "each event was sent, and no report")
		count := map[string]int{}
		for _, name := range names {
			count[name]++
		}
		require.Equal(t, 1, count["order.delivered"])
		require.Equal(t, 2, count["order.out_for_delivery"])
		require.Contains(t, w.did(o.OrderID), "8002:1>13")
		require.Contains(t, w.did(o.OrderID), "1005:40>41")
		for _, x := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(o.OrderID)}) {
			if x.Event.Event == "tracking.event" {
				require.Equal(t, o.Number+"-1", w.body(x).Data["package"].(map[string]any)["tracking_number"])
			}
		}
	})
}

// Where an order goes by a carrier's event, by its status and the code, as the specification's table of
// custody has it (tracking network, 3).
func TestCustodyTable(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		goes := map[string]int{"received": 32, "arrival_scan": 32, "in_transit": 32, "package_outbound": 32, "out_for_delivery": 40, "x-available_for_pickup": 40, "delivered": 41, "delivery_failed": 43,
			"delivery_rescheduled": 44, "rejected_by_recipient": 45, "return_to_sender": 47}
		nowhere := []string{"information_submitted", "booking_confirmed", "awaiting_pickup", "picked_up", "removed_from_route", "cancelled"}
		taking := []string{"out_for_pickup", "picked_up", "received", "arrival_scan", "in_transit", "package_outbound", "out_for_delivery", "delivered", "x-available_for_pickup"}
		resting, carried := []int{1, 4, 30, 44}, []int{13, 32, 40, 43, 44}
		own := []int{10, 11, 12, 20, 21, 22, 23, 31, 33}
		var codes []string
		for c := range goes {
			codes = append(codes, c)
		}
		slices.Sort(codes)
		codes = append(codes, nowhere...)
		n := 0
		// at puts an order into a status, with the carrier or without.
		at := func(status int, with bool) order.OrderBody {
			n++
			o := w.single(fmt.Sprint("T-", n))
			if with {
				w.ingest(swift, said{o.Number, "take", "picked_up", time.Now().Add(time.Second), ""})
				for code, to := range goes {
					if to == status && status != 13 {
						w.ingest(swift, said{o.Number, "come", code, time.Now().Add(2 * time.Second), ""})
						break
					}
				}
			} else if status != 1 {
				_, err := w.orders.Override(t.Context(), w.staff, order.OverrideInput{OrderID: o.OrderID, Status: cloud.OrderStatus(status), Reason: "test"})
				require.NoError(t, err)
			}
			require.Equal(t, status, int(w.find(o.OrderID).StatusID))
			return o
		}
		try := func(status int, with bool, code string) int {
			o := at(status, with)
			w.ingest(swift, said{o.Number, "now", code, time.Now().Add(4 * time.Second), ""})
			return int(w.find(o.OrderID).StatusID)
		}
		for _, code := range codes {
			for _, status := range carried {
				want := status
				if to, ok := goes[code]; ok {
					want = to
				}
				require.Equal(t, want, try(status, true, code), "carried, from %d by %s", status, code)
			}
			for _, status := range resting {
				want := status
				if slices.Contains(taking, code) {
					want = 13
					if to, ok := goes[code]; ok {
						want = to
					}
				}
				require.Equal(t, want, try(status, false, code), "resting, from %d by %s", status, code)
			}
		}
		for _, status := range own {
			require.Equal(t, status, try(status, false, "delivered"), "the business has it in %d", status)
		}
		for _, status := range []int{3, 2, 46, 41, 45, 47, 50} {
			require.Equal(t, status, try(status, false, "in_transit"), "from %d", status)
		}
	})
}

// What came before something that is known already moves nothing, and an estimate nothing at all.
func TestLateEventsMoveNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("L-1")
		at := time.Now().Add(time.Second)
		require.Equal(t, "41 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "d", "delivered", at, ""})))
		require.Equal(t, "41 late", w.after(o.OrderID, w.ingest(swift, said{o.Number, "l", "out_for_delivery", at.Add(-time.Minute), ""})))
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "out_for_delivery information_submitted delivered", codes)

		o = w.single("L-2")
		require.Equal(t, "1 late", w.after(o.OrderID, w.ingest(swift, said{o.Number, "l", "delivered", at.Add(-time.Hour), ""})), "it is older than the order")
		require.Equal(t, "1 no_rule", w.after(o.OrderID, w.ingest(swift, said{o.Number, "p", "delivered", at.Add(time.Hour), "planned"})))
		codes, reports, _ := w.shown(o.Number)
		require.Empty(t, reports)
		require.Contains(t, codes, "information_submitted")
		require.Equal(t, 1, int(w.find(o.OrderID).StatusID))
	})
}

// An event whose time has not come moves nothing before.
func TestEventsAheadMoveNothingYet(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("H-1")
		w.ingest(swift, said{o.Number, "x", "delivered", time.Now().Add(30 * time.Hour), ""})
		require.Equal(t, 1, int(w.find(o.OrderID).StatusID))
		require.Equal(t, "32 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "a", "in_transit", time.Now().Add(time.Second), ""})))
		w.ingest(swift, said{o.Number, "y", "delivered", time.Now().Add(40 * time.Hour), ""})
		got := w.find(o.OrderID)
		require.Equal(t, 32, int(got.StatusID))
		require.EqualValues(t, "in_transit", *got.OTEPStatus)
		codes, reports, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted in_transit delivered delivered", codes, "its owners see what is to come")
		require.Empty(t, reports)
	})
}

// What only who has the goods can say of them counts for nothing while they rest.
func TestEndsOfGoodsThatRestAreReports(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		for _, code := range []string{"cancelled", "return_to_sender", "delivery_failed", "pickup_failed", "rejected_by_recipient"} {
			o := w.single("E-" + code)
			require.Equal(t, "1 custody", w.after(o.OrderID, w.ingest(swift, said{o.Number, "x", code, time.Now().Add(time.Second), ""})), code)
			codes, reports, _ := w.shown(o.Number)
			require.Equal(t, []string{"information_submitted", code}, []string{codes, reports})
		}
	})
}

// One of two parcels is delivered by its carrier: the order goes on until the other is, too.
func TestParcelsOfAnOrderGoTheirOwnWays(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.listen(0)
		swift := w.carrier(31, "swift")
		o := w.ref("P-1")
		one, two := o.Packages[0].Number, o.Packages[1].Number
		at, n := time.Now(), 0
		say := func(number, code string) string {
			at, n = at.Add(time.Second), n+1
			return w.after(o.OrderID, w.ingest(swift, said{number, fmt.Sprint("e", n), code, at, ""}))
		}
		require.Equal(t, "40 moved=true", say(o.Number, "out_for_delivery"))
		require.Equal(t, "40 moved=false", say(one, "delivered"))
		codes, _, out := w.shown(o.Number)
		require.Equal(t, "information_submitted out_for_delivery", codes, "the order has not arrived")
		require.Len(t, out.Packages, 2)
		require.Equal(t, []bool{true, false}, []bool{out.Packages[0].Delivered, out.Packages[1].Delivered})
		codes, _, _ = w.shown(one)
		require.Equal(t, "information_submitted out_for_delivery delivered", codes)
		codes, _, _ = w.shown(two)
		require.Equal(t, "information_submitted out_for_delivery", codes)
		got := w.find(o.OrderID)
		require.Equal(t, []cloud.OrderPackageStatus{"delivered", "out_for_delivery"}, []cloud.OrderPackageStatus{got.Packages[0].Status, got.Packages[1].Status})

		require.Equal(t, "42 moved=true", say(two, "delivery_failed"), "some were delivered, and none is on its way")
		require.Equal(t, "40 moved=true", say(two, "out_for_delivery"))
		require.Equal(t, "41 moved=true", say(two, "delivered"))
		codes, _, _ = w.shown(o.Number)
		require.Equal(t, "information_submitted out_for_delivery delivery_failed out_for_delivery delivered", codes)
		_, heard := w.heard(o.OrderID)
		require.Equal(t, "information_submitted out_for_delivery delivered delivery_failed out_for_delivery delivered", heard, "every event, each once")
		require.Equal(t, codes, w.codes(o.OrderID))

		numbers := map[string]int{}
		for _, x := range w.log(cloud.AccountLog{ReferenceType: "order", ReferenceID: fmt.Sprint(o.OrderID)}) {
			if p, ok := w.body(x).Data["package"].(map[string]any); ok && x.Event.Event == "tracking.event" {
				numbers[p["tracking_number"].(string)]++
			}
		}
		require.Equal(t, map[string]int{one: 1, two: 3}, numbers)

		rival := w.carrier(32, "rival")
		w.ingest(rival, said{one, "r", "return_to_sender", at, ""})
		var feed tracking.ChangesOutput
		ring.Await(t, func() bool { // PostgreSQL shows no change before older transactions of the server have ended
			var err error
			feed, err = tracking.New(w.db).Changes(t.Context(), w.staff, tracking.ChangesInput{})
			require.NoError(t, err)
			return len(feed.Changes) == 7
		})
		var kinds []string
		for _, c := range feed.Changes {
			of := ""
			if c.PackageNumber != nil {
				of = (*c.PackageNumber)[len(o.Number):]
			}
			kinds = append(kinds, string(c.Kind)+" "+string(c.Event.StatusCode)+of)
		}
		require.Equal(t, []string{"event.recorded information_submitted", "event.recorded out_for_delivery", "event.recorded delivered-1", "event.recorded delivery_failed-2", "event.recorded out_for_delivery-2",
			"event.recorded delivered-2", "event.reported return_to_sender-1"}, kinds)

		all, err := tracking.New(w.db).Events(t.Context(), w.staff, tracking.EventsInput{Number: o.Number, Scope: "all"})
		require.NoError(t, err)
		require.Equal(t, 6, all.Total)
		require.Equal(t, one, *all.Data.([]tracking.ShownEvent)[2].PackageNumber)
	})
}

// The driver hands over one of two parcels: it alone is delivered.
func TestDriverDeliversSomeParcels(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.ref("P-2")
		w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		require.NoError(t, w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: o.OrderID, To: cloud.OrderPartlyDelivered, Trigger: order.DeliveryResult, Operation: 2007,
			Delivered: []cloud.PackageID{o.Packages[0].PackageID}}))
		codes, _, out := w.shown(o.Number)
		require.Equal(t, "information_submitted out_for_delivery delivery_failed", codes)
		require.Equal(t, []bool{true, false}, []bool{out.Packages[0].Delivered, out.Packages[1].Delivered})
		codes, _, _ = w.shown(o.Packages[0].Number)
		require.Equal(t, "information_submitted out_for_delivery delivered", codes)
		codes, _, _ = w.shown(o.Packages[1].Number)
		require.Equal(t, "information_submitted out_for_delivery delivery_failed", codes)
		w.move(o.OrderID, cloud.OrderDelivered, order.DeliveryResult)
		codes, _, _ = w.shown(o.Packages[1].Number)
		require.Equal(t, "information_submitted out_for_delivery delivery_failed delivered", codes)
		codes, _, _ = w.shown(o.Packages[0].Number)
		require.Equal(t, "information_submitted out_for_delivery delivered", codes)
	})
}

// An event that is taken back moves the order back, but not from its end.
func TestWithdrawnEventMovesTheOrderBack(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift := w.carrier(31, "swift")
		o := w.single("W-1")
		at := time.Now()
		takeBack := func(id string) string {
			body := fmt.Sprintf(`{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[],"withdrawals":[{"event_id":%q,"reason":"did_not_occur"}]}`, o.Number, id)
			out, err := tracking.New(w.db).MoveOrders(order.CarriersOf(w.orders)).Ingest(t.Context(), swift, tracking.IngestInput{Body: []byte(body)})
			require.NoError(t, err)
			return w.after(o.OrderID, out)
		}
		w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})
		w.ingest(swift, said{o.Number, "b", "out_for_delivery", at.Add(2 * time.Second), ""})
		require.Equal(t, "32 moved=true", takeBack("b"))
		w.ingest(swift, said{o.Number, "c", "delivered", at.Add(3 * time.Second), ""})
		require.Equal(t, "41 terminal", takeBack("c"))
		codes, _, _ := w.shown(o.Number)
		require.Equal(t, "information_submitted in_transit", codes)
	})
}

// A company that was given an order takes it over by its first event, and ends its assignment by its last.
func TestTrackingEndsAnAssignment(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		swift, _, _, _ := w.companies()
		swift.Provider.Scope = cloud.ScopeAll
		o := w.ref("A-1")
		a := w.entrust(o.OrderID)
		at := time.Now()
		require.Equal(t, "32 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})))
		require.Equal(t, "handed_over", string(w.find(o.OrderID).ThirdParty.Status))
		w.ingest(swift, said{a.Numbers[0], "b", "delivered", at.Add(2 * time.Second), ""})
		require.Equal(t, "handed_over", string(w.find(o.OrderID).ThirdParty.Status))
		require.Equal(t, "41 moved=true", w.after(o.OrderID, w.ingest(swift, said{a.Numbers[1], "c", "delivered", at.Add(3 * time.Second), ""})))
		require.Equal(t, "completed", string(w.find(o.OrderID).ThirdParty.Status))

		o = w.ref("A-2")
		w.entrust(o.OrderID)
		at = time.Now() // what is said of the time before counts for nothing
		w.ingest(swift, said{o.Number, "a", "in_transit", at.Add(time.Second), ""})
		require.Equal(t, "47 moved=true", w.after(o.OrderID, w.ingest(swift, said{o.Number, "b", "return_to_sender", at.Add(2 * time.Second), ""})))
		require.Equal(t, "completed", string(w.find(o.OrderID).ThirdParty.Status))
	})
}
