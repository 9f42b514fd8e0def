package agent

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/protocol/wire"
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

// Power goes after a start has written down that it was made, and before its
// first step: the loss that it found was never declared, as the next start found
// nothing.
func TestALossThatAStartFindsOutlivesPower(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, b *bench, older []byte){
		"a new store": func(t *testing.T, b *bench, _ []byte) {
			require.NoError(t, os.Remove(filepath.Join(b.dir, "edge.db")))
		},
		"a new store of which only the file was made": func(t *testing.T, b *bench, _ []byte) {
			name := filepath.Join(b.dir, "edge.db")
			require.NoError(t, os.Remove(name))
			s, err := buffer.Open(buffer.Config{Path: name, Stamp: func() wire.Record { return wire.Record{Boot: 1, Mono: 1} }})
			require.NoError(t, err)
			require.NoError(t, s.Close())
		},
		"an older copy": func(t *testing.T, b *bench, older []byte) {
			require.NoError(t, os.WriteFile(filepath.Join(b.dir, "edge.db"), older, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer func() { b.halt() }()
				b.codes(wire.Codes{To: 9, Generation: 3, Entries: staffCode(9)}, "n1")
				b.halt()
				older, err := os.ReadFile(filepath.Join(b.dir, "edge.db"))
				require.NoError(t, err)
				for range 3 {
					b.start()
					require.False(t, b.agent.status().Lost)
					b.halt()
				}
				lose(t, b, older)
				for range 3 {
					a, err := New(b.settings())
					require.NoError(t, err)
					require.NoError(t, a.Close(), "power goes")
				}
				b.start()
				require.True(t, b.agent.status().Lost)
				require.Zero(t, b.agent.status().CodeList)
				want := []string(nil)
				if name == "an older copy" {
					want = []string{wire.TamperStoreRolledBack}
				}
				require.Equal(t, want, b.tampers())
				b.halt()
				b.start()
				require.Equal(t, want, b.tampers(), "once")
			})
		})
	}
}
