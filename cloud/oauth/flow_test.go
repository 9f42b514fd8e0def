package oauth

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// RFC 6749 4.1.2.1: until client and redirect address are proven only the user
// learns of an error; after that the program does, with state and issuer.
func TestAuthorizationRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback, local, "http://[::1]:7/cb", "https://desk.example/q?a=1")
	one := r.client(callback)
	q, refusal := r.check(asking(id))
	require.Nil(t, refusal)
	require.Equal(t, callback, q.RedirectURI)
	require.Equal(t, base+"/mcp", q.Resource)
	require.Empty(t, q.Scopes)
	for _, x := range []struct {
		name, code string
		v          url.Values
	}{
		{"no client", InvalidRequest, asking("")},
		{"an unknown client", InvalidClient, asking("agent_nobody")},
		{"two clients", InvalidRequest, url.Values{"client_id": {id, one}, "redirect_uri": {callback}}},
		{"no redirect address of several", InvalidRequest, asking(id, "redirect_uri", "")},
		{"two redirect addresses", InvalidRequest, url.Values{"client_id": {id}, "redirect_uri": {callback, local}}},
		{"another redirect address", InvalidRedirect, asking(id, "redirect_uri", "https://evil.example/cb")},
		{"a longer one", InvalidRedirect, asking(id, "redirect_uri", callback+"/x")},
		{"one with a query", InvalidRedirect, asking(id, "redirect_uri", callback+"?x")},
		{"one that goes up", InvalidRedirect, asking(id, "redirect_uri", callback+"/../cb")},
		{"another port of what is no loopback", InvalidRedirect, asking(id, "redirect_uri", "https://desk.example:8443/cb")},
		{"another loopback", InvalidRedirect, asking(id, "redirect_uri", "http://localhost/cb")},
		{"a script", InvalidRedirect, asking(id, "redirect_uri", "javascript:alert(1)")},
		{"too long", InvalidRequest, asking(id, "state", strings.Repeat("x", maxQuery))},
		{"a client of no document", InvalidClient, asking("https://none.example/c")},
	} {
		_, refusal := r.check(x.v)
		require.NotNil(t, refusal, x.name)
		require.Equal(t, x.code, refusal.Err.Code, x.name)
		require.Empty(t, refusal.Redirect, x.name)
	}
	for _, x := range []struct {
		name, code string
		v          url.Values
	}{
		{"no response type", InvalidRequest, asking(id, "response_type", "")},
		{"another response type", UnsupportedResponse, asking(id, "response_type", "token")},
		{"another response mode", InvalidRequest, asking(id, "response_mode", "fragment")},
		{"no challenge", InvalidRequest, asking(id, "code_challenge", "")},
		{"no method", InvalidRequest, asking(id, "code_challenge_method", "")},
		{"plain", InvalidRequest, asking(id, "code_challenge_method", "plain", "code_challenge", verifier)},
		{"no hash", InvalidRequest, asking(id, "code_challenge", "short")},
		{"another resource", InvalidTarget, asking(id, "resource", "https://other.example/mcp")},
		{"a resource that is none", InvalidTarget, asking(id, "resource", base+"/console")},
		{"two resources", InvalidTarget, url.Values{"client_id": {id}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"st-1"}, "code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "resource": {base, base + "/mcp"}}},
		{"an unknown scope", InvalidScope, asking(id, "scope", "orders:read cake:eat")},
		{"twice a scope", InvalidRequest, url.Values{"client_id": {id}, "redirect_uri": {callback}, "state": {"st-1"}, "scope": {"a", "b"}}},
	} {
		_, refusal := r.check(x.v)
		require.NotNil(t, refusal, x.name)
		require.Equal(t, x.code, refusal.Err.Code, x.name)
		u, err := url.Parse(refusal.Redirect)
		require.NoError(t, err)
		require.Equal(t, callback, "https://"+u.Host+u.Path, x.name)
		require.Equal(t, url.Values{"error": {x.code}, "error_description": {refusal.Err.Text}, "state": {"st-1"}, "iss": {base}}, u.Query(), x.name)
	}
	for given, want := range map[string]bool{"http://127.0.0.1:49152/cb": true, "http://127.0.0.1/cb": true, "http://[::1]:9/cb": true, "http://[::1]/cb": true, "https://desk.example/q?a=1": true,
		"http://127.0.0.1:49152/cb2": false, "http://127.0.0.1:49152/cb?x": false, "http://127.0.0.2:49152/cb": false, "http://127.0.0.1:0/cb": false, "http://127.0.0.1:99999/cb": false, "http://127.0.0.1:/cb": false, "http://127.0.0.1:1@evil.example/cb": false} {
		_, refusal := r.check(asking(id, "redirect_uri", given))
		require.Equal(t, want, refusal == nil, given)
	}
	q, refusal = r.check(asking(one, "redirect_uri", "", "state", ""))
	require.Nil(t, refusal)
	require.Equal(t, callback, q.RedirectURI, "a client's only address need not be said")
	require.Equal(t, callback+"?iss=https%3A%2F%2Fx.example", q.answer(url.Values{}))
	q, refusal = r.check(asking(id, "redirect_uri", "https://desk.example/q?a=1", "scope", "orders:read offline_access  wms:read orders:read", "unknown", "x"))
	require.Nil(t, refusal)
	require.Equal(t, []string{"orders:read", "wms:read"}, q.Scopes)
	require.True(t, strings.HasPrefix(q.answer(url.Values{"code": {"c"}}), "https://desk.example/q?a=1&code=c&"), "its own query stays")
	again, refusal := r.check(must(url.ParseQuery(q.Query)))
	require.Nil(t, refusal)
	require.Equal(t, q, again)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A client id that is an address is described there, by itself.
func TestDescribedClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const id = "https://desk.example/client.json"
	good := map[string]any{"client_id": id, "client_name": "Desk", "redirect_uris": []string{callback}, "token_endpoint_auth_method": "none"}
	doc := func(name string, v any) Document {
		m := map[string]any{}
		for k, x := range good {
			m[k] = x
		}
		if m[name] = v; v == nil {
			delete(m, name)
		}
		return Document{200, "application/json; charset=utf-8", must(json.Marshal(m))}
	}
	for name, d := range map[string]Document{
		"another's":            doc("client_id", "https://other.example/client.json"),
		"nobody's":             doc("client_id", nil),
		"with a secret":        doc("client_secret", "s"),
		"that has a password":  doc("token_endpoint_auth_method", "client_secret_basic"),
		"without addresses":    doc("redirect_uris", nil),
		"with a bad address":   doc("redirect_uris", []string{"http://desk.example/"}),
		"of no object":         {200, "application/json", []byte("[]")},
		"that is not there":    {404, "application/json", doc("", "").Body},
		"that moved":           {302, "application/json", doc("", "").Body},
		"that is a page":       {200, "text/html", doc("", "").Body},
		"without a media type": {200, "", doc("", "").Body},
	} {
		r.docs[id] = d
		_, refusal := r.check(asking(id))
		require.NotNil(t, refusal, name)
		require.Equal(t, InvalidClient, refusal.Err.Code, name)
		require.Empty(t, refusal.Redirect)
	}
	for _, bad := range []string{"https://desk.example", "https://desk.example/", "https://desk.example/a/../b", "https://desk.example/./c", "https://u@desk.example/c", "https://desk.example/c#x", "http://desk.example/c", "https:///c"} {
		r.docs[bad] = Document{200, "application/json", []byte(strings.ReplaceAll(string(doc("", "").Body), id, bad))}
		_, refusal := r.check(asking(bad))
		require.NotNil(t, refusal, bad)
	}
	r.unlimited()
	r.docs[id] = doc("token_endpoint_auth_method", nil)
	q, refusal := r.check(asking(id))
	require.Nil(t, refusal)
	require.Equal(t, "desk.example", q.Site())
	delete(r.docs, id)
	_, refusal = r.check(asking(id))
	require.Nil(t, refusal, "it was read a moment ago")
	code := r.allowed(admin, "ops-readonly", asking(id))
	_, refresh := r.given(paying(id, code))
	r.given(refreshing(id, refresh))
	for i := range r.s.cfg.Limits.Fetch + 1 {
		_, refusal = r.check(asking(fmt.Sprintf("https://desk.example/%d", i)))
	}
	require.Equal(t, TemporarilyUnavailable, refusal.Err.Code)
}

