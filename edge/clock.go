package edge

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// driftPPM bounds how far the local oscillator may be off.
const driftPPM = 100

// Clock is a cabinet's time: a monotonic count since the agent's start, and the
// best known wall clock for it. Only a signed time answer synchronises it; a
// jump of the system clock changes nothing. Safe for concurrent use.
type Clock struct {
	start time.Time // with monotonic reading
	used  atomic.Uint64

	mu       sync.Mutex
	boot     uint64
	offset   int64 // wall = mono + offset
	floor    int64 // lower bound of the true time at the start, 0 when none is known
	quality  wire.Clock
	syncMono int64
	syncErr  time.Duration
}

// NewClock starts the clock of a boot. system is the machine's idea of the wall
// clock; it counts as unset until Begin or Sync.
func NewClock(system time.Time) *Clock {
	return &Clock{start: time.Now(), offset: system.UnixNano()}
}

// Begin names the boot. known is the floor that the store remembers (unix ns, 0
// when none): it was true before this start. The machine's clock counts as carried
// over when it lies after it.
func (c *Clock) Begin(boot uint64, known int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot, c.floor = boot, known
	if known > 0 && c.offset >= known {
		c.quality = wire.ClockCarried
	}
}

// Mono is t as nanoseconds since the start of the agent.
func (c *Clock) Mono(t time.Time) int64 { return int64(t.Sub(c.start)) }

// Sync takes a server's time that was true at local time at, give or take
// bound.
func (c *Clock) Sync(server int64, at time.Time, bound time.Duration) {
	mono := c.Mono(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.quality, c.syncMono, c.syncErr = server-mono, wire.ClockSynced, mono, bound
}

// Sample is the clock at a moment.
func (c *Clock) Sample(at time.Time) wire.Sample {
	mono := c.Mono(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := wire.Sample{Boot: c.boot, Mono: mono, Wall: mono + c.offset, Clock: c.quality}
	if c.quality == wire.ClockSynced {
		s.ErrMS = uint32((c.syncErr+time.Duration((mono-c.syncMono)*driftPPM/1_000_000))/time.Millisecond) + 1
	}
	return s
}

// Floor is a lower bound of the true time at a moment, unix ns; 0 when none is
// known. Without a synchronisation in this boot it is the last one that was kept,
// and what has passed since the start; the machine's own clock is no proof.
func (c *Clock) Floor(at time.Time) int64 {
	s := c.Sample(at)
	c.mu.Lock()
	defer c.mu.Unlock()
	floor := int64(0)
	if c.floor != 0 {
		floor = c.floor + s.Mono - s.Mono/1_000_000*driftPPM
	}
	if s.Clock != wire.ClockSynced {
		return floor
	}
	err := int64(s.ErrMS) * int64(time.Millisecond)
	if floor > s.Wall+err {
		return s.Wall - err // the cloud's time was ahead when the floor was kept
	}
	return max(floor, s.Wall-err)
}

// Unique makes a monotonic time different from every other one that it made
// in this boot, moving it by less than a microsecond.
func (c *Clock) Unique(mono int64) int64 {
	return mono - mono%1000 + int64(c.used.Add(1)%1000)
}

// Stamp is a record of this moment without kind and body.
func (c *Clock) Stamp(at time.Time) wire.Record {
	s := c.Sample(at)
	mono := c.Unique(s.Mono)
	return wire.Record{At: s.Wall, Boot: s.Boot, Mono: mono, Clock: s.Clock, ErrMS: s.ErrMS}
}
