package loopback

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a Host header says is this machine only when a link cannot hide another host
// in it.
func TestHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:8080": true, "127.0.0.1": true, "127.8.0.1:80": true, "[::1]": true, "[::1]:8080": true, "::1": true,
		"": false, "localhost.": false, "evil.example": false, "localhost:@evil.example": false, "localhost@evil.example": false, "::1%@evil.example": false, "[::1%@evil.example]:80": false,
		"]127.0.0.1[": false, "127.0.0.1:99999": false, "127.0.0.1:": false, "localhost:80/x": false, "203.0.113.5": false,
	} {
		require.Equal(t, want, IsHost(host), host)
	}
}
