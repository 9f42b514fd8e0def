package account

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// email checks an address as people log in with it and gives it back in lower
// case.
func (f fields) email(value string) string {
	value = strings.ToLower(strings.TrimSpace(value))
	name, host, ok := strings.Cut(value, "@")
	if !ok || name == "" || !strings.Contains(host, ".") || strings.ContainsAny(value, " \t\r\n<>,;") || strings.Contains(host, "@") || len(value) > 256 {
		f.Add("email", "Use an email address, such as jane@example.com.")
	}
	return value
}

// taken says that an email belongs to an account already.
func taken(err error) error {
	if errors.Is(err, cloud.ErrExists) {
		f := newFields()
		f.Add("email", "The email is in use.")
		return f.Err()
	}
	return err
}

// owned finds an account of the caller's business that is of one of the types;
// any other is the error code.
func owned(v cloud.View, c cloud.Caller, id cloud.AccountID, types []cloud.AccountType, code string) (cloud.Account, error) {
	a, err := v.Account(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (a.BusinessID != c.Account.BusinessID || !slices.Contains(types, a.Type)) {
		return cloud.Account{}, cloud.E(cloud.NotFound, code)
	}
	return a, err
}

// endLogins ends an account's logins and agents now: a former password is of no more
// use to a person who knows it.
func endLogins(v cloud.View, ch *cloud.Changes, c cloud.Caller, a cloud.AccountID, now time.Time) error {
	list, err := v.Tokens(a)
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.Login() && t.RevokedAt.IsZero() {
			t.RevokedAt = now
			ch.Tokens = append(ch.Tokens, t)
		}
	}
	return endAgents(v, ch, c, a, now)
}

// endFormerAccess ends an account's keys and passkeys.
func endFormerAccess(v cloud.View, ch *cloud.Changes, a cloud.AccountID, now time.Time) error {
	keys, err := liveKeys(v, a, now)
	if err != nil {
		return err
	}
	for _, t := range keys {
		t.RevokedAt = now
		ch.Tokens = append(ch.Tokens, t)
	}
	passkeys, err := cloud.All(v, cloud.Passkey{AccountID: a})
	ch.DroppedRows = append(ch.DroppedRows, cloud.AsRows(passkeys)...)
	return err
}

// endAgents ends what an account's agents were allowed.
func endAgents(v cloud.View, ch *cloud.Changes, c cloud.Caller, a cloud.AccountID, now time.Time) error {
	grants, err := v.OAuthGrants(a)
	for _, g := range grants {
		if g.Live(now) {
			ch.OAuthEnds = append(ch.OAuthEnds, cloud.OAuthEnd{ID: g.ID, At: now})
			ch.Audits = append(ch.Audits, audit(c, now, "agent_grant_ended", "agent", int64(g.ID))...)
		}
	}
	return err
}

// keepsAnAdmin refuses a change that leaves a business without an enabled
// admin. The business's row is written with it, so that two admins who switch
// each other off at one moment meet there.
func keepsAnAdmin(v cloud.View, before, after cloud.Account) ([]cloud.Business, error) {
	admin := func(a cloud.Account) bool { return a.Type == cloud.ClientAdmin && a.Enabled }
	if !admin(before) || admin(after) {
		return nil, nil
	}
	b, err := v.Business(before.BusinessID)
	if err != nil {
		return nil, err
	}
	list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: b.ID, Types: []cloud.AccountType{cloud.ClientAdmin}, Enabled: true, Page: cloud.Page{Sort: "id", Limit: 2}})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(a cloud.Account) bool { return a.ID != before.ID }) {
		return nil, cloud.E(cloud.Conflict, "LAST_ADMIN")
	}
	return []cloud.Business{b}, nil
}

// roomFor refuses an account that is switched on beyond the limit that the platform set
// for a business. Below one the business's row is written, so that of two that take the
// last place one looks again. Error: ACCOUNT_LIMIT_REACHED.
func roomFor(v cloud.View, before, a cloud.Account) ([]cloud.Business, error) {
	fresh := before.Type == ""
	if !a.Enabled || before.Enabled && !fresh || a.BusinessID == 0 {
		return nil, nil
	}
	state, err := v.Suspension(a.BusinessID)
	limit := state.Limits.Accounts
	if err != nil || limit == 0 {
		return nil, err
	}
	list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: a.BusinessID, Enabled: true, Page: cloud.Page{Sort: "id", Offset: limit - 1, Limit: 1}})
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		return nil, cloud.E(cloud.Conflict, "ACCOUNT_LIMIT_REACHED", limit)
	}
	b, err := v.Business(a.BusinessID)
	return []cloud.Business{b}, err
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
