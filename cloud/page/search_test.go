package page_test

import (
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// The field in the bar finds records without script: the only exact hit opens, anything
// else is listed by noun, and what was typed stays text.
func TestSearchPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("GET", "/console/search?q=LD", nil)
	require.Equal(t, 303, g.status, "only people who are signed in search")
	r.signedIn()
	find := func(text string) got { return r.do("GET", "/console/search?q="+url.QueryEscape(text), nil) }

	g = find(" " + r.w.Delivery.Number + " ")
	require.Equal(t, 303, g.status, g.body)
	require.Contains(t, g.header("Location"), "/console/parcels/"+strconv.FormatInt(int64(r.w.Delivery.ID), 10))

	g = find(r.w.Delivery.Number[:5])
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, `href="/console/parcels/`+strconv.FormatInt(int64(r.w.Delivery.ID), 10)+`"`)
	require.Contains(t, g.body, `value="`+r.w.Delivery.Number[:5]+`"`)

	for _, text := range []string{`"><script>alert(1)</script>`, "nowhere", "x", "", "\xff\xfe\xfd", "a\x00b"} {
		g = find(text)
		require.Equal(t, 200, g.status, text)
		require.NotContains(t, g.body, "<script>alert")
		require.NotContains(t, g.body, "/console/parcels/"+strconv.FormatInt(int64(r.w.Delivery.ID), 10))
	}

	// Two records that are called so are both listed.
	twin := r.w.Delivery
	twin.ID, twin.Number, twin.Reference = 991, "LD-000990991", "twin"
	twin.Packages = []cloud.Package{{TrackingNumber: r.w.Delivery.Packages[0].TrackingNumber, Size: "S"}}
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Deliveries: []cloud.Delivery{twin}}})
	g = find(twin.Packages[0].TrackingNumber)
	require.Equal(t, 200, g.status)
	require.Contains(t, g.body, "/console/parcels/991")
}
