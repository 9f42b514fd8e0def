package buffer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// Refused names a record that the cloud will not take.
type Refused struct {
	Lane wire.Lane
	Seq  uint64
}

// Bounds of one transaction while records are carried over.
const (
	carryRecords = 4000
	carryBytes   = 1 << 20
)

// NewEpoch begins a new epoch that names the old one: record 1 of lane 0 is a
// gap with the reason, then follow the unacknowledged records of both lanes in
// their order, without the refused one, which is set aside. State is kept. It
// is one step: a power cut leaves the old epoch or the new one. Commits and
// reads wait meanwhile. On error the old epoch goes on.
//
// reason is one of wire's gap reasons. refused is nil unless the reason is
// wire.GapRefused.
func (s *Store) NewEpoch(reason string, refused *Refused) error {
	return s.newEpoch(reason, refused, nil)
}

// NewEpochFrom is NewEpoch for a cloud that was restored and lost what it had
// acknowledged: it holds the records of each lane below holds. What follows is carried
// over as far as it is still here; gaps name what is not.
func (s *Store) NewEpochFrom(holds [2]uint64) error {
	return s.newEpoch(wire.GapCloudRestored, nil, &holds)
}

func (s *Store) newEpoch(reason string, refused *Refused, holds *[2]uint64) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.Broken(); err != nil {
		return fmt.Errorf("begin epoch: %w", err)
	}
	if s.db == nil {
		return fmt.Errorf("begin epoch: %w", ErrClosed)
	}
	var ns *Store
	var err error
	verr := s.view("begin epoch", func(tx *bolt.Tx) error {
		ns, err = s.carry(tx, reason, refused, holds)
		return err
	})
	if verr != nil {
		return verr
	}
	err = s.cfg.publish(ns.db)
	old := s.db
	if err != nil && !s.cfg.replaced() {
		return errors.Join(fmt.Errorf("begin epoch: %w", err), ns.db.Close())
	}
	opened := ns.opened
	opened.Created, opened.Quarantined = s.opened.Created, s.opened.Quarantined
	s.adopt(ns.db, ns.file, opened, ns.head)
	if cerr := old.Close(); cerr != nil {
		s.cfg.Logger.Warn("closing the old epoch failed", "error", cerr)
	}
	if err != nil { // renamed, but perhaps not durable
		err = fmt.Errorf("begin epoch: %w: %w", ErrBroken, err)
		s.fail(err)
		return err
	}
	s.cfg.Logger.Warn("new epoch", "reason", reason, "epoch", opened.Epoch.String(), "prev", opened.Prev.String())
	s.signal()
	return nil
}

// replaced reports whether the new file already has the store's name.
func (c Config) replaced() bool {
	_, err := os.Stat(c.fresh())
	return err != nil
}

// carry builds the new file from what tx shows.
func (s *Store) carry(tx *bolt.Tx, reason string, refused *Refused, holds *[2]uint64) (*Store, error) {
	s.mu.Lock()
	old, head, acked := s.opened, s.head.clone(), s.acked
	s.mu.Unlock()
	gap := wire.Gap{Epoch: old.Epoch, Reason: reason}
	var aside []byte
	if refused != nil {
		var err error
		if gap, aside, err = setAside(tx, &head, acked, gap, *refused); err != nil {
			return nil, err
		}
	}
	gaps := []wire.Gap{gap}
	if holds != nil {
		gaps = lostGaps(gap, &head, &acked, *holds)
	}
	ns, err := s.cfg.build(identity{epoch: newEpochID(), prev: &old.Epoch, boot: old.Boot}, gaps)
	if err != nil {
		return nil, err
	}
	err = copyBuckets(ns, tx, old.Epoch, refused, aside)
	for l := range head {
		if err == nil {
			err = copyLane(ns, tx, wire.Lane(l), &head[l], acked[l], refused)
		}
	}
	if err != nil {
		return nil, errors.Join(err, ns.db.Close())
	}
	return ns, nil
}

