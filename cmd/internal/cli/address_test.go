package cli

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoopback(t *testing.T) {
	for address, is := range map[string]bool{
		"127.0.0.1:80": true, "localhost:0": true, "[::1]:1883": true, "127.9.9.9:1": true,
		"127.0.0.1": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1:80": false, "example.com:80": false, "": false,
	} {
		require.Equal(t, is, IsLoopback(address), address)
	}
	require.True(t, AreLoopback([]string{"tcp://127.0.0.1:1883", "ws://localhost/mqtt", "wss://[::1]:8443/mqtt"}))
	for _, list := range [][]string{nil, {"tcp://127.0.0.1:1883", "tls://cloud.example:8883"}, {"::"}, {"127.0.0.1:1883"}} {
		require.False(t, AreLoopback(list), "%v", list)
	}
}

func TestAnAddressInUse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = net.Listen("tcp", ln.Addr().String())
	require.ErrorContains(t, InUse(err, "--page"), "end the program that has it, or set --page to another address")
	_, err = net.Listen("tcp", "127.0.0.1:99999999")
	require.Equal(t, err, InUse(err, "--page"))
	require.NoError(t, InUse(nil, "--page"))
}
