package board

import (
	"fmt"
	"slices"
)

// Fault is something that goes wrong, once.
type Fault string

// Faults of the line: what happens to an answer on its way. Requests arrive as
// they were sent; a request that does not is LostUnlock or Silence.
const (
	DropByte     Fault = "drop_byte"
	ExtraByte    Fault = "extra_byte"
	FlipBit      Fault = "flip_bit"
	FlipKeepSum  Fault = "flip_keep_sum" // flips that the check byte does not see
	SwapBytes    Fault = "swap_bytes"
	Echo         Fault = "echo"         // the request comes back before its answer
	StaleAnswer  Fault = "stale_answer" // the line's answer before comes first
	WrongBoard   Fault = "wrong_board"  // the answer carries another address
	TwoAnswers   Fault = "two_answers"  // the answer comes twice
	Collision    Fault = "collision"    // two boards drive the line together
	Silence      Fault = "silence"      // no answer
	WrongBaud    Fault = "wrong_baud"   // garbage of about the right length
	LateAnswer   Fault = "late_answer"  // comes 150 ms late
	SplitAnswer  Fault = "split_answer" // comes in two pieces, 5 ms apart
	NoiseOnIdle  Fault = "idle_noise"   // a few bytes after the answer
	AdapterGone  Fault = "adapter_gone" // unplugged for a second
	BusyAfter    Fault = "busy"         // after an unlock, silent until one more request came
	LostUnlock   Fault = "lost_unlock"  // the unlock never arrives
	LostAnswer   Fault = "lost_answer"  // unlocked, but the answer is lost
	DoubleUnlock Fault = "double_unlock"
	CoolingDown  Fault = "cooling" // the board refuses to fire
	Reset        Fault = "reset"   // coils off, inputs read 0 for 300 ms
	Relatch      Fault = "relatch" // the hook lets go but the door does not swing
)

// AllFaults returns every fault in a fixed order.
func AllFaults() []Fault {
	return []Fault{
		DropByte, ExtraByte, FlipBit, FlipKeepSum, SwapBytes, Echo, StaleAnswer, WrongBoard, TwoAnswers, Collision,
		Silence, WrongBaud, LateAnswer, SplitAnswer, NoiseOnIdle, AdapterGone, BusyAfter, LostUnlock, LostAnswer,
		DoubleUnlock, CoolingDown, Reset, Relatch,
	}
}

// Faults are chances from 0 to 1, per request of a board that the fault can
// apply to.
type Faults map[Fault]float64

// Check refuses unknown faults and chances out of range.
func (f Faults) Check() error {
	for name, p := range f {
		if !slices.Contains(AllFaults(), name) {
			return fmt.Errorf("unknown fault %q", name)
		}
		if p < 0 || p > 1 {
			return fmt.Errorf("fault %s has chance %v, not 0 to 1", name, p)
		}
	}
	return nil
}

// Inject makes the next n chances of a fault on this board certain.
func (c hardware) Inject(board string, f Fault, n int) error {
	if err := (Faults{f: 1}).Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.boards[board]
	if b == nil {
		return fmt.Errorf("inject %s: no board %q", f, board)
	}
	b.inject[f] += n
	return nil
}

// Mend takes back every fault that was injected and has not happened yet.
func (c hardware) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.boards {
		clear(b.inject)
	}
}

// SetFaults replaces the chances from now on.
func (c hardware) SetFaults(f Faults) error {
	if err := f.Check(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Faults = f
	return nil
}

// roll decides whether f happens now. c.mu is held.
func (b *board) roll(c *core, f Fault) bool {
	if b.inject[f] > 0 {
		b.inject[f]--
		return true
	}
	p := c.cfg.Faults[f]
	return p > 0 && b.rng.Float64() < p
}

// mangle spoils an answer's bytes. c.mu is held.
func (b *board) mangle(c *core, p []byte) []byte {
	if len(p) == 0 {
		return p
	}
	if b.roll(c, FlipKeepSum) {
		b.flipKeepSum(p)
	}
	if b.roll(c, FlipBit) {
		p[b.rng.IntN(len(p))] ^= 1 << b.rng.IntN(8)
	}
	if b.roll(c, SwapBytes) && len(p) > 1 {
		i := b.rng.IntN(len(p) - 1)
		p[i], p[i+1] = p[i+1], p[i]
	}
	if b.roll(c, DropByte) {
		i := b.rng.IntN(len(p))
		p = slices.Delete(p, i, i+1)
	}
	if b.roll(c, ExtraByte) {
		p = slices.Insert(p, b.rng.IntN(len(p)+1), byte(b.rng.UintN(256)))
	}
	if b.roll(c, Collision) {
		for i := range p {
			p[i] &= byte(b.rng.UintN(256))
		}
	}
	if b.roll(c, WrongBaud) {
		for i := range p {
			p[i] = byte(b.rng.UintN(256))
		}
	}
	return p
}

// flipKeepSum changes status data so that the check byte still fits: sums by
// adding here and taking away there, exclusive ors by flipping the same bit
// twice, and where there is no check byte, any bit of the data.
func (b *board) flipKeepSum(p []byte) {
	from, to := 4, len(p)-2 // of the CU48 families
	if b.codec.Family.HasItems() && len(p) == 9 {
		from = 3
	}
	bit := byte(1) << b.rng.IntN(8)
	switch b.codec.Family.String() {
	case "station":
		p[4] ^= 1
		return
	case "door80":
		if len(p) < 7 {
			return
		}
		from, to = 2, 5
	case "preamble":
		// States are 00 and 01: only their lowest bit flips unnoticed.
		from, to, bit = 9, len(p)-1, 1
	}
	if to-from < 2 {
		return
	}
	i := from + b.rng.IntN(to-from)
	j := from + b.rng.IntN(to-from-1)
	if j >= i {
		j++
	}
	if b.cfg.Family.Baud() == 19200 {
		p[i], p[j] = p[i]+bit, p[j]-bit
		return
	}
	p[i], p[j] = p[i]^bit, p[j]^bit
}
