package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
)

// A client that names one foreign topic after the other, and comes back each time,
// left an audit entry for each. It leaves ten in an hour.
func TestRefusedTopicsLeaveFewEntries(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Config{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Broker.Close())
		require.NoError(t, s.Store.Close())
		require.NoError(t, s.Files.Close())
	})
	for i := range 500 {
		s.foreign("CAB-1", fmt.Sprint("tms/other/", i), true)
	}
	s.foreign("CAB-2", "tms/other", false)
	count := func() int {
		lines, err := s.Store.ListAudits(t.Context(), 0, 0, 1000)
		require.NoError(t, err)
		n := 0
		for _, l := range lines {
			if l.Action == "foreign_topic" {
				n++
			}
		}
		return n
	}
	ring.Await(t, func() bool { return count() == foreignOfClient+1 })
	require.Positive(t, s.refusals.Wait("CAB-1", time.Now()))
	require.Zero(t, s.refusals.Wait("CAB-2", time.Now()), "other clients have theirs")
}
