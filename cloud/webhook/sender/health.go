package sender

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

// Health is what the store keeps of how receivers are doing.
type Health interface {
	NoteHealth(ctx context.Context, tallies []cloud.EndpointTally) (failing []cloud.EndpointHealth, err error)
	FindHealth(ctx context.Context, id cloud.EndpointID) (cloud.EndpointHealth, error)
	WarnEndpoint(ctx context.Context, id cloud.EndpointID, percent int, a cloud.Audit) (first bool, err error)
	EndOldPauses(ctx context.Context, now time.Time) error
	PauseEndpoint(ctx context.Context, id cloud.EndpointID, now time.Time, a cloud.Audit) (first bool, err error)
	CountEndpoints(ctx context.Context, now time.Time) (status, overlap []cloud.EndpointCount, err error)
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
}

// pauses are the rules by which a receiver is paused: nothing but failures for
// so long, and so many of them. One success begins anew.
var pauses = []struct {
	span     time.Duration
	failures int
}{{24 * time.Hour, 50}, {5 * 24 * time.Hour, 10}}

// warnings are the percentages of the way to a pause at which owners are warned.
var warnings = []int{90, 70, 50}

const (
	tellEvery   = time.Hour // of what is given up, for one receiver
	manyBlocked = 10        // refused addresses of one account in a minute
)

// blockedCount counts what of one account was refused in one minute.
type blockedCount struct {
	minute int64
	n      int
}

// noteBlocked counts a refused address, and warns of an account that has many.
func (d *Dispatcher) noteBlocked(b cloud.BusinessID) {
	minute := time.Now().Unix() / 60
	d.mu.Lock()
	c := d.blocked[b]
	if c.minute != minute {
		c = blockedCount{minute: minute}
	}
	c.n++
	d.blocked[b] = c
	d.mu.Unlock()
	if c.n == manyBlocked+1 {
		d.log.Warn("many webhooks of one account go to refused addresses", "business", b)
	}
}

// towardsPause is how much of the way to a pause a receiver has gone, in
// percent; 100 and more pause it.
func towardsPause(h cloud.EndpointHealth, now time.Time) int {
	if h.Failures == 0 || h.FailingSince.IsZero() {
		return 0
	}
	most := 0.0
	for _, rule := range pauses {
		most = max(most, min(float64(now.Sub(h.FailingSince))/float64(rule.span), float64(h.Failures)/float64(rule.failures)))
	}
	return int(most * 100)
}

// tally counts one attempt for the health of its receiver.
func (d *Dispatcher) tally(r *result) {
	if !r.counts {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	hour := r.ended.Unix() / 3600
	t := d.tallies[r.endpoint]
	if t == nil || t.URL != r.url {
		t = &cloud.EndpointTally{EndpointID: r.endpoint, URL: r.url, Hour: hour}
		d.tallies[r.endpoint] = t
	}
	t.Attempts++
	if r.Attempt.ErrorCode == "" {
		t.SucceededAt, t.FailingSince, t.Streak = r.ended, time.Time{}, 0
		return
	}
	t.Failures++
	t.FailedAt = r.ended
	if t.Streak++; t.Streak == 1 {
		t.FailingSince = r.ended
	}
}

// noteHealth stores what was counted, and warns of or pauses receivers that do
// nothing but fail.
func (d *Dispatcher) noteHealth() {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit-fetch.Timeout)
	defer cancel()
	d.mu.Lock()
	tallies := make([]cloud.EndpointTally, 0, len(d.tallies))
	for _, t := range d.tallies {
		tallies = append(tallies, *t)
	}
	clear(d.tallies)
	d.mu.Unlock()
	if len(tallies) == 0 {
		return
	}
	failing, err := d.cfg.Store.NoteHealth(ctx, tallies)
	if err != nil { // what is lost is some seconds of statistics
		d.log.Warn("storing the health of webhook endpoints failed", "error", err)
		return
	}
	now := time.Now()
	for _, h := range failing {
		if err := d.judgeHealth(ctx, h, now); err != nil {
			d.log.Warn("warning of a failing webhook endpoint failed", "endpoint", h.EndpointID, "error", err)
		}
	}
}

func (d *Dispatcher) judgeHealth(ctx context.Context, h cloud.EndpointHealth, now time.Time) error {
	gone := towardsPause(h, now)
	if gone < warnings[len(warnings)-1] {
		return nil
	}
	ep, err := d.endpoint(ctx, h.EndpointID)
	if err != nil || ep.removed {
		return err
	}
	if gone >= 100 {
		first, err := d.cfg.Store.PauseEndpoint(ctx, h.EndpointID, now, notice(&ep.Endpoint, "webhook_url_paused", now, h))
		if first {
			d.refresh(h.EndpointID)
			d.log.Warn("a webhook endpoint is paused: all its deliveries failed", "endpoint", h.EndpointID, "business", ep.BusinessID, "failures", h.Failures)
		}
		return err
	}
	for _, percent := range warnings {
		if gone >= percent {
			if h.Warned < percent {
				_, err = d.cfg.Store.WarnEndpoint(ctx, h.EndpointID, percent, notice(&ep.Endpoint, "webhook_url_failing", now, h))
			}
			return err
		}
	}
	return nil
}

// notice is the audit line that tells an owner about an endpoint's health.
func notice(ep *cloud.Endpoint, action string, now time.Time, h cloud.EndpointHealth) cloud.Audit {
	detail, _ := json.Marshal(map[string]any{"failures": h.Failures, "failing_since": h.FailingSince, "percent": min(towardsPause(h, now), 100)}) // never fails
	return cloud.Audit{BusinessID: ep.BusinessID, At: now, Actor: "system", Action: action, Target: "endpoint:" + strconv.FormatInt(int64(ep.ID), 10), Detail: string(detail)}
}

// tellGivenUp leaves an audit line about a delivery that is given up, at most
// one per receiver and hour.
func (d *Dispatcher) tellGivenUp(ctx context.Context, r *result) {
	now := time.Now()
	d.mu.Lock()
	recent := now.Sub(d.ownerNotifiedAt[r.endpoint]) < tellEvery
	if !recent {
		d.ownerNotifiedAt[r.endpoint] = now
	}
	d.mu.Unlock()
	if recent {
		return
	}
	detail, _ := json.Marshal(map[string]any{"delivery": r.ID, "reason": r.Reason}) // never fails
	a := cloud.Audit{BusinessID: r.business, At: now, Actor: "system", Action: "webhook_given_up", Target: "endpoint:" + strconv.FormatInt(int64(r.endpoint), 10), Detail: string(detail)}
	err := d.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{a}}}, nil
	})
	if err != nil {
		d.log.Warn("reporting a webhook delivery that was given up failed", "endpoint", r.endpoint, "error", err)
	}
}

// gaugeEndpoints counts receivers by status, and secrets that overlap.
func (d *Dispatcher) gaugeEndpoints(ctx context.Context) {
	status, overlap, err := d.cfg.Store.CountEndpoints(ctx, time.Now())
	if err != nil {
		return
	}
	d.metrics.endpoints.Reset()
	for _, c := range status {
		d.metrics.endpoints.WithLabelValues(c.Label).Set(float64(c.Count))
	}
	for _, c := range overlap {
		d.metrics.overlap.WithLabelValues(c.Label).Set(float64(c.Count))
	}
}
