package board

import (
	"time"

	"github.com/postern-io/postern/protocol/lockbus"
)

// Outcome says what became of a request to a board.
type Outcome uint8

// Outcomes. Unanswered is not a failure: the board may have done it.
const (
	Confirmed  Outcome = iota + 1 // sent, and the board said yes
	Unanswered                    // sent, no answer that could be read
	NotSent                       // nothing went out
	Refused                       // sent, and the board said no
)

// State is what a board says about its channels. Bit 0 is channel 1; polarity
// is not applied.
type State struct {
	Known      uint64 // channels that the board answered for
	Closed     uint64 // hook bit set
	Items      uint64 // something blocks the beam
	ItemsKnown uint64 // channels with an item reading
}

// Counters are a driver's exchanges since it was made.
type Counters struct {
	Polls, Silent, Bad, Pulses uint64
}

// Driver speaks one family's frames with one board. It holds no rules about
// doors and no state but counters. Only the line's goroutine may call it.
type Driver interface {
	// Unlock pulses one channel, from 1. at is when the request was written or
	// given up.
	Unlock(channel uint) (out Outcome, at time.Time)
	// Read asks for all channels in use. The State is good for its Known
	// channels whatever the outcome; Confirmed means all of them.
	Read() (State, Outcome)
	// Unasked takes bytes that arrived between requests and reports whether
	// they hold a door change from this board. Families whose boards never
	// speak first report false.
	Unasked(p []byte) bool
	// Health returns the counters.
	Health() Counters
}

// bus is the line as a driver needs it.
type bus interface {
	// exchange sends a request and waits for an answer of at most size bytes that
	// want accepts, beginning within wait after the request's end. With a nil
	// want it only sends.
	exchange(q query) reply
}

type query struct {
	request []byte
	unlock  bool // it moves a lock
	size    int
	wait    time.Duration
	scanner *lockbus.Scanner
	want    func(*lockbus.Frame) bool
}

type reply struct {
	frame lockbus.Frame
	out   Outcome
	bad   bool // bytes came, but no answer
	echo  bool // the request came back
	at    time.Time
}

// unlockReaction is how long a board that reports whether a door opened may
// take: the boards' papers say below a second.
const unlockReaction = time.Second

// reaction is how long a board of a family watches the door itself before it answers an unlock.
func reaction(fam lockbus.Family) time.Duration {
	if fam == lockbus.Door80 || fam == lockbus.Preamble {
		return unlockReaction
	}
	return 0
}

// newDriver returns the driver of a board's family. channels are those in use.
func newDriver(b bus, cfg BoardConfig, channels []uint, wait time.Duration) Driver {
	codec := lockbus.For(cfg.Family)
	if cfg.Codec != nil {
		codec = *cfg.Codec
		codec.Family = cfg.Family
	}
	d := driver{bus: b, cfg: cfg, codec: codec, scanner: lockbus.NewScanner(codec), wait: wait}
	if cfg.Family == lockbus.Station {
		return &slotDriver{driver: d, channels: channels}
	}
	return &maskDriver{driver: d, listen: lockbus.NewScanner(codec)}
}

// driver is what all families share.
type driver struct {
	bus     bus
	cfg     BoardConfig
	codec   lockbus.Codec
	scanner *lockbus.Scanner
	wait    time.Duration
	count   Counters
	changed bool // an unasked change was seen during an exchange
	// quiet is set by exchanges that had to show an echo and did not: an answer
	// that reads like the unlock's echo is then an answer.
	quiet bool
	buf   [lockbus.MaxFrame]byte
}

func (d *driver) Health() Counters { return d.count }

// accept is what a request waits for: this board's frame of this kind, and of
// this channel when lock is not 0.
func (d *driver) accept(kind lockbus.Kind, lock uint8) func(*lockbus.Frame) bool {
	return func(f *lockbus.Frame) bool {
		if f.Kind == lockbus.Changed && f.Board == d.cfg.Address {
			d.changed = true
			return false
		}
		return f.Kind == kind && f.Board == d.cfg.Address && (lock == 0 || f.Lock == lock)
	}
}

