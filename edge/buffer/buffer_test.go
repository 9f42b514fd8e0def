package buffer

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

func TestNewStoreBeginsWithAGapThatSaysSo(t *testing.T) {
	t.Parallel()
	s := open(t, testConfig(t, &clock{}))
	o := s.Opened()
	require.Equal(t, wire.GapStoreCreated, o.Created)
	require.Equal(t, uint64(1), o.Boot)
	require.Nil(t, o.Prev)
	run, err := s.Read(0, 1, 10, 1<<20)
	require.NoError(t, err)
	require.Len(t, run.Records, 1)
	require.Equal(t, wire.Gap{Reason: wire.GapStoreCreated}, gapOf(t, run.Records[0]))
	require.Equal(t, wire.FirstHead(o.Epoch, 0).Next(run.Records[0]), run.Head)
	require.Equal(t, wire.LaneEnd{Last: 1, Head: run.Head}, s.Ends()[0])
}

func TestCommitKeepsStateAndRecordsOverReopening(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	s := open(t, cfg)
	epoch := s.Epoch()
	require.NoError(t, s.Commit(context.Background(), Change{
		Put:     map[string][]byte{"door/1": []byte("open"), "door/2": {}},
		Records: []Record{c.record(1, wire.KindOpeningStarted, "a"), c.record(1, wire.KindDoorOpened, "b")},
	}))
	require.NoError(t, s.SetSync(5, 1000, 40))
	require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"door/1": nil}}))
	require.NoError(t, s.Ready())
	ends := s.Ends()
	require.NoError(t, s.Close())

	s = open(t, cfg)
	require.Equal(t, Opened{Epoch: epoch, Boot: 2}, s.Opened())
	require.Equal(t, ends, s.Ends())
	state := map[string][]byte{}
	require.NoError(t, s.Load(func(k string, v []byte) error { state[k] = v; return nil }))
	require.Equal(t, map[string][]byte{"door/2": {}}, state)
	_, got, _ := readAll(t, s, 0, 1)
	require.Equal(t, []string{"gap store_created", "a"}, got)
	run, err := s.Read(1, 1, 10, 1<<20)
	require.NoError(t, err)
	require.Equal(t, map[uint64]wire.BootSync{1: {Mono: 5, Wall: 1000, ErrMS: 40}}, run.Boots)
	require.NoError(t, s.Check(context.Background()))
}

func TestReadKeepsItsLimits(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	var recs []Record
	for i := range 200 {
		recs = append(recs, c.record(1, wire.KindTelemetry, fmt.Sprint("r", i)))
	}
	commit(t, s, recs...)
	run, err := s.Read(1, 100, 5, 1<<20)
	require.NoError(t, err)
	require.Equal(t, uint64(100), run.First)
	require.Len(t, run.Records, 5)
	run, err = s.Read(1, 3, 100, len(recs[0].Bytes)*3+2)
	require.NoError(t, err)
	require.Len(t, run.Records, 3)
	run, err = s.Read(1, 3, 100, 1)
	require.NoError(t, err)
	require.Len(t, run.Records, 1, "one record always fits")
	run, err = s.Read(1, 500, 100, 1000)
	require.NoError(t, err)
	require.Empty(t, run.Records)
	require.Equal(t, s.Ends()[1].Head, run.Head)
	require.Equal(t, uint64(201), run.First)
	_, err = s.Read(2, 1, 1, 1)
	require.ErrorIs(t, err, ErrInvalid)
}

// bbolt shows a transaction to new readers before its meta page is synced. What
// a power cut could still undo must not be sent.
func TestReadShowsNothingThatIsNotDurable(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	commit(t, s, c.record(1, wire.KindScan, "a"))
	require.NoError(t, s.db.Update(func(tx *bolt.Tx) error { // as if a commit were waiting for its sync
		r := stored{kind: wire.KindScan, boot: 1, record: c.record(1, wire.KindScan, "b").Bytes}
		return tx.Bucket(segmentName(1, 1)).Put(seqKey(2), r.encode())
	}))
	_, got, head := readAll(t, s, 1, 1)
	require.Equal(t, []string{"a"}, got)
	require.Equal(t, s.Ends()[1].Head, head)
}

