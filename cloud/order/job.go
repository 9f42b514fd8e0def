package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Wake lets Run look for jobs now. It does not block.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

const (
	jobPoll  = 10 * time.Second // for what no signal announced
	jobsRead = 16
)

// Run makes the orders of jobs until ctx ends. A row's order and its result are
// one transaction, so that an order is made once however often Run is stopped
// and on however many nodes it runs.
func (s *Service) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(jobPoll)
	defer tick.Stop()
	for {
		if err := (jobRunner{s}).jobs(ctx); err != nil && ctx.Err() == nil {
			log.Error("orders of a batch cannot be made now", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// jobRunner makes the orders of batches.
type jobRunner struct{ *Service }

// jobs works on every job that is not finished, and drops those that were long
// ago.
func (s jobRunner) jobs(ctx context.Context) error {
	for {
		open, err := s.store.ListOpenJobs(ctx, jobsRead)
		if err != nil || len(open) == 0 {
			return errors.Join(err, s.dropJobs(ctx))
		}
		var errs []error
		for _, j := range open { // one that cannot go on does not keep the others
			if err := s.job(ctx, j); err != nil {
				errs = append(errs, fmt.Errorf("job %s: %w", j.ID, err))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
}

func (s jobRunner) dropJobs(ctx context.Context) error {
	now := s.time()
	if now.Sub(s.dropped) < time.Hour {
		return nil
	}
	s.dropped = now
	return s.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{JobChanges: cloud.JobChanges{DropJobsBefore: now.Add(-jobsKept)}}, nil
	})
}

// job makes the rows of one job that have no result.
func (s jobRunner) job(ctx context.Context, j cloud.Job) error {
	if j.Status == cloud.JobQueued {
		j.Status, j.StartedAt = cloud.JobProcessing, s.time()
		if err := s.saveJob(ctx, j); err != nil {
			return err
		}
	}
	for {
		row, err := s.store.NextJobRow(ctx, j.ID)
		if errors.Is(err, cloud.ErrNotFound) {
			return s.endJob(ctx, j, cloud.JobCompleted)
		}
		if err != nil {
			return err
		}
		failed, err := s.row(ctx, j, row)
		if err != nil {
			return err
		}
		if failed && j.StopOnError {
			return s.endJob(ctx, j, cloud.JobFailed)
		}
	}
}

func (s jobRunner) endJob(ctx context.Context, j cloud.Job, status string) error {
	j.Status, j.FinishedAt = status, s.time()
	return s.saveJob(ctx, j)
}

// saveJob writes how far a job has come, unless it is finished already, and
// tells of its end.
func (s jobRunner) saveJob(ctx context.Context, j cloud.Job) error {
	return s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		old, err := v.Job(j.BusinessID, j.ID)
		if err != nil || !old.FinishedAt.IsZero() {
			return nil, err
		}
		ch := &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{j}}}
		if !j.FinishedAt.IsZero() {
			parts, err := s.endings(v, j)
			if err != nil {
				return nil, err
			}
			for _, e := range parts {
				work, err := s.webhooks.FanOut(v, e)
				if err != nil {
					return nil, err
				}
				ch.Outbox = append(ch.Outbox, work...)
			}
		}
		return ch, nil
	})
}

// row makes the order of one row, unless it has a result, and says whether it
// was refused.
func (s jobRunner) row(ctx context.Context, j cloud.Job, row int) (failed bool, err error) {
	now := s.time()
	return failed, s.twice(ctx, func(v cloud.View) (*cloud.Changes, error) {
		r, err := v.JobRow(j.ID, row)
		if err != nil {
			return nil, err
		}
		if failed = r.Failed; r.Result != nil {
			return nil, nil
		}
		c, err := caller(v, j)
		if err != nil {
			return nil, err
		}
		var in CreateInput
		if err := json.Unmarshal(r.Input, &in); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		result, ch, err := s.attempt(v, c, j, row, in, now)
		if err != nil {
			return nil, err
		}
		failed = !result.Result
		r.Failed, r.Input = failed, []byte{} // whose order it is need not be kept twice
		if r.Result, err = json.Marshal(result); err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		ch.JobRows = append(ch.JobRows, r)
		return ch, nil
	})
}

// attempt makes an order, or the result that says why it is refused.
func (s jobRunner) attempt(v cloud.View, c cloud.Caller, j cloud.Job, row int, in CreateInput, now time.Time) (jobRow, *cloud.Changes, error) {
	state, err := v.Suspension(j.BusinessID)
	if err != nil {
		return jobRow{}, nil, err
	}
	var out CreateOutput
	var ch *cloud.Changes
	if state.Suspended() {
		err = cloud.E(cloud.Forbidden, "BUSINESS_SUSPENDED")
	} else if err = mayMake(c.Account); err == nil {
		var end cloud.AccountEvent
		if end, err = s.ending(v, j); err == nil {
			out, ch, err = s.open(v, c, in, now, batchCreated, &end)
		}
	}
	var e *cloud.Error
	if errors.As(err, &e) {
		return jobRow{RowResult: refused(c, row, in, e), Packages: []rowPackage{}}, &cloud.Changes{}, nil
	}
	r := jobRow{RowResult: made(row, out), Packages: []rowPackage{}}
	for _, p := range out.Packages {
		r.Packages = append(r.Packages, rowPackage{p.Ref, p.Number})
	}
	return r, ch, err
}

// mayMake says why an account may make no more orders of a job: it was disabled, is of
// another type, or an employee lost the permission. Errors: ACCOUNT_DISABLED,
// ACCOUNT_TYPE_NOT_ALLOWED, FORBIDDEN.
func mayMake(a cloud.Account) error {
	const scope = "orders:write"
	switch {
	case !a.Enabled:
		return cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
	case a.Type == cloud.ClientEmployee && !cloud.HasScope(a.Permissions, scope):
		return &cloud.Error{Kind: cloud.Forbidden, Code: "FORBIDDEN", Details: map[string]any{"scope": scope}}
	case !a.Type.IsStaff() && a.Type != cloud.Customer:
		return cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	return nil
}

// caller is who asked for a job, as they stand now.
func caller(v cloud.View, j cloud.Job) (cloud.Caller, error) {
	a, err := v.Account(j.AccountID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return cloud.Caller{}, err
	}
	a.Enabled = a.Enabled && a.BusinessID == j.BusinessID
	return cloud.Caller{Account: a, Surface: j.Surface, Language: j.Language, BaseURL: j.BaseURL}, nil
}
