package order_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/contractor"
	"github.com/postern-io/postern/cloud/order/interception"
	"github.com/postern-io/postern/cloud/order/recall"
	"github.com/postern-io/postern/cloud/order/scan"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// model is what an order should be, in plain words of the interface.
type model struct {
	id        cloud.OrderID
	kind      cloud.OrderType
	status    int
	before    int // planning or a third party
	collected bool
	stopped   int // status before the interception in force, 0: none
	stop      cloud.InterceptionID
	outcome   string
	held      bool
	holder    cloud.AccountID // contractor, 0: none
	foreign   bool            // a third party's

	by    order.Trigger // of the move that is being made, "" for what has none
	heard []string      // events that were sent, but for those of the timeline
}

// hear adds events that are sent.
func (m *model) hear(events ...string) { m.heard = append(m.heard, events...) }

// live are the lifecycle events of a move, as the interface has them.
func (m *model) live(from, to int) {
	back := m.by == order.TakeOffRoute || m.by == order.FallBack || m.by == order.Withdraw || m.by == order.InterceptionFailed && to != 41
	switch {
	case m.by == order.DriverDeclines:
		m.hear("order.driver_declined")
		if to != 11 {
			m.hear("order.driver_unassigned")
		}
	case m.by == order.TakeOffRoute && in(from, 11, 12), m.by == order.TakeBack:
		m.hear("order.driver_unassigned")
	case back:
	case in(to, 42, 43, 45):
		m.hear("order.delivery_failed")
	default:
		if name := map[int]string{4: "ready_for_pickup", 11: "driver_assigned", 12: "driver_accepted", 20: "pickup_started", 21: "picked_up", 40: "out_for_delivery",
			41: "delivered", 50: "cancelled"}[to]; name != "" {
			m.hear("order." + name)
		}
	}
}

func in(n int, list ...int) bool { return slices.Contains(list, n) }

func terminal(n int) bool { return in(n, 41, 45, 47, 50) }

// may says whether a trigger leads from the model's status to another.
func (m *model) may(by order.Trigger, to int) bool {
	s := m.status
	planned, delivery := in(s, 10, 11, 12), m.kind == cloud.DeliveryOrder
	switch by {
	case order.PaymentReceived:
		return s == 2 && to == 1
	case order.Hold:
		return in(s, 1, 4, 22, 23) && to == 3
	case order.Release:
		return s == 3 && to == 1
	case order.MarkReady:
		return s == 1 && to == 4
	case order.PutOnRoute:
		return in(s, 1, 4, 22, 23, 30, 31, 43, 44) && to == 10
	case order.TakeOffRoute:
		return planned && to == m.before
	case order.AssignDriver:
		return in(s, 1, 4, 10, 23, 30, 44) && to == 11
	case order.DriverAccepts:
		return s == 11 && to == 12
	case order.DriverDeclines:
		return s == 12 && to == 11 || in(s, 11, 12) && to == m.before
	case order.HandOver:
		return in(s, 1, 4, 30, 44) && to == 13
	case order.FallBack:
		return s == 13 && to == m.before
	case order.ThirdPartyTracking:
		return s == 13 && in(to, 32, 40, 41, 43, 45, 47) || s == 42 && to == 41
	case order.StartPickup:
		return planned && to == 20 && !delivery && !m.collected
	case order.PickupResult:
		return s == 20 && in(to, 21, 22)
	case order.Reschedule:
		return s == 22 && to == 23 || s == 43 && to == 44
	case order.TakeBack:
		return s == 20 && to == 23 || s == 40 && to == 44
	case order.ReceiveScan:
		return in(s, 21, 43) && to == 30
	case order.RunDirect:
		return s == 21 && m.kind == cloud.PointToPoint && in(to, 40, 41)
	case order.OutboundScan:
		return in(s, 30, 31) && in(to, 32, 33)
	case order.ArriveScan:
		return in(s, 32, 33) && in(to, 30, 31)
	case order.StartDelivery:
		return to == 40 && (planned || in(s, 32, 33, 43, 44)) && (delivery || m.collected)
	case order.DeliveryResult:
		return s == 40 && in(to, 41, 43, 45) || s == 42 && in(to, 41, 43, 44, 47) || s == 43 && to == 47
	case order.Deposit:
		return !terminal(s) && s != 46 && to == 46
	case order.Collect:
		return s == 46 && to == 41
	case order.RemoveFromLocker:
		return s == 46 && in(to, 30, 43)
	}
	panic(by)
}

