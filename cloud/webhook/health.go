package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// MaxReceivers is how many receivers Receivers gives at most.
const MaxReceivers = 100

// Receiver is an address that gets a business's events, as the business's
// staff see it: without secrets, the values in the address's query hidden. Of
// addresses only administrators see more than the host.
type Receiver struct {
	cloud.Endpoint
	Partner  string   // name of the provider whose it is; "" in the account channel
	Customer string   // name of the customer of whose level it is; "" for the business's
	Settings []string // of the account channel, that name it
	// Report is what is known of how it is doing, Held whether it is left alone for
	// now. Status and StatusSince go by both.
	Report cloud.EndpointReport
	Held   Hold
	// Manages reports that the business itself pauses, resumes and tests it; OwnSecret
	// that the level that it is of has a secret of its own, Unseen that no person has
	// seen that one.
	Manages, OwnSecret, Unseen bool

	address string   // whole
	secrets []string // that sign for it
}

// staff are who sees a business's deliveries. Error: ACCOUNT_TYPE_NOT_ALLOWED.
func staff(c cloud.Caller) (cloud.BusinessID, error) {
	b := c.Account.BusinessID
	if b == 0 || !c.Account.Type.IsStaff() {
		return 0, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	return b, nil
}

// Receivers lists who gets the events of the caller's business: its own
// addresses, those of its customers, those given with batches, its partners'.
// more reports that there are others. Error: ACCOUNT_TYPE_NOT_ALLOWED.
func (s deliveryLog) Receivers(ctx context.Context, c cloud.Caller) (out []Receiver, more bool, err error) {
	b, err := staff(c)
	if err != nil {
		return nil, false, err
	}
	all, err := s.receivers(ctx, b)
	if err != nil {
		return nil, false, err
	}
	var ids []cloud.EndpointID
	for _, r := range all {
		if r.Kind == cloud.AccountEndpoint && len(r.Settings) == 0 || r.Kind == cloud.SubscriptionEndpoint && !r.Enabled {
			continue // no setting names it any more, or its subscription has ended
		}
		if len(out) == MaxReceivers {
			more = true
			break
		}
		out, ids = append(out, r), append(ids, r.ID)
	}
	reports, err := s.store.ReportEndpoints(ctx, ids, time.Now())
	if err != nil {
		return nil, false, fmt.Errorf("report on receivers: %w", err)
	}
	for i := range out {
		s.report(&out[i], reports[i])
		if c.Account.Type != cloud.ClientAdmin {
			out[i].URL, out[i].SandboxURL = origin(out[i].URL), origin(out[i].SandboxURL)
		}
	}
	return out, more, nil
}

// Hold is why a sender leaves a receiver alone for now: breaker, after failures,
// retry_after, as it asked for, or proxy, as the deployment's makes no
// connection to it; the zero value when it does not.
type Hold struct {
	Why   string
	Until time.Time
}

func (s *core) held(b cloud.BusinessID, url string) (h Hold) {
	if s.sender != nil {
		h.Why, h.Until = s.sender.Held(b, url)
	}
	return h
}

// report adds how a receiver is doing.
func (s *core) report(r *Receiver, x cloud.EndpointReport) {
	r.Report, r.Held = x, s.held(r.BusinessID, r.address)
	r.Status, r.StatusSince = standing(r.Endpoint, x, r.Held.Why)
}

// Receiver shows one receiver of the caller's business, also one that no setting
// names any more. Errors: ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_URL_NOT_FOUND.
func (s deliveryLog) Receiver(ctx context.Context, c cloud.Caller, id cloud.EndpointID) (r Receiver, err error) {
	b, err := staff(c)
	if err != nil {
		return r, err
	}
	all, err := s.receivers(ctx, b)
	if err != nil {
		return r, err
	}
	i := slices.IndexFunc(all, func(r Receiver) bool { return r.ID == id })
	if i < 0 {
		return r, cloud.E(cloud.NotFound, "WEBHOOK_URL_NOT_FOUND")
	}
	r = all[i]
	reports, err := s.store.ReportEndpoints(ctx, []cloud.EndpointID{id}, time.Now())
	if err != nil {
		return r, fmt.Errorf("report on receiver %d: %w", id, err)
	}
	s.report(&r, reports[0])
	if c.Account.Type != cloud.ClientAdmin {
		r.URL, r.SandboxURL = origin(r.URL), origin(r.SandboxURL)
	}
	r.secrets = nil
	return r, nil
}

// receivers are all that a business ever had, its own first.
func (s *core) receivers(ctx context.Context, b cloud.BusinessID) (out []Receiver, err error) {
	partners, err := s.store.ListProviders(ctx, b)
	if err != nil {
		return nil, fmt.Errorf("list partners: %w", err)
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		if out, err = ownReceivers(v, b); err != nil {
			return err
		}
		for _, p := range partners {
			es, err := v.Endpoints(p.ID)
			if err != nil {
				return err
			}
			for _, e := range es {
				out = append(out, newReceiver(e, Receiver{Partner: p.Name}, e.Secret, e.SecretNext))
			}
		}
		return nil
	})
	return out, err
}

