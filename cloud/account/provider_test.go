package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
)

func TestAProviderIsMadeChangedAndShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := w.s.AddProvider(ctx, as(ann), ProviderInput{Code: ptr("fast.1"), Name: ptr("Fast"), Services: &[]string{cloud.ServiceLocker, cloud.ServiceLocker}})
	require.NoError(t, err)
	p := made.Provider
	require.Equal(t, []any{"fast.1", "Fast", []string{"locker"}, "partner", cloud.ScopeOwn, false}, []any{p.Code, p.Name, p.Services, p.SourceType, p.Scope, p.LivemodeAllowed})
	found, err := w.s.FindProvider(ctx, as(ben), ByProvider{p.ID})
	require.NoError(t, err)
	require.Equal(t, made, found)
	changed, err := w.s.ChangeProvider(ctx, as(ann), ChangeProviderInput{p.ID, ProviderInput{Scope: ptr(cloud.ScopeAll), LivemodeAllowed: ptr(true), SourceType: ptr("label")}})
	require.NoError(t, err)
	want := p
	want.Scope, want.LivemodeAllowed, want.SourceType = cloud.ScopeAll, true, string(otep.Carrier)
	require.Equal(t, want, changed.Provider, "what is absent stays")
	second, err := w.s.AddProvider(ctx, as(ann), ProviderInput{Code: ptr("a"), Name: ptr("Also")})
	require.NoError(t, err)
	list, err := w.s.ListProviders(ctx, as(ann), ProvidersInput{PageInput{Sort: "code"}})
	require.NoError(t, err)
	require.Equal(t, []cloud.ProviderID{second.Provider.ID, p.ID}, []cloud.ProviderID{list.Providers[0].ID, list.Providers[1].ID})
	require.Equal(t, 2, list.Total)
	list, err = w.s.ListProviders(ctx, as(rae), ProvidersInput{})
	require.NoError(t, err)
	require.Empty(t, list.Providers)
	require.Equal(t, []string{"account:10 provider_made provider", "account:10 provider_changed provider", "account:10 provider_made provider"}, w.actions(1))

	for name, call := range map[string]func() error{
		"find":   func() error { _, err := w.s.FindProvider(ctx, as(rae), ByProvider{p.ID}); return err },
		"none":   func() error { _, err := w.s.FindProvider(ctx, as(ann), ByProvider{999}); return err },
		"change": func() error { _, err := w.s.ChangeProvider(ctx, as(rae), ChangeProviderInput{ID: p.ID}); return err },
		"tokens": func() error { _, err := w.s.ListTokens(ctx, as(rae), TokensInput{ID: p.ID}); return err },
		"make": func() error {
			_, err := w.s.MakeToken(ctx, as(rae), TokenInput{ID: p.ID, Name: "x"})
			return err
		},
		"revoke": func() error { _, err := w.s.RevokeToken(ctx, as(rae), ByToken{p.ID, 1}); return err },
	} {
		w.unchanged(func() { require.Equal(t, cloud.E(cloud.NotFound, "PROVIDER_NOT_FOUND"), call(), name) })
	}
	add := func(in ProviderInput) (ProviderOutput, error) { return w.s.AddProvider(ctx, as(ann), in) }
	for member, in := range map[string]ProviderInput{
		"code": {Name: ptr("x")}, "name": {Code: ptr("x")}, "services.0": {Code: ptr("x"), Name: ptr("x"), Services: &[]string{"fly"}},
		"source_type": {Code: ptr("x"), Name: ptr("x"), SourceType: ptr("rumour")}, "scope": {Code: ptr("x"), Name: ptr("x"), Scope: ptr("some")},
	} {
		refused(w, member, in, add)
	}
	for _, bad := range []string{"", "A", "-a", "a b", "fast.1"} { // the last is in use
		refused(w, "code", ProviderInput{Code: &bad, Name: ptr("x")}, add)
	}
	refused(w, "sort", ProvidersInput{PageInput{Sort: "secret"}}, func(in ProvidersInput) (ProvidersOutput, error) { return w.s.ListProviders(ctx, as(ann), in) })
	_, err = w.s.AddProvider(ctx, as(rae), ProviderInput{Code: ptr("fast.1"), Name: ptr("Fast")})
	require.NoError(t, err, "codes are a business's own")
}

func TestTokensOfAProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := w.s.AddProvider(ctx, as(ann), ProviderInput{Code: ptr("fast"), Name: ptr("Fast")})
	require.NoError(t, err)
	id := made.Provider.ID
	list, err := w.s.ListTokens(ctx, as(ann), TokensInput{ID: id})
	require.NoError(t, err)
	require.Equal(t, TokensOutput{Result: true, PageOutput: check.PageOutput{Page: 1, PerPage: 20}, Tokens: []Token{}}, list)
	_, err = w.s.RevokeToken(ctx, as(ann), ByToken{id, 1})
	require.Equal(t, cloud.E(cloud.NotFound, "TOKEN_NOT_FOUND"), err)

	first, err := w.s.MakeToken(ctx, as(ann), TokenInput{ID: id, Name: "one"})
	require.NoError(t, err)
	second, err := w.s.MakeToken(ctx, as(ben), TokenInput{ID: id, Name: "two", ExpiresAt: day(9)})
	require.NoError(t, err)
	a := w.token(first.Token)
	require.Equal(t, a.AccountID, w.token(second.Token).AccountID, "a provider has one account")
	require.WithinDuration(t, time.Now().AddDate(1, 0, 0), a.ExpiresAt, time.Minute)
	owner := w.account(a.AccountID)
	require.Equal(t, []any{cloud.ProviderType, "Fast", id, cloud.BusinessID(1), true}, []any{owner.Type, owner.Name, owner.ProviderID, owner.BusinessID, owner.Enabled})
	list, err = w.s.ListTokens(ctx, as(ann), TokensInput{ID: id, PageInput: PageInput{Sort: "id"}})
	require.NoError(t, err)
	require.Equal(t, []Token{first.Made, second.Made}, list.Tokens)
	require.Equal(t, 2, list.Total)
	refused(w, "sort", TokensInput{ID: id, PageInput: PageInput{Sort: "name"}}, func(in TokensInput) (TokensOutput, error) { return w.s.ListTokens(ctx, as(ann), in) })
	make := func(in TokenInput) (TokenOutput, error) { return w.s.MakeToken(ctx, as(ann), in) }
	refused(w, "name", TokenInput{ID: id}, make)
	refused(w, "expires_at", TokenInput{ID: id, Name: "x", ExpiresAt: day(-1)}, make)

	done, err := w.s.RevokeToken(ctx, as(ann), ByToken{id, first.Made.ID})
	require.NoError(t, err)
	require.True(t, done.Result)
	require.False(t, auth.Valid(w.token(first.Token), time.Now()))
	require.True(t, auth.Valid(w.token(second.Token), time.Now()))
	_, err = w.s.RevokeToken(ctx, as(ann), ByToken{id, first.Made.ID})
	require.Equal(t, "TOKEN_NOT_FOUND", code(err))
	key, err := w.s.MakeKey(ctx, as(ann), KeyInput{Name: "x"})
	require.NoError(t, err)
	_, err = w.s.RevokeToken(ctx, as(ann), ByToken{id, key.Key.ID})
	require.Equal(t, "TOKEN_NOT_FOUND", code(err), "a key of a person is no token of a provider")
	require.Equal(t, []string{"account:10 provider_made provider", "account:10 provider_token_made token", "account:11 provider_token_made token", "account:10 provider_token_revoked token",
		"account:10 api_key_made token"}, w.actions(1))
	ch := &cloud.Changes{}
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range maxKeys {
		ch.Tokens = append(ch.Tokens, cloud.Token{Hash: [32]byte{byte(i), 1}, AccountID: owner.ID, ID: cloud.TokenID(1000 + i), CreatedAt: now})
	}
	w.write(ch)
	_, err = make(TokenInput{ID: id, Name: "one too many"})
	require.Equal(t, "KEY_LIMIT", code(err))
}
