// Package object keeps files that people upload, in a folder or in a bucket of an
// S3-compatible server: put, get, delete, and addresses at which one can be read for a
// while.
//
// Names are random and say nothing about people. The type of a file is found from
// its bytes. A file is there whole or not at all: a Store shows an object when all of it
// is written. Rows that name files are kept elsewhere and written
// after the file, so a crash in between leaves a file without a row; Sweep
// removes such. Several nodes may share one store. Safe for concurrent use.
//
//	<area>/<first two digits of the name>/<32 hexadecimal digits>.<ending>
//	exports/<job>-<part>.gz          archives of businesses
//	.new/<32 hexadecimal digits>     in a folder, while it is written
package object

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// orphanAge is how old a file without a row must be before it is removed: what
// is being uploaded has its row long before.
const orphanAge = 24 * time.Hour

// named is the form of a stored path. It has no dots but the one of the ending,
// so that no path leads out of the folder.
var named = regexp.MustCompile(`^([a-z]{1,16})/([0-9a-f]{2})([0-9a-f]{30}\.(jpg|png|webp|pdf|mp4|gz))$`)

// Files are the uploaded files of a store.
type Files struct {
	store Store
	key   []byte
	now   func() time.Time
}

// New uses a store, which Close closes. key signs addresses: the
// same on every node, at least 32 bytes, and used for nothing else.
func New(s Store, key []byte) (*Files, error) {
	if len(key) < 32 {
		return nil, errors.New("open files: the key is too short")
	}
	return &Files{store: s, key: slices.Clone(key), now: time.Now}, nil
}

// Open uses a folder.
func Open(dir string, key []byte) (*Files, error) {
	s, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := New(s, key)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return f, nil
}

// Close closes the store.
func (f *Files) Close() error { return f.store.Close() }

// Store is where the files are.
func (f *Files) Store() Store { return f.store }

// randomName is 32 hexadecimal digits.
func randomName() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// Put keeps what body holds, at most max bytes of it, in an area of lower-case
// letters. kinds are the content types that it may have. When it returns nil the
// file survives a power cut. Errors: cloud.ErrFileSize, cloud.ErrFileKind.
func (f *Files) Put(ctx context.Context, area string, body io.Reader, max int64, kinds ...string) (s cloud.StoredFile, err error) {
	d, err := f.store.Draft()
	if err == nil {
		s, err = fill(d, body, max, kinds)
		if err == nil {
			s.Path = area + "/" + randomName() + endings[s.MIME]
			var name string
			if name, err = place(s.Path); err == nil {
				err = d.Publish(ctx, name)
			}
		}
		err = errors.Join(err, d.Discard())
	}
	if err != nil {
		return cloud.StoredFile{}, fmt.Errorf("keep file: %w", err)
	}
	return s, nil
}

// fill writes a draft, and finds out what it is.
func fill(d Draft, body io.Reader, max int64, kinds []string) (s cloud.StoredFile, err error) {
	if s.Size, err = io.Copy(d, io.LimitReader(body, max+1)); err != nil {
		return s, err
	}
	if s.Size > max {
		return s, cloud.ErrFileSize
	}
	if s.MIME, err = kindOf(d); err == nil && !slices.Contains(kinds, s.MIME) {
		err = cloud.ErrFileKind
	}
	return s, err
}

// place is the name of a stored path's object. Error: cloud.ErrNotFound.
func place(stored string) (string, error) {
	m := named.FindStringSubmatch(stored)
	if m == nil {
		return "", cloud.ErrNotFound
	}
	return path.Join(m[1], m[2], m[2]+m[3]), nil
}

// storedPath is the stored path of an uploaded file's object, with its shard: the area, a
// slash and two digits. Empty for any other object.
func storedPath(name string) (stored, shard string) {
	area, rest, _ := strings.Cut(name, "/")
	shard, file := path.Split(rest)
	stored = area + "/" + file
	if at, err := place(stored); err != nil || at != name {
		return "", ""
	}
	return stored, area + "/" + strings.TrimSuffix(shard, "/")
}

// IsUpload reports whether an object is an uploaded file by its name.
func IsUpload(name string) bool {
	stored, _ := storedPath(name)
	return stored != ""
}

// File is a stored file that is being read. Its reader closes it.
type File struct {
	io.ReadCloser
	MIME string
	Size int64 // bytes
}

// Get opens a file, which may be read after ctx ended. Error: cloud.ErrNotFound.
func (f *Files) Get(ctx context.Context, stored string) (File, error) {
	name, err := place(stored)
	if err != nil {
		return File{}, err
	}
	r, size, err := f.store.Open(ctx, name)
	if errors.Is(err, cloud.ErrNotFound) {
		return File{}, cloud.ErrNotFound
	}
	if err != nil {
		return File{}, fmt.Errorf("read file: %w", err)
	}
	return File{ReadCloser: r, MIME: kinds[path.Ext(stored)], Size: size}, nil
}

// Delete removes a file. One that is not there is no error.
func (f *Files) Delete(ctx context.Context, stored string) error {
	name, err := place(stored)
	if err != nil {
		return nil
	}
	if err := f.store.Delete(ctx, name); err != nil {
		return fmt.Errorf("delete file: %w", err)
	}
	return nil
}

// Sweep removes files that are older than a day and that no row names, and says
// how many. known lists the stored paths of rows whose path begins with a shard:
// an area, a slash and two digits.
func (f *Files) Sweep(ctx context.Context, known func(ctx context.Context, shard string) ([]string, error)) (removed int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sweep files: %w", err)
		}
	}()
	before := f.now().Add(-orphanAge)
	if removed, err = f.store.Clean(ctx, before); err != nil {
		return removed, err
	}
	var at string // the shard whose rows are read
	var rows []string
	for o, err := range f.store.List(ctx, "") {
		if err != nil {
			return removed, err
		}
		stored, shard := storedPath(o.Name)
		if stored == "" || o.At.After(before) {
			continue
		}
		if shard != at {
			if rows, err = known(ctx, shard); err != nil {
				return removed, err
			}
			at = shard
		}
		if slices.Contains(rows, stored) {
			continue
		}
		if err := f.store.Delete(ctx, o.Name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