// enter moves the model.
func (m *model) enter(to int) {
	m.hear("order.status_change")
	m.live(m.status, to)
	if m.status == 48 && m.by != order.Withdraw && m.by != order.ExecuteOutcome {
		m.hear("order_intercept.failed")
	}
	held := in(to, 10, 11, 12, 13)
	switch {
	case to == 48 || m.status == 48 && held:
	case !held:
		m.before = 0
	case !in(m.status, 10, 11, 12):
		m.before = m.status
	}
	m.collected = m.collected || in(to, 21, 30, 31, 32, 33, 40, 41, 46)
	if m.status == 48 {
		m.stopped, m.stop = 0, 0
	}
	switch {
	case terminal(to):
		m.holder = 0
	case to == 13:
		m.foreign = true
	case m.status == 13 && in(to, 1, 4, 30, 44):
		m.foreign = false
	}
	m.status = to
}

// refused is a cancellation that may not be made.
func (m *model) refused(is bool) {
	if is {
		m.hear("order.cancel_failed")
	}
}

// targets are the statuses that a trigger may ask for.
var targets = map[order.Trigger][]int{order.PaymentReceived: {1}, order.Hold: {3}, order.Release: {1}, order.MarkReady: {4}, order.PutOnRoute: {10},
	order.TakeOffRoute: {1, 4, 22, 23, 30, 31, 43, 44}, order.AssignDriver: {11}, order.DriverAccepts: {12}, order.DriverDeclines: {11, 1, 30}, order.HandOver: {13},
	order.FallBack: {1, 4, 30, 44}, order.ThirdPartyTracking: {32, 40, 43, 40, 43, 32, 41, 45, 47}, order.StartPickup: {20}, order.PickupResult: {21, 22}, order.Reschedule: {23, 44}, order.TakeBack: {23, 44},
	order.ReceiveScan: {30}, order.RunDirect: {40, 41}, order.OutboundScan: {32, 33}, order.ArriveScan: {30, 31}, order.StartDelivery: {40},
	order.DeliveryResult: {43, 43, 41, 45, 47}, order.Deposit: {46}, order.Collect: {41}, order.RemoveFromLocker: {30, 43}}

var triggers = func() (out []order.Trigger) {
	for by := range targets {
		out = append(out, by)
	}
	slices.Sort(out)
	return out
}()

// player does random things to orders.
type player struct {
	*world
	r *rand.Rand
}

func (p *player) make() *model {
	kind := []cloud.OrderType{cloud.DeliveryOrder, cloud.PickupOrder, cloud.PointToPoint}[p.r.IntN(3)]
	in := input(kind)
	in.Hold = p.r.IntN(8) == 0
	o := p.create([]cloud.Caller{p.staff, p.customer}[p.r.IntN(2)], in)
	return &model{id: o.OrderID, kind: kind, status: int(o.StatusID), heard: []string{"order.created"}}
}

