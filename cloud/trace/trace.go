// Package trace pushes parcels' journeys to an OpenTelemetry collector as they
// happen: one trace per parcel, one span per event, with the ids and the
// content of the document that can be pulled (format otlp).
//
// A collector cannot be asked to change a span, only be sent it again. So each
// event is pushed when it arrives, and with it every span that it changes: the
// one before it, which now has an end, or all of them when the journey begins
// earlier than was known. A withdrawn event's span is sent once more, marked by
// otep.withdrawn, and the rest of its trace with it. Backends keep the newest.
//
// Nothing is lost: the store remembers for each event whether the collector has
// confirmed it. While the collector is down events wait in the database, not in
// memory. One may be pushed twice, never out of order with itself: only the
// node that holds the lease pushes, one upload at a time. What a collector
// refuses as wrong, alone and again, is logged, counted and passed over.
//
// A collector is another system: it gets what is public.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/postern-io/postern/cloud"
)

// Store is what this package needs of the database.
type Store interface {
	ClaimTraces(ctx context.Context) (held bool, err error)
	ReleaseTraces(ctx context.Context) error
	UnsentTraces(ctx context.Context, limit int) ([]cloud.TracedParcel, error)
	NoteSentTraces(ctx context.Context, events []cloud.TracedEvent) error
}

// Config is what New needs.
type Config struct {
	Store    Store
	Endpoint string            // of the collector, OTLP over HTTP; without a path /v1/traces
	Headers  map[string]string // of every upload
	Metrics  prometheus.Registerer
	Log      *slog.Logger
}

// Bounds.
const (
	page       = 200 // events looked for at once
	batchSpans = 500 // in an upload, unless one parcel has more
	every      = 5 * time.Second
	firstWait  = time.Second
	longWait   = time.Minute
)

// Pusher pushes. Run it once; Committed may be called at any time.
type Pusher struct {
	store     Store
	collector *collector
	log       *slog.Logger
	wake      chan struct{} // of capacity 1: a hint, the rows are the truth

	spans, refused prometheus.Counter
	uploads        *prometheus.CounterVec
}

// New builds a pusher; it connects to nothing yet.
func New(cfg Config) (*Pusher, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c, err := newCollector(cfg.Endpoint, cfg.Headers)
	if err != nil {
		return nil, err
	}
	p := &Pusher{store: cfg.Store, collector: c, log: cfg.Log, wake: make(chan struct{}, 1),
		spans:   prometheus.NewCounter(prometheus.CounterOpts{Name: "trace_spans_total", Help: "Spans that the collector took."}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "trace_refused_parcels_total", Help: "Uploads of one parcel that the collector refused as wrong."}),
		uploads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trace_uploads_total", Help: "Uploads by what came back."}, []string{"result"})}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(p.spans, p.refused, p.uploads)
	}
	return p, nil
}

// Committed takes the hint that timelines changed.
func (p *Pusher) Committed(ch *cloud.Changes) {
	if len(ch.Events)+len(ch.Withdrawn) == 0 {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run pushes until ctx ends, and returns nil then.
func (p *Pusher) Run(ctx context.Context) error {
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := p.store.ReleaseTraces(stop); err != nil {
			p.log.Warn("give back the trace lease", "err", err)
		}
		_ = p.collector.Stop(stop) // never fails
	}()
	wait, begun := time.Duration(0), false
	for ctx.Err() == nil {
		var more bool
		var err error
		if !begun { // from here on nothing is left out, with any pusher
			_, err = p.store.ClaimTraces(ctx)
			begun = err == nil
		} else {
			more, err = p.step(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			wait = max(firstWait, min(2*wait, longWait))
			p.log.Warn("push traces", "err", err, "again_in", wait)
			p.sleep(ctx, max(wait/2+rand.N(wait/2), p.collector.asked()), nil)
		default:
			wait = 0
			if begun && !more {
				p.sleep(ctx, every, p.wake)
			}
		}
	}
	return nil
}

// sleep waits for a time, or less when woken.
func (p *Pusher) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// step pushes what waits, at most a page, and reports whether there was any.
func (p *Pusher) step(ctx context.Context) (more bool, err error) {
	if waiting, err := p.store.UnsentTraces(ctx, 1); err != nil || len(waiting) == 0 {
		return false, err
	}
	held, err := p.store.ClaimTraces(ctx)
	if err != nil || !held {
		return false, err
	}
	parcels, err := p.store.UnsentTraces(ctx, page)
	if err != nil {
		return false, err
	}
	var batch []piece
	spans := 0
	for _, parcel := range parcels {
		x := newPiece(parcel)
		if spans > 0 && spans+x.count() > batchSpans {
			if err := p.push(ctx, batch); err != nil {
				return false, err
			}
			batch, spans = nil, 0
			// Each upload has the whole lease before it.
			if held, err := p.store.ClaimTraces(ctx); err != nil || !held {
				return false, err
			}
		}
		batch, spans = append(batch, x), spans+x.count()
	}
	return len(parcels) > 0, p.push(ctx, batch)
}

// push sends a batch and notes that it arrived. A batch that is refused as
// wrong is sent parcel by parcel, to find the one.
func (p *Pusher) push(ctx context.Context, batch []piece) error {
	var out []*tracepb.ResourceSpans
	n := 0
	for _, x := range batch {
		if x.count() > 0 {
			out, n = append(out, x.trace), n+x.count()
		}
	}
	if n > 0 {
		result, err := p.collector.upload(ctx, out)
		p.uploads.WithLabelValues(result.String()).Inc()
		switch {
		case result == failed:
			return err
		case result == wrong && len(batch) > 1:
			for i := range batch {
				if held, err := p.store.ClaimTraces(ctx); err != nil || !held {
					return err
				}
				if err := p.push(ctx, batch[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		case result == wrong:
			p.refused.Inc()
			p.log.Error("the trace collector refuses a parcel", "shipment", batch[0].shipment, "err", err)
		default:
			p.spans.Add(float64(n))
			if err != nil {
				p.log.Warn("the trace collector took only a part", "err", err)
			}
		}
	}
	var told []cloud.TracedEvent
	for _, x := range batch {
		told = append(told, x.events...)
	}
	if len(told) == 0 {
		return nil
	}
	if err := p.store.NoteSentTraces(ctx, told); err != nil {
		return fmt.Errorf("note what the trace collector took: %w", err)
	}
	return nil
}
