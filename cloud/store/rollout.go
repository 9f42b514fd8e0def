package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const sqlRunningRollouts = `SELECT id, business_id FROM rollout WHERE state = 'running' AND id > $1 ORDER BY id LIMIT $2`

// ListRunningRollouts lists roll-outs of all businesses that run, by their ids and owners
// alone: those after the given one, at most limit.
func (db devices) ListRunningRollouts(ctx context.Context, after cloud.RolloutID, limit int) ([]cloud.Rollout, error) {
	return readList(ctx, db.database, sqlRunningRollouts, func(r rows, x *cloud.Rollout) error { return r.Scan(&x.ID, &x.BusinessID) }, int64(after), limit)
}
