package rest

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// A shop's page reads tracking from any origin and without a token; pages of
// configured origins call everything with one; others read nothing, and no
// cookie counts.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	const shop, other = "https://shop.example", "https://evil.example"
	w := webtest.New(t)
	cfg := rigOn(t, w, nil).s.cfg
	cfg.Origins = []string{shop}
	served := New(cfg)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- served.Serve(ln) }()
	t.Cleanup(func() { require.NoError(t, served.Shutdown(context.Background())); require.NoError(t, <-done) })
	do := func(method, path, origin string, head ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ln.Addr().String()+path, nil)
		require.NoError(t, err)
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		for i := 0; i < len(head); i += 2 {
			req.Header.Set(head[i], head[i+1])
		}
		r, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r
	}
	const allow = "Access-Control-Allow-Origin"
	tracking := "/api/v1/tracking/" + webtest.Waiting
	for _, path := range []string{tracking, "/api/v1/otep/trackings/" + webtest.Waiting, "/api/v1/tracking/UNKNOWN-1"} {
		require.Equal(t, "*", do("GET", path, other).Header.Get(allow), path)
		require.Equal(t, shop, do("GET", path, shop).Header.Get(allow), path)
		require.Empty(t, do("GET", path, "").Header.Get(allow), path)
	}
	token := "Bearer " + w.Tokens[cloud.ClientAdmin]
	r := do("GET", "/api/v1/user/me", shop, "Authorization", token)
	require.Equal(t, []any{200, shop, "Origin", ""}, []any{r.StatusCode, r.Header.Get(allow), r.Header.Values("Vary")[len(r.Header.Values("Vary"))-1], r.Header.Get("Access-Control-Allow-Credentials")})
	require.Contains(t, r.Header.Get("Access-Control-Expose-Headers"), "X-RateLimit-Remaining")
	require.Empty(t, do("GET", "/api/v1/user/me", other, "Authorization", token).Header.Get(allow))
	require.Equal(t, 401, do("GET", "/api/v1/user/me", shop, "Cookie", "postern_session="+w.Tokens[cloud.ClientAdmin]).StatusCode)

	ask := []string{"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "authorization"}
	r = do("OPTIONS", "/api/v1/webhook-settings", shop, ask...)
	require.Equal(t, []any{204, shop}, []any{r.StatusCode, r.Header.Get(allow)})
	require.Contains(t, r.Header.Get("Access-Control-Allow-Methods"), "PUT")
	require.Contains(t, r.Header.Get("Access-Control-Allow-Headers"), "Authorization")
	for _, origin := range []string{other, "null", "https://shop.example.evil.example", "http://shop.example", ""} {
		r = do("OPTIONS", "/api/v1/webhook-settings", origin, ask...)
		require.Equal(t, []any{405, ""}, []any{r.StatusCode, r.Header.Get(allow)}, origin)
	}
	r = do("OPTIONS", tracking, other, ask...)
	require.Equal(t, []any{204, "*"}, []any{r.StatusCode, r.Header.Get(allow)})
	require.NotContains(t, r.Header.Get("Access-Control-Allow-Headers"), "Authorization", "no token from just any page")
	require.Contains(t, r.Header.Get("Access-Control-Allow-Headers"), "X-Tracking-Key", "a link's secret, from the recipient's own link")
	require.Equal(t, 405, do("OPTIONS", tracking, other).StatusCode, "no browser asks like this")
}
