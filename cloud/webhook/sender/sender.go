// Package sender sends what the outbox holds to its receivers: those of
// locker providers and those that accounts have set. The channels differ in
// their signatures, in how often they try, and in what is given up: a provider's
// is a dead letter, an account's has failed.
//
//   - Loss. A delivery that was committed is sent at least once, whatever
//     process dies when: it stays in the store until its outcome is stored. What
//     was in flight when a process died is sent again, with the same ids.
//   - Bytes. The body is sent as it was stored, in every attempt. Ids stay the
//     same; timestamp, signature, delivery id and attempt number are fresh.
//   - Order. To one URL at most one delivery per reference is in flight, oldest
//     first; one that waits for its second or later retry is overtaken. There is
//     no order between references.
//   - Fairness. Accounts take turns, then their URLs; each URL of an account has at
//     most 5 attempts in flight, the process at most Config.Slots. A receiver that
//     hangs or fails costs only its own slots.
//   - Address safety. Every connection goes through the guard of package fetch. Where the deployment
//     has an outgoing proxy, every connection goes through that as well, and what
//     is the proxy's fault counts against no endpoint.
//
// Fresh deliveries come from OnCommit and are sent from memory. The store is
// read for due retries, for what did not fit into memory, and at start; that
// happens at least once a second. Memory holds at most 20,000 waiting
// deliveries and 64 MB of bodies; what does not fit is given back to the store.
//
// It does not build bodies and hides nothing in them.
package sender

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/span"
)

// Store is the outbox. cloud/store's DB is one.
type Store interface {
	// RecoverOutbox gives back what an earlier run of this node had taken up.
	RecoverOutbox(ctx context.Context) error
	// OwnFresh says whether new deliveries are written leased to this node.
	OwnFresh(on bool)
	DueEndpoints(ctx context.Context, now time.Time) ([]cloud.EndpointID, error)
	ClaimOutbox(ctx context.Context, id cloud.EndpointID, now time.Time, limit int) ([]cloud.OutboxWork, error)
	// Superseded reports whether something newer is sent in place of a delivery.
	Superseded(ctx context.Context, w cloud.OutboxWork) (bool, error)
	FinishOutbox(ctx context.Context, results []cloud.OutboxResult) (lost []cloud.OutboxID, err error)
	ReleaseOutbox(ctx context.Context, ds []cloud.OutboxResult) error
	// RenewOutbox keeps leases, and gives those that this node still has.
	RenewOutbox(ctx context.Context, ids []cloud.OutboxID) (held []cloud.OutboxID, err error)
	EndForgotten(ctx context.Context) error
	OutboxWaiting(ctx context.Context) ([]cloud.OutboxCount, error)
	// HoldSlots says which slots' deliveries this node writes leased to it and takes up.
	HoldSlots(slots uint64)
	TakeSlots(ctx context.Context, slots uint64) (uint64, error)
	LeaveSlots(ctx context.Context, slots uint64) error
	Unfinished(ctx context.Context, id cloud.EndpointID, references []string) ([]cloud.OutboxWaiting, error)
	TakeOutbox(ctx context.Context, id cloud.EndpointID, ids []cloud.OutboxID) ([]cloud.OutboxWork, error)
	// Peers reports whether other nodes may use the same store.
	Peers() bool
	FindEndpoint(ctx context.Context, id cloud.EndpointID) (cloud.Endpoint, error)
	SetEndpointStatus(ctx context.Context, id cloud.EndpointID, status, reason string, now time.Time) error
	Health
	Keeping
}

// Config is what a Dispatcher needs.
type Config struct {
	Store Store
	// Nodes share the store's deliveries; nil: this process has all of them.
	Nodes Nodes
	Guard *fetch.Guard
	// Proxy is by what receivers are reached; nil: they are connected to directly.
	Proxy *fetch.Proxy
	// BaseURL is the deployment's address; the source of CloudEvents is below it.
	BaseURL string
	// SigningKey signs v1a for receivers without a key of their own; nil: these get
	// nothing.
	SigningKey ed25519.PrivateKey
	// Slots are attempts in flight altogether; 256 when 0.
	Slots int
	// Waits are the waits after failed attempts; Waits() when nil.
	Waits []time.Duration
	// Retention is how long the log is kept; 30 days when 0.
	Retention time.Duration
	// TLS holds root certificates and the like; nil is the system's.
	TLS *tls.Config
	// Resolver looks names up; nil is the system's.
	Resolver fetch.Resolver
	// Dial connects to an address that the guard has allowed; nil is TCP.
	Dial func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)
	// Spans follow the attempts of events whose calls are followed; nil: none.
	Spans *span.Tracer
	// Metrics is where the sender's metrics are registered; nil for nowhere.
	Metrics prometheus.Registerer
	Logger  *slog.Logger // nil is slog.Default
}

