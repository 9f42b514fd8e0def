// Package limit counts how often callers come. A bucket holds as many tokens
// as the limit of a minute and fills evenly; each call takes one. Buckets live
// in memory of this node and are bounded: when there are too many, full ones
// are forgotten first, then any. All methods are safe for concurrent use.
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

// Buckets is a set of buckets by key. The zero value is not usable; see New.
type Buckets struct {
	max int

	mu   sync.Mutex
	list map[string]bucket
}

type bucket struct {
	tokens float64 // at the time of at
	at     time.Time
	limit  int
}

// New makes a set of at most maxKeys buckets; 0 is DefaultKeys.
func New(maxKeys int) *Buckets {
	if maxKeys <= 0 {
		maxKeys = DefaultKeys
	}
	return &Buckets{max: maxKeys, list: map[string]bucket{}}
}

// Take takes a token of key's bucket, which holds perMinute. A limit of 0 or
// less lets everything pass.
func (b *Buckets) Take(key string, perMinute int, now time.Time) State {
	if perMinute <= 0 {
		return State{OK: true}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.list[key]
	if !known {
		if len(b.list) >= b.max {
			b.forget(now)
		}
		x = bucket{tokens: float64(perMinute), at: now}
	}
	x.limit = perMinute
	x = x.filled(now)
	ok := x.tokens >= 1
	retry := x.state(now).RetryAfter
	if ok {
		x.tokens--
	}
	s := x.state(now)
	s.OK, s.RetryAfter = ok, retry
	b.list[key] = x
	return s
}

// Peek is what Take would answer, but takes nothing.
func (b *Buckets) Peek(key string, perMinute int, now time.Time) State {
	if perMinute <= 0 {
		return State{OK: true}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.list[key]
	if !known {
		return State{OK: true, Limit: perMinute, Remaining: perMinute, Reset: now}
	}
	x.limit = perMinute
	return x.filled(now).state(now)
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

// state is where a bucket that is filled up to now stands, before a call.
func (x bucket) state(now time.Time) State {
	per := float64(x.limit)
	s := State{OK: x.tokens >= 1, Limit: x.limit, Remaining: int(x.tokens), Reset: now.Add(time.Duration((per - x.tokens) * float64(time.Minute) / per))}
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
