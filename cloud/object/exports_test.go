package object

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Archives of businesses, and anything else that lies in a store, are no uploaded files:
// no sweep removes them or stumbles over them, and nothing reads them by an address.
func TestArchivesAreNoFilesOfTheStore(t *testing.T) {
	onEach(t, func(t *testing.T, f shelf) {
		ctx, a := t.Context(), f.Archives()
		old := time.Now().Add(-48 * time.Hour)
		if f.server != nil {
			f.server.SetTime(old)
		}
		write := func(name, body string) {
			n, err := a.Write(ctx, name, func(w io.Writer) error { _, err := io.WriteString(w, body); return err })
			require.NoError(t, err)
			require.EqualValues(t, len(body), n)
			f.age(t, exports+name, old)
		}
		write("7-000000.gz", "old")
		write("7-000000.gz", "x")
		const backup = "backups/20261120T120000Z/0123456789abcdef0123456789abcdef.jpg"
		_, err := Write(ctx, f.store, backup, func(w io.Writer) error { return nil })
		require.NoError(t, err)
		f.age(t, backup, old)
		broken := errors.New("broken")
		_, err = a.Write(ctx, "7-000001.gz", func(w io.Writer) error {
			_, err := io.WriteString(w, "half")
			return errors.Join(err, broken)
		})
		require.ErrorIs(t, err, broken)
		_, err = f.Sweep(ctx, func(context.Context, string) ([]string, error) { return nil, nil })
		require.NoError(t, err)
		require.ElementsMatch(t, []string{backup, exports + "7-000000.gz"}, f.names(t))
		_, err = f.Get(ctx, exports+"7-000000.gz")
		require.ErrorIs(t, err, cloud.ErrNotFound)
		_, err = a.Open(ctx, "7-000001.gz")
		require.ErrorIs(t, err, cloud.ErrNotFound)
		r, err := a.Open(ctx, "7-000000.gz")
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, errors.Join(err, r.Close()))
		require.Equal(t, "x", string(raw))

		require.NoError(t, a.Forget(ctx, old.Add(-time.Hour)))
		require.Len(t, f.names(t), 2)
		require.NoError(t, a.Forget(ctx, old.Add(time.Hour)))
		require.Equal(t, []string{backup}, f.names(t))
		require.NoError(t, a.Delete(ctx, "7-000000.gz"), "it is gone")
	})
}

// A move can be cut off at any place and made again: in the end the target has all that
// the source had, and the source nothing but what is none of ours.
func TestMoveGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		from, to := onFolder(t), onBucket(t)
		if back {
			from, to = to, from
		}
		ctx := t.Context()
		want := map[string]string{}
		for range 20 {
			s, err := from.Put(ctx, "proof", strings.NewReader("%PDF-1.7 "+time.Now().String()), 1<<20, cloud.PDF)
			require.NoError(t, err)
			f, err := from.Get(ctx, s.Path)
			require.NoError(t, err)
			raw, err := io.ReadAll(f)
			require.NoError(t, errors.Join(err, f.Close()))
			want[s.Path] = string(raw)
		}
		_, err := from.Archives().Write(ctx, "1-000000.gz", func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err })
		require.NoError(t, err)
		_, err = Write(ctx, from.store, "notes.txt", func(w io.Writer) error { return nil })
		require.NoError(t, err)

		all, err := Move(ctx, from.store, to.store, false, nil)
		require.NoError(t, err)
		require.Equal(t, []int{21, 21}, []int{all.Objects, all.Copied})
		require.Len(t, from.names(t), 22, "all of it is still there")
		for p := range want { // one that was damaged on its way
			name, err := place(p)
			require.NoError(t, err)
			_, err = Write(ctx, to.store, name, func(w io.Writer) error { return nil })
			require.NoError(t, err)
			break
		}
		stopped, stop := context.WithCancel(ctx)
		_, err = Move(stopped, from.store, to.store, true, func(m Moved) {
			if m.Objects == 8 {
				stop()
			}
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Len(t, from.names(t), 22-8)
		rest, err := Move(ctx, from.store, to.store, true, nil)
		require.NoError(t, err)
		require.Equal(t, 21-8, rest.Objects)
		require.Equal(t, []string{"notes.txt"}, from.names(t))
		for p, body := range want {
			f, err := to.Get(ctx, p)
			require.NoError(t, err)
			raw, err := io.ReadAll(f)
			require.NoError(t, errors.Join(err, f.Close()))
			require.Equal(t, body, string(raw))
		}
		require.Len(t, to.names(t), 21)
	}
}
