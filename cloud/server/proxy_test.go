package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/fetch/fetchtest"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// With an outgoing proxy all that outsiders name is reached through it and
// nothing directly: deliveries, tests by hand, pushes. When it fails, that is
// said where people look, and what waits goes out when it is well again.
func TestAnOutgoingProxy(t *testing.T) {
	t.Parallel()
	const login = "postern:hunter2"
	// To the proxy the receiver has two addresses.
	there := &fetchtest.Proxy{Login: login, Dial: func(to string) (net.Conn, error) {
		return net.Dial("tcp", strings.Replace(to, "127.0.0.2", "127.0.0.1", 1))
	}}
	var log written
	w := newHookWorld(t, "", func(c *Config) {
		c.WebhookProxy, c.WebhookProxyLogin = "http://"+there.Listen(t), login
		c.PushURL, c.PushSecret = fmt.Sprintf("http://127.0.0.3:%d/push", c.WebhookPorts[0]), "a-secret-of-24-bytes-at-least"
		c.WebhookDial = func(context.Context, netip.AddrPort) (net.Conn, error) {
			t.Error("a direct connection")
			return nil, errors.New("none is allowed")
		}
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	target := strings.TrimPrefix(w.hook.URL, "http://")
	admin := w.box.Admin.Token
	good := func(method, path string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, admin, body)
		require.Equal(t, 200, status, "%v", out)
		return out
	}
	test := func() map[string]any {
		t.Helper()
		return good("POST", "/api/v1/webhook-settings/test", map[string]any{"url": w.hook.URL + "/x", "secret": hookSecret})
	}
	require.Equal(t, true, test()["delivered"])
	require.Equal(t, []string{target}, there.Asked())

	// What is forbidden the proxy is not asked for.
	status, out := w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": "http://169.254.169.254/", "secret": hookSecret})
	require.Equal(t, []any{422, "BLOCKED_URL"}, []any{status, out["error_code"]})
	require.Len(t, there.Asked(), 1)

	_, err := provider(w.s).Send(t.Context(), cloud.Push{ID: "psh_1"}, nil)
	require.ErrorContains(t, err, "PROXY", "it cannot connect to there")
	require.Equal(t, strings.Replace(target, "127.0.0.1", "127.0.0.3", 1), there.Asked()[1])

	// It fails: what is under way over a kept connection is not concerned, the rest waits.
	there.Instead(fetchtest.Say("HTTP/1.1 407 " + login + "\r\nProxy-Authenticate: Basic\r\n\r\n"))
	good("PUT", "/api/v1/webhook-settings", map[string]any{"webhook_sign_secret": hookSecret, "order_create_webhook_url": strings.Replace(w.hook.URL, "127.0.0.1", "127.0.0.2", 1) + "/again"})
	status, out = w.call("POST", "/api/v1/client/orderCreate", admin, map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 1}}, "recipient": map[string]any{"name": "Ada Moreau", "phone": "+14165550123",
		"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}})
	require.Less(t, status, 300, "%v", out)
	var row map[string]any
	ring.Await(t, func() bool {
		logs, _ := good("GET", "/api/v1/webhook-delivery-logs?event=order.created", nil)["logs"].([]any)
		for _, l := range logs {
			row = l.(map[string]any)
			if row["status"] == "retrying" && row["is_test"] != true {
				return true
			}
		}
		return false
	}, "%v", row)
	require.Equal(t, []any{"proxy", 0.0, nil}, []any{row["error"], row["attempt"], row["http_status"]})
	require.Contains(t, log.text(), "webhook.proxy_secret_file")
	for _, word := range []string{"hookreason.proxy", "hookwait.proxy"} { // as pages say it
		require.Contains(t, locale.Word("de", word), "Proxy")
	}

	require.NotContains(t, log.text(), "hunter2")
	require.NotContains(t, log.text(), "cG9zdGVybjpodW50ZXIy")
	var metrics bytes.Buffer
	families, err := w.s.Metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		metrics.WriteString(f.String())
	}
	require.Contains(t, metrics.String(), "webhook_proxy_faults_total")
	require.NotContains(t, metrics.String(), "hunter2")
}

func TestAProxyThatIsNone(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Config{Dir: storetest.MigratedDir(t), WebhookProxy: "http://me:hunter2@proxy:3128"})
	require.ErrorContains(t, err, "outgoing proxy")
	require.NotContains(t, err.Error(), "hunter2")
}
