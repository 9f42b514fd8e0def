package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	sqlJob      = `SELECT body FROM order_job WHERE business_id = $1 AND id = $2`
	sqlOpenJobs = `SELECT body FROM order_job WHERE finished_at IS NULL AND operation = '' ORDER BY created_at, id LIMIT $1`
	// sqlWaitingJobs are those over records and files that have something to do and that
	// no other node works on.
	sqlWaitingJobs = `SELECT body FROM order_job WHERE operation <> '' AND finished_at IS NULL AND status <> 'checked'
  AND (lease_owner = '' OR lease_owner = $1 OR lease_until < $2) ORDER BY created_at, id LIMIT $3`
	sqlLeaseJob = `UPDATE order_job SET lease_owner = $2, lease_until = $3
WHERE id = $1 AND finished_at IS NULL AND (lease_owner = '' OR lease_owner = $2 OR lease_until < $4)`
	sqlReleaseJob  = `UPDATE order_job SET lease_owner = '', lease_until = NULL WHERE id = $1 AND lease_owner = $2`
	sqlReleaseJobs = `UPDATE order_job SET lease_owner = '', lease_until = NULL WHERE operation <> '' AND finished_at IS NULL AND lease_owner <> ''`
	sqlSaveJob     = `INSERT INTO order_job (id, business_id, status, created_at, finished_at, body, account_id, operation) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at, body = excluded.body
WHERE order_job.business_id = excluded.business_id`
	jobRowColumns = `job_id, row_number, input, result, failed, checked, bad`
	sqlJobRow     = `SELECT ` + jobRowColumns + ` FROM order_job_row WHERE job_id = $1 AND row_number = $2`
	sqlJobRows    = `SELECT ` + jobRowColumns + ` FROM order_job_row WHERE job_id = $1 AND row_number > $2 ORDER BY row_number LIMIT $3`
	sqlNextJobRow = `SELECT row_number FROM order_job_row WHERE job_id = $1 AND result IS NULL ORDER BY row_number LIMIT 1`
	// sqlRowsToCheck and sqlRowsToDo are the next open rows behind one.
	sqlRowsToCheck = `SELECT ` + jobRowColumns + ` FROM order_job_row WHERE job_id = $1 AND row_number > $2 AND checked IS NULL AND result IS NULL ORDER BY row_number LIMIT $3`
	sqlRowsToDo    = `SELECT ` + jobRowColumns + ` FROM order_job_row WHERE job_id = $1 AND row_number > $2 AND result IS NULL AND NOT bad ORDER BY row_number LIMIT $3`
	sqlSaveJobRow  = `INSERT INTO order_job_row (job_id, row_number, failed, input, result, checked, bad) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (job_id, row_number) DO UPDATE SET failed = excluded.failed, input = excluded.input, result = excluded.result, checked = excluded.checked, bad = excluded.bad
WHERE order_job_row.result IS NULL`
	sqlRetryRows   = `UPDATE order_job_row SET result = NULL, failed = FALSE WHERE job_id = $1 AND failed AND length(input) > 0`
	sqlUncheckRows = `UPDATE order_job_row SET checked = NULL, bad = FALSE WHERE job_id = $1 AND result IS NULL`
	// sqlStepOpen finds the row of a call that is to be done.
	sqlStepOpen = `SELECT r.row_number FROM order_job_row r JOIN order_job j ON j.id = r.job_id
WHERE r.job_id = $1 AND r.row_number = $2 AND r.result IS NULL AND j.finished_at IS NULL AND j.business_id = $3`
	sqlStepDone = `UPDATE order_job_row SET result = $3, failed = FALSE, input = $4 WHERE job_id = $1 AND row_number = $2 AND result IS NULL`
	sqlStepKey  = `INSERT INTO job_key (business_id, key, job_id) VALUES ($1, $2, $3) ON CONFLICT (business_id, key) DO NOTHING`
	sqlJobKey   = `SELECT 1 FROM job_key WHERE business_id = $1 AND key = $2`
	// sqlStepFailed says that a row failed after its first transaction.
	sqlStepFailed = `UPDATE order_job_row SET result = $3, failed = TRUE WHERE job_id = $1 AND row_number = $2`
	sqlJobCount   = `SELECT COUNT(result), COUNT(CASE WHEN failed THEN 1 END), COUNT(checked), COUNT(CASE WHEN bad THEN 1 END) FROM order_job_row WHERE job_id = $1`
	sqlDropRows   = `DELETE FROM order_job_row WHERE job_id IN (SELECT id FROM order_job WHERE finished_at < $1 AND finished_at IS NOT NULL)`
	sqlDropKeys   = `DELETE FROM job_key WHERE job_id IN (SELECT id FROM order_job WHERE finished_at < $1 AND finished_at IS NOT NULL)`
	sqlDropJobs   = `DELETE FROM order_job WHERE finished_at < $1 AND finished_at IS NOT NULL`
	sqlEndWaiting = `UPDATE order_job SET finished_at = created_at WHERE operation <> '' AND finished_at IS NULL AND status = 'checked' AND created_at < $1`
)

