package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

const (
	poll       = 5 * time.Second // for what no signal announced
	maxRunning = 4               // jobs of a node
	leased     = 10 * time.Second
	checkers   = 4
	workers    = 64 // their transactions are committed together
	chunk      = 256
	doing      = 1024
	rowTime    = 30 * time.Second
	maxTries   = 3 // of a row that fails for a reason of ours
	keptFor    = 30 * 24 * time.Hour
)

// Committed tells Run of new jobs. It does not block.
func (s *Service) Committed(ch *cloud.Changes) {
	if len(ch.Jobs) > 0 {
		s.Wake()
	}
}

// Wake lets Run look for jobs now. It does not block.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run works on jobs until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	if err := s.cfg.Store.ReleaseJobs(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("leases of jobs are not given back", "error", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if err := s.begin(ctx, &wg); err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("jobs cannot be read now", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// begin takes up jobs that wait.
func (s *Service) begin(ctx context.Context, wg *sync.WaitGroup) error {
	jobs, err := s.cfg.Store.WaitingJobs(ctx, time.Now(), 4*maxRunning)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if !s.takeJob(j.ID) {
			continue
		}
		wg.Go(func() {
			again := s.work(ctx, j)
			s.mu.Lock()
			delete(s.running, j.ID)
			s.mu.Unlock()
			if again {
				s.Wake()
			}
		})
	}
	return nil
}

func (s *Service) takeJob(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] || len(s.running) >= maxRunning {
		return false
	}
	s.running[id] = true
	return true
}

// work does what a job has to do while this node has its lease. It says whether there
// may be more to do at once.
func (s *Service) work(ctx context.Context, j cloud.Job) bool {
	now := time.Now()
	if err := s.cfg.Store.LeaseJob(ctx, j.ID, now, now.Add(leased)); err != nil {
		if !errors.Is(err, cloud.ErrStale) && ctx.Err() == nil {
			s.cfg.Log.Error("job cannot be leased now", "job", j.ID, "error", err)
		}
		return false
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(leased / 3)
		defer tick.Stop()
		for {
			select {
			case <-run.Done():
				return
			case <-tick.C:
				now := time.Now()
				if errors.Is(s.cfg.Store.LeaseJob(run, j.ID, now, now.Add(leased)), cloud.ErrStale) {
					stop() // another node has it, or it has ended
				}
			}
		}
	})
	var err error
	switch j.Status {
	case cloud.JobChecking:
		err = s.check(run, j)
	default:
		err = s.runRows(run, j)
	}
	stop()
	wg.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), leased)
	defer cancel()
	if e := s.cfg.Store.ReleaseJob(end, j.ID); e != nil {
		s.cfg.Log.Warn("job is not given back", "job", j.ID, "error", e)
	}
	if err != nil && run.Err() == nil || err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		s.cfg.Log.Error("job cannot go on now", "job", j.ID, "error", err)
		return false
	}
	return ctx.Err() == nil
}

// caller is who asked for a job, as they may act now. Errors are those of rights that
// ended.
func (s *Service) caller(ctx context.Context, j cloud.Job, o *catalog.Operation) (c cloud.Caller, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		a, err := v.Account(j.AccountID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (!a.Enabled || a.BusinessID != j.BusinessID) {
			return cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED")
		}
		if err != nil {
			return err
		}
		state, err := v.Suspension(j.BusinessID)
		if err == nil && state.Suspended() {
			return cloud.E(cloud.Forbidden, "BUSINESS_SUSPENDED")
		}
		c = cloud.Caller{Account: a, Surface: j.Surface, Language: j.Language, BaseURL: j.BaseURL, PublicURL: j.BaseURL}
		if a.Type == cloud.ClientEmployee {
			c.Scopes = append([]string{}, a.Permissions...)
		}
		return err
	})
	if err == nil {
		err = s.cfg.Pipeline.May(ctx, o, c)
	}
	return c, err
}

