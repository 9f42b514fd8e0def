package page_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/oauth"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

const (
	agentBase = "https://cloud.test"
	agentBack = "http://127.0.0.1:49152/cb"
	hostile   = `<script>alert(1)</script>"><b>&amp;`
)

// agents is a rig whose authorization server has an address of its own.
func agents(t *testing.T) *rig {
	return newRig(t, func(c *page.Config) {
		c.Agents = oauth.New(oauth.Config{Store: c.Store.(oauth.Store), BaseURL: agentBase})
	})
}

var (
	hidden = regexp.MustCompile(`name="(form|request)" value="([^"]*)"`)
	first  = regexp.MustCompile(`value="([a-z-]+)" checked`)
)

// fields are the hidden ones of a form.
func fields(body string) url.Values {
	v := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		v.Set(m[1], html.UnescapeString(m[2]))
	}
	return v
}

func plus(v url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for k := range v {
		out.Set(k, v.Get(k))
	}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

// registered is a client with a hostile name.
func (r *rig) registered() string {
	r.t.Helper()
	name, err := json.Marshal(hostile)
	require.NoError(r.t, err)
	g := r.raw("POST", "/oauth/register", "application/json", `{"client_name":`+string(name)+`,"redirect_uris":["http://127.0.0.1/cb"]}`)
	require.Equal(r.t, 201, g.status, g.body)
	var c struct {
		ID string `json:"client_id"`
	}
	require.NoError(r.t, json.Unmarshal([]byte(g.body), &c))
	return c.ID
}

const agentVerifier = "abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEF"

func authorizeURL(client string, pairs ...string) string {
	sum := sha256.Sum256([]byte(agentVerifier))
	v := url.Values{"client_id": {client}, "redirect_uri": {agentBack}, "response_type": {"code"}, "state": {`s"<&`}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
		"code_challenge_method": {"S256"}, "resource": {agentBase + "/mcp"}}
	return oauth.AuthorizePath + "?" + plus(v, pairs...).Encode()
}

// arrive opens a request and logs in, up to the consent page.
func (r *rig) arrive(address string, typ cloud.AccountType) got {
	r.t.Helper()
	g := r.do("GET", address, nil)
	require.Equal(r.t, 200, g.status, g.body)
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "email", r.w.Emails[typ], "password", webtest.Password))
	require.Equal(r.t, 303, g.status, g.body)
	to := g.header("Location")
	require.True(r.t, strings.HasPrefix(to, oauth.AuthorizePath+"?"), to)
	g = r.do("GET", to, nil)
	require.Equal(r.t, 200, g.status, g.body)
	return g
}

func (r *rig) consent(g got, pairs ...string) got {
	return r.do("POST", "/oauth/consent", plus(fields(g.body), pairs...))
}

// back is where a program is answered.
func back(t *testing.T, g got) url.Values {
	t.Helper()
	require.Equal(t, 303, g.status, g.body)
	to := g.header("Location")
	require.True(t, strings.HasPrefix(to, agentBack+"?"), to)
	u, err := url.Parse(to)
	require.NoError(t, err)
	require.Equal(t, agentBase, u.Query().Get("iss"))
	require.Equal(t, `s"<&`, u.Query().Get("state"))
	return u.Query()
}

func framedNowhere(t *testing.T, g got) {
	t.Helper()
	require.Equal(t, "DENY", g.header("X-Frame-Options"))
	require.Contains(t, g.header("Content-Security-Policy"), "frame-ancestors 'none'")
	require.Equal(t, "no-store", g.header("Cache-Control"))
	require.Equal(t, "no-referrer", g.header("Referrer-Policy"))
}

