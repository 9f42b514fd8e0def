package rest

import (
	"bufio"
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/webtest"
)

// A proxy in front that is not named in the settings is logged once, without what its
// header says.
func TestAForwardedRequestOfAnUnknownProxyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := webtest.New(t)
	cfg := rigOn(t, w, nil).s.cfg
	cfg.Log = slog.New(slog.NewJSONHandler(&log, nil))
	s := New(cfg)
	defer s.stop()
	ask := func(from, header string) {
		t.Helper()
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		text := "GET /healthz HTTP/1.1\r\nHost: x\r\n"
		if header != "" {
			text += header + ": 203.0.113.9;secret\r\n"
		}
		require.NoError(t, req.Read(bufio.NewReader(strings.NewReader(text+"\r\n"))))
		ctx.Init(&req, &net.TCPAddr{IP: net.ParseIP(from), Port: 4711}, nil)
		s.entered(func(*fasthttp.RequestCtx) {})(&ctx)
	}
	ask("127.0.0.1", "")
	ask("203.0.113.5", "X-Forwarded-For")
	require.NotContains(t, log.String(), "proxies.trusted")
	for range 3 {
		ask("10.0.0.7", "X-Forwarded-For")
		ask("127.0.0.1", "Forwarded")
	}
	require.Equal(t, 1, strings.Count(log.String(), "name it in proxies.trusted"))
	require.Contains(t, log.String(), `"proxy":"10.0.0.7"`)
	require.NotContains(t, log.String(), "203.0.113.9")
	require.NotContains(t, log.String(), "secret")
}