// call runs a row's operation for a caller; in a preview nothing is written.
func (s *Service) call(ctx context.Context, j cloud.Job, o *catalog.Operation, c cloud.Caller, in map[string]any) (err error) {
	defer func() { // a row must not end the process, which would take it up again
		if p := recover(); p != nil {
			s.cfg.Log.Error("operation of a job panicked", "job", j.ID, "operation", o.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked: %v", o.Name, p)
		}
	}()
	ctx, c, _, err = s.cfg.Pipeline.Admit(catalog.Admitted(ctx, c), o, catalog.Who{IP: j.IP, Language: j.Language, BaseURL: j.BaseURL, Surface: j.Surface, RequestID: j.ID})
	if err != nil {
		return err
	}
	_, err = s.cfg.Pipeline.Run(ctx, o, c, catalog.Key{}, o.Values(in))
	return err
}

// input is what a row gives its operation. Problems are those of cells, by path.
func (s *Service) input(j cloud.Job, n *catalog.Noun, o *catalog.Operation, x item) (map[string]any, error) {
	in := map[string]any{}
	if len(j.Shared) > 0 {
		if err := json.Unmarshal(j.Shared, &in); err != nil {
			return nil, fmt.Errorf("read the input of %s: %w", j.ID, err)
		}
	}
	if j.File != "" {
		return s.line(j, o, x.Cells)
	}
	var id any = x.ID
	if n, err := strconv.ParseInt(x.ID, 10, 64); err == nil && strconv.FormatInt(n, 10) == x.ID {
		id = json.Number(x.ID)
	}
	if member, many := n.About(o); many {
		in[member] = []any{id}
	} else {
		in[member] = id
	}
	return in, nil
}

// try is what a check finds of a row.
func (s *Service) try(ctx context.Context, j cloud.Job, n *catalog.Noun, o *catalog.Operation, c cloud.Caller, r cloud.JobRow) (out outcome, err error) {
	var x item
	if err := json.Unmarshal(r.Input, &x); err != nil {
		return out, fmt.Errorf("row %d of %s: %w", r.Row, j.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	in, err := s.input(j, n, o, x)
	if err == nil && j.File != "" {
		done := false
		if err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { done, err = v.JobKey(j.BusinessID, keyOf(j, r.Row)); return err }); err == nil && done {
			err = cloud.E(cloud.Conflict, "JOB_LINE_DONE")
		}
	}
	pv := &cloud.Preview{}
	if err == nil {
		err = s.call(cloud.WithPreview(ctx, pv), j, o, c, in)
	}
	if e := cloud.Shown(err); e != nil {
		return refusal(x, e), nil
	}
	out = outcome{ID: x.ID, Title: x.Title}
	if x.ID != "" {
		name := ""
		out.Mark, name = pv.MarkOf(x.ID)
		out.Changes = changesOf(cloud.EffectsFor(c, pv.Effects()), x.ID)
		if out.Title == "" {
			out.Title = name
		}
	}
	return out, err
}

// check tries all rows of a job and says what was found.
func (s *Service) check(ctx context.Context, j cloud.Job) error {
	n, o := s.table.Noun(j.Noun), s.table.Find(j.Operation)
	if n == nil || o == nil {
		return s.end(ctx, j, cloud.JobFailed, s.cfg.Message(j.Language, "NOT_FOUND"))
	}
	for after := 0; ; {
		rows, err := s.cfg.Store.ListRowsToCheck(ctx, j.ID, after, chunk)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return s.checked(ctx, j)
		}
		c, err := s.caller(ctx, j, o)
		if e := cloud.Shown(err); e != nil {
			return s.end(ctx, j, cloud.JobFailed, messageOf(s.cfg, j.Language, e))
		}
		if err != nil {
			return err
		}
		if err := each(rows, checkers, func(i int) error {
			found, err := s.try(ctx, j, n, o, c, rows[i])
			if err != nil && ctx.Err() == nil { // for a reason of ours: once more, and then it is refused
				if found, err = s.try(ctx, j, n, o, c, rows[i]); err != nil && ctx.Err() == nil {
					s.cfg.Log.Error("row of a job cannot be checked", "job", j.ID, "row", rows[i].Row, "error", err)
					found, err = refusal(item{}, cloud.E(cloud.Internal, "INTERNAL_ERROR")), nil
				}
			}
			if err != nil {
				return err
			}
			rows[i].Checked, err = json.Marshal(found)
			rows[i].Bad = found.Code != ""
			return err
		}); err != nil {
			return err
		}
		after = rows[len(rows)-1].Row
		if err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
			now, err := v.Job(j.BusinessID, j.ID)
			if err != nil || now.Status != cloud.JobChecking {
				return nil, err
			}
			return &cloud.Changes{JobChanges: cloud.JobChanges{JobRows: rows, JobSteps: []cloud.JobProgress{{BusinessID: j.BusinessID, JobID: j.ID}}}, Unaudited: true}, nil
		}); err != nil {
			return err
		}
	}
}

