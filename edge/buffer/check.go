package buffer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"sync"

	bolt "go.etcd.io/bbolt"
)

// The check reads the file's pages itself. bbolt trusts what it reads: over a
// corrupt page it panics, and over a circle of pages it recurses until the
// process dies, which nothing can catch. So nothing of the file reaches bbolt
// before its meta pages, its own lists and the small buckets were walked here.
//
//	page      id 8 · flags 2 · count 2 · overflow 4, then the elements
//	branch    position 4 · key size 4 · page 8
//	leaf      flags 4 · position 4 · key size 4 · value size 4
//	bucket    root page 8 · sequence 8, then the page itself when root is 0
//	meta      magic 4 · version 4 · page size 4 · flags 4 · root 8 · sequence 8 ·
//	          freelist 8 · high water 8 · txid 8 · checksum 8 (FNV-1a of the rest)
const (
	pageHeader = 16
	elemSize   = 16

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaBytes   = 64

	maxDepth = 32
)

var ne = binary.NativeEndian

// pages walks the pages of one state of the file.
type pages struct {
	ctx  context.Context
	r    io.ReaderAt
	size int // of a page
	meta pageMeta
	seen []uint64 // bit per page that was reached or is free
}

type pageMeta struct {
	pageSize uint32
	root     uint64
	freelist uint64
	high     uint64 // one past the last page ever used
	txid     uint64
}

// entry is one element of a bucket. bucket is set for a nested one.
type entry struct {
	key, value []byte
	bucket     *subBucket
}

type subBucket struct {
	root     uint64
	sequence uint64
	inline   []byte // a page, when root is 0
}

func damaged(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}

// openPages reads the meta pages and takes the newest sound one, or the one of
// transaction txid when that is not 0.
func openPages(ctx context.Context, r io.ReaderAt, txid uint64) (*pages, error) {
	var best *pageMeta
	for size := int64(1024); size <= 64<<10 && best == nil; size *= 2 {
		for _, at := range []int64{0, size} {
			m, ok := readMeta(r, at)
			if !ok || int64(m.pageSize) != size {
				continue
			}
			if txid != 0 && m.txid != txid {
				continue
			}
			if best == nil || m.txid > best.txid {
				best = &m
			}
		}
	}
	if best == nil {
		return nil, damaged("no sound meta page")
	}
	if best.high > 1<<32 || best.root >= best.high || best.freelist >= best.high {
		return nil, damaged("meta page points past the end")
	}
	return newPages(ctx, r, int(best.pageSize), *best), nil
}

func newPages(ctx context.Context, r io.ReaderAt, size int, meta pageMeta) *pages {
	return &pages{ctx: ctx, r: r, size: size, meta: meta, seen: make([]uint64, meta.high/64+1)}
}

func readMeta(r io.ReaderAt, at int64) (m pageMeta, ok bool) {
	var b [metaBytes]byte
	if n, err := r.ReadAt(b[:], at+pageHeader); n < len(b) && err != nil {
		return m, false
	}
	sum := fnv.New64a()
	sum.Write(b[:56])
	if ne.Uint32(b[0:]) != metaMagic || ne.Uint32(b[4:]) != metaVersion || ne.Uint64(b[56:]) != sum.Sum64() {
		return m, false
	}
	return pageMeta{pageSize: ne.Uint32(b[8:]), root: ne.Uint64(b[16:]), freelist: ne.Uint64(b[32:]),
		high: ne.Uint64(b[40:]), txid: ne.Uint64(b[48:])}, true
}

// mark notes that pages id to id+n-1 are in use, each only once.
func (p *pages) mark(id, n uint64) error {
	if id < 2 || id >= p.meta.high || n > p.meta.high-id {
		return damaged("page %d of %d", id, p.meta.high)
	}
	for ; n > 0; id, n = id+1, n-1 {
		if p.seen[id/64]&(1<<(id%64)) != 0 {
			return damaged("page %d is used twice", id)
		}
		p.seen[id/64] |= 1 << (id % 64)
	}
	return nil
}

