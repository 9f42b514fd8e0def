package buffer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// Record is one encoded wire.Record. Kind decides the lane and must be the
// record's own.
type Record struct {
	Kind  wire.Kind
	Bytes []byte
}

// NewRecord encodes r. It fails when r is larger than a record may be.
func NewRecord(r wire.Record) (Record, error) {
	b, err := wire.Encode(r)
	if err != nil {
		return Record{}, fmt.Errorf("encode %s record: %w", r.Kind, err)
	}
	if len(b) > wire.MaxRecord {
		return Record{}, fmt.Errorf("%w: %s record of %d bytes, the limit is %d", ErrInvalid, r.Kind, len(b), wire.MaxRecord)
	}
	return Record{Kind: r.Kind, Bytes: b}, nil
}

// Change is what one commit writes: state and the records it caused.
type Change struct {
	Put     map[string][]byte // state; a nil value deletes, an empty one is kept
	Records []Record          // numbered per lane in this order
	// Urgent marks a change that belongs to a session already open: it may use
	// the last tenth of the size limit.
	Urgent bool
}

// Bounds of one transaction that several commits share.
const (
	groupChanges = 512
	groupBytes   = 4 << 20
)

// maxChange is how many records one change may hold.
const maxChange = 4096

// turn is a lock. Other than a mutex it lets simulated time go on while someone
// waits for a slow disk.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// request is a change on its way through the queue.
type request struct {
	change  Change
	records []prepared
	size    int64
	err     error
	lead    bool          // guarded by queue.mu: chosen to lead the next group
	ready   chan struct{} // closed when done, or when chosen to lead; nil of one that leads at once
}

// prepared is a record that was read once, outside the transaction.
type prepared struct {
	lane wire.Lane
	stored
}

// queue forms groups: the first caller leads, callers that come while it writes
// wait, and one of them leads the next group.
type queue struct {
	mu        sync.Mutex
	waiting   []*request
	leading   bool
	producers int // how many there seem to be
}

// Commit writes c in one transaction, numbering its records behind those of
// their lane. On nil all of it survives a power cut; on error none of it was
// written, except that after ErrBroken it may turn up on Reopen (room may have
// been made in lane 1 for a change that is then refused). ctx bounds the
// wait for earlier commits, not the write itself. c is not kept.
//
// Errors: ErrInvalid, ErrFull, ErrBroken, ErrDamaged, ErrClosed, or ctx's.
func (s *Store) Commit(ctx context.Context, c Change) error {
	r, err := s.prepare(c)
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if err := s.submit(ctx, r); err != nil {
		return fmt.Errorf("commit %d records: %w", len(c.Records), err)
	}
	return nil
}

func (s *Store) submit(ctx context.Context, r *request) error {
	q := &s.commitQ
	q.mu.Lock()
	if err := ctx.Err(); err != nil {
		q.mu.Unlock()
		return err
	}
	if !q.leading {
		q.leading, r.lead = true, true
		q.waiting = append(q.waiting, r)
		q.mu.Unlock()
		s.lead()
		return r.err
	}
	r.ready = make(chan struct{})
	q.waiting = append(q.waiting, r)
	q.mu.Unlock()
	select {
	case <-r.ready:
	case <-ctx.Done():
		if q.withdraw(r) {
			return ctx.Err()
		}
		<-r.ready
	}
	if r.lead {
		s.lead()
	}
	return r.err
}

