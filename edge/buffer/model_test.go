package buffer

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// The quick ring walks beside the model fewer times; -rapid.checks says otherwise.
var _ = flag.Set("rapid.checks", strconv.Itoa(ring.Count(30, 100)))

// modelLane is a lane as a plain list: records[i] has number i+1. All that was
// ever written stays in it.
type modelLane struct {
	records [][]byte
	heads   []wire.Head // heads[n] is the chain value after record n
	acked   uint64
}

func newModelLane(e wire.Epoch, l int) *modelLane {
	return &modelLane{heads: []wire.Head{wire.FirstHead(e, wire.Lane(l))}, acked: 1}
}

func (m *modelLane) append(raw []byte) {
	m.records = append(m.records, raw)
	m.heads = append(m.heads, m.heads[len(m.heads)-1].Next(raw))
}

type modelStore struct {
	lanes [2]*modelLane
	state map[string][]byte
}

// walk drives a store and its model.
type walk struct {
	t   *rapid.T
	cfg Config
	c   clock
	s   *Store
	m   modelStore
}

func (w *walk) open() {
	s, err := Open(w.cfg)
	require.NoError(w.t, err)
	w.s = s
}

// adopt takes the records that the store wrote by itself from number n on, up to
// the ones expected.
func (w *walk) fetch(l int, n uint64) []byte {
	run, err := w.s.Read(wire.Lane(l), n, 1, 1<<20)
	require.NoError(w.t, err)
	require.Equal(w.t, n, run.First)
	require.Len(w.t, run.Records, 1)
	return run.Records[0]
}

func (w *walk) commit() {
	t := w.t
	ch := Change{Put: map[string][]byte{}, Urgent: rapid.Bool().Draw(t, "urgent")}
	for range rapid.IntRange(0, 3).Draw(t, "puts") {
		k := fmt.Sprint("k", rapid.IntRange(0, 5).Draw(t, "key"))
		ch.Put[k] = nil
		if rapid.Bool().Draw(t, "put") {
			ch.Put[k] = []byte(fmt.Sprint(w.c.mono.Add(1)))
		}
	}
	kinds := []wire.Kind{wire.KindOpeningStarted, wire.KindScan, wire.KindTelemetry, wire.KindTelemetry}
	size := rapid.SampledFrom([]int{10, 10, 500, 6000}).Draw(t, "size")
	for range rapid.IntRange(0, 20).Draw(t, "records") {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		n := size
		if k == wire.KindOpeningStarted {
			n = min(n, 500)
		}
		ch.Records = append(ch.Records, w.c.record(w.s.Opened().Boot, k, strings.Repeat("x", n)))
	}
	oldest := w.s.Oldest()[1]
	err := w.s.Commit(context.Background(), ch)
	w.evicted(oldest) // room is made also for what is then refused
	if errors.Is(err, ErrFull) {
		// In a store this small a large change may also find its free pages
		// scattered.
		bytes := 0
		for _, r := range ch.Records {
			bytes += len(r.Bytes)
		}
		require.True(t, w.s.Filled() >= 75 || int64(bytes) > w.cfg.withDefaults().capacity()/8, "refused at %d %%", w.s.Filled())
		return
	}
	require.NoError(t, err)
	for k, v := range ch.Put {
		if v == nil {
			delete(w.m.state, k)
		} else {
			w.m.state[k] = v
		}
	}
	for _, r := range ch.Records {
		w.m.lanes[r.Kind.Lane()].append(r.Bytes)
	}
}

// evicted checks the gap that must stand in lane 0 when lane 1 lost records.
func (w *walk) evicted(before uint64) {
	after, m := w.s.Oldest()[1], w.m.lanes[1]
	first := max(before, m.acked)
	if after <= first {
		return
	}
	raw := w.fetch(0, uint64(len(w.m.lanes[0].records))+1)
	counts := map[wire.Kind]uint64{}
	for n := first; n < after; n++ {
		r, err := wire.DecodeRecord(m.records[n-1])
		require.NoError(w.t, err)
		counts[r.Kind]++
	}
	require.Equal(w.t, wire.Gap{Epoch: w.s.Epoch(), Lane: 1, First: first, Last: after - 1, Reason: wire.GapEvicted,
		Counts: counts, HeadAfter: &m.heads[after-1]}, gapOf(w.t, raw))
	w.m.lanes[0].append(raw)
}

func (w *walk) ack() {
	l := rapid.IntRange(0, 1).Draw(w.t, "lane")
	m := w.m.lanes[l]
	next := rapid.Uint64Range(1, uint64(len(m.records))+2).Draw(w.t, "next")
	var head wire.Head
	if next <= uint64(len(m.records))+1 {
		head = m.heads[next-1]
	}
	wrong := rapid.IntRange(0, 9).Draw(w.t, "wrong") == 0
	if wrong {
		head[3] ^= 1
	}
	err := w.s.Ack(w.s.Epoch(), wire.Lane(l), next, head)
	switch {
	case next < m.acked:
		require.ErrorIs(w.t, err, ErrStale)
	case next > uint64(len(m.records))+1:
		require.ErrorIs(w.t, err, ErrRolledBack)
	case wrong && (next >= w.s.Oldest()[l] || next == m.acked):
		require.ErrorIs(w.t, err, ErrForked)
	case wrong: // nothing left to compare with
		require.NoError(w.t, err)
		m.heads[next-1] = head
		m.acked = next
	default:
		require.NoError(w.t, err)
		m.acked = max(m.acked, next)
	}
}

