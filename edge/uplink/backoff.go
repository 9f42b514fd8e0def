package uplink

import (
	"math/rand/v2"
	"time"
)

// How long a lost connection is left alone: a time drawn from nothing up to a
// ceiling that doubles from 1 s.
//
//	cloud not reached                     up to 30 s
//	login refused, or lost within 60 s    up to 5 min, by how often that was
//	after 60 s connected                  from 1 s again
const (
	firstCeiling   = time.Second
	maxUnreachable = 30 * time.Second
	maxKicked      = 5 * time.Minute
	steady         = 60 * time.Second
)

// backoff is used by one goroutine.
type backoff struct {
	rnd   *rand.Rand
	tries int // all of them
	kicks int // those of them that were refused or lost soon
}

// outcome is what became of one attempt.
type outcome struct {
	up      time.Duration // how long it was connected, 0 when never
	refused bool
}

// after is how long to wait after an attempt.
func (b *backoff) after(o outcome) time.Duration {
	if o.up >= steady {
		b.tries, b.kicks = 0, 0
	}
	ceiling := min(maxUnreachable, firstCeiling<<b.tries)
	if o.refused || o.up > 0 && o.up < steady {
		ceiling = max(ceiling, min(maxKicked, firstCeiling<<b.kicks))
		b.kicks = min(b.kicks+1, 10)
	}
	b.tries = min(b.tries+1, 10)
	return time.Duration(b.rnd.Int64N(int64(ceiling) + 1))
}
