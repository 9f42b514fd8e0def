package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

var (
	bucketMeta  = []byte("meta")
	bucketState = []byte("state")
	bucketAside = []byte("aside")
	bucketLane  = [2][]byte{[]byte("lane0"), []byte("lane1")}

	keyEpoch   = []byte("epoch")
	keyPrev    = []byte("prev")
	keyBoot    = []byte("boot")
	keyVersion = []byte("version")
	keySegment = []byte("segment")

	keyEnd   = []byte("e") // last, head
	keyAcked = []byte("a") // next, head
	keyGap   = []byte("g") // lane 0 sequence number of the last eviction's gap
)

const layoutVersion = 1

// headEvery is how many records lie between two stored chain values, so that
// the value at any position costs at most that many hashes.
const headEvery = 64

// position is a place in a lane: next is the sequence number that follows, head
// the chain value before it.
type position struct {
	next uint64
	head wire.Head
}

// segment is an entry of the index: the records from first on, up to the next
// segment or the lane's end.
type segment struct {
	first uint64
	bytes uint64
}

// lane is what is known of one lane without reading records.
type lane struct {
	segs  []segment // oldest first, without a hole between them; records are appended to the last
	end   wire.LaneEnd
	acked position // as written
	gap   uint64   // lane 0 sequence number of the gap that leads up to segs[0], 0 when none
}

// layout is both lanes.
type layout [2]lane

func (l *layout) clone() layout {
	c := *l
	for i := range c {
		c[i].segs = slices.Clone(c[i].segs)
	}
	return c
}

// oldest is the first record held, one past the end when none is.
func (l *lane) oldest() uint64 {
	if len(l.segs) == 0 {
		return l.end.Last + 1
	}
	return l.segs[0].first
}

func (l *lane) bytes() uint64 {
	var n uint64
	for _, s := range l.segs {
		n += s.bytes
	}
	return n
}

// last is the last record of segment i.
func (l *lane) last(i int) uint64 {
	if i+1 < len(l.segs) {
		return l.segs[i+1].first - 1
	}
	return l.end.Last
}

func seqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func syncKey(boot uint64) []byte { return binary.BigEndian.AppendUint64([]byte("s"), boot) }

func (p position) encode() []byte { return append(seqKey(p.next), p.head[:]...) }

func decodePosition(b []byte) (p position, err error) {
	if len(b) != 8+len(p.head) {
		return p, fmt.Errorf("%w: position of %d bytes", ErrDamaged, len(b))
	}
	p.next = binary.BigEndian.Uint64(b)
	copy(p.head[:], b[8:])
	return p, nil
}

// stored is one record as it lies in a segment:
//
//	kind (1) · flags (1, bit 0: head present) · boot (uvarint) · [head before (32)] · record
type stored struct {
	kind   wire.Kind
	boot   uint64
	before *wire.Head
	record []byte
}

func (r stored) encode() []byte {
	b := make([]byte, 0, 2+binary.MaxVarintLen64+32+len(r.record))
	var flags byte
	if r.before != nil {
		flags = 1
	}
	b = append(b, byte(r.kind), flags)
	b = binary.AppendUvarint(b, r.boot)
	if r.before != nil {
		b = append(b, r.before[:]...)
	}
	return append(b, r.record...)
}

var errShortRecord = fmt.Errorf("%w: stored record is too short", ErrDamaged)

// decodeStored reads a segment's value. record aliases b.
func decodeStored(b []byte) (r stored, err error) {
	if len(b) < 3 {
		return r, errShortRecord
	}
	r.kind = wire.Kind(b[0])
	flags := b[1]
	boot, n := binary.Uvarint(b[2:])
	if n <= 0 || flags > 1 {
		return r, fmt.Errorf("%w: stored record has a bad frame", ErrDamaged)
	}
	r.boot, b = boot, b[2+n:]
	if flags == 1 {
		if len(b) < len(r.before) {
			return r, errShortRecord
		}
		var h wire.Head
		copy(h[:], b)
		r.before, b = &h, b[len(h):]
	}
	if len(b) == 0 {
		return r, errShortRecord
	}
	r.record = b
	return r, nil
}

// loadLayout reads both lanes' index.
func loadLayout(tx *bolt.Tx, epoch wire.Epoch) (layout, error) {
	var out layout
	for l := range out {
		b := tx.Bucket(bucketLane[l])
		if b == nil {
			return out, fmt.Errorf("%w: no bucket %s", ErrDamaged, bucketLane[l])
		}
		ln, err := loadLane(b, epoch, wire.Lane(l))
		if err != nil {
			return out, fmt.Errorf("lane %d: %w", l, err)
		}
		out[l] = ln
	}
	return out, nil
}

