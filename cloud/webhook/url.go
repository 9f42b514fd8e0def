package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// URLInput names an address of the settings.
type URLInput struct {
	URLID int64 `path:"url_id"`
}

// ResumeInput names an address, and says what becomes of what was kept for it.
type ResumeInput struct {
	URLID int64  `path:"url_id" json:"-"`
	Mode  string `json:"mode" enum:"send,fail" doc:"What becomes of deliveries that were kept: send, which is usual, or fail"`
}

// URLHealth is an address of the settings and how it is doing.
type URLHealth struct {
	URLID         cloud.EndpointID `json:"url_id"`
	URL           string           `json:"url"`
	Settings      []string         `json:"settings"`
	Level         string           `json:"level"`
	CustomerID    *cloud.AccountID `json:"customer_id"`
	Status        string           `json:"status"` // healthy, degraded, paused, gone
	Since         *string          `json:"since"`
	LastSuccessAt *string          `json:"last_success_at"`
	LastFailureAt *string          `json:"last_failure_at"`
	FailureRate   *float64         `json:"failure_rate_24h"` // 0 to 1; null when nothing was tried
	Waiting       int              `json:"waiting"`
}

// URLsOutput lists the addresses that a caller sees.
type URLsOutput struct {
	Result bool        `json:"result"`
	URLs   []URLHealth `json:"urls"`
}

// URLOutput shows one address.
type URLOutput struct {
	Result bool      `json:"result"`
	URL    URLHealth `json:"url"`
}

const (
	statusPaused   = "paused"
	statusDegraded = "degraded"
	heldBreaker    = "breaker"  // by the sender, after failures
	reasonGivenUp  = "given_up" // of deliveries that a pause kept
)

// urlSeen is an address with the settings that name it.
type urlSeen struct {
	cloud.Endpoint
	settings []string
	held     string // why a sender leaves it alone for now
}

// seen lists the addresses in settings that a caller sees: staff those of the
// business and of all its customers, a customer its own.
func (s *core) seen(v cloud.View, c cloud.Caller) (out []urlSeen, err error) {
	o, err := owner(c)
	if err != nil {
		return nil, err
	}
	all, err := v.AccountEndpoints(o.BusinessID)
	if err != nil {
		return nil, err
	}
	known := map[cloud.AccountID]cloud.WebhookSettings{}
	for _, e := range all {
		if e.Kind == cloud.SubscriptionEndpoint && e.Enabled && (o.CustomerID == 0 || e.CustomerID == o.CustomerID) {
			out = append(out, urlSeen{Endpoint: e, settings: []string{cloud.HookSubscription}, held: s.held(e.BusinessID, e.URL).Why})
		}
		if e.Kind != cloud.AccountEndpoint || o.CustomerID != 0 && e.CustomerID != o.CustomerID {
			continue
		}
		level, ok := known[e.CustomerID]
		if !ok {
			if level, _, err = levels(v, o.BusinessID, e.CustomerID); err != nil {
				return nil, err
			}
			known[e.CustomerID] = level
		}
		if u := used(level, e.ID); len(u) > 0 {
			out = append(out, urlSeen{Endpoint: e, settings: u, held: s.held(e.BusinessID, e.URL).Why})
		}
	}
	return out, nil
}

// ownURL finds an address that a caller sees, with its level's settings and the
// business's. Error: WEBHOOK_URL_NOT_FOUND.
func (s *core) ownURL(v cloud.View, c cloud.Caller, in URLInput) (e cloud.Endpoint, own, business cloud.WebhookSettings, err error) {
	list, err := s.seen(v, c)
	if err != nil {
		return e, own, business, err
	}
	for _, u := range list {
		if u.ID == cloud.EndpointID(in.URLID) {
			own, business, err = levels(v, u.BusinessID, u.CustomerID)
			return u.Endpoint, own, business, err
		}
	}
	return e, own, business, cloud.E(cloud.NotFound, "WEBHOOK_URL_NOT_FOUND")
}

// ListURLs shows the addresses of the settings and how each is doing. Error:
// ACCOUNT_TYPE_NOT_ALLOWED.
func (s accountHooks) ListURLs(ctx context.Context, c cloud.Caller, _ check.None) (out URLsOutput, err error) {
	out.URLs, err = s.health(ctx, c)
	out.Result = err == nil
	return out, err
}

