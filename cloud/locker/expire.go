package locker

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Expired lists devices with commands that no cabinet took before a time.
type Expired interface {
	ListExpiredCommands(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error)
}

const (
	leftEvery = time.Second // between looks at what ended processes left
	leftPage  = 500
)

// Run expires commands that this process stored and no cabinet took in time, and at its
// start those of others, until ctx ends. What the cabinet says later still wins.
func (s deadlines) Run(ctx context.Context, rows Expired) error {
	if err := s.sweep(ctx, rows, time.Now().UTC()); err != nil {
		return err
	}
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-t.C:
			for dev := range s.due(now) {
				if err := s.expire(ctx, dev, now.UTC()); err != nil && ctx.Err() == nil {
					s.log.Error("expire commands", "device_id", dev, "err", err)
				}
			}
		}
	}
}

// RunLeft expires, until ctx ends, commands of processes that ended before they could.
func (s deadlines) RunLeft(ctx context.Context, rows Expired) error {
	t := time.NewTicker(leftEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			if err := s.sweep(ctx, rows, now.UTC()); err != nil && ctx.Err() == nil {
				s.log.Error("look for expired commands", "err", err)
			}
		}
	}
}

// sweep expires what is past its time at now, of all devices.
func (s deadlines) sweep(ctx context.Context, rows Expired, now time.Time) error {
	for {
		list, err := rows.ListExpiredCommands(ctx, now, leftPage)
		if err != nil {
			return fmt.Errorf("list expired commands: %w", err)
		}
		for _, d := range list {
			if err := s.expire(ctx, d, now); err != nil {
				return err
			}
		}
		if len(list) < leftPage {
			return nil
		}
	}
}

// noteExpiry remembers when commands expire.
func (s *core) noteExpiry(ch *cloud.Changes) {
	for _, c := range ch.Commands {
		if !c.State.Ended() {
			s.expiries[c.DeviceID] = earlier(s.expiries[c.DeviceID], c.ExpiresAt)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// due takes the devices that have a command past its expiry.
func (s deadlines) due(now time.Time) map[cloud.DeviceID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[cloud.DeviceID]bool{}
	for dev, at := range s.expiries {
		if now.After(at) {
			out[dev] = true
			delete(s.expiries, dev)
		}
	}
	return out
}

// expire ends a device's commands that were not accepted in time, and openings
// that thereby will not begin.
func (s deadlines) expire(ctx context.Context, dev cloud.DeviceID, now time.Time) error {
	var next time.Time
	err := s.cfg.Store.Decide(ctx, dev, func(v cloud.View) (*cloud.Changes, error) {
		next = time.Time{}
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
				next = earlier(next, c.ExpiresAt)
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
	if !next.IsZero() {
		s.mu.Lock()
		s.expiries[dev] = earlier(s.expiries[dev], next)
		s.mu.Unlock()
	}
	return err
}
