package store

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

var (
	dueEvents = newRowTable("due_event", cloud.DueEvent{})

	sqlDueEvents = `SELECT ` + dueEvents.list + ` FROM due_event WHERE due_at <= $1 ORDER BY due_at, id LIMIT $2`
)

const sqlDropDue = `DELETE FROM due_event WHERE business_id = $1 AND shipment_id IN (SELECT id FROM shipment WHERE business_id = $1 AND order_id = $2 AND order_id <> 0)`

// DueEvents lists events of timelines whose time has come at now, the oldest first.
func (db timelines) DueEvents(ctx context.Context, now time.Time, limit int) (out []cloud.DueEvent, err error) {
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		out, err = rowsAs[cloud.DueEvent](&snapshot{ctx: ctx, q: q}, dueEvents, sqlDueEvents, ms(now), limit)
		return err
	})
	return out, err
}
