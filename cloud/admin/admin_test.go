package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

const token = "a-token-of-some-length"

// serve starts a server on a free port of an address.
func serve(t *testing.T, cfg Config, host string) string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "some_gauge", Help: "Some."}, func() float64 { return 7 }))
	cfg.Gatherer = reg
	s := New(cfg)
	ln, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-done)
	})
	return "http://" + ln.Addr().String()
}

func ask(t *testing.T, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if change != nil {
		change(r)
	}
	a, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	raw, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	return a.StatusCode, string(raw)
}

var paths = map[string]string{"/metrics": "some_gauge 7", "/healthz": "ok", "/readyz": "ready", "/debug/pprof/": "goroutine", "/debug/pprof/heap?debug=1": "heap profile", "/debug/pprof/goroutine?debug=1": "goroutine profile",
	"/debug/pprof/symbol": "num_symbols"}

func TestEverythingIsServedToThisMachine(t *testing.T) {
	t.Parallel()
	at := serve(t, Config{}, "127.0.0.1")
	for path, want := range paths {
		status, text := ask(t, at+path, nil)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, text, want, path)
	}
	status, _ := ask(t, strings.Replace(at, "127.0.0.1", "localhost", 1)+"/metrics", nil)
	require.Equal(t, http.StatusOK, status)
	for _, path := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=0.1"} {
		status, text := ask(t, at+path, nil)
		require.Equal(t, http.StatusOK, status)
		require.NotEmpty(t, text)
	}
	status, _ = ask(t, at+"/debug/pprof/cmdline", nil)
	require.Equal(t, http.StatusNotFound, status, "it may hold a password")
}

// Without a token: a page whose name resolves to the loopback, a page of another
// origin, and a proxy on this machine that passes on what comes from elsewhere.
func TestOthersAreRefusedWithoutAToken(t *testing.T) {
	t.Parallel()
	at := serve(t, Config{}, "127.0.0.1")
	for what, change := range map[string]func(*http.Request){
		"another name":     func(r *http.Request) { r.Host = "attacker.example" },
		"a name like ours": func(r *http.Request) { r.Host = "localhost.attacker.example:9464" },
		"an odd port":      func(r *http.Request) { r.Host = "localhost:@attacker.example" },
		"an origin":        func(r *http.Request) { r.Header.Set("Origin", "https://attacker.example") },
		"a proxy":          func(r *http.Request) { r.Header.Set("X-Forwarded-For", "203.0.113.9") },
		"a proxy's name":   func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") },
	} {
		for path := range paths {
			status, text := ask(t, at+path, change)
			require.Equal(t, http.StatusForbidden, status, "%s %s", what, path)
			require.NotContains(t, text, "some_gauge")
		}
	}
}

func TestATokenIsNeededForEverything(t *testing.T) {
	t.Parallel()
	at := serve(t, Config{Token: token}, "127.0.0.1")
	for _, given := range []string{"", "Bearer", "Bearer ", "Bearer " + token[1:], "Bearer " + token + "x", "Basic " + token, token, "Bearer " + strings.ToUpper(token), "Bearer  x " + token} {
		for path := range paths {
			status, text := ask(t, at+path, func(r *http.Request) {
				if given != "" {
					r.Header.Set("Authorization", given)
				}
			})
			require.Equal(t, http.StatusUnauthorized, status, "%q %s", given, path)
			require.NotContains(t, text, token)
		}
	}
	status, _ := ask(t, at+"/metrics?token="+token, nil)
	require.Equal(t, http.StatusUnauthorized, status, "addresses are logged by proxies")
	for path, want := range paths {
		status, text := ask(t, at+path, func(r *http.Request) {
			r.Host = "node-1.internal" // as a collector names it
			r.Header.Set("Authorization", "bearer "+token)
		})
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, text, want)
	}
}

func TestOnlyTheLoopbackNeedsNoToken(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"0.0.0.0", "[::]"} {
		ln, err := net.Listen("tcp", host+":0")
		if err != nil {
			continue // a machine without IPv6
		}
		require.ErrorContains(t, New(Config{}).Serve(ln), "needs a token")
		_, err = net.Dial("tcp", ln.Addr().String())
		require.Error(t, err, "the listener is closed")
	}
	at := serve(t, Config{Token: token}, "0.0.0.0")
	status, _ := ask(t, at+"/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) })
	require.Equal(t, http.StatusOK, status)
}

func TestOtherMethodsAndPathsAreRefused(t *testing.T) {
	t.Parallel()
	at := serve(t, Config{Ready: func(context.Context) error { return errors.New("secret reason") }}, "127.0.0.1")
	status, _ := ask(t, at+"/", nil)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = ask(t, at+"/metrics", func(r *http.Request) { r.Method = http.MethodPost })
	require.Equal(t, http.StatusMethodNotAllowed, status)
	status, text := ask(t, at+"/readyz", nil)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.NotContains(t, text, "secret")
	status, _ = ask(t, at+"/metrics", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 })
	require.Equal(t, http.StatusBadRequest, status)
}
