package scanner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/wire"
)

// memory plays the store: what fails may be there all the same.
type memory struct {
	boot    uint64
	start   time.Time
	used    int64
	fail    func() (written, err bool)
	mu      sync.Mutex // guards the rest
	state   map[string][]byte
	records []wire.Record
}

func (m *memory) held() []wire.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

var errDisk = errors.New("the disk fails")

func (m *memory) Stamp(at time.Time) wire.Record {
	m.used++
	return wire.Record{At: at.UnixNano(), Boot: m.boot, Mono: int64(at.Sub(m.start)) - int64(at.Sub(m.start))%1000 + m.used%1000, Clock: wire.ClockSynced}
}

func (m *memory) Keep(_ context.Context, put map[string][]byte, records []wire.Record) error {
	written, failed := false, false
	if m.fail != nil {
		written, failed = m.fail()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !failed || written {
		maps.Copy(m.state, put)
		m.records = append(m.records, records...)
	}
	if failed {
		return errDisk
	}
	return nil
}

func newMemory() *memory {
	return &memory{boot: 1, start: time.Now(), state: map[string][]byte{}}
}

func (m *memory) recorder() *Recorder {
	return NewRecorder(m, m.state[KeyWindows], slog.New(slog.DiscardHandler))
}

func (m *memory) scans(t testing.TB) (out []wire.Scan) {
	for _, r := range m.held() {
		if r.Kind == wire.KindScan {
			var s wire.Scan
			require.NoError(t, wire.Decode(r.Body, &s))
			out = append(out, s)
		}
	}
	return out
}

// The same code within its time is one scan, and the count of repeats is another
// record of it.
func TestRepeatsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := m.recorder()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		scan := func(line string, c Config) Outcome { return r.Scan(ctx, time.Now(), []byte(line), c).Outcome }
		other := dock
		other.Post = "Dock 4"
		require.Equal(t, Accepted, scan("SR1234", dock))
		time.Sleep(time.Second)
		require.Equal(t, Accepted, scan("SR1234", other), "another post")
		require.Equal(t, Repeated, scan("]C0SR1234", dock), "the same parcel, whatever its label")
		time.Sleep(2 * time.Second)
		require.Equal(t, Repeated, scan("SR1234", dock))
		require.Equal(t, Unreadable, scan("]C100340123450000000018", dock))
		require.Equal(t, Unreadable, scan("]C100340123450000000018", dock), "of a repeat it is said again what to do")
		require.Len(t, m.held(), 5)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, Accepted, scan("SR1234", dock), "5 s after the first")
		require.Len(t, m.times(t, "SR1234"), 3)
		stop()
		require.NoError(t, <-done)
		var counts []wire.Scan
		for _, s := range m.scans(t) {
			if s.Repeats > 0 {
				counts = append(counts, s)
			}
		}
		require.Len(t, counts, 2)
		require.Equal(t, wire.Scan{Raw: []byte("SR1234"), Certainty: "exact", Post: "Dock 3", Step: "received", Repeats: 2}, counts[0])
		require.EqualValues(t, 1, counts[1].Repeats, "the open window's at the end")
	})
}

// A post without end of different codes keeps its memory bounded.
func TestManyCodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the windows of real time end on a busy machine
		m := newMemory()
		r := m.recorder()
		n := 200
		if ring.Check() {
			n = 2 * maxWindows
		}
		now := time.Now()
		for i := range n {
			require.Equal(t, Accepted, r.Scan(t.Context(), now.Add(time.Duration(i)*time.Microsecond), fmt.Appendf(nil, "SR-%d", i), dock).Outcome)
		}
		require.LessOrEqual(t, len(r.open), maxWindows)
		require.LessOrEqual(t, len(m.state[KeyWindows]), maxWindows*64)
		require.Equal(t, Repeated, r.Scan(t.Context(), now, fmt.Appendf(nil, "SR-%d", n-1), dock).Outcome)
		r = m.recorder()
		require.Equal(t, Repeated, r.Scan(t.Context(), now, fmt.Appendf(nil, "SR-%d", max(0, n-maxWindows+1)), dock).Outcome, "also after a start")
	})
}

