package sender

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
)

// Waits are the waits after the first, second, … failed attempt: 30 s, 2, 8, 32
// and 128 min, 8.5 and 34 h, each ±20 %. A delivery of the account channel has
// attempts for the first five of them, one of a provider channel for all.
func Waits() []time.Duration {
	waits := make([]time.Duration, 7)
	for i := range waits {
		waits[i] = 30 * time.Second << (2 * i)
	}
	return waits
}

const (
	jitter        = 0.2
	overloadWait  = 60 * time.Second // least wait when the receiver says it is overloaded
	maxRetryAfter = time.Hour
)

// Reasons in the delivery log for what did not go well; beside them stand the
// error codes of attempts.
const (
	ReasonGone        = "gone"             // the receiver answered 410
	ReasonSandboxOff  = "sandbox_disabled" // sandbox event, delivery of those is off
	ReasonNoEndpoint  = "endpoint_removed"
	ReasonDisabled    = "endpoint_disabled"
	ReasonPaused      = "paused"
	ReasonOutOfTries  = "attempts_used_up"
	ReasonUnsentError = "not_sendable" // ids or secret that cannot be signed
	ReasonSuperseded  = "superseded"   // of events about a state something newer is sent
	ReasonAborted     = "aborted"      // the receiver asked for no more attempts
	ReasonSuspended   = "suspended"    // the platform suspended the business; it waits
	ReasonProxy       = "proxy"        // the deployment's proxy made no connection
)

// What a receiver may ask for by the header Webhook-Delivery of an answer: no
// more attempts of this delivery, or no more deliveries at all for the present.
const (
	directiveAbort   = "abort"
	directiveDisable = "disable"
)

// suspendedWait is how often a delivery of a suspended business is looked at.
const suspendedWait = 5 * time.Minute

// outcome is what follows from an attempt.
type outcome struct {
	state  cloud.OutboxState
	next   time.Time // when state is retrying
	reason string
}

// nextState decides what follows from an answer, or from code when there was none.
// made counts this attempt; random is uniform in [0, 1). The wait is measured
// from now, the end of the attempt.
func nextState(now time.Time, waits []time.Duration, w *cloud.OutboxWork, made int, a *fetch.Answer, random float64) outcome {
	switch {
	case a.Code == "":
		return outcome{state: cloud.OutboxSuccess}
	case a.Code == fetch.CodeBlocked && !a.ByProxy: // a proxy's rules may be changed for a new receiver
		return outcome{state: ended(w), reason: fetch.CodeBlocked}
	case a.Status == http.StatusGone:
		return outcome{state: ended(w), reason: ReasonGone}
	case a.Directive == directiveAbort, a.Directive == directiveDisable && w.Event.Test: // which pauses nothing
		return outcome{state: ended(w), reason: ReasonAborted}
	case made >= w.Delivery.MaxAttempts || made > len(waits):
		return outcome{state: ended(w), reason: ReasonOutOfTries}
	case a.Directive == directiveDisable:
		return outcome{state: cloud.OutboxPaused, reason: ReasonPaused}
	}
	wait := time.Duration(float64(waits[made-1]) * (1 - jitter + 2*jitter*random))
	if overloaded(a.Status) {
		wait = max(wait, overloadWait)
	}
	if after, ok := retryAfter(a.RetryAfter, now); ok {
		wait = max(wait, min(after, maxRetryAfter))
	}
	return outcome{cloud.OutboxRetrying, now.Add(wait), a.Code}
}

// ended is the state of a delivery that is given up: a dead letter of a provider,
// or failed, as in the account channel or by hand.
func ended(w *cloud.OutboxWork) cloud.OutboxState {
	if w.Delivery.ReplayOf != 0 || w.Event.Channel == cloud.ChannelAccount {
		return cloud.OutboxFailed
	}
	return cloud.OutboxDead
}

func overloaded(status int) bool {
	switch status {
	case 408, 425, 429, 502, 503, 504:
		return true
	}
	return false
}

// retryAfter reads Retry-After: seconds, a fraction rounded up, or an HTTP date.
// Nonsense and the past are not ok.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if value == "" || len(value) > 64 {
		return 0, false
	}
	if strings.Trim(value, "0123456789.") == "" {
		sec, err := strconv.ParseFloat(value, 64)
		if err != nil || sec <= 0 {
			return 0, false
		}
		if sec > maxRetryAfter.Seconds() {
			return maxRetryAfter, true
		}
		whole := time.Duration(sec)
		if float64(whole) < sec {
			whole++
		}
		return whole * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil || !at.After(now) {
		return 0, false
	}
	return min(at.Sub(now), maxRetryAfter), true
}
