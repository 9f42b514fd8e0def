package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/release"
	"github.com/postern-io/postern/protocol/signed"
	"github.com/postern-io/postern/protocol/wire"
)

func runRelease(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(args, &out, &out)
	return out.String(), err
}

// newKey makes a key file and gives what the cloud would be told.
func newKey(t *testing.T) (file string, public []byte) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "release.pem")
	out, err := runRelease(t, "key", file)
	require.NoError(t, err)
	_, setting, ok := strings.Cut(out, "release_keys: [")
	require.True(t, ok, out)
	public, err = base64.StdEncoding.DecodeString(strings.TrimSuffix(setting, "]\n"))
	require.NoError(t, err)
	return file, public
}

// The key is for its owner alone, is written once, and is printed by no command.
func TestKeysStayInTheirFile(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = runRelease(t, "key", file)
	require.ErrorIs(t, err, os.ErrExist)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, after)

	secret := strings.Split(string(before), "\n")[1]
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, before, 0o600)) // a mistake of the person who signs
	for want, args := range map[string][]string{
		"no program of Go":       {"--key", file, "--release", "1.4.0", program, "out"},
		"semantic version":       {"--key", file, "--release", "1.4", program, "out"},
		"no such file":           {"--key", file, "--release", "1.4.0", program + "x", "out"},
		"missing flags: --key":   {"--release", "1.4.0", program, "out"},
		"not the PEM file":       {"--key", unreadable(t, "xyz"), "--release", "1.4.0", program, "out"},
		"holds no Ed25519 key":   {"--key", unreadable(t, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "--release", "1.4.0", program, "out"},
		"is readable by others":  {"--key", "/etc/passwd", "--release", "1.4.0", program, "out"},
		"this is the program gi": {"--key", file, "--release", "1.4.0", os.Args[0], "out"},
	} {
		out, err := runRelease(t, append([]string{"sign"}, args...)...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, out+err.Error(), secret)
	}
}

func unreadable(t *testing.T, text string) string {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// An agent that was built for another processor is signed for that one, and the public half
// that was printed verifies it.
func TestSignedProgramIsForItsMachine(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessCheck(t, "it builds a program")
	file, public := newKey(t)
	dir := t.TempDir()
	program, out := filepath.Join(dir, "edge"), filepath.Join(dir, "edge-1.4.0")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w -X github.com/postern-io/postern/cmd/internal/cli.release=[[postern-release:v1.4.0]]", "-o", program, "../edge")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	text, err = exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.Contains(t, string(text), "edge v1.4.0 ")
	_, err = runRelease(t, "sign", "--key", file, "--release", "1.5.0", program, out)
	require.ErrorContains(t, err, `says that it is version "1.4.0"`)
	require.NoFileExists(t, out)
	built, err := os.ReadFile(program)
	require.NoError(t, err)
	unnamed := filepath.Join(dir, "edge-unnamed")
	require.NoError(t, os.WriteFile(unnamed, bytes.ReplaceAll(built, []byte("[[postern-release:"), []byte("[[postern-unnamed:")), 0o700))
	_, err = runRelease(t, "sign", "--key", file, "--release", "1.4.0", unnamed, out)
	require.ErrorContains(t, err, "the build named no version: build it as --release 1.4.0 (make build VERSION=1.4.0)")
	said, err := runRelease(t, "sign", "--key", file, "--release", "v1.4.0", program, out)
	require.NoError(t, err)
	require.Contains(t, said, "is edge 1.4.0 for ")
	artefact, err := os.Open(out)
	require.NoError(t, err)
	defer artefact.Close()
	m, _, err := release.Read(artefact, signed.PinnedKeys([]wire.PinnedKey{{ID: signed.KeyID(public), Key: public}}))
	require.NoError(t, err)
	var copied bytes.Buffer
	require.NoError(t, m.Copy(&copied, artefact))
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	require.True(t, bytes.Equal(raw, copied.Bytes()))
}
