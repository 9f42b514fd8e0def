package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A caller that gives up while its decision is committed does not keep this process from
// the knowledge of what was written; one that gave up before writes nothing.
func TestACommitOutlastsItsCaller(t *testing.T) {
	t.Parallel()
	db := openTest(t, Config{URL: freshSchema(t), Instance: "i1"})
	pool := db.engine.(*postgres).pool
	for _, sql := range []string{
		`CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER doze AFTER INSERT ON outbox_event DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION doze()`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	var seen atomic.Int64
	db.OnCommit(func(c *cloud.Changes) { seen.Add(int64(len(c.Outbox))) })
	write := func(ctx context.Context, id string) error {
		now := time.Now()
		return db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: id, Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount,
				ReferenceType: "order", ReferenceID: "1", Sequence: 1, CreatedAt: now, Body: []byte("{}")},
				Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(len(id)), EventID: id, EndpointID: 3, BusinessID: 42, WebhookID: id, State: cloud.OutboxPending, MaxAttempts: 8, NextAt: now, CreatedAt: now}}}}}}, nil
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.NoError(t, write(ctx, "E-1"))
	require.Error(t, ctx.Err(), "the caller gave up meanwhile")
	require.EqualValues(t, 1, seen.Load())
	require.Error(t, write(ctx, "E-22"))
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT COUNT(*) FROM outbox_event").Scan(&n))
	require.Equal(t, 1, n)
}
