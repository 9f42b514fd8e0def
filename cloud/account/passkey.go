package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Passkey is one of the caller's.
type Passkey struct {
	ID        cloud.PasskeyID `json:"passkey_id"`
	Name      string          `json:"name"`
	CreatedAt *string         `json:"created_at"`
	UsedAt    *string         `json:"used_at"`
}

// PasskeysOutput lists passkeys.
type PasskeysOutput struct {
	Result   bool      `json:"result"`
	Passkeys []Passkey `json:"passkeys"`
}

func showPasskey(p cloud.Passkey, l *time.Location) Passkey {
	return Passkey{ID: p.ID, Name: p.Name, CreatedAt: cloud.Stamp(p.CreatedAt, l), UsedAt: cloud.Stamp(p.UsedAt, l)}
}

// ListPasskeys lists the caller's passkeys, oldest first; there are 20 at most.
func (s *Access) ListPasskeys(ctx context.Context, c cloud.Caller, _ check.None) (out PasskeysOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, err := cloud.All(v, cloud.Passkey{AccountID: c.Account.ID})
		out = PasskeysOutput{Result: err == nil, Passkeys: []Passkey{}}
		for _, p := range list {
			out.Passkeys = append(out.Passkeys, showPasskey(p, b.Location()))
		}
		return err
	})
	return out, err
}

// PasskeyOptionsOutput has what a browser needs.
type PasskeyOptionsOutput struct {
	Result  bool           `json:"result"`
	Options map[string]any `json:"options" graphql:"JSON" doc:"PublicKeyCredentialCreationOptionsJSON or PublicKeyCredentialRequestOptionsJSON of Web Authentication"`
}

// BeginPasskey gives the options by which the caller's browser makes a passkey. own
// is the token of the call: the answer is taken from that login alone. Errors:
// PASSKEY_UNAVAILABLE, PASSKEY_LIMIT, INVALID_CREDENTIALS, SECOND_FACTOR_REQUIRED,
// SECOND_FACTOR_INVALID, SECOND_FACTOR_LOCKED.
func (s *Access) BeginPasskey(ctx context.Context, c cloud.Caller, in ProofInput, own cloud.Token) (out PasskeyOptionsOutput, err error) {
	if s.cfg.Passkeys == nil {
		return out, cloud.E(cloud.Conflict, "PASSKEY_UNAVAILABLE")
	}
	if err := s.cfg.Confirm(ctx, c.Account, in.Password); err != nil {
		return out, err
	}
	err = auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, _, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		list, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
		if err != nil {
			return nil, err
		}
		if len(list) >= auth.MaxPasskeys {
			return cloud.E(cloud.Conflict, "PASSKEY_LIMIT"), nil
		}
		if problem, err := auth.Prove(v, ch, a, in.OTP, now); problem != nil || err != nil {
			return problem, err
		}
		out.Options, err = s.cfg.Passkeys.Creation(a, list, bindingOf(a, own), now)
		out.Result = err == nil
		ch.Audits = append(ch.Audits, audit(c, now, "passkey_begun", "account", int64(a.ID))...)
		return nil, err
	})
	return out, err
}

// bindingOf is what the making of a passkey is bound to: account, password and login.
func bindingOf(a cloud.Account, own cloud.Token) string {
	mark := auth.Mark(a)
	return fmt.Sprintf("%d/%x/%x", a.ID, mark, own.Hash)
}

// AddPasskeyInput is a browser's answer to the options.
type AddPasskeyInput struct {
	Name       string `json:"name" required:"true" max:"64" doc:"By which its person knows it"`
	Credential string `json:"credential" required:"true" max:"16384" doc:"RegistrationResponseJSON of Web Authentication, as text"`
}

// AddPasskeyOutput shows a passkey.
type AddPasskeyOutput struct {
	Result  bool    `json:"result"`
	Passkey Passkey `json:"passkey"`
}

