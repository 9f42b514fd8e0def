package buffer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// Most commits of a record write two pages besides the meta page: the root, in
// which the tail and all small buckets lie, and the free list. Each time that the
// tail is full it is joined to its segment, which writes a leaf and a branch more.
func TestCommitOfOneRecordWritesFewPages(t *testing.T) {
	t.Parallel()
	for l, kind := range []wire.Kind{wire.KindOpeningStarted, wire.KindScan} {
		var c clock
		s := open(t, testConfig(t, &c))
		one := func() {
			r := c.record(1, kind, strings.Repeat("x", 90))
			require.NoError(t, s.Commit(context.Background(), Change{Records: []Record{r}, Put: map[string][]byte{"door/7": {1}}}))
		}
		for range 100 {
			one()
		}
		written := map[int64]int{}
		sum := 0
		const commits = 50
		for range commits {
			before := s.db.Stats().TxStats
			one()
			after := s.db.Stats().TxStats
			n := after.GetPageCount() - before.GetPageCount()
			written[n]++
			sum += int(n)
		}
		require.Greater(t, written[2], commits/2, "lane %d: %v", l, written)
		require.Less(t, float64(sum)/commits, 2.7, "lane %d: %v", l, written)
	}
}

// tailLife commits records of many sizes one by one, so that tails are joined,
// grow and are passed over, and returns them by number.
func tailLife(t *testing.T, s *Store, c *clock, n int, after func()) (texts []string) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		text := fmt.Sprint(i, strings.Repeat("x", []int{0, 5, 60, 200, 900}[rnd.IntN(5)]))
		texts = append(texts, text)
		commit(t, s, c.record(1, wire.KindScan, text))
		after()
	}
	return texts
}

func TestTailsAreJoinedToTheirSegment(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 200
	s := open(t, cfg)
	texts := tailLife(t, s, &c, 650, func() {})
	check := func() {
		require.LessOrEqual(t, len(s.head[1].segs), 5)
		for i, seg := range s.head[1].segs[:3] {
			require.Equal(t, uint64(200*i+1), seg.first, "segments have as many records as they should")
		}
		for n := range texts { // reading begins anywhere, and finds the chain value there
			run, err := s.Read(1, uint64(n+1), 3, 1<<20)
			require.NoError(t, err)
			require.Equal(t, uint64(n+1), run.First)
			require.Equal(t, texts[n], bodyOf(t, run.Records[0]))
		}
		_, got, head := readAll(t, s, 1, 1)
		require.Equal(t, texts, got)
		require.Equal(t, s.Ends()[1].Head, head)
		require.NoError(t, s.Check(context.Background()))
	}
	check()
	use := s.Use()
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.Equal(t, use, s.Use())
	check()
}

// A segment whose tail still grows is not given up when all of it is
// acknowledged: that would be a transaction of its own for every few records.
func TestAcknowledgedSegmentStaysWhileItsTailGrows(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	written := func() (id int) {
		require.NoError(t, s.db.View(func(tx *bolt.Tx) error { id = tx.ID(); return nil }))
		return id
	}
	for i := range 40 {
		commit(t, s, c.record(1, wire.KindScan, strings.Repeat("x", 90)))
		end, before := s.Ends()[1], written()
		require.NoError(t, s.Ack(s.Epoch(), 1, end.Last+1, end.Head))
		require.Equal(t, before, written(), "acknowledgement %d writes nothing", i)
	}
	require.Equal(t, uint64(1), s.Oldest()[1])
}

// An index that was read before a tail was joined still leads to its records.
func TestEarlierIndexFindsRecordsOfJoinedTails(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 100
	s := open(t, cfg)
	var before []lane
	var heads []wire.Head
	tailLife(t, s, &c, 240, func() {
		before = append(before, s.head[1])
		heads = append(heads, s.head[1].end.Head)
	})
	require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
		for _, ln := range before {
			for n := max(1, ln.end.Last-30); n <= ln.end.Last; n++ {
				var first uint64
				require.NoError(t, ln.each(tx, n, func(n uint64, _ stored) (bool, error) { first = n; return false, nil }))
				require.Equal(t, n, first)
				h, err := ln.headBefore(tx, n+1)
				require.NoError(t, err, "before %d of %d", n+1, ln.end.Last)
				require.Equal(t, heads[n-1], h)
			}
		}
		return nil
	}))
}

// Readers that begin anywhere find every record while tails come and go.
func TestReadersFindEveryRecordWhileTailsAreJoined(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 50
	s := open(t, cfg)
	commit(t, s, c.record(1, wire.KindScan, "first"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for p := range 2 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(p)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				last := s.Ends()[1].Last
				from := max(1, last-rnd.Uint64N(min(last, 20)))
				run, err := s.Read(1, from, 100, 1<<20)
				if err != nil || run.First != from || run.Next() <= last {
					t.Errorf("read from %d of %d: %d records from %d, %v", from, last, len(run.Records), run.First, err)
					return
				}
			}
		})
	}
	tailLife(t, s, &c, 1500, func() {})
	close(stop)
	wg.Wait()
}

// What a reader takes as durable lies in the transaction that it then reads, also
// when a commit comes between the two: else a joined tail would be looked for
// where it is not yet.
func TestReaderSeesAllThatItsIndexNames(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	var ln lane
	var last uint64
	require.NoError(t, s.viewSince("read", func() {
		commit(t, s, c.record(1, wire.KindScan, "between"))
		ln = s.head[1]
	}, func(tx *bolt.Tx) error {
		return ln.each(tx, ln.end.Last, func(n uint64, _ stored) (bool, error) { last = n; return false, nil })
	}))
	require.Equal(t, ln.end.Last, last)
	require.Equal(t, uint64(1), last)
}
