package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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
// business that demands its provider lets nobody in; a provider that is down is said.
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
