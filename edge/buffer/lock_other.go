//go:build !unix

package buffer

import (
	"io"
	"os"
	"time"
)

// acquire opens the lock file. Without flock only bbolt's own lock on the store
// file keeps a second process out.
func acquire(path string, _ time.Duration) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
