package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/internal/ring"
)

// statements are the values of this package's sql constants, by name.
func statements(t *testing.T) map[string]string {
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		require.NoError(t, err)
		files = append(files, f)
	}
	// Only the constants matter, and they are made of each other: nothing is imported.
	conf := types.Config{Importer: noImporter{}, Error: func(error) {}}
	pkg, _ := conf.Check("store", fset, files, nil)
	out := map[string]string{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if ok && strings.HasPrefix(name, "sql") {
			require.Equal(t, constant.String, c.Val().Kind(), name)
			out[name] = constant.StringVal(c.Val())
		}
	}
	require.Greater(t, len(out), 90)
	return out
}

type noImporter struct{}

func (noImporter) Import(path string) (*types.Package, error) { return nil, errors.New(path) }

func testBox(t testing.TB) *seal.Box {
	b, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	require.NoError(t, err)
	return b
}

func openTest(t testing.TB, cfg Config) *DB {
	cfg.Box = testBox(t)
	db, err := Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestEveryStatementPreparesOnSQLite(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	for name, text := range statements(t) {
		s, err := c.conn.PrepareContext(t.Context(), liteTokens.Replace(text))
		require.NoError(t, err, name)
		require.NoError(t, s.Close())
	}
}

func TestEveryStatementPreparesOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url := ring.Postgres(t)
	ctx := t.Context()
	c, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(ctx))
	schema := "prepare_" + strings.ToLower(rand.Text())
	_, err = c.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	defer c.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	db := openTest(t, Config{URL: url + sep + "search_path=" + schema + "&pool_max_conns=2"})
	conn, err := db.engine.(*postgres).pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	for name, text := range statements(t) {
		_, err := conn.Conn().Prepare(ctx, name, pgText(text))
		require.NoError(t, err, name)
	}
}

// A server without pg_trgm finds what begins with the text.
func TestSearchWithoutTrigrams(t *testing.T) {
	t.Parallel()
	url := ring.Postgres(t)
	ctx := t.Context()
	c, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer c.Close(context.WithoutCancel(ctx))
	schema := "prefix_" + strings.ToLower(rand.Text())
	_, err = c.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	defer c.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	url += sep + "search_path=" + schema + "&pool_max_conns=2"
	var opened sync.WaitGroup // nodes that start at the same moment
	for i := range 4 {
		opened.Go(func() {
			db, err := Open(ctx, Config{URL: url, Instance: fmt.Sprint("n", i), Box: testBox(t)})
			if err != nil {
				t.Error(err)
				return
			}
			db.Close()
		})
	}
	opened.Wait()
	db := openTest(t, Config{URL: url})
	require.True(t, db.engine.(*postgres).trigrams, "the test server has pg_trgm")
	db.engine.(*postgres).trigrams = false
	o := cloud.Order{ID: 1, BusinessID: 1, Number: "SR000000017"}
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o},
			OrderTerms: []cloud.OrderTerms{{BusinessID: 1, OrderID: 1,
				Terms: [cloud.SearchFields]string{cloud.SearchName: "jane_smith"}}}}}, nil
	}))
	for text, want := range map[string]int{"jane": 1, "jane_s": 1, "ane": 0, "janexs": 0, "%ane": 0} {
		found, err := db.SearchOrders(ctx, cloud.OrderSearch{BusinessID: 1, Text: text, Fields: []cloud.SearchField{cloud.SearchName}, Limit: 5})
		require.NoError(t, err)
		require.Len(t, found, want, text)
	}
	found, err := db.SearchOrders(ctx, cloud.OrderSearch{BusinessID: 1, Near: [][]string{{"jan"}}, Fields: []cloud.SearchField{cloud.SearchName}, Limit: 5})
	require.NoError(t, err)
	require.Empty(t, found, "it knows nothing of likeness")
	conn, err := db.engine.(*postgres).pool.Acquire(ctx)
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(ctx, "SET enable_seqscan = off")
	require.NoError(t, err)
	rows, err := conn.Query(ctx, "EXPLAIN SELECT order_id FROM order_search WHERE business_id = 1 AND value LIKE 'jane%'")
	require.NoError(t, err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "order_search_prefix")
}

