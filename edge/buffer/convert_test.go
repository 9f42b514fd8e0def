package buffer

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/postern-io/postern/protocol/wire"
)

// layout1 is a store that the last agent of layout 1 wrote, as crashConfig has
// it: 71 commits of a script (scripted.commit), a new epoch that refused commit
// 14, acknowledgements of lane 0, an eviction in lane 1, and a second boot. The
// notes say what the agent had promised.
func layout1() (file []byte, notes []string, err error) {
	f, err := os.Open("testdata/layout1.db.gz")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, err
	}
	if file, err = io.ReadAll(z); err != nil {
		return nil, nil, err
	}
	n, err := os.ReadFile("testdata/layout1.notes")
	notes = strings.Split(strings.TrimSpace(string(n)), "\n")
	slices.Sort(notes) // "cloud" before "ok": the file is there at once, and has dropped what the cloud has
	return file, notes, err
}

// writeLayout1 puts that store where the configuration has its own, and returns
// what was promised.
func writeLayout1(t testing.TB, cfg Config) told {
	file, notes, err := layout1()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cfg.Path, file, 0o600))
	facts := told{cloud: [2]map[string]int{{}, {}}}
	for _, n := range notes {
		facts.hear(n)
	}
	return facts
}

func layout1Config(t testing.TB, c *clock) Config {
	c.mono.Store(1 << 40)
	cfg := crashConfig(t.TempDir(), c)
	cfg.NoSync = true
	return cfg
}

func requireKept(t require.TestingT, s *Store, facts told) {
	lost, err := missing(s, facts)
	require.NoError(t, err)
	require.Empty(t, lost)
	require.NoError(t, s.Check(context.Background()))
}

func TestStoreOfLayout1KeepsAllAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, unready := range map[string]bool{"quick start": false, "full check first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c clock
			cfg := layout1Config(t, &c)
			facts := writeLayout1(t, cfg)
			if unready {
				require.NoError(t, cfg.mark())
			}
			s := open(t, cfg)
			o := s.Opened()
			require.Empty(t, o.Created, "the store was kept")
			require.Equal(t, "1fbc22a403385a55b56b568875ecd744", o.Epoch.String())
			require.Equal(t, "184788b73b2da06ef65235e73c1ae060", prevOf(o))
			require.Equal(t, uint64(3), o.Boot)
			ends := s.Ends()
			require.Equal(t, []string{"86 92b2a3b5b15afe102ee8553a5801604fb99f6bb54f28e3ed212a3a847e83c8d9",
				"61 f1bf06dd7103013fd29e04ca8a55971f208497936a293af518817ffc8184e341"}, []string{endText(ends[0]), endText(ends[1])})
			require.Equal(t, [2]uint64{13, 1}, s.Acked())
			require.Equal(t, [2]uint64{9, 47}, s.Oldest())
			run, err := s.Read(1, 1, 3, 1<<20)
			require.NoError(t, err)
			require.Equal(t, uint64(47), run.First)
			require.Equal(t, uint64(82), run.Gap)
			require.Equal(t, map[uint64]wire.BootSync{1: {Mono: 7, Wall: 1_700_000_000_000_000_000, ErrMS: 40}}, run.Boots)
			for l, end := range ends {
				_, _, head := readAll(t, s, wire.Lane(l), 1)
				require.Equal(t, end.Head, head)
			}
			require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
				require.Equal(t, 1, tx.Bucket(bucketAside).Stats().KeyN)
				require.Equal(t, seqKey(layoutVersion), tx.Bucket(bucketMeta).Get(keyVersion))
				return nil
			}))
			requireKept(t, s, facts)

			for i := range 20 {
				commit(t, s, c.record(3, wire.KindOpeningStarted, fmt.Sprint("new", i)), c.record(3, wire.KindScan, fmt.Sprint("new", i)))
			}
			require.NoError(t, s.Close())
			s = open(t, cfg)
			requireKept(t, s, facts)
			for l := range ends {
				_, got, head := readAll(t, s, wire.Lane(l), ends[l].Last+1)
				require.Equal(t, bodies("new", 0, 19), got)
				require.Equal(t, s.Ends()[l].Head, head)
			}
		})
	}
}

func prevOf(o Opened) string { return o.Prev.String() }

func endText(e wire.LaneEnd) string {
	return fmt.Sprintf("%d %s", e.Last, hex.EncodeToString(e.Head[:]))
}

// Segments of layout 1 go as those of layout 2 do: by acknowledgement from the
// first to the last, and by eviction, which names them.
func TestSegmentsOfLayout1AreDropped(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := layout1Config(t, &c)
	writeLayout1(t, cfg)
	s := open(t, cfg)
	oldSegments := func(l int) (n int) {
		require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
			return tx.Bucket(bucketOld[l]).ForEachBucket(func([]byte) error { n++; return nil })
		}))
		return n
	}
	oldEnds := func() (ends [2]string) {
		require.NoError(t, s.db.View(func(tx *bolt.Tx) error {
			for l := range ends {
				ends[l] = hex.EncodeToString(tx.Bucket(bucketOld[l]).Get([]byte("e")))
			}
			return nil
		}))
		return ends
	}
	atFirst := oldEnds()
	ack := func(l wire.Lane, n int) {
		run, err := s.Read(l, s.Acked()[l], n, 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.Ack(s.Epoch(), l, run.Next(), run.Head))
	}
	require.Equal(t, 10, oldSegments(0))
	ack(0, 20)
	require.Equal(t, 7, oldSegments(0))
	require.Equal(t, uint64(33), s.Oldest()[0])
	ack(0, 100)
	require.Zero(t, oldSegments(0), "its last segment takes no more records")
	require.NoError(t, s.Check(context.Background()))

	before := oldSegments(1)
	require.Greater(t, before, 2)
	for s.Oldest()[1] <= 57 {
		commit(t, s, c.record(3, wire.KindScan, strings.Repeat("s", 7000)))
	}
	require.Less(t, oldSegments(1), before)
	require.Equal(t, atFirst, oldEnds(), "an agent of layout 1 finds its lanes sound and refuses the layout")
	lane0, err := s.Read(0, s.Ends()[0].Last, 1, 1<<20)
	require.NoError(t, err)
	require.Equal(t, s.Oldest()[1]-1, gapOf(t, lane0.Records[0]).Last)
	require.NoError(t, s.NewEpoch(wire.GapStoreRolledBack, nil))
	_, _, head := readAll(t, s, 1, 1)
	require.Equal(t, s.Ends()[1].Head, head)
	require.NoError(t, s.Check(context.Background()))
}

// A store of a later layout may look like anything. It is refused and left as
// it is, so that the agent which wrote it can go on with it.
func TestLaterLayoutIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	s := open(t, cfg)
	commit(t, s, c.record(1, wire.KindScan, "a"))
	require.NoError(t, s.Close())
	db, err := bolt.Open(cfg.Path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		for _, name := range []string{"lane0", "lane1", "state"} {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyVersion, seqKey(7))
	}))
	require.NoError(t, db.Close())
	file, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)
	for range 2 { // the second start is one that the first did not make ready
		_, err = Open(cfg)
		require.ErrorContains(t, err, "store has layout 7, this agent knows layouts up to 2")
		require.NotErrorIs(t, err, ErrDamaged)
	}
	after, err := os.ReadFile(cfg.Path)
	require.NoError(t, err)
	require.Equal(t, file, after)
	aside, err := filepath.Glob(cfg.Path + ".damaged-*")
	require.NoError(t, err)
	require.Empty(t, aside)
}