func TestCommitRefusesWhatIsNoRecord(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	good := c.record(1, wire.KindTelemetry, "x")
	for name, ch := range map[string]Change{
		"garbage":      {Records: []Record{{Kind: wire.KindScan, Bytes: []byte{0xff}}}},
		"other kind":   {Records: []Record{{Kind: wire.KindScan, Bytes: good.Bytes}}},
		"too large":    {Records: []Record{c.record(1, wire.KindScan, strings.Repeat("x", wire.MaxRecord))}},
		"later boot":   {Records: []Record{c.record(9, wire.KindScan, "x")}},
		"empty key":    {Put: map[string][]byte{"": {1}}},
		"huge value":   {Put: map[string][]byte{"k": make([]byte, MaxValue+1)}},
		"many records": {Records: make([]Record, maxChange+1)},
	} {
		require.ErrorIs(t, s.Commit(context.Background(), ch), ErrInvalid, name)
	}
	require.Equal(t, uint64(0), s.Ends()[1].Last)
}

func TestConcurrentCommitsShareTransactionsAndKeepTheirOwnResults(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	var wg sync.WaitGroup
	for p := range 16 {
		wg.Go(func() {
			for i := range 30 {
				if i%5 == 4 {
					err := s.Commit(context.Background(), Change{Put: map[string][]byte{"": nil}})
					require.ErrorIs(t, err, ErrInvalid)
					continue
				}
				commit(t, s, c.record(1, wire.KindTelemetry, fmt.Sprintf("%d/%d", p, i)))
			}
		})
	}
	wg.Wait()
	_, got, _ := readAll(t, s, 1, 1)
	require.Len(t, got, 16*24)
	next := map[string]int{}
	for _, b := range got { // each producer's own order is kept
		p, i, _ := strings.Cut(b, "/")
		var n int
		_, err := fmt.Sscan(i, &n)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, next[p])
		next[p] = n + 1
	}
}

