package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// ErrWhich is returned when it is not clear which business an administrator is
// for.
var ErrWhich = errors.New("name the business: its code for one that exists, a name for a new one")

// Operator makes an operator of the platform, who belongs to no business, or
// gives the one with this email a new password. Error: VALIDATION_FAILED.
func (s *Service) Operator(ctx context.Context, in Input) (Made, error) {
	f := check.Fields{}
	in.person(f)
	if err := f.Err(); err != nil {
		return Made{}, err
	}
	return s.command(ctx, in, func(known []cloud.Account) (cloud.AccountID, error) {
		for _, a := range known {
			if a.Type == cloud.PlatformAdmin && a.BusinessID == 0 {
				return a.ID, nil
			}
		}
		return 0, nil
	}, func(v cloud.View, ch *cloud.Changes, hash string) (made Made, err error) {
		made.Account, err = newAccount(v, ch, cloud.PlatformAdmin, 0, in, hash, commandLine)
		return made, err
	})
}

// ErrThere is returned when a new business is named and there is one with its code.
var ErrThere = errors.New("there is a business with this code")

const commandLine = "command line"

// Administrator makes a business with its administrator where Business names it. Without it
// the business with Code, or the one that this email is an administrator of, gets the
// administrator; one that is there gets a new password, is enabled, and every login of theirs
// ends. Errors: ErrWhich, ErrThere, VALIDATION_FAILED.
func (s *Service) Administrator(ctx context.Context, in Input) (Made, error) {
	f := check.Fields{}
	in.person(f)
	if in.Business != "" {
		in.business(f)
	}
	if err := f.Err(); err != nil {
		return Made{}, err
	}
	var business cloud.Business // that exists
	if in.Code != "" {
		err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) { business, err = v.BusinessByCode(in.Code); return err })
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return Made{}, err
		}
	}
	if in.Business != "" && business.ID != 0 {
		return Made{}, ErrThere
	}
	return s.command(ctx, in, func(known []cloud.Account) (cloud.AccountID, error) {
		var found []cloud.AccountID
		for _, a := range known {
			if a.Type == cloud.ClientAdmin && (in.Code == "" || a.BusinessID == business.ID) {
				found = append(found, a.ID)
			}
		}
		if len(found) > 1 || len(found) == 0 && in.Business == "" && business.ID == 0 {
			return 0, ErrWhich
		}
		if len(found) == 1 {
			return found[0], nil
		}
		return 0, nil
	}, func(v cloud.View, ch *cloud.Changes, hash string) (made Made, err error) {
		if business.ID == 0 {
			return newBusiness(v, ch, in, hash, commandLine)
		}
		made.Business = business
		made.Account, err = newAccount(v, ch, cloud.ClientAdmin, business.ID, in, hash, commandLine)
		return made, err
	})
}

// command gives the account that choose names a new password, or makes one.
func (s *Service) command(ctx context.Context, in Input, choose func(known []cloud.Account) (cloud.AccountID, error), add func(v cloud.View, ch *cloud.Changes, hash string) (Made, error)) (made Made, err error) {
	known, err := s.cfg.Store.FindAccountsByEmail(ctx, in.Email)
	if err != nil {
		return made, fmt.Errorf("find accounts: %w", err)
	}
	id, err := choose(known)
	if err != nil {
		return made, err
	}
	hash := auth.HashPassword(in.Password)
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		row, err := v.Setup()
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		if id != 0 {
			made, err = renewPassword(v, ch, id, hash)
		} else {
			made, err = add(v, ch, hash)
		}
		if err == nil && made.Account.Type == cloud.ClientAdmin {
			closeAddress(ch, row)
		}
		return ch, err
	})
	if errors.Is(err, cloud.ErrExists) {
		f := check.Fields{}
		f.Add("email", "The email is in use.")
		err = f.Err()
	}
	return made, err
}

// renewPassword lets an account in again, and ends its logins.
func renewPassword(v cloud.View, ch *cloud.Changes, id cloud.AccountID, hash string) (made Made, err error) {
	a, err := v.Account(id)
	if err != nil {
		return made, err
	}
	now := time.Now().UTC()
	a.PasswordHash, a.Enabled = hash, true
	if a.BusinessID != 0 {
		if made.Business, err = v.Business(a.BusinessID); err != nil {
			return made, err
		}
	}
	tokens, err := v.Tokens(id)
	if err != nil {
		return made, err
	}
	for _, t := range tokens {
		if t.Login() && t.RevokedAt.IsZero() {
			t.RevokedAt = now
			ch.Tokens = append(ch.Tokens, t)
		}
	}
	ch.Accounts, ch.Audits = []cloud.Account{a}, []cloud.Audit{audit(a, now, "password_set", commandLine)}
	made.Account, made.Replaced = a, true
	return made, nil
}
