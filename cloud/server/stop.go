package server

import (
	"context"
	"time"
)

// Stop is how a node announces that it stops, for balancers and devices. The zero Stop
// announces nothing.
type Stop struct {
	// Announce is how long /readyz says no before anything ends.
	Announce time.Duration
	// Drain is over how long connections of devices and apps are let go then, one after
	// the other.
	Drain time.Duration
}

// letGo announces the stop and lets connections go. Meanwhile everything is served; it
// ends at once with the error of a loop.
func (s *Server) letGo(loops context.Context, fail <-chan error) error {
	if s.cfg.Stop == (Stop{}) {
		return nil
	}
	s.log.Info("stopping", "announced_for", s.cfg.Stop.Announce, "drained_over", s.cfg.Stop.Drain)
	s.stopping.Store(true)
	select {
	case err := <-fail:
		return err
	case <-time.After(s.cfg.Stop.Announce):
	}
	if err := s.Broker.Drain(loops, s.cfg.Stop.Drain); err != nil {
		s.log.Warn("close listeners of devices", "err", err)
	}
	return nil
}
