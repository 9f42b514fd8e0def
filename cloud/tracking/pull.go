package tracking

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// PullInput is an EPCIS query. Lists are separated by "|". Query is the whole
// query string, for parameters that are not known.
type PullInput struct {
	From        string `query:"GE_eventTime"`
	To          string `query:"LT_eventTime"`
	BizStep     string `query:"EQ_bizStep"`
	Disposition string `query:"EQ_disposition"`
	EPC         string `query:"MATCH_epc"`
	PerPage     string `query:"perPage"`
	Token       string `query:"nextPageToken"`
	Query       string `query:"*"`
}

// PullOutput is a page of the answer. Next is the address of the page behind
// it, empty for the last.
type PullOutput struct {
	Document any    `json:"-"`
	Next     string `json:"-"`
}

const (
	pullPage  = 30
	pullMax   = 1000
	pullRead  = 500 // rows at once
	pullScan  = 20  // times, then the page ends early
	tokenLife = 24 * time.Hour
)

var pullParams = []string{"GE_eventTime", "LT_eventTime", "EQ_bizStep", "EQ_disposition", "MATCH_epc", "perPage", "nextPageToken"}

// Pull answers an EPCIS client: the events of the shipments that the caller may
// see, oldest first (EPCIS 2.0, 8.2). A page may hold fewer than it could and
// still have one behind it. Errors: OTEP_CREDENTIALS_REQUIRED,
// OTEP_PROVIDER_FORBIDDEN, OTEP_INVALID_REQUEST.
func (s *Service) Pull(ctx context.Context, c cloud.Caller, in PullInput) (PullOutput, error) {
	q, err := pullScope(c)
	if err != nil {
		return PullOutput{}, err
	}
	want, err := in.filter(&q, time.Now())
	if err != nil {
		return PullOutput{}, err
	}
	p := projector(c)
	events := []projection.EPCISEvent{}
	more := true
	for scans := 0; more && scans < pullScan && len(events) < want.limit; scans++ {
		q.Limit = pullRead
		rows, err := s.store.EventPage(ctx, q)
		if err != nil {
			return PullOutput{}, err
		}
		more = len(rows) == q.Limit
		for i, r := range rows {
			q.After = r.Cursor
			if e, ok := want.eventOf(p, r); ok {
				if events = append(events, e); len(events) == want.limit {
					more = more || i+1 < len(rows)
					break
				}
			}
		}
	}
	out := PullOutput{Document: p.EPCISQuery(events, time.Now())}
	if more {
		out.Next = in.next(c.BaseURL, q.After, time.Now())
	}
	return out, nil
}

// pullScope is what a caller may see.
func pullScope(c cloud.Caller) (cloud.EventQuery, error) {
	q := cloud.EventQuery{BusinessID: c.Account.BusinessID}
	switch {
	case c.Anonymous():
		return q, cloud.E(cloud.Unauthenticated, codeCredentials)
	case c.Account.Type == cloud.ProviderType && c.Provider.ID != 0:
		q.BusinessID = c.Provider.BusinessID
		if c.Provider.Scope != cloud.ScopeAll {
			q.ProviderID = c.Provider.ID
		}
	case !c.Account.Type.IsStaff():
		return q, cloud.E(cloud.Forbidden, codeForbidden)
	}
	return q, nil
}

// wanted is what a query asks for beside time.
type wanted struct {
	limit              int
	steps, disps, epcs []string
}

