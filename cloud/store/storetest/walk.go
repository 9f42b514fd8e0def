package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// requireWalk reads a list by marks, which gives what one page of all of it gives,
// and with marks that no row has.
func requireWalk[T any](t *testing.T, p cloud.Page, read func(cloud.Page) (cloud.Listed, []T, error)) {
	t.Helper()
	every := p
	every.Offset, every.Limit = 0, 1000
	listed, want, err := read(every)
	require.NoError(t, err)
	require.Len(t, want, listed.Total)
	require.Nil(t, listed.Next)
	p.Offset, p.Limit = 0, max(p.Limit, 1)
	var got []T
	for range len(want)/p.Limit + 1 {
		listed, page, err := read(p)
		require.NoError(t, err)
		require.Equal(t, len(want), listed.Total)
		got = append(got, page...)
		if p.After = listed.Next; p.After == nil {
			break
		}
		require.Len(t, page, p.Limit)
	}
	require.Nil(t, p.After)
	require.Equal(t, want, got, "%+v", p)
	for _, bad := range []cloud.Mark{{}, {ID: 1.5}, {Key: true, ID: int64(1)}, {Key: 0.5, ID: "x"}} {
		p.After = &bad
		_, _, err := read(p)
		require.ErrorIs(t, err, cloud.ErrNoMark)
	}
}
