package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

// tokens is the answer of the token endpoint (RFC 6749 5.1).
type tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// caller is who asks at the token endpoint: a client without a secret, so that
// its id is just its word.
type caller struct{ client, ip string }

// token answers a request at the token endpoint. An error of the request is an
// *Error.
func (s *Service) token(ctx context.Context, f form, base, ip string) (tokens, error) {
	switch {
	case f.twice("grant_type", "client_id", "code", "redirect_uri", "code_verifier", "refresh_token", "scope"):
		return tokens{}, fail(InvalidRequest, "A parameter is there more than once.")
	case f.get("grant_type") == "":
		return tokens{}, fail(InvalidRequest, "grant_type must be there.")
	case !slices.Contains(grantTypes, f.get("grant_type")):
		return tokens{}, fail(UnsupportedGrant, "grant_type must be authorization_code or refresh_token.")
	case f.get("client_id") == "":
		return tokens{}, fail(InvalidRequest, "client_id must be there.")
	case len(f["resource"]) > 1:
		return tokens{}, fail(InvalidTarget, "resource must be there once at most.")
	}
	c := caller{f.get("client_id"), ip}
	if f.get("grant_type") == "refresh_token" {
		return s.refresh(ctx, c, f, base)
	}
	return s.exchange(ctx, c, f, base)
}

// known refuses clients that there are not.
func known(v cloud.View, id string) error {
	if byDocument(id) { // grants say whose they are
		return nil
	}
	_, err := v.OAuthClient(id)
	if errors.Is(err, cloud.ErrNotFound) {
		return fail(InvalidClient, "There is no such client. Register it again.")
	}
	return err
}

var errGrant = fail(InvalidGrant, "This code or refresh token is not valid, or no longer. Ask the user again.")

// exchange gives tokens for a code (RFC 6749 4.1.3, RFC 7636 4.6).
func (s *Service) exchange(ctx context.Context, c caller, f form, base string) (tokens, error) {
	code, verifier := f.get("code"), f.get("code_verifier")
	if code == "" || verifier == "" {
		return tokens{}, fail(InvalidRequest, "code and code_verifier must be there.")
	}
	return s.grantTokens(ctx, c, func(v cloud.View, now time.Time) (cloud.OAuthGrant, *cloud.Changes, error) {
		g, err := v.OAuthGrantByCode(auth.Hash(code))
		switch {
		case errors.Is(err, cloud.ErrNotFound):
			return g, nil, errGrant
		case err != nil:
			return g, nil, err
		case !g.Code.UsedAt.IsZero():
			return g, nil, errReused
		case g.ClientID != c.client || !g.Live(now) || !now.Before(g.Code.ExpiresAt) || f.get("redirect_uri") != g.Code.RedirectURI || !proves(verifier, g.Code.Challenge):
			return g, nil, errGrant
		case !bound(g, f, base):
			return g, nil, errTarget
		}
		g.Code.UsedAt = now
		return g, &cloud.Changes{}, nil
	}, nil)
}

// refresh gives tokens for a refresh token, which is used up (RFC 6749 6).
func (s *Service) refresh(ctx context.Context, c caller, f form, base string) (tokens, error) {
	token := f.get("refresh_token")
	if token == "" {
		return tokens{}, fail(InvalidRequest, "refresh_token must be there.")
	}
	scopes, e := readScopes(f.get("scope"))
	if e != nil {
		return tokens{}, e
	}
	return s.grantTokens(ctx, c, func(v cloud.View, now time.Time) (g cloud.OAuthGrant, _ *cloud.Changes, err error) {
		t, err := v.Token(auth.Hash(token))
		if err == nil && t.Kind == cloud.RefreshToken {
			g, err = v.OAuthGrant(t.Grant)
		}
		switch {
		case errors.Is(err, cloud.ErrNotFound) || err == nil && g.ID == 0:
			return g, nil, errGrant
		case err != nil:
			return g, nil, err
		case !t.RevokedAt.IsZero():
			return g, nil, errReused
		case g.ClientID != c.client || !g.Live(now) || !auth.Valid(t, now):
			return g, nil, errGrant
		case !bound(g, f, base):
			return g, nil, errTarget
		case !holdsAll(g.Scopes, scopes):
			return g, nil, fail(InvalidScope, "More is asked for than was granted.")
		}
		t.RevokedAt = now
		return g, &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}}, nil
	}, scopes)
}

var (
	errReused = errors.New("used before")
	errTarget = fail(InvalidTarget, "resource must be what the user agreed to.")
)

// bound reports whether a request is for what a grant is bound to. One that names
// no resource is: it gets no more than the user agreed to.
func bound(g cloud.OAuthGrant, f form, base string) bool {
	given := f.get("resource")
	is := resourceOf(base, given)
	return given == "" || given == g.Audience || is != "" && catalog.SameResource(is, g.Audience)
}

