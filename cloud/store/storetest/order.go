package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
)

func order(id cloud.OrderID, b cloud.BusinessID) cloud.Order {
	number := fmt.Sprintf("SR%09d", id)
	return cloud.Order{ID: id, BusinessID: b, Number: number, Type: cloud.DeliveryOrder, Status: cloud.OrderNew, CreatedAt: now, UpdatedAt: now,
		Packages: []cloud.OrderPackage{{ID: cloud.PackageID(id * 10), Number: number + "-1", ExternalNumber: fmt.Sprint("ext-", id), Status: cloud.OrderPackageCreated}}}
}

// orders come back as they were written, whatever is in them.
func orders(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range cloud.OrderID(40) {
		o := random[cloud.Order](r)
		o.ID, o.BusinessID, o.Number, o.Ref = i%7+1, 1, fmt.Sprintf("SR%09d", i%7+1), fmt.Sprint("ref-", i)
		for n := range o.Packages {
			o.Packages[n].ID, o.Packages[n].Number = cloud.PackageID(o.ID)*10+cloud.PackageID(n), fmt.Sprint(o.Number, "-", n+1)
		}
		write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
		look(t, db, func(v cloud.View) {
			for _, find := range []func() (cloud.Order, error){
				func() (cloud.Order, error) { return v.Order(1, o.ID) },
				func() (cloud.Order, error) { return v.OrderByNumber(1, strings.ToLower(o.Number)) },
				func() (cloud.Order, error) { return v.OrderByRef(1, o.CustomerID, o.Ref) },
			} {
				got, err := find()
				require.NoError(t, err)
				require.Equal(t, o, got)
			}
			all, err := v.OrdersByRef(1, o.Ref)
			require.NoError(t, err)
			require.Equal(t, []cloud.Order{o}, all)
		})
	}
	look(t, db, func(v cloud.View) {
		for _, err := range []error{second(v.Order(2, 1)), second(v.Order(1, 99)), second(v.OrderByNumber(2, "SR000000001")),
			second(v.OrderByRef(1, 0, "")), second(v.OrderByRef(2, 0, "ref-39")), second(v.OrderShipment(1, 0)), second(v.Account(9))} {
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
	})
}

func orderKeys(t *testing.T, db *store.DB) {
	a := order(1, 1)
	a.Ref, a.CustomerID = "PO-1", 5
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{a}}})
	try := func(o cloud.Order) error {
		return db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}, nil
		})
	}
	b := order(2, 1)
	b.Ref, b.CustomerID = "PO-1", 5
	require.ErrorIs(t, try(b), cloud.ErrExists, "a reference is taken")
	b.CustomerID = 6
	require.NoError(t, try(b), "but another customer's is another")
	c := order(3, 2)
	c.Ref, c.CustomerID = "PO-1", 5
	require.NoError(t, try(c), "and so is another business's")
	d := order(4, 1)
	d.Number = strings.ToLower(a.Number)
	require.ErrorIs(t, try(d), cloud.ErrExists, "a number is taken")
	stolen := order(1, 2)
	require.ErrorIs(t, try(stolen), cloud.ErrNotFound, "an order keeps its business")
	require.NoError(t, try(order(5, 1)))
	require.NoError(t, try(order(6, 1)), "no reference is not the same one")

	// A reference moves to another order in one change.
	b.CustomerID, b.Ref = 5, "PO-1"
	a.Ref = "PO-1-R1"
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{a, b}}})
	look(t, db, func(v cloud.View) {
		got, err := v.OrderByRef(1, 5, "PO-1")
		require.NoError(t, err)
		require.Equal(t, b, got)
	})
}

