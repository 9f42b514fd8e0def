package route_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// run is what a route should be, described in plain words of the interface. Its stops
// are copies that the model keeps itself.
type run struct {
	id     cloud.RouteID
	phase  string // planned, dispatched, started, cancelled
	driver cloud.AccountID
	stops  []*stop
}

type stop struct{ state string }

func (x *run) drop(s *stop) {
	if x != nil {
		x.stops = slices.DeleteFunc(x.stops, func(y *stop) bool { return y == s })
	}
}

func (x *run) status() string {
	pending := slices.ContainsFunc(x.stops, func(s *stop) bool { return s.state == "pending" })
	switch {
	case x.phase == "started" && pending:
		return "in_progress"
	case x.phase == "started":
		return "completed"
	case x.phase == "planned" && len(x.stops) == 0:
		return "draft"
	}
	return x.phase
}

func (x *run) String() string {
	out := []string{x.status() + ":"}
	for _, s := range x.stops {
		out = append(out, s.state)
	}
	return strings.Join(out, " ")
}

// parcel is what an order should be.
type parcel struct {
	id             cloud.OrderID
	pickup         bool
	status, before int
	on             *run
	at             *stop // on it
	driver         cloud.AccountID
	was            map[*run]bool // routes that it left with a stop

	stopped     int // status before its interception
	interceptor cloud.InterceptionID
	back        *parcel // where it was then, nil: nowhere
}

func in(n int, list ...int) bool { return slices.Contains(list, n) }

func planned(n int) bool   { return in(n, 10, 11, 12) }
func plannable(n int) bool { return in(n, 1, 4, 22, 23, 30, 31, 43, 44) }
func final(n int) bool     { return in(n, 41, 45, 47, 50) }

// off takes the parcel off its route and away from its driver. An open stop
// becomes state, "" removes it.
func (p *parcel) off(state string) {
	switch {
	case p.at == nil:
	case state == "":
		p.on.drop(p.at)
	default:
		if p.at.state == "pending" {
			p.at.state = state
		}
		p.was[p.on] = true
	}
	p.on, p.at, p.driver = nil, nil, 0
}

// player does random things to routes and parcels, and to the model.
type player struct {
	*world
	r       *rand.Rand
	runs    []*run
	parcels []*parcel
	drivers []cloud.Caller
}

func (p *player) fresh() *parcel {
	kind := cloud.DeliveryOrder
	pickup := p.r.IntN(3) == 0
	if pickup {
		kind = cloud.PickupOrder
	}
	return &parcel{id: p.create(kind), pickup: pickup, status: 1, was: map[*run]bool{}}
}

// join puts a parcel on a route.
func (p *player) join(m *parcel, x *run) (added bool, refusal string) {
	switch {
	case m.on == x:
		return false, ""
	case m.on != nil && !in(m.status, 22, 43):
		return false, "ALREADY_ON_ROUTE"
	case planned(m.status):
		if m.driver != x.driver {
			m.status = map[bool]int{true: 10, false: 11}[x.driver == 0]
		}
	case plannable(m.status):
		m.off("skipped")
		m.before, m.status = m.status, map[bool]int{true: 10, false: 11}[x.driver == 0]
	default:
		return false, "STATUS_NOT_PLANNABLE"
	}
	m.on, m.at, m.driver = x, &stop{"pending"}, x.driver
	x.stops = append(x.stops, m.at)
	return true, ""
}

// unplan gives a planned parcel the status that it had before.
func (m *parcel) unplan() {
	m.off("")
	m.status, m.before = m.before, 0
}

// leave takes a parcel off a route.
func (p *player) leave(m *parcel, x *run) (removed bool, refusal string) {
	switch {
	case m.back != nil && m.back.on == x:
		m.back = nil
	case m.on != x:
		if m.was[x] {
			return false, ""
		}
		return false, "NOT_ON_ROUTE"
	case planned(m.status):
		m.unplan()
	case in(m.status, 22, 43):
		m.off("skipped")
	default:
		return false, "ORDER_STATUS_CONFLICT"
	}
	return true, ""
}

