package sender

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

// leasing is a store whose leases end as those of PostgreSQL do, and which may do what it
// is asked for without saying so: the connection ended after the commit.
type leasing struct {
	Store
	db *store.DB

	mu     sync.Mutex
	leases map[cloud.OutboxID]lease
	torn   string // what is answered with an error once, though it was done
}

type lease struct {
	generation int64
	until      time.Time
}

var errTorn = errors.New("the connection ended after the commit")

func newLeasing(s Store, db *store.DB) *leasing {
	l := &leasing{Store: s, db: db, leases: map[cloud.OutboxID]lease{}}
	db.OnCommit(func(c *cloud.Changes) {
		for i := range c.Outbox {
			for _, d := range c.Outbox[i].Deliveries {
				if d.LeaseOwner != "" {
					l.note(d.ID, d.Generation)
				}
			}
		}
	})
	return l
}

func (l *leasing) note(id cloud.OutboxID, generation int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[id] = lease{generation, time.Now().Add(store.Lease)}
}

// tear reports whether the answer of a call is lost this time.
func (l *leasing) tear(call string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn != call {
		return false
	}
	l.torn = ""
	return true
}

// has reports whether leases of a delivery are there.
func (l *leasing) has(id cloud.OutboxID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.leases[id]
	return ok
}

// expire ends the leases that ran out.
func (l *leasing) expire() error {
	var out []cloud.OutboxResult
	l.mu.Lock()
	for id, x := range l.leases {
		if time.Now().After(x.until) {
			out = append(out, cloud.OutboxResult{ID: id, Generation: x.generation})
			delete(l.leases, id)
		}
	}
	l.mu.Unlock()
	return l.db.ReleaseOutbox(context.Background(), out)
}

func (l *leasing) DueEndpoints(ctx context.Context, now time.Time) ([]cloud.EndpointID, error) {
	if err := l.expire(); err != nil {
		return nil, err
	}
	return l.Store.DueEndpoints(ctx, now)
}

func (l *leasing) ClaimOutbox(ctx context.Context, id cloud.EndpointID, now time.Time, limit int) ([]cloud.OutboxWork, error) {
	work, err := l.Store.ClaimOutbox(ctx, id, now, limit)
	for _, w := range work {
		l.note(w.Delivery.ID, w.Delivery.Generation)
	}
	if len(work) > 0 && l.tear("claim") {
		return nil, errTorn
	}
	return work, err
}

func (l *leasing) FinishOutbox(ctx context.Context, rs []cloud.OutboxResult) ([]cloud.OutboxID, error) {
	lost, err := l.Store.FinishOutbox(ctx, rs)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range rs {
		if err == nil && l.leases[r.ID].generation == r.Generation {
			delete(l.leases, r.ID)
		}
	}
	return lost, err
}

func (l *leasing) RenewOutbox(ctx context.Context, ids []cloud.OutboxID) ([]cloud.OutboxID, error) {
	var held []cloud.OutboxID
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if x, ok := l.leases[id]; ok {
			l.leases[id] = lease{x.generation, time.Now().Add(store.Lease)}
			held = append(held, id)
		}
	}
	return held, nil
}

func (l *leasing) ReleaseOutbox(ctx context.Context, ds []cloud.OutboxResult) error {
	if len(ds) > 0 && l.tear("release") {
		return errTorn // and was not done
	}
	l.mu.Lock()
	for _, d := range ds {
		if l.leases[d.ID].generation == d.Generation {
			delete(l.leases, d.ID)
		}
	}
	l.mu.Unlock()
	return l.Store.ReleaseOutbox(ctx, ds)
}

