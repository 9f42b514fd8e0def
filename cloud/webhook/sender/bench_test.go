package sender

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// onBoth runs a bench on a new SQLite and on a schema of its own on PostgreSQL.
func onBoth(b *testing.B, run func(b *testing.B, db *store.DB)) {
	b.Run("SQLite", func(b *testing.B) { run(b, nil) })
	b.Run("PostgreSQL", func(b *testing.B) {
		run(b, storetest.Open(b, store.Config{URL: storetest.MigratedPostgresURL(b), Instance: "n1", Box: storetest.Box(b)}))
	})
}

// yard is a database, a sender, and receivers on one port of the loopback, which
// are distinguished by their paths.
type yard struct {
	*world
	b    *testing.B
	own  bool // the database
	addr netip.AddrPort
	urls int

	mu    sync.Mutex
	heard map[string]time.Time // event ids, when their request was read
	got   atomic.Int64
	hangs atomic.Bool // receiver 0
	over  chan struct{}
}

// newYard opens one on db, or on a new SQLite where it is nil.
func newYard(b *testing.B, db *store.DB, urls int) *yard {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	y := &yard{world: newWorld(b), b: b, own: db == nil, addr: netip.MustParseAddrPort(l.Addr().String()), urls: urls,
		heard: map[string]time.Time{}, over: make(chan struct{})}
	srv := &fasthttp.Server{Handler: y.hear, NoDefaultServerHeader: true}
	go func() { _ = srv.Serve(l) }()
	b.Cleanup(func() {
		close(y.over)
		_ = srv.Shutdown()
		if y.own {
			y.close()
		}
	})
	if db != nil {
		require.NoError(b, y.db.Close())
		y.db = db
	}
	y.guard = fetch.GuardConfig{HTTP: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Ports: []uint16{y.addr.Port(), 8080}}
	for u := range urls {
		y.endpoint(func(e *cloud.Endpoint) {
			e.ID, e.BusinessID = cloud.EndpointID(100+u), cloud.BusinessID(u+1)
			e.URL = fmt.Sprintf("http://%s/%d", y.addr, u)
		})
	}
	return y
}

func (y *yard) hear(ctx *fasthttp.RequestCtx) {
	if y.hangs.Load() && string(ctx.Path()) == "/0" {
		<-y.over
		return
	}
	y.got.Add(1)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.heard[string(ctx.Request.Header.Peek("X-Webhook-Id"))] = time.Now()
}

// send starts the sender.
func (y *yard) send() (stop func()) {
	d := New(Config{Store: y.db, Guard: fetch.NewGuard(y.guard), Logger: slog.New(slog.DiscardHandler)})
	y.db.OnCommit(d.Committed)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	time.Sleep(50 * time.Millisecond)
	return func() {
		cancel()
		require.NoError(y.b, <-ended)
	}
}

var kilobyte = append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 1000)...), `"}`...)

// about is the events of the numbers from to to, for the receivers in turn.
func (y *yard) about(from, to int) *cloud.Changes {
	c := &cloud.Changes{}
	for i := from; i < to; i++ {
		o := event(i + 1)
		o.Event.Body = kilobyte
		o.Deliveries[0].EndpointID = cloud.EndpointID(100 + i%y.urls)
		o.Deliveries[0].BusinessID = cloud.BusinessID(i%y.urls + 1)
		c.Outbox = append(c.Outbox, o)
	}
	return c
}

// settle waits until nothing waits any more.
func (y *yard) settle() {
	for deadline := time.Now().Add(time.Minute); ; {
		counts, err := y.db.OutboxWaiting(context.Background())
		require.NoError(y.b, err)
		if len(counts) == 0 {
			return
		}
		if time.Now().After(deadline) {
			y.b.Fatal("not delivered in a minute")
		}
		time.Sleep(10 * time.Millisecond) // the count costs the database something
	}
}

// pace decides n times at 500 a second, whether or not the one before is done,
// and gives how long each took and when it was committed.
func (y *yard) pace(n int, change func(i int) *cloud.Changes) (took []time.Duration, at []time.Time) {
	took, at = make([]time.Duration, n), make([]time.Time, n)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range n {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * 2 * time.Millisecond)))
		c := change(i)
		wg.Go(func() {
			began := time.Now()
			y.write(c)
			at[i] = time.Now()
			took[i] = at[i].Sub(began)
		})
	}
	wg.Wait()
	return took, at
}