// checked lets the person decide.
func (s *Service) checked(ctx context.Context, j cloud.Job) error {
	return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now, err := v.Job(j.BusinessID, j.ID)
		if err != nil || now.Status != cloud.JobChecking {
			return nil, err
		}
		rows, err := v.JobRows(j.ID)
		if err != nil {
			return nil, err
		}
		now.Status, now.Digest = cloud.JobChecked, s.digest("", rows...)
		return &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{now}}, Unaudited: true}, nil
	})
}

// end ends a job unless it has ended.
func (s *Service) end(ctx context.Context, j cloud.Job, status, reason string) error {
	return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now, err := v.Job(j.BusinessID, j.ID)
		if err != nil || !now.FinishedAt.IsZero() {
			return nil, err
		}
		now.Status, now.Reason, now.FinishedAt = status, reason, time.Now().UTC()
		return &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{now}}, Unaudited: true}, nil
	})
}

// each runs fn for every row, some at a time, and gives the first error.
func each(rows []cloud.JobRow, width int, fn func(i int) error) error {
	var next atomic.Int64
	var first error
	var once sync.Once
	var wg sync.WaitGroup
	for range min(width, len(rows)) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(rows) {
					return
				}
				if err := fn(i); err != nil {
					once.Do(func() { first = err })
					next.Store(int64(len(rows)))
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// errEnded says that a job has ended while it ran.
var errEnded = errors.New("the job has ended")

// lost is the error of a right that ended while a job ran.
type lost struct{ why *cloud.Error }

func (l lost) Error() string { return "the right has ended: " + l.why.Code }

// runRows runs the good rows of a job that have no result.
func (s *Service) runRows(ctx context.Context, j cloud.Job) error {
	n, o := s.table.Noun(j.Noun), s.table.Find(j.Operation)
	if n == nil || o == nil {
		return s.end(ctx, j, cloud.JobFailed, s.cfg.Message(j.Language, "NOT_FOUND"))
	}
	if err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now, err := v.Job(j.BusinessID, j.ID)
		if err != nil || now.Status != cloud.JobQueued {
			return nil, err
		}
		now.Status = cloud.JobProcessing
		if now.StartedAt.IsZero() {
			now.StartedAt = time.Now().UTC()
		}
		return &cloud.Changes{JobChanges: cloud.JobChanges{Jobs: []cloud.Job{now}}, Unaudited: true}, nil
	}); err != nil {
		return err
	}
	r := &runner{s, j, n, o, sync.Mutex{}, map[int]int{}}
	for after := 0; ; {
		rows, err := s.cfg.Store.ListRowsToDo(ctx, j.ID, after, doing)
		switch {
		case err != nil:
			return err
		case len(rows) == 0 && after == 0:
			return s.end(ctx, j, cloud.JobCompleted, "")
		case len(rows) == 0: // again for those that could not be done
			after = 0
			if len(r.tries) > 0 {
				if err := sleep(ctx, time.Second); err != nil {
					return err
				}
			}
			continue
		}
		after = rows[len(rows)-1].Row
		var gone lost
		switch err := each(rows, workers, func(i int) error { return r.row(ctx, rows[i]) }); {
		case errors.As(err, &gone):
			return s.end(ctx, j, cloud.JobFailed, messageOf(s.cfg, j.Language, gone.why))
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// runner runs the rows of one job.
type runner struct {
	*Service
	j cloud.Job
	n *catalog.Noun
	o *catalog.Operation

	mu    sync.Mutex
	tries map[int]int // of rows that failed for a reason of ours
}

func keyOf(j cloud.Job, row int) string {
	if j.FileHash == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d", j.Noun, j.FileHash, row)
}

// row runs one row.
func (r *runner) row(ctx context.Context, x cloud.JobRow) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	call, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	var it item
	if err := json.Unmarshal(x.Input, &it); err != nil {
		return fmt.Errorf("row %d of %s: %w", x.Row, r.j.ID, err)
	}
	var was outcome
	if err := json.Unmarshal(x.Checked, &was); err != nil {
		return fmt.Errorf("check of row %d of %s: %w", x.Row, r.j.ID, err)
	}
	c, err := r.caller(call, r.j, r.o)
	if e := cloud.Shown(err); e != nil {
		return lost{e}
	}
	if err != nil {
		return r.later(ctx, x, it, err)
	}
	step := &cloud.JobStep{BusinessID: r.j.BusinessID, JobID: r.j.ID, Row: x.Row, Key: keyOf(r.j, x.Row), Encode: func(answer any) ([]byte, error) {
		return json.Marshal(r.done(it, was, answer))
	}}
	in, err := r.input(r.j, r.n, r.o, it)
	if err == nil {
		run := cloud.WithJobStep(call, step)
		if was.Mark != "" {
			run = cloud.WithExpected(run, cloud.ExpectOf(it.ID, was.Mark))
		}
		err = r.call(run, r.j, r.o, c, in)
	}
	switch e := cloud.Shown(err); {
	case err == nil && step.Taken():
		return nil
	case err == nil: // there was nothing to change
		return r.save(ctx, x, r.done(it, was, nil), false)
	case errors.Is(err, cloud.ErrRepeated):
		return r.repeated(ctx, x, it)
	case e == nil || e.RetryAfter > 0 || e.Kind == cloud.Limited || e.Kind == cloud.Unavailable || e.Kind == cloud.Timeout:
		return r.later(ctx, x, it, err)
	default:
		if e.Kind == cloud.Forbidden || e.Kind == cloud.Unauthenticated { // of the record, or of the caller
			if _, err := r.caller(ctx, r.j, r.o); cloud.Shown(err) != nil {
				return lost{cloud.Shown(err)}
			}
		}
		if step.Taken() {
			raw, err := json.Marshal(refusal(it, e))
			if err != nil {
				return err
			}
			return r.cfg.Store.FailJobRow(ctx, r.j.ID, x.Row, raw)
		}
		return r.save(ctx, x, refusal(it, e), true)
	}
}

// done is the outcome of a row that is done.
func (r *runner) done(it item, was outcome, answer any) outcome {
	out := outcome{ID: it.ID, Title: it.Title}
	if out.Title == "" {
		out.Title = was.Title
	}
	if r.j.File == "" {
		return out
	}
	made, _ := object(answer)
	member, _ := r.o.Found()
	if inner, ok := made[member].(map[string]any); ok && text(made[r.n.ID]) == "" {
		made = inner
	}
	out.ID, out.Title = text(made[r.n.ID]), title(r.n, made)
	return out
}

// save stores the result of a row, unless it has one.
func (r *runner) save(ctx context.Context, x cloud.JobRow, o outcome, failed bool) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	x.Result, x.Failed = raw, failed
	err = r.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{JobChanges: cloud.JobChanges{JobRows: []cloud.JobRow{x}, JobSteps: []cloud.JobProgress{{BusinessID: r.j.BusinessID, JobID: r.j.ID}}}, Unaudited: true}, nil
	})
	if errors.Is(err, cloud.ErrStale) {
		return nil
	}
	return err
}

