package sender

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// roster is who has a lease, as all processes see it.
type roster struct {
	mu      sync.Mutex
	living  []cloud.Node
	changed chan struct{}
}

func (r *roster) set(living []cloud.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.living = living
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *roster) Living() ([]cloud.Node, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.living, r.changed
}

// seat is one process in the roster.
type seat struct {
	*roster
	instance string
	sure     context.Context
}

func (s seat) Instance() string      { return s.instance }
func (s seat) Sure() context.Context { return s.sure }

// mortal is a store that a process which was killed does not reach any more.
type mortal struct {
	*store.DB
	dead atomic.Bool
}

var errKilled = errors.New("the process was killed")

func (m *mortal) FinishOutbox(ctx context.Context, rs []cloud.OutboxResult) ([]cloud.OutboxID, error) {
	if m.dead.Load() {
		return nil, errKilled
	}
	return m.DB.FinishOutbox(ctx, rs)
}

func (m *mortal) ReleaseOutbox(ctx context.Context, ds []cloud.OutboxResult) error {
	if m.dead.Load() {
		return errKilled
	}
	return m.DB.ReleaseOutbox(ctx, ds)
}

func (m *mortal) LeaveSlots(ctx context.Context, slots uint64) error {
	if m.dead.Load() {
		return errKilled
	}
	return m.DB.LeaveSlots(ctx, slots)
}

func (m *mortal) RenewOutbox(ctx context.Context, ids []cloud.OutboxID) ([]cloud.OutboxID, error) {
	if m.dead.Load() {
		return nil, errKilled
	}
	return m.DB.RenewOutbox(ctx, ids)
}

// cluster is some nodes on one schema, and one receiver.
type cluster struct {
	t      *testing.T
	url    string
	net    *fetchtest.Network
	got    *fetchtest.Receiver
	roster *roster
	waits  []time.Duration // after failed attempts

	mu     sync.Mutex
	nodes  []*clusterNode // that run
	made   int
	killed []time.Time
}

type clusterNode struct {
	db     *store.DB
	store  *mortal
	d      *Dispatcher
	cancel context.CancelFunc
	ended  chan error
	skew   time.Duration // of its clock, in what it writes
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, url: storetest.MigratedPostgresURL(t), net: fetchtest.NewNetwork(), got: &fetchtest.Receiver{}, roster: &roster{changed: make(chan struct{})},
		waits: slices.Concat([]time.Duration{150 * time.Millisecond}, slices.Repeat([]time.Duration{300 * time.Millisecond}, 6))}
	c.net.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = c.got.Handle
	return c
}

func instanceName(n int) string { return fmt.Sprint("instance-", n) }

// join starts another node.
func (c *cluster) join() {
	c.made++
	name := instanceName(c.made)
	n := &clusterNode{db: storetest.Open(c.t, store.Config{URL: c.url, Instance: name, Box: storetest.Box(c.t)}), ended: make(chan error, 1), skew: rand.N(time.Second / 2)}
	n.store = &mortal{DB: n.db}
	require.NoError(c.t, n.db.EnterNode(context.Background(), cloud.Node{Instance: name, Name: name, SchemaNumber: store.SchemaNumber(), Core: true, StartedAt: time.Now()}, cloud.Node{}))
	sure, doubt := context.WithCancel(context.Background())
	c.t.Cleanup(doubt)
	n.d = New(Config{Store: n.store, Nodes: seat{c.roster, name, sure}, Guard: fetch.NewGuard(fetch.GuardConfig{HTTP: true}), Resolver: c.net, Dial: c.net.Dial,
		Waits: c.waits, Logger: slog.New(slog.DiscardHandler)})
	n.db.OnCommit(n.d.Committed)
	n.db.OnCommit(func(ch *cloud.Changes) { c.hint(n, ch) })
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	go func() { n.ended <- n.d.Run(ctx) }()
	ring.Await(c.t, func() bool {
		n.d.mu.Lock()
		defer n.d.mu.Unlock()
		return n.d.running
	})
	c.see()
}

// hint gives what is to be sent by others to them, a little later, and at times not.
func (c *cluster) hint(from *clusterNode, ch *cloud.Changes) {
	slots := UnleasedSlots(ch)
	if slots == 0 || rand.N(4) == 0 {
		return
	}
	c.mu.Lock()
	others := slices.Clone(c.nodes)
	c.mu.Unlock()
	time.AfterFunc(rand.N(8*time.Millisecond), func() {
		for _, n := range others {
			if n != from {
				n.d.Notice(slots)
			}
		}
	})
}

// see lets the roster say who runs.
func (c *cluster) see() {
	list, err := c.nodes[0].db.ListNodes(context.Background())
	require.NoError(c.t, err)
	c.roster.set(list)
}