const (
	defaultSlots = 256
	pollEvery    = time.Second
	renewEvery   = 5 * time.Second  // a sixth of the store's lease
	leaseSure    = 20 * time.Second // since leases were renewed; an attempt then ends before they do
	countEvery   = 5 * time.Second
	countShare   = 50 // times that a count may take, until the next one
	tidyEvery    = time.Minute
	stopLimit    = 15 * time.Second
	resultBatch  = 512
	refusedMost  = 32 // times that the parts of a batch are refused
	claimBatch   = 512
	endpointLife = time.Second // of a receiver's settings in memory
)

// Dispatcher sends deliveries. Its Committed is registered with the store's
// OnCommit; Run does the work.
type Dispatcher struct {
	cfg     Config
	client  *fetch.Client
	metrics *metrics
	log     *slog.Logger
	shared  bool // other nodes may use the store

	wake    chan struct{} // of capacity 1: the inbox or the overflow has something
	results chan result

	counts   sync.WaitGroup
	counting atomic.Bool
	countAt  time.Time // the next count of what waits; the counter's own

	mu              sync.Mutex // guards what follows
	running         bool
	queues          *queues
	slots           tenure
	inbox           []cloud.OutboxWork
	inboxSize       int                  // bytes of bodies in inbox
	overflow        []cloud.OutboxResult // leases to give back
	endpoints       map[cloud.EndpointID]knownEndpoint
	workers         sync.WaitGroup
	more            bool      // the store has more that is due
	renewed         time.Time // when leases were known to be ours
	alarmAt         time.Time // when the loop is woken; past: not planned
	tallies         map[cloud.EndpointID]*cloud.EndpointTally
	ownerNotifiedAt map[cloud.EndpointID]time.Time // when owners were last warned of what is given up
	blocked         map[cloud.BusinessID]blockedCount
}

type knownEndpoint struct {
	cloud.Endpoint
	target, sandbox       *fetch.Target
	targetErr, sandboxErr error
	removed               bool
	proven                bool // it has answered well once
	at                    time.Time
}

// result is a delivery with what became of it.
type result struct {
	cloud.OutboxResult
	gone, healthy, pause bool // flags for the endpoint
	counts               bool // for its health
	endpoint             cloud.EndpointID
	url                  string
	business             cloud.BusinessID
	ended                time.Time
}

