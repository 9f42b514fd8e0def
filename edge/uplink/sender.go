package uplink

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Bounds of what one lane may have on its way.
const (
	maxFlights  = 8
	maxFlying   = 256 << 10 // bytes of payload
	batchFrame  = 8 << 10   // more than a batch needs beside its records
	maxReading  = wire.MaxPayload - batchFrame
	noProgress  = 10 * time.Second
	sameHole    = time.Second // further words about a hole that was just answered
	refusalWait = time.Second // before a single record that was refused goes again
	maxRefusals = 3
	askAgain    = time.Minute // after a credit of none: the cloud says by itself when that changes
)

// flight is a batch that was sent and is not acknowledged.
type flight struct {
	first, next uint64
	bytes       int
}

// sender is where one lane stands in this session. It holds no records: what
// must go again is read again. All of it is pure; one goroutine uses it.
type sender struct {
	next    uint64 // next to send
	flights []flight
	bytes   int       // of flights
	since   time.Time // last progress, or when the first flight left
	limit   int       // records in one batch; below the maximum after a refusal
	hold    time.Time // nothing goes before
	reset   time.Time // when sending last started again
	resetAt uint64    // and where

	refused  uint64 // single record that was refused
	refusals int
}

func newSender(acked uint64) sender { return sender{next: acked, limit: wire.MaxRecords} }

// restart begins again at the last acknowledgement.
func (s *sender) restart(acked uint64, now time.Time) {
	s.next, s.flights, s.bytes = acked, nil, 0
	s.reset, s.resetAt = now, acked
}

// room is how many bytes of records the next batch may hold, 0 for none now.
// After a refusal one batch flies at a time, so that each answer is about it.
func (s *sender) room(now time.Time) int {
	free := maxFlying - s.bytes - batchFrame
	halving := s.limit < wire.MaxRecords && len(s.flights) > 0
	if now.Before(s.hold) || halving || len(s.flights) >= maxFlights || free < wire.MaxRecord {
		return 0
	}
	return min(free, maxReading)
}

// sent notes a batch that left.
func (s *sender) sent(f flight, now time.Time) {
	if len(s.flights) == 0 {
		s.since = now
	}
	s.flights = append(s.flights, f)
	s.bytes += f.bytes
	s.next = f.next
}

// acked takes the next record the cloud waits for.
func (s *sender) acked(next uint64, now time.Time) {
	landed := false
	for len(s.flights) > 0 && s.flights[0].next <= next {
		s.bytes -= s.flights[0].bytes
		s.flights = s.flights[1:]
		landed = true
	}
	if landed {
		s.limit = min(2*s.limit, wire.MaxRecords)
		s.hold = time.Time{}
	}
	s.next = max(s.next, next)
	s.since = now
}

// hole is the cloud's word that something before what it got is missing. It
// comes once for each batch behind the hole, so what follows soon is about
// flights that are already being repeated.
func (s *sender) hole(acked uint64, now time.Time) bool {
	if s.resetAt == acked && now.Sub(s.reset) < sameHole {
		return false
	}
	s.restart(acked, now)
	return true
}

// stuck starts again when nothing was acknowledged for long.
func (s *sender) stuck(acked uint64, now time.Time) bool {
	if len(s.flights) == 0 || now.Sub(s.since) < noProgress {
		return false
	}
	s.restart(acked, now)
	return true
}

// deadline is when stuck has to look, zero for not at all.
func (s *sender) deadline() time.Time {
	if len(s.flights) > 0 {
		return s.since.Add(noProgress)
	}
	return s.hold
}

// bad takes the refusal of the batch that began with first and starts again with
// half as many records. It returns true when a single record was refused often
// enough to be set aside.
func (s *sender) bad(first, acked uint64, now time.Time) (seq uint64, aside bool) {
	i := 0
	for ; i < len(s.flights) && s.flights[i].first != first; i++ {
	}
	if i == len(s.flights) {
		return 0, false // about a batch of before
	}
	n := int(s.flights[i].next - first)
	s.restart(acked, now)
	s.limit = max(n/2, 1)
	if n > 1 {
		return 0, false
	}
	if s.refused != first {
		s.refused, s.refusals = first, 0
	}
	s.refusals++
	s.hold = now.Add(refusalWait)
	return first, s.refusals >= maxRefusals
}

// credit paces lane 1. Every acknowledgement says it anew, of whichever lane.
type credit struct {
	known   bool // an acknowledgement came in this session
	limited bool
	rate    uint64 // records per second
	saved   float64
	at      time.Time // when saved was right
	since   time.Time // last word of the cloud, or the probe after it
}

func newCredit(now time.Time) credit { return credit{at: now, since: now} }

// grant takes the credit of an acknowledgement; nil lifts the limit.
func (c *credit) grant(rate *uint64, now time.Time) {
	c.refill(now)
	c.known, c.limited, c.since = true, rate != nil, now
	if rate != nil {
		c.rate = *rate
		c.saved = min(c.saved, float64(c.rate))
	}
}

func (c *credit) refill(now time.Time) {
	c.saved = min(c.saved+now.Sub(c.at).Seconds()*float64(c.rate), float64(c.rate))
	c.at = now
}

// allow is how many of waiting records may go now, and when to ask again if
// none: half a second's worth together, since each batch costs the cloud
// something of its own. When no word of credit came for 10 s, or a minute after
// word that there is none, one record goes, so that its acknowledgement brings a
// new one.
func (c *credit) allow(waiting uint64, now time.Time) (n int, again time.Time) {
	switch {
	case c.known && !c.limited:
		return wire.MaxRecords, again
	case !c.known || c.rate == 0:
		wait := noProgress
		if c.known {
			wait = askAgain
		}
		if again = c.since.Add(wait); now.Before(again) {
			return 0, again
		}
		return 1, again
	}
	c.refill(now)
	want := float64(min(max(c.rate/2, 1), waiting, wire.MaxRecords))
	if c.saved >= want {
		return int(min(c.saved, wire.MaxRecords)), again
	}
	return 0, now.Add(time.Duration((want-c.saved)/float64(c.rate)*1e9) + time.Millisecond)
}

// spend takes n records that were sent.
func (c *credit) spend(n int, now time.Time) {
	c.saved = max(c.saved-float64(n), 0)
	if !c.known || c.limited && c.rate == 0 {
		c.since = now
	}
}
