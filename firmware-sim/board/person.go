package board

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Person uses every door that opens: waits, does something, waits, closes.
type Person struct {
	Wait time.Duration `yaml:"wait" json:"wait"` // before acting and again before closing; 0 is 2 s
	// Does is put, take, toggle (put if empty, else take) or nothing; empty is
	// toggle.
	Does string `yaml:"does" json:"does"`
	// Forgets is the chance, 0 to 1, that the door is left open.
	Forgets float64 `yaml:"forgets" json:"forgets"`
	// Slams is the chance, 0 to 1, that the door is slammed and rebounds.
	Slams float64 `yaml:"slams" json:"slams"`
}

// meet lets the person in front act on a door that has just opened.
func (c *core) meet(d *door, t time.Time) {
	p := c.cfg.Person
	if p == nil {
		return
	}
	wait := p.Wait
	if wait <= 0 {
		wait = 2 * time.Second
	}
	wait += time.Duration(d.rng.Int64N(int64(wait)/2 + 1))
	forgets, slams := d.rng.Float64() < p.Forgets, d.rng.Float64() < p.Slams
	plan := d.plan
	c.later(t.Add(wait), func(t time.Time) {
		switch {
		case p.Does == "nothing" || !d.open:
		case p.Does == "put", p.Does != "take" && len(d.items) == 0:
			c.put(d, someItem, t)
		default:
			c.takeAll(d, t)
		}
	})
	if forgets {
		return
	}
	c.later(t.Add(2*wait), func(t time.Time) {
		if d.plan == plan || d.open {
			c.shut(d, t, slams)
		}
	})
}

// shut closes a door. While its coil is on, the hook catches only afterwards.
func (c *core) shut(d *door, t time.Time, slam bool) {
	if !d.hookOut {
		return
	}
	plan := d.newPlan()
	at := t
	if d.coilUntil.After(at) {
		at = d.coilUntil
	}
	engage := func(t time.Time) {
		if d.plan != plan {
			return
		}
		if d.open {
			d.open = false
			c.note(t, d, Closed)
		}
		c.hook(d, false, t)
	}
	if !at.After(t) {
		engage(t)
	} else {
		c.later(at, engage)
	}
	if slam {
		c.later(at.Add(slamRebound), func(t time.Time) {
			if d.plan == plan {
				c.hook(d, true, t)
			}
		})
		c.later(at.Add(slamRebound+slamOpen), engage)
	}
}

// someItem is what has no name of its own.
const someItem = "item"

func startItems(cfg Door) []string {
	if cfg.Item {
		return []string{someItem}
	}
	return nil
}

// without returns items less the first one of that name.
func without(items []string, name string) []string {
	if i := slices.Index(items, name); i >= 0 {
		return slices.Delete(slices.Clone(items), i, i+1)
	}
	return items
}

// put places an item, unless one of its name is inside already.
func (c *core) put(d *door, name string, t time.Time) {
	if slices.Contains(d.items, name) {
		return
	}
	d.items = append(slices.Clone(d.items), name)
	c.add(Fact{At: t, Door: d.cfg.Number, Board: d.board.cfg.Name, Kind: ItemIn, Item: name})
}

// takeAll takes everything out.
func (c *core) takeAll(d *door, t time.Time) {
	for len(d.items) > 0 {
		c.removeItem(d, d.items[0], t)
	}
}

func (c *core) removeItem(d *door, name string, t time.Time) {
	if !slices.Contains(d.items, name) {
		return
	}
	d.items = without(d.items, name)
	c.add(Fact{At: t, Door: d.cfg.Number, Board: d.board.cfg.Name, Kind: ItemOut, Item: name})
}

// actOnDoor does something to a door now.
func (c *core) actOnDoor(number uint, what string, do func(d *door, now time.Time)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	d := c.doors[number]
	if d == nil {
		return fmt.Errorf("%s: no door %d", what, number)
	}
	do(d, now)
	return nil
}

// Push is a coil fired by hand, as with the service key's button: the lock is
// pulsed without any request on the line.
func (c hands) Push(number uint) error {
	return c.actOnDoor(number, "push", func(d *door, now time.Time) { c.fire(d, now, ByHand) })
}

