package tracking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// TimelineInput asks for a timeline. Envelope "0" asks for the bare document.
type TimelineInput struct {
	Number   string `path:"tracking_number"`
	Format   string `query:"format"`
	Accept   string `header:"Accept"`
	Envelope string `query:"envelope"`
	Verify   string `query:"verify" doc:"Last four digits of the recipient's telephone number: shows what the recipient may see"`
	Key      string `header:"X-Tracking-Key"` // secret of the parcel's link
}

// TimelineOutput is the read envelope. MediaType is that of the bare document
// and empty for an enveloped one; Private says that the answer is the caller's
// own.
type TimelineOutput struct {
	Result bool    `json:"result"`
	Format string  `json:"format"`
	Data   any     `json:"data"`
	Access *Access `json:"access,omitempty"` // of callers that gave proof
	// Packages of an order with several, and where each is.
	Packages []PackageOfOrder `json:"packages,omitempty"`
	// Truncated says that there are older events than the 500 shown.
	Truncated bool   `json:"truncated,omitempty"`
	Next      string `json:"next,omitempty" doc:"cursor for the list of events, which goes on with the older ones"`
	MediaType string `json:"-"`
	Private   bool   `json:"-"`
	NextURL   string `json:"-"` // of the same page

	About cloud.AnswerSubject `json:"-"`
}

// AppendJSON appends the answer as encoding/json writes it, with nothing
// escaped for HTML. The error is errors.ErrUnsupported for other formats than
// the native one.
func (o TimelineOutput) AppendJSON(b []byte) ([]byte, error) {
	t, ok := o.Data.(otep.Timeline)
	if !ok || !o.Result || o.Access != nil || o.Packages != nil || o.Truncated {
		return b, errors.ErrUnsupported
	}
	b = append(b, `{"result":true,"format":"`+o.Format+`","data":`...) // names of formats need no escapes
	b, err := t.AppendJSON(b)
	return append(b, '}'), err
}

// projector makes documents for a caller.
func projector(c cloud.Caller) *projection.Projector {
	return projection.New(projection.Config{BaseURL: c.BaseURL, Label: func(code otep.Code) string { return locale.Status(locale.English, code) }})
}

// format is the one that a request asks for.
func format(name, accept string) (projection.Format, error) {
	f, ok := projection.Select(name, accept)
	if !ok {
		return f, &cloud.Error{Kind: cloud.Malformed, Code: codeFormat, Members: map[string]any{"supported": projection.Names()}}
	}
	return f, nil
}

// Timeline gives the timeline of a tracking number in a format, with labels in
// the caller's language. Errors: OTEP_TRACKING_NOT_FOUND,
// OTEP_UNSUPPORTED_FORMAT.
func (s *Service) Timeline(ctx context.Context, c cloud.Caller, in TimelineInput) (TimelineOutput, error) {
	f, err := format(in.Format, in.Accept)
	if err != nil {
		return TimelineOutput{}, err
	}
	given := proof{in.Verify, in.Key}
	p, err := s.visibleParcel(ctx, c, in.Number, given)
	if err != nil {
		return TimelineOutput{}, err
	}
	next := p.next()
	out := TimelineOutput{Result: true, Format: f.Name, Data: projector(c).Document(f, p.timeline, documentTime(p.timeline)), Private: !c.Anonymous() || given.given(), Access: p.judged(given), Packages: p.shownPackages(), Truncated: p.truncated,
		Next: next, NextURL: nextAddress(c.BaseURL, p.timeline.Subject.TrackingNumber, next, url.Values{"format": {in.Format}})}
	if !given.given() {
		asked := cloud.NumberKey(strings.TrimSpace(in.Number))
		out.About = cloud.AnswerSubject{Shipment: p.shipment.ID, Order: p.shipment.OrderID, Named: asked == cloud.NumberKey(p.shipment.Number) || p.part != 0 && asked == cloud.NumberKey(p.timeline.Subject.TrackingNumber)}
	}
	if in.Envelope == "0" {
		out.MediaType = f.MediaType
	}
	return out, nil
}

