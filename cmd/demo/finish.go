package main

import (
	"context"
	"errors"
	"time"
)

// finish ends a demo that may be stopped at any moment, also in the middle of an
// act or with everything broken by a guest: the guest's pages end, cloud, power,
// network and locks are put right, the doors are shut until no session runs, and
// what is on its way arrives.
func (s *stage) finish(ctx context.Context) error {
	s.guest.leave()
	s.receiver.setSick(false)
	var errs []error
	for _, c := range s.cabinets {
		errs = append(errs, c.putRight())
	}
	if err := errors.Join(append(errs, s.connected(ctx))...); err != nil {
		return err
	}
	since := time.Now()
	if err := s.awaits(ctx, "all sessions over", 2*time.Minute, func() bool {
		for _, c := range s.cabinets {
			if c.busy(ctx) {
				since = time.Now()
			}
		}
		return time.Since(since) >= quiet
	}); err != nil {
		return err
	}
	return s.rest(ctx)
}

// busy reports whether a session runs at a cabinet; doors that stand open are shut.
func (c *cabinet) busy(ctx context.Context) bool {
	v, err := c.look(ctx)
	return errors.Join(err, c.shutDoors()) != nil || len(v.Openings) > 0
}
