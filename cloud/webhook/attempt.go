package webhook

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/signature"
)

const userAgent = "TMS-Webhooks/1"

// maxBody is the largest body that is sent.
const maxBody = 256 << 10

// attempt sends one delivery once, or finds why it is not sent, and says what
// follows. Address, secret and settings are those of this moment.
func (d *Dispatcher) attempt(it *item) (result, answer, verdict) {
	w, now := &it.work, time.Now()
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
	r, a, v := d.try(context.Background(), &ep.Endpoint, t, urlErr, w, cloud.HookTweak{})
	if at := r.Attempt; at != nil {
		at.PlannedAt, at.WaitReason = it.planned(), it.waited
	}
	r.endpoint, r.business, r.ended = ep.ID, ep.BusinessID, time.Now()
	r.gone, r.pause = v.reason == ReasonGone, a.directive == directiveDisable
	r.healthy = v.state == cloud.OutboxSuccess && ep.Status != "healthy"
	r.counts = !w.Event.Test && !a.unsent() && r.Attempt != nil
	d.metrics.ended(w, &r.OutboxResult)
	return r, a, v
}

// try sends one delivery to an address of ep, unless urlErr says that it cannot
// be one, and says what follows. The outcome is not stored yet.
func (d *Dispatcher) try(ctx context.Context, ep *cloud.Endpoint, t *Target, urlErr error, w *cloud.OutboxWork, tweak cloud.HookTweak) (r result, a answer, v verdict) {
	now, made, uid := time.Now(), w.Delivery.Attempts+1, uuid.NewString()
	var head string
	a = answer{code: CodeBlocked, err: ErrBlocked.Error()}
	if urlErr == nil {
		var err error
		if head, err = buildHead(t, ep, w, uid, made, now.Add(-tweak.Age)); err != nil {
			v = verdict{ended(w), time.Time{}, ReasonUnsentError}
			r.OutboxResult = outcome(w, v)
			return r, answer{}, v
		}
		body := w.Event.Body
		if tweak.Body != nil {
			body = tweak.Body
		}
		if tweak.Header != "" {
			head = strings.TrimSuffix(head, "\r\n") + tweak.Header + "\r\n\r\n"
		}
		a = d.client.post(ctx, t, []byte(head), body)
	}
	end := time.Now()
	v = judge(end, d.cfg.Waits, w, made, &a, rand.Float64())
	d.metrics.attempt(w, &a)
	r.OutboxResult = outcome(w, v)
	r.Attempts = made
	r.Attempt = &cloud.OutboxAttempt{
		DeliveryID: w.Delivery.ID, Attempt: made, At: now, URL: maskedURL(t), DeliveryUID: uid, HTTPStatus: a.status,
		Duration: a.phases.total, ErrorCode: a.code, Error: a.err, RequestHead: logHead(t, head),
		AnswerHead: a.head, AnswerBody: a.body, Reused: a.reused, Repeated: a.repeated, RetryAfter: a.retryAfter,
		DNS: a.phases.dns, Connect: a.phases.connect, TLS: a.phases.tls, FirstByte: a.phases.firstByte, RemoteIP: a.remote,
	}
	if v.state == cloud.OutboxSuccess {
		r.DeliveredAt = end
	}
	return r, a, v
}

// outcome is what a verdict makes of a delivery when no attempt is counted.
func outcome(w *cloud.OutboxWork, v verdict) cloud.OutboxResult {
	return cloud.OutboxResult{ID: w.Delivery.ID, Generation: w.Delivery.Generation, State: v.state, Attempts: w.Delivery.Attempts, NextAt: v.next, Reason: v.reason}
}

