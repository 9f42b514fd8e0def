package bench

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// web starts a cloud that listens for HTTP on the loopback, without limits on
// calls.
func web(tb testing.TB) (*server.Server, server.Sandbox, string) {
	tb.Helper()
	s, err := server.New(context.Background(), server.Config{Dir: tb.TempDir(), Node: "bench", BaseURL: "https://track.example",
		Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Ingest: -1}})
	require.NoError(tb, err)
	box, err := s.Sandbox(context.Background(), server.SandboxConfig{Codes: wire.CodeParams{MemoryKiB: 8, Passes: 1}})
	require.NoError(tb, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx, server.Listeners{HTTP: ln}) })
	tb.Cleanup(func() { stop(); wg.Wait() })
	return s, box, ln.Addr().String()
}

// parcels makes shipments of the sandbox's provider, with events each.
func parcels(tb testing.TB, s *server.Server, p cloud.Provider, count, events int) {
	tb.Helper()
	at := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for from := 0; from < count; from += 500 {
		var ch cloud.Changes
		for n := from; n < min(count, from+500); n++ {
			id := cloud.ShipmentID(1_000_000 + n)
			number := fmt.Sprintf("B%07d", n)
			ch.Shipments = append(ch.Shipments, cloud.Shipment{ID: id, BusinessID: p.BusinessID, ProviderID: p.ID, Number: number, Profile: "parcel", CreatedAt: at})
			for k := range events {
				when := otep.Time{Time: at.Add(time.Duration(k) * time.Hour)}
				e := otep.Event{OccurredAt: when, RecordedAt: when, StatusCode: []otep.Code{otep.InTransit, otep.ArrivalScan}[k%2], Source: &otep.Source{Type: "carrier", Provider: "ups"},
					Location: &otep.Location{Name: "Toronto Hub", City: "Toronto", Country: "CA"}}.Fill("parcel")
				e.EventID = fmt.Sprintf("e-%d-%d", n, k)
				ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: id, BusinessID: p.BusinessID, Event: e})
			}
		}
		require.NoError(tb, s.Store.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return &ch, nil }))
	}
}

const senders = 16

