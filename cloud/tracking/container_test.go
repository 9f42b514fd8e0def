package tracking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
)

// yard is a business with parcels of two providers, and containers.
type yard struct {
	t      testing.TB
	db     *store.DB
	s      *tracking.Service
	staff  cloud.Caller
	theirs [2]cloud.Caller
	start  time.Time
}

func newYard(t testing.TB, db *store.DB, parcels int) *yard {
	y := &yard{t: t, db: db, s: tracking.New(db), start: time.Now().UTC().Truncate(time.Second).Add(-24 * time.Hour)}
	ch := &cloud.Changes{}
	for b := range 2 {
		ch.Businesses = append(ch.Businesses, cloud.Business{ID: cloud.BusinessID(42 + b), Code: fmt.Sprint("b", b), Name: "B", Timezone: "UTC"})
	}
	for i := range y.theirs {
		p := cloud.Provider{ID: cloud.ProviderID(17 + i), BusinessID: 42, Code: fmt.Sprint("p", i), Name: fmt.Sprint("P", i), Services: []string{"otep"}, SourceType: "carrier"}
		ch.Providers = append(ch.Providers, p)
		y.theirs[i] = cloud.Caller{Provider: p, Account: cloud.Account{ID: cloud.AccountID(100 + i), BusinessID: 42, Type: cloud.ProviderType, Enabled: true}, Language: "en"}
	}
	y.staff = cloud.Caller{Account: cloud.Account{ID: 5, BusinessID: 42, Type: cloud.ClientAdmin, Enabled: true}, Language: "en"}
	for n := range parcels {
		ch.Shipments = append(ch.Shipments, cloud.Shipment{ID: cloud.ShipmentID(n + 1), BusinessID: 42, Number: y.parcel(n), ProviderID: 17, Profile: "last_mile", CreatedAt: y.start})
	}
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
	return y
}

func (y *yard) parcel(n int) string { return fmt.Sprint("PARCEL", n) }

func (y *yard) at(minute int) time.Time { return y.start.Add(time.Duration(minute) * time.Minute) }

func (y *yard) container(c cloud.Caller, identity string) cloud.ContainerID {
	y.t.Helper()
	out, err := tracking.ContainersOf(y.s).Create(y.t.Context(), c, tracking.ContainerInput{Kind: "pallet", Scheme: "own", Identity: identity})
	require.NoError(y.t, err)
	return out.Container.ID
}

func (y *yard) bind(c cloud.Caller, inside bool, id cloud.ContainerID, at time.Time, children ...string) error {
	in := tracking.BindInput{ContainerRef: tracking.ContainerRef{ID: id}, Children: children, At: at.Format(time.RFC3339Nano)}
	do := tracking.ContainersOf(y.s).Bind
	if !inside {
		do = tracking.ContainersOf(y.s).Unbind
	}
	_, err := do(y.t.Context(), c, in)
	return err
}

// containerEvent is one of a container.
type containerEvent struct {
	ID, Code, Corrects string
	At                 time.Time
	Withdraws          string
}

func (y *yard) say(c cloud.Caller, identity string, e containerEvent) (tracking.IngestOutput, error) {
	body := map[string]any{"otep_version": "0.1", "subject": map[string]any{"external_tracking_number": identity}, "events": []any{}}
	if e.Withdraws != "" {
		body["withdrawals"] = []any{map[string]any{"event_id": e.Withdraws, "reason": "incorrect_data"}}
	} else {
		x := map[string]any{"event_id": e.ID, "status_code": e.Code, "occurred_at": e.At.Format(time.RFC3339Nano), "source": map[string]any{"type": "carrier"}}
		if e.Corrects != "" {
			x["corrects"] = e.Corrects
		}
		body["events"] = []any{x}
	}
	b, err := json.Marshal(body)
	require.NoError(y.t, err)
	return y.s.Ingest(y.t.Context(), c, tracking.IngestInput{Body: b})
}

