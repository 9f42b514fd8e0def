package store

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A signing secret of the account channel is in no file as it is.
func TestWebhookSecretsAreSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := openTest(t, Config{Dir: dir})
	secret, address := []byte("a secret that is signed with"), "https://plain.example/hook"
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{HookChanges: cloud.HookChanges{WebhookSettings: []cloud.WebhookSettings{{BusinessID: 42, Secret: secret, SecretNext: secret,
			URLs: map[string][]cloud.HookURL{cloud.HookOrderCreate: {{EndpointID: 1, URL: address}}}}}}}, nil
	}))
	seen := false
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		require.NotContains(t, string(b), string(secret), path)
		seen = seen || bytes.Contains(b, []byte(address))
		return err
	}))
	require.True(t, seen, "the row is in a file that was read")
}
