package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// feedNodes are one node on SQLite and two on PostgreSQL, with parcels of businesses 1 and 2.
func feedNodes(t *testing.T, engine string, parcels int) []*DB {
	var nodes []*DB
	if engine == "postgres" {
		url := freshSchema(t)
		url = strings.Replace(url, "pool_max_conns=3", "pool_max_conns=12", 1)
		nodes = []*DB{openTest(t, Config{URL: url, Instance: "n1"}), openTest(t, Config{URL: url, Instance: "n2"})}
	} else {
		nodes = []*DB{openTest(t, Config{Dir: t.TempDir()})}
	}
	c := &cloud.Changes{}
	for i := range parcels {
		c.Shipments = append(c.Shipments, cloud.Shipment{ID: cloud.ShipmentID(i + 1), BusinessID: cloud.BusinessID(i%2 + 1), Number: fmt.Sprint("F", i)})
	}
	decide(t, nodes[0], c)
	return nodes
}

func decide(t testing.TB, db *DB, c *cloud.Changes) {
	t.Helper()
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

func feedEvent(s cloud.ShipmentID, id string) cloud.TimelineEvent {
	at := otep.Time{Time: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	return cloud.TimelineEvent{ShipmentID: s, BusinessID: cloud.BusinessID((int(s)-1)%2 + 1), Event: otep.Event{EventID: id, Version: otep.Version, OccurredAt: at, RecordedAt: at, StatusCode: "in_transit", Phase: "transit"}}
}

// heldWrite writes changes in a transaction that goes on for a while after it has written.
func heldWrite(ctx context.Context, db *DB, c *cloud.Changes, hold time.Duration) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		w := db.writer(0)
		if err := w.timelines(c); err != nil {
			return nil, err
		}
		if err := s.apply(ctx, w.ops); err != nil {
			return nil, err
		}
		time.Sleep(hold)
		return c, nil
	})
}

// readFeed reads what is behind a position once all of it can be read: transactions of other
// tests, in other schemas and databases of the server, hold it back.
func readFeed(t *testing.T, db *DB, b cloud.BusinessID, at cloud.FeedPosition) cloud.FeedPage {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		p, err := db.FeedPage(t.Context(), b, at, 1000)
		require.NoError(t, err)
		if !p.Pending {
			return p
		}
		require.True(t, time.Now().Before(until), "changes are held back")
	}
}