// orderLists compares pages with a plain filter over all orders.
func orderLists(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(3, 3))
	var all []cloud.Order
	ch := &cloud.Changes{}
	states := cloud.OrderStates()
	for id := range cloud.OrderID(120) {
		o := order(id+1, cloud.BusinessID(r.IntN(2)+1))
		o.CustomerID, o.BrokerID, o.DriverID = cloud.AccountID(r.IntN(3)), cloud.AccountID(r.IntN(3)), cloud.AccountID(r.IntN(2))
		o.Type = []cloud.OrderType{cloud.DeliveryOrder, cloud.PickupOrder, cloud.PointToPoint}[r.IntN(3)]
		o.Status, o.Priority = states[r.IntN(len(states))].ID, r.IntN(10)
		o.RouteID, o.WarehouseID = int64(r.IntN(2)), int64(r.IntN(2))<<40
		o.CreatedAt = now.Add(time.Duration(r.IntN(100)) * 12 * time.Hour)
		o.UpdatedAt = o.CreatedAt
		if r.IntN(3) > 0 {
			o.ScheduledDate = fmt.Sprintf("2026-11-%02d", r.IntN(30)+1)
		}
		o.Ref = fmt.Sprintf("PO-%d%%_%d", id%3, id)
		all = append(all, o)
		ch.Orders = append(ch.Orders, o)
		ch.OrderTerms = append(ch.OrderTerms, cloud.OrderTerms{BusinessID: o.BusinessID, OrderID: o.ID,
			Terms: [cloud.SearchFields]string{cloud.SearchNumber: strings.ToLower(o.Number), cloud.SearchRef: strings.ToLower(o.Ref)}})
	}
	write(t, db, 0, ch)
	for range 200 {
		q := cloud.OrderQuery{BusinessID: cloud.BusinessID(r.IntN(3) + 1), Page: cloud.Page{Sort: []string{"id", "created_at", "updated_at", "scheduled_date", "priority", "order_status_id"}[r.IntN(6)],
			Down: r.IntN(2) == 0, Offset: r.IntN(20), Limit: r.IntN(20) + 1}}
		maybe := func(fn func()) {
			if r.IntN(4) == 0 {
				fn()
			}
		}
		maybe(func() { q.CustomerID = cloud.AccountID(r.IntN(3)) })
		maybe(func() { q.BrokerID = cloud.AccountID(r.IntN(3)) })
		maybe(func() { q.DriverID = 1 })
		maybe(func() { q.RouteID = 1 })
		maybe(func() { q.WarehouseID = 1 << 40 })
		maybe(func() { q.Type = cloud.PickupOrder })
		maybe(func() {
			q.Statuses = []cloud.OrderStatus{states[r.IntN(len(states))].ID, states[r.IntN(len(states))].ID}
		})
		maybe(func() { q.Statuses = []cloud.OrderStatus{77} })
		maybe(func() { q.ScheduledFrom = "2026-11-10" })
		maybe(func() { q.ScheduledTo = "2026-11-20" })
		maybe(func() { q.CreatedFrom, q.CreatedTo = now.Add(20*12*time.Hour), now.Add(60*12*time.Hour) })
		maybe(func() { q.CreatedTo = now.Add(50 * 12 * time.Hour) })
		maybe(func() { q.Keyword = []string{"po-1", "1%_", "sr00", "nowhere"}[r.IntN(4)] })
		want := matching(all, q)
		listed, got, err := db.ListOrders(t.Context(), q)
		require.NoError(t, err, "%+v", q)
		require.Equal(t, len(want), listed.Total, "%+v", q)
		require.False(t, listed.AtLeast)
		require.Equal(t, q.Offset+q.Limit < len(want), listed.Next != nil, "%+v", q)
		want = want[min(q.Offset, len(want)):]
		want = want[:min(q.Limit, len(want))]
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i], "%+v", q)
		}
	}
	_, _, err := db.ListOrders(t.Context(), cloud.OrderQuery{BusinessID: 1, Page: cloud.Page{Sort: "body; DROP TABLE orders", Limit: 1}})
	require.Error(t, err)
}

