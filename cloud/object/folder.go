package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// unfinished is the directory of drafts.
const unfinished = ".new"

// Folder keeps objects as files of a folder. Drafts are files of it too, which get their
// names by renaming.
type Folder struct {
	root *os.Root
}

var _ Store = (*Folder)(nil)

// OpenFolder uses a folder, making it when it is missing.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", err)
	}
	if err := root.MkdirAll(unfinished, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("open folder: %w", err), root.Close())
	}
	return &Folder{root: root}, nil
}

// Close gives the folder back.
func (f *Folder) Close() error { return f.root.Close() }

type folderDraft struct {
	*os.File
	folder *Folder
	name   string // in the folder; empty: published
}

// Draft begins a file.
func (f *Folder) Draft() (Draft, error) {
	name := path.Join(unfinished, randomName())
	w, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &folderDraft{w, f, name}, nil
}

// Publish syncs the file, renames it and syncs the directories.
func (d *folderDraft) Publish(ctx context.Context, name string) error {
	if err := errors.Join(ctx.Err(), d.Sync()); err != nil {
		return err
	}
	dir := path.Dir(name)
	if err := d.folder.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := d.folder.root.Rename(d.name, name); err != nil {
		return err
	}
	d.name = ""
	for { // a new directory is an entry of the one above
		if err := d.folder.sync(dir); err != nil || dir == "." {
			return err
		}
		dir = path.Dir(dir)
	}
}

// Discard closes the file, and removes it if it was not published.
func (d *folderDraft) Discard() error {
	err := d.Close()
	if d.name != "" {
		if gone := d.folder.root.Remove(d.name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

func (f *Folder) sync(name string) error {
	d, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Open opens a file.
func (f *Folder) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	r, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, cloud.ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := r.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, r.Close())
	}
	return r, info.Size(), nil
}

// Delete removes a file.
func (f *Folder) Delete(_ context.Context, name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// List walks the folder.
func (f *Folder) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		at := path.Dir(prefix + "x")
		err := fs.WalkDir(f.root.FS(), at, func(name string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist): // another node may have removed it
				return nil
			case err != nil || ctx.Err() != nil:
				return errors.Join(err, ctx.Err())
			case name == unfinished:
				return fs.SkipDir
			case !e.Type().IsRegular() || !strings.HasPrefix(name, prefix):
				return nil
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !yield(Object{name, info.Size(), info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(Object{}, err)
		}
	}
}

// Clean removes old drafts.
func (f *Folder) Clean(ctx context.Context, before time.Time) (removed int, err error) {
	list, err := fs.ReadDir(f.root.FS(), unfinished)
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.ModTime().After(before) {
			continue // another node may have removed it
		}
		if err := errors.Join(ctx.Err(), f.Delete(ctx, path.Join(unfinished, e.Name()))); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