// post sends requests from senders connections until there are no more.
func post(tb testing.TB, addr, path, token string, count int, body func(n int) string) time.Duration {
	client := &fasthttp.Client{MaxConnsPerHost: senders}
	bodies := make([]string, count)
	for n := range bodies {
		bodies[n] = body(n)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range senders {
		wg.Go(func() {
			var q fasthttp.Request
			var a fasthttp.Response
			for {
				n := int(next.Add(1)) - 1
				if n >= count {
					return
				}
				q.Reset()
				q.Header.SetMethod(http.MethodPost)
				q.SetRequestURI("http://" + addr + path)
				q.Header.SetContentType("application/json")
				q.Header.Set("Authorization", "Bearer "+token)
				q.SetBodyString(bodies[n])
				if err := client.Do(&q, &a); err != nil || a.StatusCode() != 200 {
					tb.Errorf("%v: %d %s", err, a.StatusCode(), a.Body())
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// samples are those of one measurement, taken in turn.
const samples = 30

// ingesting measures events over HTTP against a second store that writes the same rows with nothing
// around them. The clients' own time, against a server that answers at once, is taken out.
type ingesting struct {
	addr, path, token string
	kept              commits
	second            *store.DB
	still             string // address of a server that answers at once

	took, bare, own time.Duration
	events          int
}

// commits are what a store committed, in order.
type commits struct {
	mu   sync.Mutex
	list []cloud.Changes
}

func (k *commits) committed(ch *cloud.Changes) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, *ch)
}

// replay writes what was kept into another store, from as many callers as there are senders, each
// shipment's commits in order, and forgets it.
func (k *commits) replay(tb testing.TB, db *store.DB) time.Duration {
	k.mu.Lock()
	list := k.list
	k.list = nil
	k.mu.Unlock()
	var lanes [senders][]cloud.Changes
	for i, ch := range list {
		if len(ch.Events)+len(ch.Orders) == 0 { // what tasks of the server do
			continue
		}
		if len(ch.Events) > 0 {
			i = int(ch.Events[0].ShipmentID)
		}
		lanes[i%senders] = append(lanes[i%senders], ch)
	}
	var wg sync.WaitGroup
	start := time.Now()
	for _, lane := range lanes {
		wg.Go(func() {
			for i := range lane {
				if err := db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return &lane[i], nil }); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// newIngesting starts two clouds with the same provider, token and parcels.
func newIngesting(tb testing.TB, prepare func(*server.Server, server.Sandbox)) (*ingesting, server.Sandbox) {
	s, box, addr := web(tb)
	prepare(s, box)
	twin, same, _ := web(tb)
	prepare(twin, same)
	require.Equal(tb, box.ProviderCaller.Provider.ID, same.ProviderCaller.Provider.ID)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	still := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) { c.SetBodyString(`{"result":true}`) }}
	go func() { _ = still.Serve(ln) }()
	tb.Cleanup(func() { _ = still.Shutdown() })
	x := &ingesting{addr: addr, second: twin.Store, still: ln.Addr().String()}
	s.Store.OnCommit(x.kept.committed)
	return x, box
}

// sample sends requests with events, and writes what became of them to the second store.
func (x *ingesting) sample(b *testing.B, requests, events int, body func(n int) string) {
	x.took += post(b, x.addr, x.path, x.token, requests, body)
	x.bare += x.kept.replay(b, x.second)
	x.own += post(b, x.still, x.path, x.token, requests, body)
	x.events += requests * events
}

func (x *ingesting) report(b *testing.B) {
	b.ReportMetric(float64(x.events)/x.took.Seconds(), "events/s")
	b.ReportMetric(x.bare.Seconds()/(x.took-x.own).Seconds(), "ratio")
	b.ReportMetric(0, "ns/op")
	x.took, x.bare, x.own, x.events = 0, 0, 0, 0
}

// Events of partners over HTTP, durable: figure 6.
func BenchmarkIngest(b *testing.B) {
	const many = 4000
	x, box := newIngesting(b, func(s *server.Server, box server.Sandbox) { parcels(b, s, box.ProviderCaller.Provider, many, 0) })
	round := 0
	at := func(k int) string {
		return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(round)*time.Hour + time.Duration(k)*time.Second).Format(time.RFC3339)
	}
	native := func(n, events int) string {
		body := fmt.Appendf(nil, `{"otep_version":"0.1","profile":"parcel","subject":{"tracking_number":"B%07d"},"events":[`, n%many)
		for k := range events {
			if k > 0 {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `{"occurred_at":%q,"status_code":"in_transit","source":{"type":"partner"},"location":{"name":"Toronto Hub","city":"Toronto","country":"CA"}}`, at(k))
		}
		return string(append(body, "]}"...))
	}
	epcis := func(n, events int) string {
		body := []byte(`{"type":"EPCISDocument","schemaVersion":"2.0","creationDate":"2026-06-01T00:00:00Z","epcisBody":{"eventList":[`)
		for k := range events {
			if k > 0 {
				body = append(body, ',')
			}
			body = fmt.Appendf(body, `{"type":"ObjectEvent","eventID":"urn:uuid:%d-%d-%d","eventTime":%q,"eventTimeZoneOffset":"+00:00","action":"OBSERVE","bizStep":"departing","disposition":"in_transit","epcList":["https://track.example/api/v1/otep/trackings/B%07d"],"readPoint":{"id":"geo:43.5,-79.25"}}`, round, n, k, at(k), n%many)
		}
		return string(append(body, "]}}"...))
	}
	x.token = box.Provider.Token
	for _, f := range []struct {
		name, path    string
		make          func(n, events int) string
		calls, events int
	}{{"native/batches of 100", "/api/v1/otep/ingest", native, 40, 100}, {"native/one by one", "/api/v1/otep/ingest", native, 800, 1},
		{"epcis/batches of 100", "/api/v1/otep/ingest/epcis", epcis, 40, 100}, {"epcis/one by one", "/api/v1/otep/ingest/epcis", epcis, 800, 1}} {
		b.Run(f.name, func(b *testing.B) {
			x.path = f.path
			for b.Loop() {
				for range samples {
					round++ // other events each time, of parcels in turn
					x.sample(b, f.calls, f.events, func(n int) string { return f.make(round*f.calls+n, f.events) })
				}
			}
			x.report(b)
		})
	}
}

// Events of a carrier about orders over HTTP, durable, with the moves that follow from them: figure 6. Each order
// goes from the business to its recipient by six events, one request each or all at once.
func BenchmarkIngestOfOrders(b *testing.B) {
	const many = 100
	journey := []otep.Code{otep.PickedUp, otep.ArrivalScan, otep.InTransit, otep.OutForDelivery, otep.DeliveryFailed, otep.Delivered}
	token, hash := "swift-token-of-the-benchmark", sha256.Sum256([]byte("swift-token-of-the-benchmark"))
	x, box := newIngesting(b, func(s *server.Server, box server.Sandbox) {
		p := cloud.Provider{ID: 900, BusinessID: box.ProviderCaller.Provider.BusinessID, Code: "swift", Name: "Swift", Services: []string{cloud.ServiceTracking}, SourceType: otep.Carrier, Scope: cloud.ScopeAll}
		account := cloud.Account{ID: 901, BusinessID: p.BusinessID, Type: cloud.ProviderType, Name: "swift", ProviderID: p.ID, Enabled: true}
		require.NoError(b, s.Store.Decide(b.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}, Accounts: []cloud.Account{account}, Tokens: []cloud.Token{{Hash: hash, AccountID: account.ID, CreatedAt: time.Now()}}}}, nil
		}))
	})
	x.token, x.path = token, "/api/v1/otep/ingest"
	orders := func() (numbers []string) {
		for range many {
			numbers = append(numbers, orderOver(b, x.addr, box.Admin.Token))
		}
		x.kept.replay(b, x.second)
		return numbers
	}
	body := func(number string, events ...int) string {
		at := time.Now().Add(time.Second)
		out := fmt.Appendf(nil, `{"otep_version":"0.1","subject":{"tracking_number":%q},"events":[`, number)
		for i, n := range events {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `{"event_id":"e-%d","occurred_at":%q,"status_code":%q,"source":{"type":"carrier"}}`, n, at.Add(time.Duration(n)*time.Second).Format(time.RFC3339), journey[n])
		}
		return string(append(out, "]}"...))
	}
	b.Run("one by one", func(b *testing.B) {
		for b.Loop() {
			for range samples / len(journey) {
				numbers := orders()
				for k := range journey {
					x.sample(b, many, 1, func(n int) string { return body(numbers[n], k) })
				}
			}
		}
		x.report(b)
	})
	b.Run("journeys", func(b *testing.B) {
		for b.Loop() {
			for range samples {
				numbers := orders()
				x.sample(b, many, len(journey), func(n int) string { return body(numbers[n], 0, 1, 2, 3, 4, 5) })
			}
		}
		x.report(b)
	})
}

