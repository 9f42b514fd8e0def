package uplink

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/edge/buffer"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// selfSigned is a certificate for 127.0.0.1 and a pool that trusts it.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	tmpl := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &tmpl, &tmpl, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// allow lets everyone in.
type allow struct{ mochi.HookBase }

func (*allow) ID() string                                               { return "allow" }
func (*allow) Provides(b byte) bool                                     { return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck }
func (*allow) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }
func (*allow) OnACLCheck(*mochi.Client, string, bool) bool              { return true }

// With a real broker, over every kind of address: what is committed arrives and
// is acknowledged, and commands come down.
func TestRealBrokerOverEveryKindOfAddress(t *testing.T) {
	t.Parallel()
	cert, pool := selfSigned(t)
	server := &tls.Config{Certificates: []tls.Certificate{cert}}
	for _, scheme := range []string{"tcp", "ssl", "ws", "wss"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			conf := listeners.Config{ID: "l", Address: "127.0.0.1:0"}
			if scheme == "ssl" || scheme == "wss" {
				conf.TLSConfig = server.Clone()
			}
			var l listeners.Listener = listeners.NewTCP(conf)
			if scheme == "ws" || scheme == "wss" {
				probe, err := net.Listen("tcp", conf.Address) // the listener does not say its port
				require.NoError(t, err)
				conf.Address = probe.Addr().String()
				require.NoError(t, probe.Close())
				l = listeners.NewWebsocket(conf)
			}
			b := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
			require.NoError(t, b.AddHook(new(allow), nil))
			require.NoError(t, b.AddListener(l))
			require.NoError(t, b.Serve())
			defer b.Close()

			r := &rig{t: t, c: newCloud(t)}
			r.cfg = buffer.Config{Path: filepath.Join(t.TempDir(), "s"), MaxBytes: 16 << 20, Stamp: r.stamp, NoSync: true}
			r.open()
			send := func(typ wire.DownType, body []byte) {
				require.NoError(t, b.Publish("tms/device/CAB-1/down", wire.EncodeDown(typ, body), false, 1))
			}
			require.NoError(t, b.Subscribe("tms/device/CAB-1/up", 1, func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
				batch, err := wire.DecodeBatch(p.Payload)
				if err != nil {
					t.Error(err)
					return
				}
				r.c.mu.Lock()
				a := r.c.store(batch)
				r.c.mu.Unlock()
				go send(wire.DownAck, wire.MustEncode(a))
			}))
			u, err := New(Config{DeviceCode: "CAB-1", Brokers: []string{scheme + "://" + l.Address() + "/mqtt"}, Store: r.s,
				TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, Status: r.status, Sample: r.sample, Handler: r})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- u.Run(ctx) }()
			r.add(wire.KindOpeningStarted, "o", 1, 300, 900)
			ring.Await(t, func() bool { return r.s.Backlog()[0] == 0 })
			require.Equal(t, names("o", 1, 300), r.c.bodies(0))
			send(wire.DownCommand, wire.MustEncode("open"))
			ring.Await(t, func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.got) == 1
			})
			cancel()
			require.NoError(t, <-done)
		})
	}
}

func TestPlainConnectionsLeaveTheLoopbackNever(t *testing.T) {
	t.Parallel()
	u, err := New(Config{DeviceCode: "CAB-1", Brokers: []string{"tcp://192.0.2.1:1883", "ws://192.0.2.1:80/mqtt"}, Store: (*buffer.Store)(nil),
		Status: func() wire.Status { return wire.Status{} }, Sample: func() wire.Sample { return wire.Sample{} }, Handler: &rig{}})
	require.NoError(t, err)
	for _, b := range u.brokers {
		_, err := u.dial(t.Context(), b.url)
		require.ErrorContains(t, err, "only the loopback is allowed")
	}
	for _, bad := range []Config{{DeviceCode: "a b"}, {DeviceCode: "ok"}, {DeviceCode: "ok", Brokers: []string{"gopher://x:1"}}} {
		_, err := New(bad)
		require.Error(t, err)
	}
}