// Everybody who has a password can log in, decide, and is sent back; the login
// ends with the decision and its cookie went to these pages only.
func TestEverybodyDecidesAboutAgents(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	for typ, email := range r.w.Emails {
		g := r.do("GET", authorizeURL(id), nil)
		framedNowhere(t, g)
		g = r.arrive(authorizeURL(id), typ)
		framedNowhere(t, g)
		session := r.cookies["postern_agents"]
		require.NotEmpty(t, session)
		require.Contains(t, g.body, email)
		require.Equal(t, typ != cloud.PlatformAdmin, strings.Contains(g.body, "Acme Logistics"), "operators of the platform are of no business")
		require.NotContains(t, g.body, "Other Freight")
		if typ == cloud.ClientEmployee { // who has no permissions in this world
			require.NotContains(t, g.body, `value="allow"`)
			require.Equal(t, "access_denied", back(t, r.consent(g, "decision", "refuse")).Get("error"))
			continue
		}
		require.Equal(t, "ops-readonly", first.FindStringSubmatch(g.body)[1])
		g = r.consent(g, "decision", "allow", "profile", "support")
		require.Len(t, back(t, g).Get("code"), 64, typ)
		require.Empty(t, r.cookies["postern_agents"])
		s, err := r.w.FindToken(t.Context(), auth.Hash(session))
		require.NoError(t, err)
		require.False(t, auth.Valid(s.Token, time.Now()), "the login ended")
		require.Equal(t, 200, r.do("GET", authorizeURL(id), nil).status)
		require.Equal(t, 400, r.consent(g, "decision", "allow", "profile", "support", "request", "").status, "no request, no decision")
	}
	require.Len(t, r.w.Emails, 6)
}

// Cookies say where they go.
func TestAgentCookies(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	g := r.do("GET", authorizeURL(id), nil)
	require.Regexp(t, `(?i)path=/oauth; HttpOnly; SameSite=Lax`, g.set["postern_agents_form"])
	g = r.do("POST", "/oauth/login", plus(fields(g.body), "email", r.w.Emails[cloud.Customer], "password", webtest.Password))
	require.Regexp(t, `(?i)max-age=600; path=/oauth; HttpOnly; SameSite=Lax`, g.set["postern_agents"])
	require.NotContains(t, g.set, "postern_session")
	s, err := r.w.FindToken(t.Context(), auth.Hash(r.cookies["postern_agents"]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), s.Token.ExpiresAt, time.Minute)
}

// A decision counts when it comes from the page, of this login, about this
// request, not long ago; everything else asks again and gives nothing.
func TestConsentCannotBeForged(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	page := r.arrive(authorizeURL(id), cloud.ClientAdmin)
	good := fields(page.body)
	other := r.do("GET", authorizeURL(id, "scope", "*"), nil)
	session := r.cookies["postern_agents"]
	r.cookies = map[string]string{}
	stranger := r.arrive(authorizeURL(id), cloud.Customer)
	r.cookies["postern_agents"] = session
	decision := []string{"decision", "allow", "profile", "full"}
	for name, f := range map[string]url.Values{
		"no form":          plus(good, "form", ""),
		"nonsense":         plus(good, "form", "x.y"),
		"of the future":    plus(good, "form", "zzzzzzz"+good.Get("form")),
		"another request":  plus(good, "form", fields(other.body).Get("form")),
		"another's page":   fields(stranger.body),
		"a changed one":    plus(good, "request", good.Get("request")+"&scope=%2A"),
		"without a period": plus(good, "form", strings.ReplaceAll(good.Get("form"), ".", "")),
	} {
		g := r.do("POST", "/oauth/consent", plus(f, decision...))
		require.Equal(t, 403, g.status, name)
		require.Empty(t, g.header("Location"), name)
		framedNowhere(t, g)
	}
	require.Equal(t, 403, r.do("POST", "/oauth/consent", plus(good, decision...), "Sec-Fetch-Site", "cross-site").status)
	require.Equal(t, 405, r.do("GET", "/oauth/consent", nil).status)
	require.Equal(t, 400, r.do("POST", "/oauth/consent", plus(good, "decision", "allow", "profile", "nosuch")).status)
	require.Equal(t, 400, r.do("POST", "/oauth/consent", plus(good, "decision", "allow")).status)
	for _, cookie := range []string{"", "nonsense", r.w.Tokens[cloud.ProviderType], r.w.Expired, r.key(), r.agentToken()} {
		r.cookies["postern_agents"] = cookie
		g := r.do("POST", "/oauth/consent", plus(good, decision...))
		require.Equal(t, 403, g.status)
		require.Contains(t, g.body, `action="/oauth/login"`, "whoever is not logged in is asked to")
		g = r.do("GET", authorizeURL(id), nil)
		require.Contains(t, g.body, `action="/oauth/login"`)
	}
	require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) error {
		for a := range cloud.AccountID(30) {
			list, err := v.OAuthGrants(a)
			require.NoError(t, err)
			for _, g := range list {
				require.NotEqual(t, id, g.ClientID, "nothing was given")
			}
		}
		return nil
	}))
	r.cookies["postern_agents"] = session
	require.NotEmpty(t, back(t, r.do("POST", "/oauth/consent", plus(good, decision...))).Get("code"))
}

