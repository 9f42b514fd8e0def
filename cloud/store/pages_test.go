package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

func onEngines(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "sqlite" {
				test(t, Config{Dir: t.TempDir()})
				return
			}
			ring.SkipUnlessCheck(t, "a schema of PostgreSQL for each test")
			test(t, Config{URL: freshSchema(t)})
		})
	}
}

// pageReader walks a timeline by its pages.
type pageReader struct {
	d     *twin
	store tracking.Store
	in    tracking.EventsInput
	c     cloud.Caller
	limit int
	ended bool
}

func (r *pageReader) page() (ids []string) {
	r.in.Limit = &r.limit
	out, err := tracking.New(r.store).Events(r.d.t.Context(), r.c, r.in)
	require.NoError(r.d.t, err)
	b, err := json.Marshal(out.Data)
	require.NoError(r.d.t, err)
	var events []otep.Event
	require.NoError(r.d.t, json.Unmarshal(b, &events))
	require.Equal(r.d.t, len(events), out.Total)
	require.Equal(r.d.t, out.Next != "", out.Truncated)
	for _, e := range slices.Backward(events) {
		ids = append(ids, e.EventID)
	}
	r.in.Cursor, r.ended = out.Next, out.Next == ""
	return ids
}

func (r *pageReader) all() (ids []string) {
	for !r.ended {
		ids = append(ids, r.page()...)
		require.Less(r.d.t, len(ids), 100_000, "it comes to an end")
	}
	return ids
}

var pageOwner = cloud.Caller{Account: cloud.Account{ID: 7, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 1, BusinessID: 1, Code: "ups", SourceType: "carrier"}, Language: "en"}

// stored are all events of a shipment, and the packages of its order if there are several.
func (d *twin) stored(s cloud.Shipment) (events []cloud.TimelineEvent, packages []cloud.PackageID) {
	events, err := readList(d.t.Context(), d.db.database, sqlTimelineAfter, scanEvent, int64(s.ID), int64(beforeAll))
	require.NoError(d.t, err)
	packages, err = readList(d.t.Context(), d.db.database, `SELECT id FROM order_package WHERE order_id = $1 ORDER BY id`, func(r rows, x *cloud.PackageID) error { return r.Scan(x) }, int64(s.OrderID))
	require.NoError(d.t, err)
	if len(packages) < 2 {
		packages = nil
	}
	return events, packages
}

// naive is a timeline, newest first, as it follows from all of its rows.
func (d *twin) naive(s cloud.Shipment, scope string, withdrawn bool, now time.Time) (ids []string) {
	stored, packages := d.stored(s)
	events := otep.FoldAt(s.Profile, otep.Subject{}, timeline.OfOrder(stored, packages, now), now).Events
	if scope == "all" {
		events = nil
	}
	for _, r := range stored {
		if r.Event.Withdrawn && withdrawn || !r.Event.Withdrawn && !r.Event.Reported && scope == "all" {
			events = append(events, r.Event)
		}
	}
	slices.SortStableFunc(events, func(a, b otep.Event) int { return otep.Compare(&b, &a) })
	for _, e := range events {
		ids = append(ids, e.EventID)
	}
	return ids
}

// Whatever the order in which events arrive, are taken back and are corrected: the pages of a timeline hold
// its events, each once, as they follow from all rows.
func TestPagesAreTheWholeTimeline(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, cfg Config) {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 2))
		d := newTwin(t, cfg, window{8, 4})
		d.db.newest = 9
		shipments := d.parcels(8)
		base := time.Now().Add(-100 * time.Hour).UTC().Truncate(time.Second)
		codes := []otep.Code{"in_transit", "arrival_scan", "out_for_delivery", "delivered", "delivery_failed", "picked_up", "received", "return_to_sender", "information_submitted"}
		for step := range 300 {
			i := r.IntN(len(shipments))
			d.ingest(randomArrival(r, i, step/len(shipments), base, codes))
			if step%4 != 0 {
				continue
			}
			s := shipments[i]
			for _, in := range []tracking.EventsInput{{}, {Scope: "all"}, {Include: "withdrawn"}, {Scope: "all", Include: "withdrawn"}} {
				in.Number = s.Number
				w := &pageReader{d: d, store: d.db, in: in, c: pageOwner, limit: 1 + r.IntN(20)}
				got, want := w.all(), d.naive(s, in.Scope, in.Include != "", time.Now())
				if in.Include != "" { // their order beside others of the same moment is open
					slices.Sort(got)
					slices.Sort(want)
				}
				require.Equal(t, want, got, "step %d, %+v, limit %d", step, in, w.limit)
			}
			d.requireStatus(s)
		}
	})
}

