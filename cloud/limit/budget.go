package limit

import (
	"math"
	"sync"
	"time"
)

// Budget is a set of buckets from which calls take what they cost, which is known
// only afterwards: a bucket may go below nothing and is closed until it has a
// whole unit again. It is kept as Buckets are. Safe for concurrent use.
type Budget struct {
	perMinute, burst float64 // of all nodes together
	nodes            Nodes
	max              int

	mu   sync.Mutex
	list map[string]spent
}

type spent struct {
	left float64 // at the time of at
	at   time.Time
}

// NewBudget makes buckets that hold burst units and get perMinute of them, on so many
// nodes together.
func NewBudget(perMinute, burst float64, nodes Nodes) *Budget {
	return &Budget{perMinute: perMinute, burst: burst, nodes: nodes, max: DefaultKeys, list: map[string]spent{}}
}

// part is what this node's buckets get a minute, and hold: at least the one unit that a
// call needs.
func (b *Budget) part() (perMinute, burst float64) {
	n := float64(b.nodes.count())
	return b.perMinute / n, max(b.burst/n, 1)
}

// Wait is how long it takes until key's bucket has a unit; 0: it has one.
func (b *Budget) Wait(key string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(key, now)
}

func (b *Budget) wait(key string, now time.Time) time.Duration {
	left := b.of(key, now).left
	if left >= 1 {
		return 0
	}
	perMinute, _ := b.part()
	return time.Duration(math.Ceil((1 - left) / perMinute * float64(time.Minute)))
}

// Take takes one unit of key's bucket; a wait above 0 means that it has none and
// nothing was taken. However many callers take at once, no unit is given twice.
func (b *Budget) Take(key string, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait = b.wait(key, now); wait == 0 {
		b.spend(key, 1, now)
	}
	return wait
}

// Spend takes units of key's bucket. Negative units go back into it.
func (b *Budget) Spend(key string, units float64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spend(key, units, now)
}

func (b *Budget) spend(key string, units float64, now time.Time) {
	x := b.of(key, now)
	if _, known := b.list[key]; !known && len(b.list) >= b.max {
		b.forget(now)
	}
	_, burst := b.part()
	x.left = min(burst, x.left-units)
	b.list[key] = x
}

// of is key's bucket as it stands at now. A clock that went back adds nothing.
func (b *Budget) of(key string, now time.Time) spent {
	perMinute, burst := b.part()
	x, known := b.list[key]
	if !known {
		return spent{burst, now}
	}
	if d := now.Sub(x.at); d > 0 {
		x.left, x.at = x.left+d.Minutes()*perMinute, now
	}
	x.left = min(burst, x.left)
	return x
}

// forget drops buckets that are full again, or, when there are few of these, an
// eighth of all.
func (b *Budget) forget(now time.Time) {
	_, burst := b.part()
	for k := range b.list {
		if b.of(k, now).left >= burst {
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

// Blocks shuts out keys that miss too often, longer each time. Misses are forgotten
// evenly, all that lead to a block within the time of the longest one; blocks that
// were are forgotten as long after the last miss. It is kept as Buckets are. Safe
// for concurrent use.
type Blocks struct {
	misses      float64 // on all nodes together
	first, last time.Duration
	nodes       Nodes
	max         int

	mu   sync.Mutex
	list map[string]missed
}

type missed struct {
	misses float64 // since the last block, less what is forgotten
	blocks int
	until  time.Time
	at     time.Time // of the last miss
}

// NewBlocks blocks a key after so many misses on so many nodes together: for first, then
// twice as long each time, up to last.
func NewBlocks(misses int, first, last time.Duration, nodes Nodes) *Blocks {
	return &Blocks{misses: float64(misses), first: first, last: last, nodes: nodes, max: DefaultKeys, list: map[string]missed{}}
}

// Wait is how long key is blocked, 0 when it is not.
func (b *Blocks) Wait(key string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.list[key].until.Sub(now), 0)
}

// Miss counts a miss of key.
func (b *Blocks) Miss(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.list[key]
	if !known && len(b.list) >= b.max {
		b.forget(now)
	}
	if now.Sub(x.at) > b.last && now.After(x.until) {
		x = missed{}
	}
	misses := max(b.misses/float64(b.nodes.count()), 1)
	forgotten := misses * now.Sub(x.at).Seconds() / b.last.Seconds()
	x.misses = max(x.misses-max(forgotten, 0), 0) + 1
	x.at = now
	if x.misses >= misses {
		wait := b.last
		if x.blocks < 30 {
			wait = min(b.first<<x.blocks, b.last)
		}
		x.misses, x.blocks, x.until = 0, x.blocks+1, now.Add(wait)
	}
	b.list[key] = x
}

// forget drops keys that would begin anew, or, when there are few of these, an
// eighth of all.
func (b *Blocks) forget(now time.Time) {
	for k, x := range b.list {
		if now.Sub(x.at) > b.last && now.After(x.until) {
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
