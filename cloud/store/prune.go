package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlOldest       = `SELECT id, event_id, created_at, lease_owner FROM outbox WHERE id > $1 ORDER BY id LIMIT $2`
	sqlDropDelivery = `DELETE FROM outbox WHERE id = $1`
	sqlDropAttempts = `DELETE FROM outbox_attempt WHERE delivery_id = $1`
	sqlDropEvent    = `DELETE FROM outbox_event WHERE event_id = $1 AND NOT EXISTS (SELECT 1 FROM outbox WHERE event_id = $1 AND replay_of <> 0)`

	sqlDropDeliveryEvents = `DELETE FROM outbox_event WHERE event_id IN (SELECT e.event_id FROM outbox_event AS e
  WHERE e.reference_type = 'locker_delivery' AND e.created_at < $1
    AND NOT EXISTS (SELECT 1 FROM outbox AS o WHERE o.reference_id = e.reference_id AND o.provider_id = e.provider_id AND o.event_id = e.event_id)
  ORDER BY e.created_at LIMIT $2)`
)

// PruneOutbox removes what was created before a time from the log: deliveries
// with their attempts, and events of which nothing is sent again. It looks at
// step deliveries with ids above after, in the order of their ids, and gives the
// last of them; more is false once they are younger than that time. A row that a
// sender holds stays.
func (db webhooks) PruneOutbox(ctx context.Context, after cloud.OutboxID, before time.Time, step int) (last cloud.OutboxID, removed int, more bool, err error) {
	type row struct {
		id           int64
		event, owner string
		at           time.Time
	}
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		found, err := list(ctx, s, sqlOldest, func(r rows, x *row) error { return r.Scan(&x.id, &x.event, when(&x.at), &x.owner) }, int64(after), step)
		if err != nil {
			return nil, err
		}
		last, removed, more = after, 0, false
		var rows, events []op
		seen := map[string]bool{}
		for _, x := range found {
			last = cloud.OutboxID(x.id)
			if !x.at.Before(before) {
				continue
			}
			more = len(found) == step
			if x.owner != "" {
				continue
			}
			removed++
			rows = append(rows, op{sql: sqlDropAttempts, args: []any{x.id}}, op{sql: sqlDropDelivery, args: []any{x.id}})
			if !seen[x.event] {
				seen[x.event] = true
				events = append(events, op{sql: sqlDropEvent, args: []any{x.event}})
			}
		}
		return nil, s.last(ctx, append(rows, events...))
	})
	return last, removed, more, err
}

// DropDeliveryEvents removes events of locker deliveries that were created before a time and
// that no delivery to a receiver needs.
func (db webhooks) DropDeliveryEvents(ctx context.Context, before time.Time) error {
	return db.inSteps(ctx, sqlDropDeliveryEvents, ms(before))
}

// DropReplays removes jobs that ended before a time.
func (db webhooks) DropReplays(ctx context.Context, before time.Time) error {
	return db.exec(ctx, sqlDropReplays, ms(before))
}

// pgLongest is the age of the oldest running transaction, in seconds.
const pgLongest = `SELECT CAST(COALESCE(EXTRACT(EPOCH FROM MAX(clock_timestamp() - xact_start)), 0) AS BIGINT)
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`

// LongestTransaction is how long the oldest transaction of the database has been
// running: while it does, nothing that was removed makes room. Always 0 on
// SQLite, whose transactions are this process's own.
func (db webhooks) LongestTransaction(ctx context.Context) (time.Duration, error) {
	if _, ok := db.engine.(*postgres); !ok {
		return 0, nil
	}
	seconds, err := readOne(ctx, db.database, pgLongest, scanInt)
	return time.Duration(seconds) * time.Second, err
}
