package server

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// folded is a database with random histories of parcels and orders.
type folded struct {
	t      *testing.T
	db     *store.DB
	exec   func(sql string)
	rnd    *rand.Rand
	step   int
	events *tracking.Service
}

const foldedParcels = 6

func newFolded(t *testing.T, engine string) *folded {
	box, err := seal.New(make([]byte, seal.KeySize))
	require.NoError(t, err)
	f := &folded{t: t}
	cfg := store.Config{Box: box}
	if engine == "postgres" {
		url := ring.Postgres(t)
		ctx := context.WithoutCancel(t.Context())
		c, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		schema := fmt.Sprintf("refold_%d", rand.Uint64())
		_, err = c.Exec(ctx, "CREATE SCHEMA "+schema+"; SET search_path = "+schema)
		require.NoError(t, err)
		t.Cleanup(func() {
			_, _ = c.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
			_ = c.Close(ctx)
		})
		cfg.URL = url + "&search_path=" + schema + "&pool_max_conns=4"
		f.exec = func(text string) {
			_, err := c.Exec(ctx, text)
			require.NoError(t, err)
		}
	} else {
		cfg.Dir = t.TempDir()
		f.exec = func(text string) {
			c, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "postern.db")+"?_pragma=busy_timeout(5000)")
			require.NoError(t, err)
			_, err = c.Exec(text)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		}
	}
	db, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	f.db, f.events = db, tracking.New(db)
	seed := rand.Uint64()
	t.Log("seed", seed)
	f.rnd = rand.New(rand.NewPCG(seed, 4))
	var list []cloud.Shipment
	for i := range foldedParcels {
		x := cloud.Shipment{ID: cloud.ShipmentID(i + 1), BusinessID: 1, Number: fmt.Sprint("RF", i), ProviderID: 1, CreatedAt: time.Now().Truncate(time.Millisecond)}
		if i%2 == 1 {
			x.OrderID = cloud.OrderID(100 + i)
		}
		list = append(list, x)
	}
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: list}}, nil
	}))
	for i := 1; i < foldedParcels; i += 2 {
		for k := range 1 + i {
			f.exec(fmt.Sprintf(`INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES (%d, %d, 1, 'RF%d-%d', '')`, i*10+k, 100+i, i, k))
		}
	}
	return f
}

// write is one call of a provider: mostly the next events of a parcel, some late, ahead, taken back or corrected.
func (f *folded) write(events int) {
	r, i := f.rnd, f.rnd.IntN(foldedParcels)
	number := fmt.Sprint("RF", i)
	if i%2 == 1 && r.IntN(2) == 0 {
		number += fmt.Sprint("-", r.IntN(1+i))
	}
	codes := []otep.Code{"in_transit", "arrival_scan", "out_for_delivery", "delivered", "delivery_failed", "picked_up", "received", "return_to_sender"}
	base := time.Now().Add(-200 * time.Hour).UTC().Truncate(time.Second)
	var list []string
	for range events {
		f.step++
		at := base.Add(time.Duration(f.step) * 10 * time.Second)
		switch r.IntN(20) {
		case 0:
			at = base.Add(time.Duration(r.IntN(f.step)) * 10 * time.Second)
		case 1:
			at = time.Now().Add(time.Duration(10+r.IntN(20)) * time.Hour).Truncate(time.Minute)
		}
		more := []string{"", "", "", "", "", "", `,"time_type":"estimated"`, fmt.Sprintf(`,"corrects":"rf-%d"`, r.IntN(f.step))}[r.IntN(8)]
		list = append(list, fmt.Sprintf(`{"event_id":"rf-%d","occurred_at":%q,"status_code":%q,"source":{"type":"carrier"}%s}`, f.step, at.Format(time.RFC3339Nano), codes[r.IntN(len(codes))], more))
	}
	c := cloud.Caller{Account: cloud.Account{ID: 7, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 1, BusinessID: 1, Code: "ups", SourceType: "carrier"}, Language: "en"}
	_, _ = f.events.Ingest(f.t.Context(), c, tracking.IngestInput{Body: fmt.Appendf(nil, `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":%q},"events":[%s],"withdrawals":[{"event_id":"rf-%d","reason":"did_not_occur"}]}`,
		number, strings.Join(list, ","), r.IntN(f.step))})
}

func (f *folded) refold(in Refold) Refolded {
	f.t.Helper()
	found, err := RefoldTimelines(f.t.Context(), f.db, in)
	require.NoError(f.t, err)
	return found
}

// Nothing is found beside random histories, also while they go on; each kind of damage by hand is found, named
// and put right.
func TestRefoldFindsWhatIsDamagedAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			f := newFolded(t, engine)
			for range 150 {
				f.write(20)
			}
			require.Empty(t, f.refold(Refold{}).List)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 150 {
					f.write(1)
				}
			}()
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				require.Empty(t, f.refold(Refold{Write: true}).List, "while others write")
			}
			number := func(id int) string { return fmt.Sprint("RF", id-1) }
			for _, c := range []struct {
				damage     string
				id         int
				checkpoint bool
			}{
				{`UPDATE shipment SET current_code = 'cancelled' WHERE id = 3`, 3, false},
				{`UPDATE shipment SET last_at = last_at - 1 WHERE id = 2`, 2, false},
				{`UPDATE shipment SET current_code = '', last_at = NULL WHERE id = 4`, 4, false},
				{`UPDATE timeline_checkpoint SET events = events + 1 WHERE shipment_id = $`, 0, true},
				{`UPDATE timeline_checkpoint SET upto = upto - 3600000 WHERE shipment_id = $`, 0, true},
				{`DELETE FROM timeline_kept WHERE shipment_id = $ AND event_id IN (SELECT event_id FROM timeline_kept WHERE shipment_id = $ LIMIT 1)`, 0, true},
			} {
				if c.checkpoint {
					c.id = f.settled()
					c.damage = strings.ReplaceAll(c.damage, "$", fmt.Sprint(c.id))
				}
				f.exec(c.damage)
				found := f.refold(Refold{})
				require.Equal(t, foldedParcels, found.Parcels)
				require.True(t, found.Done)
				require.Equal(t, 1, found.Different, c.damage)
				require.Equal(t, number(c.id), found.List[0].Number)
				require.Equal(t, c.checkpoint, found.List[0].Checkpoint)
				require.Equal(t, !c.checkpoint, found.List[0].Status != nil)
				require.Equal(t, found.List, f.refold(Refold{}).List, "it changes nothing")
				require.Equal(t, 1, f.refold(Refold{Write: true}).Different)
				require.Empty(t, f.refold(Refold{}).List, c.damage)
			}
			first := f.refold(Refold{Most: 4})
			require.Equal(t, Refolded{Parcels: 4, List: []WrongFold{}, Last: 4}, first)
			require.Equal(t, Refolded{Parcels: 2, List: []WrongFold{}, Last: 6, Done: true}, f.refold(Refold{After: first.Last}))
		})
	}
}

// settled is a parcel with a checkpoint, which a decision makes that reads its timeline.
func (f *folded) settled() (id int) {
	for i := range foldedParcels {
		x := cloud.ShipmentID(i + 1)
		require.NoError(f.t, f.db.Decide(f.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			_, err := v.RecentTimeline(x)
			return &cloud.Changes{}, err
		}))
		require.NoError(f.t, f.db.Look(f.t.Context(), func(v cloud.View) error {
			_, err := v.Checkpoint(x)
			if err == nil {
				id = int(x)
			}
			return nil
		}))
	}
	require.NotZero(f.t, id, "a parcel has a checkpoint")
	return id
}
