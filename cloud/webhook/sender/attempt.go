package sender

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/span"
)

// attempt sends one delivery once, or finds why it is not sent, and says what
// follows. Address, secret and settings are those of this moment.
func (d *Dispatcher) attempt(it *item) (result, fetch.Answer, outcome) {
	w, now := &it.work, time.Now()
	ep, err := d.endpoint(context.Background(), w.Delivery.EndpointID)
	if err != nil {
		// Postponed, not an attempt.
		v := outcome{cloud.OutboxRetrying, now.Add(pollEvery), "settings_unreadable"}
		return d.unsent(w, v), fetch.Answer{}, v
	}
	if ep.Suspended && !ep.removed { // postponed as well, however often
		v := outcome{cloud.OutboxRetrying, now.Add(suspendedWait), ReasonSuspended}
		return d.unsent(w, v), fetch.Answer{}, v
	}
	if v, ok := refuse(&ep, w); !ok {
		return d.unsent(w, v), fetch.Answer{}, v
	}
	if w.Event.Supersedes() {
		if newer, err := d.cfg.Store.Superseded(context.Background(), *w); err == nil && newer {
			v := outcome{state: cloud.OutboxFailed, reason: ReasonSuperseded}
			return d.unsent(w, v), fetch.Answer{}, v
		}
	}
	url, t, urlErr := ep.route(w.Event.Test)
	d.mu.Lock()
	limitAttempts(d, address{ep.BusinessID, url}, &ep.Endpoint) // as it is now
	d.mu.Unlock()
	r, a, v := d.try(context.Background(), &ep.Endpoint, t, urlErr, w, cloud.HookTweak{})
	if at := r.Attempt; at != nil {
		at.PlannedAt, at.WaitReason = it.planned(), it.waited
	}
	r.endpoint, r.url, r.business, r.ended = ep.ID, url, ep.BusinessID, time.Now()
	if !w.Event.Test { // which says nothing about the receiver
		r.gone, r.pause = v.reason == ReasonGone, a.Directive == directiveDisable
		r.healthy = v.state == cloud.OutboxSuccess && ep.Status != "healthy"
		r.counts = !a.Unsent() && r.Attempt != nil
	}
	d.metrics.ended(w, &r.OutboxResult)
	return r, a, v
}

