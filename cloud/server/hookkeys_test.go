package server

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key that signs webhooks is published before it is used and after it was, and
// is the same on every node with the same keys file.
func TestKeysOfWebhooksOverlap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k, err := LoadKeys(dir)
	require.NoError(t, err)
	turn := func() Keys {
		k.Hooks++
		raw, err := json.Marshal(k)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, keysFile), raw, 0o600))
		read, err := LoadKeys(dir)
		require.NoError(t, err)
		return read
	}
	is := func(a, b ed25519.PublicKey) { t.Helper(); require.True(t, bytes.Equal(a, b)) }
	first := k.publishedHooks()
	require.Len(t, first, 2)
	is(first[0], k.webhookKey().Public().(ed25519.PublicKey))
	second := turn().publishedHooks()
	require.Len(t, second, 3, "at most three")
	is(first[1], second[0])
	is(first[0], second[2])
	third := turn().publishedHooks()
	require.Len(t, third, 3)
	is(second[1], third[0])
	is(second[0], third[2])
	require.NotEqual(t, third[0], third[1])
}
