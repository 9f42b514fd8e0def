//go:build !unix

package store

import "os"

// hold opens the lock file beside a SQLite database. Without flock a second process is
// not kept out.
func hold(path string) (*os.File, error) {
	return os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
}
