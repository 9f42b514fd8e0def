package server

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync/atomic"
	"time"

	"filippo.io/age"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postern-io/postern/cloud/backup"
	"github.com/postern-io/postern/cloud/object"
)

// BackupConfig says where backups go. Without a Folder and a Bucket, or with an Every of
// 0, none are taken by themselves.
type BackupConfig struct {
	Folder     string
	Bucket     *object.BucketConfig
	Every      time.Duration
	Keep       int
	Recipients []age.Recipient // of the keys file; none: it is left out
}

// Open opens the place of backups, nil when there is none. What goes to a bucket is written
// to the data folder first.
func (c BackupConfig) Open(ctx context.Context, dir string) (object.Store, error) {
	switch {
	case c.Bucket != nil:
		b := *c.Bucket
		b.Spool = spool(dir)
		return object.OpenBucket(ctx, b)
	case c.Folder != "":
		return object.OpenFolder(c.Folder)
	}
	return nil, nil
}

// spool is the folder of what is being written.
func spool(dir string) string { return filepath.Join(dir, "spool") }

// NewBackups takes backups of this cloud.
func (s *Server) NewBackups(target object.Store) *backup.Service {
	keys, _ := json.MarshalIndent(s.Keys, "", "  ") // bytes and numbers
	return backup.New(backup.Config{Database: s.Store, Files: s.Files.Store(), Target: target, Spool: spool(s.cfg.Dir), Keys: append(keys, '\n'), KeysDigest: s.Keys.digest(),
		Recipients: s.cfg.Backup.Recipients, Release: s.cfg.Version, Keep: s.cfg.Backup.Keep, Every: s.cfg.Backup.Every, Log: s.log})
}

// openAgain is how often a place of backups is tried that cannot be opened.
const openAgain = time.Minute

// scheduledBackups is the task that takes backups, nil where none are set. It may begin
// again: a node whose lease was in doubt takes its tasks up anew.
func (s *Server) scheduledBackups() func(context.Context) error {
	if c := s.cfg.Backup; c.Every <= 0 || c.Folder == "" && c.Bucket == nil {
		return nil
	}
	var backups atomic.Pointer[backup.Service] // nil until the place is open
	s.countBackups(&backups)
	return func(ctx context.Context) error { return takeBackups(ctx, s, &backups) }
}

// takeBackups takes backups until ctx ends. A place that cannot be used stops nothing else.
func takeBackups(ctx context.Context, s *Server, backups *atomic.Pointer[backup.Service]) error {
	for ctx.Err() == nil {
		target, err := s.cfg.Backup.Open(ctx, s.cfg.Dir)
		if err == nil {
			b := s.NewBackups(target)
			backups.Store(b)
			return errors.Join(b.Run(ctx), target.Close())
		}
		s.log.Error("no backups now", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(openAgain):
		}
	}
	return nil
}

func (s *Server) countBackups(backups *atomic.Pointer[backup.Service]) {
	read := func(of func(*backup.Metrics) int64) func() float64 {
		return func() float64 {
			if b := backups.Load(); b != nil {
				return float64(of(&b.Metrics))
			}
			return 0
		}
	}
	for what, of := range map[string]func(*backup.Metrics) int64{"taken": func(m *backup.Metrics) int64 { return m.Taken.Load() }, "failed": func(m *backup.Metrics) int64 { return m.Failed.Load() }} {
		s.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "postern_backups_total", Help: "Backups by this node.", ConstLabels: prometheus.Labels{"outcome": what}}, read(of)))
	}
	s.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "postern_backup_newest_timestamp_seconds", Help: "When the newest whole backup was taken, by whichever node; 0: there is none, or it is not known."},
		read(func(m *backup.Metrics) int64 { return m.Newest.Load() })))
}
