package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/oidc"
	"github.com/postern-io/postern/cloud/oidc/oidctest"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// From the login page to a real provider and back into the console; the password of a
// business that demands its provider lets no account in; a provider that is down is said.
func TestPeopleSignInByTheirProvider(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	base := "http://" + ln.Addr().String()
	p := oidctest.New(t, base+"/console/login/oidc/callback/acme")
	u, err := url.Parse(p.URL)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	s, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), BaseURL: base, WebhookHTTP: true, WebhookNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, WebhookPorts: []uint16{uint16(port)},
		SignIn: []oidc.Provider{{Business: "acme", Name: "Acme <SSO>", Issuer: p.URL, ClientID: "postern", Secret: oidctest.Secret, Required: true}}})
	require.NoError(t, err)
	hash := auth.HashPassword("correct horse battery")
	require.NoError(t, s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme"}},
			Accounts: []cloud.Account{{ID: 1, BusinessID: 42, Type: cloud.ClientAdmin, Email: "ann@a.example", Name: "Ann", PasswordHash: hash, Enabled: true, CreatedAt: time.Now()}}}}, nil
	}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{HTTP: ln}) }()
	defer func() { stop(); require.NoError(t, <-done) }()
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	cookies := map[string]string{}
	get := func(path string) (status int, to, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		for name, v := range cookies {
			r.AddCookie(&http.Cookie{Name: name, Value: v})
		}
		a, err := c.Do(r)
		require.NoError(t, err)
		defer a.Body.Close()
		for _, set := range a.Cookies() {
			if cookies[set.Name] = set.Value; set.Value == "" {
				delete(cookies, set.Name)
			}
			require.True(t, set.HttpOnly)
		}
		raw, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, a.Header.Get("Location"), string(raw)
	}
	_, _, page := get("/console/login")
	require.Contains(t, page, "Sign in with Acme &lt;SSO&gt;")
	status, to, _ := get("/console/login/oidc?business=acme")
	require.Equal(t, 303, status)
	require.True(t, strings.HasPrefix(to, p.URL), to)
	q := p.SignIn(to, "ann")
	kept := cookies["postern_oidc"]
	delete(cookies, "postern_oidc")
	status, _, page = get("/console/login/oidc/callback/acme?" + q.Encode())
	require.Equal(t, 401, status, "another browser")
	require.Contains(t, page, "began in another browser")
	cookies["postern_oidc"] = kept
	status, to, page = get("/console/login/oidc/callback/acme?" + q.Encode())
	require.Equal(t, []any{303, "/console"}, []any{status, to}, page)
	require.NotContains(t, cookies, "postern_oidc", "good once")
	status, _, _ = get("/console")
	require.Equal(t, 200, status)

	allowAgent(t, base, p, get, cookies, s.Store.Decide)
	var answer struct {
		Code string `json:"error_code"`
	}
	require.Equal(t, 403, call(t, "POST", base+"/api/v1/user/login", "", map[string]any{"email": "ann@a.example", "password": "correct horse battery"}, &answer))
	require.Equal(t, "OIDC_REQUIRED", answer.Code)
	status, _, _ = get("/console/login/oidc?business=nobody")
	require.Equal(t, 401, status)
	status, to, _ = get("/console/login/oidc?business=acme")
	require.Equal(t, 303, status)
	q = p.SignIn(to, "ann")
	p.Stop(503)
	status, _, page = get("/console/login/oidc/callback/acme?" + q.Encode())
	require.Equal(t, 503, status)
	require.Contains(t, page, "does not answer")
}