// shownPackages are those of an order, for callers that see more than its status.
func (p parcel) shownPackages() []PackageOfOrder {
	if p.part != 0 || p.access.Level == LevelReduced && !p.owner {
		return nil
	}
	return p.packages
}

// documentTime is the time that documents give as their own. It is that of the
// newest recording, so that the same timeline is the same document and its
// ETag holds.
func documentTime(t otep.Timeline) time.Time {
	var at time.Time
	for _, e := range t.Events {
		if e.RecordedAt.After(at) {
			at = e.RecordedAt.Time
		}
	}
	return at
}

// judged is what answers say of the caller's access: nothing where no proof was
// given.
func (p parcel) judged(given proof) *Access {
	if !given.given() {
		return nil
	}
	return &p.access
}

// visibleParcel is a parcel as the caller may see it, with labels.
func (s *Service) visibleParcel(ctx context.Context, c cloud.Caller, number string, given proof) (parcel, error) {
	p, err := s.find(ctx, c, number, codeOTEPNotFound, given, time.Now())
	if err != nil {
		return p, err
	}
	makeVisible(s, &p, c.Language)
	return p, nil
}

// makeVisible leaves of a parcel what the caller may see, with labels.
func makeVisible(s *Service, p *parcel, lang string) {
	s.reduce(p)
	for i := range p.timeline.Events {
		e := &p.timeline.Events[i]
		e.StatusLabel = locale.Status(lang, e.StatusCode)
	}
}

// reduce leaves of a timeline what the caller may see. Documents in every format
// are made of what is left.
func (s *Service) reduce(p *parcel) {
	t := &p.timeline
	if p.owner {
		return
	}
	t.Reports = nil
	if p.access.Level == LevelReduced {
		t.Subject, t.EstimatedDeliveryAt, t.Events = otep.Subject{TrackingNumber: t.Subject.TrackingNumber}, nil, []otep.Event{}
		p.truncated, p.oldest = false, nil
		return
	}
	t.Subject.OrderID, t.Subject.PackageID = 0, 0
	for i := range t.Events {
		t.Events[i] = s.shownEvent(p, t.Events[i])
	}
}

// shownEvent is an event as the caller may see it.
func (s *Service) shownEvent(p *parcel, whole otep.Event) otep.Event {
	if p.owner {
		return whole
	}
	e := whole.Public()
	if p.whole() {
		e.PoD = whole.PoD.Recipients()
	}
	for j, r := range e.Telemetry {
		if r.DeviceID != "" {
			e.Telemetry[j].DeviceID = s.links.Pseudonym(r.DeviceID)
		}
	}
	return e
}

// EventsInput asks for a timeline's events: those recorded after Since (RFC
// 3339), in Order asc or desc.
type EventsInput struct {
	Number string `path:"tracking_number"`
	Format string `query:"format"`
	Accept string `header:"Accept"`
	Since  string `query:"since"`
	Order  string `query:"order"`
	Verify string `query:"verify" doc:"As for the timeline"`
	Key    string `header:"X-Tracking-Key"`
	// Scope is all for every event of an order and its packages.
	Scope string `query:"scope" doc:"all: every event of an order and of its packages, each with the number of its package; in the formats otep and epcis"`
	// Include is withdrawn for those that were taken back, too.
	Include string `query:"include" doc:"withdrawn: events that were taken back, too, each with why and by whom; for owners, in the formats otep and epcis"`
	Limit   *int   `query:"limit" min:"1" max:"500" doc:"Most events of an answer that were not taken back; 500 when absent"`
	Cursor  string `query:"cursor" max:"2400" doc:"next of an answer about this tracking number, which goes on with the older events; the newest come first without it"`
}

// ShownEvent is an event with what stands beside it.
type ShownEvent struct {
	otep.Event
	PackageNumber *string        `json:"package_tracking_number,omitempty"` // of an event about one package of several
	Withdrawn     *WithdrawnBody `json:"withdrawn,omitempty"`

	ref cloud.EventRef // of one that was withdrawn
}

// WithdrawnBody says how an event was taken back.
type WithdrawnBody struct {
	At          *string `json:"at"`
	Reason      *string `json:"reason"`       // did_not_occur or incorrect_data; null when none was given
	By          *string `json:"by"`           // code of the provider; null before it was kept
	CorrectedBy *string `json:"corrected_by"` // id of the event that took its place; null when there is none
}

