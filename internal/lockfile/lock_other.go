//go:build !unix

package lockfile

import (
	"io"
	"os"
	"time"
)

// Acquire opens the lock file at path. Without flock it keeps no second process out.
func Acquire(path string, _ time.Duration) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// Release closes a file.
func Release(f *os.File) error { return f.Close() }
