package device

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Bounds of the commit queue and of what measures it.
const (
	shortQueue    = 250 * time.Millisecond // up to here the limit may be lifted
	fullQueue     = 500 * time.Millisecond // from here credits shrink; the queue itself stays below a second
	flowWindow    = 250 * time.Millisecond // of one measurement
	firstCapacity = 1 << 20                // bytes a second, until something was measured
	firstSize     = 128                    // bytes a record, until one was seen
	deviceWindow  = 256 << 10              // bytes that an agent sends without waiting for a receipt
	maxWaiting    = 256 << 20              // bytes of lane 1 waiting in this process; more is dropped and comes again
)

// flow is the node's commit queue: what waits at intake over all sessions, how
// fast it is committed, and what sessions would send if nothing held them back.
// From these it says how many records a second each session with a backlog may
// send. All methods are safe for concurrent use.
//
//	wait = waiting / capacity
//
//	wait      all sessions with a backlog together    the rest
//	≤ 250 ms  no limit if what they have fits,        no limit
//	          else 1.25 × capacity, which finds more
//	≤ 500 ms  1 × capacity                            no limit
//	≤ 750 ms  0.5 × capacity                          as those with a backlog
//	more      0.1 × capacity                          as those with a backlog
//
// Capacity is what was committed in a window during which the queue was never
// empty; a window in which it was can only raise it.
type flow struct {
	mu        sync.Mutex
	waiting   int64   // bytes queued or being committed
	owed      int64   // bytes that sessions with a backlog would send at once
	claimants int     // sessions with a backlog in lane 1
	capacity  float64 // bytes a second
	size      float64 // bytes a record takes on average
	began     time.Time
	done      int64 // bytes committed in this window
	idle      bool  // the queue was empty in this window
}

func newFlow(now time.Time) flow {
	return flow{capacity: firstCapacity, size: firstSize, began: now, idle: true}
}

// come counts a payload that is to be queued. It reports false, counting
// nothing, when too much waits already.
func (f *flow) come(bytes int, bounded bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if bounded && f.waiting+int64(bytes) > maxWaiting {
		return false
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
	switch {
	case rate > f.capacity:
		f.capacity = rate
	case !f.idle:
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

// owes notes that a session has so many records of lane 1 that were not sent,
// given what it was noted with before, and returns what it is noted with now.
func (f *flow) owes(was int64, records uint64) (is int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is = int64(min(float64(records)*f.size, deviceWindow))
	if records > 0 {
		is = max(is, 1)
	}
	f.owed += is - was
	switch {
	case was == 0 && is > 0:
		f.claimants++
	case was > 0 && is == 0:
		f.claimants--
	}
	return is
}

// credit is what a session that is noted with owed may send: records a second,
// nil for no limit.
func (f *flow) credit(owed int64) *uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := f.waitLocked()
	fits := float64(f.owed) <= f.capacity*fullQueue.Seconds()
	if wait <= shortQueue && fits || wait <= fullQueue && owed == 0 {
		return nil
	}
	gain := 0.1
	switch {
	case wait <= shortQueue:
		gain = 1.25
	case wait <= fullQueue:
		gain = 1
	case wait <= 3*fullQueue/2:
		gain = 0.5
	}
	share := gain * f.capacity / f.size / float64(max(f.claimants, 1))
	n := uint64(min(share, wire.MaxRecords*64))
	if rand.Float64() < share-float64(n) {
		n++ // a share below one record a second is one for some and none for the rest
	}
	return &n
}