func matching(all []cloud.Order, q cloud.OrderQuery) []cloud.Order {
	var out []cloud.Order
	for _, o := range all {
		if o.BusinessID == q.BusinessID && (q.CustomerID == 0 || o.CustomerID == q.CustomerID) && (q.BrokerID == 0 || o.BrokerID == q.BrokerID) &&
			(q.DriverID == 0 || o.DriverID == q.DriverID) && (q.RouteID == 0 || o.RouteID == q.RouteID) && (q.WarehouseID == 0 || o.WarehouseID == q.WarehouseID) &&
			(q.Type == "" || o.Type == q.Type) && (len(q.Statuses) == 0 || slices.Contains(q.Statuses, o.Status)) &&
			(q.ScheduledFrom == "" || o.ScheduledDate >= q.ScheduledFrom) && (q.ScheduledTo == "" || o.ScheduledDate <= q.ScheduledTo && o.ScheduledDate != "") &&
			(q.CreatedFrom.IsZero() || !o.CreatedAt.Before(q.CreatedFrom)) && (q.CreatedTo.IsZero() || o.CreatedAt.Before(q.CreatedTo)) &&
			(strings.Contains(strings.ToLower(o.Number), q.Keyword) || strings.Contains(strings.ToLower(o.Ref), q.Keyword)) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b cloud.Order) int {
		c := 0
		switch q.Sort {
		case "created_at", "updated_at":
			c = a.CreatedAt.Compare(b.CreatedAt)
		case "scheduled_date":
			c = strings.Compare(a.ScheduledDate, b.ScheduledDate)
		case "priority":
			c = a.Priority - b.Priority
		case "order_status_id":
			c = int(a.Status - b.Status)
		}
		if c == 0 {
			c = int(a.ID - b.ID)
		}
		if q.Down {
			c = -c
		}
		return c
	})
	return out
}

// An order's shipment is found by the order, its packages and their numbers.
func orderShipments(t *testing.T, db *store.DB) {
	a, b := order(1, 1), order(2, 1)
	b.Packages[0].ExternalNumber = "EXT-1" // carriers use numbers again
	s := cloud.Shipment{ID: 11, BusinessID: 1, Number: a.Number, OrderID: 1, CustomerID: 5, CreatedAt: now}
	newer := cloud.Shipment{ID: 12, BusinessID: 1, Number: b.Number, OrderID: 2, CreatedAt: now}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{a, b}}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{s, newer}}})
	f := func(x otep.Subject, want ...cloud.Shipment) {
		t.Helper()
		require.NoError(t, db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			got, err := v.ShipmentsBySubject(1, x)
			require.Equal(t, want, got)
			none, _ := v.ShipmentsBySubject(2, x)
			require.Empty(t, none, "another business")
			return nil, err
		}))
	}
	f(otep.Subject{OrderID: 1}, s)
	f(otep.Subject{PackageID: 10}, s)
	f(otep.Subject{TrackingNumber: "sr000000001-1"}, s)
	f(otep.Subject{ExternalTrackingNumber: "ext-1"}, s, newer)
	f(otep.Subject{OrderID: 9, PackageID: 9})
	for number, want := range map[string]cloud.Shipment{"sr000000001": s, "SR000000001-1": s, "Ext-1": newer} {
		timeline, err := db.FindTimeline(t.Context(), number, nil)
		got := timeline.Shipment
		require.NoError(t, err)
		require.Equal(t, want, got, number)
	}
	timeline, err := db.FindTimeline(t.Context(), "ext-1", func(x cloud.Shipment) bool { return x.ID == 11 })
	got := timeline.Shipment
	require.NoError(t, err)
	require.Equal(t, s, got)
	look(t, db, func(v cloud.View) {
		got, err := v.OrderShipment(1, 2)
		require.NoError(t, err)
		require.Equal(t, newer, got)
	})
}

