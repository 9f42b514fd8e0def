package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// folderNames are what a node keeps in its data folder. Databases begin with postern.db.
var folderNames = []string{keysFile, "files", "spool", "devices", "lost+found"}

func isFolderName(name string) bool {
	return slices.Contains(folderNames, name) || strings.HasPrefix(name, "postern.db")
}

// closeFolder takes the data folder and what a node keeps in it away from other users of
// the machine: files 0600, folders 0700, those of earlier releases too. A folder with
// other things in it keeps its mode, since others may have work there. A file that belongs to
// another user stays as it is, and the log says so; the node starts all the same.
func closeFolder(dir string, log *slog.Logger) error {
	if runtime.GOOS == "windows" { // modes are no rights there
		return nil
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	shared := false
	for _, e := range list {
		if !isFolderName(e.Name()) {
			shared = true
			continue
		}
		mode := fs.FileMode(0o600)
		if e.IsDir() {
			mode = 0o700
		}
		if e.Name() != "lost+found" {
			closePath(filepath.Join(dir, e.Name()), mode, log)
		}
	}
	if !shared {
		closePath(dir, 0o700, log)
	} else if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("the data folder also holds other things, so its mode stays; give the node a folder of its own", "path", dir, "mode", info.Mode().Perm().String())
	}
	return nil
}

// closePath takes rights of other users away, where there are any.
func closePath(path string, mode fs.FileMode, log *slog.Logger) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	if err := os.Chmod(path, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("other users of the machine can reach this, and the node cannot change it; give it to the user that the node runs as", "path", path, "mode", info.Mode().Perm().String(), "err", err)
	}
}