// proves reports whether a verifier is the one of a challenge (RFC 7636 4.6).
func proves(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 || !isPrintable(verifier) {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// grantTokens decides whether a client gets tokens, and ends the grant when what it
// brought was used before: it or another party has what it should not. Scopes,
// when there are any, narrow the access token.
func (s *Service) grantTokens(ctx context.Context, c caller, find func(cloud.View, time.Time) (cloud.OAuthGrant, *cloud.Changes, error), scopes []string) (tokens, error) {
	var out tokens
	var refused error
	access, fresh := auth.NewToken(), auth.NewToken()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now := time.Now().UTC()
		refused = nil
		if err := known(v, c.client); err != nil {
			return nil, err
		}
		g, ch, err := find(v, now)
		if errors.Is(err, errReused) {
			refused = errGrant
			return reused(v, g, c, now)
		}
		if err != nil {
			return nil, err
		}
		if a, err := v.Account(g.AccountID); err != nil {
			return nil, err
		} else if !a.Enabled {
			return nil, errGrant
		} else if a.BusinessID != 0 {
			state, err := v.Suspension(a.BusinessID)
			if err != nil {
				return nil, err
			}
			if state.Suspended() { // nothing is used up: the client goes on once the business does
				return nil, errGrant
			}
			if lacks, err := lacksFactor(v, a, g.Strong); err != nil {
				return nil, err
			} else if lacks {
				return nil, errGrant
			}
		}
		g.UsedAt, g.ExpiresAt = now, now.Add(RefreshLife)
		ch.OAuthGrants = []cloud.OAuthGrant{g}
		of := cloud.Token{AccountID: g.AccountID, Name: g.ClientName, CreatedAt: now, Grant: g.ID, Audience: g.Audience, Policy: g.Policy, Strong: g.Strong}
		a, r := of, of
		a.Hash, a.Kind, a.ExpiresAt, a.Scopes = auth.Hash(access), cloud.AccessToken, now.Add(AccessLife), g.Scopes
		if scopes != nil {
			a.Scopes = scopes
		}
		r.Hash, r.Kind, r.ExpiresAt, r.Scopes = auth.Hash(fresh), cloud.RefreshToken, g.ExpiresAt, g.Scopes
		ch.Tokens = append(ch.Tokens, a, r)
		out = tokens{access, "Bearer", int(AccessLife / time.Second), fresh, strings.Join(a.Scopes, " ")}
		return ch, nil
	})
	if err = cmp.Or(err, refused); err != nil {
		return tokens{}, err
	}
	return out, nil
}

// reused ends a grant.
func reused(v cloud.View, g cloud.OAuthGrant, c caller, now time.Time) (*cloud.Changes, error) {
	if !g.Live(now) {
		return nil, nil
	}
	a, err := v.Account(g.AccountID)
	if err != nil {
		return nil, err
	}
	return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: g.ID, At: now}}},
		AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line(a.BusinessID, 0, "agent_reuse_detected", target(g), now,
			map[string]any{"client_id": g.ClientID, "by_client_id": nameOf(c.client), "ip": c.ip})}}}, nil
}

// revoke ends a token, or with a refresh token all that was granted (RFC 7009).
// A token that is not there has ended.
func (s *Service) revoke(ctx context.Context, f form, ip string) error {
	id, token := f.get("client_id"), f.get("token")
	if id == "" || token == "" || f.twice("client_id", "token", "token_type_hint") {
		return fail(InvalidRequest, "client_id and token must be there once.")
	}
	return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		now := time.Now().UTC()
		if err := known(v, id); err != nil {
			return nil, err
		}
		t, err := v.Token(auth.Hash(token))
		if errors.Is(err, cloud.ErrNotFound) || err == nil && t.Grant == 0 { // a login's is none of ours
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		g, err := v.OAuthGrant(t.Grant)
		if err != nil {
			return nil, err
		}
		if g.ClientID != id {
			return nil, fail(InvalidGrant, "The token is another client's.")
		}
		if !t.RevokedAt.IsZero() || !g.Live(now) {
			return nil, nil
		}
		if t.Kind == cloud.AccessToken {
			t.RevokedAt = now
			return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}}, nil
		}
		a, err := v.Account(g.AccountID)
		return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthEnds: []cloud.OAuthEnd{{ID: g.ID, At: now}}},
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{line(a.BusinessID, a.ID, "agent_grant_ended", target(g), now,
				map[string]any{"client_id": g.ClientID, "why": "the client gave it back", "ip": ip})}}}, err
	})
}
