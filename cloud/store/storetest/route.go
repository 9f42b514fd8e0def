package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// routes come back as they were written, and pages of them are those of a plain
// filter that asks every route's orders how far it has come.
func routes(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(9, 9))
	all, orders := map[cloud.RouteID]cloud.Route{}, map[cloud.OrderID]cloud.Order{}
	states := cloud.OrderStates()
	for range 12 {
		ch := &cloud.Changes{}
		for range 9 {
			x := random[cloud.Route](r)
			x.ID = int64(r.IntN(60) + 1)
			x.BusinessID, x.BrokerID, x.DriverID = cloud.BusinessID(x.ID%2+1), cloud.AccountID(r.IntN(3)), cloud.AccountID(r.IntN(3))
			x.Name, x.Date = fmt.Sprint("n", r.IntN(4)), fmt.Sprintf("2026-11-%02d", r.IntN(4)+1)
			x.DispatchedAt, x.StartedAt, x.CancelledAt = time.Time{}, time.Time{}, time.Time{}
			for _, at := range []*time.Time{&x.DispatchedAt, &x.StartedAt, &x.CancelledAt}[:r.IntN(4)] {
				*at = now
			}
			all[x.ID] = x
			ch.Routes = append(ch.Routes, x)
		}
		for range 14 {
			o := order(cloud.OrderID(r.IntN(90)+1), 0)
			o.BusinessID = cloud.BusinessID(o.ID%2 + 1)
			o.Status, o.RouteID, o.Stop = states[r.IntN(len(states))].ID, int64(r.IntN(40)), r.IntN(9)+1
			if o.Type = []cloud.OrderType{cloud.DeliveryOrder, cloud.PickupOrder, cloud.PointToPoint}[r.IntN(3)]; o.Type == cloud.PointToPoint {
				o.SecondStop = o.Stop + 1
			}
			for range r.IntN(3) {
				o.Past = append(o.Past, cloud.RouteStop{RouteID: int64(r.IntN(40) + 1), Sequence: 3, Kind: cloud.DeliveryStop, State: cloud.StopFailed})
			}
			orders[o.ID] = o
			ch.Orders = append(ch.Orders, o)
		}
		write(t, db, 0, ch)
	}
	stops := func(x cloud.Route) (out []cloud.RouteStop, of []cloud.Order) {
		for _, o := range sorted(orders, func(o cloud.Order) bool { return o.BusinessID == x.BusinessID }) {
			n := len(out)
			for _, s := range o.Stops() {
				if s.RouteID == x.ID {
					out = append(out, s)
				}
			}
			if len(out) > n {
				of = append(of, o)
			}
		}
		return out, of
	}
	look(t, db, func(v cloud.View) {
		for id, want := range all {
			got, err := v.Route(want.BusinessID, id)
			require.NoError(t, err)
			require.Equal(t, want, got)
			_, of := stops(want)
			on, err := v.RouteOrders(want.BusinessID, id)
			require.NoError(t, err)
			require.Equal(t, of, on)
			_, err = v.Route(want.BusinessID+1, id)
			require.ErrorIs(t, err, cloud.ErrNotFound)
			on, err = v.RouteOrders(want.BusinessID%2+1, id)
			require.NoError(t, err)
			require.False(t, slices.ContainsFunc(on, func(o cloud.Order) bool { return o.BusinessID == want.BusinessID }))
		}
	})
	seen := map[cloud.RouteStatus]int{}
	for range 300 {
		f := cloud.RouteFilter{BusinessID: cloud.BusinessID(r.IntN(2) + 1), Page: cloud.Page{Sort: []string{"id", "date", "name"}[r.IntN(3)], Down: r.IntN(2) == 0,
			Offset: r.IntN(4), Limit: r.IntN(6) + 1}}
		maybe := func(fn func()) {
			if r.IntN(3) == 0 {
				fn()
			}
		}
		maybe(func() { f.BrokerID = cloud.AccountID(r.IntN(3)) })
		maybe(func() { f.DriverID = cloud.AccountID(r.IntN(3)) })
		maybe(func() { f.DateFrom = "2026-11-02" })
		maybe(func() { f.DateTo = "2026-11-03" })
		if r.IntN(4) > 0 {
			f.Status = cloud.RouteStatuses[r.IntN(len(cloud.RouteStatuses))]
		}
		want := slices.Clone(sorted(all, func(x cloud.Route) bool {
			s, _ := stops(x)
			return x.BusinessID == f.BusinessID && (f.BrokerID == 0 || x.BrokerID == f.BrokerID) && (f.DriverID == 0 || x.DriverID == f.DriverID) &&
				(f.DateFrom == "" || x.Date >= f.DateFrom) && (f.DateTo == "" || x.Date <= f.DateTo) && (f.Status == "" || x.Status(s) == f.Status)
		}))
		slices.SortStableFunc(want, func(a, b cloud.Route) int {
			switch f.Page.Sort {
			case "date":
				return strings.Compare(a.Date, b.Date)
			case "name":
				return strings.Compare(a.Name, b.Name)
			}
			return 0
		})
		if f.Page.Down {
			slices.Reverse(want)
		}
		look(t, db, func(v cloud.View) {
			got, listed, err := v.Routes(f)
			require.NoError(t, err)
			require.Equal(t, len(want), listed.Total, "%+v", f)
			seen[f.Status] += listed.Total
			requireWalk(t, f.Page, func(p cloud.Page) (cloud.Listed, []cloud.Route, error) {
				f := f
				f.Page = p
				list, listed, err := v.Routes(f)
				return listed, list, err
			})
			want = want[min(f.Page.Offset, len(want)):]
			want = want[:min(f.Page.Limit, len(want))]
			require.Equal(t, len(want), len(got))
			for i := range want {
				require.Equal(t, want[i], got[i])
			}
		})
	}
	for _, s := range cloud.RouteStatuses {
		require.Positive(t, seen[s], "no route was %s", s)
	}
	stolen := all[slices.Sorted(maps.Keys(all))[0]]
	stolen.BusinessID = stolen.BusinessID%2 + 1
	require.ErrorIs(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{stolen}}}, nil
	}),
		cloud.ErrNotFound, "a route keeps its business")

	// An order that is deleted, or taken off without a trace, has no stop.
	o := order(99, 1)
	o.RouteID, o.Stop, o.Status = 2, 1, cloud.OrderRoutePlanned
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	on := func() (found bool) {
		look(t, db, func(v cloud.View) {
			list, err := v.RouteOrders(1, 2)
			require.NoError(t, err)
			found = slices.ContainsFunc(list, func(o cloud.Order) bool { return o.ID == 99 })
		})
		return found
	}
	require.True(t, on())
	o.TakeOff()
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	require.False(t, on())
	draft := func() (n int) {
		look(t, db, func(v cloud.View) {
			_, listed, err := v.Routes(cloud.RouteFilter{BusinessID: 1, DateFrom: "2030-01-01", Status: cloud.RouteDraft, Page: cloud.Page{Sort: "id", Limit: 1}})
			require.NoError(t, err)
			n = listed.Total
		})
		return n
	}
	o.RouteID = 500
	write(t, db, 0, &cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{{ID: 500, BusinessID: 1, Date: "2030-01-01"}}}, OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}})
	require.False(t, on())
	require.Zero(t, draft())
	write(t, db, 0, &cloud.Changes{OrderChanges: cloud.OrderChanges{DroppedOrders: []cloud.OrderKey{{BusinessID: 1, ID: 99}}}})
	require.Equal(t, 1, draft())
}

