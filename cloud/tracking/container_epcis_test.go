package tracking_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/gs1"
)

// sscc is one as digits and as EPC.
func sscc(n int) (digits, epc string) {
	body := fmt.Sprintf("3061414%010d", n)
	return body + fmt.Sprint(gs1.CheckDigit(body)), fmt.Sprintf("urn:epc:id:sscc:061414%s.3%s", body[7:8], body[8:])
}

func epcOf(name string) string { return "otep:subject:" + name }

// aggregate is an AggregationEvent.
func aggregate(id, action, parent, step string, at time.Time, children ...string) map[string]any {
	e := map[string]any{"type": "AggregationEvent", "action": action, "parentID": parent, "eventTime": at.Format(time.RFC3339Nano), "eventTimeZoneOffset": "+00:00", "bizStep": step}
	if id != "" {
		e["eventID"] = id
	}
	if len(children) > 0 {
		e["childEPCs"] = children
	}
	return e
}

func declareWrong(e map[string]any) map[string]any {
	out := map[string]any{"errorDeclaration": map[string]any{"declarationTime": time.Now().UTC().Format(time.RFC3339), "reason": "incorrect_data"}}
	for k, v := range e {
		out[k] = v
	}
	return out
}

// capture sends a document, and gives what became of each event by its place.
func (y *yard) capture(c cloud.Caller, events ...map[string]any) (tracking.IngestOutput, map[int]tracking.IngestEvent) {
	y.t.Helper()
	body, err := json.Marshal(map[string]any{"type": "EPCISDocument", "epcisBody": map[string]any{"eventList": events}})
	require.NoError(y.t, err)
	out, err := y.s.IngestEPCIS(y.t.Context(), c, tracking.IngestInput{Body: body})
	var e *cloud.Error
	if errors.As(err, &e) {
		if list, ok := e.Members["timelines"].([]tracking.IngestTimeline); ok {
			out.Timelines, err = list, nil
		} else {
			out.Timelines, err = []tracking.IngestTimeline{{Errors: []tracking.Finding{{Code: e.Code}}}}, nil
		}
	}
	require.NoError(y.t, err)
	by := map[int]tracking.IngestEvent{}
	for _, t := range out.Timelines {
		for _, x := range t.Events {
			by[x.Index] = x
		}
	}
	return out, by
}

func (y *yard) containerOf(identity string) cloud.ContainerID {
	y.t.Helper()
	var id cloud.ContainerID
	require.NoError(y.t, y.db.Look(y.t.Context(), func(v cloud.View) error {
		c, err := v.ContainerByKey(42, identity)
		if errors.Is(err, cloud.ErrNotFound) {
			err = nil
		}
		id = c.ID
		return err
	}))
	return id
}

func bindings(t *testing.T, x tracking.IngestEvent) int {
	t.Helper()
	require.NotNil(t, x.Bindings, "%+v", x)
	return *x.Bindings
}

