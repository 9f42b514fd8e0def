package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// exports is a directory of a store that is not for uploaded files. No address leads
// there.
const exports = "exports/"

// Archives are the archives of businesses, which lie beside the uploaded files. Names
// have no slashes.
type Archives struct{ store Store }

// Archives are those of the same store.
func (f *Files) Archives() Archives { return Archives{f.store} }

// Write makes an archive, or a part of one, of what fill writes, in place of one with
// this name, and gives its size in bytes.
func (a Archives) Write(ctx context.Context, name string, fill func(io.Writer) error) (int64, error) {
	return Write(ctx, a.store, exports+name, fill)
}

// Open opens one. Error: cloud.ErrNotFound.
func (a Archives) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, _, err := a.store.Open(ctx, exports+name)
	return r, err
}

// Delete removes one. One that is not there is no error.
func (a Archives) Delete(ctx context.Context, name string) error {
	return a.store.Delete(ctx, exports+name)
}

// Forget removes those that were written before a time.
func (a Archives) Forget(ctx context.Context, before time.Time) (err error) {
	for o, listErr := range a.store.List(ctx, exports) {
		if listErr != nil {
			return errors.Join(err, fmt.Errorf("forget archives: %w", listErr))
		}
		if o.At.Before(before) {
			err = errors.Join(err, a.store.Delete(ctx, o.Name))
		}
	}
	return err
}
