package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

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