// What is offered never holds more than the account, and what is offered first
// is the least that holds what was asked for.
func TestOffers(t *testing.T) {
	t.Parallel()
	full := cloud.Account{Type: cloud.ClientAdmin}
	some := cloud.Account{Type: cloud.ClientEmployee, Permissions: []string{"orders:write", "wms:read"}}
	for _, x := range []struct {
		name  string
		a     cloud.Account
		asked string
		first string
		holds []string
	}{
		{"nothing in particular", full, "", "ops-readonly", everyday()},
		{"the everyday ones", full, strings.Join(everyday(), " "), "ops-readonly", everyday()},
		{"one", full, "orders:read", "wms-readonly", []string{"wms:read", "orders:read"}},
		{"to write", full, "orders:write", "ops-write", catalog.ProfileScopes("ops-write")},
		{"all", full, "*", "full", []string{"*"}},
		{"what only all of it holds", full, "webhooks:read orders:read", Asked, []string{"webhooks:read", "orders:read"}},
		{"an employee", some, "", "ops-readonly", []string{"orders:read"}},
		{"an employee who asks for more", some, "orders:read settings:write drivers:read", "ops-readonly", []string{"orders:read"}},
		{"an employee who asks for all", some, "*", "full", []string{"orders:write", "wms:read"}},
	} {
		asked, e := readScopes(x.asked)
		require.Nil(t, e)
		n := 0
		for _, o := range Offers(x.a, asked) {
			if x.a.Type == cloud.ClientEmployee {
				require.True(t, holdsAll(x.a.Permissions, o.Scopes), "%s: %s", x.name, o.Profile)
			}
			require.NotEmpty(t, o.Scopes)
			if o.First {
				n++
				require.Equal(t, x.first, o.Profile, x.name)
				require.Equal(t, x.holds, o.Scopes, x.name)
			}
		}
		require.Equal(t, 1, n, x.name)
	}
	require.Empty(t, Offers(cloud.Account{Type: cloud.ClientEmployee}, nil))
}

