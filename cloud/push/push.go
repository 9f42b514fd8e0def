// Package push hands words to drivers' apps to the platform's push provider.
//
// A push is a row that was written with what it tells of (cloud.Push). The live
// channel has it first; what no app has acknowledged two seconds later is due
// here. One node at a time tries a push, under a lease, and writes down what came
// of it: taken, or put off, for an hour. A push ends in exactly one state; only of
// one whose place a later one took may it still become known that it was received.
// It is handed over twice only when a node ended before it could write down the
// first time; apps drop what they have seen by the push's id.
//
// Without a provider, and for drivers without an app that can be reached, pushes
// stay for the live channel until they expire. Safe for concurrent use.
package push

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Provider reaches apps that do not listen.
type Provider interface {
	// Send hands one push to a driver's devices. gone are those that the provider
	// knows no more. ErrRefused says that another try is of no use.
	Send(ctx context.Context, p cloud.Push, devices []cloud.PushToken) (gone []string, err error)
}

// ErrRefused is the error of a push that the provider will never take.
var ErrRefused = errors.New("the provider refuses the push")

// Store is what this package needs of the database.
type Store interface {
	PushDue(ctx context.Context, now time.Time) (bool, error)
	ClaimPushes(ctx context.Context, now time.Time, limit int) ([]cloud.PushRow, error)
	PushTokens(ctx context.Context, driver cloud.AccountID, now time.Time) ([]cloud.PushToken, error)
	DropPushToken(ctx context.Context, driver cloud.AccountID, token string) error
	EndPush(ctx context.Context, p cloud.PushRow) error
	RetryPush(ctx context.Context, p cloud.PushRow, now time.Time) error
	ExpirePushes(ctx context.Context, before, now time.Time) error
	RecoverPushes(ctx context.Context) error
	DropPushes(ctx context.Context, before time.Time) error
}

// Config is what New needs.
type Config struct {
	Store    Store
	Provider Provider     // nil: none
	Log      *slog.Logger // nil: nothing is logged
}

// Sender hands pushes over. Run starts it.
type Sender struct{ cfg Config }

// New builds a sender; it starts nothing.
func New(cfg Config) *Sender {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{cfg}
}

// Times and sizes.
const (
	lookEvery   = time.Second
	cleanEvery  = 30 * time.Second
	atOnce      = 16
	sendTimeout = 10 * time.Second // well below the lease
	// Lifetime is how long a push is tried.
	Lifetime = time.Hour
)

// waits are the times between tries; the last one goes on.
var waits = []time.Duration{5 * time.Second, 15 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute}

// Run hands over what is due until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	if err := s.cfg.Store.RecoverPushes(ctx); err != nil {
		return err
	}
	look, clean := time.NewTicker(lookEvery), time.NewTicker(cleanEvery)
	defer look.Stop()
	defer clean.Stop()
	torn := false // something was taken up, and its outcome is unknown
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if torn {
				err = s.cfg.Store.RecoverPushes(ctx)
			}
			if err == nil {
				err = s.send(ctx, time.Now().UTC())
			}
			torn = err != nil
		case <-clean.C:
			err = s.clean(ctx, time.Now().UTC())
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Error("pushes", "err", err)
		}
	}
}

// clean ends what was not received in time and removes what is old.
func (s *Sender) clean(ctx context.Context, now time.Time) error {
	return errors.Join(s.cfg.Store.ExpirePushes(ctx, now.Add(-Lifetime), now), s.cfg.Store.DropPushes(ctx, now.Add(-cloud.PushKept)))
}

// send tries everything that is due.
func (s *Sender) send(ctx context.Context, now time.Time) error {
	if s.cfg.Provider == nil {
		return nil
	}
	for ctx.Err() == nil {
		due, err := s.cfg.Store.PushDue(ctx, now)
		if err != nil || !due {
			return err
		}
		list, err := s.cfg.Store.ClaimPushes(ctx, now, atOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, len(list))
		for i, p := range list {
			wg.Go(func() { errs[i] = s.try(context.WithoutCancel(ctx), p, now) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// try hands one push over and writes down what came of it.
func (s *Sender) try(ctx context.Context, p cloud.PushRow, now time.Time) error {
	devices, err := s.cfg.Store.PushTokens(ctx, p.DriverID, now)
	if err != nil {
		return err
	}
	if now.Sub(p.At) >= Lifetime {
		p.State, p.EndedAt = cloud.PushExpired, now
		if p.Attempts > 0 {
			p.State = cloud.PushFailed
		}
		return s.cfg.Store.EndPush(ctx, p)
	}
	if len(devices) == 0 {
		p.Reason, p.NextAt = "no_device", now.Add(time.Minute)
		return s.cfg.Store.RetryPush(ctx, p, now)
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	gone, err := s.cfg.Provider.Send(sending, p.Push, devices)
	p.Attempts++
	switch {
	case err == nil:
		p.State, p.Reason, p.EndedAt = cloud.PushSent, "", now
		if !slices.ContainsFunc(devices, func(d cloud.PushToken) bool { return !slices.Contains(gone, d.Token) }) {
			p.State, p.Reason = cloud.PushFailed, "no_device"
		}
		err = s.cfg.Store.EndPush(ctx, p)
	case errors.Is(err, ErrRefused):
		s.cfg.Log.Warn("push refused", "push", p.ID, "type", p.Type, "err", err)
		p.State, p.Reason, p.EndedAt = cloud.PushFailed, "refused", now
		err = s.cfg.Store.EndPush(ctx, p)
	default:
		s.cfg.Log.Info("push put off", "push", p.ID, "type", p.Type, "attempts", p.Attempts, "err", err)
		p.Reason, p.NextAt = "provider", now.Add(waits[min(p.Attempts, len(waits))-1])
		err = s.cfg.Store.RetryPush(ctx, p, now)
	}
	for _, token := range gone {
		err = errors.Join(err, s.cfg.Store.DropPushToken(ctx, p.DriverID, token))
	}
	return err
}
