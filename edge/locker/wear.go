package locker

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Wear is what a lock has done since its door is known to the store, so that who looks
// after the cabinet sees one that gets weak before it fails. An act is an opening of the
// door by pulses; one that was given up before a pulse went out is none.
type Wear struct {
	Cycles  uint64 `cbor:"1,keyasint,omitempty"` // acts that opened the door
	Failed  uint64 `cbor:"2,keyasint,omitempty"` // acts that did not
	Trouble uint32 `cbor:"3,keyasint,omitempty"` // of the last 32 acts, the newest in bit 0: not opened by the first pulse
	Acts    uint8  `cbor:"4,keyasint,omitempty"` // how many of the last acts there are, to 32
	DelayMS uint32 `cbor:"5,keyasint,omitempty"` // from pulse to open door, smoothed over some eight acts
}

const (
	wearActs   = 32
	wearSmooth = 8
	maxDelay   = time.Minute
)

// acted is the wear after an act with so many pulses, and the time from the last of them
// until the door was open; delay below 0: it did not open.
func (w Wear) acted(pulses int, delay time.Duration) Wear {
	w.Trouble <<= 1
	w.Acts = min(w.Acts+1, wearActs)
	if delay < 0 || pulses > 1 {
		w.Trouble |= 1
	}
	if delay < 0 {
		w.Failed++
		return w
	}
	w.Cycles++
	now := uint32(min(delay, maxDelay) / time.Millisecond)
	if w.Cycles == 1 {
		w.DelayMS = now
	} else {
		w.DelayMS = uint32((uint64(w.DelayMS)*(wearSmooth-1) + uint64(now)) / wearSmooth)
	}
	return w
}

// Wear is what the locks have done, by door; locks that have done nothing are left out.
func (s *State) Wear() (out []wire.LockWear) {
	for _, n := range sorted(s.Doors) {
		if w := s.Doors[n].Wear; w.Acts > 0 {
			out = append(out, wire.LockWear{Door: uint(n), Cycles: w.Cycles, Failed: w.Failed, Trouble: w.Trouble, Acts: w.Acts, DelayMS: w.DelayMS})
		}
	}
	return out
}