func orderSearch(t *testing.T, db *store.DB) {
	a, b, foreign := order(1, 1), order(2, 1), order(3, 2)
	a.CustomerID, b.BrokerID = 5, 6
	terms := func(o cloud.Order, name string) cloud.OrderTerms {
		return cloud.OrderTerms{BusinessID: o.BusinessID, OrderID: o.ID, Terms: [cloud.SearchFields]string{
			cloud.SearchNumber: strings.ToLower(o.Number), cloud.SearchName: name, cloud.SearchPhone: "14165550123"}}
	}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{a, b, foreign},
		OrderTerms: []cloud.OrderTerms{terms(a, "jane smith"), terms(b, `joão "100%_" o'hara \ 包裹柜机`), terms(foreign, "jane smith")}}})
	every := []cloud.SearchField{cloud.SearchNumber, cloud.SearchExternal, cloud.SearchRef, cloud.SearchName, cloud.SearchPhone}
	f := func(q cloud.OrderSearch, want ...cloud.OrderID) {
		t.Helper()
		if q.BusinessID, q.Limit = 1, 50; q.Fields == nil {
			q.Fields = every
		}
		found, err := db.SearchOrders(t.Context(), q)
		require.NoError(t, err)
		var got []cloud.OrderID
		for _, m := range found {
			require.Equal(t, cloud.BusinessID(1), m.Order.BusinessID)
			got = append(got, m.Order.ID)
		}
		require.Equal(t, want, got, "%+v", q)
	}
	f(cloud.OrderSearch{Text: "smit"}, 1)
	f(cloud.OrderSearch{Text: "4165550"}, 2, 1)
	f(cloud.OrderSearch{Text: "4165550", CustomerID: 5}, 1)
	f(cloud.OrderSearch{Text: "4165550", BrokerID: 6}, 2)
	f(cloud.OrderSearch{Text: "smith", Fields: []cloud.SearchField{cloud.SearchPhone, cloud.SearchNumber}})
	f(cloud.OrderSearch{Text: "joão"}, 2)
	f(cloud.OrderSearch{Text: "包裹柜"}, 2)
	for _, hostile := range []string{`"100%_" o'`, `o'hara \`, `100%_"`} {
		f(cloud.OrderSearch{Text: hostile}, 2)
	}
	for _, nothing := range []string{"___", "%%%", "a* OR b", `" OR "`, "nobody", "zzz\\"} {
		f(cloud.OrderSearch{Text: nothing})
	}
	f(cloud.OrderSearch{Near: [][]string{{"jan", "ane"}, {"smo"}}}, 1)
	f(cloud.OrderSearch{Near: [][]string{{"jan", "xyz"}, {"jan", "smo"}}})
	f(cloud.OrderSearch{Near: [][]string{{`"10`, `%_"`}, {"xyz"}}}, 2)

	// A change of the terms and a failed change.
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{OrderTerms: []cloud.OrderTerms{terms(a, "maria lopez")}}})
	f(cloud.OrderSearch{Text: "smith"})
	f(cloud.OrderSearch{Text: "lopez"}, 1)
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{OrderTerms: []cloud.OrderTerms{terms(a, "nobody else")}},
			DeviceChanges: cloud.DeviceChanges{Seen: []cloud.DeviceSeen{{DeviceID: 77, LastSeenAt: now}}, Lanes: []cloud.LaneMove{{From: 9, To: lane(1, 10)}}}}, nil
	})
	require.Error(t, err)
	f(cloud.OrderSearch{Text: "lopez"}, 1)
}

// A deleted order leaves nothing but what was done to it last.
func droppedOrders(t *testing.T, db *store.DB) {
	a, b := order(1, 1), order(2, 1)
	made := func(id cloud.OrderID, kind int) cloud.OrderOperation {
		return cloud.OrderOperation{OrderID: id, BusinessID: 1, Type: kind, After: cloud.OrderNew, At: now,
			Changes: map[string]cloud.FieldChange{"note": {From: nil, To: "x"}}, Operator: cloud.Operator{Type: "user", ID: 3, Name: "Ann"}}
	}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{a, b},
		OrderOperations: []cloud.OrderOperation{made(1, 6001), made(2, 6001), made(1, 6002)},
		OrderTerms:      []cloud.OrderTerms{{BusinessID: 1, OrderID: 1, Terms: [cloud.SearchFields]string{cloud.SearchName: "jane smith"}}}},
		TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 11, BusinessID: 1, Number: a.Number, OrderID: 1}, {ID: 12, BusinessID: 1, Number: b.Number, OrderID: 2}},
			Events: []cloud.TimelineEvent{{ShipmentID: 11, BusinessID: 1, Event: scanAt(t, "e1", "2026-11-20T10:00:00Z")},
				{ShipmentID: 12, BusinessID: 1, Event: scanAt(t, "e1", "2026-11-20T10:00:00Z")}}}})
	ops, err := db.ListOrderOperations(t.Context(), 1, 1)
	require.NoError(t, err)
	require.Len(t, ops, 2)
	want := made(1, 6001)
	want.ID = ops[0].ID
	require.Equal(t, want, ops[0])
	require.Greater(t, ops[1].ID, ops[0].ID)

	drop := func(k cloud.OrderKey) error {
		return db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{k}, OrderOperations: []cloud.OrderOperation{made(k.ID, 6004)}}}, nil
		})
	}
	require.ErrorIs(t, drop(cloud.OrderKey{BusinessID: 2, ID: 1}), cloud.ErrNotFound)
	require.NoError(t, drop(cloud.OrderKey{BusinessID: 1, ID: 1}))
	for _, number := range []string{a.Number, a.Number + "-1", "ext-1"} {
		_, err = db.FindTimeline(t.Context(), number, nil)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	}
	ops, err = db.ListOrderOperations(t.Context(), 1, 1)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Equal(t, 6004, ops[0].Type)
	found, err := db.SearchOrders(t.Context(), cloud.OrderSearch{BusinessID: 1, Text: "smith", Fields: []cloud.SearchField{cloud.SearchName}, Limit: 5})
	require.NoError(t, err)
	require.Empty(t, found)
	timeline, err := db.FindTimeline(t.Context(), b.Number, nil)
	es := timeline.Events
	require.NoError(t, err)
	require.Len(t, es, 1, "the other order is as it was")
}

