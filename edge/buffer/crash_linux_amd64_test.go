package buffer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

func TestMain(m *testing.M) {
	if name := os.Getenv("BUFFER_SCRIPT"); name != "" {
		if err := runScript(name, os.Getenv("BUFFER_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, "script:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// scripted is the child's side: it works with a store and notes each answer it
// was given before it goes on.
type scripted struct {
	cfg   Config
	c     clock
	s     *Store
	notes *os.File
	n     int
}

func runScript(name, dir string) error {
	x := &scripted{notes: os.NewFile(3, "notes")}
	x.cfg = crashConfig(dir, &x.c)
	x.cfg.NoSync = name == "nosync"
	switch name {
	case "life", "nosync":
		return x.life()
	case "faults":
		return x.faults()
	case "convert":
		return x.convert()
	}
	return fmt.Errorf("no script %q", name)
}

func (x *scripted) note(format string, a ...any) {
	if _, err := fmt.Fprintf(x.notes, format, a...); err != nil {
		panic(err)
	}
}

func (x *scripted) open() (err error) {
	if x.s, err = Open(x.cfg); err != nil {
		return err
	}
	if err := x.s.Ready(); err != nil {
		return err
	}
	x.note("opened %s", x.s.Opened().Created)
	return nil
}

// commit stores one record of each lane and a state key that say the same.
func (x *scripted) commit(id string, size int) error {
	body := id + "/" + strings.Repeat("x", size)
	boot := x.s.Opened().Boot
	err := x.s.Commit(context.Background(), Change{
		Put:     map[string][]byte{"state/" + id: []byte(id)},
		Records: []Record{x.c.record(boot, wire.KindOpeningStarted, id), x.c.record(boot, wire.KindScan, body)},
	})
	if err == nil {
		x.note("ok %s", id)
	}
	return err
}

func (x *scripted) commits(n, size int) error {
	for range n {
		x.n++
		if err := x.commit(strconv.Itoa(x.n), size); err != nil {
			return err
		}
	}
	return nil
}

// ack acknowledges the first n waiting records of a lane. What it names is
// noted before, because from then on it may go.
func (x *scripted) ack(l wire.Lane, n int) error {
	from := x.s.Acked()[l]
	run, err := x.s.Read(l, from, n, 1<<20)
	if err != nil {
		return err
	}
	for _, r := range run.Records {
		rec, err := wire.DecodeRecord(r)
		if err != nil {
			return err
		}
		if rec.Kind == wire.KindGap {
			continue
		}
		var m map[uint]string
		if err := wire.Decode(rec.Body, &m); err != nil {
			return err
		}
		id, _, _ := strings.Cut(m[1], "/")
		x.note("cloud %d %s", l, id)
	}
	return x.s.Ack(run.Epoch, l, run.Next(), run.Head)
}

// life goes through creation, single and concurrent commits, acknowledgements,
// eviction, a new epoch and a second start.
func (x *scripted) life() error {
	concurrent := func() error {
		var wg sync.WaitGroup
		errs := make(chan error, 12)
		for p := range 4 {
			wg.Go(func() {
				for i := range 3 {
					errs <- x.commit(fmt.Sprintf("p%d-%d", p, i), 30)
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for i, step := range []func() error{
		x.open,
		func() error { return x.commits(24, 40) },
		func() error { return x.ack(1, 9) },
		func() error { return x.commits(3, 40) },
		func() error { return x.ack(0, 11) },
		concurrent,
		func() error { return x.commits(14, 230) },  // joins tails
		func() error { return x.commits(30, 7000) }, // evicts
		func() error { return x.s.NewEpoch(wire.GapStoreRolledBack, nil) },
		func() error { return x.commits(16, 40) },
		func() error { return x.s.Close() },
		x.open,
		func() error { return x.commits(14, 40) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// placeLayout1 puts the store of layout 1 in place, durably, and notes what its
// agent had promised.
func (x *scripted) placeLayout1() error {
	file, notes, err := layout1()
	if err != nil {
		return err
	}
	f, err := os.Create(x.cfg.fresh())
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(file, 0); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(x.cfg.fresh(), x.cfg.Path); err != nil {
		return err
	}
	if err := syncDir(x.cfg.Path); err != nil {
		return err
	}
	for _, n := range notes {
		x.note("%s", n)
	}
	return nil
}

// convert opens a store of layout 1 and goes on with it.
func (x *scripted) convert() error {
	x.c.mono.Store(1 << 20)
	x.n = 1000
	for i, step := range []func() error{
		x.placeLayout1,
		x.open,
		func() error { return x.commits(6, 40) },
		func() error { return x.ack(0, 20) },
		func() error { return x.commits(2, 7000) },
		func() error { return x.s.Close() },
		x.open,
		func() error { return x.commits(3, 40) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// faults commits on, whatever the disk says, reopening when it must.
func (x *scripted) faults() error {
	if err := x.open(); err != nil {
		return err
	}
	for range 40 {
		x.n++
		err := x.commit(strconv.Itoa(x.n), 60)
		switch {
		case err == nil:
		case errors.Is(err, ErrBroken):
			x.note("broken")
			for range 5 {
				if _, err = x.s.Reopen(); err == nil {
					break
				}
			}
			if err != nil {
				return err
			}
		case errors.Is(err, ErrFull):
			x.note("full")
		default:
			return err
		}
	}
	return nil
}

// disk is what is on the platter and what is on its way there.
type disk struct {
	inodes  map[int]*inode
	names   map[string]int
	pending []logged // operations on names
}

type inode struct {
	durable []byte
	pending []logged // writes and truncations
}

type logged struct {
	op
	index int
}

func newDisk() *disk { return &disk{inodes: map[int]*inode{}, names: map[string]int{}} }

// play takes operation i of the log.
func (d *disk) play(i int, o op) {
	switch o.kind {
	case opWrite, opTruncate:
		n := d.inodes[o.inode]
		n.pending = append(n.pending, logged{o, i})
	case opCreate:
		d.inodes[o.inode] = &inode{}
		d.pending = append(d.pending, logged{o, i})
	case opRename, opRemove:
		d.pending = append(d.pending, logged{o, i})
	case opSync, opFailedSync:
		if o.inode == 0 {
			d.pending = settle(d.pending, o, func(l logged) { applyName(d.names, l.op) })
			return
		}
		n := d.inodes[o.inode]
		n.pending = settle(n.pending, o, func(l logged) { n.durable = applyData(n.durable, l.op, nil) })
	}
}

// settle applies what a sync covers and returns the rest. What a failed sync
// covers is forgotten: the kernel reports such an error once and then takes the
// pages for written.
func settle(pending []logged, sync op, apply func(logged)) []logged {
	var rest []logged
	for _, l := range pending {
		switch {
		case l.index >= sync.covers:
			rest = append(rest, l)
		case sync.kind == opSync:
			apply(l)
		}
	}
	return rest
}

func applyName(names map[string]int, o op) {
	switch o.kind {
	case opCreate:
		names[o.name] = o.inode
	case opRename:
		if i, ok := names[o.name]; ok {
			names[o.to] = i
			delete(names, o.name)
		}
	case opRemove:
		delete(names, o.name)
	}
}

const sector = 512

// applyData returns b with o applied, only the sectors that keep allows.
func applyData(b []byte, o op, keep func() bool) []byte {
	if o.kind == opTruncate {
		if int(o.offset) <= len(b) {
			return b[:o.offset]
		}
		return append(b, make([]byte, int(o.offset)-len(b))...)
	}
	for at := 0; at < len(o.data); {
		n := min(sector-int(o.offset+int64(at))%sector, len(o.data)-at)
		if keep == nil || keep() {
			from := int(o.offset) + at
			if grow := from + n - len(b); grow > 0 {
				b = append(b, make([]byte, grow)...)
			}
			copy(b[from:], o.data[at:at+n])
		}
		at += n
	}
	return b
}

// cut is how much of what is on its way a power cut lets through.
type cut int

const (
	cutNone cut = iota // only what was synced
	cutAll             // everything
	cutSome            // any operation may be missing, whatever its order
	cutTorn            // any sector may be missing
	cuts
)

// image is the directory as the next start finds it.
func (d *disk) image(how cut, rnd *rand.Rand) map[string][]byte {
	names := map[string]int{}
	for n, i := range d.names {
		names[n] = i
	}
	through := len(d.pending)
	switch how {
	case cutNone:
		through = 0
	case cutSome, cutTorn:
		through = rnd.IntN(through + 1) // a directory's journal keeps its order
	}
	for _, l := range d.pending[:through] {
		applyName(names, l.op)
	}
	out := map[string][]byte{}
	for name, i := range names {
		b := slices.Clone(d.inodes[i].durable)
		for _, l := range d.inodes[i].pending {
			switch {
			case how == cutNone, how == cutSome && rnd.IntN(2) == 0:
			case how == cutTorn && l.kind == opWrite:
				b = applyData(b, l.op, func() bool { return rnd.IntN(2) == 0 })
			default:
				b = applyData(b, l.op, nil)
			}
		}
		out[name] = b
	}
	return out
}

// verdict of one image: what was promised and is not there.
type verdict struct{ lost, unusable []string }

// explore rebuilds every crash point of the log and opens each image.
func explore(t *testing.T, log []op) (images int, v verdict) {
	type job struct {
		files map[string][]byte
		facts told
		at    string
	}
	jobs := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			dir := t.TempDir()
			for j := range jobs {
				lost, err := startFrom(dir, j.files, j.facts)
				mu.Lock()
				for _, l := range lost {
					v.lost = append(v.lost, j.at+": "+l)
				}
				if err != nil {
					v.unusable = append(v.unusable, j.at+": "+err.Error())
				}
				mu.Unlock()
			}
		})
	}
	d, rnd := newDisk(), rand.New(rand.NewPCG(1, 2))
	facts := told{cloud: [2]map[string]int{{}, {}}}
	seen := map[[32]byte]bool{}
	for i, o := range log {
		if o.kind == opNote {
			facts.hear(string(o.data))
		} else {
			d.play(i, o)
		}
		for how := range cuts {
			files := d.image(how, rnd)
			if k := fingerprint(files, facts); !seen[k] {
				seen[k] = true
				images++
				f := facts
				f.ok = slices.Clip(f.ok)
				f.cloud = [2]map[string]int{cloned(facts.cloud[0]), cloned(facts.cloud[1])}
				jobs <- job{files, f, fmt.Sprintf("operation %d, cut %d", i, how)}
			}
		}
	}
	close(jobs)
	wg.Wait()
	return images, v
}

func cloned(m map[string]int) map[string]int {
	c := make(map[string]int, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

func fingerprint(files map[string][]byte, facts told) [32]byte {
	h := sha256.New()
	fmt.Fprint(h, len(facts.ok), len(facts.cloud[0]), len(facts.cloud[1]))
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprint(h, n, len(files[n]))
		h.Write(files[n])
	}
	return [32]byte(h.Sum(nil))
}

// startFrom opens an image as the next start would, compares it with what was
// promised, and works on with it.
func startFrom(dir string, files map[string][]byte, facts told) (lost []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	old, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range old {
		_ = os.Remove(f)
	}
	for n, b := range files {
		if err := os.WriteFile(filepath.Join(dir, n), b, 0o600); err != nil {
			return nil, err
		}
	}
	c := &clock{}
	c.mono.Store(1 << 40)
	cfg := crashConfig(dir, c)
	cfg.NoSync = true
	s, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	o := s.Opened()
	if o.Created == wire.GapStoreDamaged {
		return []string{"store taken for damaged"}, nil
	}
	if facts.created && o.Created != "" {
		return []string{"store is gone"}, nil
	}
	if lost, err = missing(s, facts); err != nil {
		return nil, err
	}
	if err := s.Check(context.Background()); err != nil {
		return lost, err
	}
	err = s.Commit(context.Background(), Change{Records: []Record{c.record(o.Boot, wire.KindTamper, "on")}, Urgent: true})
	return lost, err
}

func countOps(log []op, k opKind) (n int) {
	for _, o := range log {
		if o.kind == k {
			n++
		}
	}
	return n
}

// Whatever a power cut lets through, at any point of a store's life, the next
// start works and has all that was acknowledged.
func TestEveryPowerCutKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	log := record(t, "life", t.TempDir(), nil)
	require.Greater(t, countOps(log, opNote), 60)
	images, v := explore(t, log)
	t.Logf("%d images from %d operations, %d syncs", images, len(log), countOps(log, opSync))
	require.Empty(t, v.lost)
	require.Empty(t, v.unusable)
	require.GreaterOrEqual(t, images, 1500)
}

// The same while a store of layout 1 is converted and used on: at no point is
// anything lost that the agent before had promised.
func TestPowerCutWhileALayoutIsConvertedLosesNothing(t *testing.T) {
	t.Parallel()
	log := record(t, "convert", t.TempDir(), nil)
	images, v := explore(t, log)
	t.Logf("%d images from %d operations, %d syncs", images, len(log), countOps(log, opSync))
	require.Empty(t, v.lost)
	require.Empty(t, v.unusable)
	require.Greater(t, images, 150)
}

// The same explorer finds the fault when syncs are left out: so it can see.
func TestExplorerFindsMissingSyncs(t *testing.T) {
	t.Parallel()
	log := record(t, "nosync", t.TempDir(), nil)
	log = log[:len(log)/3]
	_, v := explore(t, log)
	require.NotEmpty(t, v.lost)
}

// A full disk, and syncs that fail once or twice, at any of the first calls:
// commits say so, nothing acknowledged is lost, also when power is cut later.
func TestFailingDiskLosesNothingAcknowledged(t *testing.T) {
	ring.SkipUnlessCheck(t, "single cuts and single failures")
	t.Parallel()
	for name, tc := range map[string]struct {
		fault fault
		want  string
	}{
		"disk full": {func(call uint64, name string, n int) syscall.Errno {
			if call == syscall.SYS_PWRITE64 && name == "s" && n >= 60 && n < 80 {
				return syscall.ENOSPC
			}
			return 0
		}, "full"},
		"sync of pages fails": {func(call uint64, name string, n int) syscall.Errno {
			if call == syscall.SYS_FDATASYNC && name == "s" && n == 21 {
				return syscall.EIO
			}
			return 0
		}, "broken"},
		"sync of meta fails": {func(call uint64, name string, n int) syscall.Errno {
			if call == syscall.SYS_FDATASYNC && name == "s" && n == 22 {
				return syscall.EIO
			}
			return 0
		}, "broken"},
		"sync of meta says disk full": {func(call uint64, name string, n int) syscall.Errno {
			if call == syscall.SYS_FDATASYNC && name == "s" && n == 22 {
				return syscall.ENOSPC
			}
			return 0
		}, "broken"},
		"write fails": {func(call uint64, name string, n int) syscall.Errno {
			if call == syscall.SYS_PWRITE64 && name == "s" && n == 70 {
				return syscall.EIO
			}
			return 0
		}, "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := record(t, "faults", t.TempDir(), tc.fault)
			var notes []byte
			for _, o := range log {
				if o.kind == opNote {
					notes = append(append(notes, o.data...), '\n')
				}
			}
			require.True(t, bytes.Contains(notes, []byte(tc.want)), "the fault was met")
			require.Contains(t, string(notes), "ok 40", "and got over")
			images, v := explore(t, log)
			require.Empty(t, v.lost)
			require.Empty(t, v.unusable)
			require.Greater(t, images, 100)
		})
	}
}
