package object

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Moved counts what a move has done so far.
type Moved struct {
	Objects, Copied int   // all that were looked at; those that the target lacked
	Bytes           int64 // copied
}

// Move copies all uploaded files, archives and programs of one store into another, and with remove takes each away
// from the first when the other has it whole: its content is read back and compared. A
// move that was interrupted goes on when it is made again; what the target has with the
// same content is not written again. progress is called after each object; nil: not.
func Move(ctx context.Context, from, to Store, remove bool, progress func(Moved)) (m Moved, err error) {
	for o, err := range from.List(ctx, "") {
		if err != nil {
			return m, fmt.Errorf("move files: %w", err)
		}
		if !IsUpload(o.Name) && !strings.HasPrefix(o.Name, exports) && !strings.HasPrefix(o.Name, programs) {
			continue
		}
		c, err := Copy(ctx, from, o.Name, to, o.Name)
		if err == nil && remove {
			err = from.Delete(ctx, o.Name)
		}
		if errors.Is(err, cloud.ErrNotFound) { // deleted since
			continue
		}
		if err != nil {
			return m, fmt.Errorf("move file %s: %w", o.Name, err)
		}
		m.Objects++
		if c.Written {
			m.Copied, m.Bytes = m.Copied+1, m.Bytes+c.Size
		}
		if progress != nil {
			progress(m)
		}
	}
	return m, nil
}

// Copied is what became of a copy.
type Copied struct {
	Size    int64 // bytes
	SHA256  [sha256.Size]byte
	Written bool // false: the target had it already
}

// Copy copies an object to a name in another store, and compares what is there then with
// what was read.
func Copy(ctx context.Context, from Store, name string, to Store, as string) (c Copied, err error) {
	if c.SHA256, c.Size, err = digest(ctx, from, name); err != nil {
		return c, err
	}
	if have, _, err := digest(ctx, to, as); err == nil && have == c.SHA256 {
		return c, nil
	}
	if _, err := Write(ctx, to, as, func(w io.Writer) error {
		r, _, err := from.Open(ctx, name)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		return errors.Join(err, r.Close())
	}); err != nil {
		return c, err
	}
	have, _, err := digest(ctx, to, as)
	if err == nil && have != c.SHA256 {
		err = errors.New("the copy differs from what was read")
	}
	c.Written = true
	return c, err
}

// digest reads an object whole.
func digest(ctx context.Context, s Store, name string) (sum [sha256.Size]byte, n int64, err error) {
	r, _, err := s.Open(ctx, name)
	if err != nil {
		return sum, 0, err
	}
	h := sha256.New()
	n, err = io.Copy(h, r)
	h.Sum(sum[:0])
	return sum, n, errors.Join(err, r.Close())
}
