package hosted

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// PlayerConfig is what NewPlayer needs.
type PlayerConfig struct {
	// Due lists cabinets for which something is due, the longest due first.
	Due func(ctx context.Context, now time.Time, limit int) ([]cloud.DeviceID, error)
	// Step lets time pass at a cabinet. It returns when something is due next, zero for never.
	Step func(ctx context.Context, id cloud.DeviceID) (due time.Time, err error)
	// PutOff has a cabinet looked at not before a time.
	PutOff func(ctx context.Context, id cloud.DeviceID, until time.Time) error
	Log    *slog.Logger
}

// Player steps cabinets when something is due at them. Safe for concurrent use.
type Player struct {
	cfg PlayerConfig

	mu      sync.Mutex
	ctx     context.Context                  // of Run, nil before and after it
	playing map[cloud.DeviceID]chan struct{} // cabinets that are played now, by which more is asked for
	wait    sync.WaitGroup
	turns   chan struct{}
}

// NewPlayer makes a player; it starts nothing.
func NewPlayer(cfg PlayerConfig) *Player {
	return &Player{cfg: cfg, playing: map[cloud.DeviceID]chan struct{}{}, turns: make(chan struct{}, atOnce)}
}

const (
	lookEvery = time.Second      // for cabinets that are due
	lookPage  = 100              // of them
	nearby    = 10 * time.Second // what is due within that is waited for here
	atOnce    = 8                // steps of one process
	// afterError is when a cabinet is looked at again that could not be stepped.
	afterError = time.Minute
)

// Run steps cabinets that are due until ctx ends. Any number of nodes may run it.
func (s *Player) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.ctx = nil
		s.mu.Unlock()
		s.wait.Wait()
	}()
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		due, err := s.cfg.Due(ctx, time.Now(), lookPage)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("look for hosted cabinets that are due", "err", err)
		}
		for _, id := range due {
			s.Play(id)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// PlaySoon steps a cabinet where something is due soon. It does not block.
func (s *Player) PlaySoon(id cloud.DeviceID, due time.Time) {
	if !due.IsZero() && time.Until(due) < nearby {
		s.Play(id)
	}
}

// Play steps a cabinet beside the caller, and goes on while something is due soon. Each
// cabinet is played once at a time.
func (s *Player) Play(id cloud.DeviceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	if asked := s.playing[id]; asked != nil {
		select {
		case asked <- struct{}{}:
		default:
		}
		return
	}
	ctx, asked := s.ctx, make(chan struct{}, 1)
	s.playing[id] = asked
	s.wait.Go(func() { s.keepPlaying(ctx, id, asked) })
}

func (s *Player) keepPlaying(ctx context.Context, id cloud.DeviceID, asked chan struct{}) {
	for {
		due, err := s.stepInTurn(ctx, id)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("step a hosted cabinet", "device_id", id, "err", err)
			s.putOff(ctx, id)
		}
		left := time.Until(due)
		if err != nil || due.IsZero() || left > nearby {
			if s.stopPlaying(ctx, id, asked) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-asked:
		case <-time.After(left):
		}
	}
}

// stepInTurn lets time pass at a cabinet, with not too many others.
func (s *Player) stepInTurn(ctx context.Context, id cloud.DeviceID) (due time.Time, err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return due, ctx.Err()
	}
	defer func() { <-s.turns }()
	return s.cfg.Step(ctx, id)
}

// putOff has a cabinet that could not be stepped looked at later, so that others are not
// kept waiting by it.
func (s *Player) putOff(ctx context.Context, id cloud.DeviceID) {
	err := s.cfg.PutOff(ctx, id, time.Now().Add(afterError))
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("put a hosted cabinet off", "device_id", id, "err", err)
	}
}

// stopPlaying ends the play of a cabinet unless it was asked for again.
func (s *Player) stopPlaying(ctx context.Context, id cloud.DeviceID, asked chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-asked:
		if ctx.Err() == nil {
			return false
		}
	default:
	}
	delete(s.playing, id)
	return true
}
