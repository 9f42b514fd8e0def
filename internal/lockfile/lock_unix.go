//go:build unix

package lockfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Acquire takes the lock file at path for this process, and waits so long for another
// one that has it. Closing it, or the end of the process, lets it go. Errors: ErrHeld.
func Acquire(path string, wait time.Duration) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return held{f}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(ErrHeld, f.Close())
		}
	}
}

// held is a lock file whose lock this process has. A program that was just forked has a copy of
// it until it begins: the lock does not stay until that copy is closed.
type held struct{ *os.File }

// Close lets the lock go.
func (h held) Close() error { return Release(h.File) }

// Release lets the lock of a file go that this process has, and closes it.
func Release(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