// kill ends a node as kill -9 does; others find that out a little later.
func (c *cluster) kill(i int) {
	c.mu.Lock()
	n := c.nodes[i]
	c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	c.killed = append(c.killed, time.Now())
	c.mu.Unlock()
	n.store.dead.Store(true)
	n.d.mu.Lock()
	n.d.running = false
	n.d.mu.Unlock()
	n.cancel()
	time.Sleep(300 * time.Millisecond)
	require.NoError(c.t, c.nodes[0].db.EndNode(context.Background(), n.db.Instance(), -1))
	c.see()
}

// retire ends a node in good order.
func (c *cluster) retire(i int) {
	c.mu.Lock()
	n := c.nodes[i]
	c.nodes = slices.Delete(slices.Clone(c.nodes), i, i+1)
	c.mu.Unlock()
	n.cancel()
	require.NoError(c.t, <-n.ended)
	require.NoError(c.t, n.db.EndNode(context.Background(), n.db.Instance(), -1))
	c.see()
}

// endpoint makes the receiver known.
func (c *cluster) endpoint(with ...func(*cloud.Endpoint)) {
	e := cloud.Endpoint{ID: 3, BusinessID: 42, ProviderID: 17, Kind: "third_party_delivery", URL: "http://a.example.com/", Enabled: true, Status: "healthy", Secret: []byte(secret)}
	for _, f := range with {
		f(&e)
	}
	require.NoError(c.t, c.nodes[0].db.Decide(c.t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}}}, nil
	}))
	_, err := c.nodes[0].db.NoteHealth(c.t.Context(), []cloud.EndpointTally{{EndpointID: 3, SucceededAt: time.Unix(1, 0)}})
	require.NoError(c.t, err)
}

// has is the place of the node that sends about a reference; -1: there is none yet.
func (c *cluster) has(ref int) int {
	slot := cloud.OutboxSlot(3, cloud.EventReference{BusinessID: 42, Type: "order", ID: fmt.Sprint(ref)})
	return slices.IndexFunc(c.nodes, func(n *clusterNode) bool {
		n.d.mu.Lock()
		defer n.d.mu.Unlock()
		return n.d.slots.has(slot)
	})
}

// change writes the next event about a reference at a node.
func (c *cluster) change(ref int) error {
	c.mu.Lock()
	n := c.nodes[rand.N(len(c.nodes))]
	c.mu.Unlock()
	return n.db.Decide(context.Background(), 0, func(v cloud.View) (*cloud.Changes, error) {
		number, err := v.NextSequence(cloud.EventReference{BusinessID: 42, Type: "order", ID: fmt.Sprint(ref)})
		if err != nil {
			return nil, err
		}
		id, err := v.NewID(cloud.OutboxIDs)
		if err != nil {
			return nil, err
		}
		now := time.Now().Add(n.skew)
		e := cloud.OutboxEvent{EventID: fmt.Sprintf("E-%d-%d", ref, number), Event: "order.status_change", BusinessID: 42, ProviderID: 17, Channel: cloud.ChannelThirdParty, ReferenceType: "order",
			ReferenceID: fmt.Sprint(ref), Sequence: number, OccurredAt: now, CreatedAt: now, Body: []byte(`{}`)}
		return &cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: e, Deliveries: []cloud.OutboxDelivery{{ID: cloud.OutboxID(id), EventID: e.EventID, EndpointID: 3, BusinessID: 42,
			WebhookID: e.EventID, State: cloud.OutboxPending, MaxAttempts: 8, NextAt: now, CreatedAt: now}}}}}}, nil
	})
}

// eventOf reads the reference and number of an event's id.
func eventOf(t *testing.T, id string) (ref string, n int64) {
	_, both, _ := strings.Cut(id, "-")
	ref, number, _ := strings.Cut(both, "-")
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return ref, n
}

