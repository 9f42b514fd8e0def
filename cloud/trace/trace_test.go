package trace

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/otep"
)

// backend stands in for a collector: it keeps the newest of each span, as
// backends do.
type backend struct {
	t  testing.TB
	ts *httptest.Server

	mu       sync.Mutex
	resource map[pcommon.TraceID]pcommon.Resource
	spans    map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span
	received int // spans
	// answer says what becomes of a request; nil or 0 takes it.
	answer func(ptrace.Traces) int
	header http.Header
	body   []byte // of a success
}

func newBackend(t testing.TB) *backend {
	b := &backend{t: t, resource: map[pcommon.TraceID]pcommon.Resource{}, spans: map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span{}, header: http.Header{}}
	b.ts = httptest.NewServer(b)
	t.Cleanup(b.ts.Close)
	return b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		b.t.Errorf("request %s %v: %v", r.URL, r.Header, err)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		b.t.Error(err)
	}
	var d ptrace.ProtoUnmarshaler
	traces, err := d.UnmarshalTraces(raw)
	if err != nil {
		b.t.Error(err)
	}
	if b.answer != nil {
		if status := b.answer(traces); status != 0 {
			for k := range b.header {
				w.Header().Set(k, b.header.Get(k))
			}
			w.WriteHeader(status)
			return
		}
	}
	for _, rs := range traces.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				b.received++
				id := s.TraceID()
				if b.spans[id] == nil {
					b.spans[id] = map[pcommon.SpanID]ptrace.Span{}
				}
				b.spans[id][s.SpanID()], b.resource[id] = s, rs.Resource()
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(b.body)
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.received
}

// world is a deployment with a collector.
type world struct {
	t    testing.TB
	db   *store.DB
	back *backend
	next cloud.ShipmentID
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, db: storetest.OpenSQLite(t), back: newBackend(t)}
	_, err := w.db.ClaimTraces(t.Context())
	require.NoError(t, err)
	return w
}

func (w *world) pusher() *Pusher {
	p, err := New(Config{Store: w.db, Endpoint: w.back.ts.URL})
	require.NoError(w.t, err)
	return p
}

// drain pushes until nothing waits, or fails.
func drain(t testing.TB, p *Pusher) error {
	for {
		more, err := p.step(t.Context())
		if err != nil || !more {
			return err
		}
	}
}

func (w *world) write(ch cloud.Changes) {
	require.NoError(w.t, w.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
}

func (w *world) parcel() cloud.ShipmentID {
	w.next++
	w.write(cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: w.next, BusinessID: 42, Number: fmt.Sprintf("T%d", w.next), Profile: "parcel", CreatedAt: start}}}})
	return w.next
}

// start is not long ago: a parcel that ended is not public for ever.
var start = time.Now().Add(-48 * time.Hour).UTC().Truncate(time.Minute)

// event is one of a parcel, so many minutes after start.
func event(code otep.Code, minute int) otep.Event {
	at := otep.Time{Time: start.Add(time.Duration(minute) * time.Minute)}
	e := otep.Event{OccurredAt: at, RecordedAt: at, StatusCode: code, Source: &otep.Source{Type: otep.Carrier, Provider: "ups"}}
	return e.Fill("parcel")
}

func (w *world) add(id cloud.ShipmentID, e otep.Event) string {
	if e.EventID == "" {
		e.EventID = otep.ID(otep.Subject{TrackingNumber: fmt.Sprintf("T%d", id)}, e)
	}
	w.write(cloud.Changes{TrackingChanges: cloud.TrackingChanges{Events: []cloud.TimelineEvent{{ShipmentID: id, BusinessID: 42, Event: e}}}})
	return e.EventID
}

func (w *world) withdraw(id cloud.ShipmentID, event string) {
	w.write(cloud.Changes{TrackingChanges: cloud.TrackingChanges{Withdrawn: []cloud.EventRef{{ShipmentID: id, EventID: event, At: start}}}})
}

// pulled is a parcel's document as anybody reads it.
func (w *world) pulled(id cloud.ShipmentID) ptrace.Traces {
	out, err := tracking.New(w.db).Timeline(w.t.Context(), cloud.Caller{BaseURL: "https://tms.example"}, tracking.TimelineInput{Number: fmt.Sprintf("T%d", id), Format: "otlp"})
	require.NoError(w.t, err)
	raw, err := json.Marshal(out.Data)
	require.NoError(w.t, err)
	var d ptrace.JSONUnmarshaler
	t, err := d.UnmarshalTraces(raw)
	require.NoError(w.t, err)
	return t
}