// events are a parcel's, each as id, code and container.
func (y *yard) events(n int) (out []string) {
	y.t.Helper()
	found, err := y.db.FindTimeline(y.t.Context(), y.parcel(n), nil)
	require.NoError(y.t, err)
	for _, e := range found.Events {
		if !e.Event.Withdrawn {
			out = append(out, fmt.Sprint(e.Event.EventID, " ", e.Event.StatusCode, " ", e.Event.Via))
		}
	}
	slices.Sort(out)
	return out
}

func (y *yard) settle() {
	y.t.Helper()
	require.NoError(y.t, tracking.ContainersOf(y.s).Follow(y.t.Context()))
}

func eachStore(t *testing.T, f func(t *testing.T, db *store.DB)) {
	t.Run("sqlite", func(t *testing.T) { f(t, storetest.OpenSQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		f(t, storetest.Open(t, store.Config{URL: storetest.MigratedPostgresURL(t), Instance: "n0", Box: storetest.Box(t)}))
	})
}

// step is one thing that happens, in the model and in the yard.
type step struct {
	container, child int // child: a parcel, or from 100 on a container
	inside           bool
	at               int
	event            *containerEvent
	bound            string // by an AggregationEvent with this id, which may have an event beside
}

// everyChild is the child of a step that takes all out.
const everyChild = -1

// modelEvents computes from nothing but marks and events what a parcel has.
func modelEvents(steps []step, ids []cloud.ContainerID, parcel, containers int, start time.Time) (out []string) {
	gone := map[string]bool{}
	for _, s := range steps {
		if s.event != nil && s.event.Withdraws != "" {
			gone[s.event.Withdraws] = true
		}
		if s.event != nil && s.event.Corrects != "" {
			gone[s.event.Corrects] = true
		}
	}
	inside := func(container, child, at int) bool {
		last, is, now := -1, false, false
		for _, s := range steps {
			switch {
			case s.container != container || s.child != child && s.child != everyChild || s.at > at || s.event != nil && s.bound == "":
			case s.at == at:
				now = now || s.inside
			case s.at == last:
				is = is || s.inside
			case s.at > last:
				last, is = s.at, s.inside
			}
		}
		return is || now
	}
	var isIn func(container, child, at int) bool
	isIn = func(container, child, at int) bool {
		if inside(container, child, at) {
			return true
		}
		for k := range containers {
			if inside(container, 100+k, at) && isIn(k, child, at) {
				return true
			}
		}
		return false
	}
	for _, s := range steps {
		if s.event == nil || s.event.ID == "" || gone[s.event.ID] || !isIn(s.container, parcel, s.at) {
			continue
		}
		code := s.event.Code
		switch code {
		case "delivered":
			code = "arrival_scan"
		case "cancelled", "return_to_sender", "rejected_by_recipient":
			continue
		}
		out = append(out, fmt.Sprint(s.event.ID, " ", code, " ", int64(ids[s.container])))
	}
	slices.Sort(out)
	return out
}

// Parcels have the events of their containers that bindings and events say, in whatever order these come and whenever
// the worker is ended.
func TestEventsOfContainersAreThoseOfAModel(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		rounds := 30
		if ring.Full() {
			rounds = 100
		}
		const parcels = 1
		y := newYard(t, db, parcels*rounds)
		for round := range rounds {
			r := rand.New(rand.NewPCG(7, uint64(round)))
			containers := 1 + round%4
			var ids []cloud.ContainerID
			name := func(k int) string { return fmt.Sprintf("R%dC%d", round, k) }
			for k := range containers {
				ids = append(ids, y.container(y.theirs[0], name(k)))
			}
			var steps []step
			n := 0
			next := func() int { return r.IntN(30) }
			for range 40 {
				switch k := r.IntN(containers); r.IntN(5) {
				case 0, 1:
					steps = append(steps, step{container: k, child: r.IntN(parcels), inside: r.IntN(2) > 0, at: next()})
				case 2:
					if k+1 < containers { // a lower one into a higher one
						steps = append(steps, step{container: k, child: 100 + k + 1 + r.IntN(containers-k-1), inside: r.IntN(2) > 0, at: next()})
					}
				default:
					n++
					code := []string{"in_transit", "arrival_scan", "delivered", "out_for_delivery", "cancelled"}[r.IntN(5)]
					e := &containerEvent{ID: fmt.Sprintf("r%de%d", round, n), Code: code}
					steps = append(steps, step{container: k, at: next(), event: e})
				}
			}
			var later []step // what takes events back comes after them
			for _, s := range slices.Clone(steps) {
				if s.event == nil {
					continue
				}
				switch r.IntN(5) {
				case 0:
					later = append(later, step{container: s.container, event: &containerEvent{Withdraws: s.event.ID}})
				case 1:
					n++
					later = append(later, step{container: s.container, at: next(), event: &containerEvent{ID: fmt.Sprintf("r%de%d", round, n), Code: "in_transit", Corrects: s.event.ID}})
				}
			}
			r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			all := append(slices.Clone(steps), later...)
			// The calls that take back come anywhere behind what they name.
			for i := len(steps); i < len(all); i++ {
				target := slices.IndexFunc(all, func(s step) bool {
					return s.event != nil && s.event.ID != "" && (s.event.ID == all[i].event.Withdraws || s.event.ID == all[i].event.Corrects)
				})
				to := target + 1 + r.IntN(i-target)
				x := all[i]
				all = slices.Insert(slices.Delete(all, i, i+1), to, x)
			}
			for _, s := range all {
				switch {
				case s.event != nil:
					e := *s.event
					e.At = y.at(s.at)
					_, err := y.say(y.theirs[0], name(s.container), e)
					require.NoError(t, err)
				default:
					child := y.parcel(round*parcels + s.child)
					if s.child >= 100 {
						child = name(s.child - 100)
					}
					require.NoError(t, y.bind(y.theirs[0], s.inside, ids[s.container], y.at(s.at), child))
				}
				switch r.IntN(3) {
				case 0:
					y.settle()
				case 1: // a worker that is ended somewhere, and a new one goes on
					ctx, end := context.WithTimeout(t.Context(), time.Duration(r.IntN(4000))*time.Microsecond)
					_ = tracking.ContainersOf(tracking.New(db)).Follow(ctx)
					end()
				}
			}
			y.settle()
			for p := range parcels {
				require.Equal(t, modelEvents(all, ids, p, containers, y.start), y.events(round*parcels+p), "round %d, parcel %d", round, p)
			}
		}
	})
}