// Parcels have the events that a model of containers says, in whatever order aggregation events, object events, calls,
// declarations and repeats of them come.
func TestAggregationEventsAreThoseOfAModel(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		rounds := 25
		if ring.Full() {
			rounds = 100
		}
		const parcels = 2
		y := newYard(t, db, parcels*rounds)
		steps := map[string]string{"loading": "in_transit", "arriving": "arrival_scan", "packing": "", "void_shipping": "cancelled", "storing": "received"}
		names := []string{"arriving", "loading", "packing", "storing", "void_shipping"}
		for round := range rounds {
			r := rand.New(rand.NewPCG(11, uint64(round)))
			containers := 1 + round%3
			var ids []cloud.ContainerID
			var epcs []string
			for k := range containers {
				digits, epc := sscc(round*10 + k)
				out, err := tracking.ContainersOf(y.s).Create(t.Context(), y.theirs[0], tracking.ContainerInput{Kind: "pallet", Scheme: "sscc", Identity: digits})
				require.NoError(t, err)
				ids, epcs = append(ids, out.Container.ID), append(epcs, epc)
			}
			childOf := func(n int) string {
				if n >= 100 {
					return epcs[n-100]
				}
				return epcOf(y.parcel(round*parcels + n))
			}
			var all []step
			var sent []map[string]any // beside them; nil for a call
			for n := range 30 {
				k, at := r.IntN(containers), r.IntN(30)
				id := fmt.Sprintf("r%de%d", round, n)
				name := names[r.IntN(len(names))]
				s := step{container: k, at: at, inside: r.IntN(2) > 0, child: r.IntN(parcels)}
				if k+1 < containers && r.IntN(4) == 0 {
					s.child = 100 + k + 1 + r.IntN(containers-k-1)
				}
				action := map[bool]string{true: "ADD", false: "DELETE"}[s.inside]
				switch r.IntN(6) {
				case 0: // a call
					all, sent = append(all, s), append(sent, nil)
					continue
				case 1: // all
					s.child, s.inside, action = everyChild, false, "DELETE"
				case 2: // an event alone
					if steps[name] == "" {
						name = "loading"
					}
					action = "OBSERVE"
				}
				if code := steps[name]; code != "" {
					s.event = &containerEvent{ID: id, Code: code}
				}
				var children []string
				if action != "OBSERVE" {
					s.bound = id
				}
				if s.child != everyChild && action != "OBSERVE" {
					children = []string{childOf(s.child)}
				}
				all, sent = append(all, s), append(sent, aggregate(id, action, epcs[k], name, y.at(at), children...))
			}
			undone := map[int]bool{}
			settle := func() {
				if r.IntN(4) == 0 {
					y.settle()
				}
			}
			order := r.Perm(len(all))
			for place, i := range order {
				s := all[i]
				if sent[i] == nil {
					child := y.parcel(round*parcels + s.child)
					if s.child >= 100 {
						child, _ = sscc(round*10 + s.child - 100)
					}
					require.NoError(t, y.bind(y.theirs[0], s.inside, ids[s.container], y.at(s.at), child))
					settle()
					continue
				}
				_, by := y.capture(y.theirs[0], sent[i])
				require.Equal(t, "accepted", by[0].Outcome, "%+v", by)
				settle()
				if j := order[r.IntN(place+1)]; sent[j] != nil { // once more
					_, by := y.capture(y.theirs[0], sent[j])
					require.Equal(t, "duplicate", by[0].Outcome)
					require.True(t, by[0].Bindings == nil || *by[0].Bindings == 0)
				}
				if j := order[r.IntN(place+1)]; sent[j] != nil && r.IntN(4) == 0 { // it was wrong
					_, by := y.capture(y.theirs[0], declareWrong(sent[j]))
					require.Equal(t, map[bool]string{true: "duplicate", false: "withdrawn"}[undone[j]], by[0].Outcome)
					undone[j] = true
					settle()
				}
			}
			y.settle()
			var model []step
			for i, s := range all {
				if !undone[i] {
					model = append(model, s)
				}
			}
			for p := range parcels {
				require.Equal(t, modelEvents(model, ids, p, containers, y.start), y.events(round*parcels+p), "round %d, parcel %d", round, p)
			}
		}
	})
}

// A pallet that is not known becomes a container of the provider, with the pallets inside that the same document fills.
func TestAggregationMakesPallets(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 4)
		upper, upperEPC := sscc(1)
		lower, lowerEPC := sscc(2)
		other, otherEPC := sscc(3)
		_, by := y.capture(y.theirs[0],
			aggregate("a-1", "ADD", upperEPC, "loading", y.at(2), lowerEPC, otherEPC, "urn:epc:id:sgtin:0614141.107346.2017"),
			aggregate("a-2", "ADD", lowerEPC, "packing", y.at(1), epcOf(y.parcel(0)), epcOf(y.parcel(1)), epcOf("UNKNOWN")),
			map[string]any{"type": "ObjectEvent", "action": "OBSERVE", "eventID": "a-3", "epcList": []string{upperEPC}, "bizStep": "arriving", "eventTime": y.at(5).Format(time.RFC3339)})
		require.Equal(t, []int{1, 2}, []int{bindings(t, by[0]), bindings(t, by[1])})
		require.Equal(t, "accepted", by[2].Outcome)
		require.NotZero(t, y.containerOf(upper))
		require.NotZero(t, y.containerOf(lower))
		require.Zero(t, y.containerOf(other), "nothing is put into it")
		y.settle()
		top := y.containerOf(upper)
		require.Equal(t, []string{fmt.Sprint("a-1 in_transit ", top), fmt.Sprint("a-3 arrival_scan ", top)}, y.events(0))
		// A parcel that comes later is bound by the same document.
		_, err := tracking.ContainersOf(y.s).Find(t.Context(), y.theirs[1], tracking.ContainerRef{ID: top})
		require.Error(t, err, "it is another provider's")
		// Nothing of the provider is inside: the pallet is as unknown as before.
		strange, strangeEPC := sscc(9)
		out, _ := y.capture(y.theirs[0], aggregate("b-1", "ADD", strangeEPC, "loading", y.at(2), "urn:epc:id:sgtin:0614141.107346.2017", epcOf("UNKNOWN")))
		require.Equal(t, "OTEP_TRACKING_NOT_FOUND", out.Timelines[0].Errors[0].Code)
		require.Zero(t, y.containerOf(strange))
		// All is taken out.
		_, by = y.capture(y.theirs[0], aggregate("c-1", "DELETE", lowerEPC, "unpacking", y.at(6)))
		require.Equal(t, 2, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], aggregate("c-1", "DELETE", lowerEPC, "unpacking", y.at(7)))
		require.Equal(t, "conflict", by[0].Outcome)
		_, by = y.capture(y.theirs[0], aggregate("c-1", "DELETE", lowerEPC, "unpacking", y.at(6), epcOf(y.parcel(0))))
		require.Equal(t, "conflict", by[0].Outcome)
		// Late, for a time before: it goes out with the others.
		_, by = y.capture(y.theirs[0], aggregate("c-2", "ADD", lowerEPC, "", y.at(3), epcOf(y.parcel(2))))
		require.Equal(t, 1, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], aggregate("d-1", "OBSERVE", upperEPC, "transporting", y.at(8)))
		require.Equal(t, "accepted", by[0].Outcome)
		y.settle()
		for n := range 3 {
			require.False(t, slices.ContainsFunc(y.events(n), func(e string) bool { return strings.HasPrefix(e, "d-1") }), "parcel %d", n)
		}
		require.Equal(t, fmt.Sprint("a-3 arrival_scan ", top), y.events(2)[0])
	})
}