// ownReceivers are those of the account channel, by kind, level and id.
func ownReceivers(v cloud.View, b cloud.BusinessID) (out []Receiver, err error) {
	all, err := v.AccountEndpoints(b)
	if err != nil {
		return nil, err
	}
	type known struct {
		own, business cloud.WebhookSettings
		customer      string
	}
	seen := map[cloud.AccountID]known{}
	for _, e := range all {
		l, ok := seen[e.CustomerID]
		if !ok {
			if l.own, l.business, err = levels(v, b, e.CustomerID); err != nil {
				return nil, err
			}
			if e.CustomerID != 0 {
				a, err := v.Account(e.CustomerID)
				if err != nil && !errors.Is(err, cloud.ErrNotFound) {
					return nil, err
				}
				l.customer = cmp.Or(a.Name, fmt.Sprint(e.CustomerID))
			}
			seen[e.CustomerID] = l
		}
		r := Receiver{Customer: l.customer, Settings: used(l.own, e.ID), OwnSecret: len(l.own.Secret) > 0, Unseen: l.own.Unseen}
		if e.Kind == cloud.SubscriptionEndpoint {
			r.Settings, r.OwnSecret, r.Unseen = []string{cloud.HookSubscription}, true, false
		}
		r.Manages = e.Kind == cloud.AccountEndpoint && len(r.Settings) > 0
		out = append(out, newReceiver(e, r, l.own.Secret, l.own.SecretNext, l.business.Secret, l.business.SecretNext))
	}
	slices.SortStableFunc(out, func(x, y Receiver) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.CustomerID, y.CustomerID), cmp.Compare(x.ID, y.ID))
	})
	return out, nil
}

func newReceiver(e cloud.Endpoint, r Receiver, secrets ...[]byte) Receiver {
	for _, secret := range secrets {
		if len(secret) > 0 {
			r.secrets = append(r.secrets, string(secret))
		}
	}
	e.Secret, e.SecretNext = nil, nil
	r.address = e.URL
	e.URL, e.SandboxURL = maskedURL(e.URL), maskedURL(e.SandboxURL)
	r.Endpoint = e
	return r
}

// BusinessLog lists deliveries of the caller's business, of all channels. Rows
// have no bodies, and of their last attempts the host only, no heads and no
// answers. Error:
// ACCOUNT_TYPE_NOT_ALLOWED.
func (s deliveryLog) BusinessLog(ctx context.Context, c cloud.Caller, f cloud.BusinessLog) ([]cloud.OutboxRow, error) {
	b, err := staff(c)
	if err != nil {
		return nil, err
	}
	f.BusinessID = b
	rows, err := s.store.ListBusinessOutbox(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	for i := range rows {
		if a := rows[i].Last; a != nil {
			a.URL, a.RequestHead, a.AnswerHead, a.AnswerBody = origin(a.URL), "", "", ""
		}
	}
	return rows, nil
}
