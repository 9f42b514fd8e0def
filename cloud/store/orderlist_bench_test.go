package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// manyOrders is how many orders of one business the lists are measured with, and
// fewOrders with -short.
const (
	manyOrders = 400_000
	fewOrders  = 20_000
)

// BenchmarkOrderLists measures a page of orders by what people ask for most. It
// reports processor time of this process (cpu-ms), which on PostgreSQL leaves
// out that of the server: there the time that passes counts.
func BenchmarkOrderLists(b *testing.B) {
	n := manyOrders
	if testing.Short() {
		n = fewOrders
	}
	for name, open := range map[string]func(testing.TB) *DB{
		"SQLite":     func(b testing.TB) *DB { return openTest(b, Config{Dir: b.TempDir()}) },
		"PostgreSQL": openSchema,
	} {
		b.Run(name, func(b *testing.B) {
			db := open(b)
			fillOrders(b, db, n)
			for _, l := range orderListCases() {
				b.Run(l.name, func(b *testing.B) {
					before := processorTime()
					for b.Loop() {
						_, _, err := db.ListOrders(b.Context(), l.query)
						require.NoError(b, err)
					}
					b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				})
			}
		})
	}
}

type orderListCase struct {
	name  string
	query cloud.OrderQuery
}

func orderListCases() []orderListCase {
	year := time.UnixMilli(firstFilled).UTC()
	q := func(change func(*cloud.OrderQuery)) cloud.OrderQuery {
		q := cloud.OrderQuery{BusinessID: 1, Page: cloud.Page{Sort: "id", Down: true, Limit: 20}}
		change(&q)
		return q
	}
	return []orderListCase{
		{"all", q(func(q *cloud.OrderQuery) {})},
		{"status-common", q(func(q *cloud.OrderQuery) { q.Statuses = []cloud.OrderStatus{cloud.OrderDelivered} })},
		{"status-rare", q(func(q *cloud.OrderQuery) { q.Statuses = []cloud.OrderStatus{cloud.OrderNew, cloud.OrderHold} })},
		{"status-none", q(func(q *cloud.OrderQuery) { q.Statuses = []cloud.OrderStatus{cloud.OrderReady} })},
		{"status-mixed", q(func(q *cloud.OrderQuery) {
			q.Statuses = []cloud.OrderStatus{cloud.OrderNew, cloud.OrderDelivered, cloud.OrderCancelled}
		})},
		{"status-updated", q(func(q *cloud.OrderQuery) {
			q.Statuses, q.Sort = []cloud.OrderStatus{cloud.OrderNew, cloud.OrderHold}, "updated_at"
		})},
		{"created-month", q(func(q *cloud.OrderQuery) { q.CreatedFrom, q.CreatedTo = year.AddDate(0, 3, 0), year.AddDate(0, 4, 0) })},
		{"created-half-year", q(func(q *cloud.OrderQuery) { q.CreatedFrom, q.CreatedTo = year, year.AddDate(0, 6, 0) })},
		{"created-before", q(func(q *cloud.OrderQuery) { q.CreatedTo = year.AddDate(0, 6, 0) })},
		{"created-since", q(func(q *cloud.OrderQuery) { q.CreatedFrom = year.AddDate(0, 6, 0) })},
		{"created-day", q(func(q *cloud.OrderQuery) { q.CreatedFrom, q.CreatedTo = year.AddDate(0, 3, 0), year.AddDate(0, 3, 1) })},
		{"sort-updated", q(func(q *cloud.OrderQuery) { q.Sort = "updated_at" })},
		{"sort-created", q(func(q *cloud.OrderQuery) { q.Sort = "created_at" })},
		{"sort-priority", q(func(q *cloud.OrderQuery) { q.Sort = "priority" })},
		{"sort-scheduled", q(func(q *cloud.OrderQuery) { q.Sort = "scheduled_date" })},
		{"sort-status", q(func(q *cloud.OrderQuery) { q.Sort = "order_status_id" })},
		{"keyword-number", q(func(q *cloud.OrderQuery) { q.Keyword = "sr500123456" })},
		{"keyword-name", q(func(q *cloud.OrderQuery) { q.Keyword = "chloe lindqvist" })},
		{"keyword-common", q(func(q *cloud.OrderQuery) { q.Keyword = "lindqvist" })},
		{"keyword-everything", q(func(q *cloud.OrderQuery) { q.Keyword = "sr500" })},
		{"keyword-nothing", q(func(q *cloud.OrderQuery) { q.Keyword = "nowhere" })},
		{"keyword-status", q(func(q *cloud.OrderQuery) {
			q.Keyword, q.Statuses = "lindqvist", []cloud.OrderStatus{cloud.OrderNew}
		})},
		{"customer", q(func(q *cloud.OrderQuery) { q.CustomerID = 3 })},
		{"customer-status", q(func(q *cloud.OrderQuery) {
			q.CustomerID, q.Statuses = 3, []cloud.OrderStatus{cloud.OrderNew}
		})},
		{"type", q(func(q *cloud.OrderQuery) { q.Type = cloud.PointToPoint })},
		{"warehouse", q(func(q *cloud.OrderQuery) { q.WarehouseID = 7 })},
	}
}

// firstFilled is when the first of fillOrders' orders was made, in milliseconds;
// the last one was made a year later.
const firstFilled = 1_765_000_000_000

