package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// column is one of a table as the database describes it.
type column struct{ name, kind string }

// columnsOf are the columns of every table, as the engine describes them.
func columnsOf(t *testing.T, db *DB) map[string][]column {
	t.Helper()
	out := map[string][]column{}
	require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, q querier) error {
		sql := `SELECT m.name, c.name, lower(c.type) FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`
		if t.Name() == "TestNothingOfARemovedBusinessRemains/postgres" {
			sql = `SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY ordinal_position`
		}
		_, err := list(ctx, q, sql, func(r rows, _ *struct{}) error {
			var table string
			var c column
			err := r.Scan(&table, &c.name, &c.kind)
			if !strings.HasPrefix(table, "sqlite_") && !strings.HasPrefix(table, "goose_") && !strings.HasPrefix(table, "order_search_") {
				out[table] = append(out[table], c)
			}
			return err
		})
		return err
	}))
	return out
}

// valueFor is a value of a column of business b.
func valueFor(table string, c column, b int64) any {
	text := fmt.Sprintf("x%d", b)
	switch {
	case table == "token" && c.name == "account_id", c.name == "found", c.name == "bytes" && table == "business_job":
		return b
	case table == "delivery" && c.name == "recipient": // JSON
		return fmt.Sprintf("%q", text)
	case strings.Contains(c.kind, "bytea"), strings.Contains(c.kind, "blob"):
		return []byte(text)
	case strings.Contains(c.kind, "bool"):
		return true
	case strings.Contains(c.kind, "text"), strings.Contains(c.kind, "char"), table == "order_search" && c.name == "value":
		return text
	case strings.Contains(c.kind, "real"), strings.Contains(c.kind, "double"):
		return 1.0
	}
	return b
}

// fillTenant writes one row of business b into every table of businesses, whose ids
// are all b.
func fillTenant(t *testing.T, db *DB, all map[string][]column, b int64) {
	t.Helper()
	require.NoError(t, db.engine.write(t.Context(), 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		var ops []op
		seen := map[string]bool{}
		for _, x := range tenantTables {
			if seen[x.name] {
				continue
			}
			seen[x.name] = true
			columns := all[x.name]
			if x.name == "order_search" && !slices.ContainsFunc(columns, func(c column) bool { return c.name == "rowid" }) {
				columns = append(slices.Clone(columns), column{"rowid", "integer"})
			}
			var names, marks []string
			var args []any
			for i, c := range columns {
				names, marks = append(names, `"`+c.name+`"`), append(marks, fmt.Sprintf("$%d", i+1))
				args = append(args, valueFor(x.name, c, b))
			}
			ops = append(ops, op{sql: `INSERT INTO ` + x.quoted() + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(marks, ", ") + `)`, args: args})
		}
		return nil, s.last(ctx, ops)
	}))
}

// heldBy counts rows of a table of which any value names business b.
func heldBy(t *testing.T, db *DB, table string, columns []column, b int64) (n int) {
	t.Helper()
	require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, q querier) error {
		names := make([]string, len(columns))
		for i, c := range columns {
			names[i] = `"` + c.name + `"`
		}
		_, err := list(ctx, q, `SELECT `+strings.Join(names, ", ")+` FROM "`+table+`"`, func(r rows, _ *struct{}) error {
			values, to := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				to[i] = &values[i]
			}
			if err := r.Scan(to...); err != nil {
				return err
			}
			for _, v := range values {
				if raw, ok := v.([]byte); ok {
					v = string(raw)
				}
				if fmt.Sprint(v) == fmt.Sprint(b) || fmt.Sprint(v) == fmt.Sprintf("x%d", b) {
					n++
					break
				}
			}
			return nil
		})
		return err
	}))
	return n
}

