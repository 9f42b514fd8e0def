package agent

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The disk has no room for a new file while the store, which has its room, commits,
// start after start: the newest store is still no older copy.
func TestStartsOnAFullDiskAreNoRollBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := openMarks(dir)
	require.NoError(t, err)
	require.NoError(t, m.begin("one"))
	start := keptStart{Now: "one"}
	for _, id := range []string{"two", "three"} { // as Agent.build does it
		require.False(t, m.behind(start), id)
		start = keptStart{Now: id, Before: m.newest(start.Now)} // commits
		m.name = filepath.Join(dir, "no room", "x")             // begin fails as with ENOSPC
		require.Error(t, m.begin(start.Now))
	}
	_, err = os.Stat(filepath.Join(dir, marksFile))
	require.NoError(t, err)
	require.False(t, m.behind(start), "the fourth start finds a rolled-back store: tamper, and its memory counts as lost")
}
