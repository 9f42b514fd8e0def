package server

import (
	"context"
	"encoding/json"
	"path/filepath"
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
	return backup.New(backup.Config{Database: s.Store, Files: s.Files.Store(), Target: target, Spool: spool(s.cfg.Dir), Keys: append(keys, '\n'),
		Recipients: s.cfg.Backup.Recipients, Release: s.cfg.Version, Keep: s.cfg.Backup.Keep, Every: s.cfg.Backup.Every, Log: s.log})
}

// backup takes backups until ctx ends.
func (s *Server) backup(ctx context.Context) error {
	if s.cfg.Backup.Every <= 0 {
		return nil
	}
	target, err := s.cfg.Backup.Open(ctx, s.cfg.Dir)
	if target == nil || err != nil {
		return err
	}
	backups := s.NewBackups(target)
	for what, n := range map[string]func() int64{"taken": backups.Metrics.Taken.Load, "failed": backups.Metrics.Failed.Load} {
		s.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "postern_backups_total", Help: "Backups by this node.", ConstLabels: prometheus.Labels{"outcome": what}}, func() float64 { return float64(n()) }))
	}
	s.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "postern_backup_newest_timestamp_seconds", Help: "When the newest whole backup was taken, by whichever node; 0: there is none."},
		func() float64 { return float64(backups.Metrics.Newest.Load()) }))
	err = backups.Run(ctx)
	if closing := target.Close(); err == nil {
		err = closing
	}
	return err
}
