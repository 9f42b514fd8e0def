package span

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/postern-io/postern/cloud"
)

// Config is what New needs.
type Config struct {
	Client otlptrace.Client // of the collector
	// Share of the calls without a trace of their own that are followed, from 0 to 1.
	// A caller's own trace is continued as its flag says.
	Share   float64
	Node    string // as the resource's service.instance.id
	Version string
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Spans wait in memory for an upload; what finds the queue full is left out, so that
// a collector that is down costs nothing but them.
const (
	waiting   = 4096
	batch     = 512
	every     = 2 * time.Second
	closeTime = 5 * time.Second
)

// Tracer starts spans. A nil one starts spans that are not recorded. It may be used by
// several goroutines.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// New builds a tracer; it connects to the collector with the first span.
func New(ctx context.Context, cfg Config) (*Tracer, error) {
	if cfg.Share < 0 || cfg.Share > 1 {
		return nil, fmt.Errorf("the share of traced calls is %v; it may be 0 to 1", cfg.Share)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	out, err := otlptrace.New(ctx, cfg.Client)
	if err != nil {
		return nil, fmt.Errorf("start the exporter of traces: %w", err)
	}
	e := &exporter{SpanExporter: out, log: cfg.Log,
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "postern_call_spans_total", Help: "Spans of calls that the trace collector took, and that it did not."}, []string{"outcome"})}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(e.spans)
	}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(e, sdktrace.WithMaxQueueSize(waiting), sdktrace.WithMaxExportBatchSize(batch), sdktrace.WithBatchTimeout(every)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Share))),
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "postern-cloud"), attribute.String("service.instance.id", cfg.Node), attribute.String("service.version", cfg.Version))))
	return &Tracer{provider: p, tracer: p.Tracer(scope)}, nil
}

// Start starts a span of a kind, below ctx's or the remote one that Join put there. The
// caller ends it.
func (t *Tracer) Start(ctx context.Context, name string, kind trace.SpanKind, about ...attribute.KeyValue) (context.Context, trace.Span) {
	if t == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(about...))
}

// Fail marks a span by the code of an error; nil changes nothing. Messages stay out: they
// may quote what people wrote.
func Fail(s trace.Span, err error) {
	if err == nil || !s.IsRecording() {
		return
	}
	code := "INTERNAL_ERROR"
	var known *cloud.Error
	if errors.As(err, &known) {
		code = known.Code
	}
	s.SetAttributes(attribute.String("postern.code", code))
	s.SetStatus(codes.Error, code)
}

// Committed records what a commit ended of the traces that rows carry: commands, and
// openings of cabinets with the times that these saw. One that is written again keeps its
// span's id, so that collectors hold the newest.
func (t *Tracer) Committed(ch *cloud.Changes) {
	if t == nil {
		return
	}
	for i := range ch.Commands {
		if c := &ch.Commands[i]; c.Trace != "" && c.State.Ended() {
			t.record(c.Trace, c.ID, "command "+string(c.Kind), c.IssuedAt, c.EndedAt, attribute.Int64("postern.device", int64(c.DeviceID)),
				attribute.String("postern.outcome", string(c.State)), attribute.String("postern.reason", c.Reason))
		}
	}
	for i := range ch.Openings {
		if o := &ch.Openings[i]; o.Trace != "" && o.Ended() {
			from := o.OpenedAt
			if from.IsZero() {
				from = o.RequestedAt
			}
			t.record(o.Trace, o.ID, "opening "+string(o.Kind), from, o.EndedAt, attribute.Int64("postern.device", int64(o.DeviceID)),
				attribute.String("postern.outcome", o.State), attribute.String("postern.reason", o.EndReason))
		}
	}
}

// record is a span of what is over. Clocks of cabinets may end it before it began;
// then it is a moment.
func (t *Tracer) record(traceparent, row, name string, from, to time.Time, about ...attribute.KeyValue) {
	if to.Before(from) {
		from = to
	}
	ctx := context.WithValue(Join(context.Background(), traceparent), rowKey{}, row)
	_, s := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(from), trace.WithAttributes(about...))
	s.End(trace.WithTimestamp(to))
}

// Close sends what waits, for some seconds at most.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// rowKey is where a context keeps the row that a span's id is made of.
type rowKey struct{}

// ids gives random ids, and spans of rows their own.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	for !t.IsValid() {
		binary.NativeEndian.PutUint64(t[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(t[8:], rand.Uint64())
	}
	return t, ids{}.NewSpanID(ctx, t)
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (s trace.SpanID) {
	if row, ok := ctx.Value(rowKey{}).(string); ok {
		sum := sha256.Sum256([]byte("postern/span/" + row))
		copy(s[:], sum[:])
		return s
	}
	for !s.IsValid() {
		binary.NativeEndian.PutUint64(s[:], rand.Uint64())
	}
	return s
}

// exporter counts what became of spans, and logs when that changes.
type exporter struct {
	sdktrace.SpanExporter
	log   *slog.Logger
	spans *prometheus.CounterVec
	down  bool // used by the one goroutine that exports
}

func (e *exporter) ExportSpans(ctx context.Context, list []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, list)
	if err != nil {
		e.spans.WithLabelValues("lost").Add(float64(len(list)))
		if !e.down {
			e.log.Warn("spans of calls do not reach the trace collector; they are left out until it answers", "err", err)
		}
	} else {
		e.spans.WithLabelValues("sent").Add(float64(len(list)))
		if e.down {
			e.log.Info("the trace collector takes spans of calls again")
		}
	}
	e.down = err != nil
	return nil // said here; the library would write it to the standard error
}
