package webhook

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// BulkInput chooses deliveries that are sent again.
type BulkInput struct {
	From   string `json:"from" format:"moment" doc:"Of creation; empty, and at most: 14 days ago"`
	To     string `json:"to" format:"moment" doc:"Excluded; empty: now"`
	Event  string `json:"event"`
	Status string `json:"status" enum:"success,retrying,failed,paused"`
	URLID  int64  `json:"url_id" doc:"An address of the settings, by its id"`
	DryRun bool   `json:"dry_run" doc:"Only count"`
}

// BulkOutput says how many deliveries are chosen, and which job sends them; a
// dry run has none.
type BulkOutput struct {
	Result bool    `json:"result"`
	Count  int     `json:"count"`
	JobID  *string `json:"job_id"`
}

// JobInput names a job.
type JobInput struct {
	JobID string `path:"job_id"`
}

// JobOutput shows a job.
type JobOutput struct {
	Result     bool    `json:"result"`
	JobID      string  `json:"job_id"`
	Status     string  `json:"status"` // running, done, cancelled
	Count      int     `json:"count"`  // when it began
	Sent       int     `json:"sent"`   // so far
	CreatedAt  *string `json:"created_at"`
	FinishedAt *string `json:"finished_at"`
}

const (
	replayBack  = 14 * 24 * time.Hour
	replayStep  = 50 // deliveries of one job in a second
	replayEvery = time.Second
)

// ReplayMany sends again what a filter chooses, in the background, oldest first
// and at its receivers' pace; with DryRun it only counts. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, VALIDATION_FAILED.
func (s deliveryLog) ReplayMany(ctx context.Context, c cloud.Caller, in BulkInput) (out BulkOutput, err error) {
	o, err := owner(c)
	if err != nil {
		return out, err
	}
	zone, err := s.zone(ctx, o.BusinessID)
	if err != nil {
		return out, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	p := problems{}
	f := cloud.ReplayFilter{From: check.Moment(in.From, zone), To: check.Moment(in.To, zone), Event: in.Event, State: cloud.OutboxState(in.Status), EndpointID: cloud.EndpointID(in.URLID)}
	if f.From.IsZero() {
		f.From = now.Add(-replayBack)
	}
	if f.To.IsZero() || f.To.After(now) {
		f.To = now
	}
	if now.Sub(f.From) > replayBack+time.Minute {
		p.add("from", "The time must not be more than 14 days ago.")
	}
	if err := p.err(); err != nil {
		return out, err
	}
	j := cloud.ReplayJob{ID: newJobID(), BusinessID: o.BusinessID, CustomerID: o.CustomerID, Filter: f, Status: cloud.ReplayRunning, PositionAt: time.UnixMilli(0), CreatedAt: now}
	if j.Total, err = s.store.CountReplay(ctx, j); err != nil {
		return out, fmt.Errorf("count deliveries: %w", err)
	}
	out = BulkOutput{Result: true, Count: j.Total}
	if in.DryRun || j.Total == 0 {
		return out, nil
	}
	out.JobID = &j.ID
	err = s.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		a := audit(c, o.BusinessID, now, "webhook_replay_started", 0)
		a.Target, a.Detail = "webhook_replay:"+j.ID, fmt.Sprintf(`{"count":%d}`, j.Total)
		return &cloud.Changes{ReplayChanges: cloud.ReplayChanges{ReplayJobs: []cloud.ReplayJob{j}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}, Answer: out}, nil
	})
	return out, err
}

func newJobID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "rpl_" + hex.EncodeToString(b[:])
}

// FindReplay shows a job. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// WEBHOOK_REPLAY_NOT_FOUND.
func (s deliveryLog) FindReplay(ctx context.Context, c cloud.Caller, in JobInput) (out JobOutput, err error) {
	j, err := s.ownJob(ctx, c, in)
	if err != nil {
		return out, err
	}
	l, err := s.zone(ctx, j.BusinessID)
	return JobOutput{Result: err == nil, JobID: j.ID, Status: j.Status, Count: j.Total, Sent: j.Sent, CreatedAt: cloud.Stamp(j.CreatedAt, l), FinishedAt: cloud.Stamp(j.FinishedAt, l)}, err
}

// CancelReplay ends a job; what it has put on its way is sent. One that has
// ended stays as it is. Errors: ACCOUNT_TYPE_NOT_ALLOWED,
// WEBHOOK_REPLAY_NOT_FOUND.
func (s deliveryLog) CancelReplay(ctx context.Context, c cloud.Caller, in JobInput) (out JobOutput, err error) {
	j, err := s.ownJob(ctx, c, in)
	if err != nil {
		return out, err
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		a := audit(c, j.BusinessID, now, "webhook_replay_cancelled", 0)
		a.Target = "webhook_replay:" + j.ID
		j.Status, j.FinishedAt = cloud.ReplayCancelled, now
		return &cloud.Changes{ReplayChanges: cloud.ReplayChanges{ReplayJobs: []cloud.ReplayJob{j}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}}, nil
	})
	if err != nil && !errors.Is(err, cloud.ErrStale) { // stale: it has ended
		return out, err
	}
	return s.FindReplay(ctx, c, in)
}

func (s deliveryLog) ownJob(ctx context.Context, c cloud.Caller, in JobInput) (j cloud.ReplayJob, err error) {
	o, err := owner(c)
	if err != nil {
		return j, err
	}
	j, err = s.store.FindReplay(ctx, in.JobID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (j.BusinessID != o.BusinessID || o.CustomerID != 0 && j.CustomerID != o.CustomerID) {
		return cloud.ReplayJob{}, cloud.E(cloud.NotFound, "WEBHOOK_REPLAY_NOT_FOUND")
	}
	return j, err
}

// Run moves the jobs on until ctx ends. Every node may run it.
func (s deliveryLog) Run(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(replayEvery)
	defer tick.Stop()
	for {
		jobs, err := s.store.OpenReplays(ctx)
		for _, j := range jobs { // each for itself: one that cannot go on holds up no other
			err = errors.Join(err, s.step(ctx, j))
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("sending webhooks again failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s deliveryLog) step(ctx context.Context, j cloud.ReplayJob) error {
	var ids []cloud.OutboxID
	err := s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		ids = make([]cloud.OutboxID, replayStep)
		for i := range ids {
			id, err := v.NewID(cloud.OutboxIDs)
			if err != nil {
				return nil, err
			}
			ids[i] = cloud.OutboxID(id)
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("replay %s: %w", j.ID, err)
	}
	if err := s.store.StepReplay(ctx, j, ids, time.Now().UTC()); err != nil {
		return fmt.Errorf("replay %s: %w", j.ID, err)
	}
	return nil
}