// same requires that the backend's trace of a parcel is the pulled one, but for
// spans that are marked as withdrawn.
func (w *world) same(id cloud.ShipmentID) {
	w.t.Helper()
	want := w.pulled(id)
	scope := want.ResourceSpans().At(0).ScopeSpans().At(0)
	w.back.mu.Lock()
	defer w.back.mu.Unlock()
	if scope.Spans().Len() == 0 {
		return
	}
	trace := scope.Spans().At(0).TraceID()
	require.Equal(w.t, want.ResourceSpans().At(0).Resource().Attributes().AsRaw(), w.back.resource[trace].Attributes().AsRaw())
	alive := 0
	for _, s := range w.back.spans[trace] {
		if _, gone := s.Attributes().Get(withdrawnKey); !gone {
			alive++
		}
	}
	require.Equal(w.t, scope.Spans().Len(), alive, "spans of parcel %d", id)
	for _, s := range scope.Spans().All() {
		got, ok := w.back.spans[trace][s.SpanID()]
		require.True(w.t, ok, "span %s of parcel %d", s.Name(), id)
		require.Equal(w.t, written(w.t, s), written(w.t, got))
	}
}

// written is a span as JSON, for comparing.
func written(t testing.TB, s ptrace.Span) string {
	one := ptrace.NewTraces()
	s.CopyTo(one.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	var m ptrace.JSONMarshaler
	raw, err := m.MarshalTraces(one)
	require.NoError(t, err)
	return string(raw)
}

func TestEachEventIsPushedWithTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, id := w.pusher(), w.parcel()
	for i, x := range []struct {
		e    otep.Event
		sent int // spans so far
	}{{event(otep.PickedUp, 0), 1}, {event(otep.InTransit, 10), 3}, {event(otep.OutForDelivery, 20), 5}, {event(otep.Delivered, 30), 7}} {
		w.add(id, x.e)
		require.NoError(t, drain(t, p))
		require.Equal(t, x.sent, w.back.count(), "after event %d", i)
		w.same(id)
	}
	w.add(id, event(otep.ArrivalScan, 15)) // late, into the middle
	require.NoError(t, drain(t, p))
	require.Equal(t, 9, w.back.count())
	w.same(id)
	w.add(id, event(otep.BookingConfirmed, -60)) // an earlier beginning: a new root
	require.NoError(t, drain(t, p))
	require.Equal(t, 15, w.back.count())
	w.same(id)
	planned := event(otep.InTransit, 40)
	planned.TimeType = otep.Planned
	w.add(id, planned)
	require.NoError(t, drain(t, p))
	require.Equal(t, 15, w.back.count(), "a plan has no span")
	w.same(id)
}

func TestWithdrawnEventsAreMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, id := w.pusher(), w.parcel()
	first := w.add(id, event(otep.PickedUp, 0))
	w.add(id, event(otep.InTransit, 10))
	wrong := w.add(id, event(otep.Delivered, 20))
	require.NoError(t, drain(t, p))
	for _, gone := range []string{wrong, first} {
		w.withdraw(id, gone)
		require.NoError(t, drain(t, p))
		w.same(id)
	}
	trace := w.pulled(id).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	marked := 0
	for _, s := range w.back.spans[trace.TraceID()] {
		if v, ok := s.Attributes().Get(withdrawnKey); ok {
			marked++
			require.True(t, v.Bool())
			require.Equal(t, s.StartTimestamp(), s.EndTimestamp())
			require.False(t, s.ParentSpanID().IsEmpty(), "a trace has one beginning")
		}
	}
	require.Equal(t, 2, marked)
	before := w.back.count()
	require.NoError(t, drain(t, p))
	require.Equal(t, before, w.back.count(), "told once")
}

// Whatever happens, in whatever order, with a collector that fails now and then
// and a pusher that starts anew: in the end the backend has what can be pulled.
func TestPushedIsPulled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			w := newWorld(t)
			w.back.answer = func(ptrace.Traces) int { return []int{0, 0, 503, 500, 429}[r.IntN(5)] }
			p := w.pusher()
			var ids []cloud.ShipmentID
			events := map[cloud.ShipmentID][]string{}
			for range 4 {
				ids = append(ids, w.parcel())
			}
			for range 120 {
				id := ids[r.IntN(len(ids))]
				switch list := events[id]; {
				case r.IntN(8) == 0 && len(list) > 0:
					w.withdraw(id, list[r.IntN(len(list))])
				case r.IntN(3) == 0:
					if _, err := p.step(t.Context()); err != nil {
						require.Contains(t, err.Error(), "the trace collector answered")
					}
				case r.IntN(20) == 0:
					p = w.pusher()
				default:
					codes := otep.Vocabulary()
					e := event(codes[r.IntN(len(codes))].Code, r.IntN(100))
					e.Telemetry = slices.Repeat([]otep.Reading{{Type: "temperature", Value: r.Float64(), Unit: "CEL"}}, r.IntN(3))
					events[id] = append(events[id], w.add(id, e))
				}
			}
			w.back.answer = nil
			require.NoError(t, drain(t, p))
			for _, id := range ids {
				w.same(id)
			}
		})
	}
}

