package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
)

// CheckupOutput says how a receiver took a series of tests.
type CheckupOutput struct {
	Result bool    `json:"result"`
	Checks []Check `json:"checks"`
}

// Check is one test of a series.
type Check struct {
	Name     string         `json:"name"`
	Expected string         `json:"expected"` // accepted, refused
	Got      string         `json:"got"`      // an HTTP status, or why there was none
	OK       bool           `json:"ok"`
	LogID    cloud.OutboxID `json:"log_id"`
}

const (
	accepted = "accepted"
	refused  = "refused"
	tooOld   = 10 * time.Minute
)

// checkup is what a receiver that verifies signatures, times and ids takes and
// refuses. Each changes a send that would be right.
var checkup = []struct {
	name, expected string
	change         func(e *cloud.Endpoint, t *cloud.HookTweak)
}{
	{"valid", accepted, func(*cloud.Endpoint, *cloud.HookTweak) {}},
	{"wrong_key", refused, func(e *cloud.Endpoint, _ *cloud.HookTweak) {
		e.Secret, e.SecretNext = []byte(NewSecret()), nil
		if e.Signature == cloud.SignatureAsymmetric {
			e.SigningKey = make([]byte, ed25519.SeedSize)
			_, _ = rand.Read(e.SigningKey) // never fails
		}
	}},
	{"changed_body", refused, func(_ *cloud.Endpoint, t *cloud.HookTweak) { t.Body = []byte{} }},
	{"old_timestamp", refused, func(_ *cloud.Endpoint, t *cloud.HookTweak) { t.Age = tooOld }},
	{"repeated_id", accepted, func(*cloud.Endpoint, *cloud.HookTweak) {}},
	{"both_keys", accepted, func(e *cloud.Endpoint, _ *cloud.HookTweak) {
		if len(e.SecretNext) == 0 {
			e.SecretNext, e.NextUntil = []byte(NewSecret()), time.Now().Add(time.Hour)
		}
	}},
	{"unknown_signature", accepted, func(_ *cloud.Endpoint, t *cloud.HookTweak) { t.Header = "X-Webhook-Signature-V9: 00" }},
	{"structured", accepted, func(e *cloud.Endpoint, _ *cloud.HookTweak) { e.Format = cloud.FormatStructured }},
}

// CheckUp sends a series of tests to an address of the settings and says whether
// each was taken as it should be. It ends with the first when nothing answers.
// Errors: ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_URL_NOT_FOUND.
func (s accountHooks) CheckUp(ctx context.Context, c cloud.Caller, in URLInput) (out CheckupOutput, err error) {
	var to cloud.Endpoint
	err = s.store.Look(ctx, func(v cloud.View) error {
		e, own, business, err := s.ownURL(v, c, in)
		to = e
		sign(&to, own, business)
		return err
	})
	if err != nil {
		return out, err
	}
	out = CheckupOutput{Result: true, Checks: []Check{}}
	if p := cloud.PreviewOf(ctx); p != nil { // nothing is sent
		for range checkup {
			p.SentTest(sampleEvent, host(to.URL))
		}
		return out, nil
	}
	var first cloud.OutboxWork
	for _, x := range checkup {
		e, tweak := to, cloud.HookTweak{}
		x.change(&e, &tweak)
		work, err := s.writeTest(ctx, c, e, sampleEvent)
		if err != nil {
			return out, err
		}
		switch x.name {
		case "valid":
			first = work
		case "repeated_id": // the same again, as after an answer that was lost
			work.Event, work.Delivery.WebhookID = first.Event, first.Delivery.WebhookID
		case "changed_body":
			tweak.Body = bytes.Replace(work.Event.Body, []byte(`"test":true`), []byte(`"test":1234`), 1)
		}
		r, err := s.sender.SendNow(ctx, e, work, tweak)
		if err != nil {
			return out, fmt.Errorf("check %s: %w", x.name, err)
		}
		k := Check{Name: x.name, Expected: x.expected, Got: r.Reason, LogID: work.Delivery.ID, OK: (r.State == cloud.OutboxSuccess) == (x.expected == accepted)}
		answered := r.Attempt != nil && r.Attempt.HTTPStatus != 0
		if answered {
			k.Got = strconv.Itoa(r.Attempt.HTTPStatus)
		} else if k.OK = false; r.Attempt != nil {
			k.Got = r.Attempt.ErrorCode
		}
		if out.Checks = append(out.Checks, k); !answered && x.name == "valid" {
			break
		}
	}
	return out, nil
}