// try sends one delivery to an address of ep, unless urlErr says that it cannot
// be one, and says what follows. The outcome is not stored yet.
func (d *Dispatcher) try(ctx context.Context, ep *cloud.Endpoint, t *fetch.Target, urlErr error, w *cloud.OutboxWork, tweak cloud.HookTweak) (r result, a fetch.Answer, v outcome) {
	now, made, uid := time.Now(), w.Delivery.Attempts+1, uuid.NewString()
	var req request
	var follow string
	if w.Event.Trace != "" {
		followed, sp := d.cfg.Spans.Start(span.Join(ctx, w.Event.Trace), "webhook "+w.Event.Event, trace.SpanKindClient, attribute.Int64("postern.endpoint", int64(ep.ID)),
			attribute.Int64("postern.delivery", int64(w.Delivery.ID)), attribute.Int("postern.attempt", made), attribute.Int64("postern.waited_ms", now.Sub(w.Event.CreatedAt).Milliseconds()))
		ctx, follow = followed, span.Header(followed)
		defer func() {
			sp.SetAttributes(attribute.Int("http.response.status_code", a.Status), attribute.String("postern.outcome", string(v.state)), attribute.String("postern.reason", v.reason))
			sp.End()
		}()
	}
	a = fetch.Answer{Code: fetch.CodeBlocked, Reason: fetch.ErrBlocked.Error()}
	if urlErr == nil {
		var err error
		if req, err = (message{t, ep, w, d.cfg.BaseURL, uid, made, now.Add(-tweak.Age), d.cfg.SigningKey, follow}).build(); err != nil {
			v = outcome{ended(w), time.Time{}, ReasonUnsentError}
			r.OutboxResult = uncountedResult(w, v)
			return r, fetch.Answer{}, v
		}
		if tweak.Body != nil {
			req.body = tweak.Body
		}
		if tweak.Header != "" {
			req.head = strings.TrimSuffix(req.head, "\r\n") + tweak.Header + "\r\n\r\n"
		}
		d.metrics.size(w, req)
		a = d.client.Post(ctx, t, []byte(req.head), req.body)
	}
	end := time.Now()
	if a.Code == fetch.CodeProxy { // postponed, not an attempt
		v = outcome{cloud.OutboxRetrying, end.Add(a.Wait), ReasonProxy}
		r.OutboxResult = uncountedResult(w, v)
		return r, a, v
	}
	if a.RetryAfter != "" {
		if _, ok := retryAfter(a.RetryAfter, end); !ok {
			d.log.Info("Retry-After of a webhook endpoint is not valid", "endpoint", ep.ID, "value", a.RetryAfter[:min(len(a.RetryAfter), 64)])
		}
	}
	v = nextState(end, d.cfg.Waits, w, made, &a, rand.Float64())
	d.metrics.attempt(w, &a)
	r.OutboxResult = uncountedResult(w, v)
	r.Attempts = made
	r.Attempt = &cloud.OutboxAttempt{
		DeliveryID: w.Delivery.ID, Attempt: made, At: now, URL: maskedURL(t), DeliveryUID: uid, HTTPStatus: a.Status,
		Duration: a.Phases.Total, ErrorCode: a.Code, Error: a.Reason, RequestHead: logHead(t, req.head),
		AnswerHead: a.Head, AnswerBody: a.Body, Reused: a.Reused, Repeated: a.Repeated, RetryAfter: a.RetryAfter,
		DNS: a.Phases.DNS, Connect: a.Phases.Connect, TLS: a.Phases.TLS, FirstByte: a.Phases.FirstByte, RemoteIP: a.Remote,
	}
	if v.state == cloud.OutboxSuccess {
		r.DeliveredAt = end
	}
	return r, a, v
}

// uncountedResult is the result of a delivery by an outcome when no attempt is counted.
func uncountedResult(w *cloud.OutboxWork, v outcome) cloud.OutboxResult {
	return cloud.OutboxResult{ID: w.Delivery.ID, Generation: w.Delivery.Generation, State: v.state, Attempts: w.Delivery.Attempts, NextAt: v.next, Reason: v.reason}
}

// unsent is the result of a delivery for which nothing went out.
func (d *Dispatcher) unsent(w *cloud.OutboxWork, v outcome) result {
	r := result{OutboxResult: uncountedResult(w, v)}
	d.metrics.ended(w, &r.OutboxResult)
	return r
}

// refuse finds out whether the receiver's settings let a delivery go.
func refuse(ep *knownEndpoint, w *cloud.OutboxWork) (v outcome, ok bool) {
	switch {
	case ep.removed:
		return outcome{state: cloud.OutboxFailed, reason: ReasonNoEndpoint}, false
	case !ep.Enabled:
		return outcome{state: cloud.OutboxFailed, reason: ReasonDisabled}, false
	case ep.Status == "paused":
		return outcome{state: cloud.OutboxPaused, reason: ReasonPaused}, false
	case w.Event.Test && !ep.SandboxEnabled:
		return outcome{state: cloud.OutboxFailed, reason: ReasonSandboxOff}, false
	}
	return outcome{}, true
}

func maskedURL(t *fetch.Target) string {
	if t == nil {
		return ""
	}
	return t.Masked
}

// logHead is the head as sent, its lines ended by newlines and the request
// line's query masked.
func logHead(t *fetch.Target, head string) string {
	if head == "" {
		return ""
	}
	lines := strings.TrimRight(strings.ReplaceAll(head, "\r\n", "\n"), "\n")
	_, rest, _ := strings.Cut(lines, "\n")
	return "POST " + t.Masked + "\n" + rest
}