// hand gives a route to another driver.
func (p *player) hand(x *run, d cloud.AccountID) string {
	switch {
	case x.phase == "cancelled", d != x.driver && (x.phase == "started" || x.phase == "dispatched" && d == 0):
		return "ROUTE_STATUS_CONFLICT"
	case d == x.driver:
		return ""
	}
	x.driver = d
	for _, m := range p.parcels {
		if m.back != nil && m.back.on == x {
			m.back.driver = d
		}
		if m.on == x && planned(m.status) {
			m.driver, m.status = d, map[bool]int{true: 10, false: 11}[d == 0]
		}
	}
	return ""
}

func (p *player) cancel(x *run) string {
	if x.phase == "started" || x.phase == "cancelled" {
		return "ROUTE_STATUS_CONFLICT"
	}
	for _, m := range p.parcels {
		if m.on == x || m.back != nil && m.back.on == x {
			p.leave(m, x)
		}
	}
	x.phase = "cancelled"
	return ""
}

// start is a driver who sets out.
func (m *parcel) start() string {
	if m.on != nil && !in(slices.Index([]string{"dispatched", "started"}, m.on.phase), 0, 1) {
		return "ROUTE_STATUS_CONFLICT"
	}
	to := 40
	if m.pickup {
		to = 20
	}
	if !planned(m.status) && (m.pickup || m.status != 43) {
		return "ORDER_STATUS_CONFLICT"
	}
	m.status, m.before = to, 0
	if m.on != nil {
		m.on.phase, m.at.state = "started", "pending"
	}
	return ""
}

// finish is what came of a stop.
func (m *parcel) finish(result, follow string) string {
	at, good, bad, again := 40, 41, 43, 44
	if m.pickup {
		at, good, bad, again = 20, 21, 22, 23
	}
	if m.status != at {
		return "ORDER_STATUS_CONFLICT"
	}
	mark := func(state string) {
		if m.at != nil {
			m.at.state = state
		}
	}
	switch {
	case result == "success":
		m.status = good
		mark("done")
	case follow == "refused":
		m.status = 45
		mark("failed")
	default:
		m.status = bad
		mark("failed")
		if follow == "reschedule" {
			m.status = again
			m.off("failed")
		}
	}
	return ""
}

func (m *parcel) assign(d cloud.AccountID) string {
	switch {
	case d == 0 && m.driver == 0:
		return "VALIDATION_FAILED"
	case d == 0 && !planned(m.status):
		return "ORDER_STATUS_CONFLICT"
	case d == 0:
		m.unplan()
	case d == m.driver && planned(m.status):
	case m.on != nil && !in(m.status, 22, 43):
		return "ALREADY_ON_ROUTE"
	case planned(m.status):
		m.status, m.driver = 11, d
	case !plannable(m.status):
		return "STATUS_NOT_PLANNABLE"
	case !in(m.status, 1, 4, 23, 30, 44):
		return "ORDER_STATUS_CONFLICT"
	default:
		m.before, m.status, m.driver = m.status, 11, d
	}
	return ""
}

