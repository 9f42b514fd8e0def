package buffer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// alter changes a closed store's file with bbolt, past the rules of this package.
func alter(t *testing.T, cfg Config, fn func(*bolt.Tx) error) {
	db, err := bolt.Open(cfg.Path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(fn))
	require.NoError(t, db.Close())
}

// filled is a closed store whose lane 1 has records 1 to n, acknowledged below
// next when that is above 1.
func filled(t *testing.T, c *clock, n int, next uint64) Config {
	cfg := testConfig(t, c)
	s := open(t, cfg)
	for i := range n {
		commit(t, s, c.record(1, wire.KindScan, fmt.Sprint("s", i+1)))
	}
	if next > 1 {
		run, err := s.Read(1, 1, int(next-1), 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.Ack(s.Epoch(), 1, run.Next(), run.Head))
	}
	require.NoError(t, s.Ready())
	require.NoError(t, s.Close())
	return cfg
}

// What went with a damaged file is what the cloud did not have: the gap begins at
// the acknowledged position.
func TestGapOfADamagedStoreBeginsWhereTheCloudStopped(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := filled(t, &c, 6, 5)
	alter(t, cfg, func(tx *bolt.Tx) error { return tx.DeleteBucket(bucketState) })
	s := open(t, cfg)
	require.Equal(t, wire.GapStoreDamaged, s.Opened().Created)
	var firsts []uint64
	run, err := s.Read(0, 1, 10, 1<<20)
	require.NoError(t, err)
	for _, r := range run.Records {
		g := gapOf(t, r)
		firsts = append(firsts, g.First)
	}
	require.Equal(t, []uint64{1, 5}, firsts)
}

// A full check says which record is wrong, and how.
func TestFullCheckNamesTheRecord(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*bolt.Bucket) error
		want   string
	}{
		"number with a hole before it": {func(b *bolt.Bucket) error {
			v := bytes.Clone(b.Get(seqKey(3)))
			return errors.Join(b.Delete(seqKey(3)), b.Put(seqKey(4), v))
		}, "record 3 is missing"},
		"too short": {func(b *bolt.Bucket) error { return b.Put(seqKey(2), []byte{1, 0}) }, "record 2: store damaged: stored record is too short"},
		"bad frame": {func(b *bolt.Bucket) error { return b.Put(seqKey(2), []byte{1, 7, 1, 1}) }, "record 2: store damaged: stored record has a bad frame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c clock
			cfg := filled(t, &c, 3, 1)
			_, err := checkFile(t.Context(), cfg.Path, true)
			require.NoError(t, err)
			alter(t, cfg, func(tx *bolt.Tx) error { return tt.change(tx.Bucket(segmentName(1, 1))) })
			_, err = checkFile(t.Context(), cfg.Path, true)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// A position is a number and a chain value: one of another size is refused by
// its size.
func TestIndexRefusesPositionsOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{keyEnd[1], keyAcked[1]} {
		var c clock
		cfg := filled(t, &c, 3, 2)
		alter(t, cfg, func(tx *bolt.Tx) error { return tx.Bucket(bucketLanes).Put(key, []byte("seven77")) })
		db, err := bolt.Open(cfg.Path, 0o600, nil)
		require.NoError(t, err)
		require.ErrorContains(t, db.View(func(tx *bolt.Tx) error {
			_, err := loadLayout(tx, wire.Epoch{1})
			return err
		}), "lane 1: store damaged: position of 7 bytes", "%s", key)
		require.NoError(t, db.Close())
	}
}

// pageFile is a file of pages of 1 KiB; page gives one of them its head.
type pageFile []byte

func (f pageFile) page(id uint64, flags, count uint16) []byte {
	b := f[id*1024 : (id+1)*1024]
	ne.PutUint64(b, id)
	ne.PutUint16(b[8:], flags)
	ne.PutUint16(b[10:], count)
	return b[pageHeader:]
}

// meta writes both meta pages.
func (f pageFile) meta(root, freelist, high uint64) {
	for id := range uint64(2) {
		b := f.page(id, 0x04, 0)
		ne.PutUint32(b, metaMagic)
		ne.PutUint32(b[4:], metaVersion)
		ne.PutUint32(b[8:], 1024)
		ne.PutUint64(b[16:], root)
		ne.PutUint64(b[32:], freelist)
		ne.PutUint64(b[40:], high)
		ne.PutUint64(b[48:], id)
		f.seal(id)
	}
}

// seal writes the checksum of a meta page.
func (f pageFile) seal(id uint64) {
	b := f[id*1024+pageHeader:]
	sum := fnv.New64a()
	sum.Write(b[:56])
	ne.PutUint64(b[56:], sum.Sum64())
}

// A meta page of another format, or of another version of it, is none, though its checksum
// holds.
func TestMetaPageOfAnotherFormatIsNotSound(t *testing.T) {
	t.Parallel()
	for _, at := range []uint64{0, 4} {
		f := make(pageFile, 8*1024)
		f.meta(7, 7, 8)
		for id := range uint64(2) {
			f[id*1024+pageHeader+at]++
			f.seal(id)
		}
		_, err := openPages(t.Context(), bytes.NewReader(f), 0)
		require.ErrorIs(t, err, ErrDamaged, "byte %d", at)
		require.ErrorContains(t, err, "no sound meta page", "byte %d", at)
	}
}

// A meta page names pages below the number that was never used.
func TestMetaPageThatPointsPastTheEndIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		root, freelist, high uint64
		ok                   bool
	}{
		{7, 7, 8, true}, {8, 2, 8, false}, {2, 8, 8, false}, {math.MaxUint64, 2, 8, false},
		{2, 3, 1 << 32, true}, {2, 3, 1<<32 + 1, false},
	} {
		f := make(pageFile, 8*1024)
		f.meta(tt.root, tt.freelist, tt.high)
		_, err := openPages(t.Context(), bytes.NewReader(f), 0)
		if tt.ok {
			require.NoError(t, err, "%+v", tt)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged, "%+v", tt)
		require.ErrorContains(t, err, "meta page points past the end", "%+v", tt)
	}
}

