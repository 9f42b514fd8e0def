package setup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Reset takes away the second factor of the account with an email, for a person at
// the machine, and ends its logins and agents; the password stays. code names the
// business where several have the email, and "" is any. Errors: cloud.ErrNotFound
// when there is no such account, ErrWhich when there are several.
func (s *Service) Reset(ctx context.Context, email, code string) (made Made, err error) {
	known, err := s.cfg.Store.FindAccountsByEmail(ctx, strings.ToLower(strings.TrimSpace(email)))
	if err != nil {
		return made, fmt.Errorf("find accounts: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		made = Made{}
		found := 0
		for _, a := range known {
			var b cloud.Business
			if a.BusinessID != 0 {
				if b, err = v.Business(a.BusinessID); err != nil {
					return nil, err
				}
			}
			if code == "" || strings.EqualFold(code, b.Code) {
				made.Account, made.Business, found = a, b, found+1
			}
		}
		switch found {
		case 0:
			return nil, cloud.ErrNotFound
		case 1:
		default:
			return nil, ErrWhich
		}
		a, err := v.Account(made.Account.ID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		ch.Accounts = []cloud.Account{a} // a login of this moment meets the change there
		ch.SecondFactors = []cloud.SecondFactor{{AccountID: a.ID, ResetAt: now}}
		ch.EndTickets = []cloud.AccountID{a.ID}
		ch.Audits = []cloud.Audit{audit(a, now, "second_factor_reset", commandLine)}
		keys, err := cloud.All(v, cloud.Passkey{AccountID: a.ID})
		if err != nil {
			return nil, err
		}
		ch.DroppedRows = cloud.AsRows(keys)
		tokens, err := v.Tokens(a.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range tokens {
			if t.Login() && t.RevokedAt.IsZero() {
				t.RevokedAt = now
				ch.Tokens = append(ch.Tokens, t)
			}
		}
		grants, err := v.OAuthGrants(a.ID)
		for _, g := range grants {
			if g.Live(now) {
				ch.OAuthEnds = append(ch.OAuthEnds, cloud.OAuthEnd{ID: g.ID, At: now})
			}
		}
		return ch, err
	})
	return made, err
}