// openSchema opens a store in a schema of its own, dropped with the test.
func openSchema(b testing.TB) *DB {
	url := ring.Postgres(b)
	admin, err := pgx.Connect(b.Context(), url)
	require.NoError(b, err)
	schema := "lists_" + strings.ToLower(rand.Text())
	_, err = admin.Exec(b.Context(), "CREATE SCHEMA "+schema)
	require.NoError(b, err)
	b.Cleanup(func() {
		_, err := admin.Exec(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		require.NoError(b, err)
		require.NoError(b, admin.Close(context.Background()))
	})
	return openTest(b, Config{URL: url + "&search_path=" + schema + "&pool_max_conns=2"})
}

// fillOrders writes n orders of business 1 in the database itself: made over a
// year and changed later, four in five delivered, one in ten a customer's, each
// with a body of the size of a real one and four terms of the search.
func fillOrders(b testing.TB, db *DB, n int) {
	start := time.Now()
	body, err := json.Marshal(cloud.Order{BusinessID: 1, Number: "@N", Ref: "R-@I", Type: cloud.DeliveryOrder, Status: cloud.OrderDelivered, ScheduledDate: "2026-11-02",
		Recipient: &cloud.Address{Name: "@W", Phone: "+14165550123", Line1: "100 Queen St W", City: "Toronto", Province: "ON", PostalCode: "M5H 2N2", Country: "CA"},
		Packages:  []cloud.OrderPackage{{Ref: "P-1", Number: "@N-1", Description: "Books", Quantity: 1, Weight: 2.5, WeightUnit: "kg", Status: cloud.OrderPackageDelivered}},
		CreatedAt: time.UnixMilli(firstFilled).UTC(), UpdatedAt: time.UnixMilli(firstFilled).UTC(), DeliveredAt: time.UnixMilli(firstFilled).UTC()})
	require.NoError(b, err)
	_, onPostgres := db.engine.(*postgres)
	series, pad := "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $1)", "printf('%09d', 500000000 + i)"
	if onPostgres {
		series, pad = "WITH s(i) AS (SELECT generate_series(1, CAST($1 AS BIGINT)))", "CAST(500000000 + i AS TEXT)"
	}
	const first, last = "ada         bruno       chloe       dmitri      elena       farid       grace       hiroshi     ines        jonas       ",
		"moreau      okafor      lindqvist   tanaka      fernandez   kowalski    haddad      oconnor     schneider   bianchi     petrov      nguyen      andersson   "
	number := "'SR' || " + pad
	name := fmt.Sprintf("(trim(substr('%s', CAST((i %% 10) * 12 + 1 AS INTEGER), 12)) || ' ' || trim(substr('%s', CAST((i %% 13) * 12 + 1 AS INTEGER), 12)))", first, last)
	made := fmt.Sprintf("(%d + i * (31536000000 / $1))", int64(firstFilled))
	statements := []string{series + ` INSERT INTO orders (id, business_id, customer_id, number_key, ref, type, status_id, scheduled_date, priority, warehouse_id, route_id, driver_id, broker_id, created_at, updated_at, status_at, body)
SELECT i, 1, CASE WHEN i % 10 = 3 THEN 3 ELSE 0 END, ` + number + `, 'R-' || CAST(i AS TEXT), CASE WHEN i % 500 = 0 THEN 'P2P' ELSE 'D' END,
  CASE WHEN i % 5 > 0 THEN 41 WHEN i % 25 = 0 THEN 50 WHEN i % 200 = 5 THEN 3 WHEN i % 200 = 10 THEN 1 ELSE 47 END,
  '2026-' || substr(CAST(101 + i % 12 AS TEXT), 2) || '-' || substr(CAST(101 + i % 28 AS TEXT), 2), i % 10, i % 50, 0, 0, 0, ` + made + `, ` + made + ` + (i * 7919) % 604800000, ` + made + `,
  replace(replace(replace(CAST($2 AS TEXT), '@I', CAST(i AS TEXT)), '@N', ` + number + `), '@W', ` + name + `) FROM s`}
	for field, value := range map[int]string{0: "lower(" + number + ")", 2: "'r-' || CAST(i AS TEXT)", 3: name, 4: "'1416' || CAST(5550000 + i % 9000 AS TEXT)"} {
		statements = append(statements, series+fmt.Sprintf(` INSERT INTO order_search (rowid, business_id, order_id, field, value) SELECT i * 8 + %d, 1, i, %d, %s FROM s`, field, field, value))
	}
	analyze := "ANALYZE"
	if onPostgres { // as its autovacuum does behind that many rows
		analyze = "VACUUM ANALYZE orders, order_search"
	}
	statements = append(statements, analyze)
	for _, sql := range statements {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, n)
		}
		if strings.Contains(sql, "$2") {
			args = append(args, string(body))
		}
		if e, ok := db.engine.(*postgres); ok {
			_, err = e.pool.Exec(b.Context(), sql, args...)
		} else {
			err = db.engine.write(b.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
				return nil, s.apply(ctx, []op{{sql: sql, args: args}})
			})
		}
		require.NoError(b, err, "%.120s", sql)
	}
	b.Logf("%d orders in %s", n, time.Since(start).Round(time.Second))
}

// processorTime is what this process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
