package store

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// Pages of a business's log go by an index each, in its order, on either
// database.
func TestTheLogOfABusinessIsReadByItsIndexes(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1_000_000)
	mark := cloud.OutboxMark{At: at, ID: 7}
	cases := []struct {
		f       cloud.BusinessLog
		indexes []string // of the statements, in their order
	}{
		{cloud.BusinessLog{}, []string{"outbox_account", "outbox_partner"}},
		{cloud.BusinessLog{From: at, To: at.Add(time.Hour)}, []string{"outbox_account", "outbox_partner"}},
		{cloud.BusinessLog{Before: mark}, []string{"outbox_account", "outbox_partner"}},
		{cloud.BusinessLog{State: cloud.OutboxSuccess}, []string{"outbox_account", "outbox_partner"}},
		{cloud.BusinessLog{Event: "order.created", From: at}, []string{"outbox_account_event", "outbox_partner_event"}},
		{cloud.BusinessLog{EndpointID: 3, Before: mark}, []string{"outbox_receiver"}},
		{cloud.BusinessLog{State: cloud.OutboxFailed, From: at}, []string{"outbox_unsent", "outbox_partner_unsent"}},
		{cloud.BusinessLog{State: cloud.OutboxRetrying, EndpointID: 3}, []string{"outbox_unsent", "outbox_partner_unsent"}},
		{cloud.BusinessLog{State: cloud.OutboxDead, EndpointID: 3}, []string{"outbox_partner_unsent"}},
		{cloud.BusinessLog{State: cloud.OutboxPending}, []string{"outbox_hot"}},
		{cloud.BusinessLog{State: cloud.OutboxPending, EndpointID: 3}, []string{"outbox_hot"}},
		{cloud.BusinessLog{ReferenceID: "17"}, []string{"outbox_reference"}},
	}
	t.Run("SQLite", func(t *testing.T) {
		db := openTest(t, Config{Dir: t.TempDir()})
		c := <-db.engine.(*lite).readers
		defer func() { db.engine.(*lite).readers <- c }()
		for _, x := range cases {
			x.f.BusinessID, x.f.Limit = 42, 50
			parts := businessLogSQL(x.f)
			require.Len(t, parts, len(x.indexes))
			for i, s := range parts {
				text := explained(t, c, s.sql, s.args)
				require.Regexp(t, "(SEARCH|SCAN) o USING INDEX "+x.indexes[i]+"( |;|$)", text)
				if x.f.ReferenceID == "" && (x.f.State == "" || x.f.State == cloud.OutboxSuccess) { // rows about one thing, and those that have not arrived, are few
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
		schema := "hooklog_" + strings.ToLower(rand.Text())
		_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema)
		require.NoError(t, err)
		defer admin.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		db := openTest(t, Config{URL: url + "&search_path=" + schema + "&pool_max_conns=2"})
		pool := db.engine.(*postgres).pool
		for _, sql := range []string{sqlManyOfABusiness,
			`INSERT INTO outbox_event SELECT event_id, event, business_id, provider_id, CASE WHEN provider_id = 0 THEN 'account' ELSE 'locker_provider' END, 'order', reference_id, created_at, created_at, FALSE, '', 0 FROM outbox`, "ANALYZE outbox", "ANALYZE outbox_event"} {
			_, err = pool.Exec(ctx, sql)
			require.NoError(t, err)
		}
		for _, x := range cases {
			x.f.BusinessID, x.f.Limit = 42, 50
			for i, s := range businessLogSQL(x.f) {
				rows, err := pool.Query(ctx, "EXPLAIN "+pgText(s.sql), s.args...)
				require.NoError(t, err)
				plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				require.Regexp(t, "Index.* Scan.* (using|on) "+ofSlots(x.indexes[i])+" ", strings.Join(plan, "\n"), "%+v", x.f)
			}
		}
	})
}

// What is delivering is found among what is not finished, and read by number.
func TestWhatIsDeliveringIsFoundAmongWhatIsNotFinished(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	account := accountLog(cloud.AccountLog{BusinessID: 42, State: cloud.OutboxDelivering, Page: cloud.Page{Limit: 20}})
	for _, s := range append(businessLogSQL(cloud.BusinessLog{BusinessID: 42, State: cloud.OutboxDelivering, Limit: 50}), account.rows()) {
		text := explained(t, c, s.sql, s.args)
		require.Contains(t, text, "SEARCH o USING INTEGER PRIMARY KEY")
		require.Contains(t, text, "USING INDEX outbox_hot")
		require.Contains(t, text, "INDEX outbox_interrupted")
	}
}

// What the sender asks of one receiver goes by the indexes of what is not
// finished, though there is one of all that a receiver was ever sent.
func TestTheSenderReadsWhatIsNotFinished(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{Dir: t.TempDir()})
	c := <-db.engine.(*lite).readers
	defer func() { db.engine.(*lite).readers <- c }()
	ask := func(sql string) string { return explained(t, c, sql, make([]any, maxParam(sql))) }
	for _, sql := range []string{sqlNextHotEndpoint, sqlEndpointDue, sqlClaim} {
		require.Contains(t, ask(sql), "INDEX outbox_hot", sql)
	}
	require.Contains(t, ask(sqlResume), "INDEX outbox_paused")
	waiting := ask(sqlEndpointWaiting)
	require.Contains(t, waiting, "SEARCH outbox USING INDEX outbox_hot (endpoint_id=?)")
	require.Contains(t, waiting, "SEARCH outbox USING COVERING INDEX outbox_paused (endpoint_id=?)")
	require.Contains(t, ask(sqlAccountFailing), "INDEX outbox_unsent (business_id=? AND state=?)")
	require.Contains(t, ask(sqlPartnersFailing), "INDEX outbox_partner_unsent (business_id=? AND state=?)")
}

