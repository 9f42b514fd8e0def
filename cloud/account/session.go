package account

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// SessionID names a login of an account: the second it was made, then 20 bits that
// tell nothing of its token.
type SessionID int64

func sessionID(t cloud.Token) SessionID {
	sum := sha256.Sum256(append([]byte("session/"), t.Hash[:]...))
	return SessionID(max(t.CreatedAt.Unix(), 0)<<20 | int64(binary.BigEndian.Uint32(sum[:4])>>12))
}

// Session is a login of a person.
type Session struct {
	ID        SessionID `json:"session_id" graphql:"Long"`
	Name      string    `json:"name" doc:"Of the program or device that logged in"`
	Current   bool      `json:"current" doc:"The one of this call"`
	CreatedAt *string   `json:"created_at"`
	ExpiresAt *string   `json:"expires_at"`
}

// SessionsInput asks for a part of the caller's sessions.
type SessionsInput struct{ PageInput }

// SessionsOutput lists sessions.
type SessionsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Sessions []Session `json:"sessions"`
}

// sessions are an account's logins that are good, oldest first.
func sessions(v cloud.View, id cloud.AccountID, now time.Time) ([]cloud.Token, error) {
	list, err := v.Tokens(id)
	list = slices.DeleteFunc(list, func(t cloud.Token) bool { return !t.Login() || !auth.Valid(t, now) && !auth.SetsUp(t, now) })
	slices.SortFunc(list, func(a, b cloud.Token) int { return cmp.Compare(sessionID(a), sessionID(b)) })
	return list, err
}

// ListSessions lists the caller's logins, newest first. own is the token of the
// call.
func (s *Access) ListSessions(ctx context.Context, c cloud.Caller, in SessionsInput, own cloud.Token) (SessionsOutput, error) {
	page, err := in.Sorted(in, "id")
	if err != nil {
		return SessionsOutput{}, err
	}
	return s.listSessions(ctx, c, in, in.PageInput, page, own, func(cloud.View) (cloud.AccountID, error) { return c.Account.ID, nil })
}

// UserSessionsInput asks for a part of a person's sessions.
type UserSessionsInput struct {
	ID cloud.AccountID `path:"id"`
	PageInput
}

// ListUserSessions lists the logins of a person of the caller's business, newest
// first. Error: USER_NOT_FOUND.
func (s *Access) ListUserSessions(ctx context.Context, c cloud.Caller, in UserSessionsInput, own cloud.Token) (SessionsOutput, error) {
	page, err := in.Sorted(in, "id")
	if err != nil {
		return SessionsOutput{}, err
	}
	return s.listSessions(ctx, c, in, in.PageInput, page, own, func(v cloud.View) (cloud.AccountID, error) {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		return a.ID, err
	})
}

func (s *Access) listSessions(ctx context.Context, c cloud.Caller, in any, keys PageInput, page cloud.Page, own cloud.Token, whose func(cloud.View) (cloud.AccountID, error)) (out SessionsOutput, err error) {
	now := time.Now()
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		id, err := whose(v)
		if err != nil {
			return err
		}
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, err := sessions(v, id, now)
		if err != nil {
			return err
		}
		part, listed, err := cloud.PartOf(list, page, sessionID)
		out = SessionsOutput{Result: err == nil, PageOutput: keys.Output(in, listed), Sessions: []Session{}}
		for _, t := range part {
			out.Sessions = append(out.Sessions, Session{ID: sessionID(t), Name: t.Name, Current: t.Hash == own.Hash, CreatedAt: cloud.Stamp(t.CreatedAt, b.Location()), ExpiresAt: cloud.Stamp(t.ExpiresAt, b.Location())})
		}
		return err
	})
	return out, err
}

// BySession names a login of the caller.
type BySession struct {
	ID SessionID `path:"session_id" graphql:"Long"`
}

