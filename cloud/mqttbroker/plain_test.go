package mqttbroker

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/protocol/topic"
)

// at is a listener that says that it listens elsewhere.
type at struct {
	net.Listener
	addr net.Addr
}

func (a at) Addr() net.Addr { return a.addr }

// "Plain 1883 on loopback only."
func TestPlainListenersAreForTheLoopback(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	open, err := New(Config{Devices: s.link, Plain: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, open.Close()) })
	for _, ip := range []net.IP{net.IPv4(192, 0, 2, 1), net.IPv4zero, net.IPv6unspecified, net.ParseIP("2001:db8::1"), nil} {
		for name, serve := range map[string]func(*Broker, net.Listener) error{
			"MQTT":      func(b *Broker, ln net.Listener) error { return b.Serve(ln, nil) },
			"WebSocket": func(b *Broker, ln net.Listener) error { return b.ServeWebSocket(ln, nil) },
		} {
			ln := at{listen(t), &net.TCPAddr{IP: ip, Port: 1883}}
			require.ErrorContains(t, serve(s.Broker, ln), "mqtt.plain", "%s at %s", name, ip)
			_, err := ln.Accept()
			require.ErrorIs(t, err, net.ErrClosed, "a refused listener is closed")
			require.NoError(t, serve(open, at{listen(t), &net.TCPAddr{IP: ip, Port: 1883}}), "allowed explicitly")
		}
		require.NoError(t, s.Serve(at{listen(t), &net.TCPAddr{IP: ip, Port: 8883}}, &tls.Config{MinVersion: tls.VersionTLS12}), "with TLS")
	}
	for _, ip := range []net.IP{net.IPv4(127, 0, 0, 9), net.IPv6loopback} {
		require.NoError(t, s.Serve(at{listen(t), &net.TCPAddr{IP: ip, Port: 1883}}, nil))
	}
	require.NoError(t, s.Serve(at{listen(t), &net.UnixAddr{Name: "x"}}, nil), "a socket of this machine")
}

func TestWebSocketWithTLS(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	ca := newAuthority(t)
	ln := listen(t)
	require.NoError(t, s.ServeWebSocket(ln, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{ca.issue(t, "server")},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: ca.pool}))
	try := func(scheme, code, secret string, cert ...tls.Certificate) error {
		o := s.options(code, secret)
		o.Servers = nil
		o.AddBroker(scheme + "://" + ln.Addr().String() + "/mqtt").SetTLSConfig(&tls.Config{RootCAs: ca.pool, Certificates: cert})
		c := paho.NewClient(o)
		err := done(t, c.Connect())
		if err == nil {
			err = done(t, c.Publish(topic.Device("tms", code, topic.Up), 1, false, strings.Repeat("x", 100<<10)))
			c.Disconnect(0)
		}
		return err
	}
	require.NoError(t, try("wss", "CAB-1", "one"))
	require.NoError(t, try("wss", "CAB-1", "", ca.issue(t, "CAB-1")), "a certificate instead of a secret")
	require.Error(t, try("wss", "CAB-2", "", ca.issue(t, "CAB-1")))
	require.Error(t, try("wss", "CAB-1", "wrong"))
	require.Error(t, try("ws", "CAB-1", "one"), "without TLS")
}
