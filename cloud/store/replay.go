package store

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	replayColumns  = `id, business_id, customer_id, status, position_at, position, sent, total, created_at, finished_at, body`
	sqlReplayJob   = `SELECT ` + replayColumns + ` FROM replay_job WHERE id = $1`
	sqlOpenReplays = `SELECT ` + replayColumns + ` FROM replay_job WHERE finished_at IS NULL ORDER BY created_at, id LIMIT 100`
	sqlSaveReplay  = `INSERT INTO replay_job (` + replayColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at
WHERE replay_job.business_id = excluded.business_id AND replay_job.finished_at IS NULL`
	sqlStepReplay = `UPDATE replay_job SET status = $4, position_at = $5, position = $6, sent = sent + $7, finished_at = $8
WHERE id = $1 AND position_at = $2 AND position = $3 AND finished_at IS NULL`
	sqlDropReplays = `DELETE FROM replay_job WHERE id IN (SELECT id FROM replay_job WHERE finished_at IS NOT NULL AND finished_at < $1 LIMIT 100)`

	// Those that were sent again themselves, and tests, which are tried once, are
	// left out.
	replayWhere = `FROM outbox WHERE provider_id = 0 AND business_id = $1 AND created_at >= $2 AND created_at < $3
  AND (CAST($4 AS @int) = 0 OR customer_id = $4) AND ($5 = '' OR event = $5) AND ($6 = '' OR state = $6)
  AND (CAST($7 AS @int) = 0 OR endpoint_id = $7) AND replay_of = 0 AND max_attempts > 1 AND url = '' AND endpoint_id <> 0`
	sqlReplayNext = `SELECT ` + outboxColumns + ` ` + replayWhere + ` AND (created_at > $8 OR created_at = $8 AND id > $9)
ORDER BY created_at, id LIMIT $10`
	sqlReplayCount = `SELECT COUNT(*) ` + replayWhere
)

func scanReplayJob(r rows, j *cloud.ReplayJob) error {
	return r.Scan(&j.ID, &j.BusinessID, &j.CustomerID, &j.Status, when(&j.PositionAt), &j.Position, &j.Sent, &j.Total,
		when(&j.CreatedAt), when(&j.FinishedAt), parsed(&j.Filter))
}

func (w *writer) replayJobs(c *cloud.Changes) {
	for _, j := range c.ReplayJobs {
		w.add(notStale, sqlSaveReplay, j.ID, int64(j.BusinessID), int64(j.CustomerID), j.Status, j.PositionAt.UnixMilli(), int64(j.Position),
			int64(j.Sent), int64(j.Total), ms(j.CreatedAt), ms(j.FinishedAt), text(j.Filter))
	}
}

func replayArgs(j cloud.ReplayJob) []any {
	f := j.Filter
	return []any{int64(j.BusinessID), f.From.UnixMilli(), f.To.UnixMilli(), int64(j.CustomerID), f.Event, string(f.State), int64(f.EndpointID)}
}

// CountReplay counts the deliveries that a job would send again.
func (db webhooks) CountReplay(ctx context.Context, j cloud.ReplayJob) (int, error) {
	n, err := readOne(ctx, db.database, sqlReplayCount, scanInt, replayArgs(j)...)
	return int(n), err
}

// FindReplay finds a job. Whose it is, is for the caller to look at.
func (db webhooks) FindReplay(ctx context.Context, id string) (cloud.ReplayJob, error) {
	return readOne(ctx, db.database, sqlReplayJob, scanReplayJob, id)
}

// OpenReplays lists jobs of all businesses that are running, oldest first.
func (db webhooks) OpenReplays(ctx context.Context) ([]cloud.ReplayJob, error) {
	return readList(ctx, db.database, sqlOpenReplays, scanReplayJob)
}

// StepReplay puts the next deliveries of a job on their way again, at most as
// many as there are ids, and moves the job on in the same transaction. It does
// nothing when another node was faster or the job has ended.
func (db webhooks) StepReplay(ctx context.Context, j cloud.ReplayJob, ids []cloud.OutboxID, now time.Time) error {
	return db.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		olds, err := list(ctx, s, sqlReplayNext, scanOutbox, append(replayArgs(j), j.PositionAt.UnixMilli(), int64(j.Position), len(ids))...)
		if err != nil {
			return nil, err
		}
		status, finished, at, last := cloud.ReplayRunning, time.Time{}, j.PositionAt, j.Position
		if len(olds) < len(ids) {
			status, finished = cloud.ReplayDone, now
		}
		if n := len(olds); n > 0 {
			at, last = olds[n-1].CreatedAt, olds[n-1].ID
		}
		var moved int64
		step := op{sql: sqlStepReplay, args: []any{j.ID, j.PositionAt.UnixMilli(), int64(j.Position), status, at.UnixMilli(), int64(last), int64(len(olds)),
			ms(finished)}, count: &moved}
		if err := s.apply(ctx, []op{step}); err != nil || moved == 0 {
			return nil, err
		}
		w, told := db.writer(0), &cloud.Changes{}
		for i, old := range olds {
			e, err := db.outboxEvent(ctx, s, old.EventID)
			if err != nil {
				return nil, fmt.Errorf("delivery %d: %w", old.ID, err)
			}
			d := again(old, ids[i], "", now)
			w.outboxDelivery(&e, &d)
			told.Outbox = append(told.Outbox, cloud.OutboxWrite{Event: e, Deliveries: []cloud.OutboxDelivery{d}})
		}
		return told, s.last(ctx, w.ops)
	})
}
