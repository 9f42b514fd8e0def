// Package account keeps who may call: keys, people, providers and customers of
// a business, its settings and its optional features.
//
// Everything is bound to the caller's business; what belongs to another one is
// answered as if it were not there. Tokens are shown once, when they are made.
// Every change is one transaction with an audit line. Who may call what is the
// catalogue's matter. Safe for concurrent use.
package account

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/collection"
)

// Store is what this package needs of the database.
type Store interface {
	Decide(ctx context.Context, d cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Config is what New needs.
type Config struct {
	Store Store
	// Confirm checks the password of a caller, and bounds how often that is tried.
	// Errors: INVALID_CREDENTIALS, RATE_LIMITED, ACCOUNT_LOCKED.
	Confirm func(ctx context.Context, a cloud.Account, password string) error
	// Passkeys checks what authenticators sign; nil: no passkey can be made.
	Passkeys *auth.Passkeys
	// Mocks makes the mock cabinets of providers; nil: they have none.
	Mocks Mocks
	// MailBase is what links in mails begin with, without a slash at the end; empty:
	// there is no mail server, and links are shown to who made them.
	MailBase string
	// Unavailable are families that this deployment does not have, or not yet:
	// no business can switch them on.
	Unavailable []string
}

// Mocks makes mock cabinets.
type Mocks interface {
	// Make gives what makes the mock cabinet of a provider; nothing where it has one, or
	// needs none.
	Make(v cloud.View, p cloud.Provider, now time.Time) (*cloud.Changes, error)
}

// Service is the feature.
type Service struct {
	cfg  Config
	turn chan struct{} // holds what hashes a stranger's password
}

// New builds the service.
func New(cfg Config) *Service { return &Service{cfg, make(chan struct{}, 1)} }

// PageInput asks for a part of a list.
type PageInput = collection.PageInput

// Done is the answer of what has nothing to say.
type Done struct {
	Result bool `json:"result"`
}

// fields collects what is wrong with an input.
type fields struct{ check.Fields }

func newFields() fields { return fields{check.Fields{}} }

// filled checks a text that a new thing needs and that no change takes away.
func (f fields) filled(field string, value *string, fresh bool) {
	if value == nil && fresh || value != nil && strings.TrimSpace(*value) == "" {
		f.Say(field, check.MessageRequired)
	}
}

// addresses checks a list of addresses and prefixes, and gives it back in one
// form.
func (f fields) addresses(field string, list []string) []string {
	var out []string
	for i, x := range list {
		if a, err := netip.ParseAddr(x); err == nil && a.Zone() == "" {
			out = append(out, a.Unmap().String())
		} else if p, err := netip.ParsePrefix(x); err == nil && !p.Addr().Is4In6() {
			out = append(out, p.Masked().String())
		} else {
			f.Add(field+"."+strconv.Itoa(i), "Use an IP address, or a prefix such as 192.0.2.0/24.")
		}
	}
	return out
}

// How long a key lives: as a rule, and at most.
const (
	keyYears    = 1
	maxKeyYears = 5
)

// keyEnd is when a key ends that is made at now.
func (f fields) keyEnd(text string, l *time.Location, now time.Time) time.Time {
	if text == "" {
		return now.AddDate(keyYears, 0, 0)
	}
	t := check.Moment(text, l)
	switch {
	case !t.After(now):
		f.Add("expires_at", "The time must lie ahead.")
	case t.After(now.AddDate(maxKeyYears, 0, 0)):
		f.Add("expires_at", "A key lives five years at most.")
	}
	return t
}

func audit(c cloud.Caller, now time.Time, action, kind string, id int64) []cloud.Audit {
	return []cloud.Audit{{BusinessID: c.Account.BusinessID, At: now, Actor: c.Account.ID.Actor(), Action: action,
		Target: kind + ":" + strconv.FormatInt(id, 10), Detail: "{}"}}
}

// orEmpty is a list as answers show it.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
