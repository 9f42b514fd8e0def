package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/locker"
	"github.com/postern-io/postern/protocol/wire"
)

// A store that is found damaged while the cabinet runs gets all that the cabinet knows:
// starts after it find nothing lost and no older copy.
func TestAStoreThatWasReplacedWhileRunningIsNoOlderCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		defer func() { b.halt() }()
		b.config(b.old, 1, nil)
		b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
		for range 50 {
			require.NoError(t, b.agent.Record(t.Context(), wire.KindScan, wire.Scan{Raw: []byte("needle-needle-needle")}))
		}
		b.halt()
		file := filepath.Join(b.dir, "edge.db")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		damaged := bytes.ReplaceAll(raw, []byte("needle-needle-needle"), []byte("needle-needle-needlf"))
		require.NotEqual(t, raw, damaged)
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		b.start()
		for range 2 { // the check finds the damage, and a commit replaces the store
			time.Sleep(5 * time.Second)
			synctest.Wait()
			_, _ = b.agent.loop.Do(t.Context(), locker.Tampered{What: "poke"}) // the first one may fail: it is tried again
		}
		require.NotEmpty(t, b.agent.store.Opened().Created, "the store was not replaced")
		require.EqualValues(t, 9, b.agent.status().CodeList)
		for range 3 {
			b.halt()
			b.start()
			require.False(t, b.agent.status().Lost)
			require.EqualValues(t, 9, b.agent.status().CodeList)
			require.NotContains(t, b.tampers(), "store_rolled_back")
		}
	})
}