// allowAgent lets an agent in by way of the provider: from the page that asks about it, to
// the provider and back to that page, in a business that demands its provider and a second
// factor, which the password can satisfy neither of.
func allowAgent(t *testing.T, base string, p *oidctest.Provider, get func(string) (int, string, string), cookies map[string]string, decide func(context.Context, cloud.DeviceID, func(cloud.View) (*cloud.Changes, error)) error) {
	t.Helper()
	demand := cloud.Business{ID: 42, Code: "acme", Name: "Acme"}
	demand.Settings.SecondFactor = true
	require.NoError(t, decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{demand}}, FactorChanges: cloud.FactorChanges{LimitLogins: []cloud.BusinessID{42}}}, nil
	}))
	status, _, _ := get("/console")
	require.Equal(t, 200, status, "a login by the provider needs no second factor")
	const back = "http://127.0.0.1:49152/cb"
	var client struct {
		ID string `json:"client_id"`
	}
	require.Equal(t, 201, call(t, "POST", base+"/oauth/register", "", map[string]any{"client_name": "Agent", "redirect_uris": []string{back}}, &client))
	verifier := strings.Repeat("abcdefgh", 6)
	sum := sha256.Sum256([]byte(verifier))
	ask := url.Values{"client_id": {client.ID}, "redirect_uri": {back}, "response_type": {"code"}, "state": {"s"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {base + "/mcp"}}
	status, _, page := get("/oauth/authorize?" + ask.Encode())
	require.Equal(t, 200, status, page)
	link := regexp.MustCompile(`href="(/oauth/login/oidc[^"]+)"`).FindStringSubmatch(page)
	require.Len(t, link, 2, page)
	require.Contains(t, page, "Sign in with Acme &lt;SSO&gt;")
	form := hiddenFields(page)
	form.Set("email", "ann@a.example")
	form.Set("password", "correct horse battery")
	status, _, page = post(t, base+"/oauth/login", cookies, form)
	require.Equal(t, 401, status)
	require.Contains(t, page, "sign-in provider")

	begin := func() url.Values {
		t.Helper()
		status, to, _ := get(html.UnescapeString(link[1]))
		require.Equal(t, 303, status)
		return p.SignIn(to, "ann")
	}
	q := begin()
	status, _, page = get("/console/login/oidc/callback/acme?state=another&code=" + q.Get("code"))
	require.Equal(t, 401, status)
	require.Contains(t, page, "began in another browser")
	require.Contains(t, page, `action="/oauth/login"`, "the request goes on")
	q = begin()
	status, to, page := get("/console/login/oidc/callback/acme?" + q.Encode())
	require.Equal(t, 303, status, page)
	require.True(t, strings.HasPrefix(to, "/oauth/authorize?"), to)
	status, _, page = get(to)
	require.Equal(t, 200, status)
	form = hiddenFields(page)
	form.Set("decision", "allow")
	form.Set("profile", "ops-readonly")
	status, to, page = post(t, base+"/oauth/consent", cookies, form)
	require.Equal(t, 303, status, page)
	u, err := url.Parse(to)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(to, back), to)
	tokens := func(v url.Values) (refresh string) {
		t.Helper()
		v.Set("client_id", client.ID)
		status, _, body := post(t, base+"/oauth/token", nil, v)
		require.Equal(t, 200, status, body)
		var a struct {
			Refresh string `json:"refresh_token"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &a))
		return a.Refresh
	}
	refresh := tokens(url.Values{"grant_type": {"authorization_code"}, "code": {u.Query().Get("code")}, "redirect_uri": {back}, "code_verifier": {verifier}})
	tokens(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}})
}

func hiddenFields(page string) url.Values {
	v := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(page, -1) {
		v.Set(m[1], html.UnescapeString(m[2]))
	}
	return v
}

// post sends a form with the cookies of a browser, and keeps those that come back.
func post(t *testing.T, address string, cookies map[string]string, form url.Values) (status int, to, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, v := range cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	a, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	require.NoError(t, err)
	defer a.Body.Close()
	for _, set := range a.Cookies() {
		if cookies[set.Name] = set.Value; set.Value == "" {
			delete(cookies, set.Name)
		}
	}
	raw, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	return a.StatusCode, a.Header.Get("Location"), string(raw)
}