// EventsOutput is a list of events in a format. Total counts Data.
type EventsOutput struct {
	Result    bool    `json:"result"`
	Format    string  `json:"format"`
	Number    string  `json:"tracking_number"`
	Total     int     `json:"total"`
	Data      any     `json:"data"`
	Access    *Access `json:"access,omitempty"`    // of callers that gave proof
	Truncated bool    `json:"truncated,omitempty"` // there are older events
	Next      string  `json:"next,omitempty" doc:"cursor of the next page, of older events; absent on the last"`
	Private   bool    `json:"-"`
	NextURL   string  `json:"-"` // of the same page
}

// Events gives a page of a timeline's events as a list. Pages go from the newest events to the oldest. A reader of all gets each
// event once that stood when it began and was not taken back; what comes or goes meanwhile may be missing. Errors:
// those of Timeline, OTEP_INVALID_REQUEST.
func (s *Service) Events(ctx context.Context, c cloud.Caller, in EventsInput) (EventsOutput, error) {
	f, err := format(in.Format, in.Accept)
	if err != nil {
		return EventsOutput{}, err
	}
	var since otep.Time
	if in.Since != "" {
		if since, err = otep.ParseTime(in.Since); err != nil {
			return EventsOutput{}, invalid("since", "Use a date-time with offset, such as 2026-06-10T11:30:00-04:00.")
		}
	}
	if in.Order != "" && in.Order != "asc" && in.Order != "desc" {
		return EventsOutput{}, invalid("order", "Use asc or desc.")
	}
	if in.Scope != "" && in.Scope != "all" {
		return EventsOutput{}, invalid("scope", "Use all.")
	}
	if in.Include != "" && in.Include != "withdrawn" {
		return EventsOutput{}, invalid("include", "Use withdrawn.")
	}
	if in.Scope+in.Include != "" && f.Name != projection.Native && f.Name != projection.EPCIS {
		return EventsOutput{}, invalid("format", "Ask for the format otep or epcis with scope and include.")
	}
	given, now := proof{in.Verify, in.Key}, time.Now()
	p, err := s.find(ctx, c, in.Number, codeOTEPNotFound, given, now)
	if err != nil {
		return EventsOutput{}, err
	}
	of := page{limit: maxShown}
	if in.Limit != nil {
		of.limit = *in.Limit
	}
	if of.before, err = p.placeOf(in.Cursor); err == nil {
		err = turn(ctx, s.store, &p, of, now)
	}
	if err != nil {
		return EventsOutput{}, err
	}
	makeVisible(s, &p, c.Language)
	t := p.timeline
	isOld := func(e *otep.Event) bool { return in.Since != "" && !e.RecordedAt.After(since.Time) }
	var list []ShownEvent
	if in.Scope+in.Include != "" {
		list = s.beside(&p, t.Events, in.Scope == "all", of, c.Language, now)
		if in.Include != "" {
			if list, err = s.withWithdrawn(ctx, c, p, list, of); err != nil {
				return EventsOutput{}, err
			}
		}
		list = slices.DeleteFunc(list, func(e ShownEvent) bool { return isOld(&e.Event) })
	}
	t.Events = slices.DeleteFunc(t.Events, func(e otep.Event) bool { return isOld(&e) })
	out := EventsOutput{Result: true, Format: f.Name, Number: t.Subject.TrackingNumber, Access: p.judged(given), Truncated: p.truncated, Next: p.next(), Private: !c.Anonymous() || given.given()}
	switch {
	case list != nil && f.Name == projection.EPCIS:
		out.Data = declared(projector(c), p, list)
	case list != nil:
		out.Data = list
	default:
		out.Data = projector(c).Events(f, t, documentTime(t))
	}
	args := url.Values{"format": {in.Format}, "since": {in.Since}, "order": {in.Order}, "scope": {in.Scope}, "include": {in.Include}}
	if in.Limit != nil {
		args.Set("limit", strconv.Itoa(of.limit))
	}
	out.NextURL = nextAddress(c.BaseURL, out.Number, out.Next, args)
	out.Total = count(out.Data)
	if in.Order == "desc" {
		reverse(out.Data)
	}
	return out, nil
}