func TestPalletWithOneBoundLate(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		size := 60
		if ring.Full() {
			size = 1000
		}
		y := newYard(t, db, size)
		id := y.container(y.theirs[0], "PALLET")
		var names []string
		for n := range size - 1 {
			names = append(names, y.parcel(n))
		}
		require.NoError(t, y.bind(y.theirs[0], true, id, y.at(1), names...))
		_, err := y.say(y.theirs[0], "pallet", containerEvent{ID: "e1", Code: "in_transit", At: y.at(10)})
		require.NoError(t, err)
		began := time.Now()
		var nodes sync.WaitGroup
		for range 2 { // two at once
			nodes.Go(func() { _ = tracking.ContainersOf(tracking.New(db)).Follow(t.Context()) })
		}
		nodes.Wait()
		y.settle()
		t.Log(size, "parcels in", time.Since(began))
		want := []string{fmt.Sprint("e1 in_transit ", int64(id))}
		for n := range size - 1 {
			require.Equal(t, want, y.events(n))
		}
		require.Empty(t, y.events(size-1))
		require.NoError(t, y.bind(y.theirs[0], true, id, y.at(5), y.parcel(size-1)))
		y.settle()
		require.Equal(t, want, y.events(size-1))
		limit := 1000
		kinds, after := map[string]int{}, ""
		ring.Await(t, func() bool { // the feed waits for transactions of others
			page, err := y.s.Changes(t.Context(), y.staff, tracking.ChangesInput{After: after, Limit: &limit})
			require.NoError(t, err)
			after = page.Next
			for _, x := range page.Changes {
				kinds[string(x.Kind)+" "+x.Number]++
			}
			return len(page.Changes) == 0 && len(kinds) >= 2*size
		})
		require.Len(t, kinds, 2*size)
		require.Equal(t, []int{1}, slices.Compact(slices.Sorted(maps.Values(kinds))), "each is recorded and bound once")
	})
}

