package account

import (
	"context"
	"net/url"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Access keeps what lets people in: second factors, passwords, sessions,
// invitations. Safe for concurrent use.
type Access struct{ cfg Config }

// AccessOf is the part of a service that keeps what lets people in; nil: it can be
// described and not called.
func AccessOf(s *Service) *Access {
	if s == nil {
		return nil
	}
	return &Access{s.cfg}
}

// pendingLife is how long a second factor that was begun waits for its first code.
const pendingLife = 15 * time.Minute

// Factor is the caller's second factor.
type Factor struct {
	Enabled   bool    `json:"enabled"`
	SetUpAt   *string `json:"set_up_at"`
	Recovery  int     `json:"recovery_codes_left"`
	Required  bool    `json:"required" doc:"The business demands one"`
	RemovedAt *string `json:"removed_by_administrator_at" doc:"null unless an administrator removed it and no other was set up since"`
}

// FactorOutput shows the caller's second factor.
type FactorOutput struct {
	Result bool   `json:"result"`
	Factor Factor `json:"second_factor"`
}

func showFactor(f cloud.SecondFactor, b cloud.Business) Factor {
	l := b.Location()
	return Factor{Enabled: f.On(), SetUpAt: cloud.Stamp(f.SetUpAt, l), Recovery: len(f.Recovery), Required: b.Settings.SecondFactor, RemovedAt: cloud.Stamp(f.ResetAt, l)}
}

// FindFactor shows the caller's second factor.
func (s *Access) FindFactor(ctx context.Context, c cloud.Caller, _ check.None) (out FactorOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		f, err := v.SecondFactor(c.Account.ID)
		out = FactorOutput{Result: err == nil, Factor: showFactor(f, b)}
		return err
	})
	return out, err
}

// ConfirmInput is the proof that the person is at the keyboard.
type ConfirmInput struct {
	Password string `json:"password" required:"true" max:"256" doc:"Of the caller"`
}

// BeginFactorOutput shows a new secret, once.
type BeginFactorOutput struct {
	Result  bool    `json:"result"`
	Secret  string  `json:"totp_secret" doc:"Base32, for apps that cannot read the address as a QR code"`
	URI     string  `json:"totp_uri" doc:"otpauth address of the secret, as RFC 6238 apps read it"`
	Expires *string `json:"expires_at" doc:"Give a code of it by then"`
}

// BeginFactor makes a secret for time-based codes, which is in force once
// ConfirmFactor was given a code of it. Errors: INVALID_CREDENTIALS,
// SECOND_FACTOR_EXISTS.
func (s *Access) BeginFactor(ctx context.Context, c cloud.Caller, in ConfirmInput) (out BeginFactorOutput, err error) {
	if err := s.cfg.Confirm(ctx, c.Account, in.Password); err != nil {
		return out, err
	}
	now, secret := moment(), auth.NewSecret()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, b, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		f, err := v.SecondFactor(a.ID)
		if err != nil {
			return nil, err
		}
		if f.On() {
			return nil, cloud.E(cloud.Conflict, "SECOND_FACTOR_EXISTS")
		}
		f.Pending, f.PendingUntil = secret, now.Add(pendingLife)
		issuer := b.Name
		if issuer == "" {
			issuer = "Postern"
		}
		key := auth.KeyText(secret)
		uri := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + a.Email, RawQuery: url.Values{"secret": {key}, "issuer": {issuer}}.Encode()}
		out = BeginFactorOutput{Result: true, Secret: key, URI: uri.String(), Expires: cloud.Stamp(f.PendingUntil, b.Location())}
		return &cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{f}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "second_factor_begun", "account", int64(a.ID))}}, nil
	})
	return out, err
}

// CodeInput has a time-based code.
type CodeInput struct {
	OTP string `json:"otp" required:"true" pattern:"^[0-9]{3} ?[0-9]{3}$" example:"123456" doc:"Time-based code of six digits"`
}

