package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// With a million orders nearly all of which are done, the few that are not are
// found by an index of their own.
func TestConcernsAreReadByTheirIndexes(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), Config{Dir: t.TempDir(), Instance: "test", Box: testBox(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	q := cloud.ConcernQuery{BusinessID: 1, Stopped: cloud.StoppedStatuses, From: time.Now(), To: time.Now(), DueFrom: "2026-11-01", DueTo: "2026-11-02", UnassignedOn: "2026-11-03"}
	list := concernsOf(q)
	require.Len(t, list, 3)
	for i, c := range list {
		c.page.Limit = 20
		var plan []string
		require.NoError(t, db.engine.read(t.Context(), func(ctx context.Context, r querier) error {
			rows, err := r.query(ctx, `EXPLAIN QUERY PLAN `+c.rows().sql, c.rows().args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id, parent, unused int64
				var detail string
				require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
				plan = append(plan, detail)
			}
			return rows.Err()
		}))
		text := strings.Join(plan, "; ")
		require.Contains(t, text, "SEARCH orders USING INDEX "+[]string{"orders_stopped", "orders_open", "orders_open"}[i], text)
		require.NotContains(t, text, "TEMP B-TREE", "the index has the order already")
	}
}

// Pages of the delivery log, and the counting of what there is, go by indexes of
// their own on either database.
func TestTheDeliveryLogIsReadByItsIndexes(t *testing.T) {
	t.Parallel()
	cases := map[string]cloud.AccountLog{
		"outbox_account":          {From: time.Now(), To: time.Now()},
		"outbox_account_event":    {Event: "order.created", From: time.Now()},
		"outbox_account_customer": {CustomerID: 3},
		"outbox_receiver":         {EndpointID: 5, From: time.Now()},
		"outbox_unsent":           {State: cloud.OutboxFailed},
		"outbox_hot":              {State: cloud.OutboxPending},
		"outbox_reference":        {ReferenceID: "77"},
	}
	t.Run("SQLite", func(t *testing.T) {
		db := openTest(t, Config{Dir: t.TempDir()})
		c := <-db.engine.(*lite).readers
		defer func() { db.engine.(*lite).readers <- c }()
		for index, f := range cases {
			f.BusinessID = 42
			f.Limit = 20
			l, later := accountLog(f), accountLog(f)
			later.page.After = &cloud.Mark{Key: int64(9), ID: int64(9)}
			for _, s := range []statement{l.count(), l.rows(), later.rows()} {
				r, err := c.query(t.Context(), "EXPLAIN QUERY PLAN "+s.sql, s.args...)
				require.NoError(t, err)
				var plan []string
				for r.Next() {
					var id, parent, unused int64
					var detail string
					require.NoError(t, r.Scan(&id, &parent, &unused, &detail))
					plan = append(plan, detail)
				}
				r.Close()
				text := strings.Join(plan, "; ")
				require.Regexp(t, "(SEARCH|SCAN) o USING (COVERING )?INDEX "+index+"\\b", text)
				if f.State == "" && f.ReferenceID == "" { // what has failed, or is about one reference, is little enough to be sorted
					require.NotContains(t, text, "TEMP B-TREE")
				}
			}
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := ring.Postgres(t)
		ctx := t.Context()
		admin, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		defer admin.Close(context.WithoutCancel(ctx))
		schema := "log_" + strings.ToLower(rand.Text())
		_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema)
		require.NoError(t, err)
		defer admin.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		db := openTest(t, Config{URL: url + "&search_path=" + schema + "&pool_max_conns=2"})
		pool := db.engine.(*postgres).pool
		_, err = pool.Exec(ctx, fmt.Sprintf(sqlManyDeliveries, 20_000))
		require.NoError(t, err)
		_, err = pool.Exec(ctx, `INSERT INTO outbox_event SELECT event_id, event, 42, 0, 'account', 'order', reference_id, created_at, created_at, FALSE, '', 0 FROM outbox`)
		require.NoError(t, err)
		_, err = pool.Exec(ctx, "ANALYZE outbox, outbox_event")
		require.NoError(t, err)
		for index, f := range cases {
			f.BusinessID = 42
			if !f.From.IsZero() {
				f.From, f.To = time.UnixMilli(1_000_000), time.Time{}
			}
			f.Limit = 20
			s := accountLog(f).rows()
			rows, err := pool.Query(ctx, "EXPLAIN "+pgText(s.sql), s.args...)
			require.NoError(t, err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Regexp(t, "Index.* Scan.* (using|on) "+ofSlots(index)+" ", strings.Join(plan, "\n"))
		}
	})
}

// sqlManyDeliveries fills the log: nearly all have arrived, a few have failed,
// one in fifty is a customer's, and there are ten kinds of events.
const sqlManyDeliveries = `INSERT INTO outbox (id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts,
  max_attempts, next_at, reason, lease_owner, generation, created_at, delivered_at, replay_of, setting, customer_id)
SELECT n, 'E-' || n, n %% 7, 42, 0, CASE WHEN n %% 10 = 0 THEN 'order.created' ELSE 'order.' || (n %% 10) END, CAST(n %% 1000 AS TEXT), 'E-' || n,
  CASE WHEN n %% 200 = 0 THEN 'failed' ELSE 'success' END, 1, 6, NULL, '', '', 1, n * 1000, n * 1000, 0, '', CASE WHEN n %% 50 = 0 THEN 3 ELSE 0 END
FROM (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < %d) SELECT n FROM c) AS numbers`
