package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	_ "modernc.org/sqlite"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/protocol/wire"
)

// manyOrders is how many there are when orders are measured; -short has fewer.
const (
	manyOrders = 1_000_000
	fewOrders  = 20_000
)

// desk is a cloud with many orders, reached over HTTP, and the same database
// beside it.
type desk struct {
	b        *testing.B
	db       *sql.DB
	postgres bool
	url      string
	token    string
	broker   int64
	business int64
	client   fasthttp.Client
	next     int64 // id of the next row that is written beside the cloud
	server   *server.Server
}

func newDesk(b *testing.B, database string) *desk {
	dir := b.TempDir()
	s, err := server.New(context.Background(), server.Config{Dir: dir, Database: database, Node: "bench", BaseURL: "https://track.example",
		Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Batch: -1}})
	require.NoError(b, err)
	box, err := s.Sandbox(context.Background(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}})
	require.NoError(b, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx, server.Listeners{HTTP: ln}) })
	b.Cleanup(func() { stop(); wg.Wait() })
	d := &desk{b: b, postgres: database != "", url: "http://" + ln.Addr().String(), token: box.Admin.Token, next: 5_000_000, server: s}
	driver, dsn := "sqlite", "file:"+filepath.Join(dir, "postern.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(20000)&_pragma=cache_size(-65536)"
	if d.postgres {
		driver, dsn = "pgx", strings.Replace(database, "pool_max_conns=6&", "", 1) // a setting of the cloud's pool
	}
	d.db, err = sql.Open(driver, dsn)
	require.NoError(b, err)
	d.db.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = d.db.Close() })
	d.business, d.broker = d.number("SELECT MIN(id) FROM business"), d.number("SELECT MIN(id) FROM account WHERE type = 'broker'")
	return d
}

func (d *desk) number(query string, args ...any) (n int64) {
	d.b.Helper()
	require.NoError(d.b, d.db.QueryRow(query, args...).Scan(&n))
	return n
}

func (d *desk) exec(query string, args ...any) {
	d.b.Helper()
	_, err := d.db.Exec(query, args...)
	require.NoError(d.b, err, "%.200s", query)
}

// call is one call over HTTP, which must succeed.
func (d *desk) call(method, path, body string) []byte { return d.as(d.token, method, path, body) }

// as is call by another account.
func (d *desk) as(token, method, path, body string) []byte {
	var q fasthttp.Request
	var a fasthttp.Response
	q.Header.SetMethod(method)
	q.SetRequestURI(d.url + path)
	q.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		q.Header.SetContentType("application/json")
		q.SetBodyString(body)
	}
	require.NoError(d.b, d.client.Do(&q, &a))
	require.Less(d.b, a.StatusCode(), 300, "%s %s: %s", method, path, a.Body())
	return bytes.Clone(a.Body())
}

const newOrder = `{"type":"D","recipient":{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},
"packages":[{"weight":2.5,"description":"Books"}],"order_ref":%q}`

// order makes an order over HTTP and gives its id.
func (d *desk) order(ref string) int64 {
	var made struct {
		ID int64 `json:"order_id"`
	}
	require.NoError(d.b, json.Unmarshal(d.call("POST", "/api/v1/client/orderCreate", fmt.Sprintf(newOrder, ref)), &made))
	return made.ID
}

// Names of recipients, twelve letters each.
const (
	first = "ada         bruno       chloe       dmitri      elena       farid       grace       hiroshi     ines        jonas       "
	last  = "moreau      okafor      lindqvist   tanaka      fernandez   kowalski    haddad      oconnor     schneider   bianchi     petrov      nguyen      andersson   "
)

