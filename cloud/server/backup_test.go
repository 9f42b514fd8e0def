package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// A place of backups that cannot be used is named in the log and stops nothing else.
func TestCloudRunsWithoutAPlaceForBackups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.WriteMigrated(t, dir)
	taken := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	var log written
	s, err := New(t.Context(), Config{Dir: dir, Backup: BackupConfig{Folder: taken, Every: time.Hour, Keep: 1}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{}) }()
	ring.Await(t, func() bool { return strings.Contains(log.text(), "no backups now") })
	require.Empty(t, done)
	families, err := s.Metrics.Gather()
	require.NoError(t, err)
	found := false
	for _, f := range families {
		found = found || f.GetName() == "postern_backup_newest_timestamp_seconds"
	}
	require.True(t, found, "an alert can be made of it")
	stop()
	require.NoError(t, <-done)
}

// A node whose lease was in doubt takes its tasks up again: that of the backups as well.
func TestBackupsBeginAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.WriteMigrated(t, dir)
	s, err := New(t.Context(), Config{Dir: dir, Backup: BackupConfig{Folder: t.TempDir(), Every: time.Hour, Keep: 1}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(s.Broker.Close(), s.Store.Close())) }()
	task := s.scheduledBackups()
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		require.NoError(t, task(ctx))
	}
	s.cfg.Backup = BackupConfig{}
	require.Nil(t, s.scheduledBackups(), "a node that takes none holds no task of the kind")
}