func TestCommitGivesUpWithItsContextWhileItWaits(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	s.writing.Lock() // a disk that takes its time
	lead := make(chan error, 1)
	go func() {
		lead <- s.Commit(context.Background(), Change{Records: []Record{c.record(1, wire.KindScan, "a")}})
	}()
	for { // the first caller leads
		s.commitQ.mu.Lock()
		leading := s.commitQ.leading
		s.commitQ.mu.Unlock()
		if leading {
			break
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	follow := make(chan error, 1)
	go func() { follow <- s.Commit(ctx, Change{Records: []Record{c.record(1, wire.KindScan, "b")}}) }()
	cancel()
	require.ErrorIs(t, <-follow, context.Canceled)
	s.writing.Unlock()
	require.NoError(t, <-lead)
	_, got, _ := readAll(t, s, 1, 1)
	require.Equal(t, []string{"a"}, got)
}

func TestAckComparesChainsAndDropsWholeSegments(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 10
	s := open(t, cfg)
	e := s.Epoch()
	for i := range 35 {
		commit(t, s, c.record(1, wire.KindTelemetry, fmt.Sprint("r", i+1)))
	}
	headAt := func(n uint64) wire.Head {
		run, err := s.Read(1, 1, int(n), 1<<20)
		require.NoError(t, err)
		return run.Head
	}
	h15, h20, h35 := headAt(15), headAt(20), headAt(35)
	require.NoError(t, s.Ack(e, 1, 1, wire.FirstHead(e, 1)))
	require.ErrorIs(t, s.Ack(e, 1, 1, wire.Head{1}), ErrForked)
	require.ErrorIs(t, s.Ack(e, 1, 16, h20), ErrForked)
	require.ErrorIs(t, s.Ack(e, 1, 37, h35), ErrRolledBack)
	require.ErrorIs(t, s.Ack(wire.Epoch{9}, 1, 16, h15), ErrStale)
	require.Equal(t, uint64(1), s.Oldest()[1])
	require.NoError(t, s.Ack(e, 1, 16, h15))
	require.Equal(t, uint64(11), s.Oldest()[1], "the first segment is acknowledged wholly")
	require.ErrorIs(t, s.Ack(e, 1, 15, h15), ErrStale)
	require.Equal(t, uint64(20), s.Backlog()[1])
	require.NoError(t, s.Ack(e, 1, 36, h35))
	require.Equal(t, uint64(31), s.Oldest()[1], "the segment that is appended to stays")
	require.Zero(t, s.Backlog()[1])
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.Equal(t, [2]uint64{1, 36}, s.Acked())
	require.NoError(t, s.Check(context.Background()))
}

func TestAckOfAFullLastSegmentLeavesAnEmptyLaneThatGoesOn(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 10
	s := open(t, cfg)
	for i := range 10 {
		commit(t, s, c.record(1, wire.KindTelemetry, fmt.Sprint("r", i+1)))
	}
	end := s.Ends()[1]
	require.NoError(t, s.Ack(s.Epoch(), 1, 11, end.Head))
	require.Equal(t, uint64(11), s.Oldest()[1])
	require.Zero(t, s.Use()[1])
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.Equal(t, end, s.Ends()[1])
	r := c.record(2, wire.KindTelemetry, "r11")
	commit(t, s, r)
	require.Equal(t, wire.LaneEnd{Last: 11, Head: end.Head.Next(r.Bytes)}, s.Ends()[1])
}

// fillTelemetry commits lane 1 records of about 2 KB until stop.
func fillTelemetry(t *testing.T, s *Store, c *clock, stop func() bool) int {
	n := 0
	for ; !stop() && n < 20_000; n += 10 {
		var recs []Record
		for range 10 {
			recs = append(recs, c.record(1, wire.KindScan, strings.Repeat("s", 2000)))
		}
		commit(t, s, recs...)
	}
	return n
}

func TestEvictionNamesExactlyWhatWasLost(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.MaxBytes, cfg.SegmentRecords = 2<<20, 50
	s := open(t, cfg)
	fillTelemetry(t, s, &c, func() bool { return s.Ends()[1].Last >= 30 })
	run, err := s.Read(1, 1, 20, 1<<20)
	require.NoError(t, err)
	require.NoError(t, s.Ack(s.Epoch(), 1, 21, run.Head))
	all, err := s.Read(1, 1, 1000, 1<<20)
	require.NoError(t, err)
	heads := []wire.Head{wire.FirstHead(s.Epoch(), 1)}
	for _, r := range all.Records {
		heads = append(heads, heads[len(heads)-1].Next(r))
	}
	fillTelemetry(t, s, &c, func() bool { return s.Ends()[0].Last >= 3 })
	require.LessOrEqual(t, s.Filled(), 75)

	lane0, err := s.Read(0, 1, 10, 1<<20)
	require.NoError(t, err)
	next := uint64(21)
	for _, raw := range lane0.Records[1:] {
		g := gapOf(t, raw)
		require.Equal(t, wire.GapEvicted, g.Reason)
		require.Equal(t, s.Epoch(), g.Epoch)
		require.Equal(t, wire.Telemetry, g.Lane)
		require.Equal(t, next, g.First, "acknowledged records are not named")
		require.Equal(t, map[wire.Kind]uint64{wire.KindScan: g.Last - g.First + 1}, g.Counts)
		next = g.Last + 1
	}
	require.Equal(t, s.Oldest()[1], next)
	kept, err := s.Read(1, 1, 5, 1<<20)
	require.NoError(t, err)
	require.Equal(t, next, kept.First)
	require.Equal(t, s.Ends()[0].Last, kept.Gap, "sent only behind the gap")
	h := *gapOf(t, lane0.Records[len(lane0.Records)-1]).HeadAfter
	for _, r := range kept.Records {
		h = h.Next(r)
	}
	require.Equal(t, h, kept.Head)
	later, err := s.Read(1, kept.Next(), 5, 1<<20)
	require.NoError(t, err)
	require.Zero(t, later.Gap)
	// The cloud may answer from inside what was lost.
	require.NoError(t, s.Ack(s.Epoch(), 1, next-1, wire.Head{7}))
	require.NoError(t, s.Check(context.Background()))
}

func TestLastTenthIsKeptForOpenSessions(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.MaxBytes = 2 << 20
	s := open(t, cfg)
	rec := func() Record { return c.record(1, wire.KindOpeningStarted, strings.Repeat("o", 4000)) }
	var err error
	for range 1000 {
		if err = s.Commit(context.Background(), Change{Records: []Record{rec()}}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrFull)
	require.InDelta(t, 90, s.Filled(), 4)
	require.ErrorIs(t, s.Commit(context.Background(), Change{Records: []Record{c.record(1, wire.KindScan, strings.Repeat("x", 9000))}}), ErrFull)
	require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"k": {1}}}), "state may change")
	last := s.Ends()[0].Last
	for range 20 {
		require.NoError(t, s.Commit(context.Background(), Change{Records: []Record{rec()}, Urgent: true}))
	}
	for range 1000 { // beyond the limit itself even they fail, and cleanly
		if err = s.Commit(context.Background(), Change{Records: []Record{rec()}, Urgent: true}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, s.Broken())
	require.Greater(t, s.Ends()[0].Last, last+20)
	st, err := os.Stat(cfg.Path)
	require.NoError(t, err)
	require.LessOrEqual(t, st.Size(), cfg.MaxBytes)
	require.NoError(t, s.Ack(s.Epoch(), 0, s.Ends()[0].Last+1, s.Ends()[0].Head))
	require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"k": {2}}}))
	require.Less(t, s.Filled(), 90, "acknowledged segments make room")
	require.NoError(t, s.Commit(context.Background(), Change{Records: []Record{rec()}}))
}

