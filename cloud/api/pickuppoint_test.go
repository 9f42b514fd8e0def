package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pickup points are found by letters of any script in any case, and by a place only where one
// is known; those that take no deliveries are left out.
func TestPickupPointsAreFound(t *testing.T) {
	onBoth(t, func(t *testing.T, x *world) {
		set := func(path, body string) {
			t.Helper()
			a := x.do("PATCH", "/api/v1/smart-lockers/devices/"+path, x.token(admin), body)
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		}
		found := func(query string) (names []string) {
			t.Helper()
			a := x.do("GET", "/api/v1/public/pickup-points?client_code=acme"+query, "", "")
			require.Equal(t, http.StatusOK, a.status, "%s", a.body)
			for _, p := range a.json["pickup_points"].([]any) {
				names = append(names, at(p, "name").(string))
				require.Equal(t, []any{"S", "M", "L", "XL"}, at(p, "sizes"))
			}
			return names
		}
		const school = "École d'Été"
		set("88", `{"device_name":"`+school+`"}`)
		set("89", `{"latitude":0,"longitude":0}`)
		for _, q := range []string{"École", "école", "ÉCOLE D'ÉTÉ", "été"} {
			require.Equal(t, []string{school}, found("&q="+strings.NewReplacer("É", "%C3%89", "é", "%C3%A9", " ", "%20").Replace(q)), q)
		}
		require.ElementsMatch(t, []string{school, x.w.Spare.Name}, found(""))
		require.Empty(t, found("&latitude=0&longitude=0"))
		require.Equal(t, []string{school}, found("&latitude=43.6446&longitude=-79.3849"))
		set("88", `{"status":"maintenance"}`)
		require.Equal(t, []string{x.w.Spare.Name}, found(""))
	})
}
