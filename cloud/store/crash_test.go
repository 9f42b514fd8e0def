package store_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// crashDir tells a second run of this test binary to be the one that dies.
const crashDir = "POSTERN_TEST_CRASH_DIR"

// TestKilledProcessKeepsWhatItAcknowledged kills a process in the middle of
// group commits. All that it acknowledged must be there, and no half of a
// decision.
func TestKilledProcessKeepsWhatItAcknowledged(t *testing.T) {
	if dir := os.Getenv(crashDir); dir != "" {
		writeUntilKilled(t, dir)
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcessKeepsWhatItAcknowledged$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	acked := map[int64]bool{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, ok := strings.CutPrefix(lines.Text(), "stored ")
		if !ok {
			continue
		}
		id, err := strconv.ParseInt(n, 10, 64)
		require.NoError(t, err)
		acked[id] = true
		if len(acked) == 300 {
			require.NoError(t, cmd.Process.Kill())
			break
		}
	}
	rest, _ := bufio.NewReader(out).ReadString(0)
	_ = cmd.Wait()
	for line := range strings.Lines(rest) { // acknowledged before it died
		if n, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "stored "); ok && strings.HasSuffix(line, "\n") {
			id, err := strconv.ParseInt(n, 10, 64)
			require.NoError(t, err)
			acked[id] = true
		}
	}
	require.GreaterOrEqual(t, len(acked), 300)
	db := storetest.Open(t, store.Config{Dir: dir, Box: storetest.Box(t)})
	require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
		for id := range int64(20_000) {
			_, a := v.Business(cloud.BusinessID(id + 1))
			_, b := v.Opening(fmt.Sprint(id + 1))
			require.Equal(t, a == nil, b == nil, "half of decision %d", id+1)
			if acked[id+1] {
				require.NoError(t, a, "decision %d was acknowledged", id+1)
			}
		}
		return nil
	}))
}

func writeUntilKilled(t *testing.T, dir string) {
	db, err := store.Open(t.Context(), store.Config{Dir: dir, Box: storetest.Box(t)})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 1000 { // bounded: the parent may be gone
				id := int64(w*1000 + i + 1)
				c := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: cloud.BusinessID(id), Code: fmt.Sprint(id)}}},
					LockerChanges: cloud.LockerChanges{Openings: []cloud.Opening{{ID: fmt.Sprint(id)}}}}
				if err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return c, nil }); err != nil {
					os.Exit(1)
				}
				fmt.Printf("stored %d\n", id)
			}
		})
	}
	wg.Wait()
	os.Exit(0)
}

func TestReopenAndBackup(t *testing.T) {
	t.Parallel()
	cfg := store.Config{Dir: t.TempDir(), Box: storetest.Box(t)}
	db, err := store.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 1, Code: "a"}}}}, nil
	}))
	size, err := db.WALSize()
	require.NoError(t, err)
	require.Positive(t, size)
	first, err := db.NewID(t.Context(), store.Devices)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, db.Backup(t.Context(), copied))
	require.Error(t, db.Backup(t.Context(), copied), "never over an existing file")
	require.NoError(t, db.Close())
	for _, cfg := range []store.Config{cfg, {URL: "file:" + copied, Box: cfg.Box}} {
		db := storetest.Open(t, cfg)
		require.NoError(t, db.Look(t.Context(), func(v cloud.View) error {
			_, err := v.Business(1)
			return err
		}))
		next, err := db.NewID(t.Context(), store.Devices)
		require.NoError(t, err)
		require.Greater(t, next, first, "ids of a stopped run are not given again")
	}
}

// Several nodes start at once on an empty database.
func TestNodesStartTogether(t *testing.T) {
	t.Parallel()
	url := storetest.MigratedPostgresURL(t)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			db := storetest.Open(t, store.Config{URL: url, Instance: fmt.Sprint("node-", i), Box: storetest.Box(t)})
			_, err := db.NewID(t.Context(), store.Grids)
			require.NoError(t, err)
		})
	}
	wg.Wait()
}