// What one reader follows while 64 writers on all nodes add events, repeat them and take them
// back, some of them in transactions that end late, is each change once: no gap, no repeat, and
// never one before another that was read already. A change that was refused, or changed
// nothing, is not among them.
func TestTheFeedIsComplete(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			const writers, parcels = 64, 16
			nodes := feedNodes(t, engine, parcels)
			seed := rand.Uint64()
			t.Log("seed", seed)
			var mu sync.Mutex
			want := map[string]int{} // changes of business 1
			note := func(c *cloud.Changes) {
				mu.Lock()
				defer mu.Unlock()
				for _, e := range c.Events {
					if e.BusinessID == 1 {
						want[fmt.Sprint(e.ShipmentID, " event.recorded ", e.Event.EventID)] = 1
					}
				}
				for _, e := range c.Withdrawn {
					if e.ShipmentID%2 == 1 {
						want[fmt.Sprint(e.ShipmentID, " event.withdrawn ", e.EventID)] = 1
					}
				}
			}
			until := time.Now().Add(3 * time.Second)
			var all sync.WaitGroup
			for i := range writers {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				all.Go(func() {
					for n := 0; time.Now().Before(until); n++ {
						s := cloud.ShipmentID(r.IntN(parcels) + 1)
						c := &cloud.Changes{}
						for k := range 1 + r.IntN(3) {
							c.Events = append(c.Events, feedEvent(s, fmt.Sprintf("e-%d-%d-%d", i, n, k)))
						}
						if r.IntN(3) == 0 { // that several writers add
							c.Events = append(c.Events, feedEvent(s, fmt.Sprint("shared-", r.IntN(40))))
						}
						if r.IntN(3) == 0 {
							c.Withdrawn = []cloud.EventRef{{ShipmentID: s, EventID: c.Events[0].Event.EventID, At: time.Now()}}
						}
						var err error
						switch db := nodes[i%len(nodes)]; {
						case i%8 == 0:
							hold := time.Duration(r.IntN(100)) * time.Millisecond
							if engine == "sqlite" { // one writes at a time
								hold /= 50
							}
							err = heldWrite(t.Context(), db, c, hold)
						case r.IntN(10) == 0: // it has written, and fails
							_ = db.write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
								w := db.writer(0)
								_ = w.timelines(&cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, fmt.Sprintf("lost-%d-%d", i, n))}}})
								_ = s.apply(ctx, w.ops)
								return nil, context.Canceled
							})
							continue
						default:
							err = db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil })
						}
						if err != nil {
							t.Error(err)
							return
						}
						note(c)
						time.Sleep(time.Duration(5+r.IntN(40)) * time.Millisecond) // the reader has to keep up: what it reads late is never in its way
					}
				})
			}
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			got, at, order := map[string]int{}, cloud.FeedPosition{}, 0
			reader := rand.New(rand.NewPCG(seed, writers))
			for over, empty := false, 0; !over || empty < 3; {
				select {
				case <-done:
					over = true
				default:
				}
				p, err := nodes[len(nodes)-1].FeedPage(t.Context(), 1, at, 1+reader.IntN(400))
				require.NoError(t, err)
				for _, x := range p.Changes {
					require.Positive(t, x.Position.Compare(at), "the order goes back")
					at = x.Position
					require.EqualValues(t, 1, x.Shipment.BusinessID)
					require.NotNil(t, x.Event)
					key := fmt.Sprint(x.Shipment.ID, " ", x.Kind, " ", x.Event.EventID)
					got[key]++
					if x.Kind == cloud.EventWithdrawn {
						require.Equal(t, 1, got[fmt.Sprint(x.Shipment.ID, " event.recorded ", x.Event.EventID)], "withdrawn before it was recorded")
					}
					order++
				}
				if empty++; !p.End || p.Pending || len(p.Changes) > 0 {
					empty = 0
				}
				time.Sleep(time.Millisecond)
			}
			t.Log(order, "changes")
			require.Greater(t, order, 300)
			missed, extra := 0, 0
			for key := range want {
				if got[key] == 0 {
					missed++
				}
			}
			for key, n := range got {
				if n != 1 || want[key] == 0 {
					extra++
				}
			}
			require.Zero(t, missed, "changes were missed")
			require.Zero(t, extra, "changes came twice, or never were")
		})
	}
}

// Changes of a database that was recovered to an earlier moment come behind all that were read
// before, though its transactions and rows count from lower numbers again.
func TestTheFeedGoesOnAfterARecovery(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := feedNodes(t, engine, 1)[0]
			decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, "before")}}})
			before := readFeed(t, db, 1, cloud.FeedPosition{})
			require.Len(t, before.Changes, 1)
			at := before.Changes[0].Position
			at.N, at.Transaction = at.N+1000, at.Transaction+1_000_000 // a reader was further on
			require.NoError(t, db.NoteRecovery(t.Context(), time.Now()))
			decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, "after")}}})
			p := readFeed(t, db, 1, at)
			require.Len(t, p.Changes, 1)
			require.Equal(t, "after", p.Changes[0].Event.EventID)
			p = readFeed(t, db, 1, cloud.FeedPosition{})
			require.Len(t, p.Changes, 2, "what was before is read, whatever its transaction")
		})
	}
}