// play does one thing and gives the error's code and the one that the model
// expects, "" for none.
func (p *player) play(x *run, m *parcel) (what, got, want string) {
	ctx, d := p.t.Context(), p.drivers[p.r.IntN(len(p.drivers))]
	if p.r.IntN(3) > 0 { // mostly the one who has it
		for _, c := range p.drivers {
			if c.Account.ID == m.driver {
				d = c
			}
		}
	}
	outcome := func(err error) {
		if got = ""; err != nil {
			got = code(err)
		}
	}
	each := func(list []route.OrderError, n int, err error, done bool, refusal string) {
		outcome(err)
		if len(list) > 0 {
			got = list[0].Code
		}
		require.Equal(p.t, done, n == 1)
		want = refusal
	}
	// mine runs what only the parcel's driver may do.
	mine := func(name string, call func() (route.OrderOutput, error), then func() string) {
		what = fmt.Sprint(name, " by ", d.Account.ID)
		_, err := call()
		outcome(err)
		if want = "ORDER_NOT_FOUND"; d.Account.ID == m.driver {
			want = then()
		}
	}
	by := route.ByOrder{OrderID: m.id}
	in1 := route.OrdersInput{RouteID: x.id, OrderIDs: []cloud.OrderID{m.id}}
	switch p.r.IntN(20) {
	case 0, 1, 2:
		what = "add"
		out, err := p.routes.Add(ctx, p.staff, in1)
		if x.phase == "cancelled" || x.status() == "completed" {
			outcome(err)
			return what, got, "ROUTE_STATUS_CONFLICT"
		}
		added, refusal := p.join(m, x)
		each(out.Errors, out.Added, err, added, refusal)
	case 3:
		what = "remove"
		out, err := p.routes.Remove(ctx, p.staff, in1)
		if x.phase == "cancelled" {
			outcome(err)
			return what, got, "ROUTE_STATUS_CONFLICT"
		}
		removed, refusal := p.leave(m, x)
		each(out.Errors, out.Removed, err, removed, refusal)
	case 4, 5:
		id := d.Account.ID
		if p.r.IntN(4) == 0 {
			id = 0
		}
		what = fmt.Sprint("driver ", id)
		_, err := p.routes.Edit(ctx, p.staff, route.EditInput{RouteID: x.id, RouteInput: route.RouteInput{DriverID: &id}})
		outcome(err)
		want = p.hand(x, id)
	case 6, 7:
		what = "dispatch"
		_, err := p.routes.Dispatch(ctx, p.staff, route.ByRoute{RouteID: x.id})
		outcome(err)
		switch {
		case x.status() != "planned":
			want = "ROUTE_STATUS_CONFLICT"
		case x.driver == 0:
			want = "DRIVER_REQUIRED"
		default:
			x.phase = "dispatched"
		}
	case 8:
		if p.r.IntN(8) > 0 {
			return "nothing", "", ""
		}
		what = "cancel route"
		_, err := p.routes.Cancel(ctx, p.staff, route.ByRoute{RouteID: x.id})
		outcome(err)
		want = p.cancel(x)
	case 9:
		mine("accept", func() (route.OrderOutput, error) { return p.routes.Accept(ctx, d, by) }, func() string {
			if m.status != 11 {
				return "ORDER_STATUS_CONFLICT"
			}
			m.status = 12
			return ""
		})
	case 10:
		mine("decline", func() (route.OrderOutput, error) { return p.routes.Decline(ctx, d, route.DeclineInput{OrderID: m.id}) }, func() string {
			if !planned(m.status) {
				return "ORDER_STATUS_CONFLICT"
			}
			m.unplan()
			return ""
		})
	case 11, 12, 13:
		mine("start", func() (route.OrderOutput, error) {
			if m.pickup {
				return p.routes.StartPickup(ctx, d, by)
			}
			return p.routes.StartDelivery(ctx, d, by)
		}, m.start)
	case 14, 15:
		result, follow := []string{"success", "failed", "failed"}[p.r.IntN(3)], ""
		if result == "failed" {
			follow = []string{"redelivery", "reschedule", "refused"}[p.r.IntN(map[bool]int{true: 2, false: 3}[m.pickup])]
		}
		failure := map[bool]string{true: "other"}[result == "failed"]
		mine(result+" "+follow, func() (route.OrderOutput, error) {
			if m.pickup {
				return p.routes.Pickup(ctx, d, route.PickupInput{OrderID: m.id, Result: result, FailureCode: failure, FollowUp: follow})
			}
			return p.routes.Deliver(ctx, d, route.ResultInput{OrderID: m.id, Result: result, FailureCode: failure, FollowUp: follow})
		}, func() string { return m.finish(result, follow) })
	case 16:
		in := route.AssignInput{OrderID: m.id, DriverID: &d.Account.ID}
		to := d.Account.ID
		if p.r.IntN(3) == 0 {
			in.DriverID, to = nil, 0
		}
		what = fmt.Sprint("assign ", to)
		_, err := p.routes.Assign(ctx, p.staff, in)
		outcome(err)
		want = m.assign(to)
	case 17:
		if p.r.IntN(3) > 0 {
			return "nothing", "", ""
		}
		what = "cancel order"
		_, err := p.orders.Cancel(ctx, p.staff, order.ReasonInput{OrderID: m.id})
		outcome(err)
		if want = "ORDER_NOT_CANCELLABLE"; !final(m.status) {
			want = ""
			m.off("skipped")
			m.status, m.before, m.stopped, m.back = 50, 0, 0, nil
		}
	case 18:
		if m.stopped != 0 {
			what = "withdraw"
			_, err := interception.New(p.orders).Withdraw(ctx, p.staff, interception.StopInput{ID: m.interceptor})
			outcome(err)
			m.status, m.stopped = m.stopped, 0
			if b := m.back; b != nil {
				m.on, m.at, m.driver, m.was, m.back = b.on, b.at, b.driver, b.was, nil
				if m.on != nil && planned(m.status) && m.driver == 0 {
					m.status = 10 // the route lost its driver meanwhile
				} else if m.on != nil && m.status == 10 {
					m.status = 11 // or got one
				}
				if m.at != nil {
					m.at.state = map[bool]string{true: "failed", false: "pending"}[in(m.status, 22, 43)]
					if m.status == 21 {
						m.at.state = "done"
					}
				}
			}
			return what, got, ""
		}
		if p.r.IntN(4) > 0 {
			return "nothing", "", ""
		}
		what = "intercept"
		out, err := interception.New(p.orders).Intercept(ctx, p.staff, interception.InterceptInput{OrderID: m.id, Outcome: "redeliver"})
		outcome(err)
		if want = "ORDER_STATUS_CONFLICT"; !final(m.status) {
			want = ""
			m.interceptor = out.Interception.ID
			if m.on != nil || m.driver != 0 {
				m.back = &parcel{on: m.on, at: m.at, driver: m.driver, was: maps.Clone(m.was)}
			}
			m.off("skipped")
			m.stopped, m.status = m.status, 48
		}
	case 19:
		if p.r.IntN(6) > 0 {
			return "nothing", "", ""
		}
		what = "deposit"
		outcome(p.orders.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: m.id, To: cloud.OrderInLocker, Trigger: order.Deposit, Operation: 7002}))
		if want = "ORDER_STATUS_CONFLICT"; !final(m.status) && m.status != 46 {
			want = ""
			m.off("done")
			m.status, m.before, m.stopped, m.back = 46, 0, 0, nil
		}
	}
	return what, got, want
}

