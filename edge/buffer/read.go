package buffer

import (
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// Run is records of one lane without a hole, ready to become a batch.
type Run struct {
	Epoch   wire.Epoch
	Lane    wire.Lane
	First   uint64
	Records []wire.Raw               // empty when there is nothing from First on; owned by the caller
	Head    wire.Head                // chain value after the last record
	Boots   map[uint64]wire.BootSync // last synchronisation of the earlier boots in it that had one
	Prev    *wire.Epoch              // the epoch before, only when First is 1 and it is known
	// Gap is set when records before First were lost: the lane 0 sequence
	// number of the gap record that must be acknowledged before this run is
	// sent. 0 when the run goes on from the acknowledged position.
	Gap uint64
}

// Next is the sequence number after the run.
func (r *Run) Next() uint64 { return r.First + uint64(len(r.Records)) }

// Read returns durable records of a lane from number from on, at most
// maxRecords and maxBytes of record bytes, but always one when there is one.
// Below the oldest record held it goes on at the oldest.
func (s *Store) Read(l wire.Lane, from uint64, maxRecords, maxBytes int) (Run, error) {
	if l >= wire.Lanes || from == 0 || maxRecords <= 0 {
		return Run{}, fmt.Errorf("read lane %d from %d, %d records: %w", l, from, maxRecords, ErrInvalid)
	}
	var run Run
	var r reader
	err := s.viewSince(fmt.Sprintf("read %s from %d", l, from), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r = reader{ln: s.head[l], acked: s.acked[l], cursor: s.cursor[l], boot: s.opened.Boot}
		run = Run{Epoch: s.opened.Epoch, Lane: l, Prev: s.opened.Prev}
	}, func(tx *bolt.Tx) error {
		return r.fill(tx, &run, from, maxRecords, maxBytes)
	})
	if err != nil {
		return Run{}, err
	}
	s.mu.Lock()
	if s.opened.Epoch == run.Epoch {
		s.cursor[l] = position{run.Next(), run.Head}
	}
	s.mu.Unlock()
	return run, nil
}

// reader is what one Read knows of the lane. Its end is durable, so nothing is
// read that a power cut could still undo, though the transaction may show it.
type reader struct {
	ln     lane
	acked  position
	cursor position
	boot   uint64
}

func (r *reader) fill(tx *bolt.Tx, run *Run, from uint64, maxRecords, maxBytes int) error {
	run.First = min(max(from, r.ln.oldest()), r.ln.end.Last+1)
	at := run.First
	err := r.ln.each(tx, at, func(n uint64, rec stored) (bool, error) {
		if n != at && len(run.Records) > 0 {
			return false, fmt.Errorf("%w: %d follows %d", ErrDamaged, n, at-1)
		}
		if n > r.ln.end.Last {
			return false, nil
		}
		run.First = n - uint64(len(run.Records)) // segments may have been dropped since
		if len(run.Records) > 0 && (len(run.Records) >= maxRecords || maxBytes < len(rec.record)) {
			return false, nil
		}
		if len(run.Boots) >= maxBoots && run.Boots[rec.boot] == (wire.BootSync{}) {
			return false, nil
		}
		maxBytes -= len(rec.record)
		run.Records = append(run.Records, append(wire.Raw(nil), rec.record...))
		at = n + 1
		return true, r.boots(tx, run, rec.boot)
	})
	if err != nil {
		return err
	}
	if run.First != 1 {
		run.Prev = nil
	}
	if run.First > r.acked.next && run.First == r.ln.oldest() {
		run.Gap = r.ln.gap
	}
	return r.chain(tx, run)
}

// maxBoots bounds a run's map, which the link limits to 64 pairs.
const maxBoots = 60

// boots adds the synchronisation of an earlier boot.
func (r *reader) boots(tx *bolt.Tx, run *Run, boot uint64) error {
	if boot == r.boot {
		return nil
	}
	if _, ok := run.Boots[boot]; ok {
		return nil
	}
	v := tx.Bucket(bucketMeta).Get(syncKey(boot))
	if v == nil {
		return nil
	}
	var sync wire.BootSync
	if err := wire.Decode(v, &sync); err != nil {
		return fmt.Errorf("%w: synchronisation of boot %d: %w", ErrDamaged, boot, err)
	}
	if run.Boots == nil {
		run.Boots = map[uint64]wire.BootSync{}
	}
	run.Boots[boot] = sync
	return nil
}

// chain computes the run's head from where the last Read ended, or from the
// nearest chain value kept.
func (r *reader) chain(tx *bolt.Tx, run *Run) error {
	h := r.cursor.head
	if r.cursor.next != run.First {
		var err error
		if h, err = r.ln.headBefore(tx, run.First); err != nil {
			return fmt.Errorf("chain value before %d: %w", run.First, err)
		}
	}
	for _, rec := range run.Records {
		h = h.Next(rec)
	}
	run.Head = h
	return nil
}

// Ack takes the cloud's receipt: everything of the lane below next is durable
// there, and head is its chain value at next-1. The position is written with
// the next commit, and segments that it covers wholly are dropped then.
//
// Errors: ErrStale (another epoch, or older than what is acknowledged),
// ErrForked (the chains differ), ErrRolledBack (next lies beyond our end).
// After the last two only NewEpoch helps. A position inside what was evicted is
// taken without comparing chains: nothing is left to compare.
func (s *Store) Ack(epoch wire.Epoch, l wire.Lane, next uint64, head wire.Head) error {
	if l >= wire.Lanes {
		return fmt.Errorf("acknowledge lane %d: %w", l, ErrInvalid)
	}
	var ln lane
	var acked position
	var own wire.Epoch
	err := s.viewSince(fmt.Sprintf("acknowledge %s below %d", l, next), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		ln, acked, own = s.head[l], s.acked[l], s.opened.Epoch
	}, func(tx *bolt.Tx) error {
		if own != epoch || next < acked.next {
			return ErrStale
		}
		if next > ln.end.Last+1 {
			return fmt.Errorf("%w: our last record is %d", ErrRolledBack, ln.end.Last)
		}
		want := acked.head
		if next != acked.next {
			var err error
			want, err = ln.headBefore(tx, next)
			if errors.Is(err, errNoHead) {
				want = head
			} else if err != nil {
				return err
			}
		}
		if want != head {
			return fmt.Errorf("%w: chains differ at %d", ErrForked, next-1)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.advance(epoch, l, position{next, head}) {
		return s.flush()
	}
	return nil
}

// advance takes a checked position and reports whether it frees a segment.
func (s *Store) advance(epoch wire.Epoch, l wire.Lane, p position) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened.Epoch != epoch || p.next <= s.acked[l].next {
		return false
	}
	s.acked[l], s.pending = p, true
	ln := s.head[l]
	ln.acked = p
	return s.droppable(&ln)
}

// flush writes the acknowledged position now. A store that refuses writes keeps
// it in memory: the cloud says it again.
func (s *Store) flush() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := s.transact("write acknowledged position", func(*txn) error { return nil })
	if errors.Is(err, ErrBroken) || errors.Is(err, ErrFull) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}