// Without an id the content is the event: it counts once, and its declaration undoes it.
func TestAggregationWithoutAnID(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		digits, epc := sscc(1)
		e := aggregate("", "ADD", epc, "packing", y.at(1), epcOf(y.parcel(0)), epcOf(y.parcel(1)))
		_, by := y.capture(y.theirs[0], e)
		require.Equal(t, 2, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], aggregate("", "ADD", epc, "packing", y.at(1), epcOf(y.parcel(1)), epcOf(y.parcel(0))))
		require.Equal(t, "duplicate", by[0].Outcome)
		_, by = y.capture(y.theirs[0], declareWrong(e))
		require.Equal(t, []any{"withdrawn", 2}, []any{by[0].Outcome, bindings(t, by[0])})
		_, by = y.capture(y.theirs[0], e)
		require.Equal(t, "duplicate", by[0].Outcome, "it was declared wrong")
		_, err := y.say(y.theirs[0], digits, containerEvent{ID: "x", Code: "in_transit", At: y.at(3)})
		require.NoError(t, err)
		y.settle()
		require.Empty(t, y.events(0))
		kinds, after := map[string]int{}, ""
		ring.Await(t, func() bool {
			page, err := y.s.Changes(t.Context(), y.staff, tracking.ChangesInput{After: after})
			require.NoError(t, err)
			after = page.Next
			for _, x := range page.Changes {
				kinds[string(x.Kind)]++
			}
			return kinds["container.unbound"] == 2
		})
		require.Equal(t, map[string]int{"container.bound": 2, "container.unbound": 2}, kinds)
	})
}

