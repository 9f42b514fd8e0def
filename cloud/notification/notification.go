// Package notification sends notifications to people: mails by the deployment's mail
// server, and short messages (SMS) by its gateway. Each channel has a Sender of its own, so
// that one that is slow holds up no other.
//
// A notification is a row that was written with what it is about (cloud.Notification). One
// node at a time tries it, under a lease: an attempt is counted before it begins, so a
// process that ends in the middle of each does not go on for ever. A notification ends in
// exactly one state, and its text is erased with it. It is handed over twice only when a
// node ended between the carrier's yes and the end in the database; both have the same id
// (Message-ID, webhook-id), by which mail programs and gateways drop the second.
//
// A server that is down, busy or refuses the login is asked again later; one that refuses
// the notification for good is not. Neither addresses nor texts are logged. Safe for
// concurrent use.
package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Carrier hands notifications of a channel on.
type Carrier interface {
	// Send returns when the notification was taken. ErrRefused says that another attempt
	// is of no use.
	Send(ctx context.Context, m cloud.Notification) error
}

// ErrRefused is the error of a notification that its carrier will never take.
var ErrRefused = errors.New("the notification is refused")

// Store is what this package needs of the database.
type Store interface {
	NotificationDue(ctx context.Context, by cloud.NotificationChannel, now time.Time) (bool, error)
	ClaimNotifications(ctx context.Context, by cloud.NotificationChannel, now time.Time, limit int) ([]cloud.NotificationRow, error)
	EndNotification(ctx context.Context, m cloud.NotificationRow) (bool, error)
	RetryNotification(ctx context.Context, m cloud.NotificationRow) error
	RecoverNotifications(ctx context.Context, by cloud.NotificationChannel) error
}

// Archive is what Clean needs of the database.
type Archive interface {
	ExpireNotifications(ctx context.Context, now time.Time) error
	DropNotifications(ctx context.Context, sandbox, others, requests time.Time) error
}

// Config is what New needs.
type Config struct {
	Store   Store
	Channel cloud.NotificationChannel
	Carrier Carrier
	// Prepare makes notifications of what waits to become some, before each look; nil:
	// nothing does.
	Prepare func(ctx context.Context) error
	// When is asked before each attempt, at a time: that time or an earlier one lets it be
	// sent, a later one puts it off until then, zero says that it is no longer true. nil:
	// each is sent.
	When func(ctx context.Context, m cloud.Notification, now time.Time) (time.Time, error)
	// Ended is called with each notification that was not taken; nil: nothing is.
	Ended func(ctx context.Context, m cloud.NotificationRow) error
	Log   *slog.Logger // nil: nothing is logged
}

// Sender sends the notifications of a channel. Run starts it.
type Sender struct {
	cfg  Config
	wake chan struct{}
}

// New builds a sender; it starts nothing.
func New(cfg Config) *Sender {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Sender{cfg, make(chan struct{}, 1)}
}

// obsolete is why one that is no longer true was not sent.
const obsolete = "obsolete"

// Times and sizes.
const (
	lookEvery   = 10 * time.Second
	cleanEvery  = 10 * time.Minute
	atOnce      = 4
	sendTimeout = 20 * time.Second // below the lease
	kept        = 400 * 24 * time.Hour
	keptSandbox = 30 * 24 * time.Hour
	keptRequest = 24 * time.Hour
	// MaxAttempts is how often a notification is tried.
	MaxAttempts = 20
)

// waits are the times between attempts; the last one goes on.
var waits = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour}

// Committed looks at once for what a commit wrote.
func (s *Sender) Committed(ch *cloud.Changes) {
	if len(ch.ResetRequests) > 0 || slices.ContainsFunc(ch.Notifications, func(m cloud.Notification) bool { return m.Channel == s.cfg.Channel && !m.Sandbox }) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Run sends what is due until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	if err := s.cfg.Store.RecoverNotifications(ctx, s.cfg.Channel); err != nil {
		return err
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	torn := false // an attempt was begun, and its end is not written
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-look.C:
		}
		if torn {
			err = s.cfg.Store.RecoverNotifications(ctx, s.cfg.Channel)
		}
		if err == nil {
			err = s.round(ctx)
		}
		if torn = err != nil; torn && ctx.Err() == nil {
			s.cfg.Log.Error("send notifications", "channel", s.cfg.Channel, "err", err)
		}
	}
}

