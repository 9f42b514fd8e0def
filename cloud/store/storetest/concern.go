package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// concerns compares pages of orders that need attention with a plain filter.
func concerns(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(5, 5))
	states := cloud.OrderStates()
	ch := &cloud.Changes{}
	for id := range cloud.OrderID(300) {
		o := order(id+1, cloud.BusinessID(r.IntN(2)+1))
		o.CustomerID, o.BrokerID, o.DriverID = cloud.AccountID(r.IntN(3)), cloud.AccountID(r.IntN(3)), cloud.AccountID(r.IntN(2))
		o.Status, o.UpdatedAt = states[r.IntN(len(states))].ID, now.Add(time.Duration(r.IntN(100))*time.Hour)
		if r.IntN(3) > 0 {
			o.StatusAt = o.UpdatedAt.Add(-time.Hour)
		}
		if r.IntN(5) > 0 {
			o.ScheduledDate = fmt.Sprintf("2026-11-%02d", r.IntN(9)+1)
		}
		ch.Orders = append(ch.Orders, o)
	}
	write(t, db, 0, ch)
	seen := 0
	for range 200 {
		q := cloud.ConcernQuery{BusinessID: cloud.BusinessID(r.IntN(3) + 1), CustomerID: cloud.AccountID(r.IntN(3)), BrokerID: cloud.AccountID(r.IntN(2)),
			From: now.Add(time.Duration(r.IntN(50)) * time.Hour), To: now.Add(time.Duration(r.IntN(100)) * time.Hour), Page: cloud.Page{Offset: r.IntN(20), Limit: r.IntN(20) + 1}}
		for _, s := range cloud.StoppedStatuses {
			if r.IntN(2) == 0 {
				q.Stopped = append(q.Stopped, s)
			}
		}
		if r.IntN(2) == 0 {
			q.DueFrom, q.DueTo = "2026-11-02", "2026-11-05"
		}
		if r.IntN(2) == 0 {
			q.UnassignedOn = "2026-11-06"
		}
		want := concerning(ch.Orders, q)
		listed, got, err := db.ListConcerns(t.Context(), q)
		require.NoError(t, err)
		require.Equal(t, len(want), listed.Total, "%+v", q)
		requireWalk(t, q.Page, func(p cloud.Page) (cloud.Listed, []cloud.Order, error) {
			q := q
			q.Page = p
			return db.ListConcerns(t.Context(), q)
		})
		want = want[min(q.Offset, len(want)):]
		want = want[:min(q.Limit, len(want))]
		seen += len(want)
		require.Len(t, got, len(want), "%+v", q)
		for i := range want {
			require.Equal(t, want[i], got[i], "%+v", q)
		}
	}
	require.Greater(t, seen, 200)

	// A list that is begun before midnight goes on after it.
	var unassigned []cloud.Order
	for range 5 {
		o := order(cloud.OrderID(len(ch.Orders)+len(unassigned)+1), 9)
		o.Status, o.ScheduledDate, o.DriverID = cloud.OrderNew, "2026-11-06", 0
		unassigned = append(unassigned, o)
	}
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: unassigned}})
	q := cloud.ConcernQuery{BusinessID: 9, DueFrom: "2026-11-01", DueTo: "2026-11-05", UnassignedOn: "2026-11-06", Page: cloud.Page{Limit: 2}}
	listed, got, err := db.ListConcerns(t.Context(), q)
	require.NoError(t, err)
	q.DueTo, q.UnassignedOn, q.After, q.Limit = "2026-11-06", "2026-11-07", listed.Next, 9
	_, rest, err := db.ListConcerns(t.Context(), q)
	require.NoError(t, err)
	slices.Reverse(unassigned)
	require.Equal(t, unassigned, append(got, rest...))
}

func concerning(all []cloud.Order, q cloud.ConcernQuery) []cloud.Order {
	done := []cloud.OrderStatus{cloud.OrderDelivered, cloud.OrderInLocker, cloud.OrderReturned, cloud.OrderCancelled}
	idle := []cloud.OrderStatus{cloud.OrderNew, cloud.OrderReady, cloud.OrderRoutePlanned, cloud.OrderPickupRescheduled, cloud.OrderReceived, cloud.OrderArrivalScan, cloud.OrderDeliveryRescheduled}
	var parts [3][]cloud.Order
	for _, o := range all {
		open := !slices.Contains(done, o.Status) && !slices.Contains(cloud.StoppedStatuses, o.Status)
		switch {
		case o.BusinessID != q.BusinessID || q.CustomerID != 0 && o.CustomerID != q.CustomerID || q.BrokerID != 0 && o.BrokerID != q.BrokerID:
		case slices.Contains(q.Stopped, o.Status) && !o.Since().Before(q.From) && o.Since().Before(q.To):
			parts[0] = append(parts[0], o)
		case open && q.DueTo != "" && o.ScheduledDate >= q.DueFrom && o.ScheduledDate <= q.DueTo:
			parts[1] = append(parts[1], o)
		case open && q.UnassignedOn != "" && o.ScheduledDate == q.UnassignedOn && o.DriverID == 0 && slices.Contains(idle, o.Status):
			parts[2] = append(parts[2], o)
		}
	}
	slices.SortFunc(parts[0], func(a, b cloud.Order) int { return cmp.Or(b.Since().Compare(a.Since()), int(b.ID-a.ID)) })
	for i := range 2 {
		slices.SortFunc(parts[i+1], func(a, b cloud.Order) int {
			return cmp.Or(cmp.Compare(b.ScheduledDate, a.ScheduledDate), int(b.ID-a.ID))
		})
	}
	return slices.Concat(parts[0], parts[1], parts[2])
}

// Files that are needed are listed by the folder they lie in, until they are
// dropped or their order goes.
func keptFiles(t *testing.T, db *store.DB) {
	file := func(path string, o cloud.OrderID) cloud.KeptFile {
		return cloud.KeptFile{Path: path, BusinessID: 1, OrderID: o, At: now}
	}
	a, b, c, d := file("proof/ab01.jpg", 1), file("proof/ab02.pdf", 1), file("proof/cd01.jpg", 2), file("chat/ab03.png", 0)
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{order(1, 1), order(2, 1)}}, FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{a, b, c, d}}})
	expect := func(shard string, want ...string) {
		t.Helper()
		got, err := db.ListKeptFiles(t.Context(), shard)
		require.NoError(t, err)
		require.ElementsMatch(t, want, got)
	}
	expect("proof/ab", a.Path, b.Path)
	expect("proof/cd", c.Path)
	expect("chat/ab", d.Path)
	expect("proof/")
	foreign := b
	foreign.BusinessID = 2
	write(t, db, 0, &cloud.Changes{FileChanges: cloud.FileChanges{DroppedFiles: []cloud.KeptFile{foreign}}})
	expect("proof/ab", a.Path, b.Path)
	write(t, db, 0, &cloud.Changes{FileChanges: cloud.FileChanges{DroppedFiles: []cloud.KeptFile{b}}})
	expect("proof/ab", a.Path)
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 1}}}})
	expect("proof/ab")
	expect("proof/cd", c.Path)
	expect("chat/ab", d.Path)
}
