package rest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/webtest"
)

// Lookups of parcels without a token have a limit for each parcel, whether the
// answer was kept or made; what is not there counts as guessing.
func TestLookupsHaveALimitForEachParcel(t *testing.T) {
	t.Parallel()
	r := rigOn(t, webtest.New(t), func(o *options) {
		o.Limits = catalog.Limits{Anonymous: 6, Parcel: 4, Parcels: 100}
	})
	for _, base := range []string{"/api/v1/tracking/", "/api/v1/otep/trackings/"} {
		for _, n := range []string{webtest.Waiting, webtest.Announced} {
			for range 2 {
				require.Equal(t, 200, r.do("GET", base+n, "", "").status, n)
			}
		}
	}
	require.Equal(t, 429, r.do("GET", "/api/v1/tracking/"+webtest.Waiting, "", "").status, "one parcel, whichever address asks about it")
	for i := range 3 { // ten units, and five for each
		require.Equal(t, map[bool]int{true: 429, false: 404}[i == 2], r.do("GET", fmt.Sprint("/api/v1/tracking/GUESS", i), "", "").status)
	}
}
