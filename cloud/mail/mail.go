// Package mail sends mails to people by the deployment's mail server.
//
// A mail is a row that was written with what it is about (cloud.Mail). One node at a
// time tries it, under a lease: an attempt is counted before it begins, so a process
// that ends in the middle of each does not go on for ever. A mail ends in exactly one
// state, and its text is erased with it. It is handed over twice only when a node
// ended between the server's yes and the end in the database; both have the same
// Message-ID, by which mail programs drop the second.
//
// A server that is down, busy or refuses the login is asked again later; one that
// refuses the mail for good is not. Neither addresses nor texts are logged. Safe for
// concurrent use.
package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Carrier hands a mail to a mail server.
type Carrier interface {
	// Send returns when the server has taken the mail. ErrRefused says that another
	// attempt is of no use.
	Send(ctx context.Context, m cloud.Mail) error
}

// ErrRefused is the error of a mail that the server will never take.
var ErrRefused = errors.New("the mail server refuses the mail")

// Store is what this package needs of the database.
type Store interface {
	MailDue(ctx context.Context, now time.Time) (bool, error)
	ClaimMails(ctx context.Context, now time.Time, limit int) ([]cloud.MailRow, error)
	EndMail(ctx context.Context, m cloud.MailRow) error
	RetryMail(ctx context.Context, m cloud.MailRow) error
	RecoverMails(ctx context.Context) error
	DropMails(ctx context.Context, mails, requests time.Time) error
}

// Config is what New needs.
type Config struct {
	Store   Store
	Carrier Carrier
	// Prepare makes mails of what waits to become some, before each look; nil: nothing
	// does.
	Prepare func(ctx context.Context) error
	// Ended is called with each mail that the server did not take; nil: nothing is.
	Ended func(ctx context.Context, m cloud.MailRow) error
	Log   *slog.Logger // nil: nothing is logged
}

// Sender sends mails. Run starts it.
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

// Times and sizes.
const (
	lookEvery   = 10 * time.Second
	cleanEvery  = 10 * time.Minute
	atOnce      = 4
	sendTimeout = 20 * time.Second // below the lease
	kept        = 30 * 24 * time.Hour
	keptRequest = 24 * time.Hour
	// MaxAttempts is how often a mail is tried.
	MaxAttempts = 20
)

// waits are the times between attempts; the last one goes on.
var waits = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 8 * time.Hour}

// Committed looks at once for what a commit wrote.
func (s *Sender) Committed(ch *cloud.Changes) {
	if len(ch.Mails)+len(ch.ResetRequests) > 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Run sends what is due until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	if err := s.cfg.Store.RecoverMails(ctx); err != nil {
		return err
	}
	look, clean := time.NewTicker(lookEvery), time.NewTicker(cleanEvery)
	defer look.Stop()
	defer clean.Stop()
	torn := false // an attempt was begun, and its end is not written
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-clean.C:
			now := time.Now().UTC()
			err = s.cfg.Store.DropMails(ctx, now.Add(-kept), now.Add(-keptRequest))
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.Error("drop old mails", "err", err)
			}
			continue
		case <-s.wake:
		case <-look.C:
		}
		if torn {
			err = s.cfg.Store.RecoverMails(ctx)
		}
		if err == nil {
			err = s.round(ctx)
		}
		if torn = err != nil; torn && ctx.Err() == nil {
			s.cfg.Log.Error("send mails", "err", err)
		}
	}
}

// round makes mails of what waits, and tries all that are due.
func (s *Sender) round(ctx context.Context) error {
	if s.cfg.Prepare != nil {
		if err := s.cfg.Prepare(ctx); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		now := time.Now().UTC()
		due, err := s.cfg.Store.MailDue(ctx, now)
		if err != nil || !due {
			return err
		}
		list, err := s.cfg.Store.ClaimMails(ctx, now, atOnce)
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

// try hands one mail over and writes down what came of it.
func (s *Sender) try(ctx context.Context, m cloud.MailRow) error {
	now := time.Now().UTC()
	switch {
	case !now.Before(m.Until):
		return s.end(ctx, m, cloud.MailExpired, m.Reason, now)
	case m.Attempts > MaxAttempts:
		return s.end(ctx, m, cloud.MailFailed, m.Reason, now)
	}
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := s.cfg.Carrier.Send(sending, m.Mail)
	switch {
	case err == nil:
		return s.end(ctx, m, cloud.MailSent, "", now)
	case errors.Is(err, ErrRefused):
		s.cfg.Log.Warn("mail refused", "mail", m.ID, "kind", m.Kind, "err", err)
		return s.end(ctx, m, cloud.MailFailed, "refused", now)
	case m.Attempts >= MaxAttempts:
		s.cfg.Log.Warn("mail given up", "mail", m.ID, "kind", m.Kind, "attempts", m.Attempts, "err", err)
		return s.end(ctx, m, cloud.MailFailed, "server", now)
	}
	s.cfg.Log.Info("mail put off", "mail", m.ID, "kind", m.Kind, "attempts", m.Attempts, "err", err)
	m.Reason, m.NextAt = "server", now.Add(waits[min(m.Attempts, len(waits))-1])
	return s.cfg.Store.RetryMail(ctx, m)
}

func (s *Sender) end(ctx context.Context, m cloud.MailRow, state cloud.MailState, reason string, now time.Time) error {
	m.State, m.Reason, m.EndedAt = state, reason, now
	if err := s.cfg.Store.EndMail(ctx, m); err != nil {
		return fmt.Errorf("end mail %s: %w", m.ID, err)
	}
	if state != cloud.MailSent && s.cfg.Ended != nil {
		return s.cfg.Ended(ctx, m)
	}
	return nil
}