// A delivery that the store leased to this node without this node's knowledge is sent once
// the lease has run out: no renewal keeps what is not in memory.
func TestALeaseThatMemoryDoesNotKnowRunsOut(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*world, *leasing) cloud.OutboxID{
		"the answer of a claim": func(w *world, l *leasing) cloud.OutboxID {
			l.torn = "claim"
			return w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].Sequence = cloud.Unnumbered })
		},
		"the answer of a commit": func(w *world, l *leasing) cloud.OutboxID {
			id := w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].NextAt = time.Now().Add(time.Second) })
			work, err := w.db.ClaimOutbox(context.Background(), 3, time.Now().Add(time.Minute), 1)
			require.NoError(t, err)
			require.Len(t, work, 1)
			l.note(id, work[0].Delivery.Generation)
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var l *leasing
				w.wrap = func(s Store) Store { l = newLeasing(s, w.db); return l }
				w.run()
				synctest.Wait()
				id := lose(w, l)
				time.Sleep(store.Lease + 10*time.Second)
				row, tries := w.row(id)
				require.Len(t, tries, 1, "lease of %q", row.LeaseOwner)
				require.Equal(t, cloud.OutboxSuccess, row.State)
				w.stop()
				w.close()
			})
		})
	}
}

// What waits in memory, is in flight or is being stored keeps its lease for as long as it
// takes, and is sent once.
func TestLeasesOfWhatWaitsAreRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var l *leasing
		w.wrap = func(s Store) Store { l = newLeasing(s, w.db); return l }
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(4 * time.Second) }
		w.run()
		synctest.Wait()
		for range 120 { // five at a time: 96 s
			w.emit(nil)
		}
		time.Sleep(2 * time.Minute)
		times := map[string]int{}
		for _, p := range w.a.Seen() {
			times[p.Head.Get("X-Webhook-Id")]++
		}
		require.Len(t, times, 120)
		for id, n := range times {
			require.Equal(t, 1, n, id)
		}
		w.stop()
		w.close()
	})
}

// A waiting delivery whose lease turns out to be another's is not sent by this node.
func TestALostLeaseIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var l *leasing
		w.wrap = func(s Store) Store { l = newLeasing(s, w.db); return l }
		w.a.Reply = func(int, http.ResponseWriter) { time.Sleep(8 * time.Second) }
		w.run()
		synctest.Wait()
		var last cloud.OutboxID
		for range 12 { // five at a time: the last two wait 16 s
			last = w.emit(nil)
		}
		time.Sleep(time.Second)
		require.True(t, l.has(last))
		l.mu.Lock()
		delete(l.leases, last) // another node has it
		l.mu.Unlock()
		time.Sleep(time.Minute)
		_, tries := w.row(last)
		require.Empty(t, tries)
		require.Len(t, w.a.Seen(), 11)
		w.stop()
		w.close()
	})
}

// What could not be given back is given back later.
func TestWhatIsNotGivenBackIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var l *leasing
		w.wrap = func(s Store) Store { l = newLeasing(s, w.db); return l }
		d := w.run()
		synctest.Wait()
		d.mu.Lock()
		d.slots.held = 0 // another node's, as of now
		d.mu.Unlock()
		id := w.emit(func(o *cloud.OutboxWrite) { o.Deliveries[0].Sequence = cloud.Unnumbered })
		l.mu.Lock()
		l.torn = "release"
		l.mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		d.mu.Lock()
		d.slots.held = allSlots
		d.mu.Unlock()
		time.Sleep(3 * time.Second)
		_, tries := w.row(id)
		require.Len(t, tries, 1)
		w.stop()
		w.close()
	})
}

// A machine that was paused has its own clock where it stood and the wall's later: what
// waits is given back before anything is sent.
func TestWhatWaitsIsInDoubtAfterAPauseOfTheMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d := w.run()
		synctest.Wait()
		d.mu.Lock()
		now := time.Now()
		before := d.doubtful(now)
		d.renewed = now.Round(0).Add(-leaseSure)
		after := d.doubtful(now)
		d.mu.Unlock()
		require.False(t, before)
		require.True(t, after)
		w.stop()
		w.close()
	})
}

// Where other nodes share the store, what is in flight or being stored is renewed with what
// waits, each once.
func TestEveryKnownLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	d := New(Config{})
	d.slots.inHand = map[cloud.OutboxID]int{1: 0, 2: 0}
	d.queues.held = map[cloud.OutboxID]bool{2: true, 3: true}
	d.inbox = []cloud.OutboxWork{{Delivery: cloud.OutboxDelivery{ID: 4}}}
	require.ElementsMatch(t, []cloud.OutboxID{1, 2, 3, 4}, leasedIDs(d))
}