func (w *walk) reopen() {
	require.NoError(w.t, w.s.Ready())
	require.NoError(w.t, w.s.Close())
	if rapid.Bool().Draw(w.t, "unready") {
		require.NoError(w.t, w.cfg.mark())
	}
	epoch := w.s.Opened().Epoch
	w.open()
	require.Equal(w.t, epoch, w.s.Epoch())
	require.Empty(w.t, w.s.Opened().Created)
	require.Equal(w.t, [2]uint64{w.m.lanes[0].acked, w.m.lanes[1].acked}, w.s.Acked())
}

func (w *walk) newEpoch() {
	oldest := w.s.Oldest()
	require.NoError(w.t, w.s.NewEpoch(wire.GapStoreRolledBack, nil))
	for l, old := range w.m.lanes {
		m := newModelLane(w.s.Epoch(), l)
		if l == 0 {
			m.append(w.fetch(0, 1))
		}
		for n := max(old.acked, oldest[l]); n <= uint64(len(old.records)); n++ {
			m.append(old.records[n-1])
		}
		w.m.lanes[l] = m
	}
}

// check compares everything that can be seen.
func (w *walk) check() {
	t := w.t
	state := map[string][]byte{}
	require.NoError(t, w.s.Load(func(k string, v []byte) error { state[k] = v; return nil }))
	require.Equal(t, w.m.state, state)
	for l, m := range w.m.lanes {
		last := uint64(len(m.records))
		require.Equal(t, wire.LaneEnd{Last: last, Head: m.heads[last]}, w.s.Ends()[l])
		from := rapid.Uint64Range(1, last+1).Draw(t, "from")
		run, err := w.s.Read(wire.Lane(l), from, 1000, 1<<20)
		require.NoError(t, err)
		require.Equal(t, max(from, w.s.Oldest()[l]), run.First)
		for i, r := range run.Records {
			require.Equal(t, m.records[run.First-1+uint64(i)], []byte(r))
		}
		require.Equal(t, m.heads[run.Next()-1], run.Head)
		if last > 0 && w.s.Oldest()[l] <= last && from <= last {
			require.NotEmpty(t, run.Records)
		}
		require.LessOrEqual(t, w.s.Backlog()[l], last)
	}
}

// Random lives of a store agree with a plain list in memory.
func TestStoreAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{t: rt}
		dir, err := os.MkdirTemp(t.TempDir(), "")
		require.NoError(rt, err)
		w.cfg = Config{Path: filepath.Join(dir, "s"), MaxBytes: 512 << 10, SegmentRecords: rapid.SampledFrom([]int{3, 7, 130}).Draw(rt, "segment"),
			Stamp: w.c.stamp, NoSync: true}
		w.open()
		defer func() { _ = w.s.Close() }()
		w.m.state = map[string][]byte{}
		for l := range w.m.lanes {
			w.m.lanes[l] = newModelLane(w.s.Epoch(), l)
		}
		w.m.lanes[0].append(w.fetch(0, 1))
		acts := map[string]func(*rapid.T){"": func(*rapid.T) { w.check() }}
		for name, act := range map[string]func(){"commit": w.commit, "commit again": w.commit, "commit more": w.commit,
			"ack": w.ack, "reopen": w.reopen, "new epoch": w.newEpoch} {
			acts[name] = func(at *rapid.T) { w.t = at; act() }
		}
		rt.Repeat(acts)
		require.NoError(rt, w.s.Check(context.Background()))
	})
}

// A circle of pages in the middle of a segment is found by whatever comes there
// first: bbolt would follow it until the memory is gone.
func TestCircleInsideASegmentIsFound(t *testing.T) {
	for name, use := range map[string]func(*Store) error{
		"start": nil,
		"read": func(s *Store) error {
			_, err := s.Read(0, 1, 1000, 1<<20)
			return err
		},
		"drop":      func(s *Store) error { return errors.Join(ackAll(s), s.Broken()) },
		"new epoch": func(s *Store) error { return s.NewEpoch(wire.GapStoreRolledBack, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c clock
			cfg := testConfig(t, &c)
			cfg.SegmentRecords = 60
			s := open(t, cfg)
			big := func(n int) {
				for range n {
					commit(t, s, c.record(1, wire.KindOpeningStarted, strings.Repeat("o", 900)))
				}
			}
			big(50)
			if name != "start" { // which reads from the first record that is not acknowledged
				require.NoError(t, ackAll(s))
			}
			require.NoError(t, s.Ready())
			require.NoError(t, s.Close())
			bendIntoCircle(t, cfg.Path)

			s = open(t, cfg)
			require.NoError(t, s.Ready())
			opened := s.Opened()
			if name != "start" {
				require.Empty(t, opened.Created, "the start reads only what it needs")
				big(2)
				if name == "drop" {
					big(20)
				}
				require.ErrorIs(t, use(s), ErrDamaged)
				var err error
				opened, err = s.Reopen()
				require.NoError(t, err)
			}
			require.Equal(t, wire.GapStoreDamaged, opened.Created)
			commit(t, s, c.record(1, wire.KindScan, "on"))
			require.NoError(t, s.Check(context.Background()))
		})
	}
}

