package board

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/lockbus"
	"github.com/postern-io/postern/protocol/wire"
)

// States of a board, in edge.BoardHealth.
const (
	StateOnline  = "online"
	StateOffline = "offline"
	StateNoisy   = "noisy"
)

const (
	lineGap        = 2 * time.Millisecond // between frames, for the bus to turn round
	boardReads     = 10 * time.Millisecond
	quietTime      = 20 * time.Millisecond // of silence after an exchange that went wrong; a board's turnaround
	quietLimit     = 100 * time.Millisecond
	watchAfter     = 3 * time.Second // fast polls after a pulse
	missedSession  = 3
	missedIdle     = 10
	slowFast       = 100 * time.Millisecond // poll gap on a noisy line
	openTimeout    = 2 * time.Second
	backoffFirst   = 100 * time.Millisecond
	backoffLast    = 5 * time.Second
	noiseSlots     = 6
	noiseSlot      = 10 * time.Second
	noiseMinimum   = 20 // exchanges per minute below which noise is not judged
	noisePerTwenty = 1  // more bad ones than this in twenty is noisy
)

// line owns one port. Everything is touched by its own goroutine only, except
// what is said otherwise.
type line struct {
	cfg     *Config
	lc      LineConfig
	session *atomic.Bool // shared, read only here
	units   []*unit
	unlocks chan unlockRequest // taken by the line's goroutine
	layout  uint64             // number of the layout that it belongs to
	allowed func(*pulse, *line) bool
	wake    chan struct{} // cap 1
	done    chan struct{} // closed when run returns

	ctx      context.Context // of run; ends every wait
	port     Port
	in       *intake
	nextOpen time.Time
	backoff  time.Duration
	lastIO   time.Time
	noise    noise
	asked    edge.PulseTrace // the unlock that the driver is at
}

type unlockRequest struct {
	*pulse
	answer chan unlockAnswer // cap 1
}

type unlockAnswer struct {
	at   time.Time
	sent bool
}

// unit is one board of the line and the doors on it.
type unit struct {
	cfg      BoardConfig
	driver   Driver
	channels []*channel

	online     bool // answered since it was last lost
	lost       bool // BoardLost was sent
	missed     int  // polls in a row
	unlocked   bool // no poll has succeeded since the last unlock
	watchUntil time.Time
	nextPoll   time.Time

	mu     sync.Mutex // guards what follows, which others read
	health edge.BoardHealth
	sight  sight
}

// channel is one door's switch and sensor.
type channel struct {
	door       edge.DoorNumber
	number     uint
	inverted   bool
	hook, item debounce
	lastOpen   time.Time     // start of the last poll that read it open; zero when none
	lastShut   time.Time     // and of the last one that read it shut
	openFrom   time.Time     // answer to the first of the polls in a row that read it open
	openFor    time.Duration // longest such row since the door was last reported closed
	proven     bool          // reported that it was open for the minimum time
	broken     bool          // the line was lost, or the board silent, since the door last read shut
	watch      *watch        // of the newest pulse; nil: none, or over
	// owed is an item change that waits while the hook is between two states:
	// reported now, it would repeat a door state that may be over.
	owed   bool
	owedAt time.Time
}

func newLine(cfg *Config, lc LineConfig, doors map[edge.DoorNumber]edge.Place, session *atomic.Bool) *line {
	l := &line{
		cfg: cfg, lc: lc, session: session, unlocks: make(chan unlockRequest),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	for _, bc := range lc.Boards {
		u := &unit{cfg: bc, health: edge.BoardHealth{State: StateOffline, Edges: map[uint]uint64{}}}
		var used []uint
		for n, p := range doors {
			if p.Board == bc.Name {
				u.channels = append(u.channels, &channel{door: n, number: p.Channel, inverted: p.Inverted != bc.Inverted, broken: true})
				used = append(used, p.Channel)
			}
		}
		slices.Sort(used)
		slices.SortFunc(u.channels, func(a, b *channel) int { return int(a.number) - int(b.number) })
		u.driver = newDriver(l, bc, used, cfg.AnswerWait)
		l.units = append(l.units, u)
	}
	return l
}

func (l *line) has(board string) bool {
	return slices.ContainsFunc(l.units, func(u *unit) bool { return u.cfg.Name == board })
}

func (l *line) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *line) health(into map[string]edge.BoardHealth) {
	for _, u := range l.units {
		u.mu.Lock()
		into[u.cfg.Name] = u.healthNow()
		u.mu.Unlock()
	}
}