func jobs(t *testing.T, db *store.DB) {
	j := cloud.Job{ID: "bat_1", BusinessID: 1, AccountID: 2, Total: 3, Status: cloud.JobQueued, CreatedAt: now}
	later := cloud.Job{ID: "bat_0", BusinessID: 2, Total: 1, Status: cloud.JobProcessing, CreatedAt: now.Add(time.Second)}
	write(t, db, 0, &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{later, j},
		JobRows: []cloud.JobRow{
			{JobID: "bat_1", Row: 1, Input: []byte("a")}, {JobID: "bat_1", Row: 2, Input: []byte("b")}, {JobID: "bat_1", Row: 3, Input: []byte("c")},
			{JobID: "bat_0", Row: 1, Input: []byte("d")}}}})
	open, err := db.ListOpenJobs(t.Context(), 9)
	require.NoError(t, err)
	require.Equal(t, []cloud.Job{j, later}, open, "oldest first")
	n, err := db.NextJobRow(t.Context(), "bat_1")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	done := cloud.JobRow{JobID: "bat_1", Row: 1, Input: []byte{}, Result: []byte(`{}`), Failed: true}
	write(t, db, 0, &cloud.Changes{JobChanges: cloud.JobChanges{JobRows: []cloud.JobRow{done}}})
	err = db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{order(1, 1)}}, JobChanges: cloud.JobChanges{JobRows: []cloud.JobRow{done}}}, nil
	})
	require.ErrorIs(t, err, cloud.ErrStale, "a result is written once")
	look(t, db, func(v cloud.View) {
		_, err := v.Order(1, 1)
		require.ErrorIs(t, err, cloud.ErrNotFound)
		row, err := v.JobRow("bat_1", 1)
		require.NoError(t, err)
		require.Equal(t, done.Result, row.Result)
		require.True(t, row.Failed)
		_, err = v.Job(2, "bat_1")
		require.ErrorIs(t, err, cloud.ErrNotFound, "another business")
	})
	got, count, listed, rows, err := db.ListJobRows(t.Context(), 1, "bat_1", cloud.Page{Offset: 1, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, j, got)
	require.Equal(t, cloud.JobCount{Processed: 1, Failed: 1}, count)
	require.Len(t, rows, 1)
	require.Equal(t, 2, rows[0].Row)
	require.Equal(t, j.Total, listed.Total)
	requireWalk(t, cloud.Page{Limit: 1}, func(p cloud.Page) (cloud.Listed, []cloud.JobRow, error) {
		_, _, listed, rows, err := db.ListJobRows(t.Context(), 1, "bat_1", p)
		return listed, rows, err
	})
	require.Nil(t, rows[0].Result)
	_, _, _, _, err = db.ListJobRows(t.Context(), 2, "bat_1", cloud.Page{Limit: 9})
	require.ErrorIs(t, err, cloud.ErrNotFound)

	j.Status, j.FinishedAt = cloud.JobCompleted, now
	write(t, db, 0, &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{j}, DropJobsBefore: now}})
	_, _, _, _, err = db.ListJobRows(t.Context(), 1, "bat_1", cloud.Page{Limit: 9})
	require.NoError(t, err)
	write(t, db, 0, &cloud.Changes{JobChanges: cloud.JobChanges{DropJobsBefore: now.Add(time.Millisecond)}})
	_, _, _, _, err = db.ListJobRows(t.Context(), 1, "bat_1", cloud.Page{Limit: 9})
	require.ErrorIs(t, err, cloud.ErrNotFound)
	look(t, db, func(v cloud.View) {
		_, err := v.JobRow("bat_1", 1)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
	open, err = db.ListOpenJobs(t.Context(), 9)
	require.NoError(t, err)
	require.Equal(t, []cloud.Job{later}, open, "what is not finished stays")
}

func interceptions(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(5, 5))
	var want []cloud.Interception
	ch := &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{order(1, 1)}}}
	for id := range cloud.InterceptionID(5) {
		i := random[cloud.Interception](r)
		i.ID, i.BusinessID, i.OrderID = id+1, 1, 1
		want = append(want, i)
	}
	ch.Interceptions = want
	write(t, db, 0, ch)
	want[2].Status = cloud.InterceptionWithdrawn
	write(t, db, 0, &cloud.Changes{InterceptionChanges: cloud.InterceptionChanges{Interceptions: want[2:3]}})
	got, err := db.ListInterceptions(t.Context(), 1, 1)
	require.NoError(t, err)
	require.Equal(t, want, got)
	look(t, db, func(v cloud.View) {
		i, err := v.Interception(1, 3)
		require.NoError(t, err)
		require.Equal(t, want[2], i)
		_, err = v.Interception(2, 3)
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
	got, err = db.ListInterceptions(t.Context(), 2, 1)
	require.NoError(t, err)
	require.Empty(t, got)
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 1}}}})
	got, err = db.ListInterceptions(t.Context(), 1, 1)
	require.NoError(t, err)
	require.Empty(t, got)
}