func (d *twin) parcels(n int) (out []cloud.Shipment) {
	for i := range n {
		s := cloud.Shipment{ID: cloud.ShipmentID(i + 1), BusinessID: 1, Number: fmt.Sprintf("CP%d", i), ProviderID: 1, CreatedAt: time.Now().Truncate(time.Millisecond)}
		if i%2 == 1 {
			s.OrderID = cloud.OrderID(100 + i)
		}
		out = append(out, s)
	}
	decide(d.t, d.db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: out}})
	for i := 1; i < n; i += 2 {
		for k := range 1 + i%4 {
			d.exec(`INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES ($1, $2, $3, $4, $5)`, int64(i*10+k), int64(100+i), int64(1), fmt.Sprintf("CP%d-%d", i, k), "")
		}
	}
	return out
}

// requireStatus is that a timeline says the status of all of its events, and shows the newest.
func (d *twin) requireStatus(s cloud.Shipment) {
	now := time.Now()
	out, err := tracking.New(d.db).Timeline(d.t.Context(), pageOwner, tracking.TimelineInput{Number: s.Number})
	require.NoError(d.t, err)
	shown := out.Data.(otep.Timeline)
	stored, packages := d.stored(s)
	want := otep.FoldAt(s.Profile, otep.Subject{}, timeline.OfOrder(stored, packages, now), now)
	require.Equal(d.t, want.Current, shown.Current)
	require.Equal(d.t, want.Terminal, shown.Terminal)
	if want.LastEventAt != nil {
		require.True(d.t, want.LastEventAt.Equal(shown.LastEventAt.Time))
	}
}

// While a writer adds late events, takes some back and corrects others, a reader of pages gets each event that
// stood when it began and still stands at its end, and none twice.
func TestPagesHoldWhileEventsComeAndGo(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, cfg Config) {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 3))
		d := newTwin(t, cfg, window{8, 4})
		d.db.newest = 9
		s := d.parcels(1)[0]
		base := time.Now().Add(-100 * time.Hour).UTC().Truncate(time.Second)
		codes := []otep.Code{"in_transit", "arrival_scan", "received"}
		for step := range 60 {
			d.ingest(randomArrival(r, 0, step, base, codes))
		}
		for range 12 {
			w := &pageReader{d: d, store: d.db, c: pageOwner, limit: 3 + r.IntN(9), in: tracking.EventsInput{Number: s.Number}}
			began := d.naive(s, "", false, time.Now())
			seen := map[string]int{}
			for !w.ended {
				for _, id := range w.page() {
					seen[id]++
					require.Equal(t, 1, seen[id], "event %s comes once", id)
				}
				for range r.IntN(3) {
					d.ingest(randomArrival(r, 0, 1+r.IntN(80), base, codes))
				}
			}
			stands := d.naive(s, "", false, time.Now())
			for _, id := range began {
				if slices.Contains(stands, id) {
					require.Contains(t, seen, id)
				}
			}
		}
	})
}

// countedRows is a store that counts the events which it reads.
type countedRows struct {
	*DB
	n *int
}

func (s countedRows) FindTimeline(ctx context.Context, number string, prefer func(cloud.Shipment) bool) (cloud.FoundTimeline, error) {
	out, err := s.DB.FindTimeline(ctx, number, prefer)
	*s.n += len(out.Events)
	return out, err
}

func (s countedRows) Look(ctx context.Context, fn func(cloud.View) error) error {
	return s.DB.Look(ctx, func(v cloud.View) error { return fn(countedView{v, s.n}) })
}

type countedView struct {
	cloud.View
	n *int
}

func (v countedView) TimelineUpto(s cloud.ShipmentID, upto time.Time, limit int) ([]cloud.TimelineEvent, error) {
	out, err := v.View.TimelineUpto(s, upto, limit)
	*v.n += len(out)
	return out, err
}

func (v countedView) Timeline(s cloud.ShipmentID) ([]cloud.TimelineEvent, error) {
	out, err := v.View.Timeline(s)
	*v.n += len(out)
	return out, err
}

// A timeline of 20,000 events is read by pages, each of which reads as many rows as the first.
func TestEachPageOfALongTimelineCostsTheSame(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, cfg Config) {
		d := newTwin(t, cfg, usualWindow)
		decide(t, d.db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, BusinessID: 1, Number: "LONG", ProviderID: 1}}}})
		base := time.Now().Add(-1000 * time.Hour).UTC().Truncate(time.Second)
		order := rand.New(rand.NewPCG(1, 1)).Perm(20_000)
		for part := range slices.Chunk(order, 500) {
			c := &cloud.Changes{}
			for _, n := range part {
				e := feedEvent(1, fmt.Sprintf("l-%05d", n))
				e.Event.OccurredAt.Time = base.Add(time.Duration(n) * time.Minute)
				c.Events = append(c.Events, e)
			}
			decide(t, d.db, c)
		}
		read := 0
		w := &pageReader{d: d, store: countedRows{d.db, &read}, c: pageOwner, limit: 500, in: tracking.EventsInput{Number: "LONG"}}
		var ids []string
		for !w.ended {
			read = 0
			ids = append(ids, w.page()...)
			require.LessOrEqual(t, read, 2*newestEvents)
		}
		require.Len(t, ids, 20_000)
		for i, id := range ids {
			require.Equal(t, fmt.Sprintf("l-%05d", 19_999-i), id)
		}
	})
}