// declared are events in EPCIS, each that was taken back with the declaration of that behind it.
func declared(pr *projection.Projector, p parcel, list []ShownEvent) []projection.EPCISEvent {
	out := []projection.EPCISEvent{}
	for _, e := range list {
		if e.TimeType != "" && e.TimeType != otep.Actual {
			continue
		}
		s := p.subjectOf(e.PackageNumber)
		if out = append(out, pr.ObjectEvent(s, e.Event)); e.Withdrawn != nil {
			out = append(out, pr.ErrorDeclaration(s, e.Event, projection.Retraction{At: e.ref.At, Reason: e.ref.Reason, CorrectedBy: e.ref.CorrectedBy}))
		}
	}
	return out
}

// subjectOf is one of an order's packages, or what the timeline is about when number is nil.
func (p *parcel) subjectOf(number *string) otep.Subject {
	s := p.timeline.Subject
	for _, x := range p.packages {
		if number != nil && x.Number == *number {
			s.TrackingNumber, s.PackageID = x.Number, int64(x.id)
		}
	}
	return s
}

// beside are the events of a page, or a page of all of an order and its packages, each with its package.
func (s *Service) beside(p *parcel, events []otep.Event, all bool, of page, lang string, now time.Time) []ShownEvent {
	if all {
		return every(s, p, of, lang, now)
	}
	in := map[string]cloud.PackageID{}
	for _, r := range p.all {
		in[r.Event.EventID] = r.Package
	}
	out := []ShownEvent{}
	for _, e := range events {
		out = append(out, ShownEvent{Event: e, PackageNumber: p.numberOf(in[e.EventID])})
	}
	return out
}

// every is a page of all events of an order and its packages, each with its package.
func every(s *Service, p *parcel, of page, lang string, now time.Time) []ShownEvent {
	out := []ShownEvent{}
	if p.access.Level == LevelReduced && !p.owner {
		return out
	}
	rows := slices.DeleteFunc(slices.Clone(p.all), func(r cloud.TimelineEvent) bool {
		return r.Event.Withdrawn || r.Event.Reported || !p.isShown(&r.Event, now)
	})
	slices.SortStableFunc(rows, func(a, b cloud.TimelineEvent) int { return otep.Compare(&a.Event, &b.Event) })
	rows, p.truncated = tail(of, rows, func(r *cloud.TimelineEvent) *otep.Event { return &r.Event })
	if p.oldest = nil; p.truncated {
		p.oldest = &rows[0].Event
	}
	for i := range rows {
		shown := s.shownEvent(p, rows[i].Event.Fill(p.shipment.Profile))
		shown.StatusLabel = locale.Status(lang, shown.StatusCode)
		out = append(out, ShownEvent{Event: shown, PackageNumber: p.numberOf(rows[i].Package)})
	}
	return out
}

// numberOf is the number of one of several packages, nil for the whole order.
func (p *parcel) numberOf(id cloud.PackageID) *string {
	for _, x := range p.packages {
		if x.id == id && id != 0 {
			return &x.Number
		}
	}
	return nil
}

// withWithdrawn are events of a page and those between them that were taken back, in
// the order in which they happened. Errors: OTEP_CREDENTIALS_REQUIRED, OTEP_PROVIDER_FORBIDDEN.
func (s *Service) withWithdrawn(ctx context.Context, c cloud.Caller, p parcel, out []ShownEvent, of page) ([]ShownEvent, error) {
	switch {
	case c.Anonymous():
		return nil, cloud.E(cloud.Unauthenticated, codeCredentials)
	case !p.owner:
		return nil, cloud.E(cloud.Forbidden, codeForbidden)
	}
	var from, upto time.Time
	if p.oldest != nil {
		from = p.oldest.OccurredAt.Time
	}
	if of.before != nil {
		upto = of.before.OccurredAt.Time
	}
	err := s.store.Look(ctx, func(v cloud.View) error {
		gone, err := v.WithdrawnEvents(p.shipment.ID, from, upto)
		for _, x := range gone {
			if p.part != 0 && x.Package != 0 && x.Package != p.part {
				continue
			}
			if p.oldest != nil && otep.Compare(&x.Event, p.oldest) < 0 || of.before != nil && otep.Compare(&x.Event, of.before) >= 0 {
				continue
			}
			x.Event.StatusLabel = locale.Status(c.Language, x.Event.StatusCode)
			out = append(out, ShownEvent{x.Event, p.numberOf(x.Package), withdrawnBody(x.EventRef), x.EventRef})
		}
		return err
	})
	slices.SortStableFunc(out, func(a, b ShownEvent) int { return a.OccurredAt.Compare(b.OccurredAt.Time) })
	return out, err
}

