// Package board drives a cabinet's lock controller boards: it unlocks doors,
// reads their switches, and turns noisy polls into readings that can be trusted.
//
// Promises:
//   - One goroutine owns a line. There are never two requests outstanding on it;
//     the input is cleared before each request; echoes, stale answers and answers
//     of other boards are not taken for answers.
//   - A door's state changes only after at least two equal polls that lie 150 ms
//     apart with nothing different between them; three or four where the line has
//     spoiled answers in the last minute. Bounce gives no event, a bit
//     flipped on the way gives none, and a sensor that flaps is frozen.
//   - Every Pulse gets exactly one edge.PulseResult while Run runs. An unlock
//     without an answer is not a failure. Every unlock is followed by a status
//     request.
//   - One coil at a time per cabinet, two at 24 V; pulse and gap are kept. A lock
//     gets at most three pulses in 10 s, then rests for 30 s.
//   - A pulsed door that does not open is reported by StayedShut, with the longest
//     time in which no poll watched it.
//   - Readings of one door come in order, and a PulseResult comes before the
//     readings that the pulse caused. Between doors of different lines there is
//     no order.
//
// What it does not do: a hook that lets go without the door swinging, or a board
// that resets and shows zeros for 300 ms, may be longer than the debounce time
// and then is reported as open and closed again. That a door counts as opened
// only after a minimum time is the locker's rule, not this package's.
package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

// Supply is the coils' voltage: it decides how many may be on at once.
type Supply uint

// Supplies. At 12 V a coil draws 2.4 A and a board passes 3 A; at 24 V it draws
// half.
const (
	Supply12V Supply = 12
	Supply24V Supply = 24
)

// Config is what a Cabinet is built from.
type Config struct {
	Layout Layout
	Times  wire.Times // zeros take their defaults
	Supply Supply     // 0 is Supply12V
	// Sink takes every event. It is called from several goroutines, one at a
	// time per line; it may block briefly, during which that line stands
	// still. It must not call Run or SetLayout; Pulse, SetSession and Health
	// are fine. Required.
	Sink func(edge.Event)
	// Open opens a line's port; nil is OpenPort.
	Open Opener
	// AnswerWait is how long after a request's last byte an answer may begin;
	// 0 is 80 ms (boards need 5 to 20, USB adapters add up to 16).
	AnswerWait time.Duration
	// FastPoll is the least time between polls of a board in a session; 0 is as
	// fast as the line allows.
	FastPoll time.Duration
	// Trace is called just before each unlock request is written, repeated ones
	// included, on the line's goroutine: the line waits for it. It is for tests
	// that hold pulses against what people were allowed; nil is none.
	Trace func(edge.PulseTrace)
	// Mono is the count of a moment in which Authority.Until counts; nil pulses
	// however late.
	Mono func(time.Time) int64
	Log  *slog.Logger // nil is slog.Default
}

// Layout is the wiring: what hangs on which line and which door is where.
type Layout struct {
	Lines []LineConfig
	Doors map[edge.DoorNumber]edge.Place
}

// LineConfig is one serial line with its boards.
type LineConfig struct {
	Name string
	// Port is a device path that stays the same when the adapter comes back,
	// or tcp://host:port.
	Port   string
	Baud   int // 0 is the first board's usual speed
	Boards []BoardConfig
}

// BoardConfig is one controller on a line.
type BoardConfig struct {
	Name    string
	Family  lockbus.Family
	Address uint8
	Items   bool // item sensors are wired
	// Inverted is set when the hook switches read the other way round; a
	// door's own Place.Inverted turns it once more.
	Inverted bool
	// Codec overrides the family's table of field orders and state values for
	// another maker's board; nil is the usual one. Its Family is ignored.
	Codec *lockbus.Codec
}

// Check reports everything wrong with the layout, or nil.
func (l Layout) Check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	boards, lines := map[string]BoardConfig{}, map[string]bool{}
	for _, line := range l.Lines {
		if line.Name == "" || lines[line.Name] {
			bad("line %q: every line needs a name of its own", line.Name)
		}
		lines[line.Name] = true
		if line.Baud < 0 || len(line.Boards) == 0 || len(line.Boards) > 10 {
			bad("line %q: %d boards at %d baud; a line has 1 to 10 boards", line.Name, len(line.Boards), line.Baud)
		}
		for _, b := range line.Boards {
			if err := b.Family.CheckAddress(b.Address); err != nil {
				bad("board %q: %w", b.Name, err)
			}
			if _, twice := boards[b.Name]; twice || b.Name == "" {
				bad("board %q: every board needs a name of its own", b.Name)
			}
			boards[b.Name] = b
		}
	}
	taken := map[edge.Place]edge.DoorNumber{}
	for n, p := range l.Doors {
		b, ok := boards[p.Board]
		if !ok {
			bad("door %d: no board %q", n, p.Board)
			continue
		}
		if n == 0 || p.Channel == 0 || p.Channel > b.Family.Channels() {
			bad("door %d: channel %d; a %s has 1 to %d", n, p.Channel, b.Family, b.Family.Channels())
		}
		at := edge.Place{Board: p.Board, Channel: p.Channel}
		if other, twice := taken[at]; twice {
			bad("doors %d and %d are both on channel %d of board %q", other, n, p.Channel, p.Board)
		}
		taken[at] = n
	}
	return errors.Join(errs...)
}

