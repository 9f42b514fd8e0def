// Package span follows a call through the cloud as a trace of OpenTelemetry: the
// call of an operation, the decision that it led to, the webhooks that the decision
// wrote, each attempt at them, the command to a cabinet and the opening that it
// began. Rows carry the trace across commits and nodes, as a traceparent of W3C
// Trace Context, level 1; what they hold is an id, and nothing about anybody.
//
// The journey of a parcel is another trace (package trace): that one is for recipients
// and partners, this one for operators.
package span

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is what the spans' library is called.
const scope = "postern"

// HeaderName is the header, and the member of a tool call's _meta, that carries a trace.
const HeaderName = "traceparent"

// Header is the traceparent of ctx's span (W3C Trace Context 3.2), 55 characters;
// "" when ctx has none, or one that is not recorded.
func Header(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return c[HeaderName]
}

// Join has spans that are started under ctx continue the trace of a traceparent. What
// is not one changes nothing.
func Join(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{HeaderName: traceparent})
}

// Child starts a span below ctx's, and one that is not recorded when ctx has none.
// The caller ends it.
func Child(ctx context.Context, name string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, parent // noop: the end of a span that is not recorded is nothing
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name)
}
