package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge"
)

// What was learned of doors outlives a start, the newest of each, and is in support bundles; a
// file that power cut short is begun anew.
func TestWhatWasLearnedIsKept(t *testing.T) {
	t.Parallel()
	diagnosing(t, &taker{}, func(t *testing.T, b *bench) {
		b.config(b.old, 1, nil)
		_, ok := b.agent.Learn(99, time.Now())
		require.False(t, ok, "no such door")
		l, ok := b.agent.Learn(1, time.Now())
		require.True(t, ok)
		require.Equal(t, edge.LearnWaiting, l.Result)
		keep := func(door edge.DoorNumber, result string) {
			require.NoError(t, b.agent.KeepLearned(edge.Learned{Door: door, Result: result, Moves: []edge.LearnedMove{}}))
		}
		keep(1, edge.LearnOtherPolarity)
		keep(2, edge.LearnRight)
		keep(1, edge.LearnRight)
		b.halt()
		b.start()
		all, err := b.agent.learned()
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, []any{edge.DoorNumber(1), edge.LearnRight}, []any{all[1].Door, all[1].Result})
		bundle, err := newDiagnoser(b.agent, &logRing{}).bundleWith(nil)
		require.NoError(t, err)
		require.Contains(t, unpack(t, bundle)["support/learned.json"], `"result": "right"`)

		require.NoError(t, os.WriteFile(filepath.Join(b.dir, learnedFile), []byte("[{"), 0o600))
		keep(2, edge.LearnSeveral)
		all, err = b.agent.learned()
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
}