// assignments come back as they were written, and one of an order is active.
func assignments(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(9, 9))
	states := []cloud.AssignmentStatus{cloud.AssignmentRevoked, cloud.AssignmentReleased}
	var all []cloud.Assignment
	for i := range cloud.AssignmentID(30) {
		a := random[cloud.Assignment](r)
		a.ID, a.BusinessID, a.OrderID, a.BrokerID, a.Status = i+1, 1+cloud.BusinessID(i%2), cloud.OrderID(i%5+1), cloud.AccountID(i%3+1), states[i%2]
		all = append(all, a)
	}
	write(t, db, 0, &cloud.Changes{AssignmentChanges: cloud.AssignmentChanges{Assignments: all}})
	active := all[4]
	active.Status = cloud.AssignmentActive
	write(t, db, 0, &cloud.Changes{AssignmentChanges: cloud.AssignmentChanges{Assignments: []cloud.Assignment{active}}})
	all[4] = active
	look(t, db, func(v cloud.View) {
		got, err := v.Assignment(1, active.ID)
		require.NoError(t, err)
		require.Equal(t, active, got)
		require.ErrorIs(t, second(v.Assignment(2, active.ID)), cloud.ErrNotFound)
	})
	for _, q := range []cloud.AssignmentQuery{{Page: cloud.Page{Limit: 50}}, {BrokerID: 2, Page: cloud.Page{Limit: 50}}, {OrderID: 3, Page: cloud.Page{Limit: 2, Offset: 1}}, {Status: cloud.AssignmentActive, Page: cloud.Page{Limit: 9}},
		{Status: cloud.AssignmentReleased, BrokerID: 1, OrderID: 1, Page: cloud.Page{Limit: 9}}, {Page: cloud.Page{Limit: 5, Offset: 99}}} {
		for b := range cloud.BusinessID(3) {
			q.BusinessID = b + 1
			var want []cloud.Assignment
			for _, a := range slices.Backward(all) {
				if a.BusinessID == q.BusinessID && (q.BrokerID == 0 || a.BrokerID == q.BrokerID) && (q.OrderID == 0 || a.OrderID == q.OrderID) && (q.Status == "" || a.Status == q.Status) {
					want = append(want, a)
				}
			}
			listed, got, err := db.ListAssignments(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, len(want), listed.Total)
			requireWalk(t, q.Page, func(p cloud.Page) (cloud.Listed, []cloud.Assignment, error) {
				q := q
				q.Page = p
				return db.ListAssignments(t.Context(), q)
			})
			from := min(q.Offset, len(want))
			require.Equal(t, append([]cloud.Assignment(nil), want[from:min(from+q.Limit, len(want))]...), append([]cloud.Assignment(nil), got...), "%+v", q)
		}
	}
	twice := all[9]
	twice.OrderID, twice.ID, twice.Status = active.OrderID, 99, cloud.AssignmentActive
	require.Error(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AssignmentChanges: cloud.AssignmentChanges{Assignments: []cloud.Assignment{twice}}}, nil
	}))
}

