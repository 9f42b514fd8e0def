package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Errors of Loop.
var (
	// ErrFull is returned by a Store that takes no new sessions: it is nearly
	// full, and the rest is kept for sessions that are open already.
	ErrFull = errors.New("the store takes no new sessions")
	// ErrStore says that the store cannot be written now; nothing happened.
	ErrStore = errors.New("the store cannot be written")
	errDone  = errors.New("the loop has ended")
)

// Encoded is a record as it is kept.
type Encoded struct {
	Kind  wire.Kind
	Bytes []byte
}

// Store keeps next state and records in one transaction. Urgent changes belong
// to a session that is open and may use the last part of the store.
type Store interface {
	Keep(ctx context.Context, put map[string][]byte, records []Encoded, urgent bool) error
}

// Hardware pulses locks; its answers come back as edge events.
type Hardware interface {
	Pulse(door edge.DoorNumber, by edge.Authority)
	// Withdraw refuses the pulses of an opening that have not been written yet.
	Withdraw(openingID string)
	SetSession(active bool)
}

// LoopConfig is what a Loop needs. All fields but Log and Act are required.
type LoopConfig struct {
	State    State
	Fresh    bool // the store is new
	Behind   bool // the store is an older copy
	Clock    *edge.Clock
	Store    Store
	Hardware Hardware
	// Act gets actions other than pulses, once they are durable. It must
	// not block.
	Act func(Action)
	Log *slog.Logger
}

// Loop owns the state of a cabinet. One goroutine steps it: commit first, act
// afterwards. All methods are safe for concurrent use.
type Loop struct {
	cfg    LoopConfig
	log    *slog.Logger
	events chan edge.Event
	asks   chan ask
	ended  chan struct{}
	state  atomic.Pointer[State]
	active bool
	last   Now // of the newest step; owned by Run
	broken atomic.Bool
	full   atomic.Bool
	since  atomic.Int64 // mono since when a commit runs, 0 when none does
}

type ask struct {
	in    Input
	reply chan reply
}

type reply struct {
	answer Answer
	err    error
}

// eventQueue bounds what boards may report while a commit is slow; a full
// queue holds up the boards' polling.
const eventQueue = 1024

// NewLoop builds a loop; Run starts it.
func NewLoop(cfg LoopConfig) *Loop {
	l := &Loop{cfg: cfg, log: cfg.Log, events: make(chan edge.Event, eventQueue), asks: make(chan ask), ended: make(chan struct{})}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.cfg.Act == nil {
		l.cfg.Act = func(Action) {}
	}
	s := cfg.State
	l.state.Store(&s)
	return l
}

// Event hands over what the hardware reports. It blocks while the queue is
// full.
func (l *Loop) Event(e edge.Event) {
	select {
	case l.events <- e:
	case <-l.ended:
	}
}

// Do steps in and waits until the step is durable. The error is ErrFull,
// ErrStore, or ctx's; nothing happened then, unless ctx ended.
func (l *Loop) Do(ctx context.Context, in Input) (Answer, error) {
	a := ask{in: in, reply: make(chan reply, 1)}
	select {
	case l.asks <- a:
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-l.ended:
		return Answer{}, errDone
	}
	select {
	case r := <-a.reply:
		return r.answer, r.err
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	case <-l.ended:
		return Answer{}, errDone
	}
}

// State is the present state; it must not be changed.
func (l *Loop) State() State { return *l.state.Load() }

// Broken reports whether the last commit failed: new sessions are refused.
func (l *Loop) Broken() bool { return l.broken.Load() }

// Full reports whether the store had no room for the last commit, by its own
// limit or the disk's: new sessions are refused.
func (l *Loop) Full() bool { return l.full.Load() }

// slowCommit is how long the store may take before people are asked to wait.
const slowCommit = time.Second

// Working reports whether the store has been busy with a step for a while: the
// cabinet is at work and answers later.
func (l *Loop) Working() bool {
	since := l.since.Load()
	return since != 0 && l.cfg.Clock.Mono(time.Now())-since >= int64(slowCommit)
}

// now is the time of a step made at t.
func (l *Loop) now(t time.Time) Now {
	s := l.cfg.Clock.Sample(t)
	n := Now{Boot: s.Boot, Mono: s.Mono, Offset: s.Wall - s.Mono, Clock: s.Clock, ErrMS: s.ErrMS, Floor: l.cfg.Clock.Floor(t)}
	_, _ = rand.Read(n.Random[:]) // never fails
	return n
}

// Run steps until ctx ends. It returns ctx's error. The reports of boards that came
// comes before what is asked for and what is due: while the store was slow a
// door may long have opened that would otherwise be taken for late.
func (l *Loop) Run(ctx context.Context) error {
	defer close(l.ended)
	l.must(ctx, []timed{{Started{Fresh: l.cfg.Fresh, Behind: l.cfg.Behind}, time.Now()}})
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(l.wait())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-l.events:
			l.must(ctx, l.caughtUp(l.reported(l.input(e))))
		case a := <-l.asks:
			l.answer(ctx, a)
		case <-timer.C:
			l.must(ctx, append(l.reported(), timed{Tick{}, time.Now()}))
		}
	}
}

// timed is an input and when it happened.
type timed struct {
	in Input
	at time.Time
}

// maxFold is how many reports are stepped in one commit.
const maxFold = 64

// reported are the reports that wait, behind those given: a slow store takes
// them in one commit.
func (l *Loop) reported(list ...timed) []timed {
	for len(list) < maxFold {
		select {
		case e := <-l.events:
			list = append(list, l.input(e))
		default:
			return list
		}
	}
	return list
}

