package mqttbroker

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"
)

// pipes is a listener whose connections are in memory.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.over); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// Who speaks HTTP at the address for WebSocket and never logs in is let go within
// the time of a login, whatever is asked.
func TestWebSocketKeepsNoStranger(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"an answer and no more":     "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"no upgrade":                "GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n",
		"a body that does not come": "POST /mqtt HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nab",
		"the same elsewhere":        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\nab",
		"half a head":               "GET / HTTP/1.1\r\n",
		"nothing":                   "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Config{Devices: &link{}, Log: slog.New(slog.DiscardHandler)})
				require.NoError(t, err)
				ln := &pipes{make(chan net.Conn), make(chan struct{})}
				require.NoError(t, b.ServeWebSocket(ln, nil))
				defer func() { require.NoError(t, b.Close()) }()
				ours, theirs := net.Pipe()
				defer ours.Close()
				ln.conns <- theirs
				begun := time.Now()
				go func() { _, _ = io.WriteString(ours, request) }()
				require.NoError(t, ours.SetReadDeadline(begun.Add(time.Hour)))
				_, err = io.Copy(io.Discard, ours)
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(begun), 2*loginWait)
			})
		})
	}
}

// The head of a request has a bound: a long one is still read, one of 20 KiB is refused.
func TestWebSocketBoundsTheHeadOfARequest(t *testing.T) {
	t.Parallel()
	b, err := New(Config{Devices: &link{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	ln := listen(t)
	require.NoError(t, b.ServeWebSocket(ln, nil))
	for size, status := range map[int]int{15 << 10: http.StatusBadRequest, 20 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+ln.Addr().String()+"/mqtt", http.NoBody)
		require.NoError(t, err)
		r.Header.Set("X-Long", strings.Repeat("x", size))
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, a.Body.Close())
		require.Equal(t, status, a.StatusCode, size)
	}
}

// The log of a login has the caller's address and not that of a proxy, when the
// deployment says which one it is.
func TestWebSocketSaysWhoCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var log bytes.Buffer
	b, err := New(Config{Devices: &link{}, Log: slog.New(slog.NewTextHandler(&locked{mu: &mu, w: &log}, nil)), Caller: func(r *http.Request) net.Addr {
		return &net.TCPAddr{IP: net.ParseIP(r.Header.Get("X-Forwarded-For"))}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	ln := listen(t)
	require.NoError(t, b.ServeWebSocket(ln, nil))
	c, _, err := websocket.DefaultDialer.Dial("ws://"+ln.Addr().String()+"/mqtt", http.Header{"X-Forwarded-For": {"203.0.113.5"}})
	require.NoError(t, err)
	defer c.Close()
	var connect bytes.Buffer
	require.NoError(t, connectPacket("CAB-1", "wrong").Write(&connect))
	require.NoError(t, c.WriteMessage(websocket.BinaryMessage, connect.Bytes()))
	_, _, err = c.ReadMessage()
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, log.String(), "203.0.113.5")
	require.NotContains(t, log.String(), "127.0.0.1")
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
