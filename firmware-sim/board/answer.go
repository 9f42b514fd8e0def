package board

import (
	"time"

	"github.com/postern-io/postern/protocol/lockbus"
)

// piece is bytes to send after waiting.
type piece struct {
	wait time.Duration
	p    []byte
}

func isUnlock(k lockbus.Kind) bool {
	switch k {
	case lockbus.Unlock, lockbus.UnlockAll, lockbus.UnlockTogether, lockbus.UnlockInTurn, lockbus.UnlockLater:
		return true
	}
	return false
}

// begin carries out what a request asks for. work is how long the board needs
// before it can answer, on top of its turnaround; echo says that the adapter
// loops the request back.
func (c wiring) begin(b *board, req lockbus.Frame) (work time.Duration, echo bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	echo = b.roll(c.core, Echo)
	if now.Before(b.deadUntil) {
		return 0, echo
	}
	if b.roll(c.core, Reset) {
		c.reset(b, now)
	}
	if b.roll(c.core, AdapterGone) {
		c.unplug(b.line, time.Second)
	}
	if isUnlock(req.Kind) {
		work = c.unlock(b, req, now)
	}
	return work, echo
}

// targets are the doors that an unlock means, in order, and how far apart the
// board fires them by itself.
func (b *board) targets(req lockbus.Frame) (doors []*door, apart time.Duration) {
	add := func(ch uint) {
		if d := b.doors[ch]; d != nil {
			doors = append(doors, d)
		}
	}
	switch req.Kind {
	case lockbus.Unlock, lockbus.UnlockLater:
		add(uint(req.Lock))
	case lockbus.UnlockTogether, lockbus.UnlockInTurn:
		for _, ch := range req.List[:req.Count] {
			add(uint(ch))
		}
	case lockbus.UnlockAll:
		for ch := uint(1); ch <= b.cfg.Channels; ch++ {
			add(ch)
		}
	}
	if req.Kind == lockbus.UnlockInTurn || req.Kind == lockbus.UnlockAll && b.cfg.Family == lockbus.Door80 {
		apart = b.cfg.UnlockTime + 20*time.Millisecond
	}
	return doors, apart
}

// unlock fires coils, unless a fault is in the way. It leaves in b.inject what
// finish must know. c.mu is held.
func (c wiring) unlock(b *board, req lockbus.Frame, now time.Time) (work time.Duration) {
	b.said = said{}
	switch {
	case b.roll(c.core, LostUnlock):
		b.said.nothing = true
		return 0
	case b.roll(c.core, CoolingDown):
		b.said.cooling = true
		return 0
	}
	b.said.nothing = b.roll(c.core, LostAnswer)
	b.busy = b.roll(c.core, BusyAfter)
	doors, apart := b.targets(req)
	double := b.roll(c.core, DoubleUnlock)
	for i, d := range doors {
		at := now.Add(time.Duration(i) * apart)
		if double {
			c.later(at.Add(b.cfg.UnlockTime+100*time.Millisecond), func(t time.Time) { c.fire(d, t, ByDouble) })
		}
		if i == 0 || apart == 0 {
			c.fire(d, now, ByRequest)
			continue
		}
		c.later(at, func(t time.Time) { c.fire(d, t, ByRequest) })
	}
	// A board that says whether the door opened has to wait for its switch.
	if b.cfg.Family == lockbus.Door80 || b.cfg.Family == lockbus.Preamble {
		work = 300*time.Millisecond + time.Duration(max(len(doors)-1, 0))*apart
	}
	return work
}

// said is what an unlock leaves for its answer.
type said struct{ nothing, cooling bool }

// finish makes what comes back, as the board's inputs read now.
func (c wiring) finish(b *board, req lockbus.Frame) []piece {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	if now.Before(b.deadUntil) || b.silent(c.core, req) {
		return nil
	}
	ans, ok := b.reply(req, now)
	if !ok {
		return nil
	}
	clean, err := b.codec.AppendAnswer(nil, ans)
	if err != nil {
		return nil
	}
	wrong := ans
	if b.roll(c.core, WrongBoard) {
		wrong.Board = b.otherAddress()
	}
	p, err := b.codec.AppendAnswer(nil, wrong)
	if err != nil {
		p = clean
	}
	return c.deliver(b, b.mangle(c.core, p), clean)
}

// deliver puts the line's faults around an answer.
func (c wiring) deliver(b *board, p, clean []byte) (out []piece) {
	stale := b.line.prev
	b.line.prev = clean
	if stale != nil && b.roll(c.core, StaleAnswer) {
		out = append(out, piece{p: append([]byte(nil), stale...)})
	}
	first := piece{p: p}
	if b.roll(c.core, LateAnswer) {
		first.wait = 150 * time.Millisecond
	}
	if b.roll(c.core, SplitAnswer) && len(p) > 1 {
		at := 1 + b.rng.IntN(len(p)-1)
		out = append(out, piece{wait: first.wait, p: p[:at]})
		first = piece{wait: 5 * time.Millisecond, p: p[at:]}
	}
	out = append(out, first)
	if b.roll(c.core, TwoAnswers) {
		out = append(out, piece{p: clean})
	}
	if b.roll(c.core, NoiseOnIdle) {
		noise := make([]byte, 1+b.rng.IntN(5))
		for i := range noise {
			noise[i] = byte(b.rng.UintN(256))
		}
		out = append(out, piece{wait: time.Millisecond, p: noise})
	}
	return out
}

