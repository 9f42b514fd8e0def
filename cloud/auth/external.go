package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// External is a person as a business's sign-in provider says. Its token was checked.
type External struct {
	BusinessCode    string
	Issuer, Subject string
	Email           string
	EmailVerified   bool
	// Role is what the provider's claim makes of the person; empty: roles are kept
	// here.
	Role cloud.AccountType
	// NoRole says that roles are kept at the provider, and that it has none for the
	// person.
	NoRole bool
	Name   string        // of the token, as its owner sees it; empty: console
	Life   time.Duration // of the token; 0: TokenLife
}

// Demanding lists the codes of businesses whose people sign in by their provider alone.
func (s *Service) Demanding(codes []string) *Service {
	s.demanding = map[string]bool{}
	for _, c := range codes {
		s.demanding[strings.ToLower(c)] = true
	}
	return s
}

// demands reports whether an account signs in by its business's provider alone.
func (s *Service) demands(v cloud.View, a cloud.Account) (bool, error) {
	if len(s.demanding) == 0 || a.BusinessID == 0 {
		return false, nil
	}
	b, err := v.Business(a.BusinessID)
	return s.demanding[strings.ToLower(b.Code)], err
}

// External logs a person in whom a provider vouches for. The account is the one that
// was linked to the person, or else the one of the same business that has the email,
// if the provider verified it and no other person of the provider has the account.
// No account is made. A person without a role is let in as the last administrator of a
// business alone. Errors: OIDC_NO_ACCOUNT, OIDC_NO_ROLE, ACCOUNT_DISABLED.
func (s *Service) External(ctx context.Context, x External) (l Login, err error) {
	err = Decide(ctx, s.store, func(v cloud.View, ch *cloud.Changes, now time.Time) (*cloud.Error, error) {
		none := cloud.E(cloud.Forbidden, "OIDC_NO_ACCOUNT")
		b, err := v.BusinessByCode(x.BusinessCode)
		if errors.Is(err, cloud.ErrNotFound) {
			return none, nil
		}
		if err != nil {
			return nil, err
		}
		a, found, err := externalAccount(v, ch, b, x, now)
		switch {
		case err != nil:
			return nil, err
		case !found:
			return none, nil
		case !a.Enabled:
			return cloud.E(cloud.Forbidden, "ACCOUNT_DISABLED"), nil
		}
		if x.NoRole {
			last, err := isLastAdmin(v, a)
			if err != nil {
				return nil, err
			}
			if !last {
				*ch = cloud.Changes{} // a login that is refused links no account
				return cloud.E(cloud.Forbidden, "OIDC_NO_ROLE"), nil
			}
			keepRole(ch, a, "", now)
		}
		if err := mapRole(v, ch, &a, x.Role, now); err != nil {
			return nil, err
		}
		l, err = s.enter(v, ch, a, cmp.Or(x.Name, "console"), cmp.Or(x.Life, TokenLife), now, true)
		return nil, err
	})
	if err != nil {
		return Login{}, err
	}
	return l, nil
}

// externalAccount finds the account of a person, and links it the first time.
func externalAccount(v cloud.View, ch *cloud.Changes, b cloud.Business, x External, now time.Time) (a cloud.Account, found bool, err error) {
	i, err := v.Identity(b.ID, x.Issuer, x.Subject)
	if err == nil {
		a, err = v.Account(i.AccountID)
		return a, err == nil && a.BusinessID == b.ID, err
	}
	if !errors.Is(err, cloud.ErrNotFound) {
		return a, false, err
	}
	if !x.EmailVerified || x.Email == "" {
		return a, false, nil
	}
	list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: b.ID, Email: strings.ToLower(x.Email), Page: cloud.Page{Sort: "id", Limit: 2}})
	if err != nil || len(list) != 1 || list[0].Type == cloud.ProviderType {
		return a, false, err
	}
	a = list[0]
	known, err := v.IdentitiesOf(a.ID)
	if err != nil || slices.ContainsFunc(known, func(i cloud.Identity) bool { return i.Issuer == x.Issuer }) {
		return a, false, err // an address that went to another person of the provider
	}
	ch.Identities = append(ch.Identities, cloud.Identity{BusinessID: b.ID, Issuer: x.Issuer, Subject: x.Subject, AccountID: a.ID, CreatedAt: now})
	ch.Audits = append(ch.Audits, audit(a, now, "identity_linked"))
	return a, true, nil
}

// mapRole makes an administrator or employee what the provider says. Other types of
// accounts stay what they are, and so does the last administrator.
func mapRole(v cloud.View, ch *cloud.Changes, a *cloud.Account, role cloud.AccountType, now time.Time) error {
	staff := []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}
	if role == "" || role == a.Type || !slices.Contains(staff, a.Type) || !slices.Contains(staff, role) {
		return nil
	}
	if a.Type == cloud.ClientAdmin {
		last, err := isLastAdmin(v, *a)
		if err != nil {
			return err
		}
		if last {
			keepRole(ch, *a, role, now)
			return nil
		}
		b, err := v.Business(a.BusinessID)
		if err != nil {
			return err
		}
		ch.Businesses = append(ch.Businesses, b) // two that lose the role at one moment meet there
	}
	line := audit(*a, now, "role_mapped")
	line.Detail = fmt.Sprintf(`{"from":%q,"to":%q}`, a.Type, role)
	a.Type = role
	ch.Audits = append(ch.Audits, line)
	return nil
}

// isLastAdmin reports whether an account is the only administrator of its business that is
// switched on.
func isLastAdmin(v cloud.View, a cloud.Account) (bool, error) {
	if a.Type != cloud.ClientAdmin || !a.Enabled {
		return false, nil
	}
	admins, _, err := v.Accounts(cloud.AccountFilter{BusinessID: a.BusinessID, Types: []cloud.AccountType{cloud.ClientAdmin}, Enabled: true, Page: cloud.Page{Sort: "id", Limit: 2}})
	return len(admins) < 2, err
}

// keepRole notes that the last administrator stays one although the provider has another
// role for the person, or none.
func keepRole(ch *cloud.Changes, a cloud.Account, role cloud.AccountType, now time.Time) {
	line := audit(a, now, "role_kept")
	line.Detail = fmt.Sprintf(`{"role":%q,"provider_role":%q}`, a.Type, role)
	ch.Audits = append(ch.Audits, line)
}