// Events from before pushing began are pushed with the first news of their parcel.
func TestHistoryComesWithTheFirstNews(t *testing.T) {
	t.Parallel()
	w := &world{t: t, db: storetest.OpenSQLite(t), back: newBackend(t)}
	p, quiet, busy := w.pusher(), w.parcel(), w.parcel()
	for _, id := range []cloud.ShipmentID{quiet, busy} {
		w.add(id, event(otep.PickedUp, 0))
		w.add(id, event(otep.InTransit, 10))
	}
	_, err := w.db.ClaimTraces(t.Context())
	require.NoError(t, err)
	require.NoError(t, drain(t, p))
	require.Zero(t, w.back.count())
	w.add(busy, event(otep.Delivered, 20))
	require.NoError(t, drain(t, p))
	require.Equal(t, 3, w.back.count())
	w.same(busy)
}

// A collector is another system.
func TestNothingPrivateIsPushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, id := w.pusher(), w.parcel()
	e := event(otep.Delivered, 0)
	lat, lon := 43.6, -79.3
	e.Location = &otep.Location{Type: otep.PlaceAddress, Name: "Smith residence", Address: "9 Secret Lane", PostalCode: "M5V 2T6", City: "Toronto", Country: "CA", Latitude: &lat, Longitude: &lon}
	e.PoD = &otep.Proof{Recipient: "Jane Smith", Note: "with the neighbour"}
	e.Message = "call Jane"
	w.add(id, e)
	private := ""
	w.back.answer = func(traces ptrace.Traces) int {
		var m ptrace.JSONMarshaler
		raw, err := m.MarshalTraces(traces)
		require.NoError(t, err)
		private = string(raw)
		return 0
	}
	require.NoError(t, drain(t, p))
	require.Contains(t, private, "Toronto")
	for _, secret := range []string{"Smith", "Jane", "Secret", "M5V", "43.6", "79.3", "neighbour"} {
		require.NotContains(t, private, secret)
	}
	w.same(id)
}

func counter(t testing.TB, reg *prometheus.Registry, name string) float64 {
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestOneWrongParcelDoesNotKeepTheOthersBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reg := prometheus.NewRegistry()
	p, err := New(Config{Store: w.db, Endpoint: w.back.ts.URL + "/", Metrics: reg})
	require.NoError(t, err)
	var ids []cloud.ShipmentID
	for range 5 {
		ids = append(ids, w.parcel())
		w.add(ids[len(ids)-1], event(otep.InTransit, 0))
	}
	w.back.answer = func(traces ptrace.Traces) int {
		for _, rs := range traces.ResourceSpans().All() {
			if n, _ := rs.Resource().Attributes().Get("otep.tracking_number"); n.Str() == "T3" {
				return http.StatusBadRequest
			}
		}
		return 0
	}
	require.NoError(t, drain(t, p))
	for _, id := range ids {
		if id != 3 {
			w.same(id)
		}
	}
	require.Equal(t, 4, w.back.count())
	require.EqualValues(t, 1, counter(t, reg, "trace_refused_parcels_total"))
	require.EqualValues(t, 4, counter(t, reg, "trace_spans_total"))
	w.back.answer = nil
	w.add(3, event(otep.Delivered, 10))
	require.NoError(t, drain(t, p))
	require.Equal(t, 6, w.back.count(), "its next event goes on")
}

// OTLP forbids to repeat what was taken in part.
func TestAPartIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.back.body = partly
	p, id := w.pusher(), w.parcel()
	var log strings.Builder
	p.log = slog.New(slog.NewTextHandler(&log, nil))
	w.add(id, event(otep.InTransit, 0))
	require.NoError(t, drain(t, p))
	require.NoError(t, drain(t, p))
	require.Equal(t, 1, w.back.count())
	require.Contains(t, log.String(), "left out 3 spans")

	// Of what was taken whole the log says nothing.
	log.Reset()
	w.back.body = nil
	w.add(id, event(otep.Delivered, 1))
	require.NoError(t, drain(t, p))
	require.Greater(t, w.back.count(), 1)
	require.Empty(t, log.String())
}

