// Package buffer is the cabinet's memory: one file that holds the current state
// and the outgoing records, written together.
//
// Order: each lane numbers its records from 1 without a hole, in the order in
// which their commits became durable; records of one change keep their order.
// Read and Ends show only what is durable.
//
// Loss: when Commit returns nil, state and records survive a power cut. Lane 0
// is never evicted. Lane 1 loses whole segments, oldest first, once the file is
// 70 % full, and the same transaction writes a gap record in lane 0 that names
// exactly the unacknowledged range that went. From 90 % only urgent changes are
// taken. A file that is found damaged is moved aside and a new epoch begins with
// gap records that say so.
//
// Concurrency: every method of Store is safe for concurrent use. Concurrent
// commits share one transaction (the first caller leads, the others follow), and
// each gets its own result.
//
// The package sends nothing, interprets no state, and does not watch the disk:
// the store's owner runs Check in the background and Reopen after ErrBroken.
//
//	bucket      keys
//	meta        epoch, prev, boot, version, segment, "s"+boot → last synchronisation
//	state       as the caller names them
//	lanes       "e", "a", "g" + lane → end, acknowledged position, last eviction's gap
//	segment     sequence number (8 bytes) → kind, flags, boot, [head before], record
//	aside       epoch, lane, sequence number → record the cloud refused for good
//	lane0/1     segments that layout 1 left, by their first number
//
// A segment's name is its lane (1 byte) and its first sequence number (8 bytes).
// Small buckets lie inside the root page, and so does the tail, a lane's last few
// records (see tailBytes): most commits of a record write two pages and the meta
// page. Open converts a file of layout 1 (see convert), and refuses one of a
// layout later than its own.
package buffer

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// Errors of a store. Test with errors.Is.
var (
	// ErrFull: the size limit's last tenth is kept for urgent changes, or the
	// disk is full. Nothing was written; the same change may be tried later.
	ErrFull = errors.New("store full")
	// ErrBroken: a write or sync failed, so what is on disk is unknown until
	// Reopen. Reading goes on.
	ErrBroken = errors.New("store broken by a failed write")
	// ErrDamaged: the file's content is not a sound store.
	ErrDamaged = errors.New("store damaged")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store closed")
	// ErrInUse: another process holds the store.
	ErrInUse = errors.New("store in use by another process")
	// ErrInvalid: the change can never be stored as it is (a record that is not
	// one, or too large, or a key or value outside the limits).
	ErrInvalid = errors.New("invalid change")
	// ErrStale: an acknowledgement of another epoch, or below what is already
	// acknowledged. It means nothing and may be dropped.
	ErrStale = errors.New("stale acknowledgement")
	// ErrForked: the cloud's chain differs from ours, so this file is a copy, or
	// was rolled back, or another device writes under its epoch.
	ErrForked = errors.New("store forked")
	// ErrRolledBack: the cloud holds records beyond our own end. It is a case of
	// ErrForked.
	ErrRolledBack = fmt.Errorf("%w: rolled back to an older copy", ErrForked)
)

// Limits of a change.
const (
	MaxKey   = 1 << 10 // bytes of a state key
	MaxValue = 1 << 20 // bytes of a state value
)

// Shares of the size limit, in hundredths.
const (
	evictFrom  = 70
	refuseFrom = 90
)

// Config is what Open needs.
type Config struct {
	Path string // store file; Path+".lock" and, until Ready, Path+".starting" lie beside it
	// MaxBytes limits the file; 0 is 512 MiB.
	MaxBytes int64
	// SegmentRecords is how many records lie in one segment; 0 is 10,000. A
	// file keeps the figure it was created with.
	SegmentRecords int
	// Stamp gives time and clock (At, Mono, Clock, ErrMS) of the records the
	// store makes itself. Each call returns another Mono. Never nil. It may be
	// called from any goroutine and must not call the store.
	Stamp  func() wire.Record
	Logger *slog.Logger // nil discards
	// OpenFile opens the store file; nil is os.OpenFile.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)
	// NoSync leaves out every sync: commits then do not survive a power cut.
	// Only for tests.
	NoSync bool
	// Disk is called inside every write transaction, where its pages are about
	// to be written: a delay holds the commit up as slow syncs do, and an error
	// fails it as the disk would, with nothing written. The syncs themselves
	// stay as they are. Only for tests; nil is nothing.
	Disk func() error
}

