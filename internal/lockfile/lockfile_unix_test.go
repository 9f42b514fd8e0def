//go:build unix

package lockfile

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A lock that was let go is free, also while a program that was forked meanwhile has a copy of its file.
func TestClosedLockIsFree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := Acquire(path, 0)
	require.NoError(t, err)
	_, err = Acquire(path, 0)
	require.ErrorIs(t, err, ErrHeld)
	copied, err := unix.Dup(int(l.(held).Fd()))
	require.NoError(t, err)
	defer unix.Close(copied)
	require.NoError(t, l.Close())
	again, err := Acquire(path, 0)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}