// EndSession ends a login of the caller. Error: SESSION_NOT_FOUND.
func (s *Access) EndSession(ctx context.Context, c cloud.Caller, in BySession) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		list, err := sessions(v, c.Account.ID, now)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "session_ended", "account", int64(c.Account.ID))}}
		for _, t := range list {
			if sessionID(t) == in.ID {
				t.RevokedAt = now
				ch.Tokens = append(ch.Tokens, t)
			}
		}
		if len(ch.Tokens) == 0 {
			return nil, cloud.E(cloud.NotFound, "SESSION_NOT_FOUND")
		}
		return ch, nil
	})
	return Done{err == nil}, err
}

// EndOtherSessions ends the caller's logins but the one of the call.
func (s *Access) EndOtherSessions(ctx context.Context, c cloud.Caller, _ check.None, own cloud.Token) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := v.Account(c.Account.ID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "sessions_ended", "account", int64(a.ID))}}
		return ch, endOthers(v, ch, a, own, now)
	})
	return Done{err == nil}, err
}

// EndUserSessions ends all logins and agents of a person of the caller's business.
// Error: USER_NOT_FOUND.
func (s *Access) EndUserSessions(ctx context.Context, c cloud.Caller, in ByUser) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, FactorChanges: cloud.FactorChanges{EndTickets: []cloud.AccountID{a.ID}},
			AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "sessions_ended", "account", int64(a.ID))}}
		return ch, endLogins(v, ch, c, a.ID, now)
	})
	return Done{err == nil}, err
}

// PasswordInput changes the caller's password.
type PasswordInput struct {
	Password string `json:"password" required:"true" max:"256" doc:"The present one"`
	Next     string `json:"new_password" required:"true" min:"10" max:"256"`
	OTP      string `json:"otp" max:"64" doc:"Time-based code, or a recovery code, of an account with a second factor"`
}

// ChangePassword gives the caller another password. The caller's other logins and
// all agents end. Errors: INVALID_CREDENTIALS, SECOND_FACTOR_REQUIRED,
// SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func (s *Access) ChangePassword(ctx context.Context, c cloud.Caller, in PasswordInput, own cloud.Token) (Done, error) {
	f := newFields()
	f.filled("new_password", &in.Next, true)
	if err := f.Err(); err != nil {
		return Done{}, err
	}
	if err := s.cfg.Confirm(ctx, c.Account, in.Password); err != nil {
		return Done{}, err
	}
	hash := auth.HashPassword(in.Next)
	err := auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, _, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		if problem, err := auth.Prove(v, ch, a, in.OTP, now); problem != nil || err != nil {
			return problem, err
		}
		proven := a.IsMailProven()
		if a.PasswordHash = hash; proven {
			a.ProveMail()
		}
		ch.Audits = append(ch.Audits, audit(c, now, "password_changed", "account", int64(a.ID))...)
		if err := endLogins(v, ch, c, a.ID, now); err != nil {
			return nil, err
		}
		ch.Tokens = slices.DeleteFunc(ch.Tokens, func(t cloud.Token) bool { return t.Hash == own.Hash })
		if err := s.cfg.addMail(v, ch, cloud.NotifyPassword, a, now); err != nil {
			return nil, err
		}
		ch.Accounts, ch.EndTickets = append(ch.Accounts, a), append(ch.EndTickets, a.ID)
		return nil, nil
	})
	return Done{err == nil}, err
}

// SelfInput changes what a person may change of the own account.
type SelfInput struct {
	Locale string `json:"locale" required:"true" enum:"en,zh-Hans,zh-Hant,fr,de,es" doc:"Language of pages"`
}

// ChangeSelf sets the caller's language.
func (s *Access) ChangeSelf(ctx context.Context, c cloud.Caller, in SelfInput) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := v.Account(c.Account.ID)
		if err != nil {
			return nil, err
		}
		a.Locale = in.Locale
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "language_set", "account", int64(a.ID))}}, nil
	})
	return Done{err == nil}, err
}
