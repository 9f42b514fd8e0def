package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
)

// The signing key is rotated by commands, beside a node that serves: a rotation that would lose
// cabinets is refused and names them, and keys are not published while a node signs with the
// former one. No secret is printed.
func TestSigningKeyCommands(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, at []string) {
		file := filepath.Join(at[1], "keys.json")
		var said string
		do := func(args ...string) error {
			t.Helper()
			out, err := program(t, append(at[:len(at):len(at)], args...)...)
			said += out
			if err != nil {
				said += err.Error()
			}
			return err
		}
		secrets := func() (k server.Keys) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(raw, &k))
			return k
		}
		require.ErrorContains(t, do("signing-key", "status"), "no data")
		require.NoError(t, do("demo-data"))
		said = "" // which shows secrets of the sandbox
		first := secrets()
		current, next := first.SigningKeys()
		n := startNode(t, at...)
		require.NoError(t, do("signing-key", "status"))
		require.Contains(t, said, "signing key "+current+", next "+next+", last rotation never")
		require.Regexp(t, `CAB-1001 of business \d+, last seen never: has not taken its newest configuration`, said)
		err := do("signing-key", "rotate")
		require.ErrorContains(t, err, "cabinets would be lost")
		require.Regexp(t, regexp.MustCompile(`CAB-1001`), err.Error())
		require.Equal(t, first, secrets())

		aside := filepath.Join(t.TempDir(), "next.json")
		require.NoError(t, do("signing-key", "rotate", "--force", "--to", aside))
		require.Equal(t, first, secrets(), "the present file stays")
		require.Error(t, do("signing-key", "rotate", "--force", "--to", aside), "it exists")
		require.NoError(t, do("signing-key", "rotate", "--force"))
		second := secrets()
		require.Equal(t, []any{first.Next, first.Server, first.Seal, false}, []any{second.Signing, second.Server, second.Seal, second.Rotated.IsZero()})
		require.NotEqual(t, first.Next, second.Next)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm())

		require.ErrorContains(t, do("signing-key", "publish"), "sign with another key: ")
		n.stop()
		require.NoError(t, server.ReplaceKeys(file, first))
		n = startNode(t, at...)
		require.NoError(t, server.ReplaceKeys(file, second))
		require.ErrorContains(t, do("signing-key", "publish"), "sign with another key: ", "it started after the rotation, with a copy of the former file")
		n.stop()
		n = startNode(t, at...)
		require.NoError(t, do("signing-key", "publish"))
		require.Regexp(t, `[1-9]\d* cabinets have a new configuration`, said)
		require.NoError(t, do("signing-key", "publish"), "again")
		require.Contains(t, said, "\n0 cabinets have a new configuration")
		n.stop()
		for _, secret := range [][]byte{first.Signing, first.Next, second.Next, first.Server, first.Seal} {
			text, err := json.Marshal(secret)
			require.NoError(t, err)
			require.NotContains(t, said+n.log.text(), string(text[1:len(text)-1]))
		}
	})
}
