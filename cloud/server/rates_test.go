package server

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// Limits by name are in force, hold for the caller's own address behind a trusted
// proxy, and stand at /docs in every language; more people of one address log in than may fail.
func TestLimitsAreSettings(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls and packets")
	t.Parallel()
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, "")
	require.NoError(t, err)
	s, ln := serveOn(t, Config{Dir: storetest.MigratedDir(t), Proxies: proxies, Rates: map[string]int{"anonymous": 3, "login_address": 4, "quotes": 0, "oauth_register": 2, "oauth_token": 3, "oauth_fetch": 1}})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(method, path, from, body string, head ...string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ln+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("X-Forwarded-For", from)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(head); i += 2 {
			req.Header.Set(head[i], head[i+1])
		}
		r, err := client.Do(req)
		require.NoError(t, err)
		defer r.Body.Close()
		raw, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, r.Header, string(raw)
	}
	for _, from := range []string{"192.0.2.1", "192.0.2.2"} {
		for n := range 4 {
			status, head, _ := do("GET", "/api/ai/capabilities", from, "")
			require.Equal(t, "3", head.Get("X-RateLimit-Limit"))
			require.Equal(t, n == 3, status == 429, "%s %d: %d", from, n, status)
		}
	}
	_, err = s.Setup.Administrator(t.Context(), setup.Input{Business: "Harbour", Email: "ada@harbour.example", Password: "a long enough password"})
	require.NoError(t, err)
	for i := range 8 {
		in := setup.Input{Code: "harbour", Email: fmt.Sprintf("p%d@harbour.example", i), Password: "a long enough password"}
		_, err = s.Setup.Administrator(t.Context(), in)
		require.NoError(t, err)
		status, _, body := do("POST", "/api/v1/user/login", "192.0.2.3", fmt.Sprintf(`{"email":%q,"password":"a long enough password"}`, in.Email))
		require.Equal(t, 200, status, "person %d: %s", i, body)
	}
	for n := range 5 {
		status, _, _ := do("POST", "/api/v1/user/login", "192.0.2.3", fmt.Sprintf(`{"email":"guess%d@harbour.example","password":"not this one at all"}`, n))
		require.Equal(t, map[bool]int{true: 429, false: 401}[n == 4], status, "guess %d", n)
	}
	for path, want := range map[string]int{"/oauth/register": 2, "/oauth/token": 3} {
		for n := range want + 1 {
			status, head, body := do("POST", path, "192.0.2.5", `{"redirect_uris":["https://desk.example/cb"]}`)
			require.Equal(t, n == want, status == 429, "%s %d: %d %s", path, n, status, body)
			require.Equal(t, n == want, head.Get("Retry-After") != "")
		}
	}
	for n := range 2 {
		_, _, body := do("GET", fmt.Sprintf("/oauth/authorize?client_id=https://127.0.0.1/%d&redirect_uri=https://desk.example/cb", n), "192.0.2.6", "", "Accept-Language", "en")
		require.Equal(t, n == 1, strings.Contains(body, "temporarily_unavailable"), "document %d: %s", n, body)
	}
	for _, l := range locale.All() {
		_, _, text := do("GET", "/docs", "192.0.2.4", "", "Accept-Language", l.Code)
		for _, name := range RateNames() {
			require.Contains(t, text, "<code>"+name+"</code> "+htmlText(locale.Word(l.Code, "limit."+name)), l.Code)
			require.NotEqual(t, "limit."+name, locale.Word(l.Code, "limit."+name))
		}
		require.Contains(t, text, locale.Word(l.Code, "limits.none"), "quotes have none")
	}
}

func htmlText(s string) string { return strings.ReplaceAll(s, "'", "&#39;") }

// serveOn runs a node with HTTP only and gives its address.
func serveOn(t *testing.T, cfg Config) (*Server, string) {
	t.Helper()
	s, ln := serveNodeOn(t, cfg, func(ln *Listeners) { *ln = Listeners{HTTP: ln.HTTP} })
	return s, ln.HTTP.Addr().String()
}
