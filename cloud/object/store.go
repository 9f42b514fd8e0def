package object

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Store keeps whole objects under names of lower-case letters, digits, dots, dashes and
// slashes. Several nodes may use one at the same time. Safe for concurrent use.
type Store interface {
	// Draft begins an object that has no name yet: nothing but its writer sees it.
	Draft() (Draft, error)
	// Open opens an object, with its size in bytes. Its reader has read all of them when
	// it gets io.EOF, and closes it. Error: cloud.ErrNotFound.
	Open(ctx context.Context, name string) (io.ReadCloser, int64, error)
	// Delete removes an object. One that is not there is no error.
	Delete(ctx context.Context, name string) error
	// List lists objects whose names begin with prefix, those of one directory after each
	// other. It ends with the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]
	// Clean removes what interrupted writers left before a time, and counts it.
	Clean(ctx context.Context, before time.Time) (removed int, err error)
	Close() error
}

// Draft is an object while it is written. One goroutine uses it, and ends it with
// Discard, also after Publish.
type Draft interface {
	io.ReadWriteSeeker
	// Publish gives the object its name, in place of one that has it. When it returns
	// nil the object is there whole and survives a power cut. After an error it is there
	// whole or not at all.
	Publish(ctx context.Context, name string) error
	// Discard removes a draft that was not published.
	Discard() error
}

// Object is one of a list.
type Object struct {
	Name string
	Size int64     // bytes
	At   time.Time // when it was written, by the clock of the store
}

// Write makes an object of what fill writes, whole or not at all, and gives its size in
// bytes.
func Write(ctx context.Context, s Store, name string, fill func(io.Writer) error) (size int64, err error) {
	d, err := s.Draft()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Discard()) }()
	if err := fill(d); err != nil {
		return 0, err
	}
	if size, err = d.Seek(0, io.SeekCurrent); err != nil {
		return 0, err
	}
	return size, d.Publish(ctx, name)
}
