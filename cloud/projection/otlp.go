package projection

import (
	"math"
	"strconv"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// OpenTelemetry: one trace per subject, one span per event, as OTLP/JSON. Ids
// are made from the subject and the event, so a trace that was pulled and one
// that was pushed are the same.

// Values of the wire: span kind INTERNAL, status codes.
const (
	spanInternal = 1
	statusOK     = 1
	statusError  = 2
)

type (
	otlpTraces struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		Scopes []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"scope"`
		Spans []span `json:"spans"`
	}
	span struct {
		TraceID    string      `json:"traceId"`
		SpanID     string      `json:"spanId"`
		ParentID   string      `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      string      `json:"startTimeUnixNano"`
		End        string      `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Events     []spanEvent `json:"events,omitempty"`
		Status     *spanStatus `json:"status,omitempty"`
	}
	spanEvent struct {
		Time       string      `json:"timeUnixNano"`
		Name       string      `json:"name"`
		Attributes []attribute `json:"attributes"`
	}
	spanStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"` // 64 bits are a string in OTLP/JSON
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// attributes collects what is not empty.
type attributes []attribute

func (a *attributes) text(key, v string) {
	if v != "" {
		*a = append(*a, attribute{key, value{String: &v}})
	}
}

func (a *attributes) number(key string, v float64) {
	*a = append(*a, attribute{key, value{Double: &v}})
}

func otlp(_ *Projector, t otep.Timeline, _ time.Time) any {
	var r resourceSpans
	var a attributes
	a.text("service.name", "otep")
	a.text("otep.version", t.Version)
	a.text("otep.profile", t.Profile)
	a.text("otep.tracking_number", t.Subject.TrackingNumber)
	if t.Subject.OrderID != 0 {
		id := strconv.FormatInt(t.Subject.OrderID, 10)
		a = append(a, attribute{"otep.order_id", value{Int: &id}})
	}
	r.Resource.Attributes = a
	var s scopeSpans
	s.Scope.Name, s.Scope.Version, s.Spans = "otep", t.Version, spans(t)
	r.Scopes = []scopeSpans{s}
	return otlpTraces{[]resourceSpans{r}}
}

func otlpEvents(_ *Projector, t otep.Timeline) any { return spans(t) }

// TraceID is the id of a subject's trace.
func TraceID(s otep.Subject) [16]byte { return [16]byte(digest(16, "otep/trace/", s.IdentityKey())) }

// SpanID is the id of an event's span.
func SpanID(s otep.Subject, event string) [8]byte {
	return [8]byte(digest(8, "otep/span/", s.IdentityKey(), "/", event))
}

func spans(t otep.Timeline) []span {
	events := actual(t)
	key := t.Subject.IdentityKey()
	trace := hexDigest(16, "otep/trace/", key)
	out := make([]span, len(events))
	for i, e := range events {
		s := span{TraceID: trace, SpanID: hexDigest(8, "otep/span/", key, "/", e.EventID), Name: string(e.StatusCode), Kind: spanInternal,
			Start: nano(e.OccurredAt), Attributes: spanAttributes(e), Status: spanOutcome(e)}
		s.End = s.Start
		if i > 0 {
			s.ParentID = out[0].SpanID
		}
		if i+1 < len(events) {
			s.End = nano(events[i+1].OccurredAt)
		}
		for _, r := range e.Telemetry {
			s.Events = append(s.Events, spanReading(e, r))
		}
		out[i] = s
	}
	return out
}

func spanAttributes(e otep.Event) attributes {
	var a attributes
	a.text("otep.event_id", e.EventID)
	a.text("otep.status_code", string(e.StatusCode))
	a.text("otep.phase", e.Phase)
	if s := e.Source; s != nil {
		a.text("otep.source.type", s.Type)
		a.text("otep.source.provider", s.Provider)
	}
	if l := e.Location; l != nil {
		a.text("otep.location.name", l.Name)
		a.text("geo.locality.name", l.City)
		a.text("geo.country.iso_code", l.Country)
		if located(l) {
			a.number("geo.location.lat", *l.Latitude)
			a.number("geo.location.lon", *l.Longitude)
		}
	}
	a.text("otep.incident_reason", reason(e, otep.Project(e.StatusCode, e.Phase)))
	return a
}

func spanOutcome(e otep.Event) *spanStatus {
	switch e.Phase {
	case otep.PhaseException, otep.PhaseReturn:
		message := reason(e, otep.Project(e.StatusCode, e.Phase))
		if message == "" {
			message = string(e.StatusCode)
		}
		return &spanStatus{statusError, message}
	case otep.PhaseDelivered:
		return &spanStatus{Code: statusOK}
	}
	return nil
}

func spanReading(e otep.Event, r otep.Reading) spanEvent {
	at := e.OccurredAt
	if r.Time != nil {
		at = *r.Time
	}
	var a attributes
	a.text("otep.telemetry.type", r.Type)
	a.number("otep.telemetry.value", r.Value)
	a.text("otep.telemetry.unit", r.Unit)
	return spanEvent{Time: nano(at), Name: "telemetry", Attributes: a}
}

// nano is a time as OTLP has it, an unsigned number of nanoseconds: what lies
// outside stands at the edge.
func nano(t otep.Time) string {
	s := t.Unix()
	switch {
	case s < 0:
		return "0"
	case s > math.MaxInt64/1_000_000_000-1:
		return strconv.FormatInt(math.MaxInt64, 10)
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}
