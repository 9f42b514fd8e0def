package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/protocol/otep"
)

// Two databases get the same histories, one of them with checkpoints after every few events and a
// restart now and then: each answer, each shipment and each timeline is the same.
func TestCheckpointsChangeNoAnswer(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "postgres" && os.Getenv("POSTERN_RING") != "check" {
				t.Skip("POSTERN_RING=check runs it")
			}
			cfg := func() Config {
				if engine == "postgres" {
					return Config{URL: freshSchema(t)}
				}
				return Config{Dir: t.TempDir()}
			}
			seed := rand.Uint64()
			t.Log("seed", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			few, all := newTwin(t, cfg(), window{8, 4}), newTwin(t, cfg(), window{1 << 30, 4})
			shipments := []cloud.Shipment{}
			const parcels = 24
			for i := range parcels {
				s := cloud.Shipment{ID: cloud.ShipmentID(i + 1), BusinessID: 1, Number: fmt.Sprintf("CP%d", i), ProviderID: 1, CreatedAt: time.Now().Truncate(time.Millisecond)}
				if i%2 == 1 {
					s.OrderID = cloud.OrderID(100 + i)
				}
				shipments = append(shipments, s)
			}
			for _, d := range []*twin{few, all} {
				decide(t, d.db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: shipments}})
				for i := 1; i < parcels; i += 2 {
					for k := range 1 + i%4 {
						d.exec(`INSERT INTO order_package (id, order_id, business_id, number_key, external_key) VALUES ($1, $2, $3, $4, $5)`, int64(i*10+k), int64(100+i), int64(1), fmt.Sprintf("CP%d-%d", i, k), "")
					}
				}
			}
			base := time.Now().Add(-100 * time.Hour).UTC().Truncate(time.Second)
			codes := []otep.Code{"in_transit", "arrival_scan", "out_for_delivery", "delivered", "delivery_failed", "picked_up", "received", "return_to_sender", "available_for_pickup", "information_submitted", "package_outbound"}
			made := 0
			for step := range 1600 {
				i := r.IntN(parcels)
				body := randomArrival(r, i, step/parcels, base, codes)
				one, other := few.ingest(body), all.ingest(body)
				require.JSONEq(t, other, one, "step %d: %s", step, body)
				a, b := few.state(shipments[i]), all.state(shipments[i])
				require.Equal(t, b, a, "step %d: %s", step, body)
				if r.IntN(300) == 0 {
					few.restart()
				}
				if step%100 == 0 {
					made += few.count()
				}
			}
			require.Positive(t, made, "there were checkpoints")
			require.Zero(t, all.count())
		})
	}
}

type twin struct {
	t   testing.TB
	cfg Config
	w   window
	db  *DB
}

func newTwin(t testing.TB, cfg Config, w window) *twin {
	cfg.Box = testBox(t)
	d := &twin{t: t, cfg: cfg, w: w}
	d.open()
	t.Cleanup(func() { d.db.Close() })
	return d
}

func (d *twin) open() {
	db, err := Open(d.t.Context(), d.cfg)
	require.NoError(d.t, err)
	db.window = d.w
	d.db = db
}

func (d *twin) restart() {
	require.NoError(d.t, d.db.Close())
	d.open()
}

func (d *twin) exec(sql string, args ...any) {
	require.NoError(d.t, d.db.write(d.t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.apply(ctx, []op{{sql: sql, args: args}})
	}))
}

func (d *twin) count() (n int) {
	found, err := readList(d.t.Context(), d.db.database, `SELECT shipment_id FROM timeline_checkpoint`, func(r rows, x *int64) error { return r.Scan(x) })
	require.NoError(d.t, err)
	return len(found)
}

func (d *twin) ingest(body string) string {
	c := cloud.Caller{Account: cloud.Account{ID: 7, Type: cloud.ProviderType}, Provider: cloud.Provider{ID: 1, BusinessID: 1, Code: "ups", SourceType: "carrier"}, Language: "en"}
	out, err := tracking.New(d.db).Ingest(d.t.Context(), c, tracking.IngestInput{Body: []byte(body)})
	text := ""
	if err != nil {
		text = err.Error()
	}
	b, err := json.Marshal(map[string]any{"out": out, "err": text})
	require.NoError(d.t, err)
	return string(b)
}

