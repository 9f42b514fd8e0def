package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
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

// TestZoo posts to receivers that misbehave. Every attempt ends in time with the
// class that fits.
func TestZoo(t *testing.T) {
	t.Parallel()
	say := func(text string) func(net.Conn) {
		return func(c net.Conn) {
			if fetchtest.ReadPost(c) {
				_, _ = io.WriteString(c, text)
			}
		}
	}
	for name, z := range map[string]struct {
		serve  func(net.Conn)
		body   int
		code   string
		status int
		after  time.Duration // the attempt lasts this long
	}{
		"hangs":           {serve: func(c net.Conn) { fetchtest.ReadPost(c); time.Sleep(time.Minute) }, code: CodeTimeout, after: Timeout},
		"accepts only":    {serve: func(net.Conn) { time.Sleep(time.Minute) }, code: CodeTimeout, after: Timeout},
		"closes":          {serve: func(c net.Conn) { fetchtest.ReadPost(c) }, code: CodeConnect},
		"garbage":         {serve: say("SSH-2.0-OpenSSH\r\n\r\n"), code: CodeConnect},
		"trickles a head": {serve: trickle("HTTP/1.1 200 OK\r\nX: 123456789\r\n\r\n"), code: CodeTimeout, after: Timeout},
		"trickles a body": {serve: trickleAfter("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"), status: 200, after: Timeout},
		"204":             {serve: say("HTTP/1.1 204 No Content\r\n\r\n"), status: 204},
		"204 with a body": {serve: say("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), status: 204},
		"100 first":       {serve: say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), status: 200},
		"no length":       {serve: say("HTTP/1.1 200 OK\r\n\r\nhello"), status: 200},
		"short body":      {serve: say("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"), status: 200},
		"long body":       {serve: say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello"), status: 200},
		"bad chunks":      {serve: say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello"), status: 200},
		"good chunks":     {serve: say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), status: 200},
		"error with body": {serve: say("HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno"), code: CodeStatus, status: 500},
		"endless head":    {serve: func(c net.Conn) { fetchtest.ReadPost(c); endless(c, "HTTP/1.1 200 OK\r\n", "X: y\r\n") }, code: CodeConnect},
		"100 MB answer": {serve: func(c net.Conn) {
			fetchtest.ReadPost(c)
			endless(c, "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n", "xxxxxxxx")
		}, status: 200},
		"answers unread":   {serve: func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n") }, body: 200 << 10, code: CodeStatus, status: 413},
		"nobody":           {code: CodeConnect},
		"NUL and bad UTF8": {serve: say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na\x00\xff\xfe"), status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := fetchtest.NewNetwork()
				if z.serve != nil {
					n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = z.serve
				}
				c, target := testClient(t, n, nil, "http://a.example.com/")
				begin := time.Now()
				a := c.Post(t.Context(), target, []byte(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: %d\r\n\r\n", z.body)), make([]byte, z.body))
				require.Equal(t, z.code, a.Code, a.Reason)
				require.Equal(t, z.status, a.Status)
				require.InDelta(t, z.after.Seconds(), time.Since(begin).Seconds(), 0.1)
				require.LessOrEqual(t, len(a.Body), keepLimit)
				require.NotContains(t, a.Body, "\x00")
				c.Sweep(true)
				n.Handlers.Wait()
			})
		})
	}
}

func testClient(t *testing.T, n *fetchtest.Network, cfg *tls.Config, url string) (*Client, *Target) {
	g := NewGuard(GuardConfig{HTTP: true})
	target, err := g.CheckURL(url)
	require.NoError(t, err)
	return &Client{guard: g, tls: cfg, dial: n.Dial, idle: map[connKey][]*conn{}, names: names{resolver: n, known: map[string]resolved{}}}, target
}

func trickle(text string) func(net.Conn) { return trickleAfter("", text) }

// trickleAfter sends the first text at once and then one byte a second.
func trickleAfter(first string, rest ...string) func(net.Conn) {
	return func(c net.Conn) {
		if !fetchtest.ReadPost(c) {
			return
		}
		_, _ = io.WriteString(c, first)
		for _, b := range []byte(strings.Join(rest, "") + strings.Repeat("x", 100)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}
}

func endless(c net.Conn, first, more string) {
	_, err := io.WriteString(c, first)
	block := strings.Repeat(more, 1000)
	for i := 0; err == nil && i < 20_000; i++ {
		_, err = io.WriteString(c, block)
	}
}

const emptyPost = "POST / HTTP/1.1\r\nHost: a.example.com\r\nContent-Length: 0\r\n\r\n"

func TestTLS(t *testing.T) {
	t.Parallel()
	for name, z := range map[string]struct {
		host string
		left time.Duration
		code string
	}{
		"good":         {"a.example.com", time.Hour, ""},
		"another name": {"c.example.com", time.Hour, CodeTLS},
		"expired":      {"a.example.com", -time.Hour, CodeTLS},
		"plain HTTP":   {"", 0, CodeTLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert, pool := fetchtest.Certificate(t, z.host, time.Now().Add(z.left))
			// Over TCP: a pipe has no room for the alert that ends a handshake.
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			srv := &http.Server{Handler: &fetchtest.Receiver{}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
			go func() {
				if z.host == "" {
					_ = srv.Serve(l)
				} else {
					_ = srv.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}))
				}
			}()
			defer srv.Close()
			c, target := testClient(t, fetchtest.NewNetwork(), &tls.Config{RootCAs: pool}, "https://a.example.com/")
			c.dial = func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
				require.Equal(t, fetchtest.AddrA, addr)
				var d net.Dialer
				return d.DialContext(ctx, "tcp", l.Addr().String())
			}
			a := c.Post(t.Context(), target, []byte(emptyPost), nil)
			require.Equal(t, z.code, a.Code, a.Reason)
			c.Sweep(true)
		})
	}
}

// A receiver that closes idle connections early does not look like a failure:
// the request is repeated once on a new connection.
func TestIdleConnectionClosedByReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := fetchtest.NewNetwork()
		posts := 0
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = func(c net.Conn) {
			if fetchtest.ReadPost(c) {
				posts++
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				time.Sleep(time.Second) // and closes
			}
		}
		c, target := testClient(t, n, nil, "http://a.example.com/")
		a := c.Post(t.Context(), target, []byte(emptyPost), nil)
		require.Equal(t, "", a.Code)
		require.False(t, a.Reused)
		time.Sleep(2 * time.Second)
		a = c.Post(t.Context(), target, []byte(emptyPost), nil)
		require.Equal(t, "", a.Code, a.Reason)
		require.True(t, a.Repeated)
		require.Len(t, n.Dials, 2)
		require.Equal(t, 2, posts)
		c.Sweep(true)
		n.Handlers.Wait()
	})
}

func TestConnectionsAreReusedAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, r := fetchtest.NewNetwork(), &fetchtest.Receiver{}
		n.Serve[netip.AddrPortFrom(fetchtest.AddrA.Addr(), 80)] = r.Handle
		c, target := testClient(t, n, nil, "http://a.example.com/")
		post := func() Answer { return c.Post(t.Context(), target, []byte(emptyPost), nil) }
		post()
		for range 25 { // kept while it is used …
			time.Sleep(idleLife - time.Second)
			post()
		}
		require.Len(t, n.Dials, 2, "… but not beyond its life of five minutes")
		time.Sleep(idleLife + time.Second)
		require.False(t, post().Reused)
		require.Len(t, n.Dials, 3)
		c.Sweep(true)
		n.Handlers.Wait()
	})
}
