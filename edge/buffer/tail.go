package buffer

import (
	"encoding/binary"

	"github.com/postern-io/postern/protocol/wire"
)

// tailBytes is how large a lane's last segment may be and still lie inside the
// root page, where a commit of a few records writes two pages instead of four.
// bbolt keeps buckets of up to a quarter of a page there. Two tails leave room
// in a page of 4 KiB for a small state, meta and the lanes' ends.
//
//	root page   … 10,000 records from 1 ─► branch ─► leaves
//	            … records from 9,985, the tail
//
// A tail that is full is joined to the segment before it, or grows into a
// segment of its own when that one is complete.
const tailBytes = 768

// openSegment opens the segment that record n of size bytes goes to.
func (t *txn) openSegment(l wire.Lane, n, size uint64) error {
	ln := &t.next[l]
	if t.tailIsFull(ln, n, size) {
		if err := t.joinTail(l); err != nil {
			return err
		}
	}
	if t.beginsSegment(ln, size) {
		if err := t.writeBytes(int(l)); err != nil {
			return err
		}
		b, err := t.tx.CreateBucket(segmentName(l, n))
		if err != nil {
			return err
		}
		ln.segs = append(ln.segs, segment{first: n})
		t.open[l] = b
	}
	if t.open[l] == nil {
		t.open[l] = ln.segs[len(ln.segs)-1].bucket(t.tx, l)
	}
	t.open[l].FillPercent = 1 // keys only grow
	return nil
}

// tailIsFull reports whether the last segment is a tail that is to be joined to
// the one before: record n does not fit, or would be one too many for both.
func (t *txn) tailIsFull(ln *lane, n, size uint64) bool {
	i := len(ln.segs) - 1
	if i < 1 || ln.segs[i].bytes > tailBytes || t.s.full(ln, i-1) {
		return false
	}
	return ln.segs[i].bytes+size > tailBytes || n-ln.segs[i-1].first >= uint64(t.s.segment.Load())
}

// beginsSegment reports whether the next record, of size bytes, begins a
// segment: the last is complete, or too large to be a tail.
func (t *txn) beginsSegment(ln *lane, size uint64) bool {
	i := len(ln.segs) - 1
	if i < 0 || t.s.full(ln, i) {
		return true
	}
	tail := !t.bulk && !t.moved[ln.id] && size+uint64(len(wire.Head{})) <= tailBytes
	return tail && ln.segs[i].bytes > tailBytes
}

// joinTail moves the records of a lane's last segment to the one before it. The
// chain value before the first of them stays: a reader that knows the tail by
// its name begins there.
func (t *txn) joinTail(l wire.Lane) error {
	ln := &t.next[l]
	i := len(ln.segs) - 1
	to, tail := &ln.segs[i-1], ln.segs[i]
	moved, err := ln.records(t.tx, i)
	if err != nil {
		return err
	}
	b := to.bucket(t.tx, l)
	b.FillPercent = 1
	var h wire.Head
	err = moved.ForEach(func(k, v []byte) error {
		r, err := decodeStored(v)
		if err != nil {
			return err
		}
		n := binary.BigEndian.Uint64(k)
		switch before := h; {
		case r.before != nil:
			h = *r.before
		case n == tail.first:
			return damaged("record %d keeps no chain value", n)
		case (n-to.first)%headEvery == 0:
			r.before = &before
		}
		h = h.Next(r.record)
		to.bytes += r.size()
		return b.Put(k, r.encode())
	})
	if err != nil {
		return err
	}
	if err := ln.remove(t.tx, i); err != nil {
		return err
	}
	ln.segs, t.open[l] = ln.segs[:i], b
	return nil
}