// state is a shipment as it is stored, and what its timeline shows.
func (d *twin) state(s cloud.Shipment) string {
	found, err := d.db.FindShipment(d.t.Context(), s.Number)
	require.NoError(d.t, err)
	out, err := d.db.FindTimeline(d.t.Context(), s.Number, nil)
	require.NoError(d.t, err)
	var b strings.Builder
	fmt.Fprint(&b, found.Current, found.LastAt.UnixMilli())
	for _, e := range out.Events {
		fmt.Fprint(&b, "\n", e.Event.EventID, e.Package, e.Event.Withdrawn, e.Event.StatusCode)
	}
	return b.String()
}

// randomArrival is what a provider sends about a parcel, or about a package of its order: mostly its next event.
func randomArrival(r *rand.Rand, parcel, n int, base time.Time, codes []otep.Code) string {
	number := fmt.Sprintf("CP%d", parcel)
	if parcel%2 == 1 && r.IntN(2) == 0 {
		number += fmt.Sprintf("-%d", r.IntN(1+parcel%4))
	}
	var events []string
	for k := range 1 + r.IntN(3) {
		at := base.Add(time.Duration(n*60+k) * time.Minute)
		switch r.IntN(12) {
		case 0: // late
			at = base.Add(time.Duration(r.IntN(n*60+1)) * time.Minute)
		case 1: // ahead
			at = time.Now().Add(time.Duration(10+r.IntN(20)) * time.Hour).Truncate(time.Minute)
		case 2: // a moment after another one
			at = at.Add(time.Duration(r.IntN(3)) * time.Microsecond)
		}
		more := ""
		switch r.IntN(10) {
		case 0:
			more = fmt.Sprintf(`,"corrects":"%s-%d"`, number, r.IntN(n*3+1))
		case 1:
			more = `,"time_type":"estimated"`
		}
		id := fmt.Sprintf("%s-%d", number, n*3+k)
		if r.IntN(10) == 0 {
			id = fmt.Sprintf("%s-%d", number, r.IntN(n*3+1))
		}
		events = append(events, fmt.Sprintf(`{"event_id":"%s","occurred_at":"%s","status_code":"%s","source":{"type":"carrier"}%s}`, id, at.Format(time.RFC3339Nano), codes[r.IntN(len(codes))], more))
	}
	taken := ""
	if r.IntN(12) == 0 {
		taken = fmt.Sprintf(`,"withdrawals":[{"event_id":"%s-%d","reason":"did_not_occur"}]`, number, r.IntN(n*3+1))
	}
	return fmt.Sprintf(`{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"%s"},"events":[%s]%s}`, number, strings.Join(events, ","), taken)
}

// An append to a timeline of 20,000 events reads no more of them than one to a timeline of a thousand did.
func TestAnAppendReadsABoundedPartOfATimeline(t *testing.T) {
	t.Parallel()
	d := newTwin(t, Config{Dir: t.TempDir()}, usualWindow)
	decide(t, d.db, &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 1, BusinessID: 1, Number: "LONG", ProviderID: 1}}}})
	base := time.Now().Add(-1000 * time.Hour).UTC().Truncate(time.Second)
	read, most := 0, 0
	for n := 0; n <= 20_000; {
		require.NoError(t, d.db.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
			found, err := v.RecentTimeline(1)
			require.NoError(t, err)
			require.Equal(t, n, found.Count)
			if read = len(found.Events); n <= 1000 {
				most = max(most, read)
			}
			c := &cloud.Changes{}
			for range 100 {
				e := feedEvent(1, fmt.Sprint("l-", n))
				e.Event.OccurredAt.Time = base.Add(time.Duration(n) * time.Minute)
				c.Events, n = append(c.Events, e), n+1
			}
			return c, nil
		}))
		require.LessOrEqual(t, read, usualWindow.most+200, "before event %d", n)
	}
	require.Equal(t, usualWindow.most+100, most)
	require.LessOrEqual(t, read, most+len(keptKindsMost), "the append of the 20,001st event")
}

// keptKindsMost are the kinds of events that a checkpoint of one code keeps at most.
var keptKindsMost = [12]struct{}{}
