package buffer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/internal/lockfile"
	"github.com/postern-io/postern/protocol/wire"
)

func (c Config) marker() string { return c.Path + ".starting" }
func (c Config) fresh() string  { return c.Path + ".new" }

// mark leaves the start marker. It guards against starts that fail again and
// again, not against power cuts, so it is not synced.
func (c Config) mark() error {
	if err := os.WriteFile(c.marker(), nil, 0o600); err != nil {
		return fmt.Errorf("write start marker: %w", err)
	}
	return nil
}

// Open opens the store, creating it when there is none. It checks the meta
// pages, the free list, state and the segment index, or the whole file when the
// last start did not call Ready. A damaged file is moved aside and a new epoch
// begins: Opened says so. A file of an earlier layout is converted in one
// transaction. An error means that this start cannot have a store: ErrInUse, a
// file of a later layout (left as it is), or the file system's own.
func Open(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	lock, err := lockfile.Acquire(cfg.Path+".lock", lockWait)
	if errors.Is(err, lockfile.ErrHeld) {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", cfg.Path, err)
	}
	s := &Store{cfg: cfg, lock: lock, wake: make(chan struct{}, 1), writing: newTurn()}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", cfg.Path, err), s.release(err), lock.Close())
	}
	return s, nil
}

// start opens the file for a new boot.
func (s *Store) start() error {
	_, err := os.Stat(s.cfg.marker())
	unready := err == nil
	if err := s.cfg.mark(); err != nil {
		return err
	}
	return s.resume(unready, 0)
}

// resume loads the file and begins the boot of that number again, or the next
// one when it is 0. Damage that only the beginning came upon is treated as what a
// check finds: the file is loaded once more, and checked whole.
func (s *Store) resume(full bool, boot uint64) error {
	for {
		if err := s.load(full, boot); err != nil {
			return err
		}
		s.mu.Lock()
		s.broken = nil
		s.mu.Unlock()
		begun := boot
		if begun == 0 {
			begun = s.Opened().Boot + 1
		}
		err := s.begin(begun)
		if full || !errors.Is(err, ErrDamaged) {
			return err
		}
		full = true
		if err := s.release(err); err != nil {
			s.cfg.Logger.Warn("closing the damaged store failed", "error", err)
		}
	}
}

// Reopen opens the file again after ErrBroken or ErrDamaged, in the same boot,
// and says how it was found. When a new epoch was begun the file holds no state:
// the caller writes what it has in memory. Commits wait meanwhile.
func (s *Store) Reopen() (Opened, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	before := s.Opened()
	broken := s.Broken()
	if err := s.release(broken); err != nil {
		s.cfg.Logger.Warn("closing the broken store failed", "error", err)
	}
	_, err := os.Stat(s.cfg.marker())
	// What a failed sync left visible is durable only after one that succeeds,
	// that of beginning the boot again.
	if err := s.resume(err == nil || errors.Is(broken, ErrDamaged), before.Boot); err != nil {
		return before, fmt.Errorf("reopen store %s: %w", s.cfg.Path, err)
	}
	s.signal()
	return s.Opened(), nil
}

// begin writes the number of this boot and forgets synchronisations that no
// record needs any more.
func (s *Store) begin(boot uint64) error {
	s.mu.Lock()
	s.opened.Boot = boot
	s.mu.Unlock()
	return s.transact("begin boot", func(t *txn) error {
		meta := t.tx.Bucket(bucketMeta)
		if err := t.prune(meta); err != nil {
			return err
		}
		return meta.Put(keyBoot, seqKey(boot))
	})
}