func TestNewEpochCarriesUnacknowledgedRecordsInOrder(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 10
	s := open(t, cfg)
	old := s.Epoch()
	for i := range 30 {
		commit(t, s, c.record(1, wire.KindOpeningStarted, fmt.Sprint("o", i+1)), c.record(1, wire.KindScan, fmt.Sprint("s", i+1)))
	}
	require.NoError(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"k": []byte("v")}}))
	run, err := s.Read(1, 1, 12, 1<<20)
	require.NoError(t, err)
	require.NoError(t, s.Ack(old, 1, 13, run.Head))
	require.NoError(t, s.NewEpoch(wire.GapStoreRolledBack, nil))

	require.NotEqual(t, old, s.Epoch())
	require.Equal(t, old, *s.Opened().Prev)
	lane0, err := s.Read(0, 1, 1, 1<<20)
	require.NoError(t, err)
	require.Equal(t, old, *lane0.Prev)
	require.Equal(t, wire.Gap{Epoch: old, Reason: wire.GapStoreRolledBack}, gapOf(t, lane0.Records[0]))
	_, got, _ := readAll(t, s, 0, 2)
	require.Equal(t, append([]string{"gap store_created"}, bodies("o", 1, 30)...), got)
	first, got, head := readAll(t, s, 1, 1)
	require.Equal(t, uint64(1), first)
	require.Equal(t, bodies("s", 13, 30), got)
	require.Equal(t, s.Ends()[1].Head, head)
	require.ErrorIs(t, s.Ack(old, 1, 14, wire.Head{}), ErrStale)
	state := map[string][]byte{}
	require.NoError(t, s.Load(func(k string, v []byte) error { state[k] = v; return nil }))
	require.Equal(t, map[string][]byte{"k": []byte("v")}, state)

	commit(t, s, c.record(1, wire.KindScan, "s31"))
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.Equal(t, old, *s.Opened().Prev)
	_, got, _ = readAll(t, s, 1, 1)
	require.Equal(t, bodies("s", 13, 31), got)
	require.NoError(t, s.Check(context.Background()))
}

func TestNewEpochSetsTheRefusedRecordAside(t *testing.T) {
	t.Parallel()
	var c clock
	s := open(t, testConfig(t, &c))
	for i := range 5 {
		commit(t, s, c.record(1, wire.KindScan, fmt.Sprint("s", i+1)))
	}
	run, err := s.Read(1, 1, 3, 1<<20)
	require.NoError(t, err)
	old := s.Epoch()
	require.ErrorIs(t, s.NewEpoch(wire.GapRefused, &Refused{Lane: 1, Seq: 9}), ErrInvalid)
	require.Equal(t, old, s.Epoch())
	require.NoError(t, s.NewEpoch(wire.GapRefused, &Refused{Lane: 1, Seq: 3}))
	_, got, _ := readAll(t, s, 1, 1)
	require.Equal(t, []string{"s1", "s2", "s4", "s5"}, got)
	lane0, err := s.Read(0, 1, 1, 1<<20)
	require.NoError(t, err)
	require.Equal(t, wire.Gap{Epoch: old, Lane: 1, First: 3, Last: 3, Reason: wire.GapRefused,
		Counts: map[wire.Kind]uint64{wire.KindScan: 1}, HeadAfter: &run.Head}, gapOf(t, lane0.Records[0]))
}

