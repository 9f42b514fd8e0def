package trace

import (
	"slices"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/projection"
	"github.com/postern-io/postern/protocol/otep"
)

// piece is what a collector has to receive of a parcel.
type piece struct {
	shipment cloud.ShipmentID
	trace    *tracepb.ResourceSpans // with the spans to send only
	events   []cloud.TracedEvent    // of which it tells, as they were read
}

func (p piece) count() int { return len(p.trace.ScopeSpans[0].Spans) }

// newPiece finds the spans of a parcel that the collector does not have, or has
// otherwise.
func newPiece(parcel cloud.TracedParcel) piece {
	s := parcel.Shipment
	var known, now, withdrawn []otep.Event
	for _, e := range parcel.Events {
		e.Event.Location, e.Event.PoD = e.Event.Location.Public(), e.Event.PoD.Public()
		switch {
		case !e.Event.Withdrawn:
			now = append(now, e.Event)
			if e.State == cloud.TraceSent {
				known = append(known, e.Event)
			}
		case e.State == cloud.TraceWithdrawn:
			withdrawn = append(withdrawn, e.Event)
		}
	}
	p := piece{shipment: s.ID, trace: projection.Trace(otep.Fold(s.Profile, s.Subject(), now)), events: parcel.Events}
	scope := p.trace.ScopeSpans[0]
	var root []byte
	if len(scope.Spans) > 0 {
		root = scope.Spans[0].SpanId
	}
	if len(withdrawn) == 0 {
		// The last upload showed a span as it is between the events that were
		// pushed and all of them; when it is the same at both ends, that is how
		// the collector has it.
		sent := projection.Trace(otep.Fold(s.Profile, s.Subject(), known)).ScopeSpans[0].Spans
		scope.Spans = slices.DeleteFunc(scope.Spans, func(s *tracepb.Span) bool {
			return slices.ContainsFunc(sent, func(old *tracepb.Span) bool { return proto.Equal(old, s) })
		})
		return p
	}
	for _, e := range withdrawn {
		scope.Spans = append(scope.Spans, tombstones(s, e, root)...)
	}
	return p
}

// withdrawnKey marks the span of an event that was taken back.
const withdrawnKey = "otep.withdrawn"

// tombstones is the marked span of a withdrawn event; none of one that never
// had a span.
func tombstones(s cloud.Shipment, e otep.Event, root []byte) []*tracepb.Span {
	e.Withdrawn = false
	spans := projection.Trace(otep.Fold(s.Profile, s.Subject(), []otep.Event{e})).ScopeSpans[0].Spans
	for _, span := range spans {
		span.ParentSpanId = root // not a second beginning
		span.Attributes = append(span.Attributes, &commonpb.KeyValue{Key: withdrawnKey, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}})
	}
	return spans
}
