package buffer

import (
	"encoding/binary"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

var (
	bucketMeta  = []byte("meta")
	bucketState = []byte("state")
	bucketAside = []byte("aside")
	bucketLanes = []byte("lanes")

	keyEpoch   = []byte("epoch")
	keyPrev    = []byte("prev")
	keyBoot    = []byte("boot")
	keyVersion = []byte("version")
	keySegment = []byte("segment")

	keyEnd   = [2][]byte{[]byte("e0"), []byte("e1")} // last, head
	keyAcked = [2][]byte{[]byte("a0"), []byte("a1")} // next, head
	keyGap   = [2][]byte{[]byte("g0"), []byte("g1")} // lane 0 sequence number of the last eviction's gap
)

// headEvery is how many records lie between two stored chain values, so that
// the value at any position costs at most that many hashes.
const headEvery = 64

// position is a place in a lane: next is the sequence number that follows, head
// the chain value before it.
type position struct {
	next uint64
	head wire.Head
}

// lane is what is known of one lane without reading records.
type lane struct {
	id     wire.Lane
	segs   []segment // oldest first, without a hole between them; records are appended to the last
	end    wire.LaneEnd
	acked  position // as written
	gap    uint64   // lane 0 sequence number of the gap that leads up to segs[0], 0 when none
	unread *unread  // what the file had when it was opened; shared by copies
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

// newLane is a lane that never had a record.
func newLane(epoch wire.Epoch, l wire.Lane) lane {
	first := wire.FirstHead(epoch, l)
	return lane{id: l, end: wire.LaneEnd{Head: first}, acked: position{1, first}}
}

// loadLayout reads both lanes' index.
func loadLayout(tx *bolt.Tx, epoch wire.Epoch) (out layout, err error) {
	for l := range out {
		out[l] = newLane(epoch, wire.Lane(l))
		if err := out[l].load(tx); err != nil {
			return out, fmt.Errorf("lane %d: %w", l, err)
		}
	}
	return out, nil
}

func (l *lane) load(tx *bolt.Tx) error {
	lanes := tx.Bucket(bucketLanes)
	if lanes == nil {
		return damaged("no bucket %s", bucketLanes)
	}
	if v := lanes.Get(keyEnd[l.id]); v != nil {
		p, err := decodePosition(v)
		if err != nil {
			return err
		}
		l.end = wire.LaneEnd{Last: p.next - 1, Head: p.head}
	}
	if v := lanes.Get(keyAcked[l.id]); v != nil {
		p, err := decodePosition(v)
		if err != nil {
			return err
		}
		l.acked = p
	}
	if v := lanes.Get(keyGap[l.id]); len(v) == 8 {
		l.gap = binary.BigEndian.Uint64(v)
	}
	l.segs = loadSegments(tx, l.id)
	return l.check(tx)
}

// check compares the index with the ends of the lane.
func (l *lane) check(tx *bolt.Tx) error {
	if l.acked.next == 0 || l.acked.next > l.end.Last+1 {
		return damaged("acknowledged up to %d of %d", l.acked.next, l.end.Last)
	}
	for i, s := range l.segs {
		c := s.bucket(tx, l.id).Cursor()
		lo, _ := c.First()
		hi, _ := c.Last()
		if !slices.Equal(lo, seqKey(s.first)) || !slices.Equal(hi, seqKey(l.last(i))) {
			return damaged("segment %d does not hold %d to %d", i, s.first, l.last(i))
		}
	}
	return nil
}
