package server

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// elsewhere is a listener that says that it listens on every interface.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 1883} }

func TestServerDoesNotStartWithPlainMQTTBeyondTheLoopback(t *testing.T) {
	t.Parallel()
	try := func(cfg Config, put func(*Listeners, net.Listener)) error {
		cfg.Dir = t.TempDir()
		s, err := New(t.Context(), cfg)
		require.NoError(t, err)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		var all Listeners
		put(&all, elsewhere{ln})
		return s.Run(t.Context(), all)
	}
	require.ErrorContains(t, try(Config{}, func(l *Listeners, ln net.Listener) { l.MQTT = ln }), "mqtt.plain")
	require.ErrorContains(t, try(Config{}, func(l *Listeners, ln net.Listener) { l.WebSocket = ln }), "mqtt.plain")
	require.ErrorContains(t, try(Config{}, func(l *Listeners, ln net.Listener) { l.MQTTTLS = ln }), "no certificate")
	require.ErrorContains(t, try(Config{MQTTPlain: true}, func(l *Listeners, ln net.Listener) { l.MQTT, l.WebSocketTLS = ln, ln }), "no certificate",
		"what is plain was allowed")
}
