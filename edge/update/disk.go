package update

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/postern-io/postern/internal/lockfile"
)

// Disk is a folder, step by step, as power can be cut between any two. Names have no
// folders in them.
type Disk interface {
	ReadFile(name string) ([]byte, error)
	Open(name string) (io.ReadCloser, error)
	Create(name string) (File, error) // mode 0700, emptied when it is there
	Rename(from, to string) error
	Remove(name string) error
	Names() ([]string, error)
	Sync() error // names become durable
	Lock(name string, wait time.Duration) (io.Closer, error)
	Path(name string) string
}

// File is one that is written.
type File interface {
	io.WriteCloser
	Sync() error
}

// write makes a file whole and durable, its name aside.
func write(d Disk, name string, content func(io.Writer) error) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// folder is a Disk of this machine.
type folder string

func openFolder(dir string) (folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return folder(dir), os.MkdirAll(dir, 0o700)
}

func (d folder) Path(name string) string                 { return filepath.Join(string(d), name) }
func (d folder) ReadFile(name string) ([]byte, error)    { return os.ReadFile(d.Path(name)) }
func (d folder) Open(name string) (io.ReadCloser, error) { return os.Open(d.Path(name)) }
func (d folder) Rename(from, to string) error            { return os.Rename(d.Path(from), d.Path(to)) }
func (d folder) Remove(name string) error                { return os.Remove(d.Path(name)) }
func (d folder) Create(name string) (File, error) {
	return os.OpenFile(d.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o700)
}

func (d folder) Lock(name string, wait time.Duration) (io.Closer, error) {
	return lockfile.Acquire(d.Path(name), wait)
}

func (d folder) Names() (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Sync syncs the folder where folders can be synced.
func (d folder) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
