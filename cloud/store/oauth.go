package store

import (
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	clientColumns = `id, name, redirect_uris, created_at, used_at`
	sqlClient     = `SELECT ` + clientColumns + ` FROM oauth_client WHERE id = $1`
	sqlUnused     = `SELECT count(*) FROM oauth_client WHERE used_at IS NULL AND created_at >= $1`
	sqlSaveClient = `INSERT INTO oauth_client (` + clientColumns + `) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirect_uris = excluded.redirect_uris, created_at = excluded.created_at, used_at = excluded.used_at`

	grantColumns = `id, account_id, client_id, client_name, host, profile, scopes, audience, created_at, used_at, expires_at, ended_at,
  code_hash, code_redirect, code_challenge, code_expires_at, code_used_at, policy, strong`
	sqlGrant       = `SELECT ` + grantColumns + ` FROM oauth_grant WHERE id = $1`
	sqlGrantByCode = `SELECT ` + grantColumns + ` FROM oauth_grant WHERE code_hash = $1`
	sqlGrants      = `SELECT ` + grantColumns + ` FROM oauth_grant WHERE account_id = $1 ORDER BY id DESC`
	sqlSaveGrant   = `INSERT INTO oauth_grant (` + grantColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at, expires_at = excluded.expires_at, ended_at = excluded.ended_at,
  code_used_at = excluded.code_used_at`

	sqlEndGrant  = `UPDATE oauth_grant SET ended_at = $2 WHERE id = $1 AND ended_at IS NULL`
	sqlEndTokens = `UPDATE token SET revoked_at = $2 WHERE grant_id = $1 AND grant_id <> 0 AND revoked_at IS NULL`

	sqlDropUnused = `DELETE FROM oauth_client WHERE used_at IS NULL AND created_at < $1`
	sqlDropIdle   = `DELETE FROM oauth_client WHERE used_at IS NOT NULL AND used_at < $1
  AND NOT EXISTS (SELECT 1 FROM oauth_grant WHERE oauth_grant.client_id = oauth_client.id)`
	sqlDropTokens      = `DELETE FROM token WHERE grant_id <> 0 AND expires_at < $1`
	grantsOver         = `oauth_grant WHERE expires_at < $1 OR ended_at IS NOT NULL AND ended_at < $1`
	sqlDropGrantTokens = `DELETE FROM token WHERE grant_id <> 0 AND grant_id IN (SELECT id FROM ` + grantsOver + `)`
	sqlDropGrants      = `DELETE FROM ` + grantsOver
)

func scanClient(r rows, c *cloud.OAuthClient) error {
	return r.Scan(&c.ID, &c.Name, parsed(&c.RedirectURIs), when(&c.CreatedAt), when(&c.UsedAt))
}

func scanGrant(r rows, g *cloud.OAuthGrant) error {
	return r.Scan(&g.ID, &g.AccountID, &g.ClientID, &g.ClientName, &g.Host, &g.Profile, parsed(&g.Scopes), &g.Audience, when(&g.CreatedAt),
		when(&g.UsedAt), when(&g.ExpiresAt), when(&g.EndedAt), fixed(g.Code.Hash[:]), &g.Code.RedirectURI, &g.Code.Challenge,
		when(&g.Code.ExpiresAt), when(&g.Code.UsedAt), parsed(&g.Policy), &g.Strong)
}

func (v accountView) OAuthClient(id string) (cloud.OAuthClient, error) {
	return one(v.ctx, v.q, sqlClient, scanClient, id)
}

func (v accountView) UnusedOAuthClients(since time.Time) (int, error) {
	n, err := one(v.ctx, v.q, sqlUnused, scanInt, since.UnixMilli())
	if err != nil {
		return 0, fmt.Errorf("count unused clients: %w", err)
	}
	return int(n), nil
}

func (v accountView) OAuthGrant(id cloud.OAuthGrantID) (cloud.OAuthGrant, error) {
	return one(v.ctx, v.q, v.locked(sqlGrant), scanGrant, int64(id))
}

func (v accountView) OAuthGrantByCode(hash [32]byte) (cloud.OAuthGrant, error) {
	return one(v.ctx, v.q, v.locked(sqlGrantByCode), scanGrant, hash[:])
}

func (v accountView) OAuthGrants(id cloud.AccountID) ([]cloud.OAuthGrant, error) {
	return list(v.ctx, v.q, sqlGrants, scanGrant, int64(id))
}

func (v accountView) Token(hash [32]byte) (cloud.Token, error) {
	return one(v.ctx, v.q, sqlToken, scanToken, hash[:])
}

// oauth writes grants after tokens, so that one that ends takes along those
// that the same decision gives.
func (w *writer) oauth(c *cloud.Changes) {
	for _, x := range c.OAuthClients {
		w.add(anything, sqlSaveClient, x.ID, x.Name, text(x.RedirectURIs), ms(x.CreatedAt), ms(x.UsedAt))
	}
	for _, g := range c.OAuthGrants {
		w.add(anything, sqlSaveGrant, int64(g.ID), int64(g.AccountID), g.ClientID, g.ClientName, g.Host, g.Profile, text(g.Scopes), g.Audience,
			ms(g.CreatedAt), ms(g.UsedAt), ms(g.ExpiresAt), ms(g.EndedAt), g.Code.Hash[:], g.Code.RedirectURI, g.Code.Challenge,
			ms(g.Code.ExpiresAt), ms(g.Code.UsedAt), text(g.Policy), g.Strong)
	}
	for _, e := range c.OAuthEnds {
		w.add(anything, sqlEndGrant, int64(e.ID), ms(e.At))
		w.add(anything, sqlEndTokens, int64(e.ID), ms(e.At))
	}
	d := c.DropOAuth
	for _, x := range []struct {
		before time.Time
		sql    string
	}{{d.Tokens, sqlDropTokens}, {d.Grants, sqlDropGrantTokens}, {d.Grants, sqlDropGrants}, {d.Unused, sqlDropUnused}, {d.Idle, sqlDropIdle}} {
		if !x.before.IsZero() {
			w.add(anything, x.sql, ms(x.before))
		}
	}
}
