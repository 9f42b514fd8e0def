//go:build !windows

package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// fileOf is a file of a user.
type fileOf struct {
	os.FileInfo
	uid uint32
}

func (f fileOf) Sys() any { return &syscall.Stat_t{Uid: f.uid} }

func TestTheGroupMayReadSecretsOfRoot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		owner uint32
		self  int
		want  os.FileMode
	}{{0, 65532, 0o740}, {65532, 65532, 0o700}, {1000, 65532, 0o700}, {0, 0, 0o700}, {1000, 0, 0o700}} {
		require.Equal(t, c.want, mayRead(fileOf{uid: c.owner}, c.self), "%+v", c)
	}
	name := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	for mode, ok := range map[os.FileMode]bool{0o400: true, 0o600: true, 0o640: false, 0o440: false, 0o404: false, 0o602: false} {
		require.NoError(t, os.Chmod(name, mode))
		require.Equal(t, ok, CheckSecret(name) == nil, "our own file, %04o", mode)
	}
}
