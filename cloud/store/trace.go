package store

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
)

const (
	// The first claim of all notes where the timeline stands. $2 is 1 where
	// there is one node, whatever its name was.
	sqlClaimTraces = `INSERT INTO trace_push (id, start_n, lease_owner, lease_until)
SELECT 1, COALESCE(MAX(n), 0), CAST($1 AS TEXT), @lease FROM timeline WHERE 1 = 1
ON CONFLICT (id) DO UPDATE SET lease_owner = excluded.lease_owner, lease_until = excluded.lease_until
WHERE trace_push.lease_owner IN ('', excluded.lease_owner) OR trace_push.lease_until < @now OR CAST($2 AS @int) = 1`
	sqlReleaseTraces = `UPDATE trace_push SET lease_owner = '', lease_until = NULL WHERE id = 1 AND lease_owner = $1`
	sqlUntold        = `SELECT shipment_id FROM timeline
WHERE told = 0 AND n > (SELECT start_n FROM trace_push WHERE id = 1) ORDER BY n LIMIT $1`
	sqlTakenBack    = `SELECT shipment_id FROM timeline WHERE told = 2 AND n > 0 ORDER BY n LIMIT $1`
	sqlShipment     = `SELECT ` + shipmentColumns + ` FROM shipment WHERE id = $1`
	sqlTracedEvents = `SELECT n, told, CASE WHEN withdrawn_at IS NULL THEN 0 ELSE 1 END, event FROM timeline WHERE shipment_id = $1`
	sqlTell         = `UPDATE timeline SET told = 1 WHERE n = $1 AND told = $2`
)

func scanTracedEvent(r rows, e *cloud.TracedEvent) error {
	var withdrawn int64
	err := r.Scan(&e.N, &e.State, &withdrawn, parsed(&e.Event))
	e.Event.Withdrawn = withdrawn == 1
	return err
}

// ClaimTraces makes this node the one that tells the trace collector, for as
// long as a Lease, and reports whether it is. The first claim of a deployment
// marks where telling begins.
func (db timelines) ClaimTraces(ctx context.Context) (held bool, err error) {
	var n int64
	err = db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		alone := int64(1)
		if s.postgres() {
			alone = 0
		}
		return nil, s.last(ctx, []op{{sql: sqlClaimTraces, args: []any{db.node, alone}, count: &n}})
	})
	return n > 0, err
}

// ReleaseTraces lets another node tell the collector at once.
func (db timelines) ReleaseTraces(ctx context.Context) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlReleaseTraces, args: []any{db.node}}})
	})
}

// UnsentTraces reads the parcels of at most limit events that the collector was
// not sent and as many that were withdrawn since, those that have waited
// longest first. Each comes with all of its events, withdrawn ones too, in no
// particular order.
func (db timelines) UnsentTraces(ctx context.Context, limit int) (out []cloud.TracedParcel, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) error {
		ids, err := list(ctx, q, sqlUntold, scanInt, limit)
		if err != nil {
			return err
		}
		more, err := list(ctx, q, sqlTakenBack, scanInt, limit)
		if err != nil {
			return err
		}
		ids = distinct(append(ids, more...))
		out = make([]cloud.TracedParcel, len(ids))
		for i, id := range ids {
			if out[i].Shipment, err = one(ctx, q, sqlShipment, scanShipment, id); err != nil {
				return err
			}
			if out[i].Events, err = list(ctx, q, sqlTracedEvents, scanTracedEvent, id); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// distinct leaves the first of each.
func distinct(ids []int64) []int64 {
	seen := make(map[int64]bool, len(ids))
	return slices.DeleteFunc(ids, func(id int64) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// NoteSentTraces notes that the collector was sent events as they were read. One
// that was withdrawn in between stays unsent.
func (db timelines) NoteSentTraces(ctx context.Context, events []cloud.TracedEvent) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		ops := make([]op, 0, len(events))
		for _, e := range events {
			if e.State != cloud.TraceSent {
				ops = append(ops, op{sql: sqlTell, args: []any{e.N, int64(e.State)}})
			}
		}
		return nil, s.last(ctx, ops)
	})
}