// repeated is what is done about a row that another call did, whose job has ended, or
// whose line was imported before.
func (r *runner) repeated(ctx context.Context, x cloud.JobRow, it item) error {
	ended, done := false, false
	err := r.cfg.Store.Look(ctx, func(v cloud.View) error {
		j, err := v.Job(r.j.BusinessID, r.j.ID)
		if err != nil {
			return err
		}
		row, err := v.JobRow(r.j.ID, x.Row)
		ended, done = !j.FinishedAt.IsZero(), row.Result != nil
		return err
	})
	switch {
	case err != nil:
		return err
	case ended:
		return errEnded
	case done:
		return nil
	}
	return r.save(ctx, x, refusal(it, cloud.E(cloud.Conflict, "JOB_LINE_DONE")), true)
}

// later leaves a row for another try, or gives it up.
func (r *runner) later(ctx context.Context, x cloud.JobRow, it item, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.mu.Lock()
	r.tries[x.Row]++
	n := r.tries[x.Row]
	r.mu.Unlock()
	r.cfg.Log.Warn("row of a job is not done", "job", r.j.ID, "row", x.Row, "try", n, "error", err)
	if n < maxTries {
		return nil
	}
	e := cloud.Shown(err)
	if e == nil {
		e = cloud.E(cloud.Internal, "INTERNAL_ERROR")
	}
	return r.save(ctx, x, refusal(it, e), true)
}