// key is a key of the admin, and agentToken a token that an agent has.
func (r *rig) key() string {
	return r.put(cloud.Token{ID: 900, Profile: "full"})
}

func (r *rig) agentToken() string {
	return r.put(cloud.Token{Grant: 900, Kind: cloud.AccessToken, Audience: agentBase, Scopes: []string{"*"}})
}

func (r *rig) put(t cloud.Token) string {
	admin, err := r.w.FindToken(context.Background(), auth.Hash(r.w.Tokens[cloud.ClientAdmin]))
	require.NoError(r.t, err)
	token := auth.NewToken()
	t.Hash, t.AccountID, t.CreatedAt, t.ExpiresAt = auth.Hash(token), admin.Account.ID, time.Now(), time.Now().Add(time.Hour)
	r.w.Write(r.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{t}}})
	return token
}

// A token of an agent opens neither the console nor REST.
func TestAgentTokensAreNoLogins(t *testing.T) {
	t.Parallel()
	r := agents(t)
	token := r.agentToken()
	r.cookies["postern_session"] = token
	require.Equal(t, 303, r.do("GET", "/console", nil).status)
	g := r.do("GET", "/api/v1/user/me", nil, "Authorization", "Bearer "+token)
	require.Equal(t, 401, g.status)
	require.Contains(t, g.body, "TOKEN_INVALID")
	g = r.raw("POST", "/api/graphql", "application/json", `{"query":"{me{id}}"}`, "Authorization", "Bearer "+token)
	require.Contains(t, g.body, "TOKEN_INVALID")
}

// The login takes its own form only, and leads to its own page whatever the
// form says.
func TestAgentLogin(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	login := []string{"email", r.w.Emails[cloud.Customer], "password", webtest.Password}
	f := fields(r.do("GET", authorizeURL(id), nil).body)
	for _, x := range []struct {
		f      url.Values
		status int
	}{
		{plus(f, append(login, "form", strings.Repeat("x", 32))...), 403},
		{plus(f, "email", r.w.Emails[cloud.Customer], "password", "wrong"), 401},
		{plus(f, "email", "x@x.example", "password", strings.Repeat("x", 300)), 401},
		{plus(f, append(login, "request", "https://evil.example/")...), 400},
		{plus(f, append(login, "request", "//evil.example/?client_id=x")...), 400},
		{plus(f, append(login, "request", "")...), 400},
	} {
		g := r.do("POST", "/oauth/login", x.f)
		require.Equal(t, x.status, g.status, g.body)
		require.Empty(t, g.header("Location"))
		require.Empty(t, r.cookies["postern_agents"])
		require.NotContains(t, g.body, "wrong")
	}
	require.Equal(t, 403, r.do("POST", "/oauth/login", plus(f, login...), "Sec-Fetch-Site", "cross-site").status)
	g := r.do("POST", "/oauth/login", plus(f, append(login, "request", f.Get("request")+"&next=https%3A%2F%2Fevil.example&x=%0d%0aSet-Cookie:%20a=b")...))
	require.Equal(t, 303, g.status)
	require.True(t, strings.HasPrefix(g.header("Location"), oauth.AuthorizePath+"?"))
	require.NotContains(t, g.set, "a")
	g = r.do("GET", g.header("Location"), nil)
	g = r.consent(g, "decision", "switch")
	require.Equal(t, 303, g.status)
	require.Empty(t, r.cookies["postern_agents"])
	require.Contains(t, r.do("GET", g.header("Location"), nil).body, `action="/oauth/login"`)
}

