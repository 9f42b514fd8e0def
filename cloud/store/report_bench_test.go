package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/report"
)

// BenchmarkReports measures reports of 31 days over a million parcels that were deposited
// and collected within them, a million orders of the year, 1,000 cabinets of 40 doors with
// 60 gaps each and 20 webhook endpoints (a fiftieth of each with -short). It reports
// processor time of this process and, of PostgreSQL, the time that a caller waits.
func BenchmarkReports(b *testing.B) {
	parcels, cabinets := 1_000_000, 1000
	if testing.Short() {
		parcels, cabinets = 20_000, 20
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	ann := cloud.Caller{Account: cloud.Account{ID: 1, BusinessID: 1, Type: cloud.ClientAdmin}}
	for name, open := range map[string]func(testing.TB) *DB{
		"SQLite":     func(b testing.TB) *DB { return openTest(b, Config{Dir: b.TempDir()}) },
		"PostgreSQL": openSchema,
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			require.NoError(b, db.Decide(b.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a", Timezone: "America/Toronto"}}}}, nil
			}))
			fillOrders(b, db, parcels)
			fillReports(b, db, parcels, cabinets, now)
			s := &report.Service{Store: db, Now: func() time.Time { return now }}
			month := report.RangeInput{From: "2026-10-29", To: "2026-11-28"}
			for _, c := range []struct {
				name string
				read func(context.Context) error
			}{
				{"deliveries", func(ctx context.Context) error {
					out, err := s.Deliveries(ctx, ann, report.DeliveriesInput{RangeInput: month})
					if out.Deposits < parcels/2 {
						return fmt.Errorf("%d deposits: %w", out.Deposits, err)
					}
					return err
				}},
				{"collection", func(ctx context.Context) error {
					_, err := s.Collection(ctx, ann, report.DeliveriesInput{RangeInput: month})
					return err
				}},
				{"occupancy", func(ctx context.Context) error {
					_, err := s.Occupancy(ctx, ann, report.CabinetsInput{})
					return err
				}},
				{"connections", func(ctx context.Context) error {
					_, err := s.Connections(ctx, ann, report.ConnectionsInput{RangeInput: month})
					return err
				}},
				{"webhooks", func(ctx context.Context) error { _, err := s.Webhooks(ctx, ann, month); return err }},
				{"orders", func(ctx context.Context) error { _, err := s.Orders(ctx, ann, month); return err }},
			} {
				b.Run(c.name, func(b *testing.B) {
					before := processorTime()
					for b.Loop() {
						require.NoError(b, c.read(b.Context()))
					}
					b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
		})
	}
}

// fillReports writes sums as the parcels of a month would have left them.
func fillReports(b *testing.B, db *DB, parcels, cabinets int, now time.Time) {
	numbers := func(n string) string {
		if _, ok := db.engine.(*postgres); ok {
			return "WITH s(i) AS (SELECT generate_series(0, CAST(" + n + " AS BIGINT) - 1))"
		}
		return "WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < " + n + " - 1)"
	}
	end := now.UnixMilli()
	for _, x := range []struct {
		sql  string
		args []any
	}{
		{numbers("$1") + ` INSERT INTO report_slot (` + slotColumns + `) SELECT 1, TRUE, slot, shard, COUNT(*), SUM(CASE WHEN class = 0 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 1 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 2 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 3 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 4 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 5 THEN 1 ELSE 0 END), SUM(CASE WHEN class = 6 THEN 1 ELSE 0 END), COUNT(*) * 7200000
FROM (SELECT CAST($2 AS @int) / 900000 - (i * 7919) % 2900 AS slot, (i / 3) % @shards AS shard, i % 7 AS class FROM s) AS found GROUP BY slot, shard`, []any{parcels, end}},
		{numbers("$1") + ` INSERT INTO device (id, business_id, code, name, type, address, latitude, longitude, timezone, protocol, disabled, livemode, owner_provider_id, config_version, code_list)
SELECT i + 1, 1, 'C' || CAST(i AS TEXT), 'Cabinet ' || CAST(i AS TEXT), 'parcel_locker', '', 0, 0, '', 'mqtt', FALSE, TRUE, 0, 0, 0 FROM s`, []any{cabinets}},
		{numbers("$1 * 40") + ` INSERT INTO compartment (grid_id, device_id, door, grid_code, shelf_code, pickup_number, label, col, lin, size, width, height, depth, pickup_enabled, door_status, state, block_reason, delivery_id, version, opening_id)
SELECT i + 1, i / 40 + 1, i % 40 + 1, 'A', '', 0, '', 1, 1, 'M', 1, 1, 1, TRUE, 'closed', CASE WHEN i % 3 = 0 THEN 'occupied' WHEN i % 17 = 0 THEN 'blocked' ELSE 'free' END, '', 0, 0, '' FROM s`, []any{cabinets}},
		{numbers("$1 * 60") + ` INSERT INTO connection_gap (business_id, ended_at, device_id, began_at)
SELECT 1, CAST($2 AS @int) - i * (2592000000 / ($1 * 60)), i % $1 + 1, CAST($2 AS @int) - i * (2592000000 / ($1 * 60)) - 600000 FROM s`, []any{cabinets, end}},
		{`INSERT INTO endpoint (id, business_id, provider_id, kind, url, sandbox_url, sandbox_enabled, events, enabled, status) SELECT * FROM (` + numbers("20") + ` SELECT i + 1, 1, 0, 'account', 'https://hooks.example.com', '', FALSE, '[]', TRUE, 'healthy' FROM s) AS e`, nil},
		{numbers("20 * 744") + ` INSERT INTO endpoint_hour (endpoint_id, hour, attempts, failures) SELECT i / 744 + 1, CAST($1 AS @int) / 3600000 - i % 744, 50, 2 FROM s`, []any{end}},
	} {
		var err error
		if e, ok := db.engine.(*postgres); ok {
			_, err = e.pool.Exec(b.Context(), pgTokens.Replace(x.sql), x.args...)
		} else {
			err = db.engine.write(b.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
				return nil, s.apply(ctx, []op{{sql: x.sql, args: x.args}})
			})
		}
		require.NoError(b, err, "%.90s", x.sql)
	}
	if e, ok := db.engine.(*postgres); ok {
		_, err := e.pool.Exec(b.Context(), "VACUUM ANALYZE report_slot, compartment, connection_gap, endpoint_hour, device, endpoint")
		require.NoError(b, err)
	}
}