// A choice that is not offered, and accounts that may nothing, give nothing.
func TestAllowGivesOnlyWhatIsOffered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q, refusal := r.check(asking(r.client(callback)))
	require.Nil(t, refusal)
	for _, x := range []struct {
		id      cloud.AccountID
		profile string
	}{{admin, "nosuch"}, {admin, ""}, {admin, Asked}, {employee, "ops-write"}, {nobody, "ops-readonly"}, {nobody, "full"}, {disabled, "ops-readonly"}} {
		_, err := r.s.Allow(t.Context(), q, cloud.Token{AccountID: x.id}, Choice{Profile: x.profile}, "")
		require.ErrorIs(t, err, ErrNoOffer, "%+v", x)
	}
	to, err := r.s.Refuse(t.Context(), q, cloud.Account{ID: admin, BusinessID: 42}, "")
	require.NoError(t, err)
	require.Contains(t, to, "error=access_denied")
	require.Contains(t, to, "state=st-1")
	require.NotContains(t, to, "code=")
	require.Equal(t, []string{"oauth_client_registered", "agent_refused"}, r.audits())
}

// RFC 6749 4.1.3, 5.2, RFC 7636 4.6, RFC 8707 2.2. A request that is refused
// leaves the code as it was.
func TestCodesForTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, other := r.client(callback), r.client(callback)
	code := r.allowed(admin, "support", asking(id))
	for _, x := range []struct {
		name, code string
		f          url.Values
	}{
		{"no grant type", InvalidRequest, paying(id, code, "grant_type", "")},
		{"another grant type", UnsupportedGrant, paying(id, code, "grant_type", "password")},
		{"no client", InvalidRequest, paying("", code, "client_id", "")},
		{"no code", InvalidRequest, paying(id, code, "code", "")},
		{"no verifier", InvalidRequest, paying(id, code, "code_verifier", "")},
		{"another resource", InvalidTarget, paying(id, code, "resource", base+"/mcp/developer")},
		{"a foreign resource", InvalidTarget, paying(id, code, "resource", "https://evil.example/mcp")},
		{"an unknown client", InvalidClient, paying("agent_nobody", code)},
		{"another client", InvalidGrant, paying(other, code)},
		{"a client of a document", InvalidGrant, paying("https://desk.example/c", code)},
		{"an unknown code", InvalidGrant, paying(id, auth.NewToken())},
		{"another redirect address", InvalidGrant, paying(id, code, "redirect_uri", local)},
		{"no redirect address", InvalidGrant, paying(id, code, "redirect_uri", "")},
		{"another verifier", InvalidGrant, paying(id, code, "code_verifier", verifier+"x")},
		{"the challenge for a verifier", InvalidGrant, paying(id, code, "code_verifier", challengeOf(verifier))},
		{"a short verifier", InvalidGrant, paying(id, code, "code_verifier", verifier[:42])},
		{"two codes", InvalidRequest, url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "code": {code, code}, "resource": {base + "/mcp"}}},
	} {
		a := r.token(x.f)
		require.Equal(t, x.code, a.error(), x.name)
		status := 400
		if x.code == InvalidClient {
			status = 401
		}
		require.Equal(t, status, a.status, x.name)
		require.Equal(t, "no-store", a.header("Cache-Control"), x.name)
		require.Equal(t, "application/json", a.header("Content-Type"))
		for _, secret := range []string{code, verifier, "st-1"} {
			require.NotContains(t, a.body, secret)
		}
	}
	a := r.token(paying(id, code, "resource", "HTTPS://X.EXAMPLE:443/mcp/"))
	require.Equal(t, 200, a.status, a.body)
	require.Equal(t, "no-store", a.header("Cache-Control"))
	require.Equal(t, "Bearer", a.text("token_type"))
	require.Equal(t, 3600.0, a.json["expires_in"])
	require.Equal(t, "orders:read analytics:read address:read approvals:read", a.text("scope"))
	access, ok := r.stored(a.text("access_token"))
	require.True(t, ok)
	require.Equal(t, []any{admin, cloud.AccessToken, base + "/mcp", "Desk", false}, []any{access.AccountID, access.Kind, access.Audience, access.Name, access.Login()})
	require.Equal(t, catalog.ProfileScopes("support"), access.Scopes)
	refresh, ok := r.stored(a.text("refresh_token"))
	require.True(t, ok)
	require.Equal(t, cloud.RefreshToken, refresh.Kind)

	// Used twice: all of it ends.
	require.Equal(t, InvalidGrant, r.token(paying(id, code)).error())
	_, ok = r.stored(a.text("access_token"))
	require.False(t, ok)
	require.Equal(t, InvalidGrant, r.token(refreshing(id, a.text("refresh_token"))).error())
	require.Equal(t, []string{"oauth_client_registered", "oauth_client_registered", "agent_reuse_detected", "agent_allowed"}, r.audits(), "it is told of once")
}