// drivers are read with their accounts, whether anything is kept of them or not.
func drivers(t *testing.T, db *store.DB) {
	r := rand.New(rand.NewPCG(4, 4))
	ch := &cloud.Changes{}
	want := map[cloud.AccountID]cloud.Driver{}
	for i := range 20 {
		a := cloud.Account{ID: cloud.AccountID(i + 1), BusinessID: cloud.BusinessID(i%2 + 1), Type: cloud.DriverAccount, Name: fmt.Sprint("n", i%3), Email: fmt.Sprint(i, "@x.example"),
			Enabled: i%3 > 0, CreatedAt: now}
		if i%5 == 4 {
			a.Type = cloud.Broker
		}
		ch.Accounts = append(ch.Accounts, a)
		d := cloud.Driver{Account: a}
		if i%4 > 0 {
			d = random[cloud.Driver](r)
			d.Account, d.BrokerID = a, cloud.AccountID(i%3)
			if a.Type == cloud.DriverAccount {
				ch.Drivers = append(ch.Drivers, d)
			}
		}
		if a.Type == cloud.DriverAccount {
			want[a.ID] = d
		}
	}
	write(t, db, 0, ch)
	look(t, db, func(v cloud.View) {
		for id, d := range want {
			got, err := v.Driver(d.Account.BusinessID, id)
			require.NoError(t, err)
			require.Equal(t, d, got)
			_, err = v.Driver(d.Account.BusinessID+1, id)
			require.ErrorIs(t, err, cloud.ErrNotFound)
		}
		_, err := v.Driver(1, 5)
		require.ErrorIs(t, err, cloud.ErrNotFound, "no driver")
		for _, broker := range []cloud.AccountID{0, 1, 2} {
			mine := sorted(want, func(d cloud.Driver) bool { return d.Account.BusinessID == 2 && (broker == 0 || d.BrokerID == broker) })
			got, listed, err := v.Drivers(cloud.DriverFilter{BusinessID: 2, BrokerID: broker, Page: cloud.Page{Sort: "id", Offset: 1, Limit: 2}})
			require.NoError(t, err)
			require.Equal(t, len(mine), listed.Total)
			require.Equal(t, mine[1:min(3, len(mine))], got)
			for _, sort := range []string{"id", "name", "email", "created_at"} {
				requireWalk(t, cloud.Page{Sort: sort, Down: broker == 0, Limit: 2}, func(p cloud.Page) (cloud.Listed, []cloud.Driver, error) {
					list, listed, err := v.Drivers(cloud.DriverFilter{BusinessID: 2, BrokerID: broker, Page: p})
					return listed, list, err
				})
			}
		}
	})
	stolen := want[2]
	stolen.Account.BusinessID = 1
	require.ErrorIs(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{RouteChanges: cloud.RouteChanges{Drivers: []cloud.Driver{stolen}}}, nil
	}), cloud.ErrNotFound)
	b := cloud.Business{ID: 7, Code: "acme", Name: "Acme"}
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}})
	look(t, db, func(v cloud.View) {
		got, err := v.BusinessByCode("acme")
		require.NoError(t, err)
		require.Equal(t, b, got)
		_, err = v.BusinessByCode("nobody")
		require.ErrorIs(t, err, cloud.ErrNotFound)
	})
}
