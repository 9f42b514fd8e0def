package store

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Slots of nodes that share a database. On SQLite a node has them all, and its queries
// have no slots in them.
const (
	sqlTakeSlot = `UPDATE webhook_slot SET owner = $1 WHERE slot = $2
  AND NOT EXISTS (SELECT 1 FROM node WHERE instance = webhook_slot.owner AND instance <> $1) AND EXISTS (SELECT 1 FROM node WHERE instance = $1)`
	sqlLeaveSlot = `UPDATE webhook_slot SET owner = '' WHERE slot = $2 AND owner = $1`

	// A slot that another node has taken is never read for this one, whatever this one
	// believes to have. The endpoints with anything unfinished are found one after the other by the index,
	// and of each whether any of the slots has something due.
	pgDueEndpoints = `WITH RECURSIVE hot (endpoint_id) AS (
  (SELECT endpoint_id FROM outbox WHERE state IN ('pending', 'delivering', 'retrying') ORDER BY endpoint_id LIMIT 1)
  UNION ALL
  SELECT (SELECT o.endpoint_id FROM outbox AS o WHERE o.state IN ('pending', 'delivering', 'retrying') AND o.endpoint_id > hot.endpoint_id ORDER BY o.endpoint_id LIMIT 1)
  FROM hot WHERE hot.endpoint_id IS NOT NULL)
SELECT hot.endpoint_id FROM hot WHERE hot.endpoint_id IS NOT NULL AND (
  SELECT 1 FROM webhook_slot AS s CROSS JOIN LATERAL (SELECT 1 FROM outbox AS o
    WHERE o.endpoint_id = hot.endpoint_id AND o.slot = s.slot AND o.state IN ('pending', 'delivering', 'retrying') AND o.next_at <= $1
      AND (o.lease_owner = '' OR o.lease_until < @now) LIMIT 1) AS due WHERE s.slot = ANY($2::BIGINT[]) AND s.owner IN ('', $3) LIMIT 1) = 1`
	pgClaim = `UPDATE outbox SET lease_owner = $1, lease_until = @lease, generation = generation + 1
WHERE id = ANY(ARRAY(SELECT due.id FROM webhook_slot AS s CROSS JOIN LATERAL (SELECT o.id, o.next_at FROM outbox AS o
    WHERE o.endpoint_id = $2 AND o.slot = s.slot AND o.state IN ('pending', 'delivering', 'retrying') AND o.next_at <= $3
      AND (o.lease_owner = '' OR o.lease_until < @now)
    ORDER BY o.next_at, o.id LIMIT $4) AS due
  WHERE s.slot = ANY($5::BIGINT[]) AND s.owner IN ('', $1)
  ORDER BY due.next_at, due.id LIMIT $4))
RETURNING ` + outboxColumns
	pgUnfinished = `SELECT o.id, o.state, o.attempts, o.next_at, CASE WHEN o.lease_until < @now THEN '' ELSE o.lease_owner END, o.reference_sequence, o.business_id, e.reference_type, o.reference_id
FROM outbox AS o JOIN outbox_event AS e ON e.event_id = o.event_id
WHERE o.endpoint_id = $1 AND o.reference_id = ANY($2::TEXT[]) AND o.state IN ('pending', 'delivering', 'retrying') AND o.replay_of = 0`
	pgTake = `UPDATE outbox SET lease_owner = $1, lease_until = @lease, generation = generation + 1
WHERE id = ANY($2::BIGINT[]) AND slot IN (SELECT s.slot FROM webhook_slot AS s WHERE s.slot = ANY($3::BIGINT[]) AND s.owner IN ('', $1)) AND state IN ('pending', 'delivering', 'retrying')
  AND (lease_owner = '' OR lease_until < @now)
RETURNING ` + outboxColumns
)

// HoldSlots says which slots' deliveries this node sends, a bit for each: new ones are
// written leased to it, and it takes up no others. Until it is called these are all.
func (db shares) HoldSlots(slots uint64) { db.slots.Store(slots) }