// New returns a Dispatcher; it starts nothing.
func New(cfg Config) *Dispatcher {
	if cfg.Slots == 0 {
		cfg.Slots = defaultSlots
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	if cfg.Retention == 0 {
		cfg.Retention = logKept
	}
	if cfg.Waits == nil {
		cfg.Waits = Waits()
	}
	if cfg.Guard == nil {
		cfg.Guard = fetch.NewGuard(fetch.GuardConfig{})
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	slots, shared := tenure{}, cfg.Store != nil && cfg.Store.Peers()
	if cfg.Nodes == nil {
		slots.held = allSlots
	}
	if shared {
		slots.inHand = map[cloud.OutboxID]int{}
	}
	return &Dispatcher{
		cfg: cfg, shared: shared, slots: slots, log: cfg.Logger, metrics: newMetrics(cfg.Metrics),
		client: fetch.NewClient(fetch.Config{Guard: cfg.Guard, Proxy: cfg.Proxy, TLS: cfg.TLS, Resolver: cfg.Resolver, Dial: cfg.Dial}),
		wake:   make(chan struct{}, 1), results: make(chan result, resultBatch),
		queues: newQueues(cfg.Slots), endpoints: map[cloud.EndpointID]knownEndpoint{},
		tallies: map[cloud.EndpointID]*cloud.EndpointTally{}, ownerNotifiedAt: map[cloud.EndpointID]time.Time{}, blocked: map[cloud.BusinessID]blockedCount{},
	}
}

// Committed takes note of committed changes. It is registered with OnCommit
// before Run, and never blocks.
func (d *Dispatcher) Committed(c *cloud.Changes) {
	if len(c.Outbox) == 0 && len(c.Endpoints) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range c.Endpoints {
		delete(d.endpoints, c.Endpoints[i].ID)
	}
	for i := range c.Outbox {
		o := &c.Outbox[i]
		if len(o.Deliveries) == 0 {
			continue
		}
		if first := o.Deliveries[0]; first.ReplayOf == 0 && first.State != cloud.OutboxDelivering {
			d.metrics.emitted.WithLabelValues(o.Event.Channel, o.Event.Event).Inc()
		}
		e := o.Event
		e.Body = bytes.Clone(e.Body)
		for _, del := range o.Deliveries {
			d.fresh(e, del)
		}
	}
	d.nudge()
}

// fresh takes a new delivery into memory if the store leased it to this node.
func (d *Dispatcher) fresh(e cloud.OutboxEvent, del cloud.OutboxDelivery) {
	if !d.running || del.State != cloud.OutboxPending || del.NextAt.After(del.CreatedAt) {
		return
	}
	own := d.slots.hasOf(del.EndpointID, &e)
	if del.LeaseOwner == "" { // it is another node's, to be numbered, or was written before this sender owned what is new
		d.more = d.more || own
		return
	}
	if !own || d.queues.count+len(d.inbox) >= maxWaiting || d.queues.bytes+d.inboxSize+len(e.Body) > maxBytes {
		d.overflow = append(d.overflow, cloud.OutboxResult{ID: del.ID, Generation: 1})
		return
	}
	d.inboxSize += len(e.Body)
	d.inbox = append(d.inbox, cloud.OutboxWork{Event: e, Delivery: del})
}

func (d *Dispatcher) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends; then it finishes what is in flight, stores the
// outcomes and gives the rest back, within 15 s. It is called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	if err := d.cfg.Store.RecoverOutbox(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	d.running, d.renewed = true, time.Now()
	d.mu.Unlock()
	d.cfg.Store.HoldSlots(d.slots.held)
	d.cfg.Store.OwnFresh(true)
	stored := make(chan struct{})
	go func() { defer close(stored); d.store() }()
	var keeping sync.WaitGroup
	keeping.Go(func() { d.pruneLog(ctx) })
	d.loop(ctx)
	keeping.Wait()
	d.counts.Wait()
	d.cfg.Store.OwnFresh(false)
	d.mu.Lock()
	d.running = false
	d.mu.Unlock()
	d.workers.Wait() // each ends within its attempt's deadline
	close(d.results)
	<-stored
	d.noteHealth()
	d.client.Sweep(true)
	return d.giveBack()
}

// giveBack returns the leases of everything that was not tried, and says it where they may be
// other nodes' by now: a process that stood still ends as soon as it learns that.
func (d *Dispatcher) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit-fetch.Timeout)
	defer cancel()
	d.mu.Lock()
	d.yield(time.Now())
	rest := append(d.queues.drain(allSlots), d.overflow...)
	for i := range d.inbox {
		rest = append(rest, leaseOf(&d.inbox[i]))
	}
	d.inbox, d.overflow = nil, nil
	d.mu.Unlock()
	var err error
	if len(rest) > 0 {
		err = d.cfg.Store.ReleaseOutbox(ctx, rest)
	}
	return errors.Join(err, leaveAllSlots(d, ctx))
}

// loop brings work to the queues.
func (d *Dispatcher) loop(ctx context.Context) {
	poll, renew, count, tidy := time.NewTicker(pollEvery), time.NewTicker(renewEvery), time.NewTicker(countEvery), time.NewTicker(tidyEvery)
	defer poll.Stop()
	defer renew.Stop()
	defer count.Stop()
	defer tidy.Stop()
	d.tidy(ctx)
	balanceSlots(d, ctx)
	d.poll(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
			d.deliverInbox(ctx)
			if isHungry(d) {
				d.poll(ctx)
			}
		case <-othersCame(d):
			balanceSlots(d, ctx)
		case <-poll.C:
			balanceSlots(d, ctx)
			d.deliverInbox(ctx)
			d.poll(ctx)
			d.client.Sweep(false)
		case <-renew.C:
			d.renew(ctx)
		case <-count.C:
			d.noteHealth()
			countWaiting(d, ctx)
		case <-tidy.C:
			d.tidy(ctx)
		}
	}
}