// TestNoStatementSortsOrScans asks SQLite how it would run every query. Those
// that may read a whole table or sort are named with the reason.
func TestNoStatementSortsOrScans(t *testing.T) {
	t.Parallel()
	allowed := map[string]string{
		"sqlDeliveredSlots":             "quarters of an hour of at most 31 days, out of the index alone",
		"sqlAccountFailing":             "a bounded count around a search",
		"sqlPartnersFailing":            "a bounded count around a search",
		"sqlWaiting":                    "sums the partial index of unfinished deliveries, for metrics",
		"sqlAddFeedEstimate":            "one row of its parameters",
		"sqlCountCollection":            "one row of its parameters",
		"sqlConnectionGaps":             "groups what it found by index",
		"sqlCountDeposit":               "one row of its parameters",
		"sqlHealthFailed":               "one row of its parameters",
		"sqlHealthSucceeded":            "one row of its parameters",
		"sqlEndSecrets":                 "walks all receivers, once in a minute",
		"sqlEndLevelSecrets":            "walks all levels of settings, once in a minute",
		"sqlEndpointStatus":             "counts all receivers, for metrics",
		"sqlEndpointWaiting":            "two searches around a row of its own",
		"sqlOpenReplays":                "walks the partial index of unfinished jobs",
		"sqlOverlaps":                   "counts secrets that overlap, for metrics",
		"sqlTrimAsides":                 "walks what one device has aside, which is bounded by it",
		"sqlDropTerms":                  "a virtual table is said to be scanned whatever it does; this is a range of its row numbers",
		"sqlCompartmentStates":          "counts the doors of one business",
		"sqlShipmentsByPackageExternal": "sorts the orders of one carrier's number, which are few",
		"sqlNewestByPackageExternal":    "sorts the orders of one carrier's number, which are few",
		"sqlTimelineByNumber":           "walks the newest events that its inner statement found by index",
		"sqlOpenJobs":                   "walks the partial index of unfinished jobs",
		"sqlWaitingJobs":                "walks the partial index of unfinished jobs over records and files",
		"sqlReleaseHot":                 "walks the partial index of unfinished deliveries, once at start",
		"sqlReleaseForgotten":           "walks the partial index of sends by hand without an outcome",
		"sqlReleaseInterrupted":         "walks the partial index of sends by hand without an outcome, once at start",
		"sqlReleaseAll":                 "PostgreSQL only, where leases have an index",
		"sqlOldPushTokens":              "sorts the addresses of one driver, which are few",
		"sqlReleaseJobs":                "walks the partial index of unfinished jobs, once at start",
		"sqlReleasePush":                "walks the partial index of waiting pushes, once at start",
		"sqlReleaseOwnPush":             "walks the partial index of waiting pushes, once at start",
		"sqlReleaseNotifications":       "walks the partial index of waiting mails, once at start",
		"sqlExpireNotifications":        "walks the partial index of what waits, each ten minutes",
		"sqlReleaseNodeNotifications":   "walks the partial index of waiting mails, once at a node's end",
		"sqlReleaseOwnNotifications":    "walks the partial index of waiting mails, once at start",
		"sqlCountFaults":                "walks the partial index of open device exceptions, for the metrics",
		"sqlQueueCommands":              "reads the first rows of a partial index, up to a bound",
		"sqlQueueMails":                 "reads the first rows of a partial index, up to a bound",
		"sqlQueueSMS":                   "reads the first rows of a partial index, up to a bound",
		"sqlQueuePushes":                "reads the first rows of a partial index, up to a bound",
		"sqlQueueResets":                "reads the first rows of a partial index, up to a bound",
		"sqlQueueJobs":                  "reads the first rows of a partial index, up to a bound",
		"sqlQueueReplays":               "reads the first rows of a partial index, up to a bound",
		"sqlQueueArchives":              "reads the first rows of a partial index, up to a bound",
		"sqlRequests":                   "walks the partial index of requests that were not looked at, a hundred at most",
		"sqlLastOperation":              "one look at the end of the table",
		"sqlSaveHealth":                 "counts what waits up to a bound",
		"sqlOpenBusinessJobs":           "walks the partial index of jobs that go on",
		"sqlNodes":                      "the processes of a deployment, which are few",
		"sqlTasks":                      "the background tasks of a deployment, which are few",
		"sqlFreeTasks":                  "the background tasks of a deployment, which are few",
		"sqlFreeNodeJobs":               "PostgreSQL only; walks the partial index of unfinished jobs",
		"sqlRenew":                      "PostgreSQL only, where leases have an index",
		"sqlRecovery":                   "the few recoveries of a deployment",
		"sqlEndRecovery":                "the few recoveries of a deployment",
		"sqlSkipIDs":                    "walks the few kinds of ids, once after a restore",
		"sqlOldestSchema":               "a table of one row",
		"sqlOldestShared":               "a table of one row",
		"sqlRaiseOldest":                "a table of one row",
		"sqlOlderNodes":                 "the processes of a deployment, which are few",
		"sqlExpireCommands":             "walks the partial index of open commands, once after a restore",
	}
	db := openTest(t, Config{Dir: t.TempDir()})
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	scan := regexp.MustCompile(`^SCAN `)
	for name, text := range statements(t) {
		r, err := c.conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+liteTokens.Replace(text), make([]any, maxParam(text))...)
		require.NoError(t, err, name)
		var plan []string
		for r.Next() {
			var id, parent, unused int
			var detail string
			require.NoError(t, r.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		require.NoError(t, r.Err())
		r.Close()
		if allowed[name] != "" {
			continue
		}
		for _, line := range plan {
			require.NotContains(t, line, "TEMP B-TREE", "%s: %v", name, plan)
			require.False(t, scan.MatchString(line), "%s: %v", name, plan)
		}
	}
}

// maxParam is the number of parameters of a statement.
func maxParam(text string) int {
	n := 0
	for _, m := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(text, -1) {
		i, _ := strconv.Atoi(m[1])
		n = max(n, i)
	}
	return n
}

func TestPragmasHoldOnEveryConnection(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	e := db.engine.(*lite)
	want := map[string]int64{"synchronous": 2, "busy_timeout": 5000, "foreign_keys": 1, "mmap_size": 4294967296,
		"cache_size": -16384, "wal_autocheckpoint": 16384, "journal_size_limit": 67108864}
	check := func(c *sql.Conn, queryOnly int64) {
		read := func(name string, dst any) {
			require.NoError(t, c.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(dst), name)
		}
		var mode string
		read("journal_mode", &mode)
		require.Equal(t, "wal", mode)
		for name, v := range want {
			var got int64
			read(name, &got)
			if name == "mmap_size" { // the library caps it at what it was built for
				require.GreaterOrEqual(t, got, int64(1)<<30, name)
				continue
			}
			require.Equal(t, v, got, name)
		}
		var got int64
		read("query_only", &got)
		require.Equal(t, queryOnly, got)
	}
	check(e.writer.conn, 0)
	for range liteReaders {
		c, err := e.reader(t.Context()) // stays out, so that the next is another
		require.NoError(t, err)
		defer func() { e.readers <- c }()
		check(c.conn, 1)
	}
}

// The driver and its C runtime are generated for each other.
func TestRuntimeMatchesDriver(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "modernc.org/sqlite").Output()
	require.NoError(t, err)
	theirs, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "go.mod"))
	require.NoError(t, err)
	ours, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	libc := regexp.MustCompile(`modernc\.org/libc (v\S+)`)
	require.Equal(t, string(libc.FindSubmatch(theirs)[1]), string(libc.FindSubmatch(ours)[1]))
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Dir: t.TempDir()})
	require.ErrorContains(t, err, "box")
	_, err = Open(t.Context(), Config{URL: filepath.Join(t.TempDir(), "x.db?mode=ro"), Box: testBox(t)})
	require.Error(t, err, "settings in the path would replace ours")
	_, err = Open(t.Context(), Config{URL: "postgres://u:hunter2@127.0.0.1:bad/x", Box: testBox(t)})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// What calls were answered may hold codes and secrets: none lies in the table.
