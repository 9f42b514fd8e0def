package check

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// However much is wrong, an answer names the first members, in the order of a reader,
// and counts the rest.
func TestFieldErrorsAreBounded(t *testing.T) {
	t.Parallel()
	f := Fields{}
	for i := range 1664 {
		for range 9 {
			f.Add(fmt.Sprintf("shelves.%d.grids.%d.size", i/64, i%64), "It is required.")
		}
	}
	var e *cloud.Error
	require.True(t, errors.As(f.Err(), &e))
	require.Len(t, e.Fields, MaxFields)
	for i := range MaxFields {
		require.Len(t, e.Fields[fmt.Sprintf("shelves.0.grids.%d.size", i)], MaxMessages)
	}
	require.Equal(t, []any{"50", "1614"}, e.Args)
	require.Equal(t, map[string]any{"more_errors": 1614}, e.Details)

	few := Fields{}
	for i := range MaxFields {
		few.Add(fmt.Sprint(i), "x")
	}
	require.True(t, errors.As(few.Err(), &e))
	require.Len(t, e.Fields, MaxFields)
	require.Nil(t, e.Details)
	require.Nil(t, e.Args)
	require.Negative(t, comparePaths("packages.2", "packages.10.weight"))
	require.Negative(t, comparePaths("packages", "packages.0"))
}