// All nodes together send a receiver no more than it wants.
func TestNodesKeepARateTogether(t *testing.T) {
	t.Parallel()
	const perSecond, burst, nodes, refs, each = 8.0, 1, 3, 24, 2
	c := newCluster(t)
	for range nodes {
		c.join()
	}
	c.endpoint(func(e *cloud.Endpoint) { e.Rate, e.Burst = perSecond, burst })
	for ref := range refs {
		ring.Await(t, func() bool { return c.has(ref) >= 0 })
	}
	var all sync.WaitGroup
	for ref := range refs {
		all.Go(func() {
			for range each {
				if err := c.change(ref); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ring.Await(t, func() bool {
		w, err := c.nodes[0].db.OutboxWaiting(t.Context())
		return err == nil && len(w) == 0
	})
	for len(c.nodes) > 1 {
		c.retire(0)
	}
	c.nodes[0].cancel()
	require.NoError(t, <-c.nodes[0].ended)
	c.net.Handlers.Wait()
	posts := c.got.Seen()
	require.Len(t, posts, refs*each)
	took := posts[len(posts)-1].At.Sub(posts[0].At).Seconds()
	t.Logf("%d posts in %.2f s", len(posts), took)
	require.LessOrEqual(t, float64(len(posts)), perSecond*took+nodes*burst, "posts of all nodes")
}

// Events about few references are made at random nodes, some of which are killed, end in
// good order and join. The receiver takes its time, and at times answers 500. The first
// arrivals of each reference come in the order of its numbers, other than what was
// answered 500; nothing is lost; and only what was in flight at a kill comes twice.
func TestNodesSendEachReferenceInOrder(t *testing.T) {
	t.Parallel()
	refs, each, slowest, kills := 6, 10, 40*time.Millisecond, 1
	if ring.Full() {
		refs, each, slowest, kills = 12, 60, 400*time.Millisecond, 6
	}
	c := newCluster(t)
	var mu sync.Mutex
	failed := map[string]int{}
	c.got.Reply = func(n int, rw http.ResponseWriter) {
		id := c.got.Seen()[n-1].Head.Get("X-Webhook-Id")
		time.Sleep(rand.N(slowest))
		if rand.N(25) == 0 {
			mu.Lock()
			failed[id]++
			mu.Unlock()
			rw.WriteHeader(500)
		}
	}
	for range 3 {
		c.join()
	}
	c.endpoint()
	var all sync.WaitGroup
	for ref := range refs {
		all.Go(func() {
			for range each {
				if err := c.change(ref); err != nil {
					t.Error(err)
					return
				}
				time.Sleep(rand.N(2 * slowest))
			}
		})
	}
	for k := range kills {
		time.Sleep(5 * slowest)
		c.kill(rand.N(len(c.nodes)))
		c.join()
		if k%2 == 1 {
			c.retire(rand.N(len(c.nodes)))
			c.join()
		}
	}
	all.Wait()
	ring.Await(t, func() bool {
		w, err := c.nodes[0].db.OutboxWaiting(t.Context())
		return err == nil && len(w) == 0
	})
	for len(c.nodes) > 1 {
		c.retire(0)
	}
	c.nodes[0].cancel()
	require.NoError(t, <-c.nodes[0].ended)
	c.net.Handlers.Wait()

	posts := c.got.Seen()
	first, second, times := map[string]time.Time{}, map[string]time.Time{}, map[string]int{}
	highest, steps, disorder := map[string]int64{}, 0, 0
	for _, p := range posts {
		id := p.Head.Get("X-Webhook-Id")
		if times[id]++; times[id] > 1 {
			if times[id] == 2 {
				second[id] = p.At
			}
			continue
		}
		first[id] = p.At
		ref, n := eventOf(t, id)
		if failed[id] > 0 {
			continue
		}
		if steps++; n < highest[ref] {
			disorder++
			t.Logf("%s came after number %d", id, highest[ref])
		}
		highest[ref] = max(highest[ref], n)
	}
	require.Len(t, first, refs*each, "nothing is lost")
	require.Zero(t, disorder, "of %d", steps)
	for id, at := range second { // what waited for its first retry was not overtaken
		ref, n := eventOf(t, id)
		for other, came := range first {
			if r, m := eventOf(t, other); failed[id] > 0 && r == ref && m > n {
				require.False(t, came.Before(at), "%s came before %s was tried again", other, id)
			}
		}
	}
	for id, n := range times {
		if n == 1 || failed[id] > 0 {
			continue
		}
		require.True(t, slices.ContainsFunc(c.killed, func(at time.Time) bool {
			return first[id].After(at.Add(-slowest-time.Second/5)) && first[id].Before(at.Add(time.Second/5))
		}), "%s came %d times", id, n)
	}
}

// What waits for its first retry when its node is killed goes first at the next node, too.
func TestAFirstRetryGoesFirstAtTheNextNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.waits = slices.Repeat([]time.Duration{3 * time.Second}, 7)
	c.got.Reply = func(n int, rw http.ResponseWriter) {
		if n == 1 {
			rw.WriteHeader(500)
		}
	}
	c.join()
	c.join()
	c.endpoint()
	require.NoError(t, c.change(7))
	ring.Await(t, func() bool {
		w, err := c.nodes[0].db.OutboxWaiting(t.Context())
		return err == nil && len(w) == 1 && w[0].State == cloud.OutboxRetrying
	})
	c.kill(c.has(7))
	ring.Await(t, func() bool { return c.has(7) == 0 })
	require.NoError(t, c.change(7))
	require.NoError(t, c.change(7))
	ring.Await(t, func() bool { return len(c.got.Seen()) == 4 })
	c.nodes[0].cancel()
	require.NoError(t, <-c.nodes[0].ended)
	c.net.Handlers.Wait()
	var ids []string
	for _, p := range c.got.Seen() {
		ids = append(ids, p.Head.Get("X-Webhook-Id"))
	}
	require.Equal(t, []string{"E-7-1", "E-7-1", "E-7-2", "E-7-3"}, ids)
}