// What a container cannot hold is refused alone, and so is a declaration after which it would have to.
func TestBoundsOfAggregation(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		epcs := make([]string, 7)
		for k := range epcs {
			var digits string
			digits, epcs[k] = sscc(k)
			_, err := tracking.ContainersOf(y.s).Create(t.Context(), y.theirs[0], tracking.ContainerInput{Kind: "cage", Scheme: "sscc", Identity: digits})
			require.NoError(t, err)
		}
		for k := range 4 {
			_, by := y.capture(y.theirs[0], aggregate(fmt.Sprint("k-", k), "ADD", epcs[k], "packing", y.at(1), epcs[k+1]))
			require.Equal(t, 1, bindings(t, by[0]))
		}
		_, by := y.capture(y.theirs[0],
			aggregate("deep", "ADD", epcs[4], "loading", y.at(1), epcs[5]),
			aggregate("cycle", "ADD", epcs[4], "loading", y.at(1), epcs[0]),
			aggregate("self", "ADD", epcs[5], "loading", y.at(1), epcs[5]),
			aggregate("good", "ADD", epcs[4], "loading", y.at(1), epcOf(y.parcel(0))))
		require.Equal(t, []string{"CONTAINER_TOO_DEEP", "CONTAINER_CYCLE", "CONTAINER_CYCLE", ""}, []string{by[0].Code, by[1].Code, by[2].Code, by[3].Code})
		require.Equal(t, []string{"rejected", "rejected", "rejected", "accepted"}, []string{by[0].Outcome, by[1].Outcome, by[2].Outcome, by[3].Outcome})
		// k-0 is ended, and the other way round begins: that the end was wrong cannot be any more.
		end := aggregate("end", "DELETE", epcs[0], "unpacking", y.at(5), epcs[1])
		_, by = y.capture(y.theirs[0], end)
		require.Equal(t, 1, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], aggregate("back", "ADD", epcs[6], "packing", y.at(6), epcs[0]))
		require.Equal(t, 1, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], aggregate("back2", "ADD", epcs[1], "packing", y.at(6), epcs[6]))
		require.Equal(t, 1, bindings(t, by[0]))
		_, by = y.capture(y.theirs[0], declareWrong(end))
		require.Equal(t, []string{"rejected", "CONTAINER_CYCLE"}, []string{by[0].Outcome, by[0].Code})
		y.settle()
		fourth, _ := sscc(4)
		require.Contains(t, y.events(0), fmt.Sprint("good in_transit ", y.containerOf(fourth)), "what was refused left nothing")
		require.NotContains(t, fmt.Sprint(y.events(0)), "cycle")
	})
}

// Attackers: children and containers of others are as unknown ones.
func TestAggregationLendsNoRights(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, db *store.DB) {
		y := newYard(t, db, 2)
		digits, epc := sscc(1)
		_, theirs := sscc(2)
		_, by := y.capture(y.theirs[0], aggregate("a-1", "ADD", epc, "loading", y.at(1), epcOf(y.parcel(0))))
		require.Equal(t, 1, bindings(t, by[0]))
		// The other provider: into the first one's pallet, with its parcel, with its pallet.
		out, _ := y.capture(y.theirs[1], aggregate("x-1", "DELETE", epc, "unpacking", y.at(2)))
		require.Equal(t, "OTEP_PROVIDER_FORBIDDEN", out.Timelines[0].Errors[0].Code)
		out, _ = y.capture(y.theirs[1], declareWrong(aggregate("a-1", "ADD", epc, "loading", y.at(1), epcOf(y.parcel(0)))))
		require.Equal(t, "OTEP_PROVIDER_FORBIDDEN", out.Timelines[0].Errors[0].Code)
		mine := y.container(y.theirs[1], "MINE")
		var said []string
		for i, child := range []string{epcOf(y.parcel(0)), epc, epcOf("UNKNOWN"), theirs} {
			out, by := y.capture(y.theirs[1], aggregate(fmt.Sprint("x-", i+2), "ADD", epcOf("MINE"), "loading", y.at(3), child))
			require.Equal(t, []any{"accepted", 0}, []any{by[0].Outcome, bindings(t, by[0])})
			said = append(said, out.Timelines[0].Warnings[0].Message)
		}
		require.Len(t, slices.Compact(said), 1, "a thing of another provider is as an unknown one")
		// A declaration of an event that another provider sent into a container that both may write to.
		all := y.theirs[1].Provider
		all.Scope = cloud.ScopeAll
		require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{all}}}, nil
		}))
		wide := y.theirs[1]
		wide.Provider = all
		out, by = y.capture(wide, declareWrong(aggregate("a-1", "ADD", epc, "loading", y.at(1), epcOf(y.parcel(0)))))
		require.Equal(t, []string{"rejected", "I02"}, []string{by[0].Outcome, out.Timelines[0].Errors[0].Code})
		y.settle()
		require.Equal(t, []string{fmt.Sprint("a-1 in_transit ", y.containerOf(digits))}, y.events(0))
		list, err := tracking.ContainersOf(y.s).Find(t.Context(), y.theirs[1], tracking.ContainerRef{ID: mine})
		require.NoError(t, err)
		require.Empty(t, list.Container.Children)
	})
}