// withdraw takes r out of the queue unless a leader has it or it is to lead.
func (q *queue) withdraw(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 || r.lead {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// lead writes one group, whose first request is the caller's own, and passes
// the lead on.
func (s *Store) lead() {
	s.commitQ.gather()
	s.writing.Lock()
	group := s.commitQ.takeRequests()
	s.commitGroup(group)
	s.writing.Unlock()
	s.commitQ.expect(len(group))
	for _, r := range group[1:] {
		close(r.ready)
	}
	s.commitQ.pass()
}

// gather lets those whom the last commit released queue up again, so that
// groups stay as large as the number of producers allows. It gives up once
// no caller comes any more: a lone producer never waits.
func (q *queue) gather() {
	seen, idle := 0, 0
	for idle < 8 {
		q.mu.Lock()
		n, enough := len(q.waiting), len(q.waiting) >= q.producers
		q.mu.Unlock()
		if enough {
			return
		}
		if idle++; n > seen {
			seen, idle = n, 0
		}
		runtime.Gosched()
	}
}

func (q *queue) takeRequests() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, int64(0)
	for n < len(q.waiting) && n < groupChanges && (n == 0 || size+q.waiting[n].size <= groupBytes) {
		size += q.waiting[n].size
		n++
	}
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return group
}

// expect notes how many producers there seem to be: those of the group just
// written, and callers that came meanwhile.
func (q *queue) expect(group int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.producers = min(group+len(q.waiting), groupChanges)
}

func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.leading = false
		return
	}
	q.waiting[0].lead = true
	close(q.waiting[0].ready)
}

// prepare checks c and reads its records, so that a transaction never meets
// what it cannot store.
func (s *Store) prepare(c Change) (*request, error) {
	r := &request{change: c}
	if len(c.Records) > maxChange {
		return nil, fmt.Errorf("%w: %d records, the limit is %d", ErrInvalid, len(c.Records), maxChange)
	}
	for k, v := range c.Put {
		if k == "" || len(k) > MaxKey || len(v) > MaxValue {
			return nil, fmt.Errorf("%w: state key of %d bytes, value of %d", ErrInvalid, len(k), len(v))
		}
		r.size += int64(len(k) + len(v))
	}
	boot := s.Opened().Boot
	r.records = make([]prepared, len(c.Records))
	for i, rec := range c.Records {
		d, err := wire.DecodeRecord(rec.Bytes)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: record %d: %w", ErrInvalid, i, err)
		case d.Kind != rec.Kind || d.Kind > 255:
			return nil, fmt.Errorf("%w: record %d is of kind %d, not %d", ErrInvalid, i, d.Kind, rec.Kind)
		case d.Boot == 0 || d.Boot > boot:
			return nil, fmt.Errorf("%w: record %d is of boot %d, this is boot %d", ErrInvalid, i, d.Boot, boot)
		}
		r.records[i] = prepared{rec.Kind.Lane(), stored{kind: rec.Kind, boot: d.Boot, record: rec.Bytes}}
		r.size += int64(len(rec.Bytes) + 32)
	}
	return r, nil
}

// commitGroup writes the requests in one transaction and sets their results.
func (s *Store) commitGroup(group []*request) {
	err := s.transact("write", func(t *txn) error {
		var size int64
		for _, r := range group {
			size += r.size
		}
		t.bulk = size > tailBytes
		if err := t.makeRoom(size); err != nil {
			return err
		}
		taken := int64(0)
		for _, r := range group {
			if r.err = t.admit(r, taken); r.err != nil {
				continue
			}
			taken += r.size
			if err := t.apply(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for _, r := range group {
			r.err = err
		}
	}
}

// update writes fn's change and whatever waits to be written.
func (s *Store) update(what string, fn func(*txn) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.transact(what, fn)
}

// txn is one write transaction and the layout it leads to.
type txn struct {
	s     *Store
	tx    *bolt.Tx
	id    int   // bbolt's number of tx
	used  int64 // bytes of pages in use before it
	epoch wire.Epoch
	boot  uint64
	next  layout
	open  [2]*bolt.Bucket // segment that is appended to
	moved [2]bool         // lane has grown
	bulk  bool            // many records are about to come, for which no tail is begun
}

// transact runs fn in one write transaction together with the acknowledged
// position and the segments it frees. The caller holds writing.
func (s *Store) transact(what string, fn func(*txn) error) error {
	s.mu.Lock()
	t := &txn{s: s, epoch: s.opened.Epoch, boot: s.opened.Boot, next: s.head.clone()}
	acked, broken := s.acked, s.broken
	s.mu.Unlock()
	switch {
	case broken != nil:
		return fmt.Errorf("%s: %w", what, broken)
	case s.db == nil:
		return fmt.Errorf("%s: %w", what, ErrClosed)
	}
	var own error
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			t.tx, t.id, t.used = tx, tx.ID(), usedBytes(tx)
			own = t.writeAcked(acked)
			if own == nil {
				own = fn(t)
			}
			if own == nil {
				own = t.writeEnds()
			}
			if own == nil && s.cfg.Disk != nil {
				return s.cfg.Disk()
			}
			return own
		})
	})
	if err == nil {
		s.install(t, acked)
		return nil
	}
	err = fmt.Errorf("%s: %w", what, err)
	switch {
	case errors.Is(err, ErrDamaged):
		err = fmt.Errorf("%w: %w", ErrBroken, err)
		s.fail(err)
	case diskFull(err) && t.undone():
		err = fmt.Errorf("%w: %w", ErrFull, err)
	case own == nil: // the write itself failed
		err = fmt.Errorf("%w: %w", ErrBroken, err)
		s.fail(err)
	}
	return err
}

