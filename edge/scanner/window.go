package scanner

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// mark names a code at a post and a step.
type mark [16]byte

func markOf(c Config, what ...string) (m mark) {
	sum := sha256.Sum256(wire.MustEncode(append([]string{c.Post, string(c.Step)}, what...)))
	copy(m[:], sum[:])
	return m
}

// window is the time in which the same code is the same scan.
type window struct {
	ends    time.Time
	outcome Outcome   // of the first
	scan    wire.Scan // of the first; no Raw when it is known from an earlier start
	repeats uint
	last    time.Time     // of the newest repeat
	took    time.Duration // from the first scan to its end
	kept    int64         // wall clock of its end, unix ns
	// pending are records that the store did not take and perhaps has all the same:
	// the same ones are tried again with the next scan, so that there are never two
	// events.
	pending []wire.Record
}

// isSame reports whether what was scanned at a moment within a window is the same scan. Scans of a
// batch scanner come at once: there the scanner's clock says it. The cloud knows those that a
// start has come between.
func (w *window) isSame(l reading, at time.Time, c Config) bool {
	switch {
	case c.Batch == nil:
		return true
	case l.scan.ScannedAt == wire.ScannedUnknown:
		return at.Before(w.ends.Add(c.Repeat - w.took))
	}
	return w.scan.ScannedAt != 0 && time.Duration(max(w.scan.ScannedAt, l.scan.ScannedAt)-min(w.scan.ScannedAt, l.scan.ScannedAt)) < c.Repeat
}

// batchWindow is how long scans of batch scanners are remembered: longer than one is sent.
const batchWindow = 10 * time.Minute

// maxWindows is how many codes are remembered at once, also by the store; of more
// the one that ends first is forgotten.
const maxWindows = 1024

// windows are the scans that may be repeated.
type windows map[mark]*window

// find is the window that a scan falls into, nil for none.
func (w windows) find(m mark, at time.Time) *window {
	if x := w[m]; x != nil && at.Before(x.ends) {
		return x
	}
	return nil
}

// ended are the windows that have ended by a moment, in the order of their ends.
func (w windows) ended(at time.Time) (out []mark) {
	for m, x := range w {
		if !at.Before(x.ends) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b mark) int { return w[a].ends.Compare(w[b].ends) })
	return out
}

// first is the window that ends first.
func (w windows) first() (m mark, x *window) {
	for k, v := range w {
		if x == nil || v.ends.Before(x.ends) {
			m, x = k, v
		}
	}
	return m, x
}

// keptWindow is a window as the store has it.
type keptWindow struct {
	Mark []byte  `cbor:"1,keyasint"`
	Ends int64   `cbor:"2,keyasint"` // wall clock, unix ns
	Took int64   `cbor:"3,keyasint"` // ns from the first scan to Ends
	As   Outcome `cbor:"4,keyasint"`
}

// pending are the records of all windows that the store may lack.
func (w windows) pending(at time.Time) (out []wire.Record) {
	for _, x := range w {
		if at.Before(x.ends) {
			out = append(out, x.pending...)
		}
	}
	slices.SortFunc(out, func(a, b wire.Record) int { return cmp.Compare(a.Mono, b.Mono) })
	return out
}

// settled says that the store has all of that.
func (w windows) settled() {
	for _, x := range w {
		x.pending = nil
	}
}

// dump is what the store is to know at a moment, wall clock, once it has what is
// pending.
func (w windows) dump(now int64) []byte {
	var list []keptWindow
	for m, x := range w {
		if x.kept > now {
			list = append(list, keptWindow{Mark: slices.Clone(m[:]), Ends: x.kept, As: x.outcome, Took: int64(x.took)})
		}
	}
	slices.SortFunc(list, func(a, b keptWindow) int { return cmp.Compare(b.Ends, a.Ends) })
	return wire.MustEncode(list)
}

// loadWindows are those of an earlier start that have not ended. now is the moment
// and wall its wall clock: where the clock has gone back they last as long as they
// did from their first scan on.
func loadWindows(kept []byte, now time.Time, wall int64) (windows, error) {
	w := windows{}
	if len(kept) == 0 {
		return w, nil
	}
	var list []keptWindow
	if err := wire.Decode(kept, &list); err != nil {
		return w, err
	}
	for _, k := range list {
		if left := min(k.Ends-wall, k.Took); left > 0 && len(k.Mark) == len(mark{}) {
			w[mark(k.Mark)] = &window{ends: now.Add(time.Duration(left)), outcome: k.As, took: time.Duration(k.Took), kept: k.Ends}
		}
	}
	return w, nil
}