// A redirect address that the request did not say is not said here either.
func TestCodesOfRequestsWithoutAnAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	code := r.allowed(admin, "support", asking(id, "redirect_uri", ""))
	require.Equal(t, InvalidGrant, r.token(paying(id, code)).error())
	r.given(paying(id, code, "redirect_uri", ""))
}

// RFC 6749 6: rotation, narrowing, and what ends.
func TestRefresh(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, other := r.client(callback), r.client(callback)
	access, refresh := r.given(paying(id, r.allowed(admin, "support", asking(id))))
	for _, x := range []struct {
		name, code string
		f          url.Values
	}{
		{"none", InvalidRequest, refreshing(id, "")},
		{"no client", InvalidRequest, refreshing("", refresh)},
		{"another client", InvalidGrant, refreshing(other, refresh)},
		{"an unknown client", InvalidClient, refreshing("agent_nobody", refresh)},
		{"an access token", InvalidGrant, refreshing(id, access)},
		{"an unknown token", InvalidGrant, refreshing(id, auth.NewToken())},
		{"another resource", InvalidTarget, refreshing(id, refresh, "resource", base)},
		{"more than was granted", InvalidScope, refreshing(id, refresh, "scope", "orders:read orders:write")},
		{"all", InvalidScope, refreshing(id, refresh, "scope", "*")},
		{"an unknown scope", InvalidScope, refreshing(id, refresh, "scope", "cake:eat")},
	} {
		require.Equal(t, x.code, r.token(with(x.f, "client_id", x.f.Get("client_id"), "refresh_token", x.f.Get("refresh_token"))).error(), x.name)
	}
	a := r.token(refreshing(id, refresh, "scope", "orders:read"))
	require.Equal(t, 200, a.status, a.body)
	require.Equal(t, "orders:read", a.text("scope"))
	narrow, _ := r.stored(a.text("access_token"))
	require.Equal(t, []string{"orders:read"}, narrow.Scopes)
	_, ok := r.stored(access)
	require.True(t, ok, "the first one runs out by itself")
	wide, _ := r.given(refreshing(id, a.text("refresh_token")))
	back, _ := r.stored(wide)
	require.Equal(t, catalog.ProfileScopes("support"), back.Scopes, "the grant is as wide as before")
	require.Equal(t, InvalidGrant, r.token(refreshing(other, refresh)).error(), "whoever has it")
	for _, token := range []string{access, a.text("access_token"), wide} {
		_, ok := r.stored(token)
		require.False(t, ok)
	}
	require.Contains(t, r.audits(), "agent_reuse_detected")
}