func TestRoutesAgainstModel(t *testing.T) {
	t.Parallel()
	f := func(open func(t testing.TB) *store.DB, rounds, steps, least, runs int) func(t *testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			w := newWorld(t, open(t))
			seen, came := map[int]int{}, map[string]int{}
			for round := range rounds {
				p := &player{world: w, r: rand.New(rand.NewPCG(seed, uint64(round))), drivers: []cloud.Caller{w.driver, w.second}}
				for range 3 {
					p.runs = append(p.runs, &run{id: w.open(w.staff, cloud.Caller{}), phase: "planned"})
				}
				for range 4 {
					p.parcels = append(p.parcels, p.fresh())
				}
				var story []string
				for range steps {
					i := len(p.runs) - 1 - p.r.IntN(3) // mostly a young one
					if p.r.IntN(6) == 0 {
						i = p.r.IntN(len(p.runs))
					}
					if x := p.runs[i]; x.phase == "cancelled" && p.r.IntN(2) == 0 || x.status() == "completed" && p.r.IntN(4) == 0 {
						p.runs = append(p.runs, &run{id: w.open(w.staff, cloud.Caller{}), phase: "planned"})
						i = len(p.runs) - 1
					}
					m := p.parcels[max(0, len(p.parcels)-6)+p.r.IntN(min(6, len(p.parcels)))]
					if (final(m.status) || in(m.status, 46, 21)) && p.r.IntN(3) == 0 {
						m = p.fresh()
						p.parcels = append(p.parcels, m)
					}
					x, was := p.runs[i], m.status
					if m.on != nil && p.r.IntN(2) == 0 {
						x = m.on
					}
					what, got, want := p.play(x, m)
					story = append(story, fmt.Sprintf("route %d, order %d: %d %s → %d", x.id, m.id, was, what, m.status))
					require.Equal(t, want, got, "%s", strings.Join(story, "\n"))
					o := w.order(m.id)
					require.Equal(t, cloud.OrderStatus(m.status), o.Status, "%s", strings.Join(story, "\n"))
					require.Equal(t, m.driver, o.DriverID, "%s", strings.Join(story, "\n"))
					on := cloud.RouteID(0)
					if m.on != nil {
						on = m.on.id
					}
					require.Equal(t, on, o.RouteID, "%s", strings.Join(story, "\n"))
					require.Equal(t, x.String(), w.stops(x.id), "%s", strings.Join(story, "\n"))
					seen[m.status]++
					came[x.status()]++
				}
				for _, x := range p.runs {
					require.Equal(t, x.String(), w.stops(x.id), "%s", strings.Join(story, "\n"))
				}
				for _, m := range p.parcels {
					w.history(m.id)
				}
			}
			t.Logf("statuses %v, routes %v", seen, came)
			require.GreaterOrEqual(t, len(seen), least, "the walk comes about")
			require.GreaterOrEqual(t, len(came), runs, "and so do the routes")
		}
	}
	t.Run("SQLite", f(storetest.OpenSQLite, ring.Count(8, 30), 150, ring.Count(9, 12), ring.Count(4, 6)))
	t.Run("PostgreSQL", f(storetest.OpenSecondPostgres, 6, 120, 9, 3))
}

