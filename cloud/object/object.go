// Package object keeps files that people upload in a folder: put, get, delete,
// and addresses at which one can be read for a while.
//
// Names are random and say nothing about people. The type of a file is found from
// its bytes. A file is there whole or not at all: it is written under another
// name, synced and renamed. Rows that name files are kept elsewhere and written
// after the file, so a crash in between leaves a file without a row; Sweep
// removes such. Several nodes may share one folder. Safe for concurrent use.
//
//	<area>/<first two digits of the name>/<32 hexadecimal digits>.<ending>
//	.new/<32 hexadecimal digits>     while it is written
package object

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

const (
	unfinished = ".new"
	// orphanAge is how old a file without a row must be before it is removed: what
	// is being uploaded has its row long before.
	orphanAge = 24 * time.Hour
)

// named is the form of a stored path. It has no dots but the one of the ending,
// so that no path leads out of the folder.
var named = regexp.MustCompile(`^([a-z]{1,16})/([0-9a-f]{2})([0-9a-f]{30}\.(jpg|png|webp|pdf|mp4))$`)

// Folder is where files are kept.
type Folder struct {
	root *os.Root
	key  []byte
	now  func() time.Time
}

// Open uses a folder, making it when it is missing. key signs addresses: the
// same on every node, at least 32 bytes, and used for nothing else.
func Open(dir string, key []byte) (*Folder, error) {
	if len(key) < 32 {
		return nil, errors.New("open files: the key is too short")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	if err := root.MkdirAll(unfinished, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("open files: %w", err), root.Close())
	}
	return &Folder{root: root, key: slices.Clone(key), now: time.Now}, nil
}

// Close gives the folder back.
func (f *Folder) Close() error { return f.root.Close() }

// Put keeps what body holds, at most max bytes of it, in an area of lower-case
// letters. kinds are the content types that it may have. When it returns nil the
// file survives a power cut. Errors: cloud.ErrFileSize, cloud.ErrFileKind.
func (f *Folder) Put(area string, body io.Reader, max int64, kinds ...string) (cloud.StoredFile, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	name := hex.EncodeToString(random[:])
	draft := path.Join(unfinished, name)
	stored, err := f.write(draft, body, max, kinds)
	if err == nil {
		stored.Path = area + "/" + name + endings[stored.MIME]
		err = f.publish(draft, stored.Path)
	}
	if err != nil {
		if gone := f.root.Remove(draft); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return cloud.StoredFile{}, fmt.Errorf("keep file: %w", err)
	}
	return stored, nil
}

// write writes and syncs a file, and finds out what it is.
func (f *Folder) write(draft string, body io.Reader, max int64, kinds []string) (s cloud.StoredFile, err error) {
	w, err := f.root.OpenFile(draft, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if s.Size, err = io.Copy(w, io.LimitReader(body, max+1)); err != nil {
		return s, err
	}
	if s.Size > max {
		return s, cloud.ErrFileSize
	}
	if s.MIME, err = kindOf(w); err != nil {
		return s, err
	}
	if !slices.Contains(kinds, s.MIME) {
		return s, cloud.ErrFileKind
	}
	return s, w.Sync()
}

// publish gives a written file its name.
func (f *Folder) publish(draft, stored string) error {
	file, err := place(stored)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	if err := f.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := f.root.Rename(draft, file); err != nil {
		return err
	}
	for _, d := range []string{dir, path.Dir(dir), "."} { // a new folder is an entry of the one above
		if err := f.syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) syncDir(name string) error {
	d, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// place is where a stored path lies in the folder. Error: cloud.ErrNotFound.
func place(stored string) (string, error) {
	m := named.FindStringSubmatch(stored)
	if m == nil {
		return "", cloud.ErrNotFound
	}
	return path.Join(m[1], m[2], m[2]+m[3]), nil
}

// File is a stored file that is being read. Its reader closes it.
type File struct {
	io.ReadCloser
	MIME string
	Size int64 // bytes
}

// Get opens a file. Error: cloud.ErrNotFound.
func (f *Folder) Get(stored string) (File, error) {
	file, err := place(stored)
	if err != nil {
		return File{}, err
	}
	r, err := f.root.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, cloud.ErrNotFound
	}
	if err != nil {
		return File{}, fmt.Errorf("read file: %w", err)
	}
	info, err := r.Stat()
	if err != nil {
		return File{}, errors.Join(fmt.Errorf("read file: %w", err), r.Close())
	}
	return File{ReadCloser: r, MIME: kinds[path.Ext(stored)], Size: info.Size()}, nil
}

// Delete removes a file. One that is not there is no error.
func (f *Folder) Delete(stored string) error {
	file, err := place(stored)
	if err != nil {
		return nil
	}
	if err := f.root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete file: %w", err)
	}
	return nil
}

// Exports is a directory of the folder that is not for uploaded files: archives of
// businesses, which all nodes share too. No address leads there.
const Exports = "exports"

// Sweep removes files that are older than a day and that no row names, and says
// how many. known lists the stored paths of rows whose path begins with a shard:
// an area, a slash and two digits.
func (f *Folder) Sweep(ctx context.Context, known func(ctx context.Context, shard string) ([]string, error)) (removed int, err error) {
	areas, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return 0, fmt.Errorf("sweep files: %w", err)
	}
	for _, area := range areas {
		if area.Name() == unfinished {
			n, err := f.sweep(unfinished, func(string) bool { return false })
			if removed += n; err != nil {
				return removed, err
			}
			continue
		}
		if area.Name() == Exports {
			continue
		}
		shards, err := fs.ReadDir(f.root.FS(), area.Name())
		if err != nil {
			return removed, fmt.Errorf("sweep files: %w", err)
		}
		for _, shard := range shards {
			if err := ctx.Err(); err != nil {
				return removed, err
			}
			rows, err := known(ctx, area.Name()+"/"+shard.Name())
			if err != nil {
				return removed, fmt.Errorf("sweep files: %w", err)
			}
			n, err := f.sweep(path.Join(area.Name(), shard.Name()), func(name string) bool { return slices.Contains(rows, area.Name()+"/"+name) })
			if removed += n; err != nil {
				return removed, err
			}
		}
	}
	return removed, nil
}

// sweep removes the old files of one folder that are not to be kept.
func (f *Folder) sweep(dir string, keep func(name string) bool) (removed int, err error) {
	list, err := fs.ReadDir(f.root.FS(), dir)
	if err != nil {
		return 0, fmt.Errorf("sweep files: %w", err)
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || f.now().Sub(info.ModTime()) < orphanAge || keep(e.Name()) {
			continue // another node may have removed it
		}
		if err := f.root.Remove(path.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("sweep files: %w", err)
		}
		removed++
	}
	return removed, nil
}