// silent says whether nothing comes back. c.mu is held.
func (b *board) silent(c *core, req lockbus.Frame) bool {
	if b.roll(c, Silence) {
		return true
	}
	if isUnlock(req.Kind) {
		return b.said.nothing || b.busy
	}
	was := b.busy
	b.busy = false // any other request frees it, unanswered
	return was
}

func (b *board) otherAddress() uint8 {
	for a := uint8(0); a <= 9; a++ {
		if a != b.cfg.Address && b.cfg.Family.CheckAddress(a) == nil {
			return a
		}
	}
	return b.cfg.Address
}

// sample reads all inputs.
func (b *board) sample(now time.Time) (hooks, items uint64) {
	if now.Before(b.zerosUntil) {
		return b.codec.ZeroState() & (1<<b.cfg.Channels - 1), 0
	}
	hooks = 1<<b.cfg.Channels - 1 // nothing wired reads as locked
	for ch, d := range b.doors {
		if d.closedBit(now) == (b.cfg.Inverted != d.cfg.Inverted) {
			hooks &^= 1 << (ch - 1)
		}
		if len(d.items) > 0 && !b.cfg.NoItems && b.cfg.Family.HasItems() {
			items |= 1 << (ch - 1)
		}
	}
	return hooks, items
}

// reply is the answer to a request, if the board has one.
func (b *board) reply(req lockbus.Frame, now time.Time) (lockbus.Frame, bool) {
	hooks, items := b.sample(now)
	closed := hooks>>(max(req.Lock, 1)-1)&1 == 1
	ans := lockbus.Frame{Board: b.cfg.Address, Lock: req.Lock, Closed: closed, Result: lockbus.Done}
	switch {
	case req.Kind == lockbus.AskStatus:
		ans = lockbus.Frame{Kind: lockbus.Status, Board: b.cfg.Address, Hooks: hooks, Items: items}
		if b.cfg.Family == lockbus.Preamble {
			ans.Count, ans.Result = uint8(b.cfg.Channels), lockbus.Done
		}
		if b.cfg.Family == lockbus.CU16 && req.Board == lockbus.AllBoards {
			ans.Kind = lockbus.StatusOfAll
		}
		return ans, true
	case req.Kind == lockbus.AskLock:
		ans.Kind = lockbus.LockState
		return ans, true
	case !isUnlock(req.Kind) || !b.cfg.Family.AnswersUnlock() || b.cfg.Mute:
		return b.acted(req, ans)
	}
	ans.Kind = lockbus.Unlocked
	switch {
	case b.cfg.Family == lockbus.CU48B && (b.said.cooling || req.Lock == 0):
		return ans, false // has no way to say no, and its all-command no answer
	case b.said.cooling && b.cfg.Family == lockbus.Station:
		ans.Result = lockbus.Cooling
	case b.said.cooling:
		ans.Result = lockbus.Failed
	case b.cfg.Family == lockbus.Door80 && closed, b.cfg.Family == lockbus.Preamble && closed && req.Lock != 0:
		ans.Result = lockbus.Failed
	}
	if b.cfg.Family == lockbus.Preamble {
		ans.Code = unlockCode(req.Kind)
	}
	return ans, true
}

// acted answers lamps and holds, which move nothing here.
func (b *board) acted(req lockbus.Frame, ans lockbus.Frame) (lockbus.Frame, bool) {
	codes := map[lockbus.Kind]uint8{lockbus.Flash: 0x81, lockbus.Hold: 0x88, lockbus.Release: 0x89}
	ans.Kind, ans.Code, ans.Closed = lockbus.Acted, codes[req.Kind], false
	return ans, ans.Code != 0
}

func unlockCode(k lockbus.Kind) uint8 {
	switch k {
	case lockbus.UnlockTogether:
		return 0x80
	case lockbus.UnlockAll:
		return 0x86
	case lockbus.UnlockInTurn:
		return 0x87
	}
	return 0x82
}

// tellChange plans the frame that a board sends by itself when a switch moved.
// c.mu is held.
func (b *board) tellChange(c *core, d *door, at time.Time) {
	if !b.cfg.Unasked || !b.cfg.Family.Unasked() {
		return
	}
	c.later(at.Add(b.cfg.Turnaround), func(t time.Time) {
		hooks, _ := b.sample(t)
		p, err := b.codec.AppendAnswer(nil, lockbus.Frame{
			Kind: lockbus.Changed, Board: b.cfg.Address, Lock: uint8(d.cfg.Channel), Closed: hooks>>(d.cfg.Channel-1)&1 == 1,
		})
		if err != nil || t.Before(b.deadUntil) {
			return
		}
		select {
		case b.line.unasked <- p:
		default:
		}
	})
}