// A token that leaks ends nothing of others: keys, logins, other grants.
func TestEndsOfOneGrantOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	login := auth.NewToken()
	r.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(login), AccountID: admin}}}})
	a1, r1 := r.given(paying(id, r.allowed(admin, "support", asking(id))))
	a2, _ := r.given(paying(id, r.allowed(admin, "full", asking(id))))
	a3, _ := r.given(paying(id, r.allowed(employee, "full", asking(id))))
	employees, _ := r.stored(a3)
	require.Equal(t, []string{"orders:read", "wms:read"}, employees.Scopes, "what the account holds")
	r.given(refreshing(id, r1))
	r.token(refreshing(id, r1))
	for token, want := range map[string]bool{a1: false, a2: true, a3: true, login: true} {
		_, ok := r.stored(token)
		require.Equal(t, want, ok)
	}
	require.Equal(t, InvalidGrant, r.token(refreshing(id, login)).error(), "a login is no refresh token")
	require.Equal(t, 200, r.post(RevokePath, url.Values{"client_id": {id}, "token": {login}}).status)
	_, ok := r.stored(login)
	require.True(t, ok, "and is not ended here")
}

// An account that is switched off gets nothing more; when it is on again the
// program goes on.
func TestDisabledAccounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	code := r.allowed(admin, "support", asking(id))
	_, refresh := r.given(paying(id, r.allowed(admin, "support", asking(id))))
	l, err := r.db.FindToken(t.Context(), auth.Hash(refresh))
	require.NoError(t, err)
	set := func(on bool) {
		l.Account.Enabled = on
		r.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{l.Account}}})
	}
	set(false)
	require.Equal(t, InvalidGrant, r.token(refreshing(id, refresh)).error())
	require.Equal(t, InvalidGrant, r.token(paying(id, code)).error())
	set(true)
	r.given(refreshing(id, refresh))
}