// page reads a page with its overflow.
func (p *pages) page(id uint64) ([]byte, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	var head [pageHeader]byte
	if err := p.readAt(head[:], id); err != nil {
		return nil, err
	}
	n := uint64(ne.Uint32(head[12:])) + 1
	if ne.Uint64(head[:]) != id {
		return nil, damaged("page %d says it is %d", id, ne.Uint64(head[:]))
	}
	if err := p.mark(id, n); err != nil {
		return nil, err
	}
	b := make([]byte, int(n)*p.size)
	return b, p.readAt(b, id)
}

// readAt fills b from page id on. A short file is damage; a failing disk is not.
func (p *pages) readAt(b []byte, id uint64) error {
	n, err := p.r.ReadAt(b, int64(id)*int64(p.size))
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return damaged("page %d lies past the end of the file", id)
	}
	return fmt.Errorf("read page %d: %w", id, err)
}

// walk calls fn with the elements of a tree of pages in order. low and high
// bound its keys; high nil is no bound.
func (p *pages) walk(id uint64, depth int, low, high []byte, fn func(entry) error) error {
	if depth > maxDepth {
		return damaged("page %d lies %d deep", id, depth)
	}
	b, err := p.page(id)
	if err != nil {
		return err
	}
	return p.elements(b, id, depth, low, high, fn)
}

func (p *pages) elements(b []byte, id uint64, depth int, low, high []byte, fn func(entry) error) error {
	flags, count := ne.Uint16(b[8:]), int(ne.Uint16(b[10:]))
	if pageHeader+count*elemSize > len(b) || flags != flagBranch && flags != flagLeaf || flags == flagBranch && count == 0 {
		return damaged("page %d: flags %#x, %d elements", id, flags, count)
	}
	var next []byte
	for i := range count {
		e, child, err := element(b, flags, i)
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		if bytes.Compare(e.key, low) < 0 || i > 0 && bytes.Equal(e.key, low) || high != nil && bytes.Compare(e.key, high) >= 0 {
			return damaged("page %d: key %d is out of order", id, i)
		}
		low = e.key
		if flags == flagLeaf {
			if err := fn(e); err != nil {
				return err
			}
			continue
		}
		if next = high; i+1 < count {
			n, _, err := element(b, flags, i+1)
			if err != nil {
				return fmt.Errorf("page %d: %w", id, err)
			}
			next = n.key
		}
		if err := p.walk(child, depth+1, e.key, next, fn); err != nil {
			return err
		}
	}
	return nil
}

// element reads element i of a page. Its bytes alias b.
func element(b []byte, flags uint16, i int) (e entry, child uint64, err error) {
	at := pageHeader + i*elemSize
	h := b[at : at+elemSize]
	var pos, ksize, vsize uint64
	var leafFlags uint32
	if flags == flagBranch {
		pos, ksize, child = uint64(ne.Uint32(h)), uint64(ne.Uint32(h[4:])), ne.Uint64(h[8:])
	} else {
		leafFlags, pos, ksize, vsize = ne.Uint32(h), uint64(ne.Uint32(h[4:])), uint64(ne.Uint32(h[8:])), uint64(ne.Uint32(h[12:]))
	}
	from := uint64(at) + pos
	if from+ksize+vsize > uint64(len(b)) {
		return e, 0, damaged("element %d lies past the page", i)
	}
	e.key, e.value = b[from:from+ksize:from+ksize], b[from+ksize:from+ksize+vsize]
	if leafFlags&1 == 0 {
		return e, child, nil
	}
	if vsize < 16 {
		return e, 0, damaged("bucket %d is too short", i)
	}
	s := subBucket{root: ne.Uint64(e.value), sequence: ne.Uint64(e.value[8:])}
	if s.root == 0 {
		if s.inline = e.value[16:]; len(s.inline) < pageHeader {
			return e, 0, damaged("bucket %d is too short", i)
		}
	}
	e.bucket, e.value = &s, nil
	return e, 0, nil
}

// bucket calls fn with the elements of a nested bucket.
func (p *pages) bucket(s *subBucket, fn func(entry) error) error {
	if s.root == 0 {
		return p.elements(s.inline, 0, 0, nil, nil, fn)
	}
	return p.walk(s.root, 1, nil, nil, fn)
}

