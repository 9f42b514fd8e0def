package scanner

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a keyboard types is read as it comes, a pause is no error, and a keyboard
// that is pulled is one. What is no keyboard cannot be taken.
func TestAKeyboardAsAPort(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p := &inputPort{File: r}
	require.NoError(t, p.SetReadTimeout(time.Millisecond))
	buf := make([]byte, 1)
	n, err := p.Read(buf)
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, p.SetReadTimeout(time.Minute))
	_, err = w.Write(append(event(typeKey, 30, 1), event(typeKey, keyEnter, 1)...))
	require.NoError(t, err)
	for _, want := range []byte("a\r") {
		n, err = p.Read(buf)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, want, buf[0])
	}
	require.NoError(t, w.Close())
	_, err = p.Read(buf)
	require.Error(t, err)
	require.NoError(t, p.Close())

	name := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(name, nil, 0o600))
	_, err = openInput(name)
	require.ErrorContains(t, err, "grab keyboard")
	_, err = openInput("/dev/input/by-id/none")
	require.ErrorContains(t, err, "open keyboard")
}