// partly is the generated ExportTraceServiceResponse, as google.golang.org/protobuf
// encodes it, of 3 rejected spans and the message "too old".
var partly = []byte("\x0a\x0b\x08\x03\x12\x07too old")

func TestPartialSuccessIsRead(t *testing.T) {
	t.Parallel()
	n, why := leftOut(partly)
	require.Equal(t, []any{int64(3), "too old"}, []any{n, why})
	n, why = leftOut([]byte("\x0a\x0b\x12\x09slow down"))
	require.Equal(t, []any{int64(0), "slow down"}, []any{n, why}, "a warning: all were taken")
	for _, none := range []string{"", "\x0a\x00", "{}", "\x0a\xff", "\x0a\x02\x08", "\x12\x03abc", "\x08\x01"} {
		n, why = leftOut([]byte(none))
		require.Equal(t, []any{int64(0), ""}, []any{n, why}, "%q", none)
	}
}

func FuzzPartialSuccess(f *testing.F) {
	f.Add(partly)
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if _, why := leftOut(answer); len(why) > len(answer) {
			t.Fatal(why)
		}
	})
}

func TestManyParcelsGoInBoundedUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pusher()
	largest := 0
	w.back.answer = func(traces ptrace.Traces) int { largest = max(largest, traces.SpanCount()); return 0 }
	for range 40 {
		id := w.parcel()
		var ch cloud.Changes
		for m := range 30 {
			e := event(otep.InTransit, m)
			e.EventID = fmt.Sprintf("e%d", m)
			ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: id, BusinessID: 42, Event: e})
		}
		w.write(ch)
	}
	require.NoError(t, drain(t, p))
	require.Equal(t, 1200, w.back.count())
	require.LessOrEqual(t, largest, batchSpans)
}

// The running pusher: woken by commits, patient with a collector that is down,
// and another one after it goes on where it stopped.
func TestRunLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pusher()
	w.db.OnCommit(p.Committed)
	run := func(p *Pusher) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		return func() {
			cancel()
			require.NoError(t, <-done)
		}
	}
	stop := run(p)
	id := w.parcel()
	w.add(id, event(otep.PickedUp, 0))
	ring.Await(t, func() bool { return w.back.count() == 1 })

	down := make(chan struct{}, 100)
	w.back.mu.Lock()
	w.back.answer = func(ptrace.Traces) int { down <- struct{}{}; return http.StatusServiceUnavailable }
	w.back.mu.Unlock()
	w.add(id, event(otep.InTransit, 10))
	<-down
	w.add(id, event(otep.OutForDelivery, 20))
	<-down
	stop()
	w.add(id, event(otep.Delivered, 30)) // no pusher runs
	require.Equal(t, 1, w.back.count())

	w.back.mu.Lock()
	w.back.answer = nil
	w.back.mu.Unlock()
	stop = run(w.pusher())
	ring.Await(t, func() bool { return w.back.count() == 5 })
	stop()
	w.same(id)
}

func TestTheCollectorsWordIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, id := w.pusher(), w.parcel()
	w.add(id, event(otep.InTransit, 0))
	for _, x := range []struct {
		status int
		after  string
		want   time.Duration
	}{{429, "7", 7 * time.Second}, {503, "86400", longestAsk}, {503, "soon", 0}, {401, "", 0}, {302, "", 0}, {404, "", 0}} {
		w.back.answer = func(ptrace.Traces) int { return x.status }
		w.back.header = http.Header{"Retry-After": {x.after}, "Location": {"/elsewhere"}}
		require.Error(t, drain(t, p), "status %d", x.status)
		require.Equal(t, x.want, p.collector.asked())
	}
	w.back.answer = nil
	require.NoError(t, drain(t, p))
	w.same(id)
	for _, bad := range []string{"", "collector:4318", "ftp://x", "http://", "::"} {
		_, err := New(Config{Endpoint: bad})
		require.Error(t, err, bad)
	}
}

// gone is a database that does not answer.
type gone struct{ Store }

func (gone) ClaimTraces(context.Context) (bool, error) { return false, io.ErrUnexpectedEOF }
func (gone) ReleaseTraces(context.Context) error       { return io.ErrUnexpectedEOF }

func TestRunEndsWhenAsked(t *testing.T) {
	t.Parallel()
	p, err := New(Config{Store: gone{}, Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, p.Run(ctx))
}