// play does one thing, to the order and to the model. It gives the error's code
// and the one that the model expects, "" for none.
func (p *player) play(m *model) (what string, got, want string) {
	ctx := p.t.Context()
	expect := func(ok bool, refusal string, then func()) {
		if !ok {
			want = refusal
			return
		}
		then()
	}
	outcome := func(err error) {
		if err != nil {
			got = code(err)
		}
	}
	const conflict, stop = "ORDER_STATUS_CONFLICT", "INTERCEPTION_STATUS_CONFLICT"
	m.by = ""
	switch n := p.r.IntN(32); n {
	case 0:
		what = "cancel by customer"
		_, err := p.orders.Cancel(ctx, p.customer, order.ReasonInput{OrderID: m.id})
		if code(err) == "ORDER_NOT_FOUND" {
			return "not the customer's", "", ""
		}
		outcome(err)
		m.refused(!in(m.status, 1, 2, 3, 4, 10, 11, 12, 13))
		expect(in(m.status, 1, 2, 3, 4, 10, 11, 12, 13), "ORDER_NOT_CANCELLABLE", func() { m.enter(50) })
	case 1:
		if p.r.IntN(4) > 0 {
			return "nothing", "", ""
		}
		what = "cancel by staff"
		_, err := p.orders.Cancel(ctx, p.staff, order.ReasonInput{OrderID: m.id})
		outcome(err)
		m.refused(terminal(m.status))
		expect(!terminal(m.status), "ORDER_NOT_CANCELLABLE", func() { m.enter(50) })
	case 2, 3:
		m.outcome = []string{"return_to_sender", "redeliver", "hold_at_warehouse", "dispose"}[p.r.IntN(4)]
		what = "intercept " + m.outcome
		out, err := interception.New(p.orders).Intercept(ctx, p.staff, interception.InterceptInput{OrderID: m.id, Outcome: m.outcome})
		outcome(err)
		if m.stopped != 0 {
			return what, got, "INTERCEPTION_OPEN"
		}
		expect(!terminal(m.status) && !in(m.status, 2, 3, 48), conflict, func() {
			from := m.status
			m.enter(48)
			m.hear("order_intercept.requested", "order_intercept.in_force")
			m.stopped, m.stop, m.held = from, out.Interception.ID, false
		})
	case 4, 5, 6, 7:
		if m.stop == 0 {
			return "nothing to end", "", ""
		}
		id := interception.StopInput{ID: m.stop}
		switch p.r.IntN(5) {
		case 0, 1:
			what = "withdraw"
			_, err := interception.New(p.orders).Withdraw(ctx, p.staff, id)
			outcome(err)
			m.by = order.Withdraw
			m.enter(m.stopped)
			m.hear("order_intercept.withdrawn")
		case 2:
			what = "hold at warehouse"
			_, err := interception.New(p.orders).Held(ctx, p.staff, id)
			outcome(err)
			expect(!m.held, stop, func() {
				m.held = true
				m.hear("order_intercept.held")
			})
		case 3:
			what = "interception failed"
			_, err := interception.New(p.orders).Fail(ctx, p.staff, interception.FailInput{ID: m.stop})
			outcome(err)
			m.by = order.InterceptionFailed
			m.enter(m.stopped)
		case 4:
			what = "execute"
			o := p.find(m.id)
			require.Equal(p.t, m.stop, o.Interception.ID)
			list, err := p.orders.Interceptions(ctx, p.staff, order.OrderRef{OrderID: m.id})
			require.NoError(p.t, err)
			last := list.Interceptions[len(list.Interceptions)-1]
			_, err = interception.New(p.orders).Execute(ctx, p.staff, id)
			outcome(err)
			to := map[string]int{"redeliver": 44, "hold_at_warehouse": 30, "dispose": 50, "return_to_sender": 50}[last.Requested]
			if last.Requested == "return_to_sender" && (m.collected || m.stopped == 13) {
				to = 47
			}
			m.by = order.ExecuteOutcome
			m.enter(to)
			m.hear("order_intercept.executed")
		}
	case 8:
		to := cloud.OrderStates()[p.r.IntN(26)].ID
		if terminal(int(to)) && p.r.IntN(6) > 0 {
			return "nothing", "", ""
		}
		what = fmt.Sprint("override ", int(to))
		_, err := p.orders.Override(ctx, p.staff, order.OverrideInput{OrderID: m.id, Status: to, Reason: "test"})
		outcome(err)
		if to == 48 {
			return what, got, "VALIDATION_FAILED"
		}
		expect(!in(m.status, 41, 47, 50) && int(to) != m.status, conflict, func() {
			m.enter(int(to))
			origin := in(m.before, 1, 4, 22, 23, 30, 31, 43, 44)
			if to == 13 {
				origin = in(m.before, 1, 4, 30, 44)
			}
			if m.before != 0 && !origin {
				if m.before = 1; m.collected {
					m.before = 30
				}
			}
		})
	case 9:
		date := fmt.Sprintf("2099-01-%02d", p.r.IntN(28)+1)
		same := p.find(m.id).ScheduledDate
		what = "new date"
		_, err := p.orders.Update(ctx, p.staff, order.UpdateInput{OrderID: m.id, ScheduledDate: &date})
		outcome(err)
		expect(!terminal(m.status), conflict, func() {
			if to := map[int]int{22: 23, 42: 44, 43: 44}[m.status]; to != 0 && (same == nil || *same != date) {
				m.enter(to)
			}
		})
	case 26, 27, 28:
		action := []string{"receive", "arrive", "outbound", "line_haul"}[p.r.IntN(4)]
		what = "scan " + action
		out, err := scan.New(p.orders).Scan(ctx, p.staff, scan.ScanInput{Code: p.find(m.id).Number, Action: action})
		outcome(err)
		was, to := m.status, 0
		switch s := m.status; {
		case action == "receive" && s == 48:
			require.Equal(p.t, []bool{!m.held, true}, []bool{out.Changed, out.Held})
			if !m.held {
				m.held = true
				m.hear("order_intercept.held")
			}
			return what, got, ""
		case action == "receive" && in(s, 21, 43, 32, 33):
			to, m.by = 30, order.ReceiveScan
		case action == "arrive" && in(s, 32, 33):
			to, m.by = 31, order.ArriveScan
		case action == "outbound" && in(s, 30, 31):
			to, m.by = 33, order.OutboundScan
		case action == "line_haul" && in(s, 30, 31):
			to, m.by = 32, order.OutboundScan
		case action == "receive" && in(s, 30, 44) || action == "arrive" && s == 31 || action == "outbound" && s == 33 || action == "line_haul" && s == 32:
			return what, got, ""
		default:
			return what, got, conflict
		}
		m.enter(to)
		if to == 30 && m.kind == cloud.PickupOrder {
			m.by = order.Complete
			m.enter(41)
		}
		require.True(p.t, out.Changed, "%d %s", was, what)
	case 29:
		what = "take back"
		_, err := recall.New(p.orders).TakeBack(ctx, p.staff, recall.TakeBackInput{OrderID: m.id, Reason: "the van broke down"})
		outcome(err)
		expect(in(m.status, 20, 40), conflict, func() {
			m.by = order.TakeBack
			m.enter(map[int]int{20: 23, 40: 44}[m.status])
		})
	case 30, 31:
		what = "reschedule"
		_, err := p.orders.Reschedule(ctx, p.staff, order.RescheduleInput{OrderID: m.id, ScheduledDate: "2099-02-03"})
		outcome(err)
		expect(in(m.status, 1, 2, 3, 4, 10, 11, 12, 22, 23, 30, 31, 42, 43, 44), conflict, func() {
			if to := map[int]int{22: 23, 42: 44, 43: 44}[m.status]; to != 0 {
				m.by = order.Reschedule
				m.enter(to)
			}
		})
	case 24, 25:
		kind := []cloud.LockerNewsKind{cloud.LockerOpened, cloud.LockerDeposited, cloud.LockerCollected, cloud.LockerOverdue, cloud.LockerExpired}[p.r.IntN(5)]
		if kind == cloud.LockerCollected && p.r.IntN(3) > 0 {
			return "nothing", "", ""
		}
		what = fmt.Sprint("locker: ", kind)
		outcome(p.db.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			return p.orders.FromLocker(v, []cloud.LockerNews{{Kind: kind, BusinessID: 42, OrderID: m.id, Packages: []cloud.PackageID{0}, Moment: cloud.Moment{At: time.Now().Add(-time.Hour)},
				Device: cloud.Operator{Type: "device", ID: 88}, DeviceCode: "CAB-1"}})
		}))
		if terminal(m.status) || kind != cloud.LockerDeposited && kind != cloud.LockerCollected {
			return what, got, ""
		}
		if m.status != 46 {
			m.by = order.Deposit
			m.enter(46)
		}
		if kind == cloud.LockerCollected {
			m.by = order.Collect
			m.enter(41)
		}
	case 20, 21:
		to := []cloud.Caller{p.broker, p.rival}[p.r.IntN(2)].Account.ID
		what = fmt.Sprint("assign to ", to)
		out, err := contractor.New(p.orders).Assign(ctx, p.admin, contractor.AssignInput{OrderIDs: []cloud.OrderID{m.id, m.id}, BrokerID: to})
		require.NoError(p.t, err)
		require.Equal(p.t, out.Assigned == 1, out.Result)
		require.Equal(p.t, 1, out.Assigned+out.Skipped)
		if !out.Result {
			got = out.Errors[0].Code
		}
		switch s := m.status; {
		case in(s, 10, 11, 12):
			want = "ORDER_ON_ROUTE"
		case s == 13:
			want = "HELD_BY_THIRD_PARTY"
		case m.foreign:
			want = "NOT_SELF_DELIVERY"
		case !in(s, 1, 4, 22, 23, 30, 31, 43, 44):
			want = "STATUS_NOT_ASSIGNABLE"
		case m.holder == to:
			want = "ALREADY_ASSIGNED"
		default:
			m.holder = to
		}
	case 22, 23:
		c := []cloud.Caller{p.broker, p.rival, p.admin, p.admin}[p.r.IntN(4)]
		what = fmt.Sprint("give back by ", c.Account.ID)
		if c.Account.Type == cloud.ClientAdmin {
			out, err := contractor.New(p.orders).Revoke(ctx, c, contractor.RevokeInput{OrderIDs: []cloud.OrderID{m.id}})
			require.NoError(p.t, err)
			if !out.Result {
				got = out.Errors[0].Code
			}
		} else {
			_, err := contractor.New(p.orders).GiveBack(ctx, c, contractor.ReleaseOrderInput{OrderID: m.id})
			outcome(err)
		}
		switch {
		case m.holder == 0 || c.Account.Type == cloud.Broker && m.holder != c.Account.ID:
			want = "NOT_ASSIGNED"
		case in(m.status, 10, 11, 12):
			want = "ORDER_ON_ROUTE"
		default:
			m.holder = 0
		}
	default:
		by := triggers[p.r.IntN(len(triggers))]
		if p.r.IntN(8) > 0 { // mostly something that is possible
			possible := slices.DeleteFunc(slices.Clone(triggers), func(by order.Trigger) bool {
				return !slices.ContainsFunc(targets[by], func(to int) bool { return m.may(by, to) })
			})
			if len(possible) > 0 {
				by = possible[p.r.IntN(len(possible))]
			}
		}
		to := targets[by][p.r.IntN(len(targets[by]))]
		what = fmt.Sprint(by, " ", to)
		outcome(p.orders.Move(ctx, cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: m.id, To: cloud.OrderStatus(to), Trigger: by, Operation: 1005}))
		expect(m.may(by, to), conflict, func() {
			m.by = by
			m.enter(to)
			m.by = order.Complete
			if to == 30 && m.kind == cloud.PickupOrder {
				m.enter(41)
			}
		})
	}
	return what, got, want
}