// ofSlots matches the indexes that PostgreSQL has in place of one of SQLite's.
func ofSlots(index string) string {
	return strings.ReplaceAll(index, "outbox_hot", "outbox_(due|line)")
}

// explained is SQLite's plan for a statement.
func explained(t *testing.T, c *liteConn, sql string, args []any) string {
	t.Helper()
	r, err := c.query(t.Context(), "EXPLAIN QUERY PLAN "+sql, args...)
	require.NoError(t, err)
	defer r.Close()
	var plan []string
	for r.Next() {
		var id, parent, unused int64
		var detail string
		require.NoError(t, r.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	return strings.Join(plan, "; ")
}

// sqlManyOfABusiness fills the log of two businesses with ten kinds of events to
// twenty receivers, of which nearly all have arrived.
const sqlManyOfABusiness = `INSERT INTO outbox (id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts,
  max_attempts, next_at, reason, lease_owner, generation, created_at, delivered_at, replay_of, setting, customer_id)
SELECT n, 'E-' || n, n % 20, 42 + n % 2, CASE WHEN n % 7 < 3 THEN 17 ELSE 0 END, CASE WHEN n % 400 = 0 THEN 'order.created' ELSE 'order.' || (n % 10) END, CAST(n % 5000 AS TEXT), 'E-' || n,
  CASE WHEN n % 200 = 0 THEN 'failed' ELSE 'success' END, 1, 6, NULL, '', '', 1, n * 1000, n * 1000, 0, '', 0
FROM generate_series(1, 40000) AS n`

// What a node was sending by hand when it died shows as failed when its lease is
// over, also when no node of that name ever comes back.
func TestWhatADeadNodeSentByHandEnds(t *testing.T) {
	t.Parallel()
	url := ring.Postgres(t)
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer admin.Close(context.WithoutCancel(ctx))
	schema := "forgotten_" + strings.ToLower(rand.Text())
	_, err = admin.Exec(ctx, "CREATE SCHEMA "+schema)
	require.NoError(t, err)
	defer admin.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
	url += "&search_path=" + schema + "&pool_max_conns=2"
	dead, db := openTest(t, Config{URL: url, Instance: "dead"}), openTest(t, Config{URL: url, Instance: "n1"})
	now := time.Now()
	c := &cloud.Changes{}
	for id, event := range map[cloud.OutboxID]string{1: "TEST-1", 2: "TEST-2"} {
		c.Outbox = append(c.Outbox, cloud.OutboxWrite{Event: cloud.OutboxEvent{EventID: event, Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount, OccurredAt: now, CreatedAt: now, Body: []byte("{}")},
			Deliveries: []cloud.OutboxDelivery{{ID: id, EventID: event, BusinessID: 42, WebhookID: event, State: cloud.OutboxDelivering, MaxAttempts: 1, CreatedAt: now}}})
	}
	require.NoError(t, dead.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	state := func(id cloud.OutboxID) string {
		w, err := db.FindOutbox(ctx, id)
		require.NoError(t, err)
		return string(w.Delivery.State) + " " + w.Delivery.Reason
	}
	_, err = db.engine.(*postgres).pool.Exec(ctx, "UPDATE outbox SET lease_until = 1 WHERE id = 1")
	require.NoError(t, err)
	require.NoError(t, db.RecoverOutbox(ctx), "which is about the node's own")
	require.Equal(t, "delivering interrupted", state(1))
	require.NoError(t, db.EndForgotten(ctx))
	require.Equal(t, []string{"failed interrupted", "delivering interrupted"}, []string{state(1), state(2)}, "of the second the lease runs")
}