// Every table belongs to businesses or to the platform, and every column of what is
// exported is exported or left out by name: a new one has to be decided about.
// Nothing of a removed business remains, of another one everything does, whenever the
// removal is stopped; an export has every table and no secret.
func TestNothingOfARemovedBusinessRemains(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Dir: t.TempDir()}
			if engine == "postgres" {
				cfg = Config{URL: freshSchema(t)}
			}
			db := openTest(t, cfg)
			all := columnsOf(t, db)
			listed := map[string]tenantTable{}
			for _, x := range tenantTables {
				listed[x.name] = x
			}
			for table, columns := range all {
				x, tenant := listed[table]
				require.NotEqual(t, tenant, slices.Contains(platformTables, table), "%s: whose are its rows?", table)
				if x.columns == "" {
					continue
				}
				var names []string
				for _, c := range columns {
					names = append(names, c.name)
				}
				require.ElementsMatch(t, strings.Fields(x.columns+" "+x.left), names, table)
			}
			fillTenant(t, db, all, 4242)
			fillTenant(t, db, all, 4343)

			job := cloud.BusinessJob{ID: 1, BusinessID: 4242, Kind: cloud.ExportJob, CreatedAt: time.Now()}
			start := func(j cloud.BusinessJob) {
				require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
					return &cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessJobs: []cloud.BusinessJob{j}}}, nil
				}))
			}
			start(job)
			exported := map[string]string{}
			for !ExportOver(job) {
				table, lines, next, err := db.ExportStep(t.Context(), job)
				require.NoError(t, err)
				require.NoError(t, db.KeepStep(t.Context(), job, next))
				require.ErrorIs(t, db.KeepStep(t.Context(), job, next), cloud.ErrStale, "another node did the step")
				for _, l := range lines {
					require.NotContains(t, string(l), "4343")
					exported[table] += string(l)
				}
				job = next
			}
			for _, x := range tenantTables {
				if x.columns != "" {
					require.NotEmpty(t, exported[x.name], x.name)
				}
				for _, secret := range []string{"password_hash", "secret", "sealed", "_hash", "code_challenge"} {
					require.NotContains(t, exported[x.name], `"`+secret, x.name)
				}
			}

			job = cloud.BusinessJob{ID: 2, BusinessID: 4242, Kind: cloud.RemovalJob, RequestedBy: 7, CreatedAt: time.Now()}
			start(job)
			end := func(j cloud.BusinessJob) (cloud.BusinessJob, []cloud.Audit) {
				j.FinishedAt = time.Now()
				return j, []cloud.Audit{{At: j.FinishedAt, Actor: "account:7", Action: "business_removed", Target: "business:1", Detail: "{}"}}
			}
			steps := 0
			for job.FinishedAt.IsZero() {
				if steps++; steps%15 == 0 { // the process ended: the row says where it stands
					open, err := db.OpenBusinessJobs(t.Context())
					require.NoError(t, err)
					open = slices.DeleteFunc(open, func(j cloud.BusinessJob) bool { return j.Kind != cloud.RemovalJob })
					require.Len(t, open, 1)
					job = open[0]
				}
				if steps == 20 { // something was written meanwhile
					require.NoError(t, db.exec(t.Context(), `INSERT INTO chat_read (business_id, order_id, account_id, up_to, at) VALUES (4242, 4242, 4242, 5, 5)`))
				}
				next, err := db.RemoveStep(t.Context(), job, func(cloud.View) (bool, error) { return true, nil }, end)
				require.NoError(t, err)
				if steps%8 == 0 {
					_, err = db.RemoveStep(t.Context(), job, func(cloud.View) (bool, error) { return true, nil }, end)
					require.ErrorIs(t, err, cloud.ErrStale, "another node did the step")
				}
				job = next
				require.Less(t, steps, 500)
			}
			for table, columns := range all {
				if _, tenant := listed[table]; !tenant {
					continue
				}
				require.Zero(t, heldBy(t, db, table, columns, 4242), "%s still has rows", table)
				require.Equal(t, 1, heldBy(t, db, table, columns, 4343), "%s of the other business", table)
			}
			require.GreaterOrEqual(t, job.Rows, int64(len(listed)))
			lines, err := db.ListAudits(t.Context(), 0, 0, 10)
			require.NoError(t, err)
			require.Equal(t, "business_removed", lines[0].Action)
		})
	}
}

// freshSchema is the address of an empty schema.
func freshSchema(t *testing.T) string {
	t.Helper()
	url := ring.Postgres(t)
	ctx := context.WithoutCancel(t.Context())
	admin, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	schema := "tenant_" + strings.ToLower(rand.Text())
	_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = admin.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
		_ = admin.Close(ctx)
	})
	return url + "&search_path=" + schema + "&pool_max_conns=3"
}
