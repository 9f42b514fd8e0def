package projection

import (
	"encoding/hex"
	"math"
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
		TraceID    hexID       `json:"traceId"`
		SpanID     hexID       `json:"spanId"`
		ParentID   hexID       `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      uint64      `json:"startTimeUnixNano,string"` // 64 bits are a string in OTLP/JSON
		End        uint64      `json:"endTimeUnixNano,string"`
		Attributes []attribute `json:"attributes"`
		Events     []spanEvent `json:"events,omitempty"`
		Status     *spanStatus `json:"status,omitempty"`
	}
	spanEvent struct {
		Time       uint64      `json:"timeUnixNano,string"`
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
		Int    *int64   `json:"intValue,omitempty,string"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// hexID is an id, in JSON its digits.
type hexID []byte

// MarshalText gives the digits, in lower case.
func (id hexID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, id), nil }

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

func otlp(_ *Projector, t otep.Timeline, _ time.Time) any { return traces(t) }

// traces is the model that is written as JSON here and as protobuf by Trace.
func traces(t otep.Timeline) otlpTraces {
	var r resourceSpans
	var a attributes
	a.text("service.name", "otep")
	a.text("otep.version", t.Version)
	a.text("otep.profile", t.Profile)
	a.text("otep.tracking_number", t.Subject.TrackingNumber)
	if id := t.Subject.OrderID; id != 0 {
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
	trace := TraceID(t.Subject)
	out := make([]span, len(events))
	for i, e := range events {
		id := SpanID(t.Subject, e.EventID)
		s := span{TraceID: trace[:], SpanID: id[:], Name: string(e.StatusCode), Kind: spanInternal,
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
func nano(t otep.Time) uint64 {
	s := t.Unix()
	switch {
	case s < 0:
		return 0
	case s > math.MaxInt64/1_000_000_000-1:
		return math.MaxInt64
	}
	return uint64(t.UnixNano())
}
