package projection

import (
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/postern-io/postern/protocol/otep"
)

// Trace is the otlp document as protobuf, for collectors: the same spans with
// the same ids, made from the same model.
func Trace(t otep.Timeline) *tracepb.ResourceSpans {
	r := traces(formed(t)).Resources[0]
	s := r.Scopes[0]
	out := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: s.Scope.Name, Version: s.Scope.Version}}
	for _, s := range s.Spans {
		out.Spans = append(out.Spans, s.proto())
	}
	return &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: protoAttributes(r.Resource.Attributes)}, ScopeSpans: []*tracepb.ScopeSpans{out}}
}

func (s span) proto() *tracepb.Span {
	out := &tracepb.Span{TraceId: s.TraceID, SpanId: s.SpanID, ParentSpanId: s.ParentID, Name: s.Name, Kind: tracepb.Span_SpanKind(s.Kind), StartTimeUnixNano: s.Start,
		EndTimeUnixNano: s.End, Attributes: protoAttributes(s.Attributes)}
	for _, e := range s.Events {
		out.Events = append(out.Events, &tracepb.Span_Event{TimeUnixNano: e.Time, Name: e.Name, Attributes: protoAttributes(e.Attributes)})
	}
	if s.Status != nil {
		out.Status = &tracepb.Status{Code: tracepb.Status_StatusCode(s.Status.Code), Message: s.Status.Message}
	}
	return out
}

func protoAttributes(list []attribute) []*commonpb.KeyValue {
	var out []*commonpb.KeyValue
	for _, a := range list {
		v := &commonpb.AnyValue{}
		switch {
		case a.Value.String != nil:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: *a.Value.String}
		case a.Value.Int != nil:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: *a.Value.Int}
		case a.Value.Double != nil:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: *a.Value.Double}
		}
		out = append(out, &commonpb.KeyValue{Key: a.Key, Value: v})
	}
	return out
}