// An operator of the platform with a second factor decides about no agent by the password
// alone, nor by a challenge without its code or that was used.
func TestAgentLoginDemandsAnOperatorsSecondFactor(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	secret := []byte("twenty bytes of zinc")
	var operator cloud.AccountID
	l, err := r.w.FindToken(t.Context(), auth.Hash(r.w.Tokens[cloud.PlatformAdmin]))
	require.NoError(t, err)
	operator = l.Account.ID
	r.w.Write(t, cloud.Changes{FactorChanges: cloud.FactorChanges{SecondFactors: []cloud.SecondFactor{{AccountID: operator, Secret: secret, SetUpAt: time.Now()}}}})
	f := fields(r.do("GET", authorizeURL(id), nil).body)
	g := r.do("POST", "/oauth/login", plus(f, "email", r.w.Emails[cloud.PlatformAdmin], "password", webtest.Password))
	require.Equal(t, 401, g.status)
	require.Empty(t, r.cookies["postern_agents"])
	m := regexp.MustCompile(`name="challenge" value="([^"]+)"`).FindStringSubmatch(g.body)
	require.Len(t, m, 2, g.body)
	step := func(otp string) got {
		return r.do("POST", "/oauth/login", plus(fields(g.body), "challenge", m[1], "otp", otp))
	}
	for _, bad := range []string{"", "00000000"} {
		require.Equal(t, 401, step(bad).status)
		require.Empty(t, r.cookies["postern_agents"])
	}
	require.Equal(t, 403, r.do("POST", "/oauth/consent", plus(f, "decision", "allow", "profile", "support")).status, "no login")
	code, err := totp.GenerateCode(auth.KeyText(secret), time.Now())
	require.NoError(t, err)
	require.Equal(t, 303, step(code).status)
	require.NotEmpty(t, r.cookies["postern_agents"])
	delete(r.cookies, "postern_agents")
	g = r.do("GET", authorizeURL(id), nil)
	require.Equal(t, 401, step(code).status, "the challenge was used")
	require.Empty(t, r.cookies["postern_agents"])
}

// One person of two businesses says which.
func TestAgentLoginOfSeveralBusinesses(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	email := r.w.Emails[cloud.ClientAdmin]
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: 500, BusinessID: 43, Type: cloud.ClientAdmin, Name: "Second", Email: email, PasswordHash: auth.HashPassword(webtest.Password), Enabled: true, CreatedAt: time.Now()}}}})
	f := plus(fields(r.do("GET", authorizeURL(id), nil).body), "email", email, "password", webtest.Password)
	g := r.do("POST", "/oauth/login", f)
	require.Equal(t, 401, g.status)
	require.Contains(t, g.body, `<option value="other">Other Freight</option>`)
	require.Equal(t, 303, r.do("POST", "/oauth/login", plus(f, "client_code", "other")).status)
	require.Contains(t, r.do("GET", authorizeURL(id), nil).body, "Other Freight")
}

