package rest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/webtest"
	"github.com/postern-io/postern/internal/ring"
)

// A client that sends far too much first and reads then gets an answer that says so,
// and is not just cut off.
func TestASenderOfTooMuchGetsAnAnswer(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := New(rigOn(t, w, nil).s.cfg)
	done := make(chan error, 1)
	go func() { done <- served.Serve(ln) }()
	t.Cleanup(func() { require.NoError(t, served.Shutdown(context.Background())); require.NoError(t, <-done) })
	part := bytes.Repeat([]byte("x"), 1<<20)
	for name, framing := range map[string]string{"length": fmt.Sprintf("Content-Length: %d\r\n\r\n", 40<<20), "chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", 40<<20)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, err = fmt.Fprintf(conn, "POST /api/v1/order-chat/attachments HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: multipart/form-data; boundary=x\r\n%s", w.Tokens[cloud.ClientAdmin], framing)
			require.NoError(t, err)
			for range 40 {
				_, err = conn.Write(part)
				require.NoError(t, err)
			}
			var resp fasthttp.Response
			require.NoError(t, resp.Read(bufio.NewReader(conn)))
			require.Equal(t, 413, resp.StatusCode())
			require.Contains(t, string(resp.Body()), "PAYLOAD_TOO_LARGE")
		})
	}
}

// One address has so many connections and no more; when one ends, another gets in.
func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	cfg := rigOn(t, webtest.New(t), nil).s.cfg
	served := New(cfg)
	require.True(t, cfg.Proxies.SpeakForMany(netip.MustParseAddr("127.0.0.1")), "this machine is not counted")
	served.crowd = limit.NewCrowd(limit.Connections{Address: 2}, nil)
	done := make(chan error, 1)
	go func() { done <- served.Serve(ln) }()
	t.Cleanup(func() { require.NoError(t, served.Shutdown(context.Background())); require.NoError(t, <-done) })
	ask := func(conn net.Conn) int {
		_, err := fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if err != nil {
			return 0
		}
		var resp fasthttp.Response
		if resp.Read(bufio.NewReader(conn)) != nil {
			return 0
		}
		return resp.StatusCode()
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first, second := dial(), dial()
	require.Equal(t, []int{200, 200}, []int{ask(first), ask(second)})
	require.Zero(t, ask(dial()), "one too many")
	require.Equal(t, 200, ask(first), "the others stay")
	require.NoError(t, second.Close())
	ring.Await(t, func() bool { return ask(dial()) == 200 })
}
