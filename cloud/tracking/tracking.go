// Package tracking reads and adds to timelines: the public tracking answer,
// the OTEP timeline in every output format, what partners send as OTEP or
// EPCIS, and pulling by EPCIS clients.
//
// The timeline is the truth; the current status is folded from it on every
// read. A number alone shows status and timeline with names as initials and
// addresses as cities. The secret of the parcel's link, or the last four digits
// of the recipient's telephone number, shows what the recipient may see; a token
// of an owner (its provider, staff of its business, its customer) shows all. Codes
// are nowhere. Guesses at numbers and digits are bounded (see Guard). A parcel
// that ended is public for 180 days.
//
// Adding is idempotent by event id, in one transaction per parcel, and keeps
// what it can: a bad event does not keep the good ones out. Safe for concurrent
// use.
package tracking

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// Store is what this package needs of the database.
type Store interface {
	FindTimeline(ctx context.Context, number string, prefer func(cloud.Shipment) bool) (cloud.FoundTimeline, error)
	EventPage(ctx context.Context, q cloud.EventQuery) ([]cloud.EventRow, error)
	Look(ctx context.Context, fn func(cloud.View) error) error
	Decide(ctx context.Context, dev cloud.DeviceID, fn func(cloud.View) (*cloud.Changes, error)) error
	FeedStore
	ContainerTasks(ctx context.Context, limit int) ([]cloud.ContainerTask, error)
	DueEvents(ctx context.Context, now time.Time, limit int) ([]cloud.DueEvent, error)
}

// Service is the feature.
type Service struct {
	store Store
	sign  func(path string, until time.Time) string // nil: files have no addresses
	// invite is the chat token of an order's recipient, if there is to be one.
	// nil: there is no chat.
	invite  func(v cloud.View, o cloud.Order) (token string, ok bool, err error)
	orders  Orders  // nil: no order moves by what providers say
	parcels Parcels // nil: no parcel has subscribers
	oldest  time.Duration
	events  int // that a timeline takes
	links   cloud.LinkKey
	legacy  string
	lookups *limit.Lookups // nil: nothing is counted
	feed    *feed
	log     *slog.Logger
}

// New builds the service. Without Guard links are no proof and nothing limits
// who reads.
func New(s Store) *Service {
	return &Service{store: s, oldest: oldest, events: cloud.TimelineEvents, legacy: LegacyReduced, feed: newFeed(s), log: slog.New(slog.DiscardHandler)}
}

// SignFiles says how a stored file gets an address, without the host, that can
// be used until then. Call it before the service is used. It returns s.
func (s *Service) SignFiles(sign func(path string, until time.Time) string) *Service {
	s.sign = sign
	return s
}

// Orders follow what providers say about their packages.
type Orders interface {
	// FromTracking gives what is to be written, events and withdrawals included, and what became of the
	// order. It refuses nothing.
	FromTracking(v cloud.View, c cloud.Caller, news cloud.TrackingNews) (*cloud.Changes, cloud.TrackedOrder, error)
	// Accept has the report that a review is about count. Error: cloud.ErrNotFound of one that is gone.
	Accept(v cloud.View, c cloud.Caller, r cloud.Review) (*cloud.Changes, error)
	// Cancel cancels the order that a review is about.
	Cancel(v cloud.View, c cloud.Caller, r cloud.Review, note string) (*cloud.Changes, error)
	// Settle puts the order that a review is about where its timeline is.
	Settle(v cloud.View, c cloud.Caller, r cloud.Review, note string) (*cloud.Changes, error)
}

// MoveOrders says who follows events of orders. Call it before the service is used. It returns s.
func (s *Service) MoveOrders(o Orders) *Service {
	s.orders = o
	return s
}

// TakeOlder says how old an event may be without a review; two years unless it is called. Call it before the
// service is used. It returns s.
func (s *Service) TakeOlder(age time.Duration) *Service {
	s.oldest = age
	return s
}