// thirdParties come back as they were written, and one of an order is open.
func thirdParties(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(10, 10))
	ended := []cloud.ThirdPartyStatus{cloud.ThirdPartyCancelled, cloud.ThirdPartyCompleted, cloud.ThirdPartyPartly}
	var all []cloud.ThirdPartyAssignment
	for i := range cloud.ThirdPartyID(30) {
		a := random[cloud.ThirdPartyAssignment](r)
		a.ID, a.Number, a.BusinessID, a.OrderID = i+1, fmt.Sprintf("TPA-2026-%06d", i+1), 1+cloud.BusinessID(i%2), cloud.OrderID(i%5+1)
		a.ProviderID, a.Status = cloud.ProviderID(i%3+1), ended[i%3]
		all = append(all, a)
	}
	write(t, db, 0, &cloud.Changes{ThirdPartyChanges: cloud.ThirdPartyChanges{ThirdParties: all}})
	open := all[4]
	open.Status = cloud.ThirdPartyHandedOver
	write(t, db, 0, &cloud.Changes{ThirdPartyChanges: cloud.ThirdPartyChanges{ThirdParties: []cloud.ThirdPartyAssignment{open}}})
	all[4] = open
	look(t, db, func(v cloud.View) {
		got, err := v.ThirdParty(1, open.ID)
		require.NoError(t, err)
		require.Equal(t, open, got)
		got, err = v.ThirdPartyByNumber(1, open.Number)
		require.NoError(t, err)
		require.Equal(t, open, got)
		require.ErrorIs(t, second(v.ThirdParty(2, open.ID)), cloud.ErrNotFound)
		require.ErrorIs(t, second(v.ThirdPartyByNumber(2, open.Number)), cloud.ErrNotFound)
		require.ErrorIs(t, second(v.ThirdPartyByNumber(1, "TPA-2026-4")), cloud.ErrNotFound)
	})
	for _, q := range []cloud.ThirdPartyQuery{{Page: cloud.Page{Limit: 50}}, {ProviderID: 2, Page: cloud.Page{Limit: 50}}, {OrderID: 3, Page: cloud.Page{Limit: 2, Offset: 1}}, {Status: cloud.ThirdPartyHandedOver, Page: cloud.Page{Limit: 9}},
		{Status: cloud.ThirdPartyPartly, ProviderID: 3, OrderID: 1, Page: cloud.Page{Limit: 9}}, {Page: cloud.Page{Limit: 5, Offset: 99}}} {
		for b := range cloud.BusinessID(3) {
			q.BusinessID = b + 1
			var want []cloud.ThirdPartyAssignment
			for _, a := range slices.Backward(all) {
				if a.BusinessID == q.BusinessID && (q.ProviderID == 0 || a.ProviderID == q.ProviderID) && (q.OrderID == 0 || a.OrderID == q.OrderID) && (q.Status == "" || a.Status == q.Status) {
					want = append(want, a)
				}
			}
			listed, got, err := db.ListThirdParties(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, len(want), listed.Total)
			requireWalk(t, q.Page, func(p cloud.Page) (cloud.Listed, []cloud.ThirdPartyAssignment, error) {
				q := q
				q.Page = p
				return db.ListThirdParties(t.Context(), q)
			})
			from := min(q.Offset, len(want))
			require.Equal(t, append([]cloud.ThirdPartyAssignment(nil), want[from:min(from+q.Limit, len(want))]...), append([]cloud.ThirdPartyAssignment(nil), got...), "%+v", q)
		}
	}
	// Of another order it may be open, of the same it may not, and a number is given once.
	refused := func(change func(*cloud.ThirdPartyAssignment)) {
		a := all[9]
		a.OrderID, a.ID, a.Number, a.Status = 77, 99, "TPA-2026-000099", cloud.ThirdPartyCreated
		change(&a)
		require.Error(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{ThirdPartyChanges: cloud.ThirdPartyChanges{ThirdParties: []cloud.ThirdPartyAssignment{a}}}, nil
		}))
	}
	refused(func(a *cloud.ThirdPartyAssignment) { a.OrderID = open.OrderID })
	refused(func(a *cloud.ThirdPartyAssignment) { a.Number = open.Number })
	refused(func(a *cloud.ThirdPartyAssignment) { a.ID, a.BusinessID = open.ID, 2 })
}