// AddPasskey keeps a passkey of the caller, which signs in from then on; its person
// gets a mail where there is a mail server. Errors: PASSKEY_UNAVAILABLE,
// PASSKEY_REFUSED, PASSKEY_LIMIT, PASSKEY_EXISTS, VALIDATION_FAILED.
func (s *Access) AddPasskey(ctx context.Context, c cloud.Caller, in AddPasskeyInput, own cloud.Token) (out AddPasskeyOutput, err error) {
	f := newFields()
	f.filled("name", &in.Name, true)
	if err := f.Err(); err != nil {
		return out, err
	}
	if s.cfg.Passkeys == nil {
		return out, cloud.E(cloud.Conflict, "PASSKEY_UNAVAILABLE")
	}
	err = auth.Decide(ctx, s.cfg.Store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		a, b, err := selfOf(v, c)
		if err != nil {
			return nil, err
		}
		p, problem, err := s.cfg.Passkeys.Created(v, ch, a, in.Credential, bindingOf(a, own), now)
		if problem != nil || err != nil {
			return problem, err
		}
		list, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
		if err != nil {
			return nil, err
		}
		if len(list) >= auth.MaxPasskeys {
			return cloud.E(cloud.Conflict, "PASSKEY_LIMIT"), nil
		}
		if known, err := hasPasskey(v, p.Credential); known || err != nil {
			return cloud.E(cloud.Conflict, "PASSKEY_EXISTS"), err
		}
		id, err := v.NewID(cloud.PasskeyIDs)
		if err != nil {
			return nil, err
		}
		p.ID, p.Name = cloud.PasskeyID(id), in.Name
		ch.Rows, ch.DropTickets = []cloud.Row{p}, now
		ch.Audits = append(ch.Audits, audit(c, now, "passkey_added", "passkey", id)...)
		out = AddPasskeyOutput{true, showPasskey(p, b.Location())}
		return nil, s.cfg.addMail(v, ch, cloud.NotifyPasskey, a, now)
	})
	if err != nil {
		return AddPasskeyOutput{}, err
	}
	return out, nil
}

func hasPasskey(v cloud.View, credential []byte) (bool, error) {
	_, err := cloud.Find(v, cloud.Passkey{Credential: credential})
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ByPasskey names a passkey of the caller.
type ByPasskey struct {
	ID cloud.PasskeyID `path:"passkey_id"`
}

// RenamePasskeyInput gives a passkey another name.
type RenamePasskeyInput struct {
	ID   cloud.PasskeyID `path:"passkey_id"`
	Name string          `json:"name" required:"true" max:"64"`
}

// RenamePasskey gives a passkey of the caller another name. Errors:
// PASSKEY_NOT_FOUND, VALIDATION_FAILED.
func (s *Access) RenamePasskey(ctx context.Context, c cloud.Caller, in RenamePasskeyInput) (Done, error) {
	f := newFields()
	f.filled("name", &in.Name, true)
	if err := f.Err(); err != nil {
		return Done{}, err
	}
	return s.changePasskey(ctx, c, in.ID, "passkey_renamed", func(ch *cloud.Changes, p cloud.Passkey) {
		p.Name = in.Name
		ch.Rows = []cloud.Row{p}
	})
}

// RemovePasskey ends a passkey of the caller: it signs in no more. Sessions stay.
// Error: PASSKEY_NOT_FOUND.
func (s *Access) RemovePasskey(ctx context.Context, c cloud.Caller, in ByPasskey) (Done, error) {
	return s.changePasskey(ctx, c, in.ID, "passkey_removed", func(ch *cloud.Changes, p cloud.Passkey) { ch.DroppedRows = []cloud.Row{p} })
}

func (s *Access) changePasskey(ctx context.Context, c cloud.Caller, id cloud.PasskeyID, action string, change func(*cloud.Changes, cloud.Passkey)) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		list, err := cloud.All(v, cloud.Passkey{AccountID: c.Account.ID})
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(p cloud.Passkey) bool { return p.ID == id })
		if i < 0 {
			return nil, cloud.E(cloud.NotFound, "PASSKEY_NOT_FOUND")
		}
		a, err := v.Account(c.Account.ID)
		if err != nil {
			return nil, err
		}
		// A login by it at this moment meets the change at the account.
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, action, "passkey", int64(id))}}
		change(ch, list[i])
		return ch, nil
	})
	return Done{err == nil}, err
}