// A tree of pages may be as deep as maxDepth. Its keys are in order and no page of it is used
// twice, so its depth alone refuses a deeper one.
func TestTreeOfTooManyLevelsIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		branches int // above the leaf
		want     string
	}{{maxDepth, ""}, {maxDepth + 1, "page 35 lies 33 deep"}} {
		f := make(pageFile, 64*1024)
		for i := range tt.branches {
			id := 2 + uint64(i)
			ne.PutUint64(f.page(id, flagBranch, 1)[8:], id+1) // the page of its one element
		}
		f.page(2+uint64(tt.branches), flagLeaf, 0)
		p := newPages(t.Context(), bytes.NewReader(f), 1024, pageMeta{high: 64})
		err := p.walk(2, 0, nil, nil, nil)
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, tt.want)
	}
}

// A free page is one of the file's, behind the meta pages. The number of the last page that 64
// bits can name passed for one: the number after it is 0.
func TestFreelistOfPagesThatAreNoneIsRefused(t *testing.T) {
	t.Parallel()
	for free, ok := range map[uint64]bool{2: true, 0: false, 1: false, 3: false, 4: true, 7: true, 8: false, 9: false, math.MaxUint64 - 1: false, math.MaxUint64: false} {
		f := make(pageFile, 8*1024)
		ne.PutUint64(f.page(3, flagFreelist, 1), free)
		err := newPages(t.Context(), bytes.NewReader(f), 1024, pageMeta{high: 8, freelist: 3}).free()
		if ok {
			require.NoError(t, err, "page %d", free)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged, "page %d", free)
	}
}

// A page ends, with the pages that it goes on in, below the number that was never used, also in a
// file that is longer.
func TestPageThatGoesOnPastTheEndIsRefused(t *testing.T) {
	t.Parallel()
	for more, ok := range map[uint32]bool{0: true, 5: true, 6: false, 7: false, math.MaxUint32: false} {
		f := make(pageFile, 16*1024)
		f.page(2, flagLeaf, 0)
		ne.PutUint32(f[2*1024+12:], more)
		_, err := newPages(t.Context(), bytes.NewReader(f), 1024, pageMeta{high: 8}).page(2)
		if ok {
			require.NoError(t, err, "%d more", more)
			continue
		}
		require.ErrorIs(t, err, ErrDamaged, "%d more", more)
	}
}

