package sender

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// SendNow sends a delivery that its caller has written as delivering, once and
// past all queues, to ep or where a sandbox event of ep goes, and stores the
// outcome. It says nothing about the receiver's health. Nothing is sent to an
// address that the guard refuses; the log says so.
func (d *Dispatcher) SendNow(ctx context.Context, ep cloud.Endpoint, w cloud.OutboxWork, tweak cloud.HookTweak) (cloud.OutboxResult, error) {
	k := d.known(ep, time.Now())
	var r result
	if v, ok := refuse(&k, &w); !ok && v.reason == ReasonSandboxOff {
		r.OutboxResult = uncountedResult(&w, v)
	} else {
		_, t, urlErr := k.route(w.Event.Test)
		r, _, _ = d.try(ctx, &k.Endpoint, t, urlErr, &w, tweak)
	}
	if r.State != cloud.OutboxSuccess {
		r.State, r.NextAt = cloud.OutboxFailed, time.Time{} // once is once
	}
	if _, err := d.cfg.Store.FinishOutbox(context.WithoutCancel(ctx), []cloud.OutboxResult{r.OutboxResult}); err != nil {
		return r.OutboxResult, fmt.Errorf("store outcome of delivery %d: %w", w.Delivery.ID, err)
	}
	return r.OutboxResult, nil
}

// Held says why this node sends nothing to an account's address at present, and until when:
// breaker, after failures, retry_after, as the receiver asked for, or proxy, as the
// deployment's proxy makes no connection to it; "" when it does. After a breaker's time one delivery is tried.
func (d *Dispatcher) Held(account cloud.BusinessID, url string) (reason string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues.holds(address{account, url}, time.Now())
}
