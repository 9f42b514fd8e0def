package account

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

func (w *world) token(text string) (tok cloud.Token) {
	w.t.Helper()
	w.look(func(v cloud.View) {
		var err error
		tok, err = v.Token(auth.Hash(text))
		require.NoError(w.t, err)
	})
	return tok
}

func TestAKeyIsMadeShownAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	in := KeyInput{Name: "till", Profile: "ops-full", Scopes: []string{"orders:write", "orders:read", "orders:write"}, IPAllowlist: []string{"192.0.2.7", "::ffff:192.0.2.8", "2001:db8::1/32"},
		Approval: cloud.AskHigh, DryRunOnly: true, Surfaces: []string{"mcp", "api", "mcp"}, Limits: KeyLimits{1_000_000, 5}}
	made, err := w.s.MakeKey(ctx, as(ann), in)
	require.NoError(t, err)
	require.Len(t, made.Token, 64)
	k := made.Key
	require.Equal(t, []any{"till", "ops-full", []string{"orders:read", "orders:write"}, []string{"192.0.2.7", "192.0.2.8", "2001:db8::/32"}, cloud.AskHigh, true, []string{"api", "mcp"}, KeyLimits{1_000_000, 5}},
		[]any{k.Name, *k.Profile, k.Scopes, k.IPAllowlist, k.Approval, k.DryRunOnly, k.Surfaces, k.Limits})
	stored := w.token(made.Token)
	require.Equal(t, ann.ID, stored.AccountID)
	require.WithinDuration(t, time.Now().AddDate(1, 0, 0), stored.ExpiresAt, time.Minute, "a year when nothing is said")
	require.Equal(t, cloud.KeyPolicy{Approval: cloud.AskHigh, DryRunOnly: true, Surfaces: []string{"api", "mcp"}, WritesPerDay: 1_000_000, MoneyPerDay: 5}, stored.Policy)

	plain, err := w.s.MakeKey(ctx, as(ann), KeyInput{Name: "plain", ExpiresAt: day(30)})
	require.NoError(t, err)
	require.Equal(t, []any{defaultProfile, cloud.AskNever, []string{}}, []any{*plain.Key.Profile, plain.Key.Approval, plain.Key.Scopes})
	found, err := w.s.FindKey(ctx, as(ann), ByKey{k.ID})
	require.NoError(t, err)
	require.Equal(t, KeyOutput{Result: true, Key: k}, found, "the token is shown once")
	for sort, want := range map[string][]cloud.TokenID{"": {plain.Key.ID, k.ID}, "-id": {plain.Key.ID, k.ID}, "id": {k.ID, plain.Key.ID}} {
		list, err := w.s.ListKeys(ctx, as(ann), KeysInput{PageInput{Sort: sort}})
		require.NoError(t, err)
		require.Equal(t, want, []cloud.TokenID{list.Keys[0].ID, list.Keys[1].ID}, sort)
		require.Equal(t, check.PageOutput{Total: 2, Page: 1, PerPage: 20}, list.PageOutput)
	}
	for page, want := range map[int]int{1: 1, 2: 1, 3: 0} {
		list, err := w.s.ListKeys(ctx, as(ann), KeysInput{PageInput{Keyset: check.Keyset{Page: &page, PerPage: ptr(1)}}})
		require.NoError(t, err)
		require.Len(t, list.Keys, want)
		require.Equal(t, 2, list.Total)
	}

	for name, by := range map[string]cloud.Account{"a colleague": ben, "another business": rae} {
		_, err := w.s.FindKey(ctx, as(by), ByKey{k.ID})
		require.Equal(t, cloud.E(cloud.NotFound, "API_KEY_NOT_FOUND"), err, name)
		_, err = w.s.RevokeKey(ctx, as(by), ByKey{k.ID})
		require.Equal(t, cloud.E(cloud.NotFound, "API_KEY_NOT_FOUND"), err, name)
	}
	done, err := w.s.RevokeKey(ctx, as(ann), ByKey{k.ID})
	require.NoError(t, err)
	require.True(t, done.Result)
	require.False(t, auth.Valid(w.token(made.Token), time.Now()))
	done, err = w.s.RevokeKey(ctx, as(ann), ByKey{k.ID})
	require.Equal(t, "API_KEY_NOT_FOUND", code(err), "it has ended")
	require.False(t, done.Result)
	require.Equal(t, []string{"account:10 api_key_made token", "account:10 api_key_made token", "account:10 api_key_revoked token"}, w.actions(1))
	other, err := w.s.MakeKey(ctx, as(top), KeyInput{Name: "platform"})
	require.NoError(t, err, "the platform's own people have keys, too")
	_, err = w.s.FindKey(ctx, as(top), ByKey{other.Key.ID})
	require.NoError(t, err)
}

func TestBadKeysAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := make([]string, 101)
	for i := range long {
		long[i] = "192.0.2.1"
	}
	for _, c := range []struct {
		member string
		in     KeyInput
	}{
		{"name", KeyInput{}},
		{"name", KeyInput{Name: fmt.Sprintf("%065d", 1)}},
		{"scopes.0", KeyInput{Name: "x", Scopes: []string{"everything"}}},
		{"profile", KeyInput{Name: "x", Profile: "root"}},
		{"ip_allowlist", KeyInput{Name: "x", IPAllowlist: long}},
		{"ip_allowlist.1", KeyInput{Name: "x", IPAllowlist: []string{"192.0.2.1", "localhost"}}},
		{"ip_allowlist.0", KeyInput{Name: "x", IPAllowlist: []string{"fe80::1%eth0"}}},
		{"ip_allowlist.0", KeyInput{Name: "x", IPAllowlist: []string{"::ffff:192.0.2.0/120"}}},
		{"require_approval", KeyInput{Name: "x", Approval: "sometimes"}},
		{"surfaces.0", KeyInput{Name: "x", Surfaces: []string{"web"}}},
		{"limits.writes_per_day", KeyInput{Name: "x", Limits: KeyLimits{Writes: -1}}},
		{"limits.writes_per_day", KeyInput{Name: "x", Limits: KeyLimits{Writes: 1_000_001}}},
		{"limits.money_per_day", KeyInput{Name: "x", Limits: KeyLimits{Money: -1}}},
		{"expires_at", KeyInput{Name: "x", ExpiresAt: "soon"}},
		{"expires_at", KeyInput{Name: "x", ExpiresAt: day(-1)}},
		{"expires_at", KeyInput{Name: "x", ExpiresAt: day(5*366 + 2)}},
	} {
		refused(w, c.member, c.in, func(in KeyInput) (KeyOutput, error) { return w.s.MakeKey(t.Context(), as(ann), in) })
	}
	refused(w, "sort", KeysInput{PageInput{Sort: "name"}}, func(in KeysInput) (KeysOutput, error) { return w.s.ListKeys(t.Context(), as(ann), in) })
}

func TestTheEndOfAKey(t *testing.T) {
	t.Parallel()
	toronto, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	now := time.Date(2026, 11, 20, 18, 12, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"":                          "2027-11-20T18:12:00Z",
		"2026-11-21":                "2026-11-21T05:00:00Z", // midnight of the business
		"2026-11-20 13:12:01":       "2026-11-20T18:12:01Z",
		"2026-11-20T18:12:01Z":      "2026-11-20T18:12:01Z",
		"2031-11-20T18:12:00Z":      "2031-11-20T18:12:00Z", // five years to the second
		"2026-11-20T18:12:00Z":      "",
		"2026-11-20 13:12:00":       "",
		"2031-11-20T18:12:01Z":      "",
		"20.11.2027":                "",
		"2026-13-01":                "",
		"2027-11-20T18:12:00+01:00": "2027-11-20T17:12:00Z",
	} {
		f := newFields()
		end := f.keyEnd(text, toronto, now)
		if want == "" {
			require.Len(t, f.Fields["expires_at"], 1, text)
			continue
		}
		require.NoError(t, f.Err(), text)
		require.Equal(t, want, end.Format(time.RFC3339), text)
	}
}