// A database that a dump was loaded into has the changes of its time, and what comes then is
// behind all that was read since.
func TestADumpHasTheFeed(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := feedNodes(t, engine, 1)[0]
			decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, "kept")}}})
			var file bytes.Buffer
			d, err := db.Dump(t.Context(), t.TempDir(), &file)
			require.NoError(t, err)
			for n := range 5 {
				decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, fmt.Sprint("lost", n))}}})
			}
			read := readFeed(t, db, 1, cloud.FeedPosition{}).Changes
			require.Len(t, read, 6)
			cfg := Config{Dir: t.TempDir(), Box: testBox(t)}
			if engine == "postgres" {
				cfg.URL = freshSchema(t)
			}
			require.NoError(t, LoadDump(t.Context(), cfg, d, time.Now(), &file))
			loaded := openTest(t, cfg)
			decide(t, loaded, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, "new")}}})
			for at, want := range map[cloud.FeedPosition][]string{{}: {"kept", "new"}, read[0].Position: {"new"}, read[5].Position: {"new"}} {
				var ids []string
				for _, x := range readFeed(t, loaded, 1, at).Changes {
					ids = append(ids, x.Event.EventID)
				}
				require.Equal(t, want, ids)
			}
		})
	}
}

// A transaction that has written and goes on holds back what is committed after it, and the
// reader knows.
func TestAnOpenTransactionHoldsTheFeedBack(t *testing.T) {
	t.Parallel()
	nodes := feedNodes(t, "postgres", 2)
	written, release := make(chan struct{}), make(chan struct{})
	ended, end := make(chan error, 1), sync.OnceFunc(func() { close(release) })
	defer end()
	go func() {
		ended <- nodes[0].write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			w := nodes[0].writer(0)
			_ = w.timelines(&cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(2, "slow"), feedEvent(1, "slow")}}})
			err := s.apply(ctx, w.ops)
			close(written)
			<-release
			return nil, err
		})
	}()
	<-written
	decide(t, nodes[1], &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(1, "quick")}}})
	p, err := nodes[1].FeedPage(t.Context(), 1, cloud.FeedPosition{}, 10)
	require.NoError(t, err)
	require.Empty(t, p.Changes)
	require.True(t, p.Pending)
	last, err := nodes[1].FeedEnd(t.Context(), 1)
	require.NoError(t, err)
	require.Zero(t, last)
	end()
	require.NoError(t, <-ended)
	p = readFeed(t, nodes[1], 1, cloud.FeedPosition{})
	var ids []string
	for _, x := range p.Changes {
		ids = append(ids, x.Event.EventID)
	}
	require.Equal(t, []string{"slow", "quick"}, ids)
	last, err = nodes[0].FeedEnd(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, p.Changes[1].Position, last)
}

// What is older than its life goes, but for the newest of each business, and the numbers of
// rows go on above it.
func TestPruneFeed(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := feedNodes(t, engine, 2)[0]
			for n := range 20 {
				decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(cloud.ShipmentID(n%2+1), fmt.Sprint("e", n))}}})
			}
			read := func() (ids []string, last cloud.FeedPosition) {
				for b := range cloud.BusinessID(2) {
					for _, x := range readFeed(t, db, b+1, cloud.FeedPosition{}).Changes {
						ids, last = append(ids, x.Event.EventID), x.Position
					}
				}
				return ids, last
			}
			prune := func(before time.Time) {
				for last, more := int64(0), true; more; {
					var err error
					last, more, err = db.PruneFeed(t.Context(), last, before, 3)
					require.NoError(t, err)
				}
			}
			prune(time.Now().Add(-time.Hour))
			ids, _ := read()
			require.Len(t, ids, 20)
			prune(time.Now().Add(time.Hour))
			ids, last := read()
			require.Equal(t, []string{"e18", "e19"}, slices.Sorted(slices.Values(ids)))
			decide(t, db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{feedEvent(2, "new")}}})
			p := readFeed(t, db, 2, last)
			require.Len(t, p.Changes, 1)
			require.Equal(t, "new", p.Changes[0].Event.EventID)
		})
	}
}
