// Package lockfile keeps a second process away from files that one process has for
// itself. A lock file beside them covers what a lock on one of them cannot: creating it,
// moving it aside, replacing it.
package lockfile

import "errors"

// ErrHeld says that another process has the lock.
var ErrHeld = errors.New("another process has the lock")