// tidy lets go what is kept for receivers that are not paused, drops secrets that
// others have taken the place of, ends what nodes that died were sending by hand,
// and forgets the settings of receivers that nothing was sent to for a while.
func (d *Dispatcher) tidy(ctx context.Context) {
	now := time.Now()
	d.mu.Lock()
	maps.DeleteFunc(d.endpoints, func(_ cloud.EndpointID, k knownEndpoint) bool { return now.Sub(k.at) > tidyEvery })
	d.mu.Unlock()
	err := errors.Join(d.cfg.Store.EndOldPauses(ctx, now), d.cfg.Store.DropOldSecrets(ctx, now), d.cfg.Store.EndForgotten(ctx))
	if err != nil && ctx.Err() == nil {
		d.log.Warn("removing old rows of webhooks failed", "error", err)
	}
}

// renew keeps the leases of what waits in memory, is in flight or is being stored, and lets
// go what waits and is another node's by now.
func (d *Dispatcher) renew(ctx context.Context) {
	begun := time.Now()
	d.mu.Lock()
	ids := leasedIDs(d)
	d.mu.Unlock()
	held, err := d.cfg.Store.RenewOutbox(ctx, ids)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("renewing webhook leases failed", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.yield(begun)
	if err != nil {
		return
	}
	d.renewed = begun
	if len(held) < len(ids) {
		if n := letGo(d, ids, held); n > 0 {
			d.log.Warn("webhook deliveries were left to other nodes, which have taken them up", "count", n)
		}
	}
}

// leasedIDs are the deliveries that this process knows to be leased to it, other than what
// it is to give back. Called with mu held.
func leasedIDs(d *Dispatcher) []cloud.OutboxID {
	ids := make([]cloud.OutboxID, 0, len(d.queues.held)+len(d.slots.inHand)+len(d.inbox))
	for id := range d.queues.held {
		ids = append(ids, id)
	}
	for id := range d.slots.inHand { // those in flight stand in both
		if !d.queues.held[id] {
			ids = append(ids, id)
		}
	}
	for i := range d.inbox {
		ids = append(ids, d.inbox[i].Delivery.ID)
	}
	return ids
}

// letGo takes out what waits of some deliveries and is not held any more, and gives its
// number. Called with mu held.
func letGo(d *Dispatcher, ids, held []cloud.OutboxID) int {
	lost := make(map[cloud.OutboxID]bool, len(ids))
	for _, id := range ids {
		lost[id] = true
	}
	for _, id := range held {
		delete(lost, id)
	}
	waiting := len(d.inbox)
	d.inbox = slices.DeleteFunc(d.inbox, func(w cloud.OutboxWork) bool {
		if lost[w.Delivery.ID] {
			d.inboxSize -= len(w.Event.Body)
		}
		return lost[w.Delivery.ID]
	})
	return waiting - len(d.inbox) + len(d.queues.takeOut(func(w *cloud.OutboxWork) bool { return lost[w.Delivery.ID] }))
}

// yield gives up what waits in memory when its leases may have passed to another
// node: this process stood still, or the database could not be reached. Called
// with mu held.
func (d *Dispatcher) yield(now time.Time) {
	if !d.doubtful(now) || d.queues.count == 0 {
		return
	}
	lost := d.queues.drain(allSlots)
	d.overflow = append(d.overflow, lost...)
	d.log.Warn("webhook deliveries were left to other nodes: their leases were not renewed in time", "count", len(lost))
	d.nudge()
}

// doubtful reports whether leases may have ended: by this process's own clock, or by the
// machine's, which alone goes on while a virtual machine is paused. Called with mu held.
func (d *Dispatcher) doubtful(now time.Time) bool {
	return now.Sub(d.renewed) >= leaseSure || now.Round(0).Sub(d.renewed.Round(0)) >= leaseSure || !leaseIsSure(d)
}

// isHungry reports whether the store has more and there is room again.
func isHungry(d *Dispatcher) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.more && d.queues.count < claimBatch/2
}

// deliverInbox moves fresh deliveries to the queues of their URLs.
func (d *Dispatcher) deliverInbox(ctx context.Context) {
	d.mu.Lock()
	inbox, overflow := d.inbox, d.overflow
	d.inbox, d.overflow, d.inboxSize = nil, nil, 0
	d.mu.Unlock()
	overflow = append(overflow, d.enqueue(ctx, inbox)...)
	if releaseLeases(d, ctx, overflow) {
		d.mu.Lock()
		d.more = true
		d.mu.Unlock()
	}
}