// Cabinet runs all lines of a cabinet. Its methods are safe for concurrent use;
// Run may be called once.
type Cabinet struct {
	cfg     Config
	pulses  *pulseQueue
	session atomic.Bool

	relayout chan struct{} // cap 1: a new layout waits
	laid     atomic.Uint64 // number of the layout, counted by SetLayout

	mu     sync.Mutex // guards what follows
	layout Layout
	lines  []*line // of the running layout
	where  map[edge.DoorNumber]*line
}

// New returns a cabinet; it starts nothing and opens no port. A layout that
// Check refuses makes Run fail.
func New(cfg Config) *Cabinet {
	cfg.Times = cfg.Times.WithDefaults()
	if cfg.Open == nil {
		cfg.Open = OpenPort
	}
	if cfg.AnswerWait <= 0 {
		cfg.AnswerWait = 80 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Cabinet{cfg: cfg, layout: cfg.Layout, pulses: newPulseQueue(), relayout: make(chan struct{}, 1)}
}

// SetLayout replaces the wiring, also while Run runs. All lines are closed and
// opened again; no BoardLost is sent for that, every door simply gets a fresh
// DoorReading. Pulses that wait are refused: their doors' numbers may mean other
// locks now.
func (c *Cabinet) SetLayout(l Layout) error {
	if err := l.Check(); err != nil {
		return fmt.Errorf("set board layout: %w", err)
	}
	c.mu.Lock()
	c.layout = l
	c.laid.Add(1)
	c.mu.Unlock()
	select {
	case c.relayout <- struct{}{}:
	default:
	}
	return nil
}

// SetSession says whether a person is at the cabinet: polling is then as fast as
// the lines allow, otherwise once per Times.PollIdleMS.
func (c *Cabinet) SetSession(active bool) {
	if c.session.Swap(active) == active {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		l.wakeUp()
	}
}

// Pulse asks for one pulse of a door's lock and returns at once. The answer is
// a PulseResult: also for a door that the layout does not have, a lock that
// must rest, an act that is too old by then (Authority.Until), a layout that was
// replaced meanwhile, and when four pulses of the door are waiting already
// (PulseRefused). by is the act that allows it.
func (c *Cabinet) Pulse(door edge.DoorNumber, by edge.Authority) {
	c.pulses.push(&pulse{door: door, by: by, layout: c.laid.Load()})
}

// Withdraw takes back the pulses of an opening that have not been written to a
// line: each is answered by PulseRefused when its turn comes.
func (c *Cabinet) Withdraw(openingID string) { c.pulses.withdraw(openingID) }

// Health returns each board's counters since its line was last laid out.
func (c *Cabinet) Health() map[string]edge.BoardHealth {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]edge.BoardHealth{}
	for _, l := range c.lines {
		l.health(all)
	}
	return all
}

// Views returns what each board answers, by its newest poll, in the order of the layout.
func (c *Cabinet) Views() (all []edge.BoardView) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		for _, u := range l.units {
			all = append(all, u.view(l.lc.Name))
		}
	}
	return all
}

// Moves returns the raw bits of a board that changed since a time, of the newest
// 128, oldest first. A new layout forgets them.
func (c *Cabinet) Moves(board string, since time.Time) (all []edge.BitMove) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		for _, u := range l.units {
			if u.cfg.Name == board {
				all = u.movesSince(since)
			}
		}
	}
	return all
}

// Run drives the lines until ctx ends, and returns nil then. It fails at once
// when the layout or the configuration is wrong. Ports that cannot be opened
// are tried again for ever.
func (c *Cabinet) Run(ctx context.Context) error {
	if c.cfg.Sink == nil {
		return errors.New("run boards: no sink for events")
	}
	if err := c.layoutNow().Check(); err != nil {
		return fmt.Errorf("run boards: %w", err)
	}
	coils := 1
	if c.cfg.Supply == Supply24V {
		coils = 2
	}
	rests := newRests()
	lines := c.install()
	var wg sync.WaitGroup
	defer wg.Wait()
	for range coils {
		wg.Go(func() { c.fire(ctx, rests) })
	}
	for ctx.Err() == nil {
		c.runLines(ctx, lines)
		lines = c.install()
	}
	return nil
}

func (c *Cabinet) layoutNow() Layout {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.layout
}

// install makes the lines of the present layout the ones that pulses go to.
func (c *Cabinet) install() []*line {
	select {
	case <-c.relayout:
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines, c.where = nil, map[edge.DoorNumber]*line{}
	for _, lc := range c.layout.Lines {
		l := newLine(&c.cfg, lc, c.layout.Doors, &c.session)
		l.layout, l.allowed = c.laid.Load(), c.allowed
		c.lines = append(c.lines, l)
		for d, p := range c.layout.Doors {
			if l.has(p.Board) {
				c.where[d] = l
			}
		}
	}
	return c.lines
}

// runLines runs lines until there is a new layout.
func (c *Cabinet) runLines(ctx context.Context, lines []*line) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, l := range lines {
		wg.Go(func() { l.run(ctx) })
	}
	select {
	case <-ctx.Done():
	case <-c.relayout:
	}
}

func (c *Cabinet) lineOf(d edge.DoorNumber) *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.where[d]
}