// fill copies one order a million times, with numbers, references, names and
// telephone numbers of their own, in the database itself.
func (d *desk) fill(n int) {
	id := d.order("TEMPLATE")
	var body string
	require.NoError(d.b, d.db.QueryRow("SELECT body FROM orders WHERE id = $1", id).Scan(&body))
	var o map[string]any
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	require.NoError(d.b, dec.Decode(&o))
	number := o["Number"].(string)
	body = strings.NewReplacer(fmt.Sprintf(`"ID":%d,`, id), `"ID":@I,`, number, "@N", "TEMPLATE", "R-@I", "Ada Moreau", "@W").Replace(body)
	series, bytes := "WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < $1)", "%09d"
	pad := func(e string) string { return "printf('" + bytes + "', " + e + ")" }
	if d.postgres {
		series = "WITH s(i) AS (SELECT generate_series(1, CAST($1 AS BIGINT)))"
		pad = func(e string) string { return "lpad(CAST(" + e + " AS TEXT), 9, '0')" }
		d.exec("DROP INDEX IF EXISTS order_search_grams")
		d.exec("SET synchronous_commit = off")
	}
	sr := "'SR' || " + pad("(500000000 + i)")
	name := fmt.Sprintf("(trim(substr('%s', CAST((i %% 10) * 12 + 1 AS INTEGER), 12)) || ' ' || trim(substr('%s', CAST((i %% 13) * 12 + 1 AS INTEGER), 12)))", first, last)
	text := func(e string) string { return "CAST(" + e + " AS TEXT)" }
	d.exec(series+` INSERT INTO orders (id, business_id, customer_id, number_key, ref, type, status_id, scheduled_date, priority, warehouse_id, route_id, driver_id, broker_id, created_at, updated_at, body)
SELECT 1000000 + i, $2, 0, `+sr+`, 'R-' || `+text("(1000000 + i)")+`, 'D', 1, '2026-12-01', 0, 0, 0, 0, 0, 1795000000000 + i, 1795000000000 + i,
  replace(replace(replace($3, '@I', `+text("(1000000 + i)")+`), '@N', `+sr+`), '@W', `+name+`) FROM s`, n, d.business, body)
	d.exec(series+` INSERT INTO shipment (id, business_id, number, number_key, external, provider_id, delivery_id, profile, current_code, last_at, created_at, order_id, customer_id)
SELECT 1000000 + i, $2, `+sr+`, `+sr+`, '', 0, 0, 'parcel', 'information_submitted', 1795000000000 + i, 1795000000000 + i, 1000000 + i, 0 FROM s`, n, d.business)
	for field, value := range map[int]string{0: "lower(" + sr + ")", 2: "'r-' || " + text("(1000000 + i)"), 3: name, 4: "'1416' || " + text("(5550000 + i % 9000)")} {
		d.exec(series+fmt.Sprintf(` INSERT INTO order_search (rowid, business_id, order_id, field, value) SELECT (1000000 + i) * 8 + %d, $2, 1000000 + i, %d, %s FROM s`, field, field, value), n, d.business)
	}
	if d.postgres {
		d.exec("CREATE INDEX order_search_grams ON order_search USING gin (value public.gin_trgm_ops)")
		d.exec("SET synchronous_commit = on")
	}
	d.exec("ANALYZE")
	require.Equal(d.b, int64(n+1), d.number("SELECT COUNT(*) FROM orders"))
}

// rows are the rows of one table that belong to one order, to be written again.
func (d *desk) rows(table, where string, args ...any) (columns []string, all [][]any) {
	r, err := d.db.Query("SELECT * FROM "+table+" WHERE "+where, args...)
	require.NoError(d.b, err)
	defer r.Close()
	columns, err = r.Columns()
	require.NoError(d.b, err)
	for r.Next() {
		values := make([]any, len(columns))
		to := make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(d.b, r.Scan(to...))
		all = append(all, values)
	}
	require.NoError(d.b, r.Err())
	require.NotEmpty(d.b, all, table)
	return columns, all
}

