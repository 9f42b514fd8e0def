package buffer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// bare is a file that is appended to and synced, the least that durability
// costs on this disk.
type bare struct {
	mu      sync.Mutex
	f       *os.File
	queue   []chan error
	pending []byte
	leading bool
}

func newBare(b *testing.B) *bare {
	f, err := os.OpenFile(filepath.Join(b.TempDir(), "bare"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(b, err)
	b.Cleanup(func() { f.Close() })
	return &bare{f: f}
}

func (f *bare) append(p []byte) error {
	if _, err := f.f.Write(p); err != nil {
		return err
	}
	return f.f.Sync()
}

// group appends p with whatever else waits, in one write and one sync.
func (f *bare) group(p []byte) error {
	done := make(chan error, 1)
	f.mu.Lock()
	f.pending = append(f.pending, p...)
	f.queue = append(f.queue, done)
	if f.leading {
		f.mu.Unlock()
		return <-done
	}
	f.leading = true
	for len(f.queue) > 0 {
		q, data := f.queue, f.pending
		f.queue, f.pending = nil, nil
		f.mu.Unlock()
		err := f.append(data)
		for _, d := range q {
			d <- err
		}
		runtime.Gosched()
		f.mu.Lock()
	}
	f.leading = false
	f.mu.Unlock()
	return <-done
}

func benchStore(b *testing.B, c *clock) *Store {
	cfg := testConfig(b, c)
	cfg.NoSync, cfg.MaxBytes = false, 0
	return open(b, cfg)
}

func benchRecord(c *clock) Record {
	return c.record(1, wire.KindOpeningSettled, strings.Repeat("x", 90))
}

// One durable record, against a bare append + fsync in turns with it.
func BenchmarkCommitOne(b *testing.B) {
	var c clock
	s, f := benchStore(b, &c), newBare(b)
	var ours, theirs []time.Duration
	for b.Loop() {
		r := benchRecord(&c)
		t0 := time.Now()
		err := s.Commit(context.Background(), Change{Records: []Record{r}, Put: map[string][]byte{"door/7": r.Bytes[:20]}})
		t1 := time.Now()
		if err == nil {
			err = f.append(r.Bytes)
		}
		t2 := time.Now()
		if err != nil {
			b.Fatal(err)
		}
		ours, theirs = append(ours, t1.Sub(t0)), append(theirs, t2.Sub(t1))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	p50, bare50 := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(p50)/float64(bare50), "ratio")
	b.ReportMetric(float64(bare50.Microseconds()), "bare-µs")
	b.ReportMetric(float64(p50.Microseconds()), "p50-µs")
}

// 64 producers, against a bare group commit of the same records.
func BenchmarkCommitMany(b *testing.B) {
	var c clock
	s, f := benchStore(b, &c), newBare(b)
	const producers, each = 64, 60
	run := func(one func(Record) error) time.Duration {
		t0 := time.Now()
		var wg sync.WaitGroup
		for range producers {
			wg.Go(func() {
				for range each {
					if err := one(benchRecord(&c)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return time.Since(t0)
	}
	var ratios, rates []float64 // of each round, for a disk that others use as well
	for b.Loop() {
		ours := run(func(r Record) error { return s.Commit(context.Background(), Change{Records: []Record{r}}) })
		theirs := run(func(r Record) error { return f.group(r.Bytes) })
		ratios = append(ratios, float64(theirs)/float64(ours))
		rates = append(rates, producers*each/ours.Seconds())
	}
	slices.Sort(ratios)
	slices.Sort(rates)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(rates[len(rates)/2], "records/s")
}

// A start with about 136 MB waiting: time until ready, and anonymous memory
// with a million records.
func BenchmarkOpenLarge(b *testing.B) {
	var c clock
	cfg := testConfig(b, &c)
	cfg.MaxBytes = 0
	s := open(b, cfg)
	for s.Ends()[1].Last < 1_000_000 {
		var recs []Record
		for range 4000 {
			recs = append(recs, c.record(1, wire.KindTelemetry, strings.Repeat("x", 60)))
		}
		commit(b, s, recs...)
	}
	require.NoError(b, s.Ready())
	require.NoError(b, s.Close())
	st, err := os.Stat(cfg.Path)
	require.NoError(b, err)
	var took []time.Duration
	for b.Loop() {
		t0 := time.Now()
		s, err := Open(cfg)
		took = append(took, time.Since(t0))
		require.NoError(b, err)
		require.NoError(b, s.Ready())
		require.NoError(b, s.Close())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ready-ms")
	b.ReportMetric(float64(st.Size())/(1<<20), "MB")

	runtime.GC()
	s, err = Open(cfg)
	require.NoError(b, err)
	for from := uint64(1); from < 1_000_000; {
		run, err := s.Read(1, from, 1024, 100<<10)
		require.NoError(b, err)
		from = run.Next()
	}
	b.ReportMetric(anonymousMB(b), "anon-MB")
	t0 := time.Now()
	require.NoError(b, s.Check(context.Background()))
	b.ReportMetric(time.Since(t0).Seconds()*1000, "fullcheck-ms")
	require.NoError(b, s.Close())
}

// anonymousMB is the resident anonymous memory of this process.
func anonymousMB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc")
	}
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	var kb float64
	_, err = fmt.Sscan(rest, &kb)
	require.NoError(b, err)
	return kb / 1024
}