func TestAnswersOfCallsAreSealed(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	o := &cloud.Once{ID: cloud.CallID{1}, At: time.Unix(1_800_000_000, 0).UTC(), Encode: func(v any) ([]byte, error) { return []byte(v.(string)), nil }}
	ctx := cloud.WithCall(t.Context(), &cloud.Call{Operation: "x", Once: o})
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}}, Answer: "pickup code 550618"}, nil
	}))
	raw, err := readOne(t.Context(), db.database, sqlCall, scanCall, o.ID[:], int64(0))
	require.NoError(t, err)
	require.NotEmpty(t, raw.Answer)
	require.NotContains(t, string(raw.Answer), "550618")
	a, err := db.FindCall(t.Context(), o.ID, o.At)
	require.NoError(t, err)
	require.Equal(t, "pickup code 550618", string(a.Answer))
}

// Arguments may hold secrets of partners, and results what no other account is to
// see: none lies in the table.
func TestContentOfApprovalsIsSealed(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	word := []byte(`{"webhook_sign_secret":"hunter2"}`)
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{ApprovalChanges: cloud.ApprovalChanges{Approvals: []cloud.Approval{{ID: "apr_1", BusinessID: 1, Arguments: word, Preview: word, Result: word, Error: word}}}}, nil
	}))
	sealed, err := readOne(t.Context(), db.database, `SELECT sealed FROM approval WHERE id = $1`, func(r rows, b *[]byte) error { return r.Scan(b) }, "apr_1")
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "hunter2")
	body, err := readOne(t.Context(), db.database, `SELECT body FROM approval WHERE id = $1`, func(r rows, s *string) error { return r.Scan(s) }, "apr_1")
	require.NoError(t, err)
	require.NotContains(t, body, "hunter2")
}