// holder is the contractor that holds an order.
func holder(o order.OrderBody) cloud.AccountID {
	if o.BrokerAssignment == nil {
		return 0
	}
	return o.BrokerAssignment.BrokerID
}

// history checks what an order's operations and timeline say together: each
// operation begins where the last one ended, what is final stays so, and no
// event is out of turn.
func (w *world) history(id cloud.OrderID) {
	w.t.Helper()
	ops, err := w.db.ListOrderOperations(w.t.Context(), 42, id)
	require.NoError(w.t, err)
	at := cloud.OrderStatus(0)
	for _, x := range ops {
		require.Equal(w.t, at, x.Before, "order %d: %v", id, w.did(id))
		if at == cloud.OrderDelivered || at == cloud.OrderReturned || at == cloud.OrderCancelled || at == cloud.OrderRejected && x.Type != 3020 {
			require.Equal(w.t, at, x.After, "an end is one")
		}
		at = x.After
	}
	o := w.find(id)
	require.Equal(w.t, at, o.StatusID)
	require.Equal(w.t, at == cloud.OrderDelivered, o.DeliveredAt != nil && o.StatusID == cloud.OrderDelivered)
	require.Equal(w.t, at == cloud.OrderCancelled, o.CancelledAt != nil)
	if at == cloud.OrderIntercepted {
		require.Contains(w.t, []string{"in_force", "held"}, o.Interception.Status)
	} else if o.Interception != nil {
		require.NotContains(w.t, []string{"in_force", "held"}, o.Interception.Status)
	}
	list, err := w.orders.Assignments(w.t.Context(), w.staff, order.AssignmentsInput{OrderID: id, LongKeyset: check.LongKeyset{PerPage: new(200)}})
	require.NoError(w.t, err)
	active := 0
	for i, a := range list.Assignments {
		require.Equal(w.t, a.Status == cloud.AssignmentActive, a.EndedAt == nil)
		if a.Status == cloud.AssignmentActive {
			active++
			require.Zero(w.t, i, "the newest")
			require.Equal(w.t, holder(o), a.BrokerID)
		}
	}
	require.Equal(w.t, o.BrokerAssignment != nil, active == 1, "at most one is active")
	require.False(w.t, active == 1 && at.State().Terminal, "the end of an order ends it")
	require.NotEmpty(w.t, w.codes(id)) // checks the moves of the timeline
}