// RecoveryOutput shows recovery codes, once.
type RecoveryOutput struct {
	Result   bool     `json:"result"`
	Recovery []string `json:"recovery_codes" doc:"Each lets in once when the app that shows codes is lost. They are in this answer and nowhere else"`
}

// ConfirmFactor puts a begun second factor in force and gives recovery codes, which
// are shown once. The caller's other logins and all agents end: they were let in
// without it. Errors:
// SECOND_FACTOR_NOT_BEGUN, SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func (s *Access) ConfirmFactor(ctx context.Context, c cloud.Caller, in CodeInput, own cloud.Token) (RecoveryOutput, error) {
	codes, kept := auth.NewRecoveryCodes()
	err := auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, _, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		f, err := v.SecondFactor(a.ID)
		if err != nil {
			return nil, err
		}
		if f.On() || len(f.Pending) == 0 || !now.Before(f.PendingUntil) {
			return cloud.E(cloud.Conflict, "SECOND_FACTOR_NOT_BEGUN"), nil
		}
		try := f
		try.Secret, try.Recovery, try.Step = f.Pending, nil, 0
		after, problem := auth.TakeCode(try, in.OTP, now)
		if problem != nil {
			f.Wrong, f.LockedUntil = after.Wrong, after.LockedUntil
			ch.SecondFactors = []cloud.SecondFactor{f}
			return problem, nil
		}
		after.Pending, after.PendingUntil, after.Recovery, after.SetUpAt, after.ResetAt = nil, time.Time{}, kept, now, time.Time{}
		ch.SecondFactors = []cloud.SecondFactor{after}
		ch.Audits = audit(c, now, "second_factor_set_up", "account", int64(a.ID))
		if err := endAgents(v, ch, c, a.ID, now); err != nil {
			return nil, err
		}
		return nil, endOthers(v, ch, a, own, now)
	})
	if err != nil {
		return RecoveryOutput{}, err
	}
	return RecoveryOutput{Result: true, Recovery: codes}, nil
}

// ProofInput has a code of the caller's second factor.
type ProofInput struct {
	Password string `json:"password" required:"true" max:"256" doc:"Of the caller"`
	OTP      string `json:"otp" max:"64" doc:"Time-based code, or a recovery code"`
}

// RenewRecovery gives new recovery codes in place of those that are left. Errors:
// INVALID_CREDENTIALS, SECOND_FACTOR_MISSING, SECOND_FACTOR_REQUIRED and
// SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func (s *Access) RenewRecovery(ctx context.Context, c cloud.Caller, in ProofInput) (RecoveryOutput, error) {
	codes, kept := auth.NewRecoveryCodes()
	err := s.changeFactor(ctx, c, in, "recovery_codes_made", func(f *cloud.SecondFactor, _ cloud.Business) *cloud.Error {
		f.Recovery = kept
		return nil
	})
	if err != nil {
		return RecoveryOutput{}, err
	}
	return RecoveryOutput{Result: true, Recovery: codes}, nil
}

// RemoveFactor takes the caller's second factor away. Errors: those of
// RenewRecovery, and SECOND_FACTOR_DEMANDED in a business that demands one.
func (s *Access) RemoveFactor(ctx context.Context, c cloud.Caller, in ProofInput) (Done, error) {
	err := s.changeFactor(ctx, c, in, "second_factor_removed", func(f *cloud.SecondFactor, b cloud.Business) *cloud.Error {
		if b.Settings.SecondFactor {
			return cloud.E(cloud.Conflict, "SECOND_FACTOR_DEMANDED")
		}
		*f = cloud.SecondFactor{AccountID: f.AccountID}
		return nil
	})
	return Done{err == nil}, err
}

