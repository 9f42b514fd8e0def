package board

import (
	"fmt"
	"time"
)

// FactKind says what happened.
type FactKind string

// Kinds of facts. A door is open from Opened to Closed. HookOut to HookIn is
// what its switch can see, which includes a hook that let go although the door
// did not move.
const (
	Opened     FactKind = "opened"
	Closed     FactKind = "closed"
	HookOut    FactKind = "hook_out"
	HookIn     FactKind = "hook_in"
	ItemIn     FactKind = "item_in"
	ItemOut    FactKind = "item_out"
	CoilFired  FactKind = "coil_fired"
	BoardReset FactKind = "board_reset"
	BrownOut   FactKind = "brown_out"
	PowerOff   FactKind = "power_off"
	PowerOn    FactKind = "power_on"
)

// Cause says why a coil fired.
type Cause string

// Causes of a coil. ByDouble is the board's own second pulse for one request.
const (
	ByRequest Cause = "request"
	ByDouble  Cause = "double"
	ByHand    Cause = "hand"
)

// Fact is something that really happened.
type Fact struct {
	At    time.Time `json:"at"`
	Door  uint      `json:"door,omitempty"` // 0 for facts about boards
	Board string    `json:"board,omitempty"`
	Kind  FactKind  `json:"kind"`
	// Channel and Cause belong to a coil.
	Channel uint  `json:"channel,omitempty"`
	Cause   Cause `json:"cause,omitempty"`
	// Item is what was put in or taken out, Jammed whether the coil's lock held.
	Item   string `json:"item,omitempty"`
	Jammed bool   `json:"jammed,omitempty"`
}

func (f Fact) String() string {
	at := f.At.Format("15:04:05.000")
	switch {
	case f.Item != "":
		return fmt.Sprintf("%s  door %d  %s %s", at, f.Door, f.Kind, f.Item)
	case f.Cause != "":
		return fmt.Sprintf("%s  door %d  %s by %s", at, f.Door, f.Kind, f.Cause)
	case f.Door != 0:
		return fmt.Sprintf("%s  door %d  %s", at, f.Door, f.Kind)
	case f.Board != "":
		return fmt.Sprintf("%s  board %s  %s", at, f.Board, f.Kind)
	}
	return fmt.Sprintf("%s  %s", at, f.Kind)
}

// note appends a fact about a door. c.mu is held.
func (c *core) note(at time.Time, d *door, kind FactKind) {
	c.add(Fact{At: at, Door: d.cfg.Number, Board: d.board.cfg.Name, Kind: kind})
}

// add appends a fact. c.mu is held.
func (c *core) add(f Fact) {
	c.facts = append(c.facts, f)
	c.publish()
}

func (c *core) publish() {
	if c.cfg.OnFact != nil {
		c.cfg.OnFact(c.facts[len(c.facts)-1])
	}
}

// Truth returns a copy of all facts up to now, in order.
func (c witness) Truth() []Fact {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	return append([]Fact(nil), c.facts...)
}

// OpenAt reports whether the door stood open at t. An unknown door never does.
func (c witness) OpenAt(number uint, t time.Time) bool {
	return c.between(number, t, t, Opened, Closed, func(d *door) bool { return d.cfg.Open })
}

// WasOpenBetween reports whether the door stood open at any moment from a to b,
// both included.
func (c witness) WasOpenBetween(number uint, a, b time.Time) bool {
	return c.between(number, a, b, Opened, Closed, func(d *door) bool { return d.cfg.Open })
}

// HookOutBetween reports whether the hook was out at any moment from a to b,
// both included.
func (c witness) HookOutBetween(number uint, a, b time.Time) bool {
	return c.between(number, a, b, HookOut, HookIn, func(d *door) bool { return d.cfg.Open })
}

// HookInBetween reports whether the hook was engaged at any moment from a to b,
// both included.
func (c witness) HookInBetween(number uint, a, b time.Time) bool {
	return c.between(number, a, b, HookIn, HookOut, func(d *door) bool { return !d.cfg.Open })
}

// ItemAt reports whether something was inside at t.
func (c witness) ItemAt(number uint, t time.Time) bool { return len(c.ItemsAt(number, t)) > 0 }

// ItemsAt returns what was inside at t, in the order it was put in.
func (c witness) ItemsAt(number uint, t time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	d := c.doors[number]
	if d == nil {
		return nil
	}
	items := startItems(d.cfg)
	for _, f := range c.facts {
		if f.At.After(t) {
			break
		}
		switch {
		case f.Door != number:
		case f.Kind == ItemIn:
			items = append(items, f.Item)
		case f.Kind == ItemOut:
			items = without(items, f.Item)
		}
	}
	return items
}

func (c witness) between(number uint, a, b time.Time, on, off FactKind, start func(*door) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	d := c.doors[number]
	if d == nil {
		return false
	}
	state := start(d)
	for _, f := range c.facts {
		if f.Door != number || f.Kind != on && f.Kind != off {
			continue
		}
		if f.At.After(b) {
			break
		}
		if state && !f.At.Before(a) {
			return true // was so until inside the window
		}
		state = f.Kind == on
	}
	return state
}