// ackAll acknowledges everything that lane 0 holds.
func ackAll(s *Store) error {
	s.mu.Lock()
	end := s.head[0].end
	s.mu.Unlock()
	return s.Ack(s.Epoch(), 0, end.Last+1, end.Head)
}

// bendIntoCircle puts a page that leads to itself in the place of a middle page
// of the first segment.
func bendIntoCircle(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	p, err := openPages(context.Background(), bytes.NewReader(b), 0)
	require.NoError(t, err)
	var r roots
	require.NoError(t, p.walk(p.meta.root, 0, nil, nil, r.readRoot))
	root := int(r.segs[0][0].bucket.root) * p.size
	require.Equal(t, uint16(flagBranch), ne.Uint16(b[root+8:]))
	require.Greater(t, ne.Uint16(b[root+10:]), uint16(4))
	_, middle, err := element(b[root:root+p.size], flagBranch, 2)
	require.NoError(t, err)
	at := b[int(middle)*p.size:]
	copy(at[:p.size], b[root:root+p.size])
	ne.PutUint64(at, middle)
	ne.PutUint64(at[pageHeader+8:], middle) // of its first element
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

// Whatever happened to the file's bytes, a start ends with a store that works:
// the old one, or a new epoch that says so. It never panics or hangs.
func TestAnyDamageEndsInAWorkingStore(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.MaxBytes, cfg.SegmentRecords = 512<<10, 20
	s := open(t, cfg)
	for i := range 60 {
		require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{fmt.Sprint("key", i%7): make([]byte, 300)},
			Records: []Record{c.record(1, wire.KindScan, fmt.Sprint("s", i)), c.record(1, wire.KindOpeningStarted, strings.Repeat("o", 900))}}))
	}
	require.NoError(t, s.Close())
	sound, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)
	epoch := s.Opened().Epoch
	found := map[string]int{}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 600 {
		b := slices.Clone(sound)
		switch i % 4 {
		case 0: // a bit
			for range 1 + rnd.IntN(8) {
				b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
			}
		case 1: // a sector of something else
			at := rnd.IntN(len(b)/512) * 512
			copy(b[at:at+512], b[rnd.IntN(len(b)/512)*512:])
		case 2: // cut short
			b = b[:rnd.IntN(len(b))]
		case 3: // a page in another's place, as after a misdirected write
			from, to := rnd.IntN(len(b)/4096)*4096, rnd.IntN(len(b)/4096)*4096
			copy(b[to:to+4096], bytes.Clone(b[from:from+4096]))
			if to >= 8192 && rnd.IntN(2) == 0 { // and it claims to belong there
				ne.PutUint64(b[to:], uint64(to/4096))
			}
		}
		require.NoError(t, os.WriteFile(cfg.Path, b, 0o600))
		if rnd.IntN(2) == 0 {
			require.NoError(t, os.WriteFile(cfg.marker(), nil, 0o600))
		} else {
			_ = os.Remove(cfg.marker())
		}
		found[useDamaged(t, cfg, &c, epoch)]++
	}
	t.Log(found)
	require.Greater(t, found["new epoch"], 50)
	require.Greater(t, found["old epoch"], 50)
}

// useDamaged starts from a damaged file and uses the store until it works.
func useDamaged(t *testing.T, cfg Config, c *clock, epoch wire.Epoch) string {
	s, err := Open(cfg)
	require.NoError(t, err)
	defer s.Close()
	verdict := func() string {
		o := s.Opened()
		if o.Created == "" {
			require.Equal(t, epoch, o.Epoch)
			return "old epoch"
		}
		require.Equal(t, wire.GapStoreDamaged, o.Created)
		return "new epoch"
	}
	use := func() error {
		for l := range wire.Lane(wire.Lanes) {
			for n := uint64(1); ; {
				run, err := s.Read(l, n, 100, 1<<20)
				if err != nil {
					return err
				}
				if len(run.Records) == 0 {
					break
				}
				n = run.Next()
			}
		}
		if err := s.Load(func(string, []byte) error { return nil }); err != nil {
			return err
		}
		return s.Commit(context.Background(), Change{Records: []Record{c.record(s.Opened().Boot, wire.KindScan, "on")}})
	}
	if err := use(); err != nil { // found only while reading
		require.ErrorIs(t, err, ErrDamaged)
		_, err := s.Reopen()
		require.NoError(t, err)
		require.NoError(t, use())
		require.Equal(t, "new epoch", verdict())
		return "found later"
	}
	if s.Check(context.Background()) != nil {
		_, err := s.Reopen()
		require.NoError(t, err)
		require.NoError(t, use())
		return "found by the check"
	}
	return verdict()
}