// pulse hands an unlock to the line's goroutine and waits for it. It reports
// when the request went out and whether it did. The sink gets the result.
func (l *line) pulse(ctx context.Context, p *pulse) (time.Time, bool) {
	r := unlockRequest{pulse: p, answer: make(chan unlockAnswer, 1)}
	select {
	case l.unlocks <- r:
		a := <-r.answer
		return a.at, a.sent
	case <-l.done:
		l.cfg.Sink(edge.PulseResult{Door: p.door, By: p.by, Outcome: edge.PulseNotSent, At: time.Now()})
	case <-ctx.Done():
	}
	return time.Time{}, false
}

// run is the line's goroutine.
func (l *line) run(ctx context.Context) {
	l.ctx = ctx
	defer close(l.done)
	defer l.closePort()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select { // an unlock goes before the next poll
		case r := <-l.unlocks:
			l.unlock(r)
			continue
		default:
		}
		l.reopen()
		u := l.due()
		if wait := time.Until(u.nextPoll); wait > 0 {
			timer.Reset(wait)
			l.idle(timer.C)
			continue
		}
		l.poll(u)
	}
}

// idle waits for time, an unlock, bytes without a request, or the port's
// end.
func (l *line) idle(timer <-chan time.Time) {
	var bytesIn <-chan []byte
	var broken <-chan struct{}
	if l.in != nil {
		bytesIn, broken = l.in.bytes, l.in.broken
	}
	select {
	case <-l.ctx.Done():
	case <-timer:
	case <-l.wake:
		for _, u := range l.units {
			u.nextPoll = minTime(u.nextPoll, time.Now().Add(l.interval(u, time.Now())))
		}
	case r := <-l.unlocks:
		l.unlock(r)
	case p := <-bytesIn:
		l.unasked(p)
	case <-broken:
		l.lose(l.in.err)
	}
}

func minTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (l *line) due() *unit {
	return slices.MinFunc(l.units, func(a, b *unit) int { return a.nextPoll.Compare(b.nextPoll) })
}

// unasked looks for door changes that a board sent by itself. They are not
// trusted; they only make the next poll come at once.
func (l *line) unasked(p []byte) {
	for _, u := range l.units {
		if u.driver.Unasked(p) {
			u.nextPoll = time.Now()
		}
	}
}

// reopen opens the port when it is closed and its time has come.
func (l *line) reopen() {
	now := time.Now()
	if l.port != nil || now.Before(l.nextOpen) {
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, openTimeout)
	defer cancel()
	port, err := l.cfg.Open(ctx, l.lc)
	var in *intake
	if err == nil {
		if in, err = startIntake(port); err != nil {
			_ = port.Close()
		}
	}
	l.backoff = min(max(2*l.backoff, backoffFirst), backoffLast)
	l.nextOpen = time.Now().Add(l.backoff)
	if err != nil {
		if l.backoff == backoffFirst {
			l.cfg.Log.Warn("open board line", "line", l.lc.Name, "error", err)
		}
		return
	}
	l.port, l.in = port, in
	for _, u := range l.units {
		u.nextPoll = time.Now()
	}
}

// lose gives the port up after an error; it is opened again by its name.
func (l *line) lose(err error) {
	if l.port == nil {
		return
	}
	l.cfg.Log.Warn("board line lost", "line", l.lc.Name, "error", err)
	l.closePort()
}

