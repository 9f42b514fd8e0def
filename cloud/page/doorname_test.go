package page_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// markup is what of a page its reader does not see; labels for screen readers stay.
var markup = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>| (?:href|id|for|name|value|data-[a-z]+|action|aria-labelledby|aria-describedby|src)="[^"]*"`)

// A door has one name on every page: the one that is printed on it and that kiosks and
// notifications name.
func TestADoorHasOneNameOnPages(t *testing.T) {
	t.Parallel()
	ring.SkipUnlessCheck(t, "the pages of the console")
	r := newRig(t, nil)
	r.w.Write(t, cloud.Changes{LockerChanges: cloud.LockerChanges{Exceptions: []cloud.Exception{
		{ID: 9301, BusinessID: 42, DeviceID: 88, GridCode: "A01", Source: "w1", Type: "door_left_open", Severity: "high", Status: "open", OpenedAt: time.Now().Add(-time.Hour)}}}})
	r.signedIn()
	parcel := strconv.Itoa(int(r.w.Delivery.ID))
	named := regexp.MustCompile(`\bA-\d+\b`)
	code := regexp.MustCompile(`\bA0\d\b`)
	for path, names := range map[string]bool{"/console": true, "/console/work": true, "/console/cabinets/88": true, "/console/cabinets/88?tab=service": false, "/console/exceptions": true, "/console/exceptions/9301": true,
		"/console/parcels/" + parcel: true, "/console/cabinets/88/open": true, "/console/cabinets/88/block": true, "/console/search?q=A-7": false, "/console/cabinets/88/layout": false} {
		g := r.do("GET", path, nil)
		require.Equal(t, 200, g.status, path)
		seen := markup.ReplaceAllString(g.body, "")
		require.Empty(t, code.FindAllString(seen, -1), "%s names doors by the code of their place", path)
		if names {
			require.NotEmpty(t, named.FindAllString(seen, -1), "%s names no door", path)
		}
	}
}
