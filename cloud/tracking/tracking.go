// Package tracking reads and adds to timelines: the public tracking answer,
// the OTEP timeline in every output format, what partners send as OTEP or
// EPCIS, and pulling by EPCIS clients.
//
// The timeline is the truth; the current status is folded from it on every
// read. What everybody may see is masked: names to initials, addresses to
// cities; codes are nowhere. Whoever owns the parcel (its provider, staff of
// its business) or knows the last four digits of the recipient's telephone
// number sees the recipient's name. A parcel that ended is public for 180 days.
//
// Adding is idempotent by event id, in one transaction per parcel, and keeps
// what it can: a bad event does not keep the good ones out. Safe for concurrent
// use.
package tracking

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Store is what this package needs of the database.
type Store interface {
	FindTimeline(ctx context.Context, number string, prefer func(cloud.Shipment) bool) (cloud.Shipment, []cloud.TimelineEvent, error)
	EventPage(ctx context.Context, q cloud.EventQuery) ([]cloud.EventRow, error)
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, dev cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
}

// Service is the feature.
type Service struct {
	store Store
	sign  func(path string, until time.Time) string // nil: files have no addresses
	// invite is the chat token of an order's recipient, if there is to be one.
	// nil: there is no chat.
	invite func(v cloud.View, o cloud.Order) (token string, ok bool, err error)
}

// New builds the service.
func New(s Store) *Service { return &Service{store: s} }

// SignFiles says how a stored file gets an address, without the host, that can
// be used until then. Call it before the service is used. It returns s.
func (s *Service) SignFiles(sign func(path string, until time.Time) string) *Service {
	s.sign = sign
	return s
}

// InviteToChat says how the recipient of an order gets a token for its chat. Call
// it before the service is used.
func (s *Service) InviteToChat(invite func(v cloud.View, o cloud.Order) (token string, ok bool, err error)) {
	s.invite = invite
}

// publicFor is how long a parcel stays public after its end.
const publicFor = 180 * 24 * time.Hour

// Error codes of this package.
const (
	codeNotFound      = "TRACKING_NOT_FOUND"
	codeOTEPNotFound  = "OTEP_TRACKING_NOT_FOUND"
	codeInvalidJSON   = "OTEP_INVALID_JSON"
	codeInvalid       = "OTEP_INVALID_REQUEST"
	codeFormat        = "OTEP_UNSUPPORTED_FORMAT"
	codeCredentials   = "OTEP_CREDENTIALS_REQUIRED"
	codeForbidden     = "OTEP_PROVIDER_FORBIDDEN"
	codeNotConformant = "OTEP_NOT_CONFORMANT"
	codeTooLarge      = "OTEP_PAYLOAD_TOO_LARGE"
)

// parcel is a shipment with everything an answer is made of.
type parcel struct {
	shipment cloud.Shipment
	timeline otep.Timeline
	owner    bool
}

// find reads a shipment's timeline for a caller. code is that of the error when
// there is none, or none that is still public.
func (s *Service) find(ctx context.Context, c cloud.Caller, number, code string, now time.Time) (parcel, error) {
	number = strings.TrimSpace(number)
	if number == "" || len(number) > 64 || !utf8.ValidString(number) || strings.ContainsRune(number, 0) {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	sh, rows, err := s.store.FindTimeline(ctx, number, func(sh cloud.Shipment) bool { return owns(c, sh) })
	if errors.Is(err, cloud.ErrNotFound) {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	if err != nil {
		return parcel{}, err
	}
	events := make([]otep.Event, len(rows))
	for i, r := range rows {
		events[i] = r.Event
	}
	p := parcel{shipment: sh, owner: owns(c, sh)}
	p.timeline = otep.Fold(sh.Profile, subject(sh), events)
	if t, err := otep.ParseTime(sh.Estimated); err == nil {
		p.timeline.EstimatedDeliveryAt = &t
	}
	if t := p.timeline; !p.owner && t.Terminal && now.Sub(t.LastEventAt.Time) > publicFor {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	return p, nil
}

// owns reports whether the caller may see a shipment's personal data.
func owns(c cloud.Caller, s cloud.Shipment) bool {
	if c.Anonymous() {
		return false
	}
	switch c.Account.Type {
	case cloud.ProviderType:
		return ofProvider(c.Provider, s)
	case cloud.ClientAdmin, cloud.ClientEmployee:
		return c.Account.BusinessID == s.BusinessID
	case cloud.Customer:
		return s.OrderID != 0 && c.Account.ID == s.CustomerID && c.Account.BusinessID == s.BusinessID
	case cloud.PlatformAdmin:
		return true
	}
	return false
}

// ofProvider reports whether a shipment is a provider's to see and add to.
func ofProvider(p cloud.Provider, s cloud.Shipment) bool {
	return p.ID != 0 && (p.ID == s.ProviderID || p.Scope == cloud.ScopeAll && p.BusinessID == s.BusinessID)
}

// subject is a shipment as timelines name it.
func subject(s cloud.Shipment) otep.Subject { return s.Subject() }
