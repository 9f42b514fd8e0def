package rest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// Whoever sends far too much first and reads then is told so, and is not just cut
// off.
func TestWhoSendsTooMuchIsTold(t *testing.T) {
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