// history checks that each operation begins where the last one ended, that the
// timeline has no move out of turn, and that order and route say the same.
func (w *world) history(id cloud.OrderID) {
	w.t.Helper()
	ops, err := w.db.ListOrderOperations(w.t.Context(), 42, id)
	require.NoError(w.t, err)
	at := cloud.OrderStatus(0)
	for _, x := range ops {
		require.Equal(w.t, at, x.Before, "order %d: %s", id, w.did(id))
		at = x.After
	}
	o := w.order(id)
	require.Equal(w.t, at, o.Status)
	w.codes(id)
	if o.RouteID == 0 && o.DriverID == 0 {
		return
	}
	require.True(w.t, o.Status.Rides(), "order %d is %s and has a route or a driver: %s", id, o.Status, w.did(id))
	if o.RouteID == 0 {
		return
	}
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error {
		x, err := v.Route(42, o.RouteID)
		require.NoError(w.t, err)
		require.NotEqual(w.t, cloud.RouteCancelled, x.Phase(), "order %d is on a cancelled route: %s", id, w.did(id))
		require.Equal(w.t, x.DriverID, o.DriverID, "order %d: %s", id, w.did(id))
		require.LessOrEqual(w.t, o.Stop, x.LastStop)
		if x.DriverID == 0 && planned(int(o.Status)) && len(o.Past) == 0 {
			require.Equal(w.t, cloud.OrderRoutePlanned, o.Status, "order %d: %s", id, w.did(id))
		}
		if in(int(o.Status), 20, 40) {
			require.Equal(w.t, cloud.RouteInProgress, x.Phase(), "order %d: %s", id, w.did(id))
		}
		return nil
	}))
}

