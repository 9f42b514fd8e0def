package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
)

func grant(id cloud.OAuthGrantID, a cloud.AccountID, client string) cloud.OAuthGrant {
	return cloud.OAuthGrant{ID: id, AccountID: a, ClientID: client, ClientName: "Desk", Host: "127.0.0.1", Profile: "ops-readonly", Scopes: []string{"orders:read"},
		Audience: "https://x.example/mcp", Policy: cloud.KeyPolicy{Approval: cloud.AskAll}, CreatedAt: now, ExpiresAt: now.Add(time.Minute),
		Code: cloud.OAuthCode{Hash: [32]byte{byte(id)}, RedirectURI: "http://127.0.0.1:1/cb", Challenge: "c", ExpiresAt: now.Add(time.Minute)}}
}

func agentToken(n byte, g cloud.OAuthGrant, kind cloud.TokenKind, ends time.Time) cloud.Token {
	return cloud.Token{Hash: [32]byte{100, n}, AccountID: g.AccountID, Name: "Desk", CreatedAt: now, ExpiresAt: ends, Scopes: g.Scopes, Grant: g.ID, Kind: kind, Audience: g.Audience}
}

// oauthGrants are kept whole, change in what a use changes, and end with their
// tokens and no others.
func oauthGrants(t *testing.T, db *store.DB) {
	g, other := grant(1, 12, "c1"), grant(2, 12, "c2")
	a, b := agentToken(1, g, cloud.AccessToken, now.Add(time.Hour)), agentToken(2, other, cloud.AccessToken, now.Add(time.Hour))
	key := cloud.Token{Hash: [32]byte{9}, AccountID: 12, CreatedAt: now, ID: 3}
	write(t, db, 0, &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{g, other}}, AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{a, b, key}}})
	g.UsedAt, g.ExpiresAt, g.Code.UsedAt = now.Add(time.Second), now.Add(time.Hour), now.Add(time.Second)
	write(t, db, 0, &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{g}}})
	look(t, db, func(v cloud.View) {
		got, err := v.OAuthGrant(1)
		require.NoError(t, err)
		require.Equal(t, g, got)
		got, err = v.OAuthGrantByCode([32]byte{2})
		require.NoError(t, err)
		require.Equal(t, other, got)
		_, err = v.OAuthGrantByCode([32]byte{3})
		require.ErrorIs(t, err, cloud.ErrNotFound)
		list, err := v.OAuthGrants(12)
		require.NoError(t, err)
		require.Equal(t, []cloud.OAuthGrant{other, g}, list)
		list, err = v.OAuthGrants(13)
		require.NoError(t, err)
		require.Empty(t, list)
		tok, err := v.Token(a.Hash)
		require.NoError(t, err)
		require.Equal(t, a, tok)
	})
	again := grant(3, 12, "c1")
	again.Code.Hash = g.Code.Hash
	err := db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{again}}}, nil
	})
	require.ErrorIs(t, err, cloud.ErrExists, "a code is one grant's")
	late := agentToken(4, g, cloud.RefreshToken, now.Add(time.Hour))
	end := now.Add(time.Minute)
	write(t, db, 0, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{late}}, OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: 1, At: end}, {ID: 0, At: end}}}})
	write(t, db, 0, &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: 1, At: end.Add(time.Hour)}}}})
	look(t, db, func(v cloud.View) {
		got, err := v.OAuthGrant(1)
		require.NoError(t, err)
		require.Equal(t, end, got.EndedAt, "it ended once")
		for _, tok := range []cloud.Token{a, late} {
			tok, err := v.Token(tok.Hash)
			require.NoError(t, err)
			require.Equal(t, end, tok.RevokedAt)
		}
		for _, tok := range []cloud.Token{b, key} {
			tok, err := v.Token(tok.Hash)
			require.NoError(t, err)
			require.True(t, tok.RevokedAt.IsZero())
		}
	})
}

// oauthLeftovers go, and only they.
func oauthLeftovers(t *testing.T, db *store.DB) {
	day := 24 * time.Hour
	client := func(id string, made, used time.Time) cloud.OAuthClient {
		return cloud.OAuthClient{ID: id, Name: "Desk", RedirectURIs: []string{"https://x.example/cb"}, CreatedAt: made, UsedAt: used}
	}
	old, fresh, held, idle := client("old", now.Add(-2*day), time.Time{}), client("fresh", now, time.Time{}), client("held", now.Add(-9*day), now.Add(-9*day)), client("idle", now.Add(-9*day), now.Add(-9*day))
	over, running, ended := grant(1, 12, "idle"), grant(2, 12, "held"), grant(3, 12, "idle")
	over.ExpiresAt, running.ExpiresAt, ended.ExpiresAt, ended.EndedAt = now.Add(-2*day), now.Add(day), now.Add(day), now.Add(-2*day)
	tokens := []cloud.Token{agentToken(1, over, cloud.RefreshToken, now.Add(day)), agentToken(2, running, cloud.AccessToken, now.Add(-2*day)),
		agentToken(3, running, cloud.RefreshToken, now.Add(day)), {Hash: [32]byte{7}, AccountID: 12, CreatedAt: now, ExpiresAt: now.Add(-2 * day)}}
	write(t, db, 0, &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthClients: []cloud.OAuthClient{old, fresh, held, idle}, OAuthGrants: []cloud.OAuthGrant{over, running, ended}}, AccountChanges: cloud.AccountChanges{Tokens: tokens}})
	look(t, db, func(v cloud.View) {
		for since, want := range map[time.Time]int{{}: 2, now: 1, now.Add(time.Second): 0} {
			n, err := v.UnusedOAuthClients(since)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		got, err := v.OAuthClient("held")
		require.NoError(t, err)
		require.Equal(t, held, got)
	})
	write(t, db, 0, &cloud.Changes{OAuthChanges: cloud.OAuthChanges{DropOAuth: cloud.OAuthDrop{Unused: now.Add(-day), Idle: now.Add(-day), Tokens: now.Add(-day), Grants: now.Add(-day)}}})
	look(t, db, func(v cloud.View) {
		for id, there := range map[string]bool{"old": false, "fresh": true, "held": true, "idle": false} {
			_, err := v.OAuthClient(id)
			require.Equal(t, there, err == nil, id)
		}
		for id, there := range map[cloud.OAuthGrantID]bool{1: false, 2: true, 3: false} {
			_, err := v.OAuthGrant(id)
			require.Equal(t, there, err == nil, id)
		}
		for i, there := range []bool{false, false, true, true} {
			_, err := v.Token(tokens[i].Hash)
			require.Equal(t, there, err == nil, "token %d", i)
		}
	})
}