// TakeSlots gives this node those of some slots that it has already or that no running
// node has, and returns them.
func (db shares) TakeSlots(ctx context.Context, slots uint64) (got uint64, err error) {
	list := slotList(slots)
	taken := make([]int64, len(list))
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, db.eachSlot(sqlTakeSlot, list, taken))
	})
	for i, slot := range list {
		if err == nil && taken[i] > 0 {
			got |= 1 << slot
		}
	}
	return got, err
}

// LeaveSlots lets other nodes have slots of this one.
func (db shares) LeaveSlots(ctx context.Context, slots uint64) error {
	list := slotList(slots)
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, db.eachSlot(sqlLeaveSlot, list, make([]int64, len(list))))
	})
}

// eachSlot runs a statement for this node and each slot; counts get the rows.
func (db shares) eachSlot(sql string, list, counts []int64) []op {
	ops := make([]op, len(list))
	for i, slot := range list {
		ops[i] = op{sql: sql, args: []any{db.node, slot}, count: &counts[i]}
	}
	return ops
}

// slotList are the slots of a set.
func slotList(set uint64) []int64 {
	out := make([]int64, 0, cloud.OutboxSlots)
	for slot := range int64(cloud.OutboxSlots) {
		if set>>slot&1 == 1 {
			out = append(out, slot)
		}
	}
	return out
}

// Unfinished lists what is not finished of the deliveries to one receiver about some
// references, by their ids, other than what was sent again by hand. On SQLite it lists
// nothing: the one node there knows what it has not sent.
func (db shares) Unfinished(ctx context.Context, id cloud.EndpointID, references []string) ([]cloud.OutboxWaiting, error) {
	if !db.Peers() {
		return nil, nil
	}
	return readList(ctx, db.database, pgUnfinished, func(r rows, w *cloud.OutboxWaiting) error {
		return r.Scan(&w.ID, &w.State, &w.Attempts, when(&w.NextAt), &w.LeaseOwner, &w.Sequence, &w.Reference.BusinessID, &w.Reference.Type, &w.Reference.ID)
	}, int64(id), references)
}

// TakeOutbox takes up deliveries to one receiver of slots of this node, whether they are
// due or not, unless another node has them.
func (db shares) TakeOutbox(ctx context.Context, id cloud.EndpointID, ids []cloud.OutboxID) (work []cloud.OutboxWork, err error) {
	err = db.write(ctx, 0, func(ctx context.Context, s session) (_ *cloud.Changes, err error) {
		work, err = db.lease(ctx, s, id, pgTake, db.node, outboxIDs(ids), slotList(db.slots.Load()))
		return nil, err
	})
	return work, err
}

// claim takes up what is due to one receiver.
func (db shares) claim(ctx context.Context, s session, id cloud.EndpointID, now time.Time, limit int) ([]cloud.OutboxWork, error) {
	if s.postgres() {
		return db.lease(ctx, s, id, pgClaim, db.node, int64(id), now.UnixMilli(), limit, slotList(db.slots.Load()))
	}
	return db.lease(ctx, s, id, sqlClaim, db.node, int64(id), now.UnixMilli(), limit)
}

// lease runs a statement that takes up deliveries to one receiver, and gives them with
// their events, of each reference in the order of its numbers.
func (db shares) lease(ctx context.Context, s session, id cloud.EndpointID, sql string, args ...any) ([]cloud.OutboxWork, error) {
	work, err := list(ctx, changing{s}, sql, func(r rows, o *cloud.OutboxWork) error { return scanOutbox(r, &o.Delivery) }, args...)
	if err != nil {
		return nil, err
	}
	if err := (webhooks(db)).withEvents(ctx, s, work); err != nil {
		return nil, err
	}
	slices.SortFunc(work, cloud.CompareOutbox)
	return work, number(ctx, s, id, work)
}

// dueEndpoints lists receivers that have something due of the slots of this node.
func (db shares) dueEndpoints(ctx context.Context, now time.Time) ([]cloud.EndpointID, error) {
	return readList(ctx, db.database, pgDueEndpoints, func(r rows, id *cloud.EndpointID) error { return r.Scan(id) }, now.UnixMilli(), slotList(db.slots.Load()), db.node)
}