func (d *driver) exchange(f lockbus.Frame, size int, wait time.Duration, want func(*lockbus.Frame) bool) reply {
	raw, err := d.codec.AppendRequest(d.buf[:0], f)
	if err != nil {
		return reply{out: NotSent, at: time.Now()}
	}
	r := d.bus.exchange(query{request: raw, unlock: f.Kind == lockbus.Unlock, size: size, wait: wait, scanner: d.scanner, want: want})
	switch {
	case r.out == NotSent:
		return r
	case r.bad:
		d.count.Bad++
	case r.out == Unanswered && want != nil:
		d.count.Silent++
	}
	d.count.Polls++
	return r
}

func (d *driver) Unlock(channel uint) (Outcome, time.Time) {
	f := lockbus.Frame{Kind: lockbus.Unlock, Board: d.cfg.Address, Lock: uint8(channel)}
	fam := d.cfg.Family
	if !fam.AnswersUnlock() {
		r := d.exchange(f, 0, 0, nil)
		d.counted(r.out)
		return r.out, r.at
	}
	r := d.exchange(f, 18, d.wait+reaction(fam), d.accept(lockbus.Unlocked, f.Lock))
	d.counted(r.out)
	switch {
	case r.out == Confirmed && r.frame.Result != lockbus.Done:
		return Refused, r.at
	case r.out == Unanswered && r.echo && d.quiet && fam.EchoLooksRefused():
		return Refused, r.at
	}
	return r.out, r.at
}

func (d *driver) counted(out Outcome) {
	if out != NotSent {
		d.count.Pulses++
	}
}

// maskDriver reads all channels with one request.
type maskDriver struct {
	driver
	listen *lockbus.Scanner // for what comes between requests
}

func (d *maskDriver) Read() (State, Outcome) {
	size := lockbus.MaxFrame
	if d.cfg.Family != lockbus.Preamble {
		size = 18
	}
	r := d.exchange(lockbus.Frame{Kind: lockbus.AskStatus, Board: d.cfg.Address}, size, d.wait, d.accept(lockbus.Status, 0))
	if r.out != Confirmed {
		return State{}, r.out
	}
	d.quiet = !r.echo
	n := d.cfg.Family.Channels()
	if d.cfg.Family == lockbus.Preamble {
		n = uint(r.frame.Count)
	}
	s := State{Known: 1<<n - 1, Closed: r.frame.Hooks}
	if d.cfg.Items && d.cfg.Family.HasItems() {
		s.Items, s.ItemsKnown = r.frame.Items, s.Known
	}
	return s, Confirmed
}

func (d *maskDriver) Unasked(p []byte) bool {
	if !d.cfg.Family.Unasked() {
		return false
	}
	if len(p) > 0 {
		d.listen.Feed(p)
	}
	seen := d.changed
	d.changed = false
	mine := func(f *lockbus.Frame) bool { return f.Kind == lockbus.Changed && f.Board == d.cfg.Address }
	for _, ok := d.listen.Next(mine); ok; _, ok = d.listen.Next(mine) {
		seen = true
	}
	return seen
}

// slotDriver asks for one channel after the other.
type slotDriver struct {
	driver
	channels []uint
}

// Read asks for every channel in use, a failed one once more. Two dead channels
// in a row end the round: the board is silent and the line is needed.
func (d *slotDriver) Read() (s State, out Outcome) {
	out, dead := Confirmed, 0
	for _, ch := range d.channels {
		r := d.slot(ch)
		if r.out == Unanswered {
			r = d.slot(ch)
		}
		if r.out != Confirmed {
			if out, dead = r.out, dead+1; dead == 2 || r.out == NotSent {
				return s, out
			}
			continue
		}
		dead = 0
		s.Known |= 1 << (ch - 1)
		if r.frame.Closed {
			s.Closed |= 1 << (ch - 1)
		}
	}
	return s, out
}

func (d *slotDriver) slot(ch uint) reply {
	f := lockbus.Frame{Kind: lockbus.AskLock, Board: d.cfg.Address, Lock: uint8(ch)}
	return d.exchange(f, 7, d.wait, d.accept(lockbus.LockState, f.Lock))
}

func (d *slotDriver) Unasked([]byte) bool { return false }