// waits is how long after its commit each event was heard, of those whose number
// is not left out.
func (y *yard) waits(from int, at []time.Time, leave func(i int) bool) (out []time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range at {
		if leave(i) {
			continue
		}
		heard, ok := y.heard[event(from+i+1).Event.EventID]
		require.True(y.b, ok, "event %d was not heard", from+i)
		out = append(out, max(heard.Sub(at[i]), 0))
	}
	return out
}

func nobody(int) bool { return false }

// centile is the p-th of a hundred parts, in milliseconds.
func centile(all []time.Duration, p int) float64 {
	all = slices.Sorted(slices.Values(all))
	return float64(all[min(len(all)*p/100, len(all)-1)].Microseconds()) / 1000
}

// BenchmarkDeliveries commits events and waits until each is posted and its log
// row stored, against a loop over as many goroutines that only signs and posts.
// The decisions have one event each, or 20.
func BenchmarkDeliveries(b *testing.B) {
	for _, batch := range []int{1, 20} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			onBoth(b, func(b *testing.B, db *store.DB) { benchDeliveries(b, db, batch) })
		})
	}
}

func benchDeliveries(b *testing.B, db *store.DB, batch int) {
	y := newYard(b, db, 12) // each takes five at a time
	stop := y.send()
	n := max(b.N, 500)
	b.ResetTimer()
	begin := time.Now()
	var wg sync.WaitGroup
	const producers = 512
	for p := range producers {
		wg.Go(func() {
			for i := p * batch; i < n; i += producers * batch {
				c := y.about(i, min(i+batch, n))
				if err := y.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	y.settle()
	took := time.Since(begin)
	b.StopTimer()
	stop()
	require.EqualValues(b, n, y.got.Load())
	bare := barePosts(b, y.addr, n, kilobyte)
	b.ReportMetric(float64(n)/took.Seconds(), "deliveries/s")
	b.ReportMetric(bare.Seconds()/took.Seconds(), "ratio")
}

// BenchmarkFirstByte commits 500 events a second: how long until the receiver
// has the request, and what the event adds to its transaction.
func BenchmarkFirstByte(b *testing.B) {
	onBoth(b, func(b *testing.B, db *store.DB) {
		y := newYard(b, db, 12)
		defer y.send()()
		const n = 1500
		change := func(i int) []cloud.Business {
			return []cloud.Business{{ID: cloud.BusinessID(1000 + i), Code: fmt.Sprint("b", i), Name: "n"}}
		}
		for b.Loop() {
			plain, _ := y.pace(n, func(i int) *cloud.Changes {
				return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: change(i)}}
			})
			from := int(y.got.Load())
			with, at := y.pace(n, func(i int) *cloud.Changes {
				c := y.about(from+i, from+i+1)
				c.Businesses = change(i)
				return c
			})
			y.settle()
			waits := y.waits(from, at, nobody)
			b.ReportMetric(centile(waits, 50), "p50-ms")
			b.ReportMetric(centile(waits, 99), "p99-ms")
			b.ReportMetric(centile(with, 50)-centile(plain, 50), "added-ms")
		}
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkOneOfTwentyHangs compares what the other receivers wait at most, but
// for one in a hundred, beside one that never answers and without it.
func BenchmarkOneOfTwentyHangs(b *testing.B) {
	onBoth(b, func(b *testing.B, db *store.DB) {
		y := newYard(b, db, 20)
		stop := y.send()
		const n = 1500
		for from := 0; b.Loop(); from += 2 * n {
			p99 := func(from int) float64 {
				_, at := y.pace(n, func(i int) *cloud.Changes { return y.about(from+i, from+i+1) })
				time.Sleep(time.Second)
				return centile(y.waits(from, at, func(i int) bool { return (from+i)%20 == 0 }), 99)
			}
			y.hangs.Store(false)
			well := p99(from)
			y.hangs.Store(true)
			b.ReportMetric(p99(from+n)/well, "p99-ratio")
		}
		b.ReportMetric(0, "ns/op")
		stop()
	})
}

// BenchmarkManyWaiting stores 100,000 deliveries that no sender sends: how soon
// after a start the first of them comes, and, where all are for an address at
// which no server listens, how much memory they take and what others wait.
func BenchmarkManyWaiting(b *testing.B) {
	const many, n = 100_000, 1500
	fill := func(y *yard, change func(*cloud.OutboxDelivery)) {
		for from := 0; from < many; from += 500 {
			c := y.about(from, from+500)
			for i := range c.Outbox {
				change(&c.Outbox[i].Deliveries[0])
			}
			y.write(c)
		}
	}
	b.Run("start", func(b *testing.B) {
		onBoth(b, func(b *testing.B, db *store.DB) {
			for b.Loop() {
				y := newYard(b, db, 12)
				fill(y, func(*cloud.OutboxDelivery) {})
				begin := time.Now()
				stop := y.send()
				for y.got.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				b.ReportMetric(time.Since(begin).Seconds(), "first-s")
				stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	})
	b.Run("dead", func(b *testing.B) {
		onBoth(b, func(b *testing.B, db *store.DB) {
			for b.Loop() {
				y := newYard(b, db, 12)
				y.endpoint(func(e *cloud.Endpoint) { e.ID, e.BusinessID, e.URL = 99, 99, "http://127.0.0.1:8080/dead" })
				fill(y, func(d *cloud.OutboxDelivery) { d.EndpointID, d.BusinessID = 99, 99 })
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				stop := y.send()
				time.Sleep(2 * time.Second)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/1e6, "MB")
				_, at := y.pace(n, func(i int) *cloud.Changes { return y.about(many+i, many+i+1) })
				time.Sleep(time.Second)
				b.ReportMetric(centile(y.waits(many, at, nobody), 99), "p99-ms")
				stop()
			}
			b.ReportMetric(0, "ns/op")
		})
	})
}

// barePosts signs and posts n times over kept connections.
func barePosts(b *testing.B, addr netip.AddrPort, n int, body []byte) time.Duration {
	t, err := fetch.NewGuard(fetch.GuardConfig{HTTP: true, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Ports: []uint16{addr.Port()}}).CheckURL("http://" + addr.String() + "/")
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
				r, err := message{t, ep, w, "https://api.example.com", "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", 1, time.Now(), nil, ""}.build()
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

// BenchmarkSign builds a request of the richest format for each channel, while a
// secret is being replaced. v1a adds an Ed25519 signature, which costs more than
// all of the rest.
func BenchmarkSign(b *testing.B) {
	t, err := fetch.NewGuard(fetch.GuardConfig{}).CheckURL("https://a.example.com/hook")
	require.NoError(b, err)
	for _, c := range []struct{ name, channel, signature string }{
		{"provider", cloud.ChannelLocker, cloud.SignatureStandard}, {"account", cloud.ChannelAccount, cloud.SignatureStandard},
		{"v1a", cloud.ChannelLocker, cloud.SignatureAsymmetric},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := event(1)
			w := &cloud.OutboxWork{Event: o.Event, Delivery: o.Deliveries[0]}
			w.Event.Body = append([]byte(`{"event_id":"PLE-1","event":"locker_delivery.delivered","api_version":"1","occurred_at":"2026-11-20T18:12:00-05:00","data":`), kilobyte[:len(kilobyte)-100]...)
			w.Event.Body = append(w.Event.Body, `"}}`...)
			w.Event.Channel = c.channel
			ep := &cloud.Endpoint{Secret: []byte(secret), SecretNext: []byte(nextSecret), NextUntil: time.Now().Add(time.Hour), Format: cloud.FormatStructured,
				Signature: c.signature, SigningKey: ed25519.NewKeyFromSeed(seed())}
			b.ReportAllocs()
			for b.Loop() {
				m := message{t, ep, w, "https://api.example.com", "0f2d6c1e-8d0e-4c39-9d0a-6f1b2a3c4d5e", 1, time.Now(), nil, ""}
				if _, err := m.build(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