// The clients of a business that is suspended get nothing more, and nothing of theirs is
// used up: they go on when the business does.
func TestSuspendedBusiness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	code := r.allowed(admin, "support", asking(id))
	_, refresh := r.given(paying(id, r.allowed(admin, "support", asking(id))))
	l, err := r.db.FindToken(t.Context(), auth.Hash(refresh))
	require.NoError(t, err)
	set := func(s cloud.BusinessState) {
		s.BusinessID = l.Account.BusinessID
		r.write(cloud.Changes{PlatformChanges: cloud.PlatformChanges{BusinessStates: []cloud.BusinessState{s}}})
	}
	set(cloud.BusinessState{SuspendedAt: time.Now().UTC(), Reason: "Unpaid"})
	require.Equal(t, InvalidGrant, r.token(refreshing(id, refresh)).error())
	require.Equal(t, InvalidGrant, r.token(paying(id, code)).error())
	set(cloud.BusinessState{})
	r.given(refreshing(id, refresh))
	r.given(paying(id, code))
}

// RFC 7009.
func TestRevoke(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id, other := r.client(callback), r.client(callback)
	access, refresh := r.given(paying(id, r.allowed(admin, "support", asking(id))))
	revoke := func(client, token string) reply {
		return r.post(RevokePath, url.Values{"client_id": {client}, "token": {token}, "token_type_hint": {"nonsense"}})
	}
	require.Equal(t, InvalidRequest, revoke("", access).error())
	require.Equal(t, InvalidRequest, revoke(id, "").error())
	require.Equal(t, InvalidClient, revoke("agent_nobody", access).error())
	require.Equal(t, InvalidGrant, revoke(other, access).error())
	require.Equal(t, 200, revoke(id, "no such token").status)
	_, ok := r.stored(access)
	require.True(t, ok)
	require.Equal(t, 200, revoke(id, access).status)
	_, ok = r.stored(access)
	require.False(t, ok)
	access, refresh = r.given(refreshing(id, refresh))
	for range 2 {
		a := revoke(id, refresh)
		require.Equal(t, 200, a.status)
		require.Empty(t, a.body)
		require.Equal(t, "no-store", a.header("Cache-Control"))
	}
	_, ok = r.stored(access)
	require.False(t, ok, "all that was granted ends")
	require.Equal(t, InvalidGrant, r.token(refreshing(id, refresh)).error())
	require.Equal(t, []string{"oauth_client_registered", "oauth_client_registered", "agent_grant_ended", "agent_allowed"}, r.audits(), "no reuse is told of what has ended")
}

// An account has so many programs; the one that was used longest ago goes.
func TestGrantsOfAnAccountAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	var first []string
	for range 2 {
		a, _ := r.given(paying(id, r.allowed(admin, "support", asking(id))))
		first = append(first, a)
	}
	for range maxGrants - 1 {
		r.allowed(admin, "support", asking(id))
	}
	for i, want := range []bool{false, true} {
		_, ok := r.stored(first[i])
		require.Equal(t, want, ok, "%d", i)
	}
	require.Contains(t, r.audits(), "agent_grant_ended")
}

// In a business that demands a second factor no person without one lets a client in, be it
// that the demand came while the page was open.
func TestAllowDemandsTheSecondFactor(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]func(testing.TB) *store.DB{"SQLite": func(t testing.TB) *store.DB { return storetest.OpenSQLite(t) }, "PostgreSQL": func(t testing.TB) *store.DB { return storetest.OpenPostgres(t) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rigOn(t, db(t))
			client := r.client(callback)
			q, refusal := r.check(asking(client))
			require.Nil(t, refusal)
			code := r.allowed(employee, "ops-readonly", asking(client))
			b := cloud.Business{ID: 42, Code: "b"}
			b.Settings.SecondFactor = true
			r.write(cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}, FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{{AccountID: admin, Secret: []byte("s")}}}})
			_, err := r.s.Allow(t.Context(), q, cloud.Token{AccountID: employee}, Choice{Profile: "ops-readonly"}, "")
			require.Equal(t, cloud.E(cloud.Forbidden, "SECOND_FACTOR_SETUP_REQUIRED"), err)
			require.Equal(t, "invalid_grant", r.token(paying(client, code)).error())
			access, _ := r.given(paying(client, r.allowed(admin, "ops-readonly", asking(client))))
			require.NotEmpty(t, access)
		})
	}
}