// again writes rows once more, those columns that must be new with a number or
// text that is.
func (d *desk) again(tx *sql.Tx, table string, columns []string, all [][]any, fresh ...string) {
	var names, marks []string
	for i, c := range columns {
		if c == "n" { // given by the database
			continue
		}
		names, marks = append(names, c), append(marks, fmt.Sprintf("$%d", i+1))
	}
	for i := range marks { // numbered as they are given
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	for _, values := range all {
		d.next++
		var args []any
		for i, v := range values {
			switch c := columns[i]; {
			case c == "n":
				continue
			case !contains(fresh, c):
			default:
				if _, ok := v.(int64); ok {
					v = d.next
				} else {
					v = fmt.Sprint("B", d.next)
				}
			}
			args = append(args, v)
		}
		_, err := tx.Exec("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", args...)
		require.NoError(d.b, err, table)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// perCall runs something so many times and gives the time of one.
func perCall(n int, fn func(i int)) time.Duration {
	fn(-1) // warm
	start := time.Now()
	for i := range n {
		fn(i)
	}
	return time.Since(start) / time.Duration(n)
}

func (d *desk) report(what string, full, bare time.Duration) {
	d.b.ReportMetric(float64(bare)/float64(full), what+"-ratio")
	d.b.ReportMetric(float64(full.Microseconds())/1000, what+"-ms")
}

// BenchmarkOrders measures what people and programs do with orders while there
// are a million of them: over HTTP, as ratios to the bare statements on the same
// database, which give or write the same rows.
func BenchmarkOrders(b *testing.B) {
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		b.Run(name, func(b *testing.B) {
			database := ""
			if name == "PostgreSQL" {
				database = storetest.MigratedPostgresURL(b)
			}
			d := newDesk(b, database)
			n := manyOrders
			if testing.Short() {
				n = fewOrders
			}
			start := time.Now()
			d.fill(n)
			b.Logf("%d orders in %s", n, time.Since(start).Round(time.Second))
			b.ResetTimer()
			for range b.N {
				d.reads(n)
				d.writes()
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func (d *desk) reads(n int) {
	all := func(query string, args ...any) {
		r, err := d.db.Query(query, args...)
		require.NoError(d.b, err)
		var body string
		for r.Next() {
			require.NoError(d.b, r.Scan(&body))
		}
		require.NoError(d.b, r.Close())
	}
	bare := perCall(10, func(int) {
		d.number("SELECT COUNT(*) FROM orders WHERE business_id = $1", d.business)
		all("SELECT body FROM orders WHERE business_id = $1 ORDER BY id DESC LIMIT 20", d.business)
	})
	d.report("list", perCall(10, func(int) { d.call("GET", "/api/v1/orders", "") }), bare)

	id := func(i int) int64 { return 1_000_001 + int64((i+1)*7919%n) }
	bare = perCall(500, func(i int) { all("SELECT body FROM orders WHERE business_id = $1 AND id = $2", d.business, id(i)) })
	d.report("detail", perCall(500, func(i int) { d.call("GET", fmt.Sprintf("/api/v1/orders/%d", id(i)), "") }), bare)

	// A whole number, and a name that every hundred and thirtieth order has.
	find := "SELECT order_id FROM order_search WHERE business_id = $1 AND order_search MATCH $2 LIMIT 200"
	quoted := func(s string) string { return `"` + s + `"` }
	if d.postgres {
		find = "SELECT order_id FROM order_search WHERE business_id = $1 AND value LIKE $2 LIMIT 200"
		quoted = func(s string) string { return "%" + s + "%" }
	}
	number := func(i int) string { return fmt.Sprintf("%09d", 500_000_001+(i+1)*7919%n) }
	bare = perCall(50, func(i int) { all(find, d.business, quoted(number(i))) })
	d.report("search-number", perCall(50, func(i int) { d.call("GET", "/api/v1/orders/search?query="+number(i), "") }), bare)
	bare = perCall(10, func(int) { all(find, d.business, quoted("chloe lindkvist")) })
	d.report("search-typo", perCall(10, func(int) { d.call("GET", "/api/v1/orders/search?query=chloe+lindkvist", "") }), bare)
	bare = perCall(10, func(int) { all(find, d.business, quoted("chloe lindqvist")) })
	d.report("search-name", perCall(10, func(int) { d.call("GET", "/api/v1/orders/search?query=chloe+lindqvist", "") }), bare)
}

func (d *desk) writes() {
	id := d.order(fmt.Sprint("BARE-", d.next))
	shipment := d.number("SELECT id FROM shipment WHERE order_id = $1", id)
	type part struct {
		table   string
		columns []string
		rows    [][]any
		fresh   []string
	}
	var parts []part
	add := func(table, where string, arg any, fresh ...string) {
		columns, rows := d.rows(table, where, arg)
		parts = append(parts, part{table, columns, rows, fresh})
	}
	add("orders", "id = $1", id, "id", "number_key", "ref")
	add("order_package", "order_id = $1", id, "id", "number_key")
	add("order_search", "order_id = $1", id, "rowid")
	if !d.postgres { // FTS tables do not show their row numbers
		last := &parts[len(parts)-1]
		last.columns = append([]string{"rowid"}, last.columns...)
		for i, r := range last.rows {
			last.rows[i] = append([]any{int64(0)}, r...)
		}
	}
	add("order_operation", "order_id = $1", id)
	add("shipment", "id = $1", shipment, "id", "number_key")
	add("timeline", "shipment_id = $1", shipment, "event_id")
	add("audit", "target = $1", fmt.Sprint("order:", id))
	commit := func(list ...part) {
		tx, err := d.db.Begin()
		require.NoError(d.b, err)
		for _, p := range list {
			d.again(tx, p.table, p.columns, p.rows, p.fresh...)
		}
		require.NoError(d.b, tx.Commit())
	}
	d.next += 500_000_000 // row numbers of the search are eight times those of orders
	bare := perCall(200, func(int) { commit(parts...) })
	base := d.next
	d.report("create", perCall(200, func(i int) { d.order(fmt.Sprint("N-", base, "-", i)) }), bare)

	// A hundred orders to a contractor: each is a transaction with its row
	// changed, an assignment, an operation and an audit line.
	const hundred = 100
	ids := make([]string, hundred)
	for i := range ids {
		ids[i] = fmt.Sprint(d.order(fmt.Sprint("A-", base, "-", i)))
	}
	start := time.Now()
	out := d.call("POST", "/api/v1/broker-order-assignments", fmt.Sprintf(`{"order_ids":[%s],"broker_id":%d}`, strings.Join(ids, ","), d.broker))
	full := time.Since(start)
	require.Contains(d.b, string(out), `"assigned":100`)
	columns, rows := d.rows("broker_assignment", "order_id = $1", json.Number(ids[0]))
	assignment := part{"broker_assignment", columns, rows, []string{"id", "order_id"}}
	start = time.Now()
	for _, id := range ids {
		tx, err := d.db.Begin()
		require.NoError(d.b, err)
		_, err = tx.Exec("UPDATE orders SET broker_id = $2, body = body WHERE id = $1", json.Number(id), d.broker)
		require.NoError(d.b, err)
		for _, p := range []part{assignment, parts[3], parts[6]} {
			d.again(tx, p.table, p.columns, p.rows[:1], p.fresh...)
		}
		require.NoError(d.b, tx.Commit())
	}
	d.report("assign-100", full, time.Since(start))
}