// Clean ends what is of no use any more and removes what is old, until ctx ends. It runs
// whether or not there are channels: the sandbox needs none.
func Clean(ctx context.Context, a Archive, log *slog.Logger) error {
	t := time.NewTicker(cleanEvery)
	defer t.Stop()
	for {
		now := time.Now().UTC()
		if err := errors.Join(a.ExpireNotifications(ctx, now), a.DropNotifications(ctx, now.Add(-keptSandbox), now.Add(-kept), now.Add(-keptRequest))); err != nil && ctx.Err() == nil {
			log.Error("clean notifications", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// round makes notifications of what waits, and tries all that are due.
func (s *Sender) round(ctx context.Context) error {
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(ctx); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		now := time.Now().UTC()
		due, err := s.cfg.Store.NotificationDue(ctx, s.cfg.Channel, now)
		if err != nil || !due {
			return err
		}
		list, err := s.cfg.Store.ClaimNotifications(ctx, s.cfg.Channel, now, atOnce)
		if err != nil || len(list) == 0 {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, len(list))
		for i, m := range list {
			wg.Go(func() { errs[i] = s.try(context.WithoutCancel(ctx), m) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// try hands one over and writes down what came of it.
func (s *Sender) try(ctx context.Context, m cloud.NotificationRow) error {
	now := time.Now().UTC()
	switch {
	case !now.Before(m.Until):
		return s.end(ctx, m, cloud.NotificationExpired, m.Reason, now)
	case m.Attempts > MaxAttempts:
		return s.end(ctx, m, cloud.NotificationFailed, m.Reason, now)
	}
	if s.cfg.When != nil {
		switch when, err := s.cfg.When(ctx, m.Notification, now); {
		case err != nil:
			return err
		case when.IsZero():
			return s.end(ctx, m, cloud.NotificationExpired, obsolete, now)
		case when.After(now):
			m.NextAt, m.Attempts = when, m.Attempts-1 // nothing was tried
			return s.cfg.Store.RetryNotification(ctx, m)
		}
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := s.cfg.Carrier.Send(sending, m.Notification)
	now = time.Now().UTC()
	switch {
	case err == nil:
		return s.end(ctx, m, cloud.NotificationSent, "", now)
	case errors.Is(err, ErrRefused):
		s.cfg.Log.Warn("notification refused", "channel", m.Channel, "notification", m.ID, "kind", m.Kind, "err", err)
		return s.end(ctx, m, cloud.NotificationFailed, "refused", now)
	case m.Attempts >= MaxAttempts:
		s.cfg.Log.Warn("notification given up", "channel", m.Channel, "notification", m.ID, "kind", m.Kind, "attempts", m.Attempts, "err", err)
		return s.end(ctx, m, cloud.NotificationFailed, "server", now)
	}
	s.cfg.Log.Info("notification put off", "channel", m.Channel, "notification", m.ID, "kind", m.Kind, "attempts", m.Attempts, "err", err)
	m.Reason, m.NextAt = "server", now.Add(waits[min(m.Attempts, len(waits))-1])
	return s.cfg.Store.RetryNotification(ctx, m)
}

func (s *Sender) end(ctx context.Context, m cloud.NotificationRow, state cloud.NotificationState, reason string, now time.Time) error {
	m.State, m.Reason, m.EndedAt = state, reason, now
	ended, err := s.cfg.Store.EndNotification(ctx, m)
	if err != nil {
		return fmt.Errorf("end notification %s: %w", m.ID, err)
	}
	if ended && state != cloud.NotificationSent && reason != obsolete && s.cfg.Ended != nil {
		return s.cfg.Ended(ctx, m)
	}
	return nil
}
