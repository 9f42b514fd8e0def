package account

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// defaultProfile is what a key may that says nothing else.
const defaultProfile = "ops-readonly"

// maxKeys is how many keys an account or provider may have that still work.
const maxKeys = 100

// Key is a key as its owner sees it.
type Key struct {
	ID          cloud.TokenID `json:"id"`
	Name        string        `json:"name"`
	Profile     *string       `json:"profile" doc:"null when scopes were given alone"`
	Scopes      []string      `json:"scopes" max:"100" doc:"Empty: those of the profile"`
	IPAllowlist []string      `json:"ip_allowlist" max:"100" doc:"Empty: any address"`
	Approval    string        `json:"require_approval" doc:"never, high or all: which writes wait for a person"`
	DryRunOnly  bool          `json:"dry_run_only" doc:"Writes are only tried"`
	Surfaces    []string      `json:"surfaces" doc:"Where it is good: api, graphql, mcp, live. Empty: everywhere"`
	Limits      KeyLimits     `json:"limits"`
	CreatedAt   *string       `json:"created_at"`
	ExpiresAt   *string       `json:"expires_at"`
}

// KeyLimits bound what a key does without a person in a day of UTC; 0: no bound.
type KeyLimits struct {
	Writes int         `json:"writes_per_day" min:"0" max:"1000000" doc:"Writes; each order of a batch is one. 0: no bound"`
	Money  cloud.Money `json:"money_per_day" min:"0" doc:"What the prices of its orders add up to. 0: no bound"`
}

func showKey(t cloud.Token, l *time.Location) Key {
	return Key{ID: t.ID, Name: t.Name, Profile: cloud.OrNull(t.Profile), Scopes: orEmpty(t.Scopes), IPAllowlist: orEmpty(t.IPAllowlist),
		CreatedAt: cloud.Stamp(t.CreatedAt, l), ExpiresAt: cloud.Stamp(t.ExpiresAt, l), Approval: cmp.Or(t.Policy.Approval, cloud.AskNever),
		DryRunOnly: t.Policy.DryRunOnly, Surfaces: orEmpty(t.Policy.Surfaces), Limits: KeyLimits{t.Policy.WritesPerDay, t.Policy.MoneyPerDay}}
}

// KeysInput asks for a part of the caller's keys.
type KeysInput struct{ PageInput }

// KeysOutput lists keys that still work.
type KeysOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Keys []Key `json:"api_keys"`
}

// ListKeys lists the caller's keys that still work.
func (s *Service) ListKeys(ctx context.Context, c cloud.Caller, in KeysInput) (out KeysOutput, err error) {
	page, err := in.Sorted(in, "id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		list, err := liveKeys(v, c.Account.ID, time.Now())
		if err != nil {
			return err
		}
		part, listed, err := cloud.PartOf(list, page, tokenID)
		out = KeysOutput{Result: true, PageOutput: in.Output(in, listed), Keys: []Key{}}
		for _, t := range part {
			out.Keys = append(out.Keys, showKey(t, b.Location()))
		}
		return err
	})
	return out, err
}

func tokenID(t cloud.Token) cloud.TokenID { return t.ID }

// ByKey names a key of the caller.
type ByKey struct {
	ID cloud.TokenID `path:"id"`
}

// KeyOutput shows a key. Token is set once, when this call made it.
type KeyOutput struct {
	Result bool   `json:"result"`
	Key    Key    `json:"api_key"`
	Token  string `json:"token,omitempty"`
}

// FindKey shows a key of the caller. Error: API_KEY_NOT_FOUND.
func (s *Service) FindKey(ctx context.Context, c cloud.Caller, in ByKey) (out KeyOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		t, err := keyOf(v, c.Account.ID, in.ID, time.Now())
		out = KeyOutput{Result: err == nil, Key: showKey(t, b.Location())}
		return err
	})
	return out, err
}

// KeyInput asks for a key.
type KeyInput struct {
	Name        string       `json:"name" required:"true" max:"64"`
	Profile     string       `json:"profile" default:"ops-readonly" enum:"alliance-readonly,datasets-readonly,wms-readonly,support,ops-readonly,ops-write,full" doc:"What the key may when scopes are empty; ops-readonly when absent"`
	Scopes      cloud.Scopes `json:"scopes" max:"100" doc:"What the key may, of what its owner may"`
	ExpiresAt   string       `json:"expires_at" format:"moment" doc:"A year from now when absent, five years at most"`
	IPAllowlist []string     `json:"ip_allowlist" max:"100" doc:"Addresses and prefixes that it may come from; empty: any"`
	Approval    string       `json:"require_approval" enum:"never,high,all" doc:"Which of its writes wait for a person: none, those of high risk, or all; never when absent"`
	DryRunOnly  bool         `json:"dry_run_only" doc:"Its writes are only tried: nothing changes"`
	Surfaces    []string     `json:"surfaces" item_enum:"api,graphql,mcp,live" doc:"Where it is good; empty: everywhere"`
	Limits      KeyLimits    `json:"limits" doc:"What it may do without a person in a day of UTC"`
}

