package webhook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

const secret = "0123456789abcdef0123456789abcdef"

// public addresses of the test network.
var (
	addrA = netip.MustParseAddrPort("93.184.216.34:443")
	addrB = netip.MustParseAddrPort("93.184.216.35:443")
)

// testNet is a network in memory: names, and what listens where.
type testNet struct {
	mu    sync.Mutex
	names map[string][]netip.Addr
	serve map[netip.AddrPort]func(net.Conn)
	dials []netip.AddrPort
	wg    sync.WaitGroup
}

func newNet() *testNet {
	return &testNet{serve: map[netip.AddrPort]func(net.Conn){}, names: map[string][]netip.Addr{
		"a.example.com": {addrA.Addr()}, "b.example.com": {addrB.Addr()}}}
}

func (n *testNet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.names[host]; ok {
		return a, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *testNet) dial(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	serve := n.serve[addr]
	n.dials = append(n.dials, addr)
	n.mu.Unlock()
	if serve == nil {
		return nil, errors.New("connection refused")
	}
	here, there := net.Pipe()
	n.wg.Go(func() { defer there.Close(); serve(there) })
	return here, nil
}

// post is one request as a receiver saw it.
type post struct {
	at   time.Time
	head http.Header
	body []byte
	path string
	host string
}

// receiver answers every post by a function and remembers them.
type receiver struct {
	mu    sync.Mutex
	posts []post
	reply func(n int, w http.ResponseWriter) // n counts from 1
}

func (r *receiver) seen() []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]post(nil), r.posts...)
}

// handle serves requests on one connection until it ends.
func (r *receiver) handle(c net.Conn) {
	l := &oneConn{c: c, done: make(chan struct{})}
	srv := &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.Close()
			}
		}}
	_ = srv.Serve(l)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.posts = append(r.posts, post{time.Now(), req.Header, body, req.URL.RequestURI(), req.Host})
	n := len(r.posts)
	r.mu.Unlock()
	if r.reply != nil {
		r.reply(n, w)
	}
}

type oneConn struct {
	c    net.Conn
	once sync.Once
	done chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.c; c != nil {
		l.c = nil
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// world is a store, a network and a sender.
type world struct {
	t       testing.TB
	db      *store.DB
	net     *testNet
	a       *receiver
	metrics *prometheus.Registry
	guard   GuardConfig
	wrap    func(Store) Store
	waits   []time.Duration
	proxy   *Proxy
	log     *slog.Logger
	dir     string

	cancel context.CancelFunc
	ended  chan error
	n      int
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, net: newNet(), a: &receiver{}, dir: t.TempDir()}
	w.net.serve[netip.AddrPortFrom(addrA.Addr(), 80)] = w.a.handle
	w.guard.HTTP = true
	storetest.WriteMigrated(t, w.dir)
	w.open()
	w.endpoint(func(*cloud.Endpoint) {})
	return w
}

func (w *world) open() {
	box, err := seal.New(bytes.Repeat([]byte{5}, seal.KeySize))
	require.NoError(w.t, err)
	w.db, err = store.Open(context.Background(), store.Config{Dir: w.dir, Box: box, Node: "n1"})
	require.NoError(w.t, err)
}

func (w *world) endpoint(change func(*cloud.Endpoint)) {
	e := cloud.Endpoint{ID: 3, BusinessID: 42, ProviderID: 17, Kind: "locker_provider", URL: "http://a.example.com/hook?key=hidden", SandboxEnabled: true,
		Events: []string{"*"}, Secret: []byte(secret), Enabled: true, Status: "healthy"}
	change(&e)
	w.write(&cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}})
	w.prove(e.ID)
}

// prove makes a receiver one that has answered well before.
func (w *world) prove(id cloud.EndpointID) {
	_, err := w.db.NoteHealth(context.Background(), []cloud.EndpointTally{{EndpointID: id, SucceededAt: time.Unix(1, 0)}})
	require.NoError(w.t, err)
}

func (w *world) write(c *cloud.Changes) {
	require.NoError(w.t, w.db.Decide(context.Background(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }))
}

// run starts a sender.
func (w *world) run() *Dispatcher {
	w.metrics = prometheus.NewRegistry()
	var s Store = w.db
	if w.wrap != nil {
		s = w.wrap(s)
	}
	d := New(Config{Store: s, Guard: NewGuard(w.guard), Resolver: w.net, Dial: w.net.dial, Metrics: w.metrics, Waits: w.waits,
		Proxy: w.proxy, Logger: cmp.Or(w.log, slog.New(slog.DiscardHandler))})
	w.db.OnCommit(d.Committed)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel, w.ended = cancel, make(chan error, 1)
	go func() { w.ended <- d.Run(ctx) }()
	return d
}

func (w *world) stop() {
	w.cancel()
	require.NoError(w.t, <-w.ended)
}

func (w *world) close() {
	require.NoError(w.t, w.db.Close())
	w.net.wg.Wait()
}

// emit commits one event and returns its delivery's id.
func (w *world) emit(change func(*cloud.OutboxWrite)) cloud.OutboxID {
	w.n++
	id := cloud.OutboxID(w.n)
	o := event(w.n)
	if change != nil {
		change(&o)
	}
	w.write(&cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{o}}})
	return id
}

func event(n int) cloud.OutboxWrite {
	id, now := fmt.Sprintf("PLE-%d", 810200+n), time.Now()
	return cloud.OutboxWrite{
		Event: cloud.OutboxEvent{EventID: id, Event: "locker_delivery.delivered", BusinessID: 42, ProviderID: 17, Channel: cloud.ChannelLocker,
			ReferenceType: "locker_delivery", ReferenceID: fmt.Sprint(n), OccurredAt: now, CreatedAt: now,
			Body: []byte(fmt.Sprintf(`{"event_id":"%s","name":"包裹 <%d>"}`, id, n))},
		Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(n), EventID: id, EndpointID: 3, BusinessID: 42, WebhookID: id,
			State: cloud.OutboxPending, MaxAttempts: 8, CreatedAt: now}},
	}
}

// row is a delivery's log row with its attempts.
func (w *world) row(id cloud.OutboxID) (cloud.OutboxDelivery, []cloud.OutboxAttempt) {
	o, err := w.db.FindOutbox(context.Background(), id)
	require.NoError(w.t, err)
	as, err := w.db.OutboxAttempts(context.Background(), id)
	require.NoError(w.t, err)
	return o.Delivery, as
}
