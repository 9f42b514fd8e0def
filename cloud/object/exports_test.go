package object

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Archives of businesses lie in the folder and are no files of it: no sweep removes
// them or stumbles over them, and nothing reads them by an address.
func TestArchivesAreNoFilesOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := Open(dir, make([]byte, 32))
	require.NoError(t, err)
	defer f.Close()
	archive := filepath.Join(dir, Exports, "7-000000.gz")
	require.NoError(t, os.MkdirAll(filepath.Dir(archive), 0o700))
	require.NoError(t, os.WriteFile(archive, []byte("x"), 0o600))
	old := time.Now().Add(-48 * time.Hour)
	require.NoError(t, os.Chtimes(archive, old, old))
	_, err = f.Sweep(t.Context(), func(context.Context, string) ([]string, error) { return nil, nil })
	require.NoError(t, err)
	require.FileExists(t, archive)
	_, err = f.Get(Exports + "/7-000000.gz")
	require.Error(t, err)
}
