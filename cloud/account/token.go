package account

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// Token is a provider's token as the business sees it.
type Token struct {
	ID        cloud.TokenID `json:"id"`
	Name      string        `json:"name"`
	CreatedAt *string       `json:"created_at"`
	ExpiresAt *string       `json:"expires_at"`
}

func showToken(t cloud.Token, l *time.Location) Token {
	return Token{ID: t.ID, Name: t.Name, CreatedAt: cloud.Stamp(t.CreatedAt, l), ExpiresAt: cloud.Stamp(t.ExpiresAt, l)}
}

// TokensInput asks for a part of a provider's tokens.
type TokensInput struct {
	ID cloud.ProviderID `path:"id"`
	PageInput
}

// TokensOutput lists tokens that still work.
type TokensOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Tokens []Token `json:"tokens"`
}

// providerTokens finds a provider of the caller's, its account and its tokens
// that still work. A provider without an account has the zero one.
func providerTokens(v cloud.View, c cloud.Caller, id cloud.ProviderID, now time.Time) (b cloud.Business, p cloud.Provider, a cloud.Account, list []cloud.Token, err error) {
	if b, err = businessOf(v, c); err != nil {
		return b, p, a, nil, err
	}
	if p, err = providerOf(v, c, id); err != nil {
		return b, p, a, nil, err
	}
	accounts, _, err := v.Accounts(cloud.AccountFilter{BusinessID: b.ID, ProviderID: id, Types: []cloud.AccountType{cloud.ProviderType}, Page: cloud.Page{Sort: "id", Limit: 1}})
	if err != nil || len(accounts) == 0 {
		return b, p, a, nil, err
	}
	a = accounts[0]
	list, err = liveKeys(v, a.ID, now)
	return b, p, a, list, err
}

// ListTokens lists a provider's tokens that still work. Error:
// PROVIDER_NOT_FOUND.
func (s *Service) ListTokens(ctx context.Context, c cloud.Caller, in TokensInput) (out TokensOutput, err error) {
	page, err := in.Sorted(in, "id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, _, _, list, err := providerTokens(v, c, in.ID, time.Now())
		if err != nil {
			return err
		}
		part, listed, err := cloud.PartOf(list, page, tokenID)
		out = TokensOutput{Result: err == nil, PageOutput: in.Output(in, listed), Tokens: []Token{}}
		for _, t := range part {
			out.Tokens = append(out.Tokens, showToken(t, b.Location()))
		}
		return err
	})
	return out, err
}

// TokenInput asks for a token of a provider.
type TokenInput struct {
	ID        cloud.ProviderID `path:"id"`
	Name      string           `json:"name" required:"true" max:"64"`
	ExpiresAt string           `json:"expires_at" format:"moment" doc:"A year from now when absent, five years at most"`
}

// TokenOutput shows a new token, once.
type TokenOutput struct {
	Result bool   `json:"result"`
	Made   Token  `json:"provider_token"`
	Token  string `json:"token"`
}

// MakeToken makes a token of a provider and shows it, once. Errors:
// PROVIDER_NOT_FOUND, VALIDATION_FAILED, KEY_LIMIT.
func (s *Service) MakeToken(ctx context.Context, c cloud.Caller, in TokenInput) (out TokenOutput, err error) {
	now, token := time.Now().UTC(), auth.NewToken()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, p, a, _, err := providerTokens(v, c, in.ID, now)
		if err != nil {
			return nil, err
		}
		f := newFields()
		ends := f.keyEnd(in.ExpiresAt, b.Location(), now)
		if err := f.Err(); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Providers: []cloud.Provider{p}}} // two that make its account at one moment meet there
		if a.ID == 0 {
			if a, err = newAccount(v, c, now); err != nil {
				return nil, err
			}
			a.Type, a.Name, a.ProviderID = cloud.ProviderType, p.Name, p.ID
			ch.Accounts = []cloud.Account{a}
		}
		t := cloud.Token{Hash: auth.Hash(token), AccountID: a.ID, Name: in.Name, CreatedAt: now, ExpiresAt: ends}
		if err := addKey(v, &t, now); err != nil {
			return nil, err
		}
		ch.Tokens, ch.Audits = []cloud.Token{t}, audit(c, now, "provider_token_made", "token", int64(t.ID))
		out = TokenOutput{Result: true, Made: showToken(t, b.Location()), Token: token}
		return ch, nil
	})
	if err != nil {
		return TokenOutput{}, err
	}
	return out, nil
}

// ByToken names a token of a provider.
type ByToken struct {
	ID    cloud.ProviderID `path:"id"`
	Token cloud.TokenID    `path:"token_id"`
}

// RevokeToken ends a token of a provider. Errors: PROVIDER_NOT_FOUND,
// TOKEN_NOT_FOUND.
func (s *Service) RevokeToken(ctx context.Context, c cloud.Caller, in ByToken) (Done, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		_, _, _, list, err := providerTokens(v, c, in.ID, now)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(t cloud.Token) bool { return t.ID == in.Token })
		if i < 0 {
			return nil, cloud.E(cloud.NotFound, "TOKEN_NOT_FOUND")
		}
		t := list[i]
		t.RevokedAt = now
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "provider_token_revoked", "token", int64(t.ID))}}, nil
	})
	return Done{err == nil}, err
}
