// Package board plays the hardware of a locker cabinet: lock controller boards
// of every family on their lines, the doors behind them, the people in front,
// and everything that goes wrong. It keeps the truth, so that a test can
// compare what an agent concluded with what really happened.
//
// Time is the time package's, so the same cabinet runs in real time over a
// pseudo-terminal or TCP and in simulated time inside a testing/synctest
// bubble. Chance comes from one seed: each board and each door has a generator
// of its own, so one line's traffic does not change another's luck.
//
// A Cabinet is safe for concurrent use. Facts are appended in the order of
// their times and never change. The package knows nothing about agents: doors
// have the numbers that the configuration gives them.
package board

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/protocol/lockbus"
)

// Config is a cabinet. Check says what is wrong with it.
type Config struct {
	Boards []Board `yaml:"boards" json:"boards"`
	Doors  []Door  `yaml:"doors" json:"doors"`
	// Past is what happened before, in order of time: doors and boxes are as it
	// left them, and Truth begins with it. The boards had no power meanwhile.
	Past []Fact `yaml:"-" json:"-"`
	// Seed of all chance. The same seed and the same requests at the same times
	// give the same faults.
	Seed uint64 `yaml:"seed" json:"seed"`
	// Supply is how many coils the power supply can drive at once, 0 is one.
	// One more, and all boards brown out.
	Supply uint `yaml:"supply" json:"supply"`
	// Faults are chances per request; nil is a perfect cabinet.
	Faults Faults `yaml:"faults" json:"faults"`
	// Person stands in front and uses every door that opens; nil: there is none.
	Person *Person `yaml:"person" json:"person"`
	// OnFact is called for every fact, in order, while the cabinet is locked: it
	// must not call the cabinet. nil: there is none.
	OnFact func(Fact) `yaml:"-" json:"-"`
}

// Board is one controller.
type Board struct {
	Name     string         `yaml:"name" json:"name"`
	Line     string         `yaml:"line" json:"line"`
	Family   lockbus.Family `yaml:"family" json:"family"`
	Address  uint8          `yaml:"address" json:"address"`
	Channels uint           `yaml:"channels" json:"channels"` // 0 is all the family has
	Inverted bool           `yaml:"inverted" json:"inverted"` // hook switches of the other type
	NoItems  bool           `yaml:"no_items" json:"no_items"` // no item sensors wired; their bits stay clear
	// Turnaround from the end of a request to the start of its answer; 0 is
	// 10 ms.
	Turnaround time.Duration `yaml:"turnaround" json:"turnaround"`
	// UnlockTime is how long a coil stays on; 0 is 500 ms.
	UnlockTime time.Duration `yaml:"unlock_time" json:"unlock_time"`
	// Mute boards do not answer an unlock even if their family can.
	Mute bool `yaml:"mute" json:"mute"`
	// Unasked makes a preamble board report door changes by itself.
	Unasked bool `yaml:"unasked" json:"unasked"`
	Baud    int  `yaml:"baud" json:"baud"` // 0 is the family's
}

// Door is one door, its lock and its spring.
type Door struct {
	Number   uint   `yaml:"number" json:"number"`
	Board    string `yaml:"board" json:"board"`
	Channel  uint   `yaml:"channel" json:"channel"`
	Inverted bool   `yaml:"inverted" json:"inverted"` // on top of the board's
	// PullDelay is from coil on to hook out, 0 is 60 ms; Swing from there until
	// the door stands open, 0 is 150 ms.
	PullDelay time.Duration `yaml:"pull_delay" json:"pull_delay"`
	Swing     time.Duration `yaml:"swing" json:"swing"`
	// Bounce is how many extra edges the switch makes within 80 ms after it
	// moved: 0 draws 0, 2, 4 or 6; odd values round up; -1 is none.
	Bounce int `yaml:"bounce" json:"bounce"`
	// WeakSpring doors do not swing by themselves: unless someone pulls while
	// the coil is on, the hook catches again.
	WeakSpring bool `yaml:"weak_spring" json:"weak_spring"`
	Jammed     bool `yaml:"jammed" json:"jammed"` // the hook never lets go
	Open       bool `yaml:"open" json:"open"`     // stands open at the start
	Item       bool `yaml:"item" json:"item"`     // something is inside at the start
}

