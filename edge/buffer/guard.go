package buffer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	bolterr "go.etcd.io/bbolt/errors"
)

// guard runs fn and turns what bbolt does over corrupt pages into ErrDamaged:
// it panics, and because pages are read from mapped memory, a page beyond the
// file's end is a memory fault.
func guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	return fn()
}

// classify says whether an error of bbolt's own opening speaks of the content.
func classify(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrDamaged):
		return err
	case errors.Is(err, bolterr.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrInUse, err)
	case errors.Is(err, bolterr.ErrInvalid), errors.Is(err, bolterr.ErrVersionMismatch), errors.Is(err, bolterr.ErrChecksum),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// diskFull reports whether err says that the limit or the disk is full: bbolt
// has then rolled back, and nothing of the change is visible.
func diskFull(err error) bool {
	return errors.Is(err, bolterr.ErrMaxSizeReached) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// syncDir makes the names in path's directory durable.
func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
