package buffer

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/wire"
)

// A cloud that was restored holds less than it had acknowledged: what is still here goes
// to it again, also what was acknowledged, and gaps name what is not.
func TestRestoredCloudGetsWhatIsStillHere(t *testing.T) {
	t.Parallel()
	var c clock
	cfg := testConfig(t, &c)
	cfg.SegmentRecords = 10
	s := open(t, cfg)
	old := s.Epoch()
	for i := range 34 { // record 1 of lane 0 says why the store began
		commit(t, s, c.record(1, wire.KindOpeningStarted, fmt.Sprint("o", i+2)), c.record(1, wire.KindScan, fmt.Sprint("s", i+1)))
	}
	for l := range wire.Lane(2) {
		run, err := s.Read(l, 1, 26, 1<<20)
		require.NoError(t, err)
		require.NoError(t, s.Ack(old, l, 27, run.Head))
	}
	commit(t, s, c.record(1, wire.KindOpeningStarted, "o36"), c.record(1, wire.KindScan, "s35"))
	require.Equal(t, [2]uint64{21, 21}, s.Oldest(), "what was acknowledged whole is gone")
	require.NoError(t, s.NewEpochFrom([2]uint64{24, 7}))
	require.Equal(t, old, *s.Opened().Prev)
	first, err := s.Read(0, 1, 2, 1<<20)
	require.NoError(t, err)
	require.Equal(t, wire.Gap{Epoch: old, Reason: wire.GapCloudRestored}, gapOf(t, first.Records[0]))
	require.Equal(t, wire.Gap{Epoch: old, Lane: 1, First: 7, Last: 20, Reason: wire.GapCloudRestored}, gapOf(t, first.Records[1]))
	_, got, _ := readAll(t, s, 0, 3)
	require.Equal(t, bodies("o", 24, 36), got)
	_, got, _ = readAll(t, s, 1, 1)
	require.Equal(t, bodies("s", 21, 35), got)
	require.NoError(t, s.Check(context.Background()))

	// A cloud cannot hold more than it acknowledged.
	again := s.Epoch()
	require.NoError(t, s.NewEpochFrom([2]uint64{1 << 40, 1 << 40}))
	first, err = s.Read(0, 1, 1, 1<<20)
	require.NoError(t, err)
	require.Equal(t, wire.Gap{Epoch: again, Reason: wire.GapCloudRestored}, gapOf(t, first.Records[0]))
	_, got, _ = readAll(t, s, 1, 1)
	require.Equal(t, bodies("s", 21, 35), got, "all that was never acknowledged is here")
	require.NoError(t, s.Close())
	require.NoError(t, open(t, cfg).Check(context.Background()))
}