// A caller that leaves in the middle of a reading costs no caller after it: every
// connection is as free as before.
func TestReadersComeBackFree(t *testing.T) {
	e, err := openLite(t.Context(), filepath.Join(t.TempDir(), "s.db"), Config{}, slog.New(slog.DiscardHandler), func(*cloud.Changes) {}, func(time.Duration, int) {})
	require.NoError(t, err)
	defer e.close()
	one := func(ctx context.Context) error {
		return e.read(ctx, func(ctx context.Context, q querier) error {
			_, err := list(ctx, q, "SELECT 1", scanInt)
			return err
		})
	}
	var wg sync.WaitGroup
	for n := range 8 * liteReaders {
		wg.Go(func() {
			for i := range 500 { // most leave too early or too late
				ctx, leave := context.WithCancel(t.Context())
				go func() {
					for range (i + n) % 16 {
						runtime.Gosched()
					}
					leave()
				}()
				_ = one(ctx)
				leave()
			}
		})
	}
	wg.Wait()
	for range 4 * liteReaders {
		require.NoError(t, one(t.Context()))
	}
}

// A full disk is a database that takes no writes: what is asked of it is not lost, it is refused
// in a way that callers see, and reads go on. What an operation does wrong stays its own.
func TestAFullDiskIsADatabaseThatIsAway(t *testing.T) {
	e, err := openLite(t.Context(), filepath.Join(t.TempDir(), "s.db"), Config{}, slog.New(slog.DiscardHandler), func(*cloud.Changes) {}, func(time.Duration, int) {})
	require.NoError(t, err)
	defer e.close()
	write := func(sql string) error {
		return e.write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
			_, err := list(ctx, s, sql, scanInt)
			return nil, err
		})
	}
	require.NoError(t, write("PRAGMA max_page_count = 1"), "as many as it has, and no more")
	fill := `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO audit (business_id, at, actor, action, target, detail) SELECT i, 1, 'a', 'b', 'c', hex(randomblob(500)) FROM n RETURNING 1`
	err = write(fill)
	require.ErrorIs(t, err, cloud.ErrAway)
	e2, ours := cloud.Answered(err)
	require.True(t, ours)
	require.Equal(t, []any{cloud.Unavailable, "MODULE_UNAVAILABLE", 5}, []any{e2.Kind, e2.Code, e2.RetryAfter})
	require.NoError(t, e.read(t.Context(), func(ctx context.Context, q querier) error {
		_, err := list(ctx, q, "SELECT 1", scanInt)
		return err
	}))
	require.NoError(t, write("PRAGMA max_page_count = 1000000"))
	require.NoError(t, write(fill))

	for _, own := range []error{cloud.ErrNotFound, cloud.ErrExists, cloud.E(cloud.Conflict, "X"), context.DeadlineExceeded, &pgconn.PgError{Code: "23505"}, &pgconn.PgError{Code: "40001"}, &pgconn.PgError{Code: "42P01"}} {
		require.NotErrorIs(t, away(own), cloud.ErrAway)
	}
	for _, code := range []string{"57P01", "57P03", "53100", "53300", "25006"} {
		require.ErrorIs(t, away(fmt.Errorf("read: %w", &pgconn.PgError{Code: code})), cloud.ErrAway, code)
	}
	require.ErrorIs(t, away(&net.OpError{Op: "read", Err: io.EOF}), cloud.ErrAway)
}

