package store

import (
	"cmp"
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

// Two processes share what is to be sent: each writes leased to itself, and takes up, what
// is of its slots, whatever it believes to have.
func TestProcessesShareSlots(t *testing.T) {
	t.Parallel()
	url := freshSchema(t)
	db, other := openTest(t, Config{URL: url, Instance: "i1"}), openTest(t, Config{URL: url, Instance: "i2"})
	now := time.Now()
	ctx, later := t.Context(), now.Add(time.Hour)
	for _, d := range []*DB{db, other} {
		require.NoError(t, d.EnterNode(ctx, cloud.Node{Instance: d.Instance(), Name: d.Instance(), SchemaNumber: SchemaNumber(), StartedAt: now}, cloud.Node{}))
	}
	const odd, even = 0xaaaaaaaaaaaaaaaa, 0x5555555555555555
	got, err := db.TakeSlots(ctx, odd)
	require.NoError(t, err)
	require.EqualValues(t, uint64(odd), got)
	got, err = other.TakeSlots(ctx, ^uint64(0))
	require.NoError(t, err)
	require.EqualValues(t, uint64(even), got, "the rest")
	db.HoldSlots(odd)
	other.HoldSlots(^uint64(0)) // wrongly
	db.OwnFresh(true)
	c := &cloud.Changes{}
	mine := 0
	for n := range 200 {
		id := fmt.Sprint("E-", n+1)
		w := cloud.OutboxWrite{Event: cloud.OutboxEvent{EventID: id, Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount, ReferenceType: "order", ReferenceID: id, Sequence: 1, CreatedAt: now, Body: []byte("{}")},
			Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(n + 1), EventID: id, EndpointID: 3, BusinessID: 42, WebhookID: id, State: cloud.OutboxPending, MaxAttempts: 8, NextAt: now, CreatedAt: now}}}
		if uint64(odd)>>cloud.OutboxSlot(3, w.Event.Reference())&1 == 1 {
			mine++
		}
		c.Outbox = append(c.Outbox, w)
	}
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	leased := 0
	for _, w := range c.Outbox {
		if w.Deliveries[0].LeaseOwner != "" {
			leased++
		}
	}
	require.Equal(t, mine, leased, "of slots that the writer has")
	require.NoError(t, db.RecoverOutbox(ctx))
	due, err := other.DueEndpoints(ctx, later)
	require.NoError(t, err)
	require.Equal(t, []cloud.EndpointID{3}, due)
	work, err := other.ClaimOutbox(ctx, 3, later, 500)
	require.NoError(t, err)
	require.Len(t, work, 200-mine, "never of a slot that another process has taken")
	var ids []cloud.OutboxID
	for _, w := range c.Outbox {
		ids = append(ids, w.Deliveries[0].ID)
	}
	taken, err := other.TakeOutbox(ctx, 3, ids)
	require.NoError(t, err)
	require.Empty(t, taken)
	list, err := db.Unfinished(ctx, 3, []string{work[0].Event.ReferenceID})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, cloud.OutboxWaiting{ID: work[0].Delivery.ID, State: cloud.OutboxPending, NextAt: list[0].NextAt, LeaseOwner: other.Instance(), Reference: work[0].Event.Reference(), Sequence: 1}, list[0])

	require.NoError(t, db.EndNode(ctx, db.Instance(), -1))
	got, err = other.TakeSlots(ctx, ^uint64(0))
	require.NoError(t, err)
	require.EqualValues(t, ^uint64(0), got, "those of a process that has ended, too")
	work, err = other.ClaimOutbox(ctx, 3, later, 500)
	require.NoError(t, err)
	require.Len(t, work, mine)
}

// A lease that its process does not renew by name runs out, and stands in the way of what
// comes after it no more: the process may not know of it, as when the answer to its commit
// was lost. What another process has taken up is not renewed.
func TestALeaseThatIsNotRenewedRunsOut(t *testing.T) {
	t.Parallel()
	db, ctx, now := openTest(t, Config{URL: freshSchema(t), Instance: "i1"}), t.Context(), time.Now()
	db.OwnFresh(true)
	c := &cloud.Changes{}
	for n := range 3 {
		id := fmt.Sprint("E-", n+1)
		c.Outbox = append(c.Outbox, cloud.OutboxWrite{Event: cloud.OutboxEvent{EventID: id, Event: "order.created", BusinessID: 42, Channel: cloud.ChannelAccount, ReferenceType: "order", ReferenceID: "1", Sequence: int64(n + 1), CreatedAt: now, Body: []byte("{}")},
			Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(n + 1), EventID: id, EndpointID: 3, BusinessID: 42, WebhookID: id, State: cloud.OutboxPending, MaxAttempts: 8, NextAt: now, CreatedAt: now}}})
	}
	require.NoError(t, db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
	age := func() {
		_, err := db.engine.(*postgres).pool.Exec(ctx, "UPDATE outbox SET lease_until = lease_until - $1::BIGINT", Lease.Milliseconds()-1000)
		require.NoError(t, err)
	}
	owners := func() (out []string) {
		list, err := db.Unfinished(ctx, 3, []string{"1"})
		require.NoError(t, err)
		slices.SortFunc(list, func(a, b cloud.OutboxWaiting) int { return cmp.Compare(a.ID, b.ID) })
		for _, x := range list {
			out = append(out, x.LeaseOwner)
		}
		return out
	}
	require.Equal(t, []string{"i1", "i1", "i1"}, owners())
	age()
	held, err := db.RenewOutbox(ctx, []cloud.OutboxID{2, 3, 4})
	require.NoError(t, err)
	require.ElementsMatch(t, []cloud.OutboxID{2, 3}, held)
	_, err = db.engine.(*postgres).pool.Exec(ctx, "UPDATE outbox SET lease_owner = 'i2' WHERE id = 3")
	require.NoError(t, err)
	held, err = db.RenewOutbox(ctx, []cloud.OutboxID{2, 3})
	require.NoError(t, err)
	require.Equal(t, []cloud.OutboxID{2}, held)
	_, err = db.engine.(*postgres).pool.Exec(ctx, "UPDATE outbox SET lease_until = lease_until - 2000 WHERE id = 1")
	require.NoError(t, err)
	require.Equal(t, []string{"", "i1", "i2"}, owners(), "it stands in nothing's way")
	work, err := db.ClaimOutbox(ctx, 3, now.Add(time.Hour), 10)
	require.NoError(t, err)
	require.Len(t, work, 1)
	require.EqualValues(t, 1, work[0].Delivery.ID)
}

