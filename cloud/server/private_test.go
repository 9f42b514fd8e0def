package server

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// modes are those of everything below a folder.
func modes(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	out := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			name, _ := filepath.Rel(dir, path)
			out[name] = info.Mode().Perm()
		}
		return err
	}))
	return out
}

// What a node keeps is its user's alone: in a folder that it makes, in one that was there
// for everybody, and for files of an earlier release. A folder with other things keeps
// its mode and is named in the log.
func TestTheDataFolderIsOfOneUser(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(dir string){
		"none": func(dir string) { require.NoError(t, os.Remove(dir)) },
		"open": func(string) {},
		"an earlier release": func(dir string) {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "files"), 0o755))
			s, err := New(t.Context(), Config{Dir: dir, Node: "n"})
			require.NoError(t, err)
			require.NoError(t, errors.Join(s.Store.Close(), s.Files.Close()))
			for path := range modes(t, dir) {
				if info, err := os.Stat(filepath.Join(dir, path)); err == nil && !info.IsDir() {
					require.NoError(t, os.Chmod(filepath.Join(dir, path), 0o644))
				}
			}
		},
		"shared": func(dir string) { require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Chmod(dir, 0o755))
			prepare(dir)
			var log bytes.Buffer
			s, err := New(t.Context(), Config{Dir: dir, Node: "n", Log: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			found := modes(t, dir)
			require.Contains(t, found, "postern.db")
			require.Contains(t, found, "postern.db-wal")
			for path, mode := range found {
				switch {
				case name == "shared" && (path == "." || path == "notes.txt"):
					require.NotZero(t, mode&0o044, path)
				default:
					require.Zero(t, mode&0o077, "%s is %s", path, mode)
				}
			}
			require.Equal(t, name == "shared", bytes.Contains(log.Bytes(), []byte("other things")), log.String())
			require.NoError(t, s.Store.Close())
			require.NoError(t, s.Files.Close())
		})
	}
}
