// Package wholefile replaces files in one step, for programs and what they are made of.
// It keeps no state; its function may be called from anywhere.
package wholefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Replace makes or replaces a file in one step that survives a power cut, mode 0600: other
// programs see the old content or the new.
func Replace(name string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes a rename durable. Where folders cannot be synced there is
// nothing to do.
func syncFolder(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
