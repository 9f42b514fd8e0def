package timeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// ranks stand as in the specification (OTEP section 5), beside the product's own.
var ranks = map[otep.Code]int{"information_submitted": 10, "awaiting_pickup": 30, "picked_up": 50, "arrival_scan": 60, "in_transit": 70, "out_for_delivery": 80, "delivery_failed": 85,
	"delivered": 90, "return_to_sender": 95, "cancelled": 96}

// ends are the codes that end a parcel.
var ends = []otep.Code{"delivered", "return_to_sender", "cancelled"}

func event(id string, at int, code otep.Code, of cloud.PackageID) cloud.TimelineEvent {
	t := otep.Time{Time: time.Unix(1_790_000_000+int64(at), 0).UTC()}
	return cloud.TimelineEvent{Package: of, Event: otep.Event{EventID: id, OccurredAt: t, RecordedAt: t, StatusCode: code, Source: &otep.Source{Type: "carrier", Provider: "swift"}}.Fill("parcel")}
}

// history is a random history: at most one event in each second.
func history(r *rand.Rand, packages []cloud.PackageID) (out []cloud.TimelineEvent) {
	codes := make([]otep.Code, 0, len(ranks))
	for c := range ranks {
		codes = append(codes, c)
	}
	slices.Sort(codes)
	out = append(out, event("first", 0, "information_submitted", 0))
	for at := 1; at < 3+r.IntN(12); at++ {
		var of cloud.PackageID
		if r.IntN(3) > 0 {
			of = packages[r.IntN(len(packages))]
		}
		e := event(fmt.Sprint("e", at), at, codes[r.IntN(len(codes))], of)
		e.Event.Withdrawn = r.IntN(6) == 0
		e.Event.Reported = r.IntN(10) == 0
		if r.IntN(3) == 0 {
			e.Event.Source = &otep.Source{Type: "self_delivery"} // a move of the order itself, or a driver's
		}
		out = append(out, e)
	}
	return out
}

// naive tells the history of an order parcel by parcel, second by second, as the
// specification words it.
type naive struct {
	packages []cloud.PackageID
	code     map[cloud.PackageID]otep.Code
	lists    map[cloud.PackageID][]string
	// shown is where the order is said to be: where its parcels are, or where its own move has put it.
	shown [2]string
}

func tell(events []cloud.TimelineEvent, packages []cloud.PackageID) naive {
	n := naive{packages: packages, code: map[cloud.PackageID]otep.Code{}, lists: map[cloud.PackageID][]string{}}
	for second := range 20 {
		for _, e := range events {
			if e.Event.OccurredAt.Unix() != 1_790_000_000+int64(second) || e.Event.Withdrawn {
				continue
			}
			open := 0
			for _, p := range packages {
				if !slices.Contains(ends, n.code[p]) {
					open++
				}
			}
			var hit []cloud.PackageID
			for _, p := range packages {
				if e.Package == p || e.Package == 0 && (open == 0 || !slices.Contains(ends, n.code[p])) {
					hit = append(hit, p)
				}
			}
			was := n.order()
			for _, p := range hit {
				n.lists[p] = append(n.lists[p], e.Event.EventID)
				if !e.Event.Reported {
					n.code[p] = e.Event.StatusCode
				}
			}
			switch is := n.order(); {
			case e.Event.Reported:
			case e.Package == 0 && e.Event.Source.Provider == "":
				n.shown = [2]string{string(e.Event.StatusCode), ""}
			case e.Package == 0 && is[0] == string(e.Event.StatusCode):
				n.shown = [2]string{is[0], ""}
			case e.Package == 0 || is != was:
				n.shown = is
			}
		}
	}
	return n
}

