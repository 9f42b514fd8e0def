package sender

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch"
	"github.com/postern-io/postern/internal/ring"
)

// slotWorld is what processes share: who has a lease, who has which slot, and to whose
// slots requests are under way.
type slotWorld struct {
	t   *testing.T
	rnd *rand.Rand

	mu      sync.Mutex
	leases  map[string]time.Time // of renewals
	owner   [cloud.OutboxSlots]string
	sending [cloud.OutboxSlots]map[string]int
	sent    int
}

// slotStore is the part of the store that is about slots, for one process.
type slotStore struct {
	Store
	w    *slotWorld
	self string
}

func (s *slotStore) Peers() bool                                               { return true }
func (s *slotStore) HoldSlots(uint64)                                          {}
func (s *slotStore) ReleaseOutbox(context.Context, []cloud.OutboxResult) error { return nil }

func (s *slotStore) TakeSlots(_ context.Context, slots uint64) (got uint64, err error) {
	time.Sleep(s.w.span(time.Second))
	s.w.mu.Lock()
	_, alive := s.w.leases[s.self]
	for slot := range cloud.OutboxSlots {
		_, taken := s.w.leases[s.w.owner[slot]]
		if alive && slots>>slot&1 == 1 && (!taken || s.w.owner[slot] == s.self) {
			s.w.owner[slot] = s.self
			got |= 1 << slot
		}
	}
	s.w.mu.Unlock()
	time.Sleep(s.w.span(time.Second))
	return got, nil
}

func (s *slotStore) LeaveSlots(_ context.Context, slots uint64) error {
	time.Sleep(s.w.span(time.Second))
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for slot := range cloud.OutboxSlots {
		if slots>>slot&1 == 1 && s.w.owner[slot] == s.self {
			s.w.owner[slot] = ""
		}
	}
	return nil
}

func (w *slotWorld) span(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rnd.Int63n(int64(most)))
}

func (w *slotWorld) chance(of int) bool { return w.span(time.Duration(of)) == 0 }

// slotProcess is a process with a lease as cloud/node has it: renewed every ten seconds,
// leaseIsSure for twenty, ended by others after thirty.
type slotProcess struct {
	w    *slotWorld
	self string
	d    *Dispatcher

	mu      sync.Mutex
	sure    context.Context
	doubt   context.CancelFunc
	timer   *time.Timer
	living  []cloud.Node
	changed chan struct{}
	stalled time.Time // until then it does nothing
}

func (p *slotProcess) Instance() string { return p.self }

func (p *slotProcess) Sure() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sure
}

func (p *slotProcess) Living() ([]cloud.Node, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.living, p.changed
}