func (l *line) closePort() {
	if l.port == nil {
		return
	}
	_ = l.port.Close()
	<-l.in.broken
	l.port, l.in = nil, nil
	l.nextOpen = time.Now().Add(l.backoff)
	for _, u := range l.units {
		for _, c := range u.channels {
			c.openFrom, c.broken = time.Time{}, true // what broke the line may reset the boards, whose zeros read as open
		}
	}
}

// unlock pulses one door and tells what became of it.
func (l *line) unlock(r unlockRequest) {
	u, ch := l.find(r.door)
	out, at := NotSent, time.Now()
	switch {
	case !l.allowed(r.pulse, l):
		r.answer <- unlockAnswer{at: at}
		l.cfg.Sink(edge.PulseResult{Door: r.door, By: r.by, Outcome: edge.PulseRefused, At: at})
		return
	case u != nil && l.port != nil && !u.lost:
		l.asked = edge.PulseTrace{Board: u.cfg.Name, Channel: ch.number, Door: r.door, Authority: r.by}
		out, at = u.driver.Unlock(ch.number)
	}
	if out != NotSent {
		u.watchUntil, u.nextPoll, u.unlocked, u.missed = at.Add(watchAfter), time.Now(), true, 0
		ch.watch = &watch{by: r.by, until: at.Add(time.Duration(l.cfg.Times.OpenWaitMS) * time.Millisecond), last: minTime(time.Now(), at.Add(reaction(u.cfg.Family)))}
		l.count(u)
	}
	r.answer <- unlockAnswer{at: at, sent: out != NotSent}
	l.cfg.Sink(edge.PulseResult{Door: r.door, By: r.by, Outcome: pulseOutcome(out), At: at, Watched: out != NotSent})
}

// watch is what polls see of a door after a pulse of its lock, until the time to open is over.
type watch struct {
	by    edge.Authority
	until time.Time
	last  time.Time     // start of the last poll that read the door shut, or when the board had said that it did not open
	gap   time.Duration // longest time from the start of a poll that read it shut to the answer of the next one that did
}

// polled notes a poll that was begun at start and has read the door. One that reads it open may be
// a bounce, and so does not end the time in which the door may have been open.
func (w *watch) polled(open bool, start time.Time) {
	if w == nil {
		return
	}
	w.gap = max(w.gap, time.Since(w.last))
	if !open {
		w.last = start
	}
}

func pulseOutcome(o Outcome) edge.PulseOutcome {
	switch o {
	case Confirmed:
		return edge.PulseConfirmed
	case Unanswered:
		return edge.PulseUnanswered
	case Refused:
		return edge.PulseDenied
	}
	return edge.PulseNotSent
}

func (l *line) find(d edge.DoorNumber) (*unit, *channel) {
	for _, u := range l.units {
		for _, ch := range u.channels {
			if ch.door == d {
				return u, ch
			}
		}
	}
	return nil, nil
}

// poll reads one board and draws the conclusions.
func (l *line) poll(u *unit) {
	start, damaged := time.Now(), u.driver.Health().Bad
	s, out := State{}, NotSent
	if l.port != nil {
		s, out = u.driver.Read()
	}
	if l.ctx.Err() != nil {
		return
	}
	if out == Confirmed {
		l.back(u)
	}
	l.feedPoll(u, s, start)
	if out != Confirmed {
		l.miss(u)
	}
	u.look(s, out, u.driver.Health().Bad != damaged, start)
	now := time.Now()
	u.nextPoll = now.Add(l.interval(u, now))
	if u.driver.Unasked(nil) {
		u.nextPoll = now
	}
	l.count(u)
}

// minOpen is how long a door that has changed is watched closely.
func (l *line) minOpen() time.Duration {
	return time.Duration(l.cfg.Times.MinOpenMS+l.cfg.Times.DebounceMS) * time.Millisecond
}

