package store

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlOrderJob     = `SELECT body FROM order_job WHERE business_id = $1 AND id = $2`
	sqlOpenJobs     = `SELECT body FROM order_job WHERE finished_at IS NULL ORDER BY created_at, id LIMIT $1`
	sqlSaveOrderJob = `INSERT INTO order_job (id, business_id, status, created_at, finished_at, body) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at, body = excluded.body
WHERE order_job.business_id = excluded.business_id`
	sqlJobRow     = `SELECT job_id, row_number, input, result, failed FROM order_job_row WHERE job_id = $1 AND row_number = $2`
	sqlJobRows    = `SELECT job_id, row_number, input, result, failed FROM order_job_row WHERE job_id = $1 AND row_number > $2 ORDER BY row_number LIMIT $3`
	sqlNextJobRow = `SELECT row_number FROM order_job_row WHERE job_id = $1 AND result IS NULL ORDER BY row_number LIMIT 1`
	sqlSaveJobRow = `INSERT INTO order_job_row (job_id, row_number, failed, input, result) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (job_id, row_number) DO UPDATE SET failed = excluded.failed, input = excluded.input, result = excluded.result
WHERE order_job_row.result IS NULL`
	sqlJobCount = `SELECT COUNT(result), COUNT(CASE WHEN failed THEN 1 END) FROM order_job_row WHERE job_id = $1`
	sqlDropRows = `DELETE FROM order_job_row WHERE job_id IN (SELECT id FROM order_job WHERE finished_at < $1 AND finished_at IS NOT NULL)`
	sqlDropJobs = `DELETE FROM order_job WHERE finished_at < $1 AND finished_at IS NOT NULL`
)

func scanOrderJob(r rows, j *cloud.OrderJob) error { return r.Scan(parsed(j)) }

func scanJobRow(r rows, x *cloud.OrderJobRow) error {
	return r.Scan(&x.JobID, &x.Row, &x.Input, &x.Result, &x.Failed)
}

func (v orderView) OrderJob(b cloud.BusinessID, id string) (cloud.OrderJob, error) {
	return one(v.ctx, v.q, sqlOrderJob, scanOrderJob, int64(b), id)
}

func (v orderView) OrderJobRow(job string, row int) (cloud.OrderJobRow, error) {
	return one(v.ctx, v.q, v.locked(sqlJobRow), scanJobRow, job, row)
}

func (v orderView) OrderJobRows(job string) ([]cloud.OrderJobRow, error) {
	return list(v.ctx, v.q, sqlJobRows, scanJobRow, job, 0, maxJobRows)
}

// maxJobRows is more than a job may have.
const maxJobRows = 10_000

func (w *writer) orderJobs(c *cloud.Changes) {
	for _, j := range c.OrderJobs {
		w.add(mustExist, sqlSaveOrderJob, j.ID, int64(j.BusinessID), j.Status, ms(j.CreatedAt), ms(j.FinishedAt), text(j))
	}
	for _, r := range c.OrderJobRows { // a result is written once
		w.add(notStale, sqlSaveJobRow, r.JobID, r.Row, r.Failed, r.Input, blob(r.Result))
	}
	if !c.DropJobsBefore.IsZero() {
		w.add(anything, sqlDropRows, ms(c.DropJobsBefore))
		w.add(anything, sqlDropJobs, ms(c.DropJobsBefore))
	}
}

// ListOpenJobs lists jobs of all businesses that are not finished, oldest
// first.
func (db orders) ListOpenJobs(ctx context.Context, limit int) ([]cloud.OrderJob, error) {
	return readList(ctx, db.database, sqlOpenJobs, scanOrderJob, limit)
}

// NextJobRow is the number of the first row of a job that has no result;
// cloud.ErrNotFound when all have one.
func (db orders) NextJobRow(ctx context.Context, job string) (int, error) {
	n, err := readOne(ctx, db.database, sqlNextJobRow, scanInt, job)
	return int(n), err
}

// ListJobRows reads a job with a page of its rows, by number, and counts how far it
// has come. Error: cloud.ErrNoMark.
func (db orders) ListJobRows(ctx context.Context, b cloud.BusinessID, id string, p cloud.Page) (j cloud.OrderJob, n cloud.JobCount, out cloud.Listed, found []cloud.OrderJobRow, err error) {
	p.Sort, p.Down = "id", false
	l := keyList{columns: "job_id, row_number, input, result, failed", from: "order_job_row", by: sortColumn{id: "row_number"}, page: p, exact: true}
	l.where.and("job_id = $%d", id)
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if j, err = one(ctx, q, sqlOrderJob, scanOrderJob, int64(b), id); err != nil {
			return err
		}
		n, err = one(ctx, q, sqlJobCount, func(r rows, n *cloud.JobCount) error { return r.Scan(&n.Processed, &n.Failed) }, id)
		if err == nil {
			out, found, err = readKeyList(ctx, q, l, scanJobRow)
		}
		return err
	})
	return j, n, out, found, err
}