// Times that no event may have bind nothing, and a parcel holds nothing.
func TestAggregationThatBindsNothing(t *testing.T) {
	t.Parallel()
	y := newYard(t, storetest.OpenSQLite(t), 2)
	pallet := y.container(y.theirs[0], "P-1")
	_, by := y.capture(y.theirs[0], aggregate("old", "ADD", epcOf("P-1"), "packing", y.at(0).AddDate(-3, 0, 0), epcOf(y.parcel(0))),
		aggregate("ahead", "ADD", epcOf("P-1"), "loading", y.at(0).AddDate(0, 0, 9), epcOf(y.parcel(0))))
	require.Equal(t, []string{"rejected", "rejected"}, []string{by[0].Outcome, by[1].Outcome})
	out, err := tracking.ContainersOf(y.s).Find(t.Context(), y.theirs[0], tracking.ContainerRef{ID: pallet})
	require.NoError(t, err)
	require.Empty(t, out.Container.Children)
	var many []string
	for n := range 1001 {
		many = append(many, epcOf(fmt.Sprint("X", n)))
	}
	full, _ := y.capture(y.theirs[0], aggregate("many", "ADD", epcOf("P-1"), "packing", y.at(1), many...))
	require.Contains(t, full.Timelines[0].Errors[0].Path, "childEPCs")
	_, by = y.capture(y.theirs[0], aggregate("p-1", "ADD", epcOf(y.parcel(0)), "packing", y.at(1), epcOf(y.parcel(1))))
	require.Equal(t, []string{"rejected", "CONTAINER_NOT_FOUND"}, []string{by[0].Outcome, by[0].Code})
	_, by = y.capture(y.theirs[0], aggregate("p-2", "ADD", epcOf(y.parcel(0)), "loading", y.at(1), epcOf(y.parcel(1))))
	require.Equal(t, "accepted", by[0].Outcome, "it is the parcel's event alone")
}

// Nodes that get one document at once make one pallet, and bind each thing once.
func TestAggregationAtTwoNodes(t *testing.T) {
	ring.SkipUnlessCheck(t, "one node on SQLite")
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	open := func(name string) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: name, Box: storetest.Box(t)})
	}
	const parcels = 30
	y := newYard(t, open("n0"), parcels)
	nodes := []*tracking.Service{y.s, tracking.New(open("n1")), tracking.New(open("n2"))}
	digits, epc := sscc(1)
	_, lower := sscc(2)
	var children []string
	for n := range parcels {
		children = append(children, epcOf(y.parcel(n)))
	}
	body, err := json.Marshal([]any{aggregate("a-1", "ADD", epc, "loading", y.at(1), lower), aggregate("a-2", "ADD", lower, "loading", y.at(1), children...),
		aggregate("a-3", "DELETE", lower, "unpacking", y.at(4))})
	require.NoError(t, err)
	bound := make([]int, 12)
	var work sync.WaitGroup
	for i := range bound {
		work.Go(func() {
			out, err := nodes[i%3].IngestEPCIS(t.Context(), y.theirs[0], tracking.IngestInput{Body: body})
			if !assert.NoError(t, err) {
				return
			}
			for _, x := range out.Timelines {
				for _, e := range x.Events {
					bound[i] += bindings(t, e)
				}
			}
		})
	}
	work.Wait()
	total := 0
	for _, n := range bound {
		total += n
	}
	require.Equal(t, 1+2*parcels, total)
	_, by := y.capture(y.theirs[0], aggregate("a-4", "OBSERVE", epc, "arriving", y.at(2)), aggregate("a-5", "OBSERVE", epc, "storing", y.at(5)))
	require.Equal(t, "accepted", by[1].Outcome)
	y.settle()
	for n := range parcels {
		require.Contains(t, y.events(n), fmt.Sprint("a-4 arrival_scan ", y.containerOf(digits)))
		require.NotContains(t, fmt.Sprint(y.events(n)), "a-5")
	}
}

// Calls at several nodes make one container of an identity.
func TestOneContainerAtTwoNodes(t *testing.T) {
	ring.SkipUnlessCheck(t, "one node on SQLite")
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	open := func(name string) *store.DB {
		return storetest.Open(t, store.Config{URL: url, Instance: name, Box: storetest.Box(t)})
	}
	y := newYard(t, open("n0"), 0)
	nodes := []*tracking.Service{y.s, tracking.New(open("n1"))}
	var made, there atomic.Int32
	var work sync.WaitGroup
	for i := range 12 {
		work.Go(func() {
			_, err := tracking.ContainersOf(nodes[i%2]).Create(t.Context(), y.staff, tracking.ContainerInput{Kind: "bag", Scheme: "own", Identity: "B-1"})
			var e *cloud.Error
			switch {
			case err == nil:
				made.Add(1)
			case errors.As(err, &e) && e.Code == "CONTAINER_EXISTS":
				there.Add(1)
			default:
				assert.NoError(t, err)
			}
		})
	}
	work.Wait()
	require.Equal(t, []int32{1, 11}, []int32{made.Load(), there.Load()})
}
