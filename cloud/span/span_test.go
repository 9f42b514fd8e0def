package span

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// received is a collector in memory.
type received struct {
	mu    sync.Mutex
	down  bool
	spans []*tracepb.Span
}

func (*received) Start(context.Context) error { return nil }
func (*received) Stop(context.Context) error  { return nil }

func (r *received) UploadTraces(_ context.Context, list []*tracepb.ResourceSpans) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return errors.New("connection refused")
	}
	for _, x := range list {
		for _, s := range x.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
	return nil
}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func newTracer(t *testing.T, share float64) (*Tracer, *received) {
	r := &received{}
	tracer, err := New(t.Context(), Config{Client: r, Share: share})
	require.NoError(t, err)
	return tracer, r
}

func TestOnlyATraceparentIsJoined(t *testing.T) {
	require.Equal(t, parent, Header(Join(t.Context(), parent)))
	for _, odd := range []string{"", "00", parent + "0", "ff" + parent[2:], "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "a\r\nb: c", parent[:54]} {
		ctx := Join(t.Context(), odd)
		require.Empty(t, Header(ctx), odd)
		require.False(t, trace.SpanContextFromContext(ctx).IsValid(), odd)
	}
	require.Empty(t, Header(Join(t.Context(), parent[:54]+"0")), "a caller who does not follow the call")
}

// What is followed: a share of the calls, and those whose caller follows them.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		share    float64
		caller   string
		followed bool
	}{{0, "", false}, {1, "", true}, {0, parent, true}, {1, parent[:54] + "0", false}} {
		tracer, got := newTracer(t, c.share)
		ctx, s := tracer.Start(Join(t.Context(), c.caller), "orders.list", trace.SpanKindServer)
		require.Equal(t, c.followed, Header(ctx) != "")
		below, d := Child(ctx, "decision")
		require.Equal(t, c.followed, Header(below) != Header(ctx))
		d.End()
		Fail(s, cloud.E(cloud.Conflict, "ORDER_CLOSED"))
		s.End()
		require.NoError(t, tracer.Close())
		want := 0
		if c.followed {
			want = 2
			require.Equal(t, "ORDER_CLOSED", got.spans[1].Status.Message)
		}
		require.Len(t, got.spans, want)
	}
	for _, share := range []float64{-0.1, 1.1} {
		_, err := New(t.Context(), Config{Client: &received{}, Share: share})
		require.ErrorContains(t, err, "0 to 1")
	}
	var none *Tracer
	ctx, s := none.Start(Join(t.Context(), parent), "orders.list", trace.SpanKindServer)
	require.False(t, s.IsRecording())
	none.Committed(&cloud.Changes{})
	require.NoError(t, none.Close())
	_, d := Child(ctx, "decision")
	require.False(t, d.IsRecording())
}

// A row that is written again is the same span; a cabinet's clock that ends an opening
// before it began makes it a moment.
func TestRowsAreSpans(t *testing.T) {
	tracer, got := newTracer(t, 0)
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	ch := &cloud.Changes{}
	ch.Commands = []cloud.Command{
		{ID: "c1", Kind: wire.CmdOpenDoors, State: cloud.CommandDone, IssuedAt: at, EndedAt: at.Add(time.Second), Trace: parent},
		{ID: "c2", Kind: wire.CmdOpenDoors, State: cloud.CommandSent, IssuedAt: at, Trace: parent},
		{ID: "c3", Kind: wire.CmdOpenDoors, State: cloud.CommandDone, IssuedAt: at, EndedAt: at}}
	ch.Openings = []cloud.Opening{{ID: "o1", Kind: wire.OpenDeposit, State: cloud.OpeningSettled, RequestedAt: at, OpenedAt: at.Add(2 * time.Second), EndedAt: at, Trace: parent}}
	tracer.Committed(ch)
	tracer.Committed(ch)
	require.NoError(t, tracer.Close())
	require.Len(t, got.spans, 4)
	require.Equal(t, got.spans[0].SpanId, got.spans[2].SpanId)
	require.Equal(t, got.spans[1].SpanId, got.spans[3].SpanId)
	require.NotEqual(t, got.spans[0].SpanId, got.spans[1].SpanId)
	require.Equal(t, "command open_doors", got.spans[0].Name)
	require.Equal(t, uint64(at.UnixNano()), got.spans[0].StartTimeUnixNano)
	require.Equal(t, uint64(at.Add(time.Second).UnixNano()), got.spans[0].EndTimeUnixNano)
	require.Equal(t, "opening deposit", got.spans[1].Name)
	require.Equal(t, got.spans[1].StartTimeUnixNano, got.spans[1].EndTimeUnixNano)
}

// A collector that is down costs spans and nothing else: nothing waits, one line is
// logged for each change, and what was lost is counted.
func TestACollectorThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r, metrics := &received{down: true}, prometheus.NewRegistry()
		tracer, err := New(t.Context(), Config{Client: r, Share: 1, Metrics: metrics, Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		begun := time.Now()
		spans := func(n int) {
			for range n {
				_, s := tracer.Start(t.Context(), "orders.list", trace.SpanKindServer)
				s.End()
			}
		}
		spans(3 * waiting)
		require.Zero(t, time.Since(begun))
		time.Sleep(10 * every)
		spans(10)
		time.Sleep(2 * every)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("level=WARN")), log.String())
		r.mu.Lock()
		r.down = false
		r.mu.Unlock()
		spans(10)
		time.Sleep(2 * every)
		require.NoError(t, tracer.Close())
		require.Len(t, r.spans, 10)
		require.Contains(t, log.String(), "level=INFO")
		families, err := metrics.Gather()
		require.NoError(t, err)
		require.Len(t, families[0].Metric, 2) // lost and sent
	})
}
