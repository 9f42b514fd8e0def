package page_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/limit"
	"github.com/postern-io/postern/cloud/page"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webtest"
)

// The pages count lookups where all faces do: a limit for each parcel, and a caller
// that guesses numbers is stopped while a parcel's watchers go on.
func TestRecipientsBehindOneAddress(t *testing.T) {
	t.Parallel()
	f := newFresh(t)
	_, f.rest, _ = server(t, func(c *page.Config) {
		c.PerMinute = 60
		c.Tracking.Guard(tracking.GuardConfig{Lookups: limit.NewLookups(limit.LookupLimits{Parcel: 4, Address: 100, Misses: 6}, nil)})
	})
	f.serve()
	c := f.browser()
	status := func(number string) int {
		r, _ := f.do(c, "GET", "/track/"+number, nil, nil)
		return r.StatusCode
	}
	for range 2 {
		for _, n := range []string{webtest.Waiting, webtest.Announced} {
			require.Equal(t, 200, status(n))
		}
	}
	for i := range 3 {
		require.Equal(t, map[bool]int{true: 429, false: 404}[i == 2], status(fmt.Sprint("GUESS", i)))
	}
	require.Equal(t, 200, status(webtest.Waiting), "found a moment ago")
	require.Equal(t, 200, status(webtest.Waiting))
	require.Equal(t, 429, status(webtest.Waiting), "its own limit")
	require.Equal(t, 200, status(webtest.Announced))
}