func (n naive) order() [2]string {
	var open, ended []otep.Code
	delivered := 0
	for _, p := range n.packages {
		if c := n.code[p]; slices.Contains(ends, c) {
			if ended = append(ended, c); c == "delivered" {
				delivered++
			}
		} else {
			open = append(open, c)
		}
	}
	by := func(a, b otep.Code) int { return ranks[a] - ranks[b] }
	switch {
	case len(open) > 0:
		return [2]string{string(slices.MinFunc(open, by))}
	case delivered == len(n.packages):
		return [2]string{"delivered"}
	case delivered > 0:
		return [2]string{"delivery_failed", "x-partial_delivery"}
	}
	return [2]string{string(slices.MaxFunc(ended, by))}
}

// Whatever happened to an order's parcels, and in whatever order it came to be known, each
// parcel's timeline and the order's say what a plain reading of the rules says.
func TestOrdersFollowTheirParcels(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		packages := []cloud.PackageID{11, 12, 13}[:1+r.IntN(3)]
		events := history(r, packages)
		want := tell(events, packages)
		shuffled := slices.Clone(events)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })

		codes := timeline.Codes(shuffled, packages, now)
		for _, p := range packages {
			require.Equal(t, want.code[p], codes[p], "seed %d: package %d", seed, p)
			got := otep.FoldAt("parcel", otep.Subject{TrackingNumber: "P"}, timeline.OfPackage(shuffled, packages, p, now), now)
			require.Equal(t, want.code[p], *got.Current, "seed %d: timeline of package %d", seed, p)
			var ids []string
			for _, e := range got.Events {
				ids = append(ids, e.EventID)
			}
			for _, e := range got.Reports {
				ids = append(ids, e.EventID)
			}
			require.ElementsMatch(t, want.lists[p], ids, "seed %d: events of package %d", seed, p)
		}

		got := otep.FoldAt("parcel", otep.Subject{TrackingNumber: "O"}, timeline.OfOrder(shuffled, packages, now), now)
		last := got.Events[len(got.Events)-1]
		require.Equal(t, want.shown, [2]string{string(*got.Current), last.IncidentReason}, "seed %d: order", seed)
		seen := map[string]bool{}
		for i, e := range got.Events {
			require.False(t, seen[e.EventID], "seed %d: %s is there twice", seed, e.EventID)
			seen[e.EventID] = true
			if i > 0 && e.Source.Synthesized {
				before := got.Events[i-1]
				require.NotEqual(t, [2]string{string(before.StatusCode), before.IncidentReason}, [2]string{string(e.StatusCode), e.IncidentReason}, "seed %d: a made event says nothing new", seed)
			}
		}
		for _, e := range events {
			if e.Package == 0 && !e.Event.Withdrawn && !e.Event.Reported {
				require.True(t, seen[e.Event.EventID], "seed %d: %s of the whole order is missing", seed, e.Event.EventID)
			}
		}
		if len(packages) > 1 && timeline.IsSplit(events) { // the order's past changes with its place alone
			for i := range got.Events[:len(got.Events)-1] {
				cut := got.Events[i+1].OccurredAt
				var past []cloud.TimelineEvent
				for _, e := range events {
					if e.Event.OccurredAt.Before(cut.Time.Truncate(time.Second)) {
						past = append(past, e)
					}
				}
				if at := got.Events[i].OccurredAt; at.Truncate(time.Second).Before(cut.Truncate(time.Second)) {
					require.Equal(t, tell(past, packages).shown[0], string(got.Events[i].StatusCode), "seed %d: order at %s", seed, at)
				}
			}
		}
	}
}