// Many at once on a few routes and orders: whatever the order of things was, it
// was one, and no two stops of a route have the same number.
func TestConcurrentPlanning(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		var runs []*run
		var parcels []*parcel
		maker := &player{world: w, r: rand.New(rand.NewPCG(seed, 0))}
		for range 3 {
			runs = append(runs, &run{id: w.open(w.staff, w.driver)})
		}
		for range 8 {
			parcels = append(parcels, maker.fresh())
		}
		expected := []string{"", "ORDER_STATUS_CONFLICT", "ROUTE_STATUS_CONFLICT", "ORDER_NOT_FOUND", "ALREADY_ON_ROUTE", "NOT_ON_ROUTE", "STATUS_NOT_PLANNABLE", "DRIVER_REQUIRED",
			"INTERCEPTION_STATUS_CONFLICT", "INTERCEPTION_OPEN", "ORDER_NOT_CANCELLABLE"}
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(n+1)))
				ctx := t.Context()
				for range 40 {
					x, m := runs[r.IntN(len(runs))].id, parcels[r.IntN(len(parcels))]
					d := []cloud.Caller{w.driver, w.second}[r.IntN(2)]
					ids := []cloud.OrderID{m.id, parcels[r.IntN(len(parcels))].id}
					var err error
					switch r.IntN(13) {
					case 0, 1, 2:
						_, err = w.routes.Add(ctx, w.staff, route.OrdersInput{RouteID: x, OrderIDs: ids})
					case 3:
						_, err = w.routes.Remove(ctx, w.staff, route.OrdersInput{RouteID: x, OrderIDs: ids})
					case 4:
						_, err = w.routes.Edit(ctx, w.staff, route.EditInput{RouteID: x, RouteInput: route.RouteInput{DriverID: &d.Account.ID}})
					case 5:
						_, err = w.routes.Dispatch(ctx, w.staff, route.ByRoute{RouteID: x})
					case 6:
						if r.IntN(6) == 0 {
							_, err = w.routes.Cancel(ctx, w.staff, route.ByRoute{RouteID: x})
						}
					case 7:
						_, err = w.routes.Accept(ctx, d, route.ByOrder{OrderID: m.id})
					case 8:
						_, err = w.routes.Decline(ctx, d, route.DeclineInput{OrderID: m.id})
					case 9:
						if m.pickup {
							_, err = w.routes.StartPickup(ctx, d, route.ByOrder{OrderID: m.id})
						} else {
							_, err = w.routes.StartDelivery(ctx, d, route.ByOrder{OrderID: m.id})
						}
					case 10:
						if !m.pickup {
							_, err = w.routes.Deliver(ctx, d, route.ResultInput{OrderID: m.id, Result: "failed", FailureCode: "other", FollowUp: "reschedule"})
						}
					case 11:
						_, err = interception.New(w.orders).Intercept(ctx, w.staff, interception.InterceptInput{OrderID: m.id, Outcome: "redeliver"})
					case 12:
						if o, e := w.orders.Find(ctx, w.staff, order.Key{OrderID: m.id}); e != nil {
							err = e
						} else if i := o.Order.Interception; i != nil {
							_, err = interception.New(w.orders).Withdraw(ctx, w.staff, interception.StopInput{ID: i.ID})
						}
					}
					if err != nil && !slices.Contains(expected, code(err)) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, m := range parcels {
			w.history(m.id)
		}
		for _, x := range runs {
			numbers := map[int]bool{}
			body := w.route(x.id)
			for _, s := range body.Stops {
				require.False(t, numbers[s.Sequence], "stop %d is there twice", s.Sequence)
				numbers[s.Sequence] = true
				require.False(t, body.Status == cloud.RouteCancelled && s.Status == cloud.StopPending, "a cancelled route waits for order %d", s.OrderIDs[0])
			}
		}
	})
}