func withdrawnBody(x cloud.EventRef) *WithdrawnBody {
	return &WithdrawnBody{cloud.Stamp(x.At, time.UTC), cloud.OrNull(x.Reason), cloud.OrNull(x.By), cloud.OrNull(x.CorrectedBy)}
}

func invalid(field, message string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: codeInvalid, Fields: map[string][]string{field: {message}}}
}

// BatchInput asks for up to a hundred timelines. Format of the body wins over
// the query's.
type BatchInput struct {
	Body   []byte `body:"raw"` // {"tracking_numbers": [...], "format": "otep"}
	Format string `query:"format"`
	Accept string `header:"Accept"`
}

// BatchOutput answers a batch in the order of its numbers, each once.
type BatchOutput struct {
	Result   bool        `json:"result"`
	Format   string      `json:"format"`
	Total    int         `json:"total"`
	Found    int         `json:"found"`
	NotFound []string    `json:"not_found"`
	Data     []BatchItem `json:"data"`
}

// BatchItem is one number's answer.
type BatchItem struct {
	Number string `json:"tracking_number"`
	Found  bool   `json:"found"`
	Data   any    `json:"data"`
	Code   string `json:"code,omitempty"`
}

// Batch gives several timelines at once. Errors: OTEP_INVALID_JSON,
// OTEP_INVALID_REQUEST, OTEP_UNSUPPORTED_FORMAT, OTEP_PAYLOAD_TOO_LARGE.
func (s *Service) Batch(ctx context.Context, c cloud.Caller, in BatchInput) (BatchOutput, error) {
	var want struct {
		Numbers []string `json:"tracking_numbers"`
		Format  string   `json:"format"`
	}
	if err := otep.CheckJSON(in.Body); err != nil {
		return BatchOutput{}, notJSON(err)
	}
	if err := json.Unmarshal(in.Body, &want); err != nil {
		return BatchOutput{}, invalid("tracking_numbers", "Give 1 to 100 tracking numbers.")
	}
	f, err := format(cmp.Or(want.Format, in.Format), in.Accept)
	if err != nil {
		return BatchOutput{}, err
	}
	if len(want.Numbers) == 0 {
		return BatchOutput{}, invalid("tracking_numbers", "Give 1 to 100 tracking numbers.")
	}
	if len(want.Numbers) > otep.MaxBatchNumbers {
		return BatchOutput{}, tooLarge("tracking_numbers")
	}
	out := BatchOutput{Result: true, Format: f.Name, NotFound: []string{}, Data: []BatchItem{}}
	seen := map[string]bool{}
	for _, n := range want.Numbers {
		n = strings.TrimSpace(n)
		if key := strings.ToUpper(n); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		item := BatchItem{Number: n}
		p, err := s.visibleParcel(ctx, c, n, proof{})
		switch {
		case err == nil:
			item.Found, item.Data = true, projector(c).Document(f, p.timeline, documentTime(p.timeline))
			out.Found++
		case isCode(err, codeOTEPNotFound):
			item.Code = codeOTEPNotFound
			out.NotFound = append(out.NotFound, n)
		case isCode(err, codeLimited) && len(out.Data) > 0: // it costs as much as its numbers would alone
			item.Code = codeLimited
		default:
			return BatchOutput{}, err
		}
		out.Data = append(out.Data, item)
	}
	out.Total = len(out.Data)
	return out, nil
}
