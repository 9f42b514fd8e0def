package buffer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// segment is an entry of the index: the records from first on, up to the next
// segment or the lane's end.
type segment struct {
	first uint64
	bytes uint64
	old   bool // written by layout 1: it lies in its lane's bucket and takes no more records
}

func seqKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// segmentName is the name of the bucket of lane l that begins with record first.
func segmentName(l wire.Lane, first uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(l)}, first)
}

// parseSegmentName reads what segmentName wrote. ok is false for the name of any
// other bucket.
func parseSegmentName(name []byte) (l wire.Lane, first uint64, ok bool) {
	if len(name) != 9 || name[0] >= wire.Lanes {
		return 0, 0, false
	}
	return wire.Lane(name[0]), binary.BigEndian.Uint64(name[1:]), true
}

// LaneOf reads the name of a top-level bucket of a store file: of which lane it
// holds records. ok is false for a bucket of anything else. It is for tools that
// count what a file holds.
func LaneOf(bucket []byte) (l wire.Lane, ok bool) {
	for i, name := range bucketOld {
		if bytes.Equal(bucket, name) {
			return wire.Lane(i), true
		}
	}
	l, _, ok = parseSegmentName(bucket)
	return l, ok
}

// bucket is where the segment's records lie, nil when tx shows none.
func (s segment) bucket(tx *bolt.Tx, l wire.Lane) *bolt.Bucket {
	if !s.old {
		return tx.Bucket(segmentName(l, s.first))
	}
	if b := tx.Bucket(bucketOld[l]); b != nil {
		return b.Bucket(seqKey(s.first))
	}
	return nil
}

// records is where the records of segment i lie, safe for bbolt to walk; nil when
// tx does not show the segment.
func (l *lane) records(tx *bolt.Tx, i int) (*bolt.Bucket, error) {
	b := l.segs[i].bucket(tx, l.id)
	if b == nil {
		return nil, nil
	}
	if err := l.unread.check(l.id, l.segs[i].first, b); err != nil {
		return nil, fmt.Errorf("segment %d of lane %d: %w", l.segs[i].first, l.id, err)
	}
	return b, nil
}

// remove deletes segment i of the lane with its records.
func (l *lane) remove(tx *bolt.Tx, i int) error {
	if _, err := l.records(tx, i); err != nil { // bbolt walks them
		return err
	}
	if s := l.segs[i]; s.old {
		return tx.Bucket(bucketOld[l.id]).DeleteBucket(seqKey(s.first))
	}
	return tx.DeleteBucket(segmentName(l.id, l.segs[i].first))
}

// unread holds the segments that a file had when it was opened and that nothing
// has read since. The start looks only at their first and last pages. Over a
// circle among the others bbolt would go on until the memory is gone, hence a
// segment's pages are checked before bbolt walks them, once. What was written
// since needs no check.
type unread struct {
	file io.ReaderAt
	mu   sync.Mutex
	segs [wire.Lanes]map[uint64]bool // by first record
}

// noteUnread says that nothing of the layout's segments was read, in a file that
// was opened.
func (l *layout) noteUnread(file io.ReaderAt) {
	u := &unread{file: file}
	for i := range l {
		u.segs[i] = map[uint64]bool{}
		for _, s := range l[i].segs {
			u.segs[i][s.first] = true
		}
		l[i].unread = u
	}
}

// check walks the pages of the segment in b when it is still unread. b's
// transaction may have appended to it, but must not have removed anything from
// it. It returns ErrDamaged for anything that is no tree of records.
func (u *unread) check(l wire.Lane, first uint64, b *bolt.Bucket) error {
	if u == nil {
		return nil // of a file that this process made
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.segs[l][first] {
		return nil
	}
	if err := checkRecords(u.file, b); err != nil {
		return err
	}
	delete(u.segs[l], first)
	return nil
}

// checkRecords walks the pages of a bucket of records.
func checkRecords(file io.ReaderAt, b *bolt.Bucket) error {
	errBucket := damaged("a bucket among records")
	root := uint64(b.Root())
	if root == 0 { // it lies in its parent's page, alone
		return b.ForEachBucket(func([]byte) error { return errBucket })
	}
	size := b.Tx().DB().Info().PageSize
	high := uint64(b.Tx().Size()) / uint64(size)
	p := newPages(context.Background(), file, size, pageMeta{high: high})
	return p.walk(root, 0, nil, nil, func(e entry) error {
		if e.bucket != nil {
			return errBucket
		}
		return nil
	})
}

// loadSegments lists the segments of a lane, those of layout 1 first.
func loadSegments(tx *bolt.Tx, l wire.Lane) (segs []segment) {
	if b := tx.Bucket(bucketOld[l]); b != nil {
		_ = b.ForEachBucket(func(k []byte) error {
			if len(k) == 8 {
				segs = append(segs, segment{first: binary.BigEndian.Uint64(k), bytes: b.Bucket(k).Sequence(), old: true})
			}
			return nil
		})
	}
	c := tx.Cursor()
	for k, _ := c.Seek(segmentName(l, 0)); ; k, _ = c.Next() {
		of, first, ok := parseSegmentName(k)
		if !ok || of != l {
			return segs
		}
		segs = append(segs, segment{first: first, bytes: tx.Bucket(k).Sequence()})
	}
}

// find is the index of the segment that record n lies in, 0 when n comes before
// all of them.
func (l *lane) find(n uint64) int {
	return max(0, sort.Search(len(l.segs), func(i int) bool { return l.segs[i].first > n })-1)
}

// each calls fn with the records from n on, segment by segment, until fn
// returns false. tx is no older than the index: segments that it does not show
// were dropped since, or joined to the one before. r's bytes belong to the
// transaction.
func (l *lane) each(tx *bolt.Tx, n uint64, fn func(n uint64, r stored) (bool, error)) error {
	i := l.find(n)
	for i > 0 && l.segs[i].bucket(tx, l.id) == nil {
		i--
	}
	for ; i < len(l.segs); i++ {
		seg, err := l.records(tx, i)
		if err != nil {
			return err
		}
		if seg == nil {
			continue
		}
		c := seg.Cursor()
		for key, v := c.Seek(seqKey(n)); key != nil; key, v = c.Next() {
			if len(key) != 8 {
				return damaged("record key of %d bytes", len(key))
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
func (l *lane) headBefore(tx *bolt.Tx, n uint64) (wire.Head, error) {
	if n == l.end.Last+1 {
		return l.end.Head, nil
	}
	if n < l.oldest() || n > l.end.Last {
		return wire.Head{}, errNoHead
	}
	first := l.segs[l.find(n)].first
	from := n - (n-first)%headEvery
	var h wire.Head
	at := from
	err := l.each(tx, from, func(m uint64, r stored) (bool, error) {
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