// Leases of as much as memory holds are renewed while outcomes are stored.
func TestManyLeasesAreRenewedBesideOutcomes(t *testing.T) {
	t.Parallel()
	db, ctx, now := openTest(t, Config{URL: freshSchema(t), Instance: "i1"}), t.Context(), time.Now()
	const many = 20_000
	pool := db.engine.(*postgres).pool
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO outbox (id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts, max_attempts, next_at, reason, lease_owner, lease_until, generation, created_at, replay_of, slot, reference_sequence)
SELECT n, 'E-' || n, 3, 42, 0, 'order.created', n, 'E-' || n, 'pending', 0, 6, n, '', 'i1', 1, 1, n, 0, 0, 1 FROM generate_series(1, %d) AS n`, many), "ANALYZE outbox",
	} {
		_, err := pool.Exec(ctx, sql)
		require.NoError(t, err)
	}
	ids := make([]cloud.OutboxID, many)
	for i := range ids {
		ids[i] = cloud.OutboxID(i + 1)
	}
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for ; n < many; n += 5 {
			select {
			case <-stop:
				ended <- n
				return
			case <-time.After(10 * time.Millisecond):
			}
			var rs []cloud.OutboxResult
			for _, id := range ids[n : n+5] {
				rs = append(rs, cloud.OutboxResult{ID: id, Generation: 1, State: cloud.OutboxSuccess, Attempts: 1, DeliveredAt: now})
			}
			if _, err := db.FinishOutbox(ctx, rs); err != nil {
				t.Error(err)
			}
		}
		ended <- n
	}()
	var held []cloud.OutboxID
	for range 3 {
		var err error
		held, err = db.RenewOutbox(ctx, ids)
		require.NoError(t, err)
	}
	close(stop)
	finished := <-ended
	require.GreaterOrEqual(t, len(held), many-finished)
	require.Positive(t, finished)
}

// With very many waiting deliveries what a sender asks for goes by indexes.
func TestSlotsAreReadByIndexes(t *testing.T) {
	t.Parallel()
	many := ring.Count(20_000, 1_000_000)
	db := openTest(t, Config{URL: freshSchema(t), Instance: "i1"})
	pool, ctx := db.engine.(*postgres).pool, t.Context()
	for _, sql := range []string{
		fmt.Sprintf(`INSERT INTO outbox_event (event_id, event, business_id, provider_id, channel, reference_type, reference_id, occurred_at, created_at, test, body, sequence)
SELECT 'E-' || n, 'order.created', 42, 0, 'account', 'order', n / 10, n, n, FALSE, '', n %% 10 + 1 FROM generate_series(1, %d) AS n`, many),
		fmt.Sprintf(`INSERT INTO outbox (id, event_id, endpoint_id, business_id, provider_id, event, reference_id, webhook_id, state, attempts, max_attempts, next_at, reason, lease_owner, generation, created_at, replay_of, slot, reference_sequence)
SELECT n, 'E-' || n, CASE WHEN n %% 2 = 0 THEN 1 ELSE n %% 50 END, 42, 0, 'order.created', n / 10, 'E-' || n, 'pending', 0, 6, n, '', '', 0, n, 0, (n / 10 * 7919) %% 64, n %% 10 + 1 FROM generate_series(1, %d) AS n`, many),
		`UPDATE webhook_slot SET owner = CASE WHEN slot % 3 = 0 THEN 'i1' ELSE 'i2' END`, "ANALYZE webhook_slot", "ANALYZE outbox", "ANALYZE outbox_event", // of all tables it waits for the locks of other tests
	} {
		_, err := pool.Exec(ctx, sql)
		require.NoError(t, err)
	}
	slots := slotList(0x9249249249249249)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{"due": {pgDueEndpoints, []any{many, slots, "i1"}}, "claim": {pgClaim, []any{"i1", 1, many, 512, slots}}, "unfinished": {pgUnfinished, []any{1, []string{"7", "8", "9"}}},
		"take": {pgTake, []any{"i1", []int64{1, 2, 3}, slots}}, "renew": {pgRenew, []any{"i1", []int64{1, 2, 3}}}} {
		rows, err := pool.Query(ctx, "EXPLAIN (ANALYZE, BUFFERS) "+pgText(q.sql), q.args...)
		require.NoError(t, err)
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		plan := strings.Join(list, "\n")
		require.NotContains(t, plan, "Seq Scan on outbox", name)
	}
}