// A copy put back is found by the first acknowledgement.
func TestRolledBackStoreIsFoundByTheAcknowledgement(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	s := open(t, cfg)
	commit(t, s, c.record(1, wire.KindOpeningStarted, "a"))
	require.NoError(t, s.Close())
	copied, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)

	s = open(t, cfg)
	commit(t, s, c.record(1, wire.KindOpeningStarted, "b"), c.record(1, wire.KindOpeningStarted, "c"))
	cloud := s.Ends()[0]
	require.NoError(t, s.Close())

	require.NoError(t, os.WriteFile(cfg.Path, copied, 0o600))
	s = open(t, cfg)
	require.ErrorIs(t, s.Ack(s.Epoch(), 0, cloud.Last+1, cloud.Head), ErrRolledBack)
	commit(t, s, c.record(1, wire.KindOpeningStarted, "x"), c.record(1, wire.KindOpeningStarted, "y"), c.record(1, wire.KindOpeningStarted, "z"))
	err = s.Ack(s.Epoch(), 0, cloud.Last+1, cloud.Head)
	require.ErrorIs(t, err, ErrForked)
	require.NotErrorIs(t, err, ErrRolledBack)
	require.NoError(t, s.NewEpoch(wire.GapStoreRolledBack, nil))
	_, got, _ := readAll(t, s, 0, 1)
	require.Equal(t, []string{"gap store_rolled_back", "gap store_created", "a", "x", "y", "z"}, got)
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, &clock{})
	s := open(t, cfg)
	_, err := Open(cfg)
	require.ErrorIs(t, err, ErrInUse)
	commit(t, s)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closing twice is fine")
	require.ErrorIs(t, s.Commit(context.Background(), Change{}), ErrClosed)
	open(t, cfg)
}

func TestUnreadyStartChecksEverythingFirst(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	s := open(t, cfg)
	for i := range 300 {
		commit(t, s, c.record(1, wire.KindScan, fmt.Sprint("needle", i)))
	}
	require.NoError(t, s.Ready())
	require.NoError(t, s.Close())
	flip(t, cfg.Path, []byte("needle250"))

	s = open(t, cfg) // a single bit in a record is not looked for at a quick start
	require.Empty(t, s.Opened().Created)
	require.ErrorIs(t, s.Check(context.Background()), ErrDamaged)
	require.ErrorIs(t, s.Commit(context.Background(), Change{Put: map[string][]byte{"k": {1}}}), ErrBroken)
	before := s.Opened()
	after, err := s.Reopen()
	require.NoError(t, err)
	require.Equal(t, wire.GapStoreDamaged, after.Created)
	require.Equal(t, before.Epoch, *after.Prev)
	require.Equal(t, before.Boot, after.Boot)
	require.FileExists(t, after.Quarantined)
	_, got, _ := readAll(t, s, 0, 1)
	require.Equal(t, []string{"gap store_damaged", "gap store_damaged"}, got)
	commit(t, s, c.record(after.Boot, wire.KindScan, "goes on"))
}

// flip changes one bit inside every place where needle lies in the file.
func flip(t *testing.T, path string, needle []byte) {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	at := bytes.LastIndex(b, needle)
	require.Positive(t, at)
	for ; at >= 0; at = bytes.LastIndex(b[:at], needle) {
		b[at] ^= 1
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
}

func TestDamagedFilesAreMovedAsideAndOnlyTheNewestKept(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	var last Opened
	for i := range 4 {
		if i > 0 {
			require.NoError(t, os.WriteFile(cfg.Path, bytes.Repeat([]byte{byte(i)}, 5000*(i-1)), 0o600))
		}
		s := open(t, cfg)
		if i > 0 {
			require.Equal(t, wire.GapStoreDamaged, s.Opened().Created)
			require.Nil(t, s.Opened().Prev, "nothing could be read")
		}
		last = s.Opened()
		require.NoError(t, s.Close())
	}
	aside, err := filepath.Glob(cfg.Path + ".damaged-*")
	require.NoError(t, err)
	require.Len(t, aside, keepDamaged)
	require.Contains(t, aside, last.Quarantined)
}

// A check that is stopped, as an ordinary stop of the program does soon after its
// start, has found nothing: the store works on and is not moved aside.
func TestAStoppedCheckFindsNoDamage(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	s := open(t, cfg)
	require.NoError(t, s.Ready())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Check(ctx), context.Canceled)
	require.NoError(t, s.Broken())
	require.NoFileExists(t, cfg.marker())
	require.NoError(t, s.Check(t.Context()))
}
