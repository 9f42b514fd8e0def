package object

import (
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// programs is a directory of a store that is not for uploaded files.
const programs = "programs/"

// Programs are artefacts of devices' programs, which lie beside the uploaded files. Names
// have no slashes. Safe for concurrent use.
type Programs struct{ files *Files }

// Programs are those of the same store.
func (f *Files) Programs() Programs { return Programs{f} }

// ProgramsOf are those of a store, without addresses.
func ProgramsOf(s Store) Programs { return Programs{&Files{store: s}} }

// Write makes one of what fill writes, whole or not at all, in place of one with this name.
func (p Programs) Write(ctx context.Context, name string, fill func(io.Writer) error) error {
	_, err := Write(ctx, p.files.store, programs+name, fill)
	return err
}

// Open opens one, with its size in bytes. Error: cloud.ErrNotFound.
func (p Programs) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	if name == "" || strings.ContainsAny(name, `/\`) {
		return nil, 0, cloud.ErrNotFound
	}
	return p.files.store.Open(ctx, programs+name)
}

// List lists their names.
func (p Programs) List(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for o, err := range p.files.store.List(ctx, programs) {
			if !yield(strings.TrimPrefix(o.Name, programs), err) || err != nil {
				return
			}
		}
	}
}

// Address is what lets its holder read one until a time: name, and a query with time and
// signature.
func (p Programs) Address(name string, until time.Time) string {
	return p.files.sign(programs+name, until)[len(programs):]
}

// Signed reports whether an address was made by Address, and whether its time is over.
func (p Programs) Signed(name, expires, signature string) (ok, over bool) {
	return p.files.Signed(programs+name, expires, signature)
}

// OpenFrom opens one from an offset on. Errors: cloud.ErrNotFound, and io.EOF when it is not
// that long.
func (p Programs) OpenFrom(ctx context.Context, name string, offset int64) (r io.ReadCloser, size int64, err error) {
	if r, size, err = p.Open(ctx, name); err != nil {
		return nil, 0, err
	}
	if offset < 0 || offset >= size {
		return nil, size, errors.Join(io.EOF, r.Close())
	}
	if s, ok := r.(io.Seeker); ok {
		_, err = s.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, r, offset)
	}
	if err != nil {
		return nil, size, errors.Join(err, r.Close())
	}
	return r, size, nil
}