// What a program says about itself is shown as its own claim and is never more
// than text; an error before its address is proven goes nowhere.
func TestWhatProgramsSayIsText(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	for _, l := range locale.All() {
		r.cookies = map[string]string{}
		for _, g := range []got{r.do("GET", authorizeURL(id)+"&lang="+l.Code, nil), r.arrive(authorizeURL(id)+"&lang="+l.Code, cloud.ClientAdmin)} {
			clean(t, r, g)
			require.Contains(t, g.body, `<html lang="`+l.Code+`">`)
			require.Contains(t, g.body, html.EscapeString("“")+"&lt;script&gt;")
			require.NotContains(t, g.body, "<script>alert")
			require.Contains(t, g.body, "127.0.0.1:49152")
			require.Contains(t, g.body, locale.Word(l.Code, "agent.local"))
			link := regexp.MustCompile(`href="(/oauth/authorize\?[^"]*lang=de)"`).FindStringSubmatch(g.body)
			require.NotNil(t, link)
			require.Contains(t, r.do("GET", html.UnescapeString(link[1]), nil).body, `<html lang="de">`, "the request goes on in another language")
			r.cookies["postern_lang"] = l.Code
		}
		g := r.do("GET", authorizeURL("agent_nobody")+"&lang="+l.Code, nil)
		require.Equal(t, 400, g.status)
		clean(t, r, g)
		require.Contains(t, g.body, "invalid_client")
		require.Empty(t, g.header("Location"))
	}
	g := r.do("GET", authorizeURL(id, "redirect_uri", "https://evil.example/"), nil)
	require.Equal(t, 400, g.status)
	require.Empty(t, g.header("Location"))
	require.NotContains(t, g.body, "evil.example")
	far := r.raw("POST", "/oauth/register", "application/json", `{"redirect_uris":["https://desk.example/cb"]}`)
	m := regexp.MustCompile(`"client_id":"([^"]+)"`).FindStringSubmatch(far.body)
	require.NotNil(t, m)
	g = r.do("GET", authorizeURL(m[1], "redirect_uri", "https://desk.example/cb", "scope", "cake:eat"), nil)
	require.Equal(t, 400, g.status, "whoever registers an address sends nobody there")
	require.Empty(t, g.header("Location"))
	framedNowhere(t, g)
	require.Contains(t, g.body, "desk.example</a>")
	require.Contains(t, html.UnescapeString(g.body), `href="https://desk.example/cb?error=invalid_scope&`, "unless its user wants to")
	require.Equal(t, "invalid_scope", back(t, r.do("GET", authorizeURL(id, "scope", "cake:eat"), nil)).Get("error"))
}

// Chromium holds form-action against what follows a form, so that the consent
// page has none; windows of programs may wait for their answer.
func TestConsentPolicy(t *testing.T) {
	t.Parallel()
	r := agents(t)
	id := r.registered()
	require.Contains(t, r.do("GET", authorizeURL(id), nil).header("Content-Security-Policy"), "form-action 'self'")
	g := r.arrive(authorizeURL(id), cloud.ClientAdmin)
	require.NotContains(t, g.header("Content-Security-Policy"), "form-action")
	require.Contains(t, g.header("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, "unsafe-none", g.header("Cross-Origin-Opener-Policy"))
	require.Equal(t, "same-origin", r.do("GET", "/console/login", nil).header("Cross-Origin-Opener-Policy"))
}

// In a real browser a program gets its tokens: on a desk, in the dark, on a
// telephone, in Chinese and without script; the answer arrives although the
// program sends its user on to another site; nothing frames the page.
func TestConsentInARealBrowser(t *testing.T) {
	ring.SkipUnlessFull(t, "its pages are tested without a browser, others in one")
	w, s, _ := server(t, nil)
	var f struct {
		Axe                        map[string][]string
		Console, Foreign, Overflow []string
		Tokens                     map[string]string
		Refused, Keyboard          string
		Framed                     bool
	}
	require.NoError(t, json.Unmarshal(drive(t, s, nil, "consent.mjs", w.Emails[cloud.ClientAdmin], webtest.Password), &f))
	require.Len(t, f.Axe, 9)
	for page, violations := range f.Axe {
		require.Empty(t, violations, page)
	}
	require.Empty(t, f.Console, "errors in the browser's console")
	require.Empty(t, f.Foreign, "requests to other hosts")
	require.Empty(t, f.Overflow, "pages wider than the window")
	require.Len(t, f.Tokens, 5)
	for look, scope := range f.Tokens {
		require.Equal(t, "orders:read labels:read routes:read drivers:read analytics:read address:read approvals:read", scope, look)
	}
	require.Equal(t, "ops-readonly", f.Keyboard)
	require.Equal(t, "access_denied", f.Refused)
	require.False(t, f.Framed)
}