// unsent is the result of a delivery for which nothing went out.
func (d *Dispatcher) unsent(w *cloud.OutboxWork, v verdict) result {
	r := result{OutboxResult: outcome(w, v)}
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

// buildHead is the head of a request:
//
//	POST path HTTP/1.1
//	Host, Content-Type, Content-Length, User-Agent
//	X-Webhook-Event, -Event-Id, -Id, -Timestamp, -Attempt
//	the signatures of the channel
//	X-Webhook-Test, -Replay        when they apply
func buildHead(t *Target, ep *cloud.Endpoint, w *cloud.OutboxWork, uid string, attempt int, now time.Time) (string, error) {
	body := w.Event.Body
	if len(ep.Secret) == 0 {
		return "", errors.New("the receiver has no secret")
	}
	if len(body) > maxBody {
		return "", errors.New("the body is too large")
	}
	var b strings.Builder
	b.Grow(1024)
	b.WriteString("POST " + t.Path + " HTTP/1.1\r\n")
	bad := false
	line := func(name, value string) {
		bad = bad || !headerValue(value)
		b.WriteString(name)
		b.WriteString(": ")
		b.WriteString(value)
		b.WriteString("\r\n")
	}
	line("Host", t.HostHeader())
	line("Content-Type", "application/json; charset=utf-8")
	line("Content-Length", strconv.Itoa(len(body)))
	line("User-Agent", userAgent)
	line("X-Webhook-Event", w.Event.Event)
	line("X-Webhook-Event-Id", w.Event.EventID)
	line("X-Webhook-Id", w.Delivery.WebhookID)
	line(signature.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	line("X-Webhook-Attempt", strconv.Itoa(attempt))
	switch {
	case ep.Scheme == cloud.SchemeHandoff:
		signHandoff(line, ep, body, now)
	case ep.Scheme == cloud.SchemeProvider, ep.Scheme == "" && w.Event.Channel != cloud.ChannelAccount:
		signProvider(line, ep, body, uid, now)
	default:
		signAccount(line, ep, body, now)
	}
	if w.Event.Test {
		line("X-Webhook-Test", "1")
	}
	if w.Delivery.ReplayOf != 0 {
		line("X-Webhook-Replay", "1")
	}
	b.WriteString("\r\n")
	if bad {
		return "", errors.New("an id holds other characters than printable ASCII")
	}
	return b.String(), nil
}

// signProvider writes the signatures of a provider channel:
//
//	X-Webhook-Delivery-Id
//	X-Webhook-Signature            current secret
//	X-Webhook-Signature-Next       next secret, during a rotation
//	X-Webhook-Content-Digest
func signProvider(line func(name, value string), ep *cloud.Endpoint, body []byte, uid string, now time.Time) {
	line(signature.HeaderDeliveryID, uid)
	current, next := ep.Secrets(now)
	line(signature.HeaderProvider, signature.Provider(current, now, uid, body))
	if next != nil {
		line(signature.HeaderProviderNext, signature.Provider(next, now, uid, body))
	}
	line(signature.HeaderDigest, signature.Digest(body))
}

// signAccount writes the signatures of the account channel:
//
//	Signature                 current secret
//	Signature-Next            next secret, during a rotation
//	X-Webhook-Signature-V2    next secret, then the current one
func signAccount(line func(name, value string), ep *cloud.Endpoint, body []byte, now time.Time) {
	current, next := ep.Secrets(now)
	line(signature.HeaderLegacy, signature.Legacy(current, body))
	keys := [][]byte{current}
	if next != nil {
		line(signature.HeaderLegacyNext, signature.Legacy(next, body))
		keys = [][]byte{next, current}
	}
	line(signature.HeaderV2, signature.V2(now, body, keys...))
}

// signHandoff writes the signature of the handoff protocol, which a test send
// may ask for.
func signHandoff(line func(name, value string), ep *cloud.Endpoint, body []byte, now time.Time) {
	current, _ := ep.Secrets(now)
	line(signature.HeaderHandoffTimestamp, strconv.FormatInt(now.Unix(), 10))
	line(signature.HeaderHandoff, signature.Handoff(current, now, body))
}

// headerValue reports whether a value can stand in a header as it is.
func headerValue(v string) bool {
	for _, c := range []byte(v) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return v != ""
}