// LimitEvents says how many events a timeline of s takes, 0 for cloud.TimelineEvents. Call it before the service is used.
func LimitEvents(s *Service, n int) { s.events = cmp.Or(n, cloud.TimelineEvents) }

// Parcels sends what happens to parcels without an order to their subscribers, and disputes to those of all.
type Parcels interface {
	// FanOutParcel returns the outbox writes for the subscribers of news about a parcel.
	FanOutParcel(v cloud.View, news cloud.TrackingNews) ([]cloud.OutboxWrite, error)
	// FanOutDispute returns those for the subscribers of a dispute of an event, also of an order's.
	FanOutDispute(v cloud.View, s cloud.Shipment, e cloud.TimelineEvent, r cloud.Review, by string) ([]cloud.OutboxWrite, error)
}

// SendParcels says who sends news about parcels without an order. Call it before the service is used. It
// returns s.
func (s *Service) SendParcels(p Parcels) *Service {
	s.parcels = p
	return s
}

// fanOutParcel adds what subscribers get of the changes of a parcel without an order: of events ahead of their
// time, when it comes.
func fanOutParcel(s *Service, v cloud.View, parcel cloud.Shipment, by cloud.ProviderID, ch *cloud.Changes, now time.Time) error {
	unsent, err := timeline.DropDue(v, ch, parcel, ch.Withdrawn)
	if err == nil {
		err = timeline.AddDue(v, ch, by, ch.Events, now)
	}
	if err != nil || s.parcels == nil {
		return err
	}
	news := cloud.TrackingNews{Shipment: parcel}
	for _, e := range ch.Events {
		if !timeline.IsPending(e, now) {
			news.Events = append(news.Events, e)
		}
	}
	for _, x := range ch.Withdrawn {
		if !timeline.HasRef(unsent, x) {
			news.Withdrawn = append(news.Withdrawn, x)
		}
	}
	out, err := s.parcels.FanOutParcel(v, news)
	ch.Outbox = append(ch.Outbox, out...)
	return err
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
	codeLimited       = "RATE_LIMITED"
	codeFull          = "OTEP_TIMELINE_FULL"
	codeConflict      = "OTEP_EVENT_CONFLICT"
)

// parcel is a shipment with everything an answer is made of.
type parcel struct {
	shipment cloud.Shipment
	part     cloud.PackageID  // of several packages the one that was asked for, 0 for the whole shipment
	packages []PackageOfOrder // of an order with several
	all      []cloud.TimelineEvent
	events   []otep.Event // that follow from all, for the caller
	timeline otep.Timeline
	owner    bool
	longer   bool // there are older events than all
	// truncated says that the timeline has older events than those shown, the oldest of which is oldest.
	truncated bool
	oldest    *otep.Event // as it is stored; nil when nothing is older
	access    Access
	proof     string // as good as the link for a while; of digits that were right
}

// whole reports whether the caller sees what the recipient may see.
func (p parcel) whole() bool { return p.access.Level == LevelRecipient || p.owner }

// find reads a shipment's timeline for a caller and counts that. code is that of
// the error when there is none, or none that is still public. Error:
// RATE_LIMITED.
func (s *Service) find(ctx context.Context, c cloud.Caller, number, code string, given proof, now time.Time) (parcel, error) {
	if !c.Anonymous() {
		return s.findForAccount(ctx, c, number, code, given, now)
	}
	lookup, wait := s.lookups.Enter(addressOf(ctx), cloud.NumberKey(strings.TrimSpace(number)), given.key != "", now)
	if wait > 0 {
		return parcel{}, limited(wait)
	}
	p, err := s.findPublic(ctx, c, number, code, given, now)
	if isCode(err, code) {
		if wait := lookup.Missed(missCost(number), now); wait > 0 {
			return parcel{}, limited(wait)
		}
	}
	if err != nil {
		return parcel{}, err
	}
	if wait := lookup.Found(int64(p.shipment.ID), p.whole(), now); wait > 0 {
		return parcel{}, limited(wait)
	}
	return p, nil
}