// A hundred keys may work at once; those that ended make room.
func TestKeysHaveALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	ch := &cloud.Changes{}
	for i := range 100 {
		ch.Tokens = append(ch.Tokens, cloud.Token{Hash: [32]byte{byte(i), 1}, AccountID: ann.ID, ID: cloud.TokenID(1000 + i), CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
	}
	ch.Tokens[0].ExpiresAt = now.Add(-time.Hour)
	ch.Tokens = append(ch.Tokens, cloud.Token{Hash: [32]byte{1, 2}, AccountID: ann.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}) // a login
	w.write(ch)
	_, err := w.s.MakeKey(t.Context(), as(ann), KeyInput{Name: "the hundredth"})
	require.NoError(t, err)
	w.unchanged(func() {
		_, err = w.s.MakeKey(t.Context(), as(ann), KeyInput{Name: "one more"})
		require.Equal(t, cloud.E(cloud.Conflict, "KEY_LIMIT", 100), err)
	})
	_, err = w.s.MakeKey(t.Context(), as(ben), KeyInput{Name: "of another"})
	require.NoError(t, err)
	_, err = w.s.FindKey(t.Context(), as(ann), ByKey{0})
	require.Equal(t, "API_KEY_NOT_FOUND", code(err), "a login is no key")
	_, err = w.s.FindKey(t.Context(), as(ann), ByKey{1000})
	require.Equal(t, "API_KEY_NOT_FOUND", code(err), "it has expired")
}

func TestAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	now := time.Now().UTC().Truncate(time.Millisecond)
	hour := now.Add(time.Hour)
	grant := func(id cloud.OAuthGrantID, a cloud.AccountID, used, expires time.Time) cloud.OAuthGrant {
		return cloud.OAuthGrant{ID: id, AccountID: a, ClientID: "c", ClientName: fmt.Sprint("agent ", id), Host: "a.example", Audience: "https://p.example/mcp", CreatedAt: now, UsedAt: used, ExpiresAt: expires,
			Code: cloud.OAuthCode{Hash: [32]byte{byte(id)}, ExpiresAt: now}}
	}
	ended := grant(4, ann.ID, now, hour)
	ended.EndedAt = now
	w.write(&cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{{ID: "c", CreatedAt: now}},
		OAuthGrants: []cloud.OAuthGrant{grant(1, ann.ID, now, hour), grant(2, ann.ID, time.Time{}, hour), grant(3, ann.ID, now, now),
			ended, grant(5, ben.ID, now, hour), grant(6, ann.ID, now, hour)}}})
	for sort, want := range map[string][]cloud.OAuthGrantID{"": {6, 1}, "id": {1, 6}} {
		list, err := w.s.ListAgents(ctx, as(ann), AgentsInput{PageInput{Sort: sort}})
		require.NoError(t, err)
		require.Equal(t, 2, list.Total, "never used, expired, ended and those of others are left out")
		require.Equal(t, want, []cloud.OAuthGrantID{list.Agents[0].ID, list.Agents[1].ID}, sort)
		require.Equal(t, []any{cloud.AskNever, []string{}, "a.example"}, []any{list.Agents[0].Approval, list.Agents[0].Scopes, list.Agents[0].Host})
	}
	refused(w, "sort", AgentsInput{PageInput{Sort: "name"}}, func(in AgentsInput) (AgentsOutput, error) { return w.s.ListAgents(ctx, as(ann), in) })
	for _, id := range []cloud.OAuthGrantID{3, 4, 5, 99} {
		w.unchanged(func() {
			done, err := w.s.EndAgent(ctx, as(ann), ByAgent{id})
			require.Equal(t, cloud.E(cloud.NotFound, "AGENT_NOT_FOUND"), err, id)
			require.False(t, done.Result)
		})
	}
	done, err := w.s.EndAgent(ctx, as(ann), ByAgent{1})
	require.NoError(t, err)
	require.True(t, done.Result)
	_, err = w.s.EndAgent(ctx, as(ann), ByAgent{1})
	require.Equal(t, "AGENT_NOT_FOUND", code(err))
	_, err = w.s.EndAgent(ctx, as(ann), ByAgent{2})
	require.NoError(t, err, "a consent that was not used yet can be taken back")
	require.Equal(t, []string{"account:10 agent_grant_ended agent", "account:10 agent_grant_ended agent"}, w.actions(1))
}

// A key that is narrowed by scopes alone claims no profile.
func TestAKeyOfScopesHasNoProfile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow, err := w.s.MakeKey(t.Context(), as(ann), KeyInput{Name: "narrow", Scopes: []string{"orders:read"}})
	require.NoError(t, err)
	require.Nil(t, narrow.Key.Profile)
	require.Equal(t, []string{"orders:read"}, w.token(narrow.Token).Scopes)
}
