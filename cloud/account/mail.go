package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

const (
	noticeLife  = 3 * 24 * time.Hour // that a mail without a link is tried
	maxRequests = 100                // that are looked at in one go
	maxMailings = 16                 // businesses of one address that a request makes mails for
)

// mails reports whether the deployment has a mail server.
func (s *Access) mails() bool { return s.cfg.MailBase != "" }

// ImportedInvitations is how many invitations a file may make: none where links do not go
// by mail, since a job shows no link. A nil Access makes none.
func (s *Access) ImportedInvitations() int {
	if s == nil || !s.mails() {
		return 0
	}
	return maxInvitations
}

// mailLink is the address of a page in a mail. It begins as the settings say: what a
// caller's Host header says is never sent to another person.
func (s *Access) mailLink(path, token string) string {
	return link(cloud.Caller{BaseURL: s.cfg.MailBase}, path, token)
}

// mailTo is a mail to an account.
func mailTo(kind cloud.NotificationKind, a cloud.Account, b cloud.Business, now, until time.Time) cloud.Notification {
	return cloud.Notification{ID: auth.NewToken()[:24], BusinessID: a.BusinessID, AccountID: a.ID, Channel: cloud.ByEmail, Kind: kind, At: now, Until: until,
		NotificationText: cloud.NotificationText{To: a.Email, Language: cmp.Or(a.Locale, b.Settings.Locale()), Name: a.Name, Business: b.Name}}
}

// addMail adds a mail without a link to what is written, where there is a mail server
// and the person has an address.
func (c Config) addMail(v cloud.View, ch *cloud.Changes, kind cloud.NotificationKind, a cloud.Account, now time.Time) error {
	if c.MailBase == "" || a.Email == "" {
		return nil
	}
	b, err := v.Business(a.BusinessID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) { // the platform's own people have none
		return err
	}
	ch.Notifications = append(ch.Notifications, mailTo(kind, a, b, now, now.Add(noticeLife)))
	return nil
}

// ForgottenInput asks for a link to a new password.
type ForgottenInput struct {
	Email string `json:"email" required:"true" max:"256" doc:"Of the account"`
}

// RequestReset keeps the wish of a person without a login for a link to a new
// password. Whether an account has the address is looked at later, by ResolveResets:
// neither the answer nor its time says it. Errors: VALIDATION_FAILED,
// MAIL_UNAVAILABLE where there is no mail server.
func (s *Access) RequestReset(ctx context.Context, c cloud.Caller, in ForgottenInput) (Done, error) {
	f := newFields()
	in.Email = f.email(in.Email)
	if err := f.Err(); err != nil {
		return Done{}, err
	}
	if !s.mails() {
		return Done{}, cloud.E(cloud.Conflict, "MAIL_UNAVAILABLE")
	}
	r := cloud.ResetRequest{Digest: auth.Hash(in.Email), Email: in.Email, Language: c.Language, At: moment()}
	err := s.cfg.Store.Decide(ctx, 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{NotificationChanges: cloud.NotificationChanges{ResetRequests: []cloud.ResetRequest{r}}, Unaudited: true}, nil
	})
	return Done{err == nil}, err
}

// Requests is what ResolveResets needs of the database.
type Requests interface {
	ListResetRequests(ctx context.Context, limit int) ([]cloud.ResetRequest, error)
	FindAccountsByEmail(ctx context.Context, email string) ([]cloud.Account, error)
}

// ResolveResets makes links and mails of the requests that wait: one for each
// enabled account of the address. A request is ended with what came of it, so that
// a process that ends in between neither forgets one nor does one twice.
func (s *Access) ResolveResets(ctx context.Context, db Requests) error {
	list, err := db.ListResetRequests(ctx, maxRequests)
	if err != nil {
		return fmt.Errorf("list reset requests: %w", err)
	}
	for _, r := range list {
		accounts, err := db.FindAccountsByEmail(ctx, r.Email)
		if err != nil {
			return fmt.Errorf("find accounts: %w", err)
		}
		if err := s.resolveReset(ctx, r, accounts[:min(len(accounts), maxMailings)]); err != nil {
			return fmt.Errorf("resolve a reset request: %w", err)
		}
	}
	return nil
}

func (s *Access) resolveReset(ctx context.Context, r cloud.ResetRequest, accounts []cloud.Account) error {
	now := moment()
	return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		present, err := v.ResetRequest(r.Digest)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && !present.DoneAt.IsZero() {
			return nil, nil // another node was faster
		}
		if err != nil {
			return nil, err
		}
		present.DoneAt = now
		ch := &cloud.Changes{NotificationChanges: cloud.NotificationChanges{DoneResetRequests: []cloud.ResetRequest{present}}, Unaudited: true}
		for _, known := range accounts {
			a, err := v.Account(known.ID)
			if err != nil {
				return nil, err
			}
			if !a.Enabled || a.PasswordHash == "" || a.Type == cloud.ProviderType || !strings.EqualFold(a.Email, present.Email) {
				continue
			}
			b, err := v.Business(a.BusinessID)
			if err != nil && !errors.Is(err, cloud.ErrNotFound) {
				return nil, err
			}
			token := auth.NewToken()
			t := resetTicket(a, token, now)
			t.Mailed = true
			m := mailTo(cloud.NotifyReset, a, b, now, t.ExpiresAt)
			m.Language, m.Link = cmp.Or(a.Locale, present.Language), s.mailLink(ResetPath, token)
			ch.Tickets, ch.Notifications = append(ch.Tickets, t), append(ch.Notifications, m)
			ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: a.BusinessID, At: now, Actor: "anonymous", Action: "password_reset_requested", Target: fmt.Sprintf("account:%d", a.ID), Detail: "{}"})
		}
		return ch, nil
	})
}

func resetTicket(a cloud.Account, token string, now time.Time) cloud.Ticket {
	return cloud.Ticket{Hash: auth.Hash(token), Kind: cloud.ResetTicket, AccountID: a.ID, PasswordMark: auth.Mark(a), ExpiresAt: now.Add(resetLife)}
}
