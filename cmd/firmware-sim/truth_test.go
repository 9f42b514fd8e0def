package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wiring"
)

// What stood open stands open, what lay inside lies inside, and the truth goes on
// where it ended.
func TestDoorsAndBoxesOutliveTheProgram(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "truth.jsonl")
	start := func() (*board.Cabinet, func()) {
		cfg := builtin(wiring.Templates()[0])
		f, err := openTruth(name, &cfg)
		require.NoError(t, err)
		c, err := board.New(cfg)
		require.NoError(t, err)
		return c, func() { c.Close(); require.NoError(t, f.Close()) }
	}
	c, stop := start()
	var out strings.Builder
	obey(c, strings.NewReader("force 3\ninsert 3 PK-1\nforce 4\ninsert 4 PK-2\nempty 4\nclose 4\ninsert 4 PK-3\nsing 4\n"), &out)
	require.Equal(t, []string{"ok", "ok", "ok", "ok", "ok", "ok", "put at door 4: the door is shut", "unknown action \"sing\"", ""}, strings.Split(out.String(), "\n"))
	before := c.Truth()
	stop()

	c, stop = start()
	defer stop()
	require.True(t, c.OpenAt(3, time.Now()))
	require.False(t, c.OpenAt(4, time.Now()))
	require.Equal(t, []string{"PK-1"}, c.ItemsAt(3, time.Now()))
	require.Empty(t, c.ItemsAt(4, time.Now()))
	after := c.Truth()
	require.Len(t, after, len(before)+1, "and a reset of the board")
	require.Equal(t, before[0].Kind, after[0].Kind)
	require.Equal(t, board.BoardReset, after[len(after)-1].Kind)
}
