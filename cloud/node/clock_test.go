package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A virtual machine that was paused finds its own timers where they stood, and the machine's
// clock later: its lease is in doubt at once, and holds again once it is renewed.
func TestLeaseIsInDoubtAfterAPauseOfTheMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := member(newRows(), "i1", "one", nil)
		require.NoError(t, m.Sure().Err())
		require.NoError(t, m.Enter(t.Context(), "127.0.0.1:1"))
		require.NoError(t, m.Sure().Err())
		m.mu.Lock()
		m.renewed = time.Now().Round(0).Add(-Doubt) // by the machine's clock alone
		m.mu.Unlock()
		require.Error(t, m.Sure().Err())
		require.Equal(t, 1, m.Held().Lost)
		require.NoError(t, m.renew(t.Context(), time.Now()))
		require.NoError(t, m.Sure().Err())
		m.stop()
	})
}