// undone reports whether the failed transaction left nothing behind: its meta
// page was not written.
func (t *txn) undone() bool {
	err := guard(func() error {
		return t.s.db.View(func(tx *bolt.Tx) error {
			if tx.ID() >= t.id {
				return errors.New("written")
			}
			return nil
		})
	})
	return err == nil
}

// install makes a durable transaction visible.
func (s *Store) install(t *txn, acked [2]position) {
	s.mu.Lock()
	for l := range t.next {
		t.next[l].acked = acked[l]
	}
	s.head = t.next
	s.pending = s.acked != acked
	s.mu.Unlock()
	if t.moved[0] || t.moved[1] {
		s.signal()
	}
}

// usedBytes is the size of the pages that hold something, as tx finds them: a
// write transaction must not have written yet.
func usedBytes(tx *bolt.Tx) int64 {
	st := tx.DB().Stats()
	return tx.Size() - int64(st.FreePageN+st.PendingPageN)*int64(tx.DB().Info().PageSize)
}

// writeAcked stores acknowledged positions that changed and drops the segments
// that they cover wholly.
func (t *txn) writeAcked(acked [2]position) error {
	for l := range t.next {
		ln := &t.next[l]
		if ln.acked == acked[l] {
			continue
		}
		ln.acked = acked[l]
		if err := t.lanes().Put(keyAcked[l], acked[l].encode()); err != nil {
			return err
		}
		for t.s.droppable(ln) {
			if err := t.drop(l); err != nil {
				return err
			}
		}
	}
	return nil
}

// droppable reports whether the oldest segment is closed and acknowledged.
func (s *Store) droppable(ln *lane) bool { return s.closed(ln) && ln.acked.next > ln.last(0) }

// closed reports whether the oldest segment takes no more records. The one
// before the last may: the last one is then its tail.
func (s *Store) closed(ln *lane) bool {
	return len(ln.segs) > 2 || len(ln.segs) > 0 && s.full(ln, 0)
}

// full reports whether segment i has all the records that a segment may hold.
func (s *Store) full(ln *lane, i int) bool {
	seg := ln.segs[i]
	return seg.old || ln.last(i)-seg.first+1 >= uint64(s.segment.Load()) || seg.bytes >= s.cfg.segmentBytes()
}

// segmentBytes ends a segment early when its records are large, so that what
// eviction takes at once stays a small part of the store.
func (c Config) segmentBytes() uint64 { return uint64(c.capacity() / 24) }

func (t *txn) lanes() *bolt.Bucket { return t.tx.Bucket(bucketLanes) }

// drop deletes the oldest segment of lane l.
func (t *txn) drop(l int) error {
	ln := &t.next[l]
	if err := ln.remove(t.tx, 0); err != nil {
		return fmt.Errorf("drop segment %d of lane %d: %w", ln.segs[0].first, l, err)
	}
	ln.segs = ln.segs[1:]
	return nil
}

