package cloud

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A list in memory that changes between pages shows what stays exactly once.
func TestPartOf(t *testing.T) {
	t.Parallel()
	id := func(n int) OutboxID { return OutboxID(n) }
	for _, down := range []bool{false, true} {
		all, p, got := []int{2, 4, 6, 8, 10}, Page{Down: down, Limit: 2}, []int{}
		for {
			part, listed, err := PartOf(all, p, id)
			require.NoError(t, err)
			require.Equal(t, len(all), listed.Total)
			got = append(got, part...)
			if listed.Next == nil {
				break
			}
			p.After = listed.Next
			last := part[len(part)-1]
			all = slices.DeleteFunc(append(slices.Clone(all), 100+len(got)), func(n int) bool { return n == last }) // the mark is gone
			if all = append(all, last-1); down {
				all = append(all, 0)
			}
			slices.Sort(all)
		}
		got = slices.DeleteFunc(got, func(n int) bool { return n%2 == 1 || n > 10 || n <= 0 })
		if down {
			slices.Reverse(got)
		}
		require.Equal(t, []int{2, 4, 6, 8, 10}, got)
	}
	part, listed, err := PartOf([]int{1, 2, 3}, Page{Offset: 2, Limit: 2}, id)
	require.NoError(t, err)
	require.Equal(t, []int{3}, part)
	require.Equal(t, Listed{Total: 3}, listed)
	for _, m := range []Mark{{}, {ID: "1"}, {Key: "a", ID: int64(1)}} {
		_, _, err := PartOf([]int{1}, Page{Limit: 1, After: &m}, id)
		require.ErrorIs(t, err, ErrNoMark)
	}
}
