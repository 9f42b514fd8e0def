package locker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Expiring lists commands that no cabinet has taken, by when they expire.
type Expiring interface {
	ListExpiringCommands(ctx context.Context, limit int) ([]cloud.ExpiringCommand, error)
}

// How long a process that is alone with its store trusts what it knows of commands that expire, and one
// that shares it, whose commands others store.
const (
	ExpiryLookAlone  = time.Minute
	ExpiryLookShared = time.Second
)

const expiringPage = 100

// Run expires commands that no cabinet took in time, by whatever process they were stored, until ctx
// ends. It reads the store when one expires, and after each pause of every. What the cabinet says
// later still wins.
func (s deadlines) Run(ctx context.Context, rows Expiring, every time.Duration) error {
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for now := time.Now(); ; {
		if s.isExpiryDue(now) {
			if err := s.sweep(ctx, rows, now, every); err != nil && ctx.Err() == nil {
				s.log.Error("expire commands", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now = <-t.C:
		}
	}
}

// sweep expires what is past its time at now, of all devices, and notes when the next one is, at
// most every later. What could not be expired is tried again at once.
func (s deadlines) sweep(ctx context.Context, rows Expiring, now time.Time, every time.Duration) error {
	s.setExpiry(now.Add(every))
	var problems []error
	for {
		list, err := rows.ListExpiringCommands(ctx, expiringPage)
		if err != nil {
			s.setExpiry(now)
			return fmt.Errorf("list commands that expire: %w", err)
		}
		ended := false
		seen := map[cloud.DeviceID]bool{}
		for _, c := range list {
			if !now.After(c.ExpiresAt) {
				s.noteExpiry(c.ExpiresAt)
				return errors.Join(problems...)
			}
			if seen[c.DeviceID] {
				continue
			}
			seen[c.DeviceID] = true
			if err := s.expire(ctx, c.DeviceID, now.UTC()); err != nil {
				problems = append(problems, fmt.Errorf("commands of device %d: %w", c.DeviceID, err))
				s.noteExpiry(now)
				continue
			}
			ended = true
		}
		if len(list) < expiringPage || !ended {
			return errors.Join(problems...)
		}
	}
}

// noteExpiry remembers that a command expires at a time.
func (s *core) noteExpiry(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.Before(s.expiry) {
		s.expiry = at
	}
}

func (s deadlines) setExpiry(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = at
}

// isExpiryDue reports whether a command may be past its time.
func (s deadlines) isExpiryDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.After(s.expiry)
}

// expire ends a device's commands that were not accepted in time, and openings
// that thereby will not begin.
func (s deadlines) expire(ctx context.Context, dev cloud.DeviceID, now time.Time) error {
	return s.cfg.Store.Decide(ctx, dev, func(v cloud.View) (*cloud.Changes, error) {
		open, err := v.OpenCommands(dev)
		if err != nil || len(open) == 0 {
			return nil, err
		}
		ch := &cloud.Changes{}
		waiting, gone := map[string]bool{}, map[string]bool{}
		for _, c := range open {
			if c.State == cloud.CommandAccepted {
				waiting[c.OpeningID] = true
				continue
			}
			if !now.After(c.ExpiresAt) {
				waiting[c.OpeningID] = true
				continue
			}
			c.State, c.EndedAt = cloud.CommandExpired, now
			ch.Commands = append(ch.Commands, c)
			gone[c.OpeningID] = true
		}
		for id := range gone {
			if id == "" || waiting[id] {
				continue
			}
			o, err := v.Opening(id)
			if err != nil {
				return nil, err
			}
			if o.State == cloud.OpeningRequested {
				o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, string(cloud.CommandExpired), now
				ch.Openings = append(ch.Openings, o)
			}
		}
		return ch, nil
	})
}
