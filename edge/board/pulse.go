package board

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge"
)

const (
	maxWaiting  = 4 // pulses of one door
	maxPulses   = 3 // per lock in pulseWindow
	pulseWindow = 10 * time.Second
	pulseRest   = 30 * time.Second
)

// pulse is one asked pulse.
type pulse struct {
	door      edge.DoorNumber
	by        edge.Authority
	layout    uint64      // number of the layout that it was asked under
	withdrawn atomic.Bool // it must not be written any more
}

// pulseQueue holds asked pulses, first in, first out. It is bounded by
// maxWaiting per door; one more is kept only as a count to be refused.
type pulseQueue struct {
	wake chan struct{} // cap 1

	mu      sync.Mutex
	waiting []*pulse
	firing  []*pulse // taken out of waiting, not through yet; at most one per coil
	perDoor map[edge.DoorNumber]int
	over    map[edge.DoorNumber]int
}

func newPulseQueue() *pulseQueue {
	return &pulseQueue{
		wake: make(chan struct{}, 1), perDoor: map[edge.DoorNumber]int{}, over: map[edge.DoorNumber]int{},
	}
}

func (q *pulseQueue) push(p *pulse) {
	q.mu.Lock()
	if q.perDoor[p.door] >= maxWaiting {
		q.over[p.door]++
	} else {
		q.perDoor[p.door]++
		q.waiting = append(q.waiting, p)
	}
	q.mu.Unlock()
	q.signal()
}

func (q *pulseQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// pop returns the next pulse; refuse says that it was one too many.
func (q *pulseQueue) pop(ctx context.Context) (p *pulse, refuse, ok bool) {
	for {
		if p, refuse, ok = q.try(); ok {
			q.signal() // more may wait for another goroutine
			return p, refuse, true
		}
		select {
		case <-ctx.Done():
			return nil, false, false
		case <-q.wake:
		}
	}
}

func (q *pulseQueue) try() (p *pulse, refuse, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for d, n := range q.over {
		if q.over[d]--; n <= 1 {
			delete(q.over, d)
		}
		return &pulse{door: d}, true, true
	}
	if len(q.waiting) == 0 {
		return nil, false, false
	}
	p = q.waiting[0]
	q.waiting = q.waiting[1:]
	q.firing = append(q.firing, p)
	if q.perDoor[p.door]--; q.perDoor[p.door] == 0 {
		delete(q.perDoor, p.door)
	}
	return p, false, true
}

// fired says that a pulse that pop returned is through.
func (q *pulseQueue) fired(p *pulse) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.firing = slices.DeleteFunc(q.firing, func(x *pulse) bool { return x == p })
}

// withdraw marks the pulses of an opening, so that none of them is written.
func (q *pulseQueue) withdraw(opening string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range slices.Concat(q.waiting, q.firing) {
		if p.by.OpeningID == opening {
			p.withdrawn.Store(true)
		}
	}
}

// rests remembers when locks were pulsed, so that coils can cool: at most
// maxPulses in pulseWindow, then pulseRest without any.
type rests struct {
	mu    sync.Mutex
	doors map[edge.DoorNumber]*rest
}

type rest struct {
	last  [maxPulses]time.Time // the newest last
	until time.Time
}

func newRests() *rests { return &rests{doors: map[edge.DoorNumber]*rest{}} }

// mayPulse reports whether the lock may be pulsed now.
func (r *rests) mayPulse(d edge.DoorNumber, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.doors[d]
	return e == nil || !now.Before(e.until)
}

// pulsed notes a pulse.
func (r *rests) pulsed(d edge.DoorNumber, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.doors[d]
	if e == nil {
		e = &rest{}
		r.doors[d] = e
	}
	copy(e.last[:], e.last[1:])
	e.last[maxPulses-1] = at
	if !e.last[0].IsZero() && at.Sub(e.last[0]) <= pulseWindow {
		e.until = at.Add(pulseRest)
		e.last = [maxPulses]time.Time{}
	}
}

// fire is one coil's worth of the supply: it takes pulses one by one and holds
// the next back until pulse and gap are over.
func (c *Cabinet) fire(ctx context.Context, rests *rests) {
	hold := time.Duration(c.cfg.Times.PulseMS+c.cfg.Times.PulseGapMS) * time.Millisecond
	for {
		p, refuse, ok := c.pulses.pop(ctx)
		if !ok {
			return
		}
		l := c.lineOf(p.door)
		if refuse || l == nil || !c.allowed(p, l) || !rests.mayPulse(p.door, time.Now()) {
			c.pulses.fired(p)
			c.cfg.Sink(edge.PulseResult{Door: p.door, By: p.by, Outcome: edge.PulseRefused, At: time.Now()})
			continue
		}
		at, sent := l.pulse(ctx, p)
		c.pulses.fired(p)
		if !sent {
			continue
		}
		rests.pulsed(p.door, at)
		if !pause(ctx, time.Until(at.Add(hold))) {
			return
		}
	}
}

// allowed reports whether a pulse may be written to a line now: its opening has
// not taken it back, its act is not too old, and neither the line nor the door's
// number belongs to another layout.
func (c *Cabinet) allowed(p *pulse, l *line) bool {
	late := p.by.Until != 0 && c.cfg.Mono != nil && c.cfg.Mono(time.Now()) > p.by.Until
	now := c.laid.Load()
	return !p.withdrawn.Load() && !late && p.layout == now && l.layout == now
}

func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