// prune deletes synchronisations of boots before that of the oldest record not
// acknowledged.
func (t *txn) prune(meta *bolt.Bucket) error {
	oldest := t.boot
	for l := range t.next {
		ln := &t.next[l]
		if ln.acked.next > ln.end.Last {
			continue
		}
		err := ln.each(t.tx, max(ln.acked.next, ln.oldest()), func(_ uint64, r stored) (bool, error) {
			oldest = min(oldest, r.boot)
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	var old [][]byte
	c := meta.Cursor()
	for k, _ := c.Seek(syncKey(0)); len(k) == 9 && k[0] == 's'; k, _ = c.Next() {
		if binary.BigEndian.Uint64(k[1:]) < oldest {
			old = append(old, slices.Clone(k))
		}
	}
	for _, k := range old {
		if err := meta.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// load opens the file at Path, or makes a new one when there is none or the old
// one is damaged. boot is the least boot number a new file starts from.
func (s *Store) load(full bool, boot uint64) error {
	found, err := checkFile(context.Background(), s.cfg.Path, full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.cfg.Logger.Info("no store yet, creating one", "path", s.cfg.Path)
		return s.create(contents{boot: boot}, wire.GapStoreCreated, "")
	case err == nil:
		err = s.openFile()
	}
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	s.cfg.Logger.Error("store is damaged, moving it aside", "path", s.cfg.Path, "error", err)
	aside, err := s.cfg.quarantine()
	if err != nil {
		return err
	}
	found.boot = max(found.boot, boot)
	return s.create(found, wire.GapStoreDamaged, aside)
}

// openFile opens the checked file with bbolt and reads the index.
func (s *Store) openFile() error {
	if err := s.cfg.settle(); err != nil {
		return err
	}
	db, file, err := s.cfg.bolt(s.cfg.Path, s.cfg.NoSync)
	if err != nil {
		return err
	}
	err = guard(func() error { return s.index(db, file) })
	switch {
	case errors.Is(err, ErrDamaged):
		return errors.Join(err, file.Close()) // bbolt's own locks may be held for good
	case err != nil:
		return errors.Join(err, db.Close())
	}
	return nil
}

// settle makes durable what can be read. After a sync of a meta page failed, the
// kernel shows the page and takes it for written, though it is not on the disk.
// The next transaction would then write over pages that the disk's own state
// still needs. So both meta pages are written again, as they are, and synced.
func (c Config) settle() error {
	f, err := c.OpenFile(c.Path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := openPages(context.Background(), f, 0)
	if err != nil {
		return err
	}
	b := make([]byte, p.size)
	for id := range uint64(2) {
		if err := p.readAt(b, id); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, int64(id)*int64(p.size)); err != nil {
			return fmt.Errorf("settle meta page %d: %w", id, err)
		}
	}
	if c.NoSync {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// upgrade changes a file of an earlier layout into one of ours.
func upgrade(db *bolt.DB) error {
	var version uint64
	err := db.View(func(tx *bolt.Tx) (err error) {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			return damaged("no bucket %s", bucketMeta)
		}
		version, err = parseVersion(meta.Get(keyVersion))
		return err
	})
	if err != nil || version == layoutVersion {
		return err
	}
	if err := db.Update(convert); err != nil {
		return fmt.Errorf("convert layout %d: %w", version, err)
	}
	return nil
}

// index fills s from an open file.
func (s *Store) index(db *bolt.DB, file *os.File) error {
	if err := upgrade(db); err != nil {
		return err
	}
	opened := Opened{}
	var head layout
	err := db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil || tx.Bucket(bucketState) == nil || tx.Bucket(bucketAside) == nil {
			return damaged("a bucket is missing")
		}
		seg := meta.Get(keySegment)
		if len(seg) != 8 || copy(opened.Epoch[:], meta.Get(keyEpoch)) != len(opened.Epoch) {
			return damaged("meta is incomplete")
		}
		s.segment.Store(int64(binary.BigEndian.Uint64(seg)))
		if b := meta.Get(keyBoot); len(b) == 8 {
			opened.Boot = binary.BigEndian.Uint64(b)
		}
		var prev wire.Epoch
		if copy(prev[:], meta.Get(keyPrev)) == len(prev) {
			opened.Prev = &prev
		}
		var err error
		head, err = loadLayout(tx, opened.Epoch)
		return err
	})
	if err != nil {
		return err
	}
	head.noteUnread(file)
	s.adopt(db, file, opened, head)
	return nil
}

// adopt makes db the store's file.
func (s *Store) adopt(db *bolt.DB, file *os.File, opened Opened, head layout) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db, s.file, s.opened, s.head = db, file, opened, head
	s.acked = [2]position{head[0].acked, head[1].acked}
	s.cursor, s.pending = [2]position{}, false
}

// bolt opens a file with bbolt. Faults over its content become ErrDamaged.
func (c Config) bolt(path string, noSync bool) (*bolt.DB, *os.File, error) {
	var db *bolt.DB
	var file *os.File
	open := func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
		file, err = c.OpenFile(name, flag, perm)
		return file, err
	}
	err := guard(func() (err error) {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout:         lockWait,
			FreelistType:    bolt.FreelistMapType,
			MaxSize:         int(c.MaxBytes),
			InitialMmapSize: int(c.MaxBytes), // so that growing never waits for readers
			OpenFile:        open,
			NoSync:          noSync,
		})
		return err
	})
	if err != nil {
		if errors.Is(err, ErrDamaged) && file != nil { // a panic left it open
			err = errors.Join(err, lockfile.Release(file))
		}
		return nil, nil, fmt.Errorf("open %s: %w", path, classify(err))
	}
	db.AllocSize = c.allocSize()
	return db, file, nil
}

// keepDamaged is how many damaged files stay for inspection.
const keepDamaged = 2