func (c Config) withDefaults() Config {
	if c.MaxBytes == 0 {
		c.MaxBytes = 512 << 20
	}
	if c.SegmentRecords == 0 {
		c.SegmentRecords = 10_000
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OpenFile == nil {
		c.OpenFile = os.OpenFile
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Path == "":
		return errors.New("store path is empty")
	case c.Stamp == nil:
		return errors.New("store has no Stamp")
	case c.MaxBytes < 256<<10:
		return fmt.Errorf("store limit of %d bytes is below 256 KiB", c.MaxBytes)
	case c.SegmentRecords < 2:
		return fmt.Errorf("segments of %d records", c.SegmentRecords)
	}
	return nil
}

// allocSize is by how much the file grows at a time: small files grow in small
// steps, so that the limit stays usable.
func (c Config) allocSize() int { return int(min(max(c.MaxBytes/64, 32<<10), 4<<20)) }

// capacity is how many bytes of pages fit under the limit: the file grows by
// whole steps, and one is held back because a transaction writes its pages
// beside the old ones.
func (c Config) capacity() int64 { return c.MaxBytes - 2*int64(c.allocSize()) }

// Opened says how a store was found.
type Opened struct {
	Epoch wire.Epoch
	Prev  *wire.Epoch // the epoch before, when known
	Boot  uint64      // this start's number, from 1
	// Created is empty when the file was there and sound, else
	// wire.GapStoreCreated or wire.GapStoreDamaged.
	Created     string
	Quarantined string // where a damaged file was moved, or empty
}

// Store is one open store file.
type Store struct {
	cfg      Config
	lock     io.Closer // holds Path+".lock"; guarded by writing, nil once closed
	wake     chan struct{}
	segment  atomic.Int64 // records in one segment, as the file was created
	commitQ  queue
	writing  turn         // held by the writer: a commit's leader, NewEpoch, Reopen, Close
	swapping sync.RWMutex // readers of db hold it shared; changing db needs it alone

	db   *bolt.DB // guarded by swapping; nil once closed
	file *os.File // what db opened; guarded as db is

	ledger
}

// Filled is the share of the size limit in use, in hundredths. From 90 on
// changes that are not urgent are refused. It is 0 when the store cannot be read.
func (s *Store) Filled() int {
	filled := 0
	_ = s.view("measure the use", func(tx *bolt.Tx) error {
		filled = int(usedBytes(tx) * 100 / s.cfg.capacity())
		return nil
	})
	return filled
}

// Wake receives a value after records became durable. It holds one value: a
// reader that takes it and then reads both lanes misses nothing.
func (s *Store) Wake() <-chan struct{} { return s.wake }

func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fail makes the store refuse writes until Reopen.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		if !errors.Is(err, ErrBroken) {
			err = fmt.Errorf("%w: %w", ErrBroken, err)
		}
		s.broken = err
		s.cfg.Logger.Error("store refuses writes until it is reopened", "path", s.cfg.Path, "error", err)
	}
}

// Load calls fn with everything in state, in the order of the keys. Key and
// value belong to fn. An error of fn ends it and is returned.
func (s *Store) Load(fn func(key string, value []byte) error) error {
	return s.view("load state", func(tx *bolt.Tx) error {
		return tx.Bucket(bucketState).ForEach(func(k, v []byte) error {
			return fn(string(k), append([]byte{}, v...))
		})
	})
}

// SetSync keeps this boot's last synchronisation: at mono the wall clock was
// wall (unix ns), known to errMS. It is durable on nil, and later boots send it
// along with this boot's records.
func (s *Store) SetSync(mono, wall int64, errMS uint32) error {
	v := wire.MustEncode(wire.BootSync{Mono: mono, Wall: wall, ErrMS: errMS})
	return s.update("keep synchronisation", func(t *txn) error {
		return t.tx.Bucket(bucketMeta).Put(syncKey(t.boot), v)
	})
}

// Ready says that the start succeeded: the next start checks only what it needs
// at once. Without it the next start checks the whole file first.
func (s *Store) Ready() error {
	if err := os.Remove(s.cfg.marker()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove start marker: %w", err)
	}
	return nil
}

// Close writes the acknowledged position and releases the file. Commits that
// wait are refused with ErrClosed. Closing twice is fine.
func (s *Store) Close() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.lock == nil {
		return nil
	}
	s.mu.Lock()
	pending, broken := s.pending, s.broken
	s.mu.Unlock()
	var err error
	if pending && broken == nil && s.db != nil {
		err = s.transact("write acknowledged position", func(*txn) error { return nil })
		if errors.Is(err, ErrFull) {
			s.cfg.Logger.Warn("the disk is full: the cloud will send its state again", "error", err)
			err = nil
		}
	}
	err = errors.Join(err, s.release(broken), s.lock.Close())
	s.lock = nil
	return err
}

// release gives db up. A handle whose transaction ended in a panic may hold
// bbolt's own locks for good, so it is dropped instead of closed, but for its
// descriptor, which holds the lock on the file.
func (s *Store) release(broken error) error {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	db, file := s.db, s.file
	s.db, s.file = nil, nil
	switch {
	case db == nil:
		return nil
	case errors.Is(broken, ErrDamaged):
		return file.Close()
	}
	if err := db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// view runs fn in a read transaction; faults while reading become ErrDamaged.
func (s *Store) view(what string, fn func(*bolt.Tx) error) error {
	return s.viewSince(what, func() {}, fn)
}

// viewSince is view with a transaction that is no older than when first ran: it
// shows all that first found durable, but for what was dropped since.
func (s *Store) viewSince(what string, first func(), fn func(*bolt.Tx) error) error {
	s.swapping.RLock()
	defer s.swapping.RUnlock()
	if s.db == nil {
		return fmt.Errorf("%s: %w", what, ErrClosed)
	}
	if err := s.Broken(); errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%s: %w", what, err)
	}
	first()
	err := guard(func() error { return s.db.View(fn) })
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
	return err
}

// lockWait is how long Open waits for another process to release the store.
const lockWait = 200 * time.Millisecond
