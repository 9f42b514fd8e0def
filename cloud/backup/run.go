package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postern-io/postern/cloud/object"
)

// retryAfter is when Run tries again after a backup that failed, unless the next one is
// due before.
const retryAfter = time.Minute

// Metrics count backups of this process. Safe for concurrent use.
type Metrics struct {
	Taken, Failed atomic.Int64
	Newest        atomic.Int64 // when the newest was taken, by whichever node, unix seconds; 0: none
}

// Run takes a backup whenever the newest one is as old as Config.Every, until ctx ends.
// Several nodes may: the one that finds it due takes it.
func (s *Service) Run(ctx context.Context) error {
	wait, err := s.due(ctx)
	for {
		if err == nil && wait <= 0 {
			var m Manifest
			if m, err = s.Take(ctx); err == nil {
				s.Metrics.Taken.Add(1)
				s.Metrics.Newest.Store(m.TakenAt.Unix())
				s.cfg.Log.Info("backup taken", "backup", m.ID, "bytes", m.Database.Size, "files", m.Uploads)
				err = s.Prune(ctx)
			}
			wait = s.cfg.Every
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			s.Metrics.Failed.Add(1)
			s.cfg.Log.Error("no backup now", "err", err)
			wait = min(retryAfter, s.cfg.Every)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait, err = s.due(ctx)
	}
}

// due is how long it is until the next backup.
func (s *Service) due(ctx context.Context) (time.Duration, error) {
	m, err := s.findNewest(ctx)
	switch {
	case errors.Is(err, ErrNone):
		s.Metrics.Newest.Store(0)
		return 0, nil
	case errors.Is(err, ErrDamaged):
		return 0, nil
	case err != nil:
		return 0, err
	}
	s.Metrics.Newest.Store(m.TakenAt.Unix())
	return min(m.TakenAt.Add(s.cfg.Every).Sub(s.now()), s.cfg.Every), nil
}

// findNewest is FindNewest, and names those that are dated ahead of the clock in the log,
// again only when there are others.
func (s *Service) findNewest(ctx context.Context) (Manifest, error) {
	now := s.now()
	m, ahead, err := FindNewest(ctx, s.cfg.Target, now)
	if former := s.ahead.Swap(&ahead); len(ahead) > 0 && (former == nil || !slices.Equal(*former, ahead)) {
		s.cfg.Log.Warn("backups are dated later than now: a clock was ahead, or this one is behind. They do not count, are not removed, and are restored by their id alone", "backups", NameSome(ahead), "now", now.UTC().Format(time.RFC3339))
	}
	return m, err
}

// Prune removes backups beyond Config.Keep, the oldest first, what interrupted ones left a
// day ago, and once a day files that no backup and no cloud needs. Backups that are dated
// later than now are not counted and stay: none of before goes in favour of them.
func (s *Service) Prune(ctx context.Context) error {
	if s.cfg.Keep <= 0 {
		return nil
	}
	found, err := listIDs(ctx, s.cfg.Target)
	if err != nil {
		return err
	}
	whole := map[string]bool{}
	for _, id := range found.whole {
		whole[id] = true
	}
	for id := range found.parts {
		if !whole[id] && s.now().Sub(found.written[id]) > unfinishedFor {
			if err := s.remove(ctx, id, found); err != nil {
				return err
			}
		}
	}
	until, later := splitAhead(found.whole, s.now())
	over := max(len(until)-s.cfg.Keep, 0)
	for _, id := range until[:over] {
		if err := s.remove(ctx, id, found); err != nil {
			return err
		}
	}
	if kept := until[over:]; over > 0 && len(kept) > 1 && day(kept[len(kept)-1]) != day(kept[len(kept)-2]) {
		return s.pruneFiles(ctx, slices.Concat(kept, later))
	}
	return nil
}

// day is that of an id.
func day(id string) string { return id[:min(len(id), len("20060102"))] }

// remove removes a backup, its manifest first: what is left is none.
func (s *Service) remove(ctx context.Context, id string, found ids) error {
	if err := s.cfg.Target.Delete(ctx, root+id+"/"+manifestName); err != nil {
		return fmt.Errorf("remove backup %s: %w", id, err)
	}
	for _, name := range found.parts[id] {
		if err := s.cfg.Target.Delete(ctx, name); err != nil {
			return fmt.Errorf("remove backup %s: %w", id, err)
		}
	}
	return nil
}

// pruneFiles removes files that no backup lists and that the cloud has no more.
func (s *Service) pruneFiles(ctx context.Context, kept []string) error {
	needed := map[string]bool{}
	for _, id := range kept {
		m, err := read(ctx, s.cfg.Target, id)
		if err != nil {
			return err
		}
		files, err := readFiles(ctx, s.cfg.Target, m)
		if err != nil {
			return err
		}
		for name := range files.list {
			needed[name] = true
		}
	}
	for o, err := range s.cfg.Files.List(ctx, "") { // which a backup under way may just have found here
		if err != nil {
			return err
		}
		if object.IsUpload(o.Name) {
			needed[o.Name] = true
		}
	}
	for o, err := range s.cfg.Target.List(ctx, contents) {
		if err == nil && !needed[o.Name[len(contents):]] {
			err = s.cfg.Target.Delete(ctx, o.Name)
		}
		if err != nil {
			return fmt.Errorf("remove files of backups: %w", err)
		}
	}
	return nil
}