// A page between the root of a segment and its records is a branch with elements.
func TestSpineRefusesPagesThatAreNoBranch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flags, count uint16
		want         string
	}{
		{flagBranch, 0, "page 2: flags 0x1, 0 elements"},
		{0x08, 1, "page 2: flags 0x8, 1 elements"},
		{flagBranch, 1000, "page 2: flags 0x1, 1000 elements"},
		{flagLeaf, 1000, "page 2: 1000 elements"},
	} {
		f := make(pageFile, 4*1024)
		f.page(2, tt.flags, tt.count)
		p := &pages{ctx: t.Context(), r: bytes.NewReader(f), size: 1024, meta: pageMeta{high: 4}}
		err := p.spine(2)
		require.ErrorIs(t, err, ErrDamaged, "%+v", tt)
		require.ErrorContains(t, err, tt.want)

		// The check of the whole file refuses them too, before it reads an element.
		err = newPages(t.Context(), bytes.NewReader(f), 1024, pageMeta{high: 4}).walk(2, 0, nil, nil, func(entry) error { return nil })
		require.ErrorIs(t, err, ErrDamaged, "%+v", tt)
		require.ErrorContains(t, err, fmt.Sprintf("page 2: flags %#x, %d elements", tt.flags, tt.count))
	}
}

// What a record takes of a page is exact: it decides how many fit into a tail.
func TestSizeOfAStoredRecord(t *testing.T) {
	t.Parallel()
	for _, boot := range []uint64{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 63, math.MaxUint64} {
		for _, before := range []*wire.Head{nil, {1}} {
			r := stored{kind: wire.KindScan, boot: boot, before: before, record: []byte("record")}
			require.EqualValues(t, len(r.encode())+8+elemSize, r.size(), "boot %d", boot)
		}
	}
}

// Numbers up to 255 are layouts, of this agent or a later one; others are damage.
func TestNumbersOfLayouts(t *testing.T) {
	t.Parallel()
	for n, harmed := range map[uint64]bool{0: true, 3: false, 255: false, 256: true, math.MaxUint64: true} {
		_, err := parseVersion(seqKey(n))
		require.Error(t, err)
		require.Equal(t, harmed, errors.Is(err, ErrDamaged), "layout %d: %v", n, err)
	}
	for _, n := range []uint64{1, 2} {
		got, err := parseVersion(seqKey(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
}

// An acknowledged position that finds no room is left to the cloud, which says it
// again. Any other failure of the last write is the caller's to know.
func TestCloseReportsAFailedWriteButNotAFullDisk(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
		var c clock
		cfg := testConfig(t, &c)
		var disk error
		cfg.Disk = func() error { return disk }
		s := open(t, cfg)
		commit(t, s, c.record(1, wire.KindScan, "a"), c.record(1, wire.KindScan, "b"))
		run, err := s.Read(1, 1, 1, 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.Ack(s.Epoch(), 1, run.Next(), run.Head))
		disk = fault
		if err = s.Close(); errors.Is(fault, syscall.ENOSPC) {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, fault)
			require.ErrorContains(t, err, "write acknowledged position")
		}
	}
}

// An error of a read says what was read.
func TestErrorsOfReadsNameTheRead(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"k": []byte("v")}}))
	own := errors.New("not mine")
	err := s.Load(func(string, []byte) error { return own })
	require.ErrorIs(t, err, own)
	require.ErrorContains(t, err, "load state: not mine")
}

// What lies under the temporary name and cannot be removed is named.
func TestUnfinishedStoreThatStaysIsNamed(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.fresh(), "inner"), 0o700))
	_, err := Open(cfg)
	require.ErrorContains(t, err, "remove an unfinished store")
	require.ErrorContains(t, err, cfg.fresh())
}

// Of the records that the cloud refused for good a hundred stay, of any epoch.
func TestRefusedRecordsStayUpToAHundred(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	require.NoError(t, s.update("fill", func(t *txn) error {
		b := t.tx.Bucket(bucketAside)
		for i := range keepAside - 1 {
			if err := b.Put(append(make([]byte, 17), seqKey(uint64(i+1))...), []byte("r")); err != nil {
				return err
			}
		}
		return nil
	}))
	count := func() (n int, first bool) {
		require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
			b := tx.Bucket(bucketAside)
			n, first = b.Stats().KeyN, b.Get(append(make([]byte, 17), seqKey(1)...)) != nil
			return nil
		}))
		return n, first
	}
	for _, first := range []bool{true, false} {
		commit(t, s, c.record(1, wire.KindScan, "refused"))
		require.NoError(t, s.NewEpoch(wire.GapRefused, &Refused{Lane: 1, Seq: s.Ends()[1].Last}))
		n, kept := count()
		require.Equal(t, keepAside, n)
		require.Equal(t, first, kept)
	}
}