// Whatever stands beside each other, merging keeps every value, in its order,
// under its own parameter, and leaves alone what is counted or is no plain row.
func TestMergeKeepsEveryRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := []string{"INSERT INTO a (x, y) VALUES ($1, $2)", sqlAddOutbox, sqlAddAttempt, "DELETE FROM a WHERE x = $1",
			"INSERT INTO a (x) SELECT $1 WHERE (true)", "INSERT INTO a (x) VALUES ($1) ON CONFLICT (x) DO NOTHING"}
		var ops []op
		var n int64
		for range rapid.IntRange(0, 6).Draw(t, "kinds") {
			o := op{sql: rapid.SampledFrom(texts).Draw(t, "text")}
			if rapid.IntRange(0, 3).Draw(t, "counted") == 0 {
				o.count = &n
			} else if rapid.IntRange(0, 3).Draw(t, "checked") == 0 {
				o.need = mustExist
			}
			for range rapid.IntRange(1, 70).Draw(t, "rows") {
				o.args = nil
				for range maxParam(o.sql) {
					o.args = append(o.args, len(ops)*100+len(o.args))
				}
				ops = append(ops, o)
			}
		}
		at := 0
		for _, m := range merge(ops) {
			of := ops[at]
			rows := len(m.args) / len(of.args)
			require.Equal(t, len(m.args), maxParam(m.sql))
			require.Equal(t, []any{of.need, of.count}, []any{m.need, m.count})
			if rows == 1 {
				require.Equal(t, of.sql, m.sql)
			}
			want := slices.Repeat([]string{fmt.Sprint(len(of.args))}, rows)
			var got []string
			for _, row := range strings.SplitAfter(m.sql, ")")[strings.Count(m.sql[:strings.Index(m.sql, "VALUES")+1], ")"):] {
				if k := strings.Count(row, "$"); k > 0 {
					got = append(got, fmt.Sprint(k))
				}
			}
			if rows > 1 {
				require.Equal(t, want, got, m.sql)
				require.True(t, of.need == anything && of.count == nil)
			}
			for _, o := range ops[at : at+rows] {
				require.Equal(t, of.sql, o.sql)
				require.Equal(t, o.args, m.args[:len(o.args)])
				m.args = m.args[len(o.args):]
			}
			at += rows
		}
		require.Equal(t, len(ops), at)
	})
}