// lostGaps names what neither the cloud nor the store has any more, of lane 0 first, and
// takes acknowledgements back to what the cloud holds. Positions above the acknowledged
// ones are not believed.
func lostGaps(gap wire.Gap, head *layout, acked *[2]position, holds [2]uint64) (out []wire.Gap) {
	for l := range holds {
		next, oldest := max(min(holds[l], acked[l].next), 1), head[l].oldest()
		acked[l].next = next
		g := gap
		if g.Lane = wire.Lane(l); next < oldest {
			g.First, g.Last = next, oldest-1
		}
		if l == 0 || g.First > 0 {
			out = append(out, g)
		}
	}
	return out
}

// setAside completes the gap that names the refused record.
func setAside(tx *bolt.Tx, head *layout, acked [2]position, gap wire.Gap, refused Refused) (wire.Gap, []byte, error) {
	l, n := refused.Lane, refused.Seq
	if l >= wire.Lanes || n < acked[l].next || n < head[l].oldest() || n > head[l].end.Last {
		return gap, nil, fmt.Errorf("%w: record %d of lane %d is not waiting", ErrInvalid, n, l)
	}
	var record []byte
	var kind wire.Kind
	err := head[l].each(tx, n, func(_ uint64, r stored) (bool, error) {
		record, kind = slices.Clone(r.record), r.kind
		return false, nil
	})
	if err != nil {
		return gap, nil, err
	}
	after, err := head[l].headBefore(tx, n+1)
	if err != nil {
		return gap, nil, err
	}
	gap.Lane, gap.First, gap.Last, gap.HeadAfter = l, n, n, &after
	gap.Counts = map[wire.Kind]uint64{kind: 1}
	return gap, record, nil
}

// keepAside is how many refused records stay for inspection.
const keepAside = 100

// copyBuckets takes over state, synchronisations and what was set aside into a new store.
func copyBuckets(s *Store, tx *bolt.Tx, epoch wire.Epoch, refused *Refused, record []byte) error {
	return s.transact("carry state", func(t *txn) error {
		count := 0 // of the last bucket: bbolt's own figures leave out what this transaction wrote
		for _, name := range [][]byte{bucketState, bucketAside} {
			to := t.tx.Bucket(name)
			count = 0
			if err := tx.Bucket(name).ForEach(func(k, v []byte) error { count++; return to.Put(k, v) }); err != nil {
				return err
			}
		}
		meta := t.tx.Bucket(bucketMeta)
		c := tx.Bucket(bucketMeta).Cursor()
		for k, v := c.Seek(syncKey(0)); len(k) == 9 && bytes.HasPrefix(k, []byte("s")); k, v = c.Next() {
			if err := meta.Put(k, v); err != nil {
				return err
			}
		}
		if refused == nil {
			return nil
		}
		aside := t.tx.Bucket(bucketAside)
		if count >= keepAside {
			k, _ := aside.Cursor().First() // of the lowest epoch: these are random
			if err := aside.Delete(k); err != nil {
				return err
			}
		}
		key := append(append(epoch[:], byte(refused.Lane)), seqKey(refused.Seq)...)
		return aside.Put(key, record)
	})
}

// copyLane appends the unacknowledged records of one lane to a new store, some
// thousand to a transaction, so that memory stays bounded.
func copyLane(s *Store, tx *bolt.Tx, l wire.Lane, ln *lane, acked position, refused *Refused) error {
	from := max(acked.next, ln.oldest())
	for from <= ln.end.Last {
		err := s.transact("carry records", func(t *txn) error {
			records, size := 0, 0
			return ln.each(tx, from, func(n uint64, r stored) (bool, error) {
				if n > ln.end.Last || records >= carryRecords || size >= carryBytes {
					return false, nil
				}
				from, records, size = n+1, records+1, size+len(r.record)
				if refused != nil && *refused == (Refused{l, n}) {
					return true, nil
				}
				return true, t.append(l, r)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
