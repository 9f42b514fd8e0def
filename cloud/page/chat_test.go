package page_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/page"
)

// An address that would say more in the pages' policy than where they listen is
// refused.
func TestPagesListenAtAnAddressOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "wss://tms.example/mqtt", "ws://127.0.0.1:8083/mqtt", "wss://[::1]:8083/mqtt"} {
		_, err := page.New(page.Config{LiveURL: address})
		require.NoError(t, err, address)
	}
	for _, address := range []string{"https://tms.example/mqtt", "tms.example", "wss://", "wss://user@tms.example/mqtt", "wss://tms.example/mqtt; script-src *", "wss://tms.example/ *", "wss://a,b/'unsafe-inline'"} {
		_, err := page.New(page.Config{LiveURL: address})
		require.ErrorContains(t, err, "wss://tms.example/mqtt", address)
	}
}