func (in PullInput) filter(q *cloud.EventQuery, now time.Time) (w wanted, err error) {
	args, err := url.ParseQuery(in.Query)
	if err != nil {
		return w, invalid("query", "The query cannot be read.")
	}
	for name := range args {
		if !slices.Contains(pullParams, name) {
			return w, invalid(name, "This parameter is not known. Known are "+strings.Join(pullParams, ", ")+".")
		}
	}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"GE_eventTime", in.From, &q.From}, {"LT_eventTime", in.To, &q.To}} {
		if t.text == "" {
			continue
		}
		at, err := otep.ParseTime(t.text)
		if err != nil {
			return w, invalid(t.name, "Use a date-time with offset, such as 2026-06-10T11:30:00-04:00.")
		}
		*t.to = at.Time
	}
	w.limit = pullPage
	if in.PerPage != "" {
		if w.limit, err = strconv.Atoi(in.PerPage); err != nil || w.limit < 1 || w.limit > pullMax {
			return w, invalid("perPage", "Use a number from 1 to 1000.")
		}
	}
	if in.Token != "" {
		if q.After, err = in.cursor(now); err != nil {
			return w, invalid("nextPageToken", "This token is not one of this query, or older than 24 hours. Start again without it.")
		}
	}
	w.steps, w.disps, w.epcs = words(in.BizStep), words(in.Disposition), split(in.EPC)
	return w, nil
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

// words are vocabulary words in any spelling.
func words(s string) []string {
	list := split(s)
	for i := range list {
		list[i] = projection.Word(list[i])
	}
	return list
}

// eventOf makes the event of a row, if it is wanted.
func (w wanted) eventOf(p *projection.Projector, r cloud.EventRow) (projection.EPCISEvent, bool) {
	if r.Event.TimeType != "" && r.Event.TimeType != otep.Actual {
		return projection.EPCISEvent{}, false
	}
	sub := subject(r.Shipment)
	if r.Package.ID != 0 {
		sub = partSubject(r.Shipment, r.Package)
	}
	e := p.ObjectEvent(sub, r.Event.Fill(r.Shipment.Profile))
	switch {
	case w.steps != nil && !slices.Contains(w.steps, e.BizStep),
		w.disps != nil && !slices.Contains(w.disps, projection.Word(e.Disposition)),
		w.epcs != nil && !slices.ContainsFunc(w.epcs, func(epc string) bool { return names(epc, sub, e.EPCs[0]) }):
		return e, false
	}
	return e, true
}

// names reports whether an EPC names a subject whose own EPC is own.
func names(epc string, s otep.Subject, own string) bool {
	if epc == own {
		return true
	}
	a := projection.SubjectOfEPC(epc)
	same := func(x, y string) bool { return x != "" && strings.EqualFold(x, y) }
	return same(a.SSCC, s.SSCC) || same(a.PieceID, s.PieceID) || same(a.TrackingNumber, s.TrackingNumber) ||
		same(a.ExternalTrackingNumber, s.ExternalTrackingNumber) || same(a.ExternalTrackingNumber, s.TrackingNumber)
}

// pageToken is where a query goes on. It holds nothing that the caller could
// not see; the query it belongs to is in it, so that it fits no other.
type pageToken struct {
	At     int64  `json:"a"` // ms
	N      int64  `json:"n"`
	Issued int64  `json:"i"`
	Query  string `json:"q"`
}

func (in PullInput) same() string {
	return strings.Join([]string{in.From, in.To, in.BizStep, in.Disposition, in.EPC}, "\n")
}

func (in PullInput) next(base string, at cloud.EventCursor, now time.Time) string {
	raw, _ := json.Marshal(pageToken{At: at.At.UnixMilli(), N: at.N, Issued: now.Unix(), Query: in.same()}) // plain fields always encode
	args := url.Values{}
	for i, v := range []string{in.From, in.To, in.BizStep, in.Disposition, in.EPC, in.PerPage, base64.RawURLEncoding.EncodeToString(raw)} {
		if v != "" {
			args.Set(pullParams[i], v)
		}
	}
	return base + "/api/v1/otep/epcis/events?" + args.Encode()
}

func (in PullInput) cursor(now time.Time) (cloud.EventCursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(in.Token)
	if err != nil {
		return cloud.EventCursor{}, err
	}
	var t pageToken
	if err := json.Unmarshal(raw, &t); err != nil {
		return cloud.EventCursor{}, err
	}
	if age := now.Sub(time.Unix(t.Issued, 0)); age > tokenLife || age < -time.Minute || t.Query != in.same() {
		return cloud.EventCursor{}, cloud.ErrStale
	}
	return cloud.EventCursor{At: time.UnixMilli(t.At).UTC(), N: t.N}, nil
}