// renew reports whether the process still has its lease.
func (p *slotProcess) renew() bool {
	begun := time.Now()
	p.w.mu.Lock()
	_, alive := p.w.leases[p.self]
	var living []cloud.Node
	if alive {
		p.w.leases[p.self] = begun
	}
	for name := range p.w.leases {
		living = append(living, cloud.Node{Instance: name, Core: true})
	}
	p.w.mu.Unlock()
	if !alive {
		p.doubt()
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sure == nil || p.sure.Err() != nil {
		p.sure, p.doubt = context.WithCancel(context.Background())
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(20*time.Second, p.doubt)
	p.living = living
	if p.d != nil {
		p.d.mu.Lock()
		p.d.renewed = begun
		p.d.mu.Unlock()
	}
	return true
}

func (p *slotProcess) wait(d time.Duration) {
	time.Sleep(d)
	for {
		p.mu.Lock()
		until := p.stalled
		p.mu.Unlock()
		if !time.Now().Before(until) {
			return
		}
		time.Sleep(time.Until(until))
	}
}

// send makes requests of the process's slots while ctx lives.
func (p *slotProcess) send(ctx context.Context, requests *sync.WaitGroup) {
	for n := cloud.OutboxID(1); ctx.Err() == nil; n++ {
		p.wait(p.w.span(300 * time.Millisecond))
		slot := int(p.w.span(cloud.OutboxSlots))
		p.d.mu.Lock()
		may := ctx.Err() == nil && p.d.slots.has(slot) && !p.d.doubtful(time.Now())
		if may {
			p.d.slots.inHand[n] = slot
		}
		p.d.mu.Unlock()
		if !may {
			continue
		}
		p.w.begin(slot, p.self)
		requests.Go(func() {
			time.Sleep(p.w.span(fetch.Timeout))
			p.w.end(slot, p.self)
			time.Sleep(p.w.span(time.Second)) // the outcome is stored
			p.d.mu.Lock()
			delete(p.d.slots.inHand, n)
			p.d.mu.Unlock()
		})
	}
}

func (w *slotWorld) begin(slot int, self string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, n := range w.sending[slot] {
		if other != self && n > 0 {
			w.t.Errorf("%s sends slot %d while %s does", self, slot, other)
		}
	}
	if w.sending[slot] == nil {
		w.sending[slot] = map[string]int{}
	}
	w.sending[slot][self]++
	w.sent++
}

func (w *slotWorld) end(slot int, self string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending[slot][self]--
}

// run is a process from its start to its end: a good one, a sudden one, or one that
// others bring about because it stood still.
func (w *slotWorld) run(ctx context.Context, self string) {
	w.mu.Lock()
	w.leases[self] = time.Now()
	w.mu.Unlock()
	p := &slotProcess{w: w, self: self, changed: make(chan struct{})}
	p.renew()
	defer func() { p.doubt() }()
	p.d = New(Config{Store: &slotStore{w: w, self: self}, Nodes: p, Logger: slog.New(slog.DiscardHandler)})
	p.d.renewed = time.Now()
	inner, stop := context.WithCancel(ctx)
	var loops, requests sync.WaitGroup
	loops.Go(func() { p.send(inner, &requests) })
	loops.Go(func() {
		for inner.Err() == nil {
			p.wait(10 * time.Second)
			if !p.renew() {
				stop()
			}
		}
	})
	killed := false
	for inner.Err() == nil {
		p.wait(time.Second)
		balanceSlots(p.d, inner)
		switch {
		case w.chance(40): // it stands still
			p.mu.Lock()
			p.stalled = time.Now().Add(w.span(time.Minute))
			p.mu.Unlock()
		case w.chance(300): // it is killed
			killed = true
			stop()
		case w.chance(300): // it ends
			stop()
		}
	}
	stop()
	loops.Wait()
	if requests.Wait(); !killed {
		_ = leaveAllSlots(p.d, context.Background())
		w.mu.Lock()
		delete(w.leases, self)
		w.mu.Unlock()
	}
}

// reap ends leases of processes that stood still for thirty seconds.
func (w *slotWorld) reap(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(w.span(10 * time.Second))
		w.mu.Lock()
		for self, at := range w.leases {
			if time.Since(at) > 30*time.Second {
				delete(w.leases, self)
			}
		}
		w.mu.Unlock()
	}
}

// Processes come, end, are killed and stand still. No two of them send anything of the
// same slot at once.
func TestNoTwoNodesSendOfOneSlot(t *testing.T) {
	t.Parallel()
	seeds := 4
	if ring.Full() {
		seeds = 60
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slotWorld{t: t, rnd: rand.New(rand.NewSource(int64(seed))), leases: map[string]time.Time{}}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				var all sync.WaitGroup
				all.Go(func() { w.reap(ctx) })
				for k := range 4 {
					all.Go(func() {
						for n := 0; ctx.Err() == nil; n++ {
							time.Sleep(w.span(20 * time.Second))
							w.run(ctx, fmt.Sprintf("p%d-%d", k, n))
						}
					})
				}
				all.Wait()
				require.Greater(t, w.sent, 500)
			})
		})
	}
}

// Few slots change hands when a process comes or goes, and none between others.
func TestSlotsStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	var living []cloud.Node
	for n := range 5 {
		living = append(living, cloud.Node{Instance: fmt.Sprint("instance-", n), Core: n != 4})
	}
	of := func(list []cloud.Node) (owners [cloud.OutboxSlots]string) {
		all := uint64(0)
		for _, n := range list {
			mine := wantedSlots(n.Instance, list)
			require.Zero(t, all&mine, "a slot has one owner")
			all |= mine
			for slot := range owners {
				if mine>>slot&1 == 1 {
					owners[slot] = n.Instance
				}
			}
		}
		require.Equal(t, allSlots, all)
		return owners
	}
	four, three := of(living), of(append([]cloud.Node{}, living[1:]...))
	counts := map[string]int{}
	for slot, before := range four {
		counts[before]++
		require.True(t, before == three[slot] || before == "instance-0", "only what the one that went had")
	}
	require.Len(t, counts, 4, "one that takes connections only has none")
	for name, n := range counts {
		require.InDelta(t, 16, n, 12, name)
	}
}