// interval is the time from one poll of a board to its next.
func (l *line) interval(u *unit, now time.Time) time.Duration {
	idle := time.Duration(l.cfg.Times.PollIdleMS) * time.Millisecond
	fast := max(l.cfg.FastPoll, lineGap)
	if l.noise.noisy {
		idle, fast = 2*idle, max(slowFast, fast)
	}
	if l.port == nil {
		fast = max(slowFast, fast)
	}
	pending := u.missed < missedSession && slices.ContainsFunc(u.channels, func(c *channel) bool {
		return c.hook.pending() || u.cfg.Items && c.item.pending()
	})
	switch {
	case u.lost:
		return max(idle, fast) // a dead board must not slow the others down
	case l.session.Load(), now.Before(u.watchUntil), pending, u.missed > 0 && u.unlocked:
		return fast
	}
	return max(idle, fast)
}

// back notes that a board answers.
func (l *line) back(u *unit) {
	if u.lost {
		l.cfg.Log.Info("board is back", "board", u.cfg.Name, "line", l.lc.Name)
	}
	u.online, u.lost, u.missed, u.unlocked = true, false, 0, false
	l.backoff = 0
}

// miss notes a poll without an answer.
func (l *line) miss(u *unit) {
	u.missed++
	limit := missedIdle
	if l.session.Load() || u.unlocked || time.Now().Before(u.watchUntil) {
		limit = missedSession
	}
	if u.missed < limit {
		return
	}
	again := u.lost
	if !again {
		l.giveUp(u)
	}
	silent := !slices.ContainsFunc(l.units, func(o *unit) bool { return !o.lost })
	// After an unlock the port is opened afresh at once; a line that is silent
	// altogether, now and then.
	if u.unlocked || silent && (!again || u.missed%missedIdle == 0) {
		u.unlocked = false
		l.closePort()
	}
}

// giveUp makes a board's doors unknown and says so, once.
func (l *line) giveUp(u *unit) {
	u.lost, u.online = true, false
	lost := edge.BoardLost{Board: u.cfg.Name, At: time.Now(), LastOpen: map[edge.DoorNumber]time.Time{}}
	for _, c := range u.channels {
		if c.hook.known && c.hook.value && !c.lastOpen.IsZero() {
			lost.LastOpen[c.door] = c.lastOpen
		}
		c.hook.forget()
		c.item.forget()
		c.openFrom, c.openFor, c.proven, c.broken = time.Time{}, 0, false, true
		c.owed, c.watch = false, nil
		lost.Doors = append(lost.Doors, c.door)
	}
	l.cfg.Log.Warn("board does not answer", "board", u.cfg.Name, "line", l.lc.Name, "polls", u.missed)
	l.count(u)
	l.cfg.Sink(lost)
}

