package fetch

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/stretchr/testify/require"
)

// A document comes whole through the guard; nothing is followed, nothing large
// is read, and errors tell of their kind only.
func TestFetch(t *testing.T) {
	t.Parallel()
	n := fetchtest.NewNetwork()
	cert, pool := fetchtest.Certificate(t, "a.example.com", time.Now().Add(time.Hour))
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
			req, err := http.ReadRequest(bufio.NewReader(tc))
			if err != nil {
				return
			}
			_, _ = io.WriteString(tc, strings.ReplaceAll(text, "PATH", req.URL.RequestURI()))
		}
	}
	n.Names["inside.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	f := NewFetcher(Config{Guard: NewGuard(GuardConfig{}), TLS: &tls.Config{RootCAs: pool}, Resolver: n, Dial: n.Dial})
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, x := range []struct {
		answer string
		status int
		body   string
		err    string
	}{
		{ok + "Content-Length: 8\r\n\r\n{\"p\":1}\n", 200, "{\"p\":1}\n", ""},
		{ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 200, "ab", ""},
		{ok + "\r\nuntil the end", 200, "until the end", ""},
		{ok + "Content-Length: 4\r\n\r\nPATH", 200, "/c/x", ""},
		{"HTTP/1.1 302 Found\r\nLocation: https://b.example.com/\r\nContent-Length: 0\r\n\r\n", 302, "", ""},
		{ok + "Content-Length: 20000\r\n\r\n" + strings.Repeat("x", 20000), 0, "", "too large"},
		{ok + "X: " + strings.Repeat("x", readLimit) + "\r\n\r\n", 0, "", "CONNECT"},
		{ok + "Content-Length: 9\r\n\r\nshort", 0, "", "CONNECT"},
		{"nonsense\r\n\r\n", 0, "", "CONNECT"},
	} {
		n.Serve[fetchtest.AddrA] = say(x.answer)
		d, err := f.Fetch(t.Context(), "https://a.example.com/c/x")
		if x.err != "" {
			require.ErrorContains(t, err, x.err)
			continue
		}
		require.NoError(t, err, x.answer)
		require.Equal(t, x.status, d.Status)
		require.Equal(t, x.body, string(d.Body))
	}
	for url, want := range map[string]string{"https://inside.example.com/": ErrBlocked.Error(), "https://127.0.0.1/": ErrBlocked.Error(), "http://a.example.com/": "https",
		"https://none.example.com/": "DNS", "https://b.example.com/": "CONNECT"} {
		dials := len(n.Dials)
		_, err := f.Fetch(t.Context(), url)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "10.0.0.1")
		if want != "CONNECT" {
			require.Len(t, n.Dials, dials, "nothing was connected to")
		}
	}
	n.Handlers.Wait()
}

// Who trickles is waited for no longer than for anybody.
func TestFetchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := fetchtest.NewNetwork()
		cert, pool := fetchtest.Certificate(t, "a.example.com", time.Now().Add(time.Hour))
		n.Serve[fetchtest.AddrA] = func(c net.Conn) {
			tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
			if _, err := http.ReadRequest(bufio.NewReader(tc)); err != nil {
				return
			}
			for {
				if _, err := io.WriteString(tc, "H"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}
		f := NewFetcher(Config{Guard: NewGuard(GuardConfig{}), TLS: &tls.Config{RootCAs: pool}, Resolver: n, Dial: n.Dial})
		start := time.Now()
		_, err := f.Fetch(t.Context(), "https://a.example.com/")
		require.Error(t, err)
		require.Equal(t, connectTimeout, time.Since(start))
		n.Handlers.Wait()
	})
}

// A post has its body and headers, and goes nowhere that a webhook would not.
func TestPost(t *testing.T) {
	t.Parallel()
	n := fetchtest.NewNetwork()
	cert, pool := fetchtest.Certificate(t, "a.example.com", time.Now().Add(time.Hour))
	got := make(chan string, 1)
	n.Serve[fetchtest.AddrA] = func(c net.Conn) {
		tc := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		req, err := http.ReadRequest(bufio.NewReader(tc))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		got <- req.Method + " " + req.RequestURI + " " + req.Header.Get("webhook-id") + " " + string(body)
		_, _ = io.WriteString(tc, "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")
	}
	n.Names["inside.example.com"] = []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	f := NewFetcher(Config{Guard: NewGuard(GuardConfig{}), TLS: &tls.Config{RootCAs: pool}, Resolver: n, Dial: n.Dial})
	d, err := f.Post(t.Context(), "https://a.example.com/send?x=1", [][2]string{{"webhook-id", "psh_1"}}, []byte(`{"title":"é"}`))
	require.NoError(t, err)
	require.Equal(t, 202, d.Status)
	require.Equal(t, "{}", string(d.Body))
	require.Equal(t, `POST /send?x=1 psh_1 {"title":"é"}`, <-got)
	_, err = f.Post(t.Context(), "https://inside.example.com/", nil, []byte("x"))
	require.ErrorIs(t, err, ErrBlocked)
}