func TestOrdersAgainstModel(t *testing.T) {
	t.Parallel()
	f := func(open func(t testing.TB) *store.DB, orders, steps, least int) func(t *testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			p := &player{world: newWorld(t, open(t)), r: rand.New(rand.NewPCG(seed, 1))}
			p.listen(0)
			seen := map[int]bool{}
			for range orders {
				m := p.make()
				var story []string
				for range steps {
					was := m.status
					what, got, want := p.play(m)
					story = append(story, fmt.Sprintf("%d %s → %d", was, what, m.status))
					require.Equal(t, want, got, "%s order: %v", m.kind, story)
					o := p.find(m.id)
					require.Equal(t, cloud.OrderStatus(m.status), o.StatusID, "%s order: %v", m.kind, story)
					require.Equal(t, m.holder, holder(o), "%s order: %v", m.kind, story)
					seen[m.status] = true
				}
				p.history(m.id)
				names, told := p.heard(m.id)
				slices.Sort(names)
				slices.Sort(m.heard)
				require.Equal(t, m.heard, names, "%s order: %v", m.kind, story)
				require.Equal(t, p.codes(m.id), told, "each event of the timeline is told once")
			}
			require.GreaterOrEqual(t, len(seen), least, "the walk comes about")
		}
	}
	t.Run("SQLite", f(storetest.OpenSQLite, ring.Count(20, 60), 40, ring.Count(10, 16)))
	t.Run("PostgreSQL", f(storetest.OpenSecondPostgres, 20, 25, 8))
}

