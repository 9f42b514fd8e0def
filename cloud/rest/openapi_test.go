package rest

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
)

// The description costs an anonymous caller little, whatever name it asks for, and
// counts as a call like the other documents.
func TestTheDescriptionIsMadeOnce(t *testing.T) { // not parallel: it measures memory
	r := newRig(t, func(o *options) { o.Limits = catalog.Limits{Anonymous: 1} })
	require.Equal(t, 200, r.do("GET", "/api/openapi.json", "", "").status)
	r.refused(r.do("GET", "/api/openapi.json", "", ""), 429, "RATE_LIMITED")
	for _, base := range []string{"http://first.example", `http://a"b\`} {
		var d struct{ Servers []struct{ URL string } }
		require.NoError(t, json.Unmarshal(r.s.describe(base), &d))
		require.Equal(t, base, d.Servers[0].URL)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	size := uint64(len(r.s.describe("http://second.example")))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, 3*size)
}
