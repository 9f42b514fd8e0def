package sender

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/cloud/seal"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

const secret = "0123456789abcdef0123456789abcdef"

// world is a store, a network and a sender.
type world struct {
	t       testing.TB
	db      *store.DB
	net     *fetchtest.Network
	a       *fetchtest.Receiver
	metrics *prometheus.Registry
	guard   fetch.GuardConfig
	wrap    func(Store) Store
	waits   []time.Duration
	proxy   *fetch.Proxy
	log     *slog.Logger
	dir     string

	cancel context.CancelFunc
	ended  chan error
	n      int
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, net: fetchtest.NewNetwork(), a: &fetchtest.Receiver{}, dir: t.TempDir()}
	w.net.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = w.a.Handle
	w.guard.HTTP = true
	storetest.WriteMigrated(t, w.dir)
	w.open()
	w.endpoint(func(*cloud.Endpoint) {})
	return w
}

func (w *world) open() {
	box, err := seal.New(bytes.Repeat([]byte{5}, seal.KeySize))
	require.NoError(w.t, err)
	w.db, err = store.Open(context.Background(), store.Config{Dir: w.dir, Box: box, Instance: "n1"})
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
	d := New(Config{Store: s, Guard: fetch.NewGuard(w.guard), Resolver: w.net, Dial: w.net.Dial, Metrics: w.metrics, Waits: w.waits,
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
	w.net.Handlers.Wait()
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