// Check reports everything wrong with the configuration, or nil.
func (c Config) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	boards := map[string]Board{}
	places := map[string]bool{}
	for _, b := range c.Boards {
		if err := b.Family.CheckAddress(b.Address); err != nil {
			bad("board %q: %w", b.Name, err)
		}
		at := fmt.Sprintf("%s/%s/%d", b.Line, b.Family, b.Address)
		switch {
		case b.Name == "" || b.Line == "":
			bad("board %q on line %q: both need a name", b.Name, b.Line)
		case boards[b.Name].Name != "":
			bad("board %q is listed twice", b.Name)
		case places[at]:
			bad("board %q: another %s on line %q has address %d", b.Name, b.Family, b.Line, b.Address)
		case b.Channels > b.Family.Channels():
			bad("board %q: %d channels, a %s has at most %d", b.Name, b.Channels, b.Family, b.Family.Channels())
		case b.Turnaround < 0 || b.UnlockTime < 0 || b.Baud < 0:
			bad("board %q: negative turnaround, unlock time or speed", b.Name)
		}
		boards[b.Name], places[at] = b, true
	}
	seen := map[uint]bool{}
	wired := map[string]bool{}
	for _, d := range c.Doors {
		b, ok := boards[d.Board]
		at := fmt.Sprintf("%s/%d", d.Board, d.Channel)
		switch {
		case !ok:
			bad("door %d: no board %q", d.Number, d.Board)
		case d.Number == 0 || seen[d.Number]:
			bad("door %d: numbers are from 1, each once", d.Number)
		case d.Channel == 0 || d.Channel > b.withDefaults().Channels:
			bad("door %d: board %q has channels 1 to %d, not %d", d.Number, d.Board, b.withDefaults().Channels, d.Channel)
		case wired[at]:
			bad("door %d: channel %d of board %q is taken", d.Number, d.Channel, d.Board)
		}
		seen[d.Number], wired[at] = true, true
	}
	if len(c.Boards) == 0 {
		bad("no boards")
	}
	if err := c.Faults.Check(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b Board) withDefaults() Board {
	if b.Channels == 0 {
		b.Channels = b.Family.Channels()
	}
	if b.Turnaround == 0 {
		b.Turnaround = 10 * time.Millisecond
	}
	if b.UnlockTime == 0 {
		b.UnlockTime = 500 * time.Millisecond
	}
	if b.Baud == 0 {
		b.Baud = b.Family.Baud()
	}
	return b
}

// Cabinet is the simulated hardware.
type Cabinet struct {
	*core
	wiring
	hands
	hardware
	witness
}

// Sections of the cabinet.
type (
	wiring   struct{ *core } // lines with boards on them: requests and answers
	hands    struct{ *core } // what people do to doors
	hardware struct{ *core } // power, locks that jam, and faults
	witness  struct{ *core } // what happened
)

// core is what physically is and moves: boards, doors and what they hold, what
// has happened and what will.
type core struct {
	cfg Config

	mu      sync.Mutex // guards everything below
	boards  map[string]*board
	doors   map[uint]*door
	lines   map[string]*line
	order   []*door // by number
	facts   []Fact
	agenda  agenda
	planned uint64
	closed  bool
	off     bool // no power
	kick    *time.Timer
}

// board is a controller and its state.
type board struct {
	cfg    Board
	codec  lockbus.Codec
	line   *line
	doors  map[uint]*door // by channel
	rng    *rand.Rand
	inject map[Fault]int

	zerosUntil time.Time // inputs read 0
	deadUntil  time.Time // no power
	busy       bool      // waits for one more request
	said       said      // by the unlock being answered
}

// New builds a cabinet, all doors as configured. It starts nothing: lines are
// served by ServeLine or Dial. It returns Config.Check's errors.
func New(cfg Config) (*Cabinet, error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("simulated cabinet: %w", err)
	}
	c := &core{cfg: cfg, boards: map[string]*board{}, doors: map[uint]*door{}, lines: map[string]*line{}}
	c.cfg.Supply = max(cfg.Supply, 1)
	for _, bc := range cfg.Boards {
		l := c.lines[bc.Line]
		if l == nil {
			l = newLine(bc.Line)
			c.lines[bc.Line] = l
		}
		b := &board{
			cfg: bc.withDefaults(), codec: lockbus.For(bc.Family), line: l, doors: map[uint]*door{},
			rng: luck(cfg.Seed, "board "+bc.Name), inject: map[Fault]int{},
		}
		c.boards[bc.Name] = b
		l.add(b)
	}
	for _, dc := range cfg.Doors {
		b := c.boards[dc.Board]
		d := newDoor(dc, b, luck(cfg.Seed, fmt.Sprint("door ", dc.Number)))
		c.doors[dc.Number], b.doors[dc.Channel] = d, d
		c.order = append(c.order, d)
	}
	c.resume(cfg.Past)
	slices.SortFunc(c.order, func(a, b *door) int { return int(a.cfg.Number) - int(b.cfg.Number) })
	return &Cabinet{c, wiring{c}, hands{c}, hardware{c}, witness{c}}, nil
}

// resume puts doors and boxes where the past left them.
func (c *core) resume(past []Fact) {
	c.facts = slices.Clone(past)
	for _, f := range past {
		d := c.doors[f.Door]
		if d == nil {
			continue
		}
		switch f.Kind {
		case Opened, Closed:
			d.open = f.Kind == Opened
		case HookOut, HookIn:
			d.hookOut = f.Kind == HookOut
		case ItemIn:
			d.items = append(d.items, f.Item)
		case ItemOut:
			d.items = without(d.items, f.Item)
		}
	}
	if len(past) == 0 {
		return
	}
	now := time.Now()
	for _, d := range c.order {
		if d.hookOut && !d.open { // the power went while the hook was held: it falls back
			d.hookOut = false
			c.note(now, d, HookIn)
		}
	}
	for _, b := range c.boards {
		c.reset(b, now)
	}
}

// luck is a generator of its own for one part of the cabinet.
func luck(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Close stops what is planned and cuts all lines. Truth can still be read.
func (c *Cabinet) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kick != nil {
		c.kick.Stop()
	}
	c.agenda, c.closed = nil, true
	for _, l := range c.lines {
		l.cut()
	}
}