// releaseLeases gives leases back, later when it cannot now, and reports whether it gave any.
func releaseLeases(d *Dispatcher, ctx context.Context, rest []cloud.OutboxResult) bool {
	if len(rest) == 0 {
		return false
	}
	err := d.cfg.Store.ReleaseOutbox(ctx, rest)
	if err != nil {
		d.log.Warn("giving webhook deliveries back failed", "count", len(rest), "error", err)
		d.mu.Lock()
		d.overflow = append(d.overflow, rest...)
		d.mu.Unlock()
	}
	return err == nil
}

// enqueue puts work into the queues of its URLs, starts workers, and returns
// what did not fit. A delivery that cannot be sent at all is finished here.
func (d *Dispatcher) enqueue(ctx context.Context, work []cloud.OutboxWork) []cloud.OutboxResult {
	work, blocked, rest := orderDeliveries(d, ctx, work)
	var full map[lineName]bool
	for i := range work {
		w := &work[i]
		lease := leaseOf(w)
		ep, err := d.endpoint(ctx, w.Delivery.EndpointID)
		if err != nil {
			d.log.Warn("reading a webhook endpoint failed", "endpoint", w.Delivery.EndpointID, "error", err)
			rest, full = append(rest, lease), addLine(full, nameOf(w))
			continue
		}
		url, _, _ := ep.route(w.Event.Test)
		to := address{ep.BusinessID, url}
		d.mu.Lock()
		if len(blocked) > 0 && w.Delivery.ReplayOf == 0 {
			if b, ok := blocked[nameOf(w)]; ok {
				d.queues.block(to, lineOf(w), b.at, b.until)
			}
		}
		if full != nil && full[nameOf(w)] || !d.slots.hasOf(w.Delivery.EndpointID, &w.Event) || !d.queues.push(to, *w) {
			rest, full = append(rest, lease), addLine(full, nameOf(w))
		}
		d.queues.prove(to, ep.proven && url == ep.URL)
		limitAttempts(d, to, &ep.Endpoint)
		d.mu.Unlock()
	}
	d.mu.Lock()
	d.startWorkers()
	d.mu.Unlock()
	return rest
}

// startWorkers starts a worker for every delivery that may go now. Called with
// mu held.
func (d *Dispatcher) startWorkers() {
	if !d.running {
		return
	}
	now := time.Now()
	d.yield(now)
	for {
		it, done := d.queues.pop(now)
		if it == nil {
			break
		}
		d.slots.noteInFlight(it)
		d.workers.Go(func() { d.sendNext(it, done) })
	}
	d.alarm(now)
	for reason, n := range d.queues.postponed {
		d.metrics.postponed.WithLabelValues(reason).Add(float64(n))
		delete(d.queues.postponed, reason)
	}
}

// alarm wakes the loop when something may go that was passed over. Called with
// mu held.
func (d *Dispatcher) alarm(now time.Time) {
	at := d.queues.wakeAt
	d.queues.wakeAt = time.Time{}
	if at.IsZero() || d.alarmAt.After(now) && !at.Before(d.alarmAt) {
		return
	}
	d.alarmAt = at
	time.AfterFunc(at.Sub(now), d.nudge)
}

// sendNext sends one delivery after another while there are any.
func (d *Dispatcher) sendNext(it *item, done func(error)) {
	for it != nil {
		d.metrics.inFlight.WithLabelValues(it.work.Event.Channel).Inc()
		r, a, v := d.attempt(it)
		d.metrics.inFlight.WithLabelValues(it.work.Event.Channel).Dec()
		d.results <- r // bounded: the store's pace is ours
		d.mu.Lock()
		now := time.Now()
		it.url.report(done, &a, now)
		d.queues.done(it, v, &a, now)
		it, done = nil, nil
		if d.running {
			d.yield(now)
			if it, done = d.queues.pop(now); it != nil {
				d.slots.noteInFlight(it)
			}
			d.alarm(now)
		}
		if d.more && d.queues.count < claimBatch/2 {
			d.nudge()
		}
		d.mu.Unlock()
	}
}

