// Package limit counts how often callers come. A bucket holds as many tokens
// as the limit of a minute and fills evenly; each call takes one. Buckets live
// in memory of this node and are bounded: when there are too many, full ones
// are forgotten first, then any. All methods are safe for concurrent use.
//
// Nodes that share a database share limits too: each has an equal part of every
// limit, rounded up, so that all together let no more through than one alone. What
// callers are told is the whole.
package limit

import (
	"math"
	"sync"
	"time"
)

// DefaultKeys is how many buckets are kept at most.
const DefaultKeys = 1 << 16

// State is where a bucket stands after a call.
type State struct {
	OK         bool
	Limit      int       // per minute
	Remaining  int       // whole tokens left
	Reset      time.Time // when the bucket is full again
	RetryAfter int       // seconds until the next token, 0 when OK
}

// Nodes is how many nodes callers are spread over, at least 1. A nil one is 1.
type Nodes func() int

func (n Nodes) count() int {
	if n == nil {
		return 1
	}
	return max(n(), 1)
}

// part is this node's part of a limit.
func (n Nodes) part(limit int) int {
	k := n.count()
	return (limit + k - 1) / k
}

// Buckets is a set of buckets by key. The zero value is not usable; see New.
type Buckets struct {
	max   int
	nodes Nodes

	mu   sync.Mutex
	list map[string]bucket
}

type bucket struct {
	tokens float64 // at the time of at
	at     time.Time
	limit  int // this node's part
}

// New makes a set of at most maxKeys buckets, which are parts of those of so many
// nodes; 0 is DefaultKeys.
func New(maxKeys int, nodes Nodes) *Buckets {
	if maxKeys <= 0 {
		maxKeys = DefaultKeys
	}
	return &Buckets{max: maxKeys, nodes: nodes, list: map[string]bucket{}}
}

// Take takes a token of key's bucket, which holds this node's part of perMinute. A
// limit of 0 or less lets everything pass.
func (b *Buckets) Take(key string, perMinute int, now time.Time) State {
	if perMinute <= 0 {
		return State{OK: true}
	}
	part := b.nodes.part(perMinute)
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.list[key]
	if !known {
		if len(b.list) >= b.max {
			b.forget(now)
		}
		x = bucket{tokens: float64(part), at: now}
	}
	x.limit = part
	x = x.filled(now)
	ok := x.tokens >= 1
	retry := x.state(perMinute, now).RetryAfter
	if ok {
		x.tokens--
	}
	s := x.state(perMinute, now)
	s.OK, s.RetryAfter = ok, retry
	b.list[key] = x
	return s
}

// Peek is what Take would answer, but takes nothing.
func (b *Buckets) Peek(key string, perMinute int, now time.Time) State {
	if perMinute <= 0 {
		return State{OK: true}
	}
	part := b.nodes.part(perMinute)
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.list[key]
	if !known {
		return State{OK: true, Limit: perMinute, Remaining: perMinute, Reset: now}
	}
	x.limit = part
	return x.filled(now).state(perMinute, now)
}

// Give gives back a token that Take took: the call does not count after all.
func (b *Buckets) Give(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x, known := b.list[key]; known {
		x = x.filled(now)
		x.tokens = min(x.tokens+1, float64(x.limit))
		b.list[key] = x
	}
}

// state is where a bucket that is filled up to now stands, before a call, as a part of
// a limit.
func (x bucket) state(whole int, now time.Time) State {
	per := float64(x.limit)
	s := State{OK: x.tokens >= 1, Limit: whole, Remaining: int(x.tokens) * whole / x.limit, Reset: now.Add(time.Duration((per - x.tokens) * float64(time.Minute) / per))}
	if !s.OK {
		s.RetryAfter = int(math.Ceil((1 - x.tokens) * 60 / per))
	}
	return s
}

// filled is the bucket as it stands at now. A clock that went back adds
// nothing.
func (x bucket) filled(now time.Time) bucket {
	if d := now.Sub(x.at); d > 0 {
		x.tokens = min(float64(x.limit), x.tokens+d.Minutes()*float64(x.limit))
		x.at = now
	}
	return x
}

// forget drops buckets that are full again, or, when none is, an eighth of all.
func (b *Buckets) forget(now time.Time) {
	for k, x := range b.list {
		if x.filled(now).tokens >= float64(x.limit) {
			delete(b.list, k)
		}
	}
	for k := range b.list {
		if len(b.list) <= b.max-b.max/8-1 {
			return
		}
		delete(b.list, k)
	}
}
