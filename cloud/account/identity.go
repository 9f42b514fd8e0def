package account

import (
	"context"

	"github.com/postern-io/postern/cloud"
)

// Identity is a person at a sign-in provider, whom an account was linked to.
type Identity struct {
	Issuer    string  `json:"issuer" doc:"Address of the provider"`
	Subject   string  `json:"provider_subject" doc:"The person at the provider"`
	CreatedAt *string `json:"created_at"`
}

// IdentitiesOutput lists identities.
type IdentitiesOutput struct {
	Result     bool       `json:"result"`
	Identities []Identity `json:"identities"`
}

// ListUserIdentities lists who at sign-in providers has an account of the caller's
// business: one person of a provider at most. Error: USER_NOT_FOUND.
func (s *Access) ListUserIdentities(ctx context.Context, c cloud.Caller, in ByUser) (out IdentitiesOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		if err != nil {
			return err
		}
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, err := v.IdentitiesOf(a.ID)
		out = IdentitiesOutput{Result: err == nil, Identities: []Identity{}}
		for _, i := range list {
			out.Identities = append(out.Identities, Identity{Issuer: i.Issuer, Subject: i.Subject, CreatedAt: cloud.Stamp(i.CreatedAt, b.Location())})
		}
		return err
	})
	return out, err
}

// EndUserIdentities takes an account of the caller's business from the persons of
// sign-in providers who have it, with all logins and agents. The next person whom a
// provider vouches for by the account's email gets it. Errors: USER_NOT_FOUND,
// IDENTITY_NOT_FOUND.
func (s *Access) EndUserIdentities(ctx context.Context, c cloud.Caller, in ByUser) (Done, error) {
	now := moment()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := owned(v, c, in.ID, peopleTypes, "USER_NOT_FOUND")
		if err != nil {
			return nil, err
		}
		list, err := v.IdentitiesOf(a.ID)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, cloud.E(cloud.NotFound, "IDENTITY_NOT_FOUND")
		}
		ch := &cloud.Changes{IdentityChanges: cloud.IdentityChanges{EndIdentities: []cloud.AccountID{a.ID}}, FactorChanges: cloud.FactorChanges{EndTickets: []cloud.AccountID{a.ID}},
			AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "identities_ended", "account", int64(a.ID))}}
		return ch, endLogins(v, ch, c, a.ID, now)
	})
	return Done{err == nil}, err
}
