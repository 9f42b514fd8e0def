package webhook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// BenchmarkDeliveries commits events and waits until each is posted and its log
// row stored, against a loop over as many goroutines that only signs and posts.
func BenchmarkDeliveries(b *testing.B) {
	for _, batch := range []int{1, 20} {
		b.Run(fmt.Sprintf("SQLite/%d", batch), func(b *testing.B) { benchDeliveries(b, nil, batch) })
		b.Run(fmt.Sprintf("PostgreSQL/%d", batch), func(b *testing.B) {
			benchDeliveries(b, storetest.Open(b, store.Config{URL: storetest.PostgresURL(b), Node: "n1", Box: storetest.Box(b)}), batch)
		})
	}
}

// benchDeliveries measures on a database, a new SQLite where it is nil, with
// that many events in each decision.
func benchDeliveries(b *testing.B, db *store.DB, batch int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var got atomic.Int64
	srv := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { got.Add(1) }, NoDefaultServerHeader: true}
	go func() { _ = srv.Serve(l) }()
	defer srv.Shutdown()
	addr := netip.MustParseAddrPort(l.Addr().String())

	w := newWorld(b)
	if db != nil {
		require.NoError(b, w.db.Close())
		w.db = db
	}
	w.guard = GuardConfig{HTTP: true, Networks: prefixes("127.0.0.1/32"), Ports: []uint16{addr.Port()}}
	const urls = 12 // receivers; each takes five at a time
	for u := range urls {
		w.endpoint(func(e *cloud.Endpoint) {
			e.ID, e.BusinessID = cloud.EndpointID(100+u), cloud.BusinessID(u+1)
			e.URL = fmt.Sprintf("http://%s/%d", addr, u)
		})
	}
	w.net.serve[addr] = nil
	d := New(Config{Store: w.db, Guard: NewGuard(w.guard)})
	w.db.OnCommit(d.Committed)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	time.Sleep(50 * time.Millisecond)

	n := max(b.N, 500)
	body := append([]byte(`{"x":"`), append(bytes.Repeat([]byte("x"), 1000), `"}`...)...)
	b.ResetTimer()
	begin := time.Now()
	var wg sync.WaitGroup
	const producers = 512
	for p := range producers {
		wg.Go(func() {
			for at := p * batch; at < n; at += producers * batch {
				c := &cloud.Changes{}
				for i := at; i < min(at+batch, n); i++ {
					o := event(i + 1)
					o.Event.Body = body
					o.Deliveries[0].EndpointID = cloud.EndpointID(100 + i%urls)
					o.Deliveries[0].BusinessID = cloud.BusinessID(i%urls + 1)
					c.Outbox = append(c.Outbox, o)
				}
				if err := w.db.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for deadline := time.Now().Add(time.Minute); ; {
		counts, err := w.db.OutboxWaiting(ctx)
		require.NoError(b, err)
		if len(counts) == 0 {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("not delivered in a minute")
		}
		time.Sleep(10 * time.Millisecond) // the count costs the database something
	}
	took := time.Since(begin)
	b.StopTimer()
	cancel()
	require.NoError(b, <-ended)
	require.EqualValues(b, n, got.Load())
	if db == nil {
		w.close()
	}

	bare := barePosts(b, addr, n, body)
	b.ReportMetric(float64(n)/took.Seconds(), "deliveries/s")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
}

// barePosts signs and posts n times over kept connections.
func barePosts(b *testing.B, addr netip.AddrPort, n int, body []byte) time.Duration {
	t, err := NewGuard(GuardConfig{HTTP: true, Networks: prefixes("127.0.0.1/32"), Ports: []uint16{addr.Port()}}).CheckURL("http://" + addr.String() + "/")
	require.NoError(b, err)
	ep := &cloud.Endpoint{Secret: []byte(secret)}
	o := event(1)
	w := &cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}
	w.Event.Body = body
	begin := time.Now()
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 60 {
		wg.Go(func() {
			c, err := net.Dial("tcp", addr.String())
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			in := bufio.NewReader(c)
			var h fasthttp.ResponseHeader
			for next.Add(1) <= int64(n) {
				r, err := message{t, ep, w, "https://api.example.com", "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", 1, time.Now()}.build()
				if err == nil {
					_, err = c.Write(append([]byte(r.head), r.body...))
				}
				if err == nil {
					err = h.Read(in)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

func BenchmarkSign(b *testing.B) {
	t, err := NewGuard(GuardConfig{}).CheckURL("https://a.example.com/hook")
	require.NoError(b, err)
	o := event(1)
	w := &cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}
	w.Event.Body = make([]byte, 1024)
	ep := &cloud.Endpoint{Secret: []byte(secret), SecretNext: []byte(secret), NextUntil: time.Now().Add(time.Hour), Format: cloud.FormatStructured,
		Signature: cloud.SignatureStandard}
	for b.Loop() {
		m := message{t, ep, w, "https://api.example.com", "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", 1, time.Now()}
		if _, err := m.build(); err != nil {
			b.Fatal(err)
		}
	}
}