func TestBoundsOfContainers(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		var ids []cloud.ContainerID
		for k := range 6 {
			ids = append(ids, y.container(y.theirs[0], fmt.Sprint("C", k)))
		}
		for k := range 4 {
			require.NoError(t, y.bind(y.theirs[0], true, ids[k], y.at(1), fmt.Sprint("C", k+1)))
		}
		code := func(err error) string {
			var e *cloud.Error
			require.ErrorAs(t, err, &e)
			return e.Code
		}
		require.Equal(t, "CONTAINER_TOO_DEEP", code(y.bind(y.theirs[0], true, ids[4], y.at(1), "C5")))
		require.Equal(t, "CONTAINER_TOO_DEEP", code(y.bind(y.theirs[0], true, ids[5], y.at(1), "C0")))
		require.Equal(t, "CONTAINER_CYCLE", code(y.bind(y.theirs[0], true, ids[4], y.at(1), "C0")))
		require.Equal(t, "CONTAINER_CYCLE", code(y.bind(y.theirs[0], true, ids[0], y.at(1), "C0")))
		require.NoError(t, y.bind(y.theirs[0], true, ids[4], y.at(1), y.parcel(0)))
		_, err := y.say(y.theirs[0], "C0", containerEvent{ID: "deep", Code: "in_transit", At: y.at(3)})
		require.NoError(t, err)
		y.settle()
		require.Equal(t, []string{fmt.Sprint("deep in_transit ", int64(ids[0]))}, y.events(0), "five deep")
	})
}

// Nothing goes through a container that would not go without it.
func TestContainersLendNoRights(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		mine, ours := y.container(y.theirs[1], "MINE"), y.container(y.staff, "OURS")
		code := func(err error) string {
			var e *cloud.Error
			require.ErrorAs(t, err, &e)
			return e.Code
		}
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", code(y.bind(y.theirs[1], true, mine, y.at(1), y.parcel(0))), "a parcel of another provider")
		require.Equal(t, "CONTAINER_NOT_FOUND", code(y.bind(y.theirs[0], true, mine, y.at(1), y.parcel(0))), "a container of another provider")
		require.Equal(t, "CONTAINER_NOT_FOUND", code(y.bind(y.theirs[1], true, ours, y.at(1), y.parcel(0))), "a container of the business")
		stranger := cloud.Caller{Account: cloud.Account{ID: 9, BusinessID: 43, Type: cloud.ClientAdmin, Enabled: true}}
		_, err := tracking.ContainersOf(y.s).Find(t.Context(), stranger, tracking.ContainerRef{ID: ours})
		require.Equal(t, "CONTAINER_NOT_FOUND", code(err))
		// Staff put a parcel of one provider into a container of the other.
		require.NoError(t, y.bind(y.staff, true, mine, y.at(1), y.parcel(0)))
		_, err = y.say(y.theirs[1], "MINE", containerEvent{ID: "evil", Code: "out_for_delivery", At: y.at(3)})
		require.NoError(t, err)
		_, err = y.say(y.theirs[0], "MINE", containerEvent{ID: "evil2", Code: "out_for_delivery", At: y.at(3)})
		require.Equal(t, "OTEP_PROVIDER_FORBIDDEN", code(err))
		y.settle()
		require.Empty(t, y.events(0))
		out, err := tracking.ContainersOf(y.s).Find(t.Context(), y.theirs[1], tracking.ContainerRef{ID: mine})
		require.NoError(t, err)
		require.Empty(t, out.Container.Children, "the parcel is another provider's")
		require.Len(t, out.Container.Events, 1)
	})
}
