package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// A caller is given addresses with the scheme of the caller's own connection: the one
// that a trusted proxy names, and that of this connection where the proxy is not
// trusted.
func TestAddressesHaveTheSchemeOfTheCaller(t *testing.T) {
	t.Parallel()
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "")
	require.NoError(t, err)
	for _, trusted := range []bool{true, false} {
		cfg := Config{Dir: storetest.MigratedDir(t)}
		if trusted {
			cfg.Proxies = proxies
		}
		_, ln := serveOn(t, cfg)
		_, port, err := net.SplitHostPort(ln)
		require.NoError(t, err)
		for _, x := range []struct {
			proto string
			https bool
		}{{"https", trusted}, {"http", false}, {"", false}} {
			own := map[bool]string{true: "https://", false: "http://"}[x.https] + "localhost:" + port
			other := map[bool]string{true: "http://", false: "https://"}[x.https] + "localhost:" + port
			for path, want := range map[string]string{
				"GET /.well-known/oauth-authorization-server":   `"issuer":"` + own + `"`,
				"GET /.well-known/oauth-protected-resource/mcp": `"resource":"` + own + `/mcp"`,
				"POST /mcp":                                         `resource_metadata="` + own + "/.well-known/oauth-protected-resource/mcp",
				"POST /api/mcp/developer":                           `resource_metadata="` + own + "/.well-known/oauth-protected-resource/api/mcp/developer",
				"GET /llms.txt":                                     own + "/api/mcp",
				"GET /api/.well-known/ai-tools.json":                `"base_url":"` + own + `"`,
				"GET /.well-known/oauth-protected-resource":         `"authorization_servers":["` + own + `"]`,
				"GET /.well-known/oauth-protected-resource/api/mcp": `"resource":"` + own + `/api/mcp"`,
			} {
				method, at, _ := strings.Cut(path, " ")
				req, err := http.NewRequestWithContext(t.Context(), method, "http://"+ln+at,
					strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_order","arguments":{}}}`))
				require.NoError(t, err)
				req.Host = "localhost:" + port
				req.Header.Set("Content-Type", "application/json")
				if x.proto != "" {
					req.Header.Set("X-Forwarded-For", "192.0.2.1")
					req.Header.Set("X-Forwarded-Proto", x.proto)
				}
				r, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				raw, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				require.NoError(t, r.Body.Close())
				text := r.Header.Get("WWW-Authenticate") + string(raw)
				require.Contains(t, text, want, "%s, X-Forwarded-Proto %q, trusted %t", path, x.proto, trusted)
				require.NotContains(t, text, other, "%s, X-Forwarded-Proto %q, trusted %t", path, x.proto, trusted)
			}
		}
	}
}

// Behind a proxy that speaks the PROXY protocol, what is logged of a refused device
// names the device's own address, over plain MQTT and below TLS.
func TestTheCallerOfMQTTBehindAProxy(t *testing.T) {
	t.Parallel()
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "")
	require.NoError(t, err)
	cert, key, pool := writeCertificate(t, t.TempDir(), 1)
	var log written
	_, ln := serveNodeOn(t, Config{Dir: storetest.MigratedDir(t), TLS: TLSConfig{Cert: cert, Key: key}, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(ln *Listeners) {
		ln.MQTT, ln.MQTTTLS = proxies.Listener(local(t)), proxies.Listener(ln.MQTTTLS)
	})
	connect := []byte("\x10\x1b\x00\x04MQTT\x04\xc2\x00\x1e\x00\x05dev-X\x00\x01X\x00\x03bad")
	connect[1] = byte(len(connect) - 2)
	for i, l := range []net.Listener{ln.MQTT, ln.MQTTTLS} {
		from := fmt.Sprintf("203.0.113.%d", i+5)
		raw, err := net.Dial("tcp4", l.Addr().String())
		require.NoError(t, err)
		defer raw.Close()
		_, err = fmt.Fprintf(raw, "PROXY TCP4 %s 127.0.0.1 4711 8883\r\n", from)
		require.NoError(t, err)
		conn := io.ReadWriter(raw)
		if i == 1 {
			conn = tls.Client(raw, &tls.Config{ServerName: "tms.example", RootCAs: pool, MinVersion: tls.VersionTLS12})
		}
		_, err = conn.Write(connect)
		require.NoError(t, err)
		ring.Await(t, func() bool { return strings.Contains(log.text(), "remote="+from+":4711") }, "the device's own address in the log")
	}
}