// feedPoll feeds a poll that was begun at start into the doors' states.
func (l *line) feedPoll(u *unit, s State, start time.Time) {
	hold := time.Duration(l.cfg.Times.DebounceMS) * time.Millisecond
	need := l.equalPolls(u)
	for _, c := range u.channels {
		bit := uint64(1) << (c.number - 1)
		if s.Known&bit == 0 {
			continue
		}
		open := (s.Closed&bit == 0) != c.inverted
		c.sawOpen(open, start)
		c.watch.polled(open, start)
		changed, moved := c.hook.step(open, start, need, hold)
		at := c.hook.since
		if s.ItemsKnown&bit != 0 {
			itemChanged, _ := c.item.step(s.Items&bit != 0, start, need, hold)
			if itemChanged {
				c.owed, c.owedAt = true, c.item.since
			}
		}
		if moved {
			u.mu.Lock()
			u.health.Edges[c.number]++
			u.mu.Unlock()
		}
		if !changed && c.owed && c.hook.steady {
			changed, at = true, c.owedAt
		}
		if !changed && !c.proven && c.hook.known && c.hook.value && c.hook.steady && c.openFor >= edge.ProvenOpen(time.Duration(l.cfg.Times.MinOpenMS)*time.Millisecond) {
			changed, c.proven = true, true
		}
		if changed && c.hook.known {
			c.owed = false
			// A door counts as opened only after a minimum time: polls as far apart as
			// those of an idle line would show a reset of 300 ms as an open that long.
			if until := time.Now().Add(l.minOpen()); until.After(u.watchUntil) {
				u.watchUntil = until
			}
			r := edge.DoorReading{Door: c.door, Open: c.hook.value, Item: c.items(), At: at, Suspect: c.hook.frozen, OpenFor: max(c.openFor, 1), Interrupted: !c.hook.value && c.broken}
			if r.Open {
				r.LastShut = c.lastShut
			}
			l.cfg.Sink(r)
			if !c.hook.value {
				c.openFor, c.proven, c.broken = 0, false, false
			}
		}
		if w := c.watch; w != nil && c.hook.known && !c.hook.pending() && !start.Before(w.until) {
			c.watch = nil
			if !c.hook.value {
				l.cfg.Sink(edge.StayedShut{Door: c.door, By: w.by, At: start, Gap: w.gap})
			}
		}
	}
}

// sawOpen notes how long polls have read a door open. A closed poll, which may be a
// bounce, ends the row.
func (c *channel) sawOpen(open bool, start time.Time) {
	switch {
	case !open:
		c.openFrom, c.lastShut, c.broken = time.Time{}, start, c.broken && c.hook.value
	case c.openFrom.IsZero():
		c.openFrom, c.lastOpen = time.Now(), start
	default:
		c.openFor, c.lastOpen = max(c.openFor, start.Sub(c.openFrom)), start
	}
}

// equalPolls is how many equal polls make a change. Two are enough on a line
// without faults. Where answers were spoiled in the last minute, some may have
// been spoiled so that the check byte still fits, so it takes three, and four on
// a noisy line; one more for boards that send no check byte at all.
func (l *line) equalPolls(u *unit) int {
	need := 2
	switch {
	case l.noise.noisy:
		need = 4
	case l.noise.any:
		need = 3
	}
	if u.cfg.Family == lockbus.Station && need > 2 {
		need++
	}
	return need
}

// count publishes a board's counters.
func (l *line) count(u *unit) {
	c := u.driver.Health()
	state := StateOnline
	switch {
	case !u.online:
		state = StateOffline
	case l.noise.noisy:
		state = StateNoisy
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.health.State = state
	u.health.Polls, u.health.Silent, u.health.Bad, u.health.Pulses = c.Polls, c.Silent, c.Bad, c.Pulses
}

// exchange is one exchange on the line, for the drivers.
func (l *line) exchange(q query) reply {
	if l.port == nil || !pause(l.ctx, time.Until(l.lastIO.Add(lineGap))) {
		return reply{out: NotSent, at: time.Now()}
	}
	l.clear()
	if q.unlock && l.cfg.Trace != nil {
		t := l.asked
		t.At = time.Now()
		if l.cfg.Mono != nil {
			t.Written = l.cfg.Mono(t.At)
		}
		l.cfg.Trace(t)
	}
	n, err := l.port.Write(q.request)
	r := reply{out: Unanswered, at: time.Now()}
	defer func() { l.lastIO = time.Now() }()
	if err != nil {
		l.lose(err)
		if n == 0 {
			r.out = NotSent
		}
		return r
	}
	if q.want == nil {
		pause(l.ctx, l.wire(len(q.request))+boardReads)
		return r
	}
	l.await(q, &r)
	if l.ctx.Err() != nil || l.port == nil {
		return r
	}
	l.noteAnswer(r.bad)
	exchange := l.wire(len(q.request) + q.scanner.Size())
	switch {
	case r.out != Confirmed:
		l.settle(quietTime)
	case time.Since(r.at) < exchange:
		l.settle(quietTime + exchange)
	}
	return r
}

// await waits for the answer.
func (l *line) await(q query, r *reply) {
	q.scanner.Reset()
	other := false // a whole frame that is not the answer, but no door change either
	want := func(f *lockbus.Frame) bool {
		if q.want(f) {
			return true
		}
		other = other || f.Kind != lockbus.Changed
		return false
	}
	var got []byte // until it is clear whether they are an echo
	decided, noise := false, false
	timer := time.NewTimer(l.wire(len(q.request)+q.size) + q.wait)
	defer timer.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.in.broken:
			l.lose(l.in.err)
			return
		case <-timer.C:
			r.bad = noise || other || len(got) > 0
			return
		case p := <-l.in.bytes:
			if !decided {
				got = append(got, p...)
				if len(got) < len(q.request) && bytes.HasPrefix(q.request, got) {
					continue
				}
				decided, p = true, got
				if r.echo = bytes.HasPrefix(got, q.request); r.echo {
					p = got[len(q.request):]
				}
				got = nil
			}
			noise = noise || len(p) > 0
			q.scanner.Feed(p)
			if f, ok := q.scanner.Next(want); ok {
				r.frame, r.out, r.bad = f, Confirmed, other
				return
			}
		}
	}
}

