package device

import (
	"slices"
	"sync"
	"time"
)

// Bounds of the commit queue and of what measures it.
const (
	shortQueue    = 250 * time.Millisecond // up to here the limit may be lifted
	fullQueue     = 500 * time.Millisecond // from here every session is held back
	flowWindow    = 250 * time.Millisecond // of one measurement
	turnEvery     = 50 * time.Millisecond  // turns are given out
	turnLength    = 2 * time.Second        // at most
	turnRate      = 2048                   // records a second at most: two full batches
	firstCapacity = 1 << 20                // bytes a second, until something was measured
	firstSize     = 128                    // bytes a record, until one was seen
	deviceWindow  = 256 << 10              // bytes that an agent sends without waiting for a receipt
	maxWaiting    = 256 << 20              // bytes of lane 1 waiting in this process; more is dropped and comes again
)

// flow is the node's commit queue: what waits at intake over all sessions, how
// fast it is committed, and who may add to it. All methods are safe for
// concurrent use.
//
//	wait = what waits / capacity
//
// No session is held back while the wait is short and all that sessions with a
// backlog would send at once is half a second's work. Otherwise these take
// turns, in a ring: a turn is a second's worth of one fourth of the capacity, in
// batches that are as large as they can be, because each batch costs the
// database something whatever is in it. Turns are given out while what waits and
// what running turns will bring is at most a second's work. A record without a turn has
// credit 0 and gets a message when its turn comes.
//
// Capacity is what was committed in a window during which the queue was never
// empty; in one during which it was, there may be more.
type flow struct {
	mu       sync.Mutex
	waiting  int64      // bytes queued or being committed
	owed     int64      // bytes that sessions with a backlog would send at once
	promised int64      // bytes that running turns may still bring
	ring     []*session // those with a backlog, the next to have a turn first
	turns    []*session // those that have one
	capacity float64    // bytes a second
	size     float64    // bytes a record takes on average
	began    time.Time
	done     int64 // bytes committed in this window
	idle     bool  // the queue was empty in this window
}

// share is a session's part in the flow, guarded by flow.mu.
type share struct {
	owed  int64 // bytes it would send at once: its backlog, at most an agent's window; 0 when it has none
	quota int64 // bytes that its turn may still bring, 0 when it has none
	until time.Time
}

func newFlow(now time.Time) flow {
	return flow{capacity: firstCapacity, size: firstSize, began: now, idle: true}
}

// admit counts a payload that is to be queued. It reports false, counting
// nothing, when too much waits already; only what is bulk is turned away.
func (f *flow) admit(x *session, bytes int, bulk bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bulk {
		if f.waiting+int64(bytes) > maxWaiting {
			return false
		}
		used := min(x.share.quota, int64(bytes))
		x.share.quota -= used
		f.promised -= used
	}
	f.waiting += int64(bytes)
	return true
}

// drop counts payloads that leave the queue without having been committed.
func (f *flow) drop(bytes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(bytes)
}

func (f *flow) leave(bytes int) {
	f.waiting -= int64(bytes)
	f.idle = f.idle || f.waiting == 0
}

// committed counts payloads whose transaction has ended, and the records they
// held.
func (f *flow) committed(bytes, records int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave(bytes)
	f.done += int64(bytes)
	if records > 0 {
		f.size += (float64(bytes)/float64(records) - f.size) / 16
	}
	length := now.Sub(f.began)
	if length < flowWindow {
		return
	}
	rate := float64(f.done) / length.Seconds()
	if f.idle {
		f.capacity = max(f.capacity, rate, min(1.25*f.capacity, 2*rate))
	} else {
		f.capacity = (f.capacity + rate) / 2
	}
	f.began, f.done, f.idle = now, 0, f.waiting == 0
}

// wait is how long what comes now will wait for its commit, by what is known.
func (f *flow) wait() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waitLocked()
}

func (f *flow) waitLocked() time.Duration {
	return time.Duration(float64(f.waiting) / max(f.capacity, 1) * float64(time.Second))
}

// owes notes how many records of lane 1 a session has that were not stored.
func (f *flow) owes(x *session, records uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, is := x.share.owed, int64(0)
	if records > 0 {
		is = max(int64(min(float64(records)*f.size, deviceWindow)), 1)
	}
	x.share.owed = is
	f.owed += is - was
	switch {
	case was == 0 && is > 0:
		f.ring = append(f.ring, x)
	case was > 0 && is == 0:
		f.ring = slices.DeleteFunc(f.ring, func(o *session) bool { return o == x })
		f.endTurn(x)
	}
}

func (f *flow) endTurn(x *session) {
	f.promised -= x.share.quota
	x.share.quota = 0
	f.turns = slices.DeleteFunc(f.turns, func(o *session) bool { return o == x })
}

// free reports whether no session has to be held back.
func (f *flow) free() bool {
	return f.waitLocked() <= shortQueue && float64(f.owed) <= f.capacity*fullQueue.Seconds()
}

// rate is what a session sends during its turn, records a second.
func (f *flow) rate() uint64 {
	return uint64(max(min(f.capacity/f.size/4, turnRate), 1))
}

// credit is what a session may send until it receives another limit: records a
// second, nil for no limit.
func (f *flow) credit(x *session, now time.Time) *uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := uint64(0)
	switch {
	case f.free() || x.share.owed == 0 && f.waitLocked() <= fullQueue:
		return nil
	case x.share.owed == 0:
		n = 1 // it lives, and has no ring to come round
	case x.share.quota > 0 && now.Before(x.share.until):
		n = f.rate()
	}
	return &n
}

// next gives out the turns that there is room for, and names who has one now.
func (f *flow) next(now time.Time) (begun []*session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range slices.Clone(f.turns) {
		if x.share.quota == 0 || !now.Before(x.share.until) {
			f.endTurn(x)
		}
	}
	if f.free() {
		return nil
	}
	quota := int64(float64(f.rate()) * f.size)
	for range len(f.ring) {
		if f.waitLocked() > fullQueue || len(f.turns) > 0 && float64(f.waiting+f.promised+quota) > f.capacity {
			break
		}
		x := f.ring[0]
		f.ring = append(f.ring[1:], x)
		if x.share.quota > 0 {
			continue
		}
		x.share.quota, x.share.until = quota, now.Add(turnLength)
		f.promised += quota
		f.turns = append(f.turns, x)
		begun = append(begun, x)
	}
	return begun
}
