package board

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

const (
	bounceTime   = 80 * time.Millisecond
	relatchAfter = 250 * time.Millisecond
	slamRebound  = 60 * time.Millisecond
	slamOpen     = 120 * time.Millisecond
	resetTime    = 300 * time.Millisecond
	brownTime    = 500 * time.Millisecond
)

// door is a lock, its switch and what is behind it. Everything is guarded by
// the cabinet's mutex.
type door struct {
	cfg   Door
	board *board
	rng   *rand.Rand

	jammed    bool
	hookOut   bool     // the hook holds nothing
	open      bool     // the door stands open
	items     []string // what is inside, in the order it was put in
	coilUntil time.Time
	edges     []time.Time // of the switch's last move, in order, an odd number
	plan      uint64      // counts up to cancel what was planned for the lock
	relatch   int         // next pulses that do not swing the door
}

func newDoor(cfg Door, b *board, rng *rand.Rand) *door {
	if cfg.PullDelay == 0 {
		cfg.PullDelay = 60 * time.Millisecond
	}
	if cfg.Swing == 0 {
		cfg.Swing = 150 * time.Millisecond
	}
	return &door{cfg: cfg, board: b, rng: rng, jammed: cfg.Jammed, hookOut: cfg.Open, open: cfg.Open, items: startItems(cfg)}
}

// closedBit is what the switch shows at t: true is hook engaged.
func (d *door) closedBit(t time.Time) bool {
	left := 0
	for _, e := range d.edges {
		if e.After(t) {
			left++
		}
	}
	return d.hookOut == (left%2 == 1)
}

// move changes the hook and lets the switch bounce.
func (d *door) move(out bool, t time.Time) {
	d.hookOut = out
	d.edges = append(d.edges[:0], t)
	extra := d.cfg.Bounce
	if extra == 0 {
		extra = 2 * d.rng.IntN(4)
	}
	extra = max(extra+extra%2, 0)
	for i := range extra {
		slot := bounceTime / time.Duration(extra)
		d.edges = append(d.edges, t.Add(slot*time.Duration(i)+1+time.Duration(d.rng.Int64N(int64(slot)-1))))
	}
}

// task is something that happens later.
type task struct {
	at  time.Time
	seq uint64
	do  func(t time.Time)
}

type agenda []task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(task)) }
func (a *agenda) Pop() any {
	old := *a
	t := old[len(old)-1]
	old[len(old)-1] = task{}
	*a = old[:len(old)-1]
	return t
}

// later plans do for at. c.mu is held.
func (c *core) later(at time.Time, do func(t time.Time)) {
	c.planned++
	heap.Push(&c.agenda, task{at, c.planned, do})
	c.arm()
}

// arm sets the timer to the next task, so that facts appear when they happen
// and not only when a request asks.
func (c *core) arm() {
	if len(c.agenda) == 0 || c.closed {
		return
	}
	in := max(time.Until(c.agenda[0].at), 0)
	if c.kick == nil {
		c.kick = time.AfterFunc(in, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.advance(time.Now())
		})
		return
	}
	c.kick.Reset(in)
}

// advance does everything planned up to now, in order. c.mu is held.
func (c *core) advance(now time.Time) {
	for len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
		t := heap.Pop(&c.agenda).(task)
		t.do(t.at)
	}
	c.arm()
}

// fire turns a coil on. A board without power fires none. c.mu is held.
func (c *core) fire(d *door, at time.Time, why Cause) {
	if at.Before(d.board.deadUntil) {
		return
	}
	d.coilUntil = at.Add(d.board.cfg.UnlockTime)
	c.add(Fact{At: at, Door: d.cfg.Number, Board: d.board.cfg.Name, Kind: CoilFired, Channel: d.cfg.Channel, Cause: why, Jammed: d.jammed})
	if c.coilsOn(at) > c.cfg.Supply {
		c.brownOut(at)
		return
	}
	if d.jammed || d.hookOut {
		return
	}
	plan := d.newPlan()
	c.later(at.Add(d.cfg.PullDelay), func(t time.Time) {
		if d.plan == plan && !t.After(d.coilUntil) {
			c.release(d, t, plan)
		}
	})
}

func (d *door) newPlan() uint64 { d.plan++; return d.plan }

func (c *core) coilsOn(t time.Time) (n uint) {
	for _, d := range c.order {
		if d.coilUntil.After(t) {
			n++
		}
	}
	return n
}

// release lets the hook go.
func (c *core) release(d *door, t time.Time, plan uint64) {
	c.hook(d, true, t)
	switch {
	case d.relatch > 0 || d.board.roll(c, Relatch):
		d.relatch = max(d.relatch-1, 0)
		c.later(t.Add(relatchAfter), func(t time.Time) { c.catch(d, t, plan) })
	case d.cfg.WeakSpring:
		c.later(d.coilUntil, func(t time.Time) { c.catch(d, t, plan) })
	default:
		c.later(t.Add(d.cfg.Swing), func(t time.Time) {
			if d.plan == plan {
				c.swingOpen(d, t)
			}
		})
	}
}

// catch re-latches a door that did not swing.
func (c *core) catch(d *door, t time.Time, plan uint64) {
	if d.plan == plan && d.hookOut && !d.open {
		c.hook(d, false, t)
	}
}

func (c *core) swingOpen(d *door, t time.Time) {
	if d.open {
		return
	}
	d.open = true
	c.note(t, d, Opened)
	c.meet(d, t)
}

// hook moves the hook, if it is not there already.
func (c *core) hook(d *door, out bool, t time.Time) {
	if d.hookOut == out {
		return
	}
	d.move(out, t)
	kind := HookIn
	if out {
		kind = HookOut
	}
	c.note(t, d, kind)
	for _, e := range d.edges {
		d.board.tellChange(c, d, e)
	}
}

// reset turns a board's coils off and lets its inputs read 0 for a while.
func (c *core) reset(b *board, at time.Time) {
	b.zerosUntil = at.Add(resetTime)
	b.busy = false
	for _, d := range b.doors {
		if d.coilUntil.After(at) {
			d.coilUntil = at
		}
	}
	c.add(Fact{At: at, Board: b.cfg.Name, Kind: BoardReset})
}

// brownOut is too many coils at once: every board loses power, then resets.
func (c *core) brownOut(at time.Time) {
	c.add(Fact{At: at, Kind: BrownOut})
	for _, b := range c.boards {
		b.deadUntil = at.Add(brownTime)
		c.reset(b, at)
		b.zerosUntil = b.deadUntil.Add(resetTime)
	}
}