// orderOver makes an order over HTTP and gives its number.
func orderOver(tb testing.TB, addr, token string) string {
	var q fasthttp.Request
	var a fasthttp.Response
	q.Header.SetMethod(http.MethodPost)
	q.SetRequestURI("http://" + addr + "/api/v1/client/orderCreate")
	q.Header.SetContentType("application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	q.SetBodyString(`{"type":"D","packages":[{"weight":1}],"recipient":{"name":"Ada","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`)
	require.NoError(tb, fasthttp.Do(&q, &a))
	require.Equal(tb, 201, a.StatusCode(), "%s", a.Body())
	var out struct {
		Number string `json:"tracking_number"`
	}
	require.NoError(tb, json.Unmarshal(a.Body(), &out))
	return out.Number
}

// get reads addresses from senders connections and gives each answer's time.
func get(tb testing.TB, addr string, count int, path func(n int) string) (took time.Duration, each []time.Duration) {
	client := &fasthttp.Client{MaxConnsPerHost: senders}
	each = make([]time.Duration, count)
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range senders {
		wg.Go(func() {
			var q fasthttp.Request
			var a fasthttp.Response
			for {
				n := int(next.Add(1)) - 1
				if n >= count {
					return
				}
				q.Reset()
				q.SetRequestURI("http://" + addr + path(n))
				at := time.Now()
				if err := client.Do(&q, &a); err != nil || a.StatusCode() != 200 {
					tb.Errorf("%v: %d %s", err, a.StatusCode(), a.Body())
					return
				}
				each[n] = time.Since(at)
			}
		})
	}
	wg.Wait()
	slices.Sort(each)
	return time.Since(start), each
}

// A timeline read over HTTP among a million events, against fasthttp that gives
// the same bytes from memory: figure 5.
func BenchmarkTimelineRead(b *testing.B) {
	s, box, addr := web(b)
	const many, events = 100_000, 10
	parcels(b, s, box.ProviderCaller.Provider, many, events)
	client := &fasthttp.Client{}
	_, body, err := client.Get(nil, "http://"+addr+"/api/v1/otep/trackings/B0000001")
	require.NoError(b, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	bare := &fasthttp.Server{Handler: func(c *fasthttp.RequestCtx) {
		c.SetContentType("application/json; charset=utf-8")
		c.SetBody(body)
	}}
	go func() { _ = bare.Serve(ln) }()
	defer bare.Shutdown()
	for _, f := range []struct {
		name string
		path func(n int) string
	}{{"any of 100,000", func(n int) string { return fmt.Sprintf("/api/v1/otep/trackings/B%07d", (n*7919)%many) }},
		{"the same again", func(n int) string { return fmt.Sprintf("/api/v1/otep/trackings/B%07d", n%100) }}} {
		b.Run(f.name, func(b *testing.B) {
			const calls = 10_000
			var took, base time.Duration
			var p50, p99 time.Duration
			runs := 0
			for b.Loop() {
				t, each := get(b, addr, calls, f.path)
				took += t
				p50, p99 = p50+each[calls/2], p99+each[calls*99/100]
				t, _ = get(b, ln.Addr().String(), calls, f.path)
				base += t
				runs++
			}
			b.ReportMetric(base.Seconds()/took.Seconds(), "ratio")
			b.ReportMetric(float64(calls*runs)/took.Seconds(), "reads/s")
			b.ReportMetric(float64(p50)/1e6/float64(runs), "p50-ms")
			b.ReportMetric(float64(p99)/1e6/float64(runs), "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