// policy is what may be done without a person.
func (in KeyInput) policy() cloud.KeyPolicy {
	return cloud.KeyPolicy{Approval: in.Approval, DryRunOnly: in.DryRunOnly, Surfaces: distinct(in.Surfaces), WritesPerDay: in.Limits.Writes, MoneyPerDay: in.Limits.Money}
}

// MakeKey makes a key of the caller and shows it, once. Errors:
// VALIDATION_FAILED, KEY_LIMIT.
func (s *Service) MakeKey(ctx context.Context, c cloud.Caller, in KeyInput) (out KeyOutput, err error) {
	f := newFields()
	profile := in.Profile
	if len(in.Scopes) == 0 {
		profile = cmp.Or(profile, defaultProfile)
	}
	allowed, policy := f.addresses("ip_allowlist", in.IPAllowlist), in.policy()
	now, token := time.Now().UTC(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := businessOf(v, c)
		if err != nil {
			return nil, err
		}
		g := fields{maps.Clone(f.Fields)} // a decision may run again
		t := cloud.Token{Hash: auth.Hash(token), AccountID: c.Account.ID, Name: in.Name, Profile: profile, Scopes: distinct(in.Scopes), IPAllowlist: allowed, Policy: policy,
			CreatedAt: now, ExpiresAt: g.keyEnd(in.ExpiresAt, b.Location(), now)}
		if err := g.Err(); err != nil {
			return nil, err
		}
		if err := addKey(v, &t, now); err != nil {
			return nil, err
		}
		out = KeyOutput{Result: true, Key: showKey(t, b.Location()), Token: token}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "api_key_made", "token", int64(t.ID))}}, nil
	})
	if err != nil {
		return KeyOutput{}, err
	}
	return out, nil
}

// addKey gives a new key its id unless its account has too many.
func addKey(v cloud.View, t *cloud.Token, now time.Time) error {
	list, err := liveKeys(v, t.AccountID, now)
	if err != nil {
		return err
	}
	if len(list) >= maxKeys {
		return cloud.E(cloud.Conflict, "KEY_LIMIT", maxKeys)
	}
	id, err := v.NewID(cloud.TokenIDs)
	t.ID = cloud.TokenID(id)
	return err
}

// RevokeKey ends a key of the caller. Error: API_KEY_NOT_FOUND.
func (s *Service) RevokeKey(ctx context.Context, c cloud.Caller, in ByKey) (Done, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		t, err := keyOf(v, c.Account.ID, in.ID, now)
		if err != nil {
			return nil, err
		}
		t.RevokedAt = now
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "api_key_revoked", "token", int64(t.ID))}}, nil
	})
	return Done{err == nil}, err
}

// liveKeys lists an account's keys that still work, by id.
func liveKeys(v cloud.View, a cloud.AccountID, now time.Time) ([]cloud.Token, error) {
	list, err := v.Tokens(a)
	list = slices.DeleteFunc(list, func(t cloud.Token) bool { return t.ID == 0 || !auth.Valid(t, now) })
	slices.SortFunc(list, func(a, b cloud.Token) int { return cmp.Compare(a.ID, b.ID) })
	return list, err
}

func keyOf(v cloud.View, a cloud.AccountID, id cloud.TokenID, now time.Time) (cloud.Token, error) {
	list, err := liveKeys(v, a, now)
	if err != nil {
		return cloud.Token{}, err
	}
	if i := slices.IndexFunc(list, func(t cloud.Token) bool { return t.ID == id }); i >= 0 {
		return list[i], nil
	}
	return cloud.Token{}, cloud.E(cloud.NotFound, "API_KEY_NOT_FOUND")
}

// businessOf finds the caller's business; the platform's own people have none.
func businessOf(v cloud.View, c cloud.Caller) (cloud.Business, error) {
	b, err := v.Business(c.Account.BusinessID)
	if errors.Is(err, cloud.ErrNotFound) && c.Account.Type == cloud.PlatformAdmin {
		return cloud.Business{}, nil
	}
	return b, err
}

// distinct is a sorted copy without repeats.
func distinct(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
