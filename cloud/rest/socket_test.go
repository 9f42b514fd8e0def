package rest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// What goes wrong before an operation is reached, byte by byte over a socket:
// each has the body of all errors, and where the request's end was known the
// connection goes on.
func TestFailuresOverASocket(t *testing.T) {
	t.Parallel()
	w := webtest.New(t)
	s := rigOn(t, w, nil).s
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := New(s.cfg)
	done := make(chan error, 1)
	go func() { done <- served.Serve(ln) }()
	t.Cleanup(func() { require.NoError(t, served.Shutdown(context.Background())); require.NoError(t, <-done) })

	login := "POST /api/v1/client/orderCreate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Tokens[cloud.ClientAdmin] + "\r\n"
	with := func(kind, body string) string {
		return login + fmt.Sprintf("Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s", kind, len(body), body)
	}
	for name, c := range map[string]struct {
		request string
		status  int
		code    string
		ends    bool // the connection
	}{
		"body over the limit":    {login + "Content-Type: application/json\r\nContent-Length: 2097153\r\n\r\n{", 413, "PAYLOAD_TOO_LARGE", true},
		"chunks over the limit":  {login + "Transfer-Encoding: chunked\r\n\r\n200001\r\n" + strings.Repeat("x", maxBody+1) + "\r\n0\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", true},
		"a form":                 {with("application/x-www-form-urlencoded", "a=b"), 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"a file":                 {with("multipart/form-data; boundary=x", "--x\r\n\r\na\r\n--x--\r\n"), 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"XML":                    {with("text/xml", "<a/>"), 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"compressed":             {login + "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"half of JSON":           {with("application/json", `{"type":`), 400, "MALFORMED_JSON", false},
		"JSON of another kind":   {with("application/json", `[]`), 400, "MALFORMED_JSON", false},
		"JSON twice":             {with("application/json", `{}{}`), 400, "MALFORMED_JSON", false},
		"not UTF-8":              {with("application/json", "{\"order_ref\":\"\xff\"}"), 400, "MALFORMED_JSON", false},
		"no address of ours":     {"GET /api/v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n", 404, "NOT_FOUND", false},
		"no method of ours":      {"BREW /api/v1/orders HTTP/1.1\r\nHost: x\r\n\r\n", 405, "METHOD_NOT_ALLOWED", false},
		"another method":         {"PUT /api/v1/client/orderCreate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, "METHOD_NOT_ALLOWED", false},
		"header over the limit":  {"GET /api/v1/user/me HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", maxHeader) + "\r\n\r\n", 400, "BAD_REQUEST", true},
		"no request":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "BAD_REQUEST", true},
		"a key that is none":     {login + "Idempotency-Key: " + strings.Repeat("k", 129) + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 422, "VALIDATION_FAILED", false},
		"an address cut short":   {"GET /api/v1/orders/%zz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Tokens[cloud.ClientAdmin] + "\r\n\r\n", 400, "BAD_REQUEST", false},
		"an id that is a number": {"GET /api/v1/orders/1e3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + w.Tokens[cloud.ClientAdmin] + "\r\n\r\n", 404, "ORDER_NOT_FOUND", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", ln.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			sent := make(chan struct{})
			go func() { _, _ = io.WriteString(conn, c.request); close(sent) }() // the server may hang up half-way
			in := bufio.NewReader(conn)
			var resp fasthttp.Response
			require.NoError(t, resp.Read(in))
			require.Equal(t, c.status, resp.StatusCode(), "%s", resp.Body())
			var body errorBody
			require.NoError(t, json.Unmarshal(resp.Body(), &body), "%s", resp.Body())
			require.Equal(t, c.code, body.ErrorCode)
			require.Equal(t, c.code, body.Code)
			require.False(t, body.Result)
			require.NotEmpty(t, body.Message)
			require.Equal(t, string(resp.Header.Peek("X-Request-Id")), body.RequestID)
			if c.ends {
				return
			}
			<-sent
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
			require.NoError(t, err)
			require.NoError(t, resp.Read(in))
			require.Equal(t, 200, resp.StatusCode(), "the connection goes on")
		})
	}
}
