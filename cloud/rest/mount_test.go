package rest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// Another face answers all of its address, also what is too long to be read.
func TestMounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *options) {
		o.Mounts = []Mount{{
			Path: "/tools/{name}", MaxBody: 3 << 20,
			Handle: func(ctx *fasthttp.RequestCtx) {
				if ctx.UserValue("name") == "broken" {
					panic("broken")
				}
				ctx.SetBodyString(string(ctx.Method()) + " " + RequestID(ctx))
			},
			TooLarge: func(ctx *fasthttp.RequestCtx) {
				ctx.SetStatusCode(413)
				ctx.SetBodyString("ours")
			},
		}}
	})
	for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
		g := r.do(method, "/tools/a", "", "", "X-Request-Id", "request-1")
		require.Equal(t, 200, g.status)
		require.Equal(t, method+" request-1", string(g.body))
		require.Equal(t, "request-1", g.header("X-Request-Id"))
	}
	require.Equal(t, 200, r.do("POST", "/tools/a", "", strings.Repeat("x", 3<<20)).status)
	status, body := r.raw("POST /tools/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3145729\r\n\r\n{")
	require.Equal(t, 413, status)
	require.Equal(t, "ours", body)
	r.refused(r.do("POST", "/tools/broken", "", ""), 500, "INTERNAL_ERROR")
}

// Only files of callers whose cookie holds a good token may be long: a body is in
// memory before its face looks at it.
func TestMountedUploads(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *options) {
		o.Mounts = []Mount{{Path: "/chat/{id}", MaxBody: 3 << 20, Upload: "session", Handle: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("ours") }}}
	})
	long := strings.Repeat("x", 3<<20)
	require.Equal(t, 200, r.do("POST", "/chat/1", "", long, "Cookie", "session="+r.provider()).status)
	for cookie, code := range map[string]int{"session=" + strings.Repeat("x", 64): 401, "session=": 413, "other=" + r.provider(): 413} {
		status, _ := r.raw("POST /chat/1 HTTP/1.1\r\nHost: x\r\nCookie: " + cookie + "\r\nContent-Length: 3145728\r\n\r\n{")
		require.Equal(t, code, status, cookie)
	}
}