// One of two parcels is delivered: it is the only one that is.
func TestOneParcelOfTwoIsDelivered(t *testing.T) {
	t.Parallel()
	now, packages := time.Unix(1_800_000_000, 0), []cloud.PackageID{11, 12}
	events := []cloud.TimelineEvent{event("a", 1, "information_submitted", 0), event("b", 2, "out_for_delivery", 0), event("c", 3, "delivered", 11)}
	fold := func(list []otep.Event) otep.Timeline {
		return otep.FoldAt("parcel", otep.Subject{TrackingNumber: "X"}, list, now)
	}
	require.True(t, fold(timeline.OfPackage(events, packages, 11, now)).Delivered)
	require.False(t, fold(timeline.OfPackage(events, packages, 12, now)).Delivered)
	order := fold(timeline.OfOrder(events, packages, now))
	require.Equal(t, otep.OutForDelivery, *order.Current)
	require.Len(t, order.Events, 2)

	events = append(events, event("d", 4, "delivered", 12))
	order = fold(timeline.OfOrder(events, packages, now))
	require.True(t, order.Delivered)
	require.Equal(t, "d", order.Events[2].EventID)
}

// An order whose last package comes several steps at once has no invalid move.
func TestOrderTakesNoStepThatCannotBe(t *testing.T) {
	t.Parallel()
	now, packages := time.Unix(1_800_000_000, 0), []cloud.PackageID{11, 12}
	events := []cloud.TimelineEvent{event("a", 1, "booking_confirmed", 0), event("b", 2, "out_for_delivery", 11), event("c", 3, "delivery_failed", 11), event("d", 4, "delivered", 12)}
	order := otep.FoldAt("parcel", otep.Subject{TrackingNumber: "X"}, timeline.OfOrder(events, packages, now), now)
	require.Empty(t, otep.BadMoves(order.Events))
	require.Equal(t, otep.DeliveryFailed, *order.Current)
	require.Len(t, order.Events, 3)
}

// An event whose time has not come changes nothing yet.
func TestEventsAheadWait(t *testing.T) {
	t.Parallel()
	packages := []cloud.PackageID{11, 12}
	events := []cloud.TimelineEvent{event("a", 1, "in_transit", 0), event("b", 7200, "delivered", 11), event("c", 7201, "delivered", 12)}
	soon, later := time.Unix(1_790_000_100, 0), time.Unix(1_790_010_000, 0)
	require.Equal(t, map[cloud.PackageID]otep.Code{11: "in_transit", 12: "in_transit"}, timeline.Codes(events, packages, soon))
	require.Equal(t, map[cloud.PackageID]otep.Code{11: "delivered", 12: "delivered"}, timeline.Codes(events, packages, later))
	require.Len(t, timeline.OfOrder(events, packages, soon), 1)
}

// A carrier scans several parcels in the same moment, and a parcel's event may come in the moment of
// one about the whole: the order is where its parcels are when the moment is over.
func TestEventsOfOneMoment(t *testing.T) {
	t.Parallel()
	at := func(list ...cloud.TimelineEvent) string {
		tl := otep.Fold("parcel", otep.Subject{}, timeline.OfOrder(list, []cloud.PackageID{1, 2}, time.Time{}))
		var codes []string
		for _, e := range tl.Events {
			codes = append(codes, string(e.StatusCode))
		}
		return strings.Join(codes, " ")
	}
	require.Equal(t, "in_transit delivered", at(event("a", 1, "in_transit", 1), event("b", 1, "out_for_delivery", 2), event("c", 2, "delivered", 1), event("d", 2, "delivered", 2)))
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 3))
		packages := []cloud.PackageID{1, 2, 3}[:2+r.IntN(2)]
		events := history(r, packages)
		for i := range events {
			e := &events[i].Event
			e.Source = &otep.Source{Type: "carrier", Provider: "swift"}
			e.OccurredAt.Time = e.OccurredAt.Truncate(4 * time.Second).Add(time.Duration(r.IntN(2)) * time.Microsecond)
		}
		if !timeline.IsSplit(events) {
			continue
		}
		end := naive{packages: packages, code: timeline.Codes(events, packages, time.Time{})}.order()
		shown := otep.Fold("parcel", otep.Subject{}, timeline.OfOrder(events, packages, time.Time{}))
		current := ""
		if shown.Current != nil {
			current = string(*shown.Current)
		}
		require.Equal(t, end[0], current, "seed %d", seed)
	}
}