// wait is how long nothing will happen by itself, at most a minute.
func (l *Loop) wait() time.Duration {
	next := l.state.Load().Next(l.last)
	if next == 0 {
		return time.Minute
	}
	return max(time.Millisecond, min(time.Duration(next-l.now(time.Now()).Mono), time.Minute))
}

// late is how old a report may be for the present to be looked at with it.
const late = 500 * time.Millisecond

// caughtUp lets time pass behind reports that had to wait, in the same commit.
func (l *Loop) caughtUp(list []timed) []timed {
	if now := time.Now(); len(list) < maxFold && now.Sub(list[len(list)-1].at) > late {
		list = append(list, timed{Tick{}, now})
	}
	return list
}

func (l *Loop) input(e edge.Event) timed {
	c := l.cfg.Clock
	switch e := e.(type) {
	case edge.DoorReading:
		r := Reading{Door: e.Door, Open: e.Open, Item: e.Item, Mono: c.Mono(e.At), Suspect: e.Suspect, OpenFor: int64(e.OpenFor), Interrupted: e.Interrupted}
		if !e.LastShut.IsZero() {
			r.LastShut = c.Mono(e.LastShut)
		}
		return timed{r, e.At}
	case edge.BoardLost:
		last := make(map[edge.DoorNumber]int64, len(e.LastOpen))
		for n, at := range e.LastOpen {
			last[n] = c.Mono(at)
		}
		return timed{Lost{Doors: e.Doors, Mono: c.Mono(e.At), LastOpen: last}, e.At}
	case edge.PulseResult:
		return timed{Pulsing{Door: e.Door, By: e.By, Outcome: e.Outcome, Mono: c.Mono(e.At), Watched: e.Watched}, e.At}
	case edge.StayedShut:
		return timed{Shut{Door: e.Door, By: e.By, Mono: c.Mono(e.At), Gap: int64(e.Gap)}, e.At}
	}
	return timed{Tick{}, time.Now()}
}

// must steps what cannot be refused: the world has moved. It tries until the
// store takes it, and answers everyone else meanwhile.
func (l *Loop) must(ctx context.Context, list []timed) {
	for {
		_, err := l.step(ctx, list, false)
		if err == nil || ctx.Err() != nil {
			return
		}
		l.log.Error("store does not take the cabinet's state; trying again", "err", err)
		retry := time.NewTimer(time.Second)
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case a := <-l.asks:
				a.reply <- reply{err: ErrStore}
			case <-retry.C:
				waiting = false
			}
		}
		retry.Stop()
	}
}

// answer steps a request, behind the reports that wait. The effect that a
// full store refuses is recorded as refused, which takes little room.
func (l *Loop) answer(ctx context.Context, a ask) {
	before := l.reported()
	answer, err := l.step(ctx, append(before, timed{a.in, time.Now()}), true)
	if errors.Is(err, ErrFull) {
		if o, ok := a.in.(Ordered); ok {
			_, err = l.step(ctx, append(before, timed{Refuse{Command: o.Command, Reason: wire.ReasonStore}, time.Now()}), true)
		}
	}
	a.reply <- reply{answer, err}
	if err != nil && len(before) > 0 {
		l.must(ctx, before)
	}
}

// step steps inputs one after the other, each at its own time, and commits once.
// The answer is the last one's. When that one was asked for it decides alone
// whether the last part of the store may be used: what was reported may be
// urgent, and a new session is not.
func (l *Loop) step(ctx context.Context, list []timed, asked bool) (Answer, error) {
	state, last := *l.state.Load(), l.last
	var put map[string][]byte
	var records []Encoded
	var actions []Action
	var out Out
	urgent := false
	for _, x := range list {
		now := l.now(x.at)
		if now.Boot == last.Boot && now.Mono < last.Mono {
			now.Mono = last.Mono // time does not run backwards
		}
		state, out = Step(state, x.in, now)
		last = now
		urgent = out.Urgent || urgent && !asked
		if put == nil {
			put = out.Put
		} else {
			maps.Copy(put, out.Put)
		}
		records = append(records, l.encode(out.Records, now)...)
		actions = append(actions, out.Actions...)
	}
	if len(put) > 0 || len(records) > 0 {
		l.since.Store(max(1, l.cfg.Clock.Mono(time.Now())))
		err := l.cfg.Store.Keep(ctx, put, records, urgent)
		l.since.Store(0)
		l.full.Store(errors.Is(err, ErrFull))
		l.broken.Store(err != nil && !errors.Is(err, ErrFull))
		if errors.Is(err, ErrFull) {
			return Answer{}, ErrFull
		}
		if err != nil {
			return Answer{}, fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	l.last = last
	l.state.Store(&state)
	if active := len(state.Openings) > 0; active != l.active {
		l.active = active
		l.cfg.Hardware.SetSession(active)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case Pulse:
			l.cfg.Hardware.Pulse(a.Door, a.By)
		case Withdraw:
			l.cfg.Hardware.Withdraw(a.OpeningID)
		default:
			l.cfg.Act(a)
		}
	}
	return out.Answer, nil
}

func (l *Loop) encode(records []Record, now Now) []Encoded {
	out := make([]Encoded, len(records))
	for i, r := range records {
		w := wire.Record{Kind: r.Kind, At: now.Wall(r.Mono), Boot: now.Boot, Mono: l.cfg.Clock.Unique(r.Mono), Clock: now.Clock, ErrMS: now.ErrMS,
			Body: wire.MustEncode(r.Body)}
		out[i] = Encoded{Kind: r.Kind, Bytes: wire.MustEncode(w)}
	}
	return out
}