// Pull pulls at a door: it opens if the hook is out, which a door with a weak
// spring needs.
func (c hands) Pull(number uint) error {
	return c.actOnDoor(number, "pull", func(d *door, now time.Time) {
		if d.hookOut {
			d.newPlan()
			c.swingOpen(d, now)
		}
	})
}

// CloseDoor swings a door shut and its hook catches.
func (c hands) CloseDoor(number uint) error {
	return c.actOnDoor(number, "close", func(d *door, now time.Time) { c.shut(d, now, false) })
}

// Slam shuts a door so hard that the hook lets go once more for 120 ms.
func (c hands) Slam(number uint) error {
	return c.actOnDoor(number, "slam", func(d *door, now time.Time) { c.shut(d, now, true) })
}

// Force opens a door without a pulse, jammed or not.
func (c hands) Force(number uint) error {
	return c.actOnDoor(number, "force", func(d *door, now time.Time) {
		d.newPlan()
		c.hook(d, true, now)
		c.swingOpen(d, now)
	})
}

// PutItem puts something into a compartment, TakeItem takes it out; the door's
// state does not matter, so that a sensor can be played against its hook.
func (c hands) PutItem(number uint) error {
	return c.actOnDoor(number, "put", func(d *door, now time.Time) { c.put(d, someItem, now) })
}

// TakeItem empties a compartment.
func (c hands) TakeItem(number uint) error {
	return c.actOnDoor(number, "take", func(d *door, now time.Time) { c.takeAll(d, now) })
}

// ErrShut is returned to a hand that reaches for what is behind a closed door.
var ErrShut = errors.New("the door is shut")

// Put places an item of that name through an open door. Error: ErrShut.
func (c hands) Put(number uint, name string) error {
	return c.reach(number, "put", func(d *door, now time.Time) { c.put(d, name, now) })
}

// TakeOut takes everything through an open door and returns it, in the order it
// was put in. Error: ErrShut.
func (c hands) TakeOut(number uint) (items []string, err error) {
	err = c.reach(number, "take", func(d *door, now time.Time) {
		items = slices.Clone(d.items)
		c.takeAll(d, now)
	})
	return items, err
}

// reach does something through a door, which has to be open.
func (c hands) reach(number uint, what string, do func(d *door, now time.Time)) error {
	shut := false
	err := c.actOnDoor(number, what, func(d *door, now time.Time) {
		if shut = !d.open; !shut {
			do(d, now)
		}
	})
	if err == nil && shut {
		return fmt.Errorf("%s at door %d: %w", what, number, ErrShut)
	}
	return err
}

// PowerOff takes the boards' power away: coils are off, no request is answered.
// Doors can still be closed by hand.
func (c hardware) PowerOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	c.off = true
	c.add(Fact{At: now, Kind: PowerOff})
	for _, b := range c.boards {
		b.dark(now, now.AddDate(100, 0, 0))
	}
}

// PowerOn gives the boards their power back, if they had none: they reset.
func (c hardware) PowerOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	if !c.off {
		return
	}
	c.off = false
	c.add(Fact{At: now, Kind: PowerOn})
	for _, b := range c.boards {
		b.deadUntil, b.zerosUntil = now, now.Add(resetTime)
	}
}

// dark turns a board's coils off and keeps it without power until then.
func (b *board) dark(now, until time.Time) {
	b.deadUntil, b.busy = until, false
	for _, d := range b.doors {
		if d.coilUntil.After(now) {
			d.coilUntil = now
		}
	}
}

// Jam makes a lock hold whatever happens; Free ends that.
func (c hardware) Jam(number uint) error {
	return c.actOnDoor(number, "jam", func(d *door, _ time.Time) { d.jammed = true })
}

// Free lets a jammed lock work again.
func (c hardware) Free(number uint) error {
	return c.actOnDoor(number, "free", func(d *door, _ time.Time) { d.jammed = false })
}

// RelatchNext makes the door's next n pulses let go of the hook without the
// door swinging.
func (c hardware) RelatchNext(number uint, n int) error {
	return c.actOnDoor(number, "relatch", func(d *door, _ time.Time) { d.relatch += n })
}

// ResetBoard resets one board now.
func (c hardware) ResetBoard(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boards[name]
	if b == nil {
		return fmt.Errorf("reset: no board %q", name)
	}
	now := time.Now()
	c.advance(now)
	c.reset(b, now)
	return nil
}