// A store that fails before or after it has written, power cuts at any moment and
// starts again: the events of a code are at least its time apart, and what is shown
// is stored.
func TestPowerCutsMakeNoSecondEvent(t *testing.T) {
	t.Parallel()
	seeds := 200
	if ring.Check() {
		seeds = 3000
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) { cutAndScan(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func cutAndScan(t *testing.T, rnd *rand.Rand) {
	m := newMemory()
	trouble := rnd.IntN(50)
	m.fail = func() (bool, bool) { return rnd.IntN(2) == 0, rnd.IntN(100) < trouble }
	r := m.recorder()
	for range 60 {
		time.Sleep(time.Duration(rnd.IntN(2500)) * time.Millisecond)
		if rnd.IntN(8) == 0 { // power goes and comes back
			m.boot, m.start = m.boot+1, time.Now()
			r = m.recorder()
		}
		if rnd.IntN(4) == 0 {
			r.settle(t.Context(), time.Now())
		}
		code := fmt.Sprintf("SR-%d", rnd.IntN(3))
		before, at := len(m.times(t, code)), time.Now()
		out := r.Scan(t.Context(), at, []byte(code), dock).Outcome
		times := m.times(t, code)
		switch out {
		case Accepted, Repeated:
			require.NotEmpty(t, times, "shown, and not stored")
			require.Less(t, at.Sub(times[len(times)-1]), dock.Repeat, "shown, and not stored")
			require.True(t, out == Accepted || len(times) == before)
		default:
			require.Equal(t, Failed, out)
		}
		for i := 1; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i].Sub(times[i-1]), dock.Repeat, "two events of one scan")
		}
	}
}

// times are the moments of a code's events, each once.
func (m *memory) times(t testing.TB, code string) (out []time.Time) {
	seen := map[string]bool{}
	for _, r := range m.held() {
		id := fmt.Sprint(r.Kind, r.Boot, r.Mono)
		if r.Kind != wire.KindTrackingEvent || seen[id] {
			continue
		}
		seen[id] = true
		var e wire.TrackingEvent
		require.NoError(t, wire.Decode(r.Body, &e))
		if e.Subject == code {
			out = append(out, time.Unix(0, r.At))
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// A clock that went back over a start ends no window later than it would have
// lasted.
func TestWindowsOfAnEarlierStart(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := windows{}
	w[markOf(dock, "a")] = &window{took: 5 * time.Second, kept: now.UnixNano() + int64(3*time.Second), outcome: Accepted}
	w[markOf(dock, "b")] = &window{took: 5 * time.Second, kept: now.UnixNano() - 1}
	kept := w.dump(now.UnixNano())
	for shift, left := range map[time.Duration]time.Duration{0: 3 * time.Second, 2 * time.Second: time.Second, 4 * time.Second: 0, -time.Hour: 5 * time.Second} {
		got, err := loadWindows(kept, now, now.Add(shift).UnixNano())
		require.NoError(t, err)
		x := got[markOf(dock, "a")]
		if left == 0 {
			require.Nil(t, x)
			continue
		}
		require.Equal(t, now.Add(left), x.ends, "%s", shift)
		require.Len(t, got, 1)
	}
	_, err := loadWindows([]byte("x"), now, 0)
	require.Error(t, err)
}

// A scan from its line to the store's doorstep, and its ratio to reading the label
// alone in the same run.
func BenchmarkScan(b *testing.B) {
	line := []byte("]C1003401234500000000174000012" + gs + "401CON123456")
	const reads = 20000
	began := time.Now()
	for range reads {
		if _, err := gs1.Read(line); err != nil {
			b.Fatal(err)
		}
	}
	alone := float64(time.Since(began)) / reads
	m := newMemory()
	r := m.recorder()
	now := time.Now()
	for b.Loop() {
		now = now.Add(dock.Repeat)
		if out := r.Scan(b.Context(), now, line, dock); out.Outcome != Accepted {
			b.Fatal(out)
		}
		m.records = m.records[:0]
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/alone, "reads/scan")
}