// free marks the pages of the freelist.
func (p *pages) free() error {
	b, err := p.page(p.meta.freelist)
	if err != nil {
		return fmt.Errorf("freelist: %w", err)
	}
	if ne.Uint16(b[8:]) != flagFreelist {
		return damaged("freelist is a page with flags %#x", ne.Uint16(b[8:]))
	}
	count, ids := uint64(ne.Uint16(b[10:])), b[pageHeader:]
	if count == 0xFFFF {
		if len(ids) < 8 {
			return damaged("freelist is too short")
		}
		count, ids = ne.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("freelist of %d pages", count)
	}
	for i := range count {
		if err := p.mark(ne.Uint64(ids[i*8:]), 1); err != nil {
			return fmt.Errorf("freelist: %w", err)
		}
	}
	return nil
}

// spine walks the first and last path of a segment's tree: the pages that the
// start and the next commit read.
func (p *pages) spine(root uint64) error {
	for _, last := range []bool{false, true} {
		for id, depth := root, 0; ; depth++ {
			var child uint64
			b, err := p.peek(id)
			if err != nil {
				return err
			}
			flags, count := ne.Uint16(b[8:]), int(ne.Uint16(b[10:]))
			if flags == flagLeaf {
				if pageHeader+count*elemSize > len(b) {
					return damaged("page %d: %d elements", id, count)
				}
				break
			}
			if flags != flagBranch || count == 0 || pageHeader+count*elemSize > len(b) || depth > maxDepth {
				return damaged("page %d: flags %#x, %d elements", id, flags, count)
			}
			i := 0
			if last {
				i = count - 1
			}
			if _, child, err = element(b, flags, i); err != nil {
				return err
			}
			id = child
		}
	}
	return nil
}

// peek reads the page at id, with no claim on it.
func (p *pages) peek(id uint64) ([]byte, error) {
	if id < 2 || id >= p.meta.high {
		return nil, damaged("page %d of %d", id, p.meta.high)
	}
	b := make([]byte, p.size)
	if err := p.readAt(b, id); err != nil {
		return nil, err
	}
	if ne.Uint64(b) != id {
		return nil, damaged("page %d says it is %d", id, ne.Uint64(b))
	}
	if n := uint64(ne.Uint32(b[12:])) + 1; n > 1 {
		if id+n > p.meta.high || n > (64<<20)/uint64(p.size) {
			return nil, damaged("page %d with %d more", id, n-1)
		}
		b = make([]byte, int(n)*p.size)
		return b, p.readAt(b, id)
	}
	return b, nil
}

// checkFile checks the store at path before anything else reads it.
func checkFile(ctx context.Context, path string, full bool) (contents, error) {
	f, err := os.Open(path)
	if err != nil {
		return contents{}, err
	}
	defer f.Close()
	p, err := openPages(ctx, f, 0)
	if err != nil {
		return contents{}, err
	}
	return p.check(full)
}

// Check reads the whole store, every page and every chain, while it is in use.
// On ErrDamaged the store refuses everything, and the start marker is left
// behind, so that the next start or Reopen checks the whole file first and moves
// it aside. A check that ctx ends has found nothing, and returns ctx's error.
func (s *Store) Check(ctx context.Context) error {
	// While the transaction is open none of its pages is written again. Its meta
	// page is, two commits later: hence commits wait until that one is read.
	s.writing.Lock()
	release := sync.OnceFunc(s.writing.Unlock)
	defer release()
	err := s.view("check the store", func(tx *bolt.Tx) error {
		f, err := os.Open(s.cfg.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		p, err := openPages(ctx, f, uint64(tx.ID()))
		if err != nil {
			return err
		}
		release()
		_, err = p.check(true)
		if stopped := ctx.Err(); stopped != nil {
			return stopped // pages that were not read are not missing
		}
		return err
	})
	if errors.Is(err, ErrDamaged) {
		err = errors.Join(err, s.cfg.mark())
	}
	return err
}