func (s *Access) changeFactor(ctx context.Context, c cloud.Caller, in ProofInput, action string, change func(*cloud.SecondFactor, cloud.Business) *cloud.Error) error {
	if err := s.cfg.Confirm(ctx, c.Account, in.Password); err != nil {
		return err
	}
	return auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, b, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		f, err := v.SecondFactor(a.ID)
		if err != nil {
			return nil, err
		}
		if !f.On() {
			return cloud.E(cloud.Conflict, "SECOND_FACTOR_MISSING"), nil
		}
		if problem, err := auth.Prove(v, ch, a, in.OTP, now); problem != nil || err != nil {
			return problem, err
		}
		if problem := change(&ch.SecondFactors[0], b); problem != nil {
			return problem, nil
		}
		ch.Accounts = append(ch.Accounts, a) // a demand of the business at this moment meets the change there
		ch.Audits = append(ch.Audits, audit(c, now, action, "account", int64(a.ID))...)
		return nil, nil
	})
}

// ResetFactor takes away second factor and passkeys of a person who lost them, and ends all of
// the person's logins and agents. The person sees when that was. Errors:
// USER_NOT_FOUND, SECOND_FACTOR_MISSING, SECOND_FACTOR_OWN.
func (s *Access) ResetFactor(ctx context.Context, c cloud.Caller, in ByUser) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		if err != nil {
			return nil, err
		}
		if a.ID == c.Account.ID {
			return nil, cloud.E(cloud.Conflict, "SECOND_FACTOR_OWN")
		}
		f, err := v.SecondFactor(a.ID)
		if err != nil {
			return nil, err
		}
		keys, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
		if err != nil {
			return nil, err
		}
		if !f.On() && len(keys) == 0 {
			return nil, cloud.E(cloud.Conflict, "SECOND_FACTOR_MISSING")
		}
		ch := &cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{{AccountID: a.ID, ResetAt: now}}, EndTickets: []cloud.AccountID{a.ID}},
			AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "second_factor_reset", "account", int64(a.ID))}}
		ch.DroppedRows = cloud.AsRows(keys)
		if err := s.cfg.addMail(v, ch, cloud.NotifyFactorRemoved, a, now); err != nil {
			return nil, err
		}
		return ch, endLogins(v, ch, c, a.ID, now)
	})
	return Done{err == nil}, err
}

// peopleTypes are all accounts of a business that log in with a password.
var peopleTypes = append(append([]cloud.AccountType{}, userTypes...), cloud.Customer)

// moment is now, to the precision of the database.
func moment() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// selfOf is the caller as the database has it now, with its business. Error:
// INVALID_CREDENTIALS when the password has changed or the account ended since the
// call was let in.
func selfOf(v cloud.View, c cloud.Caller) (cloud.Account, cloud.Business, error) {
	a, err := v.Account(c.Account.ID)
	if err != nil {
		return a, cloud.Business{}, err
	}
	if !a.Enabled || a.PasswordHash != c.Account.PasswordHash {
		return a, cloud.Business{}, cloud.E(cloud.Unauthenticated, "INVALID_CREDENTIALS")
	}
	b, err := businessOf(v, c)
	return a, b, err
}

// endOthers ends the logins of an account but one, which may do what the account
// may from now on.
func endOthers(v cloud.View, ch *cloud.Changes, a cloud.Account, own cloud.Token, now time.Time) error {
	list, err := v.Tokens(a.ID)
	if err != nil {
		return err
	}
	for _, t := range list {
		switch {
		case !t.Login() || !t.RevokedAt.IsZero():
		case t.Hash == own.Hash:
			if t.Kind == cloud.SetupToken {
				t.Kind = ""
				ch.Tokens = append(ch.Tokens, t)
			}
		default:
			t.RevokedAt = now
			ch.Tokens = append(ch.Tokens, t)
		}
	}
	ch.Accounts = append(ch.Accounts, a) // a login of this moment meets the change there
	ch.EndTickets = append(ch.EndTickets, a.ID)
	return nil
}
