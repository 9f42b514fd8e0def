package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// Two nodes with one folder: what one keeps the other reads, at an address that
// either has signed; what no row names is gone a day later, whichever node looks.
func TestNodesShareTheFolderOfFiles(t *testing.T) {
	t.Parallel()
	dir, objects := t.TempDir(), filepath.Join(t.TempDir(), "shared")
	database := storetest.MigratedPostgresURL(t)
	open := func(node string) *Server {
		s, err := New(t.Context(), Config{Dir: dir, Objects: objects, Database: database, Node: node})
		require.NoError(t, err)
		return s
	}
	one, two := open("one"), open("two")
	put := func() cloud.StoredFile {
		f, err := one.Files.Put(t.Context(), "proof", strings.NewReader("%PDF-1.7"), 100, cloud.PDF)
		require.NoError(t, err)
		old := time.Now().Add(-25 * time.Hour)
		require.NoError(t, os.Chtimes(on(objects, f.Path), old, old))
		return f
	}
	needed, orphan := put(), put()
	require.NoError(t, one.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{FileChanges: cloud.FileChanges{Files: []cloud.KeptFile{{Path: needed.Path, BusinessID: 42, OrderID: 7, At: time.Now()}}}}, nil
	}))
	until := time.Now().Add(time.Hour)
	require.Equal(t, one.Files.Address(needed.Path, until), two.Files.Address(needed.Path, until))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- two.Run(ctx, Listeners{}) }()
	ring.Await(t, func() bool { _, err := os.Stat(on(objects, orphan.Path)); return os.IsNotExist(err) })
	f, err := one.Files.Get(t.Context(), needed.Path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	stop()
	require.NoError(t, <-done)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, one.Run(ended, Listeners{}))
}

// on is where a stored path lies in a folder.
func on(folder, stored string) string {
	area, name, _ := strings.Cut(stored, "/")
	return filepath.Join(folder, area, name[:2], name)
}