// Many at once on a few orders: whatever the order of things was, it was one.
func TestConcurrentCallers(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		maker := &player{world: w, r: rand.New(rand.NewPCG(seed, 0))}
		shared := []*model{maker.make(), maker.make(), maker.make()}
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				p := &player{world: w, r: rand.New(rand.NewPCG(seed, uint64(n+1)))}
				for range 25 {
					m := *shared[p.r.IntN(len(shared))] // what one of them believes
					o, err := w.orders.Find(t.Context(), w.staff, order.Key{OrderID: m.id})
					if err != nil {
						t.Error(err)
						return
					}
					m.status = int(o.Order.StatusID)
					by := triggers[p.r.IntN(len(triggers))]
					to := cloud.OrderStatus(targets[by][p.r.IntN(len(targets[by]))])
					switch p.r.IntN(9) {
					case 6:
						to := []cloud.Caller{w.broker, w.rival}[p.r.IntN(2)].Account.ID
						_, err = contractor.New(w.orders).Assign(t.Context(), w.admin, contractor.AssignInput{OrderIDs: []cloud.OrderID{m.id}, BrokerID: to})
					case 7:
						_, err = contractor.New(w.orders).Revoke(t.Context(), w.admin, contractor.RevokeInput{OrderIDs: []cloud.OrderID{m.id}})
					case 8:
						_, err = contractor.New(w.orders).GiveBack(t.Context(), w.broker, contractor.ReleaseOrderInput{OrderID: m.id})
					case 0:
						_, err = interception.New(w.orders).Intercept(t.Context(), w.staff, interception.InterceptInput{OrderID: m.id, Outcome: "redeliver"})
					case 1:
						if i := o.Order.Interception; i != nil {
							_, err = interception.New(w.orders).Withdraw(t.Context(), w.staff, interception.StopInput{ID: i.ID})
						}
					case 2:
						note := fmt.Sprint("note ", n)
						_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: m.id, Note: &note})
					default:
						err = w.orders.Move(t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: m.id, To: to, Trigger: by, Operation: 1005})
					}
					if err != nil && !slices.Contains([]string{"ORDER_STATUS_CONFLICT", "INTERCEPTION_OPEN", "INTERCEPTION_STATUS_CONFLICT", "NOT_ASSIGNED", "ORDER_ON_ROUTE"}, code(err)) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, m := range shared {
			w.history(m.id)
		}
	})
}