// makeRoom evicts segments of lane 1, oldest first, while the store with
// incoming more bytes is 70 % full, and names what was lost in lane 0. The
// segment that is appended to stays.
func (t *txn) makeRoom(incoming int64) error {
	limit := t.s.cfg.capacity() * evictFrom / 100
	used := t.used + incoming
	ln := &t.next[1]
	if used < limit {
		return nil
	}
	gap := wire.Gap{Epoch: t.epoch, Lane: wire.Telemetry, Reason: wire.GapEvicted, Counts: map[wire.Kind]uint64{}}
	for used >= limit && len(ln.segs) > 1 && t.s.closed(ln) {
		used -= int64(ln.segs[0].bytes)
		if err := t.count(ln, &gap); err != nil {
			return err
		}
		if err := t.drop(1); err != nil {
			return err
		}
	}
	if gap.Last == 0 {
		return nil
	}
	head, err := ln.headBefore(t.tx, gap.Last+1)
	if err != nil {
		return fmt.Errorf("chain value after %d: %w", gap.Last, err)
	}
	gap.HeadAfter = &head
	if err := t.appendGap(gap); err != nil {
		return err
	}
	ln.gap = t.next[0].end.Last
	return t.lanes().Put(keyGap[1], seqKey(ln.gap))
}

// count adds the unacknowledged records of the lane's oldest segment to gap.
func (t *txn) count(ln *lane, gap *wire.Gap) error {
	from, to := max(ln.segs[0].first, ln.acked.next), ln.last(0)
	if from > to {
		return nil
	}
	if gap.First == 0 {
		gap.First = from
	}
	gap.Last = to
	return ln.each(t.tx, from, func(n uint64, r stored) (bool, error) {
		gap.Counts[r.kind]++
		return n < to, nil
	})
}

// admit refuses records beyond 90 % unless they are urgent. taken is what the
// same transaction already took.
func (t *txn) admit(r *request, taken int64) error {
	limit := t.s.cfg.capacity() * refuseFrom / 100
	if r.change.Urgent || len(r.records) == 0 || t.used+taken+r.size < limit {
		return nil
	}
	return fmt.Errorf("%w: %d of %d bytes in use", ErrFull, t.used+taken, t.s.cfg.capacity())
}

func (t *txn) apply(r *request) error {
	state := t.tx.Bucket(bucketState)
	for k, v := range r.change.Put {
		var err error
		if v == nil {
			err = state.Delete([]byte(k))
		} else {
			err = state.Put([]byte(k), v)
		}
		if err != nil {
			return fmt.Errorf("state key of %d bytes: %w", len(k), err)
		}
	}
	for _, rec := range r.records {
		if err := t.append(rec.lane, rec.stored); err != nil {
			return err
		}
	}
	return nil
}

// append writes one record behind its lane's end.
func (t *txn) append(l wire.Lane, r stored) error {
	ln := &t.next[l]
	n := ln.end.Last + 1
	r.before = nil
	if err := t.openSegment(l, n, r.size()); err != nil {
		return fmt.Errorf("segment for record %d: %w", n, err)
	}
	seg := &ln.segs[len(ln.segs)-1]
	if (n-seg.first)%headEvery == 0 {
		r.before = &ln.end.Head
	}
	if err := t.open[l].Put(seqKey(n), r.encode()); err != nil {
		return fmt.Errorf("record %d: %w", n, err)
	}
	seg.bytes += r.size()
	ln.end = wire.LaneEnd{Last: n, Head: ln.end.Head.Next(r.record)}
	t.moved[l] = true
	return nil
}

// writeBytes keeps the size of the segment being appended to.
func (t *txn) writeBytes(l int) error {
	if t.open[l] == nil {
		return nil
	}
	segs := t.next[l].segs
	return t.open[l].SetSequence(segs[len(segs)-1].bytes)
}

// writeEnds stores the ends of lanes that grew.
func (t *txn) writeEnds() error {
	for l := range t.next {
		if !t.moved[l] {
			continue
		}
		if err := t.writeBytes(l); err != nil {
			return err
		}
		end := t.next[l].end
		if err := t.lanes().Put(keyEnd[l], position{end.Last + 1, end.Head}.encode()); err != nil {
			return err
		}
	}
	return nil
}

// appendGap writes a record of the store's own into lane 0.
func (t *txn) appendGap(g wire.Gap) error {
	r := t.s.cfg.Stamp()
	r.Kind, r.Boot, r.Body = wire.KindGap, t.boot, wire.MustEncode(g)
	return t.append(wire.Settlement, stored{kind: r.Kind, boot: r.Boot, record: wire.MustEncode(r)})
}