func (s *Service) findForAccount(ctx context.Context, c cloud.Caller, number, code string, given proof, now time.Time) (parcel, error) {
	id := int64(c.Account.ID)
	if wait := s.lookups.AccountWait(id, now); wait > 0 {
		return parcel{}, limited(wait)
	}
	p, err := s.findPublic(ctx, c, number, code, given, now)
	if isCode(err, code) && missCost(number) >= limit.CostMiss {
		s.lookups.AccountMissed(id, now)
	}
	return p, err
}

func limited(wait time.Duration) error {
	seconds := limit.Seconds(wait)
	return &cloud.Error{Kind: cloud.Limited, Code: codeLimited, RetryAfter: seconds, Details: map[string]any{"retry_after": seconds}}
}

// missCost is what it costs an address that there is nothing with a number.
func missCost(number string) float64 {
	switch form := cloud.FormOf(strings.TrimSpace(number)); {
	case form == cloud.MistypedNumber, !usableNumber(strings.TrimSpace(number)):
		return limit.CostMistyped
	case form == cloud.LegacyNumber:
		return limit.CostOldMiss
	}
	return limit.CostMiss
}

// usableNumber reports whether a number can be one of a parcel.
func usableNumber(number string) bool {
	return number != "" && len(number) <= 64 && utf8.ValidString(number) && !strings.ContainsRune(number, 0)
}

// findPublic is find without its count.
func (s *Service) findPublic(ctx context.Context, c cloud.Caller, number, code string, given proof, now time.Time) (parcel, error) {
	number = strings.TrimSpace(number)
	if !usableNumber(number) {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	p, err := s.read(ctx, c, number, code, now)
	if err == nil {
		err = s.admit(ctx, c, &p, number, code, given, now)
	}
	if err != nil {
		return parcel{}, err
	}
	return p, nil
}

// read finds a parcel that the caller may know of.
func (s *Service) read(ctx context.Context, c cloud.Caller, number, code string, now time.Time) (parcel, error) {
	found, err := s.store.FindTimeline(ctx, number, func(sh cloud.Shipment) bool { return c.Owns(sh) })
	if errors.Is(err, cloud.ErrNotFound) {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	if err != nil {
		return parcel{}, err
	}
	sh := found.Shipment
	p := parcel{shipment: sh, part: found.Package.ID, owner: c.Owns(sh)}
	if err := derive(ctx, s.store, &p, found, now); err != nil {
		return parcel{}, err
	}
	if t, err := otep.ParseTime(sh.Estimated); err == nil {
		p.timeline.EstimatedDeliveryAt = &t
	}
	if t := p.timeline; !p.owner && t.Terminal && now.Sub(t.LastEventAt.Time) > publicFor {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	return p, nil
}

// PackageOfOrder is where one of several packages of an order is.
type PackageOfOrder struct {
	id        cloud.PackageID
	Number    string     `json:"tracking_number"`
	Current   *otep.Code `json:"current_status"`
	Delivered bool       `json:"delivered"`
}

// parts derives the timeline that was asked for from one of an order with several packages, and notes
// where these are.
func parts(p *parcel, found cloud.FoundTimeline, now time.Time) otep.Timeline {
	sh := found.Shipment
	ids := idsOf(found.Packages)
	if len(ids) == 0 {
		return otep.FoldAt(sh.Profile, subject(sh), timeline.OfOrder(found.Events, nil, now), now)
	}
	codes := timeline.Codes(found.Events, ids, now)
	for _, x := range found.Packages {
		p.packages = append(p.packages, PackageOfOrder{x.ID, x.Number, cloud.OrNull(codes[x.ID]), codes[x.ID] == otep.Delivered})
	}
	if p.part == 0 {
		return otep.FoldAt(sh.Profile, subject(sh), timeline.OfOrder(found.Events, ids, now), now)
	}
	return otep.FoldAt(sh.Profile, partSubject(sh, found.Package), timeline.OfPackage(found.Events, ids, p.part, now), now)
}

// subject is a shipment as timelines name it.
func subject(s cloud.Shipment) otep.Subject { return s.Subject() }
