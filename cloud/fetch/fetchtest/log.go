package fetchtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Login is the login of proxies that ask for one.
const Login = "postern:hunter2-ünd:more"

// ProxyBefore puts a proxy before the network in memory, at
// proxy.internal:3128 of dial. The proxy finds an address that it is asked for at the
// addresses of names; the network's own dial is then for direct connections,
// which there must be none of.
func ProxyBefore(t *testing.T, n *Network, login string) (there *Proxy, dial func(context.Context, string) (net.Conn, error)) {
	there = &Proxy{Login: login, Dial: func(to string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(to)
		if err != nil {
			return nil, err
		}
		addrs, err := n.LookupNetIP(t.Context(), "ip", host)
		if err != nil {
			return nil, err
		}
		n.Mu.Lock()
		serve := n.Serve[netip.MustParseAddrPort(net.JoinHostPort(addrs[0].String(), port))]
		n.Mu.Unlock()
		if serve == nil {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		n.Handlers.Go(func() { defer there.Close(); serve(there) })
		return here, nil
	}}
	return there, func(_ context.Context, addr string) (net.Conn, error) {
		require.Equal(t, "proxy.internal:3128", addr)
		here, c := net.Pipe()
		n.Handlers.Go(func() { there.Handle(c) })
		return here, nil
	}
}

// Log is a log that tests read.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds a line.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns the lines so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Logger returns a logger of all levels.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// RequireNoLogin requires that a text shows nothing of the login.
func RequireNoLogin(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "hunter2")
	require.NotContains(t, text, base64.StdEncoding.EncodeToString([]byte(Login)))
	require.NotContains(t, text, "Proxy-Authorization")
}
