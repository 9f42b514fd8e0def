package buffer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/postern-io/postern/protocol/wire"
)

// contents is what a check found out about a store.
type contents struct {
	epoch   wire.Epoch
	boot    uint64
	acked   [2]uint64 // 0 when unknown
	version []byte    // nil when unknown
}

// foundSegment is a segment as a check finds it.
type foundSegment struct {
	first  uint64
	bucket *subBucket
}

// roots is what the root of the file names.
type roots struct {
	meta, lanes *subBucket
	old         [2]*subBucket
	segs        [2][]foundSegment // of layout 2
	others      []*subBucket      // of values alone
}

func (r *roots) readRoot(e entry) error {
	if e.bucket == nil {
		return damaged("a value outside of buckets")
	}
	l, first, ok := parseSegmentName(e.key)
	switch {
	case ok:
		r.segs[l] = append(r.segs[l], foundSegment{first, e.bucket})
	case bytes.Equal(e.key, bucketMeta):
		r.meta = e.bucket
	case bytes.Equal(e.key, bucketLanes):
		r.lanes = e.bucket
	case bytes.Equal(e.key, bucketOld[0]):
		r.old[0] = e.bucket
	case bytes.Equal(e.key, bucketOld[1]):
		r.old[1] = e.bucket
	default:
		r.others = append(r.others, e.bucket)
	}
	return nil
}

// check walks the free list and the buckets meta, state and the index of the
// lanes; with full also every record, comparing the chain with the values kept.
// What could be read is returned even with an error. Of a later layout than this
// agent knows nothing but its number is looked at.
func (p *pages) check(full bool) (contents, error) {
	var c contents
	var r roots
	errs := []error{p.walk(p.meta.root, 0, nil, nil, r.readRoot)}
	if r.meta == nil {
		errs = append(errs, damaged("no bucket %s", bucketMeta))
	} else {
		errs = append(errs, p.bucket(r.meta, c.readElement))
	}
	version, err := parseVersion(c.version)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return c, err
	}
	errs = append(errs, err)
	index, err := p.readIndex(&r, version)
	errs = append(errs, err)
	for l := range index {
		if index[l].acked != nil {
			c.acked[l] = index[l].acked.next
		}
		if err := p.checkLane(&index[l], full); err != nil {
			errs = append(errs, fmt.Errorf("lane %d: %w", l, err))
		}
	}
	for _, b := range r.others {
		errs = append(errs, p.bucket(b, func(e entry) error {
			if e.bucket != nil {
				return damaged("a bucket inside state")
			}
			return nil
		}))
	}
	errs = append(errs, p.free())
	if c.epoch.IsZero() {
		errs = append(errs, damaged("no epoch"))
	}
	return c, errors.Join(errs...)
}

// readElement reads an element of meta.
func (c *contents) readElement(e entry) error {
	switch {
	case bytes.Equal(e.key, keyEpoch) && len(e.value) == len(c.epoch):
		copy(c.epoch[:], e.value)
	case bytes.Equal(e.key, keyBoot) && len(e.value) == 8:
		c.boot = binary.BigEndian.Uint64(e.value)
	case bytes.Equal(e.key, keyVersion):
		c.version = bytes.Clone(e.value)
	}
	return nil
}

// laneIndex is the index of one lane as a check finds it.
type laneIndex struct {
	segs       []foundSegment
	end, acked *position
}

// readIndex reads where the lanes end, and their segments: those in the buckets
// of layout 1 come first. The ends that these buckets name count only in layout 1.
func (p *pages) readIndex(r *roots, version uint64) (index [2]laneIndex, err error) {
	var errs []error
	for l, b := range r.old {
		if b == nil {
			errs = append(errs, damaged("no bucket %s", bucketOld[l]))
			continue
		}
		ix := &index[l]
		errs = append(errs, p.bucket(b, func(e entry) error {
			switch {
			case e.bucket != nil && len(e.key) == 8:
				ix.segs = append(ix.segs, foundSegment{binary.BigEndian.Uint64(e.key), e.bucket})
				return nil
			case e.bucket != nil || len(e.key) != 1:
				return damaged("lane %d: key of %d bytes", l, len(e.key))
			}
			return ix.readIndexValue(e.key[0], e.value)
		}))
		ix.segs = append(ix.segs, r.segs[l]...)
		if version != 1 {
			ix.end, ix.acked = nil, nil
		}
	}
	switch {
	case version == 1:
	case r.lanes == nil:
		errs = append(errs, damaged("no bucket %s", bucketLanes))
	default:
		errs = append(errs, p.bucket(r.lanes, func(e entry) error {
			if e.bucket != nil || len(e.key) != 2 || e.key[1]-'0' >= wire.Lanes {
				return damaged("key of %d bytes in the index", len(e.key))
			}
			return index[e.key[1]-'0'].readIndexValue(e.key[0], e.value)
		}))
	}
	return index, errors.Join(errs...)
}

// readIndexValue reads a value of the index by the first byte of its key.
func (ix *laneIndex) readIndexValue(key byte, value []byte) error {
	if key == keyGap[0][0] && len(value) == 8 {
		return nil
	}
	at := &ix.end
	switch key {
	case keyEnd[0][0]:
	case keyAcked[0][0]:
		at = &ix.acked
	default:
		return damaged("a value of %d bytes in the index", len(value))
	}
	v, err := decodePosition(value)
	*at = &v
	return err
}

// checkLane checks a lane's segments: all records when full, otherwise only the
// pages that the start and the next commit read.
func (p *pages) checkLane(ix *laneIndex, full bool) (err error) {
	if ix.end == nil {
		return damaged("no end")
	}
	for i, s := range ix.segs {
		switch {
		case full:
			err = p.checkSegment(ix.segs, i, ix.end)
		case s.bucket.root != 0:
			err = p.spine(s.bucket.root)
		}
		if err != nil {
			return fmt.Errorf("segment %d: %w", s.first, err)
		}
	}
	return nil
}

// checkSegment reads a segment's records: numbers without a hole up to the next
// segment, and the chain from value to value.
func (p *pages) checkSegment(segs []foundSegment, i int, end *position) error {
	n, last := segs[i].first, i+1 == len(segs)
	var h wire.Head
	started := false
	err := p.bucket(segs[i].bucket, func(rec entry) error {
		if len(rec.key) != 8 || binary.BigEndian.Uint64(rec.key) != n || rec.bucket != nil {
			return damaged("record %d is missing", n)
		}
		r, err := decodeStored(rec.value)
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if r.before != nil {
			if started && *r.before != h {
				return damaged("chain breaks before record %d", n)
			}
			h, started = *r.before, true
		}
		if !started {
			return damaged("record %d keeps no chain value", n)
		}
		h, n = h.Next(r.record), n+1
		return nil
	})
	switch {
	case err != nil:
		return err
	case last && (end.next != n || end.head != h):
		return damaged("lane does not end at record %d", n-1)
	case !last && segs[i+1].first != n:
		return damaged("record %d is missing", n)
	}
	return nil
}