// poll takes up what is due in the store.
func (d *Dispatcher) poll(ctx context.Context) {
	now := time.Now()
	d.mu.Lock()
	doubtful := d.doubtful(now)
	d.more = false
	d.queues.forget(now)
	d.startWorkers()
	d.mu.Unlock()
	if doubtful { // nothing is taken up that could not be kept
		d.renew(ctx)
		return
	}
	due, err := d.cfg.Store.DueEndpoints(ctx, now)
	if err == nil {
		rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
		for _, id := range due {
			if err = d.claim(ctx, id, now); err != nil {
				break
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		d.log.Warn("reading due webhook deliveries failed", "error", err)
	}
}

// claim takes up due deliveries to one receiver as far as there is room.
func (d *Dispatcher) claim(ctx context.Context, id cloud.EndpointID, now time.Time) error {
	ep, err := d.endpoint(ctx, id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	room := claimBatch
	for _, test := range []bool{false, true} {
		url, _, _ := ep.route(test)
		room = min(room, d.queues.room(address{ep.BusinessID, url}))
	}
	d.mu.Unlock()
	if room == 0 {
		return nil
	}
	work, err := d.cfg.Store.ClaimOutbox(ctx, id, now, room)
	if err != nil {
		return err
	}
	d.deliverInbox(ctx) // what was committed before it stands there
	if len(work) == room {
		d.mu.Lock()
		d.more = true
		d.mu.Unlock()
	}
	releaseLeases(d, ctx, d.enqueue(ctx, work))
	return nil
}

// endpoint is a receiver's settings, at most endpointLife old.
func (d *Dispatcher) endpoint(ctx context.Context, id cloud.EndpointID) (knownEndpoint, error) {
	now := time.Now()
	d.mu.Lock()
	k, ok := d.endpoints[id]
	d.mu.Unlock()
	if ok && now.Sub(k.at) < endpointLife {
		return k, nil
	}
	e, err := d.cfg.Store.FindEndpoint(ctx, id)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return k, err
	}
	removed := err != nil
	proven := k.proven && k.URL == e.URL
	if !removed && !proven {
		h, err := d.cfg.Store.FindHealth(ctx, id)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return k, err
		}
		proven = !h.SucceededAt.IsZero()
	}
	k = d.known(e, now)
	k.removed, k.proven = removed, proven
	d.mu.Lock()
	d.endpoints[id] = k
	d.mu.Unlock()
	return k, nil
}

// known is a receiver whose addresses have been looked at.
func (d *Dispatcher) known(e cloud.Endpoint, now time.Time) knownEndpoint {
	k := knownEndpoint{Endpoint: e, at: now}
	if e.Signature == cloud.SignatureAsymmetric {
		k.SigningKey = signingKey(&e) // once, and not for each request: it costs as much as a signature
	}
	k.target, k.targetErr = d.cfg.Guard.CheckURL(e.URL)
	if e.SandboxURL != "" {
		k.sandbox, k.sandboxErr = d.cfg.Guard.CheckURL(e.SandboxURL)
	}
	return k
}

// route is where an event goes: sandbox events to the sandbox address when
// there is one, else to the production address, still marked.
func (k *knownEndpoint) route(test bool) (url string, t *fetch.Target, err error) {
	if test && k.SandboxURL != "" {
		return k.SandboxURL, k.sandbox, k.sandboxErr
	}
	return k.URL, k.target, k.targetErr
}

// store writes results, as many together as have come.
func (d *Dispatcher) store() {
	for r := range d.results {
		batch := []result{r}
	more:
		for len(batch) < resultBatch {
			select {
			case r, ok := <-d.results:
				if !ok {
					break more
				}
				batch = append(batch, r)
			default:
				break more
			}
		}
		d.storeBatch(batch)
	}
}

func (d *Dispatcher) storeBatch(batch []result) {
	ctx := context.Background() // an outcome is worth waiting for
	d.metrics.batch.WithLabelValues("result").Observe(float64(len(batch)))
	out := outcomes(batch)
	lost, err := d.cfg.Store.FinishOutbox(ctx, out)
	for try := 0; err != nil && try < 5; try++ {
		d.log.Warn("storing webhook results failed", "count", len(out), "error", err)
		time.Sleep(100 * time.Millisecond << try)
		lost, err = d.cfg.Store.FinishOutbox(ctx, out)
	}
	if err != nil {
		refusals := refusedMost
		d.storeParts(ctx, batch, err, &refusals)
		return
	}
	d.stored(ctx, batch, lost)
}

// storeParts stores what it can of results that were refused together: it may be
// that the database minds one of them. Halves are tried until there were refusals
// as many as are left: then it is not that. An attempt that is not stored is made again, as
// after a crash.
func (d *Dispatcher) storeParts(ctx context.Context, batch []result, err error, refusals *int) {
	if len(batch) == 1 || *refusals <= 0 {
		d.log.Error("webhook results were not stored", "count", len(batch), "first", batch[0].ID, "error", err)
		d.mu.Lock()
		d.overflow = append(d.overflow, outcomes(batch)...)
		putDown(d, batch)
		d.mu.Unlock()
		return
	}
	half := len(batch) / 2
	for _, part := range [][]result{batch[:half], batch[half:]} {
		lost, err := d.cfg.Store.FinishOutbox(ctx, outcomes(part))
		if err == nil {
			d.stored(ctx, part, lost)
			continue
		}
		*refusals--
		d.storeParts(ctx, part, err, refusals)
	}
}

func outcomes(batch []result) []cloud.OutboxResult {
	out := make([]cloud.OutboxResult, len(batch))
	for i := range batch {
		out[i] = batch[i].OutboxResult
	}
	return out
}

// putDown takes note that outcomes are stored, or cannot be. Called with mu held.
func putDown(d *Dispatcher, batch []result) {
	for i := range batch {
		delete(d.slots.inHand, batch[i].ID)
	}
}

// stored does what follows once results are stored.
func (d *Dispatcher) stored(ctx context.Context, batch []result, lost []cloud.OutboxID) {
	d.metrics.leaseLost.Add(float64(len(lost)))
	d.mu.Lock()
	putDown(d, batch)
	d.mu.Unlock()
	for i := range batch {
		d.tally(&batch[i])
		d.flag(ctx, &batch[i])
	}
}

// flag keeps the receiver's status in line with what it said last.
func (d *Dispatcher) flag(ctx context.Context, r *result) {
	status, reason := "", ""
	switch {
	case r.gone:
		status = "gone"
	case r.pause:
		status, reason = "paused", cloud.PausedByItsWord
	case r.healthy:
		status = "healthy"
	}
	if status != "" {
		if err := d.cfg.Store.SetEndpointStatus(ctx, r.endpoint, status, reason, time.Now()); err != nil {
			d.log.Warn("setting a webhook endpoint's status failed", "endpoint", r.endpoint, "error", err)
			return
		}
		d.refresh(r.endpoint)
	}
	if r.Reason == fetch.CodeBlocked {
		d.noteBlocked(r.business)
	}
	if r.gone || r.State == cloud.OutboxDead || r.Reason == fetch.CodeBlocked && r.State != cloud.OutboxRetrying {
		d.tellGivenUp(ctx, r)
	}
}

// refresh has a receiver's settings read again before they are used.
func (d *Dispatcher) refresh(id cloud.EndpointID) {
	d.mu.Lock()
	delete(d.endpoints, id)
	d.mu.Unlock()
}

// countWaiting has what waits counted beside the loop, in which leases are renewed, unless the last
// count is under way or took so long that the next is later.
func countWaiting(d *Dispatcher, ctx context.Context) {
	if !d.counting.CompareAndSwap(false, true) {
		return
	}
	d.counts.Go(func() {
		defer d.counting.Store(false)
		begun := time.Now()
		if begun.Before(d.countAt) {
			return
		}
		d.gauge(ctx)
		d.countAt = begun.Add(min(countShare*time.Since(begun), time.Minute))
	})
}

// gauge counts what waits in the store.
func (d *Dispatcher) gauge(ctx context.Context) {
	counts, err := d.cfg.Store.OutboxWaiting(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Warn("counting what waits for webhooks failed", "error", err)
		}
		return
	}
	oldest := map[string]float64{}
	waiting := map[[2]string]float64{}
	for _, c := range counts {
		waiting[[2]string{c.Channel, string(c.State)}] = float64(c.Count)
		oldest[c.Channel] = max(oldest[c.Channel], time.Since(c.Oldest).Seconds())
	}
	for _, channel := range cloud.Channels() {
		for _, s := range []cloud.OutboxState{cloud.OutboxPending, cloud.OutboxDelivering, cloud.OutboxRetrying} {
			d.metrics.waiting.WithLabelValues(channel, string(s)).Set(waiting[[2]string{channel, string(s)}])
		}
		d.metrics.oldest.WithLabelValues(channel).Set(oldest[channel])
	}
	d.gaugeEndpoints(ctx)
}
