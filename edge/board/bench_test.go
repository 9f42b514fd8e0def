package board

import (
	"testing"
	"time"

	"github.com/postern-io/postern/protocol/lockbus"
)

// BenchmarkFrameToReading is the CPU of one poll's answer on its way to 48
// debounced doors: find the frame in the bytes, check and decode it, and step
// every door. The ratio is against a loop that copies the same bytes through a
// buffer of the same size and touches 48 states.
func BenchmarkFrameToReading(b *testing.B) {
	codec := lockbus.For(lockbus.CU48)
	raw, err := codec.AppendAnswer(nil, lockbus.Frame{Kind: lockbus.Status, Board: 2, Hooks: 1<<48 - 1})
	if err != nil {
		b.Fatal(err)
	}
	scanner := lockbus.NewScanner(codec)
	want := func(f *lockbus.Frame) bool { return f.Kind == lockbus.Status && f.Board == 2 }
	doors := make([]debounce, 48)
	start := time.Now()

	bare := bareLoop(b.N, raw)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		scanner.Feed(raw)
		f, ok := scanner.Next(want)
		if !ok {
			b.Fatal("no frame")
		}
		now := start.Add(time.Duration(i) * 20 * time.Millisecond)
		for ch := range doors {
			doors[ch].step(f.Hooks>>ch&1 == 0, now, 2, 150*time.Millisecond)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed())/float64(bare), "ratio")
}

func bareLoop(n int, raw []byte) time.Duration {
	buf := make([]byte, lockbus.ScanBuffer)
	states := make([]debounce, 48)
	begin := time.Now()
	for i := range n {
		copy(buf, raw)
		copy(buf[len(raw):], buf)
		for ch := range states {
			states[ch].cand = buf[4+ch/8]>>(ch%8)&1 == 0
			states[ch].polls = i
		}
	}
	return time.Since(begin)
}
