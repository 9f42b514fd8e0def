package webhook

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
)

// attempt sends one delivery once, or finds why it is not sent, and says what
// follows. Address, secret and settings are those of this moment.
func (d *Dispatcher) attempt(w *cloud.OutboxWork) (result, answer, verdict) {
	now := time.Now()
	ep, err := d.endpoint(context.Background(), w.Delivery.EndpointID)
	if err != nil {
		// Postponed, not an attempt.
		v := verdict{cloud.OutboxRetrying, now.Add(pollEvery), "settings_unreadable"}
		return d.unsent(w, v), answer{}, v
	}
	if v, ok := refuse(&ep, w); !ok {
		return d.unsent(w, v), answer{}, v
	}
	_, t, urlErr := ep.route(w.Event.Test)
	made := w.Delivery.Attempts + 1
	uid := uuid.NewString()
	var req request
	a := answer{code: CodeBlocked, err: ErrBlocked.Error()}
	if urlErr == nil {
		if req, err = (message{t, &ep.Endpoint, w, d.cfg.BaseURL, uid, made, now}).build(); err != nil {
			v := verdict{ended(w), time.Time{}, ReasonUnsentError}
			return d.unsent(w, v), answer{}, v
		}
		d.metrics.size(w, req)
		a = d.client.post(context.Background(), t, []byte(req.head), req.body)
	}
	end := time.Now()
	v := judge(end, d.cfg.Waits, w, made, &a, rand.Float64())
	d.metrics.attempt(w, &a)
	r := result{endpoint: ep.ID, gone: v.reason == ReasonGone, healthy: v.state == cloud.OutboxSuccess && ep.Status != "healthy"}
	r.OutboxResult = cloud.OutboxResult{
		ID: w.Delivery.ID, Generation: w.Delivery.Generation, State: v.state, Attempts: made, NextAt: v.next, Reason: v.reason,
		Attempt: &cloud.OutboxAttempt{
			DeliveryID: w.Delivery.ID, Attempt: made, At: now, URL: maskedURL(t), DeliveryUID: uid, HTTPStatus: a.status,
			Duration: a.phases.total, ErrorCode: a.code, Error: a.err, RequestHead: logHead(t, req.head),
			AnswerHead: a.head, AnswerBody: a.body, Reused: a.reused, Repeated: a.repeated, RetryAfter: a.retryAfter,
		},
	}
	if v.state == cloud.OutboxSuccess {
		r.DeliveredAt = end
	}
	d.metrics.ended(w, &r.OutboxResult)
	return r, a, v
}

// unsent is the result of a delivery for which nothing went out.
func (d *Dispatcher) unsent(w *cloud.OutboxWork, v verdict) result {
	r := result{OutboxResult: cloud.OutboxResult{ID: w.Delivery.ID, Generation: w.Delivery.Generation, State: v.state,
		Attempts: w.Delivery.Attempts, NextAt: v.next, Reason: v.reason}}
	d.metrics.ended(w, &r.OutboxResult)
	return r
}

// refuse finds out whether the receiver's settings let a delivery go.
func refuse(ep *knownEndpoint, w *cloud.OutboxWork) (v verdict, ok bool) {
	switch {
	case ep.removed:
		return verdict{state: cloud.OutboxFailed, reason: ReasonNoEndpoint}, false
	case !ep.Enabled:
		return verdict{state: cloud.OutboxFailed, reason: ReasonDisabled}, false
	case ep.Status == "paused":
		return verdict{state: cloud.OutboxPaused, reason: ReasonPaused}, false
	case w.Event.Test && !ep.SandboxEnabled:
		return verdict{state: cloud.OutboxFailed, reason: ReasonSandboxOff}, false
	}
	return verdict{}, true
}

func maskedURL(t *Target) string {
	if t == nil {
		return ""
	}
	return t.Masked
}

// logHead is the head as sent, its lines ended by newlines and the request
// line's query masked.
func logHead(t *Target, head string) string {
	if head == "" {
		return ""
	}
	lines := strings.TrimRight(strings.ReplaceAll(head, "\r\n", "\n"), "\n")
	_, rest, _ := strings.Cut(lines, "\n")
	return "POST " + t.Masked + "\n" + rest
}