func scanJob(r rows, j *cloud.Job) error { return r.Scan(parsed(j)) }

func scanJobRow(r rows, x *cloud.JobRow) error {
	return r.Scan(&x.JobID, &x.Row, &x.Input, &x.Result, &x.Failed, &x.Checked, &x.Bad)
}

func scanJobCount(r rows, n *cloud.JobCount) error {
	return r.Scan(&n.Processed, &n.Failed, &n.Checked, &n.Bad)
}

func (v orderView) Job(b cloud.BusinessID, id string) (cloud.Job, error) {
	return one(v.ctx, v.q, sqlJob, scanJob, int64(b), id)
}

func (v orderView) JobRow(job string, row int) (cloud.JobRow, error) {
	return one(v.ctx, v.q, v.locked(sqlJobRow), scanJobRow, job, row)
}

func (v orderView) JobRows(job string) ([]cloud.JobRow, error) {
	return list(v.ctx, v.q, sqlJobRows, scanJobRow, job, 0, maxJobRows)
}

func (v orderView) JobKey(b cloud.BusinessID, key string) (bool, error) {
	_, err := one(v.ctx, v.q, sqlJobKey, scanInt, int64(b), key)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (v orderView) JobCount(job string) (cloud.JobCount, error) {
	return one(v.ctx, v.q, sqlJobCount, scanJobCount, job)
}

// maxJobRows is more than a job may have.
const maxJobRows = 100_000

func (w *writer) jobs(c *cloud.Changes) {
	for _, j := range c.Jobs {
		w.add(mustExist, sqlSaveJob, j.ID, int64(j.BusinessID), j.Status, ms(j.CreatedAt), ms(j.FinishedAt), text(j), int64(j.AccountID), j.Operation)
	}
	for _, id := range c.RetryJobs {
		w.add(anything, sqlRetryRows, id)
	}
	for _, id := range c.UncheckJobs {
		w.add(anything, sqlUncheckRows, id)
	}
	for _, r := range c.JobRows { // a result is written once
		w.add(notStale, sqlSaveJobRow, r.JobID, r.Row, r.Failed, r.Input, blob(r.Result), blob(r.Checked), r.Bad)
	}
	if !c.DropJobsBefore.IsZero() {
		for _, sql := range []string{sqlEndWaiting, sqlDropRows, sqlDropKeys, sqlDropJobs} {
			w.add(anything, sql, ms(c.DropJobsBefore))
		}
	}
}

// stepIsOpen refuses with cloud.ErrRepeated, before a decision is run, a call whose row
// of a job is done, or whose job has ended.
func stepIsOpen(ctx context.Context, s session, step *cloud.JobStep) error {
	if step == nil || step.Taken() {
		return nil
	}
	_, err := one(ctx, s, sqlStepOpen, scanInt, step.JobID, step.Row, int64(step.BusinessID))
	if errors.Is(err, cloud.ErrNotFound) {
		return cloud.ErrRepeated
	}
	return err
}

// addStep stores the result of a call's row in the transaction that does it. It says
// whether it does.
func addStep(w *writer, step *cloud.JobStep, c *cloud.Changes) (bool, error) {
	if step == nil || step.Taken() {
		return false, nil
	}
	result, err := step.Encode(c.Answer)
	if err != nil {
		return false, fmt.Errorf("encode the result of row %d of %s: %w", step.Row, step.JobID, err)
	}
	c.JobSteps = append(c.JobSteps, cloud.JobProgress{BusinessID: step.BusinessID, JobID: step.JobID})
	w.add(mustBeFirst, sqlStepDone, step.JobID, step.Row, result, []byte{})
	if step.Key != "" {
		w.add(mustBeFirst, sqlStepKey, int64(step.BusinessID), step.Key, step.JobID)
	}
	return true, nil
}

// ListOpenJobs lists jobs of all businesses that make the orders of a batch and are not
// finished, oldest first.
func (db orders) ListOpenJobs(ctx context.Context, limit int) ([]cloud.Job, error) {
	return readList(ctx, db.database, sqlOpenJobs, scanJob, limit)
}

// NextJobRow is the number of the first row of a job that has no result;
// cloud.ErrNotFound when all have one.
func (db orders) NextJobRow(ctx context.Context, job string) (int, error) {
	n, err := readOne(ctx, db.database, sqlNextJobRow, scanInt, job)
	return int(n), err
}

// ListJobRows reads a job with a page of its rows, by number, and counts how far it
// has come. Error: cloud.ErrNoMark.
func (db orders) ListJobRows(ctx context.Context, b cloud.BusinessID, id string, p cloud.Page) (j cloud.Job, n cloud.JobCount, out cloud.Listed, found []cloud.JobRow, err error) {
	p.Sort, p.Down = "id", false
	l := keyList{columns: jobRowColumns, from: "order_job_row", by: sortColumn{id: "row_number"}, page: p, exact: true}
	l.where.and("job_id = $%d", id)
	err = db.engine.read(ctx, func(ctx context.Context, q querier) (err error) {
		if j, err = one(ctx, q, sqlJob, scanJob, int64(b), id); err != nil {
			return err
		}
		n, err = one(ctx, q, sqlJobCount, scanJobCount, id)
		if err == nil {
			out, found, err = readKeyList(ctx, q, l, scanJobRow)
		}
		return err
	})
	return j, n, out, found, err
}

// WaitingJobs lists jobs over records and files, of all businesses, that have something
// to do and that no other node works on at now, oldest first.
func (db orders) WaitingJobs(ctx context.Context, now time.Time, limit int) ([]cloud.Job, error) {
	return readList(ctx, db.database, sqlWaitingJobs, scanJob, db.node, ms(now), limit)
}

// LeaseJob gives this node a job until a time, unless another one has it.
// cloud.ErrStale when it has, or when the job has ended. A lease spares work that is
// done twice: that no row is, rows see to themselves.
func (db orders) LeaseJob(ctx context.Context, id string, now, until time.Time) error {
	return db.database.write(ctx, 0, func(ctx context.Context, s session) (*cloud.Changes, error) {
		return nil, s.last(ctx, []op{{sql: sqlLeaseJob, args: []any{id, db.node, ms(until), ms(now)}, need: notStale}})
	})
}

// ReleaseJob gives a job of this node back.
func (db orders) ReleaseJob(ctx context.Context, id string) error {
	return db.exec(ctx, sqlReleaseJob, id, db.node)
}

// ReleaseJobs gives back the leases of a process that has ended, before this one works
// on jobs: on SQLite, whose file one process owns. Elsewhere they run out.
func (db orders) ReleaseJobs(ctx context.Context) error {
	if _, ok := db.database.engine.(*lite); !ok {
		return nil
	}
	return db.exec(ctx, sqlReleaseJobs)
}

// ListRowsToCheck lists the next rows of a job that are not checked, behind one.
func (db orders) ListRowsToCheck(ctx context.Context, job string, after, limit int) ([]cloud.JobRow, error) {
	return readList(ctx, db.database, sqlRowsToCheck, scanJobRow, job, after, limit)
}

// ListRowsToDo lists the next good rows of a job without a result, behind one.
func (db orders) ListRowsToDo(ctx context.Context, job string, after, limit int) ([]cloud.JobRow, error) {
	return readList(ctx, db.database, sqlRowsToDo, scanJobRow, job, after, limit)
}

// FailJobRow says that a row whose first transaction is stored failed afterwards.
func (db orders) FailJobRow(ctx context.Context, job string, row int, result []byte) error {
	return db.exec(ctx, sqlStepFailed, job, row, result)
}

// ListJobs lists a part of a business's jobs, in the order of their ids, which is that
// of their time.
func (db orders) ListJobs(ctx context.Context, f cloud.JobFilter) (cloud.Listed, []cloud.Job, error) {
	f.Page.Sort = "id"
	l := keyList{columns: "body", from: "order_job", by: sortColumn{idText: true}, page: f.Page}
	l.where.and("business_id = $%d", int64(f.BusinessID))
	if f.AccountID != 0 {
		l.where.and("account_id = $%d", int64(f.AccountID))
	}
	if f.Status != "" {
		l.where.and("status = $%d", f.Status)
	}
	return lookKeyList(ctx, db.database, l, scanJob)
}

// PickJobRows lists a part of a job's rows by number.
func (db orders) PickJobRows(ctx context.Context, f cloud.JobRowFilter) (cloud.Listed, []cloud.JobRow, error) {
	f.Page.Sort, f.Page.Down = "id", false
	l := keyList{columns: jobRowColumns, from: "order_job_row", by: sortColumn{id: "row_number"}, page: f.Page, exact: true}
	l.where.and("job_id = $%d", f.JobID)
	if state := map[string]string{"open": "result IS NULL AND NOT bad", "bad": "bad AND result IS NULL", "failed": "failed", "done": "result IS NOT NULL AND NOT failed"}[f.State]; state != "" {
		l.where.and(state)
	}
	return lookKeyList(ctx, db.database, l, scanJobRow)
}
