package locker

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Devices lists all devices, by id, for the look at start.
type Devices interface {
	ListAllDevices(ctx context.Context, after cloud.DeviceID, limit int) ([]cloud.Device, error)
}

// Run expires commands that no cabinet took in time, until ctx ends. What the
// cabinet says later still wins.
func (s deadlines) Run(ctx context.Context, all Devices) error {
	if err := s.sweep(ctx, all); err != nil {
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

// sweep looks at every device once: a stopped node may have left commands.
func (s deadlines) sweep(ctx context.Context, all Devices) error {
	const page = 500
	for after := cloud.DeviceID(0); ; {
		list, err := all.ListAllDevices(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list devices: %w", err)
		}
		for _, d := range list {
			after = d.ID
			if err := s.expire(ctx, d.ID, time.Now().UTC()); err != nil {
				return err
			}
		}
		if len(list) < page {
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
