// Package tracking reads timelines for people and programs: the public
// tracking answer and the native OTEP timeline.
//
// The timeline is the truth; the current status is folded from it on every
// read. What everybody may see is masked: names to initials, addresses to
// cities; codes are nowhere. Whoever owns the parcel (its provider, staff of
// its business) or knows the last four digits of the recipient's telephone
// number sees the recipient's name. A parcel that ended is public for 180 days.
// The package writes nothing and is safe for concurrent use.
package tracking

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// Store is what this package needs of the database.
type Store interface {
	FindTimeline(ctx context.Context, number string) (cloud.Shipment, []cloud.TimelineEvent, error)
	Look(ctx context.Context, fn func(cloud.View) error) error
}

// Service is the feature.
type Service struct{ store Store }

// New builds the service.
func New(s Store) *Service { return &Service{store: s} }

// publicFor is how long a parcel stays public after its end.
const publicFor = 180 * 24 * time.Hour

const (
	codeNotFound     = "TRACKING_NOT_FOUND"
	codeOTEPNotFound = "OTEP_TRACKING_NOT_FOUND"
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
	if number == "" || len(number) > 64 || !utf8.ValidString(number) {
		return parcel{}, cloud.E(cloud.NotFound, code)
	}
	sh, rows, err := s.store.FindTimeline(ctx, number)
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
	p.timeline = otep.Fold(sh.Profile, otep.Subject{TrackingNumber: sh.Number, ExternalTrackingNumber: sh.External}, events)
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
		return c.Provider.ID != 0 && c.Provider.ID == s.ProviderID
	case cloud.ClientAdmin, cloud.ClientEmployee:
		return c.Account.BusinessID == s.BusinessID
	case cloud.PlatformAdmin:
		return true
	}
	return false
}

// TimelineInput asks for a timeline. Envelope "0" asks for the bare document.
type TimelineInput struct {
	Number   string `path:"number"`
	Format   string `query:"format"`
	Envelope string `query:"envelope"`
}

// TimelineOutput is the read envelope. Bare asks for Data alone; Private says
// that the answer is the caller's own.
type TimelineOutput struct {
	Result  bool          `json:"result"`
	Format  string        `json:"format"`
	Data    otep.Timeline `json:"data"`
	Bare    bool          `json:"-"`
	Private bool          `json:"-"`
}

// Formats are the output formats that can be asked for.
var formats = []string{"otep"}

// Timeline gives the native timeline of a tracking number, with labels in the
// caller's language. Errors: OTEP_TRACKING_NOT_FOUND, OTEP_UNSUPPORTED_FORMAT.
func (s *Service) Timeline(ctx context.Context, c cloud.Caller, in TimelineInput) (TimelineOutput, error) {
	format := cmp.Or(strings.ToLower(strings.TrimSpace(in.Format)), formats[0])
	if !slices.Contains(formats, format) {
		return TimelineOutput{}, &cloud.Error{Kind: cloud.Malformed, Code: "OTEP_UNSUPPORTED_FORMAT", Details: map[string]any{"supported": slices.Clone(formats)}}
	}
	p, err := s.find(ctx, c, in.Number, codeOTEPNotFound, time.Now())
	if err != nil {
		return TimelineOutput{}, err
	}
	for i := range p.timeline.Events {
		e := &p.timeline.Events[i]
		e.StatusLabel = locale.Status(c.Language, e.StatusCode)
		if !p.owner {
			e.Location, e.PoD = e.Location.Public(), e.PoD.Public()
		}
	}
	return TimelineOutput{Result: true, Format: format, Data: p.timeline, Bare: in.Envelope == "0", Private: !c.Anonymous()}, nil
}