// quarantine moves the damaged file aside and returns its new name.
func (c Config) quarantine() (string, error) {
	old, err := filepath.Glob(c.Path + ".damaged-*")
	if err != nil {
		return "", fmt.Errorf("list damaged stores: %w", err)
	}
	slices.Sort(old)
	for len(old) >= keepDamaged {
		if err := os.Remove(old[0]); err != nil {
			return "", fmt.Errorf("remove an older damaged store: %w", err)
		}
		old = old[1:]
	}
	aside := fmt.Sprintf("%s.damaged-%s", c.Path, time.Now().UTC().Format("20060102T150405.000000000"))
	if err := os.Rename(c.Path, aside); err != nil {
		return "", fmt.Errorf("move damaged store aside: %w", err)
	}
	return aside, nil
}

// create makes a new file and opens it. found is what is known of the damaged
// one before it.
func (s *Store) create(found contents, reason, aside string) error {
	id := identity{epoch: newEpochID(), boot: found.boot}
	if !found.epoch.IsZero() {
		id.prev = &found.epoch
	}
	ns, err := s.cfg.build(id, gapsFor(found, reason))
	if err != nil {
		return err
	}
	if err := s.cfg.publish(ns.db); err != nil {
		return errors.Join(err, ns.db.Close())
	}
	ns.opened.Created, ns.opened.Quarantined = reason, aside
	s.segment.Store(ns.segment.Load())
	s.adopt(ns.db, ns.file, ns.opened, ns.head)
	return nil
}

// gapsFor says why a new file begins, and what went with a damaged one: in both
// lanes everything from the acknowledged position on, to an unknown end.
func gapsFor(found contents, reason string) []wire.Gap {
	if reason == wire.GapStoreCreated {
		return []wire.Gap{{Reason: reason}}
	}
	var gaps []wire.Gap
	for l := range found.acked {
		gaps = append(gaps, wire.Gap{Epoch: found.epoch, Lane: wire.Lane(l), First: max(found.acked[l], 1), Reason: reason})
	}
	return gaps
}

func newEpochID() (e wire.Epoch) {
	_, _ = rand.Read(e[:]) // never fails: the runtime ends the process instead
	return e
}

// identity is what a new file starts with.
type identity struct {
	epoch wire.Epoch
	prev  *wire.Epoch
	boot  uint64
}

// build makes a file under the temporary name, with its buckets and the records
// that say why it begins. Nothing of it is synced yet.
func (c Config) build(id identity, gaps []wire.Gap) (*Store, error) {
	if err := os.Remove(c.fresh()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove an unfinished store: %w", err)
	}
	db, file, err := c.bolt(c.fresh(), true)
	if err != nil {
		return nil, err
	}
	ns := &Store{cfg: c, wake: make(chan struct{}, 1), writing: newTurn()}
	ns.segment.Store(int64(c.SegmentRecords))
	var head layout
	err = db.Update(func(tx *bolt.Tx) error { return initial(tx, id, c, &head) })
	if err == nil {
		ns.adopt(db, file, Opened{Epoch: id.epoch, Prev: id.prev, Boot: id.boot}, head)
		err = ns.transact("begin epoch", func(t *txn) error {
			t.boot = max(t.boot, 1) // the gap belongs to the boot about to begin
			for _, g := range gaps {
				if err := t.appendGap(g); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create store: %w", err), db.Close())
	}
	return ns, nil
}

// initial writes the buckets of an empty store.
func initial(tx *bolt.Tx, id identity, cfg Config, head *layout) error {
	for _, name := range [][]byte{bucketMeta, bucketState, bucketAside, bucketLanes, bucketOld[0], bucketOld[1]} {
		if _, err := tx.CreateBucket(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	puts := map[string][]byte{
		string(keyEpoch): id.epoch[:], string(keyBoot): seqKey(id.boot),
		string(keyVersion): seqKey(layoutVersion), string(keySegment): seqKey(uint64(cfg.SegmentRecords)),
	}
	if id.prev != nil {
		puts[string(keyPrev)] = id.prev[:]
	}
	for k, v := range puts {
		if err := meta.Put([]byte(k), v); err != nil {
			return err
		}
	}
	for l := range head {
		head[l] = newLane(id.epoch, wire.Lane(l))
		end := head[l].acked.encode()
		if err := errors.Join(tx.Bucket(bucketLanes).Put(keyEnd[l], end), tx.Bucket(bucketOld[l]).Put(keyEnd[l][:1], end)); err != nil {
			return err
		}
	}
	return nil
}

// publish makes db, the file under the temporary name, the store: its content is
// synced first, then it is renamed, then the name is synced. A power cut leaves
// the old file or the new one, each whole.
func (c Config) publish(db *bolt.DB) error {
	if !c.NoSync {
		if err := db.Sync(); err != nil {
			return fmt.Errorf("sync new store: %w", err)
		}
		db.NoSync = false
	}
	if err := os.Rename(c.fresh(), c.Path); err != nil {
		return fmt.Errorf("put new store in place: %w", err)
	}
	if c.NoSync {
		return nil
	}
	return syncDir(c.Path)
}