func (s accountHooks) health(ctx context.Context, c cloud.Caller) ([]URLHealth, error) {
	var list []urlSeen
	var zone *time.Location
	err := s.store.Look(ctx, func(v cloud.View) (err error) {
		if list, err = s.seen(v, c); err != nil {
			return err
		}
		b, err := v.Business(c.Account.BusinessID)
		zone = b.Location()
		return err
	})
	if err != nil {
		return nil, err
	}
	ids := make([]cloud.EndpointID, len(list))
	for i, u := range list {
		ids[i] = u.ID
	}
	reports, err := s.store.ReportEndpoints(ctx, ids, time.Now())
	if err != nil {
		return nil, fmt.Errorf("report on addresses: %w", err)
	}
	out := make([]URLHealth, len(list))
	for i, u := range list {
		out[i] = urlHealth(u, reports[i], zone)
	}
	return out, nil
}

func urlHealth(u urlSeen, r cloud.EndpointReport, l *time.Location) URLHealth {
	status, since := standing(u.Endpoint, r, u.held)
	h := URLHealth{URLID: u.ID, URL: u.URL, Settings: u.settings, Level: levelBusiness, CustomerID: cloud.OrNull(u.CustomerID), Status: status, Since: cloud.Stamp(since, l),
		LastSuccessAt: cloud.Stamp(r.SucceededAt, l), LastFailureAt: cloud.Stamp(r.FailedAt, l), Waiting: r.Waiting}
	if u.CustomerID != 0 {
		h.Level = levelCustomer
	}
	if r.Attempts24h > 0 {
		rate := float64(r.Failures24h) / float64(r.Attempts24h)
		h.FailureRate = &rate
	}
	return h
}

// breakerOpens is how many failures in a row open a receiver's breaker, on whatever
// node they were.
const breakerOpens = 10

// standing is how a receiver is doing, and since when: what is stored of it, but
// degraded while a sender leaves it alone after failures, and when of the attempts
// of an hour more than one in ten failed.
func standing(e cloud.Endpoint, r cloud.EndpointReport, held string) (status string, since time.Time) {
	if e.Status != statusFresh || held != heldBreaker && r.Failures < breakerOpens && 10*r.FailuresHour <= r.AttemptsHour {
		return e.Status, e.StatusSince
	}
	since = e.StatusSince
	if !r.FailingSince.IsZero() {
		since = r.FailingSince
	}
	return statusDegraded, since
}

// Pause keeps what is for an address until the pause ends. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_URL_NOT_FOUND.
func (s accountHooks) Pause(ctx context.Context, c cloud.Caller, in URLInput) (URLOutput, error) {
	if _, err := s.setStatus(ctx, c, in, statusPaused, cloud.PausedByHand, "webhook_url_paused"); err != nil {
		return URLOutput{}, err
	}
	return s.findURL(ctx, c, in)
}

// Resume ends a pause, or tries an address again that said it was gone. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_URL_NOT_FOUND, VALIDATION_FAILED.
func (s accountHooks) Resume(ctx context.Context, c cloud.Caller, in ResumeInput) (out URLOutput, err error) {
	failed := ""
	if in.Mode == "fail" {
		failed = reasonGivenUp
	}
	id, err := s.setStatus(ctx, c, URLInput{in.URLID}, statusFresh, "", "webhook_url_resumed")
	if err != nil {
		return out, err
	}
	if cloud.PreviewOf(ctx) == nil {
		if err := s.store.EndPause(ctx, id, time.Now().UTC(), failed); err != nil {
			return out, fmt.Errorf("end the pause of address %d: %w", id, err)
		}
	}
	return s.findURL(ctx, c, URLInput{in.URLID})
}

func (s accountHooks) setStatus(ctx context.Context, c cloud.Caller, in URLInput, status, reason, action string) (id cloud.EndpointID, err error) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		e, _, _, err := s.ownURL(v, c, in)
		if err != nil {
			return nil, err
		}
		id = e.ID
		if e.Status != status {
			e.Status, e.StatusSince, e.StatusReason = status, now, reason
		}
		return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}, AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{audit(c, e.BusinessID, now, action, e.ID)}}}, nil
	})
	return id, err
}

func (s accountHooks) findURL(ctx context.Context, c cloud.Caller, in URLInput) (URLOutput, error) {
	list, err := s.health(ctx, c)
	if err != nil {
		return URLOutput{}, err
	}
	for _, u := range list {
		if u.URLID == cloud.EndpointID(in.URLID) {
			return URLOutput{Result: true, URL: u}, nil
		}
	}
	return URLOutput{}, cloud.E(cloud.NotFound, "WEBHOOK_URL_NOT_FOUND")
}