// orderPages goes through lists by marks while orders are added, changed and removed:
// what stood the whole time comes exactly once, in order.
func orderPages(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(4, 4))
	next := cloud.OrderID(0)
	put := func(list ...cloud.Order) {
		ch := &cloud.Changes{}
		for _, o := range list {
			ch.Orders = append(ch.Orders, o)
			ch.OrderTerms = append(ch.OrderTerms, cloud.OrderTerms{BusinessID: o.BusinessID, OrderID: o.ID,
				Terms: [cloud.SearchFields]string{cloud.SearchNumber: strings.ToLower(o.Number)}})
		}
		write(t, db, 0, ch)
	}
	made := func(b cloud.BusinessID) cloud.Order {
		next++
		o := order(next, b)
		o.CustomerID, o.Priority, o.Status = cloud.AccountID(r.IntN(2)), r.IntN(3), []cloud.OrderStatus{cloud.OrderNew, cloud.OrderDelivered}[r.IntN(2)]
		o.CreatedAt = now.Add(time.Duration(r.IntN(5)) * time.Hour)
		o.UpdatedAt = o.CreatedAt
		return o
	}
	b := cloud.BusinessID(100)
	for _, sort := range []string{"id", "created_at", "updated_at", "scheduled_date", "priority", "order_status_id"} {
		for _, q := range []cloud.OrderQuery{{}, {CustomerID: 1}, {Statuses: []cloud.OrderStatus{cloud.OrderNew, cloud.OrderDelivered}}, {CreatedFrom: now.Add(time.Hour)}, {Keyword: "sr0"}} {
			b++
			var all []cloud.Order
			for range 30 {
				all = append(all, made(b))
			}
			put(all...)
			q.BusinessID, q.Page = b, cloud.Page{Sort: sort, Down: r.IntN(2) == 0, Limit: 2 + r.IntN(6)}
			stood := map[cloud.OrderID]bool{}
			for _, o := range all {
				stood[o.ID] = true
			}
			var got []cloud.Order
			for changes := 0; ; changes++ {
				listed, found, err := db.ListOrders(t.Context(), q)
				require.NoError(t, err, "%+v", q)
				got = append(got, found...)
				if listed.Next == nil {
					break
				}
				q.After = listed.Next
				if changes >= 8 { // lists end
					continue
				}
				put(made(b))
				o := all[r.IntN(len(all))]
				if delete(stood, o.ID); r.IntN(2) == 0 {
					o.UpdatedAt, o.Priority = o.UpdatedAt.Add(time.Hour), r.IntN(3)
					put(o)
				} else {
					write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: b, ID: o.ID}}}})
					all = slices.DeleteFunc(all, func(x cloud.Order) bool { return x.ID == o.ID })
				}
			}
			q.After = nil
			var want []cloud.OrderID
			for _, o := range matching(all, q) {
				if stood[o.ID] {
					want = append(want, o.ID)
				}
			}
			var ids []cloud.OrderID
			for _, o := range got {
				if stood[o.ID] {
					ids = append(ids, o.ID)
				}
			}
			require.Equal(t, want, ids, "%+v", q)
		}
	}
	for _, bad := range []cloud.Mark{{}, {ID: "x"}, {Key: "x", ID: int64(1)}, {Key: int64(1), ID: int64(1)}} {
		_, _, err := db.ListOrders(t.Context(), cloud.OrderQuery{BusinessID: 1, Page: cloud.Page{Sort: "id", Limit: 1, After: &bad}})
		require.ErrorIs(t, err, cloud.ErrNoMark, "%v", bad)
	}
	_, _, err := db.ListOrders(t.Context(), cloud.OrderQuery{BusinessID: 1, Page: cloud.Page{Sort: "scheduled_date", Limit: 1, After: &cloud.Mark{Key: int64(1), ID: int64(1)}}})
	require.ErrorIs(t, err, cloud.ErrNoMark)
}