// clear throws away what lies in the input, but for door changes.
func (l *line) clear() {
	for {
		select {
		case p := <-l.in.bytes:
			l.unasked(p)
		default:
			return
		}
	}
}

// settle waits until nothing has come for as long as quiet: after a failed exchange, so that a late
// answer is not taken for the next one, and after an answer that came sooner
// than the wire can carry it, because the true one is then still to come.
func (l *line) settle(quiet time.Duration) {
	until := time.Now().Add(quietLimit + quiet)
	for time.Now().Before(until) {
		t := time.NewTimer(quiet)
		select {
		case p := <-l.in.bytes:
			t.Stop()
			l.unasked(p)
		case <-t.C:
			return
		case <-l.ctx.Done():
			t.Stop()
			return
		}
	}
}

// wire is how long n bytes take, ten bits each.
func (l *line) wire(n int) time.Duration {
	return time.Duration(n) * 10 * time.Second / time.Duration(max(l.lc.speed(), 300))
}

// noteAnswer counts an exchange and decides whether the line is noisy.
func (l *line) noteAnswer(bad bool) {
	was := l.noise.noisy
	l.noise.add(bad, time.Now())
	if l.noise.noisy != was {
		l.cfg.Log.Warn("board line noise", "line", l.lc.Name, "noisy", l.noise.noisy)
	}
}

func (c *channel) items() wire.Item {
	switch {
	case !c.item.known || c.item.frozen:
		return wire.ItemUnknown
	case c.item.value:
		return wire.ItemPresent
	}
	return wire.ItemAbsent
}

// noise counts exchanges of the last minute.
type noise struct {
	slot  int64 // number of the present 10 s
	total [noiseSlots]int
	bad   [noiseSlots]int
	any   bool // some were bad
	noisy bool // more than 5 % were bad
}

func (n *noise) add(bad bool, now time.Time) {
	slot := now.UnixNano() / int64(noiseSlot)
	for s := max(n.slot+1, slot-noiseSlots+1); s <= slot; s++ {
		n.total[s%noiseSlots], n.bad[s%noiseSlots] = 0, 0
	}
	n.slot = slot
	i := slot % noiseSlots
	n.total[i]++
	if bad {
		n.bad[i]++
	}
	total, badOnes := 0, 0
	for i := range noiseSlots {
		total += n.total[i]
		badOnes += n.bad[i]
	}
	n.any = badOnes > 0
	n.noisy = total >= noiseMinimum && badOnes*20 > total*noisePerTwenty
}