func loadLane(b *bolt.Bucket, epoch wire.Epoch, l wire.Lane) (lane, error) {
	first := wire.FirstHead(epoch, l)
	ln := lane{end: wire.LaneEnd{Head: first}, acked: position{1, first}}
	if v := b.Get(keyEnd); v != nil {
		p, err := decodePosition(v)
		if err != nil {
			return ln, err
		}
		ln.end = wire.LaneEnd{Last: p.next - 1, Head: p.head}
	}
	if v := b.Get(keyAcked); v != nil {
		p, err := decodePosition(v)
		if err != nil {
			return ln, err
		}
		ln.acked = p
	}
	if v := b.Get(keyGap); len(v) == 8 {
		ln.gap = binary.BigEndian.Uint64(v)
	}
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if v != nil || len(k) != 8 {
			continue
		}
		ln.segs = append(ln.segs, segment{first: binary.BigEndian.Uint64(k), bytes: b.Bucket(k).Sequence()})
	}
	return ln, ln.check(b)
}

// check compares the index with the ends of the lane.
func (l *lane) check(b *bolt.Bucket) error {
	if l.acked.next == 0 || l.acked.next > l.end.Last+1 {
		return fmt.Errorf("%w: acknowledged up to %d of %d", ErrDamaged, l.acked.next, l.end.Last)
	}
	for i, s := range l.segs {
		lo, _ := b.Bucket(seqKey(s.first)).Cursor().First()
		hi, _ := b.Bucket(seqKey(s.first)).Cursor().Last()
		if !slices.Equal(lo, seqKey(s.first)) || !slices.Equal(hi, seqKey(l.last(i))) {
			return fmt.Errorf("%w: segment %d does not hold %d to %d", ErrDamaged, i, s.first, l.last(i))
		}
	}
	return nil
}

// each calls fn with the records from n on, segment by segment, until fn
// returns false. r's bytes belong to the transaction.
func each(b *bolt.Bucket, n uint64, fn func(n uint64, r stored) (bool, error)) error {
	segs := b.Cursor()
	k, _ := segs.Seek(seqKey(n))
	if len(k) != 8 || binary.BigEndian.Uint64(k) != n {
		if p, _ := segs.Prev(); p != nil { // the segment that n lies in begins before it
			k = p
		} else {
			k, _ = segs.First()
		}
	}
	for ; len(k) == 8; k, _ = segs.Next() {
		seg := b.Bucket(k)
		if seg == nil {
			return fmt.Errorf("%w: segment %x is not a bucket", ErrDamaged, k)
		}
		c := seg.Cursor()
		for key, v := c.Seek(seqKey(n)); key != nil; key, v = c.Next() {
			if len(key) != 8 {
				return fmt.Errorf("%w: record key of %d bytes", ErrDamaged, len(key))
			}
			r, err := decodeStored(v)
			if err != nil {
				return err
			}
			more, err := fn(binary.BigEndian.Uint64(key), r)
			if err != nil || !more {
				return err
			}
		}
	}
	return nil
}

var errNoHead = errors.New("no chain value kept there")

// headBefore is the chain value before record n, which the lane must hold or
// have ended before. It returns errNoHead when n lies in what is gone.
func headBefore(b *bolt.Bucket, l *lane, n uint64) (wire.Head, error) {
	if n == l.end.Last+1 {
		return l.end.Head, nil
	}
	i, found := slices.BinarySearchFunc(l.segs, n, func(s segment, n uint64) int {
		switch {
		case s.first < n:
			return -1
		case s.first > n:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 || n > l.end.Last {
		return wire.Head{}, errNoHead
	}
	from := n - (n-l.segs[i].first)%headEvery
	var h wire.Head
	at := from
	err := each(b, from, func(m uint64, r stored) (bool, error) {
		switch {
		case m != at: // dropped since the index was read
			return false, errNoHead
		case m == from && r.before == nil:
			return false, fmt.Errorf("%w: record %d keeps no chain value", ErrDamaged, m)
		case m == from:
			h = *r.before
		}
		if m == n {
			return false, nil
		}
		h, at = h.Next(r.record), at+1
		return true, nil
	})
	if err == nil && at != n {
		err = errNoHead
	}
	return h, err
}
