package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "httpdevice")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, flag := range []string{"-version", "--version"} {
		out, err := exec.CommandContext(t.Context(), bin, flag).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Regexp(t, `^httpdevice \S+.* go1\S+ \w+/\w+\n$`, string(out))
	}
}
