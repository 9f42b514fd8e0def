package page_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/webtest"
)

// A recipient's page: by the link, which leaves the address; by digits, which are
// looked at five times; in every language.
func TestTheRecipientShowsWhoTheyAre(t *testing.T) {
	t.Parallel()
	keys := linkKey
	fresh := func() *rig { return newRig(t, nil) }
	path := "/track/" + webtest.Waiting
	const door = ">A-3<"
	t.Run("by the link", func(t *testing.T) {
		r := fresh()
		require.NotContains(t, r.do("GET", path, nil).body, door)
		s, err := r.w.DB.FindShipment(t.Context(), webtest.Waiting)
		require.NoError(t, err)
		g := r.do("GET", path+"?lang=fr&k="+keys.OfShipment(s.ID, 0), nil)
		require.Equal(t, 303, g.status)
		require.Equal(t, path+"?lang=fr", g.header("Location"))
		require.Contains(t, g.set["postern_parcel"], "HttpOnly")
		require.Contains(t, g.set["postern_parcel"], "path="+path)
		g = r.do("GET", path, nil)
		require.Contains(t, g.body, door)
		require.NotContains(t, g.body, `name="digits"`)
		require.NotContains(t, g.body, keys.OfShipment(s.ID, 0))
	})
	t.Run("by another link", func(t *testing.T) {
		r := fresh()
		for _, key := range []string{keys.OfShipment(999, 0), keys.OfOrder(1, 0), "x", "a%0d%0ab", "%3Cscript%3E"} {
			require.Equal(t, 303, r.do("GET", path+"?k="+key, nil).status)
			g := r.do("GET", path, nil)
			require.NotContains(t, g.body, door)
			clean(t, r, g)
		}
	})
	t.Run("by digits", func(t *testing.T) {
		r := fresh()
		give := func(digits string) got { return r.do("POST", path, url.Values{"do": {"verify"}, "digits": {digits}}) }
		for _, bad := range []string{"", "12", "abcd"} {
			g := give(bad)
			require.Equal(t, 422, g.status)
			clean(t, r, g)
		}
		g := give("9999")
		require.Equal(t, 422, g.status, "what is no guess does not count")
		require.Contains(t, g.body, locale.Word("en", "track.wrong"))
		g = give("0123")
		require.Equal(t, 303, g.status)
		require.Equal(t, path, g.header("Location"))
		require.Contains(t, r.do("GET", path, nil).body, door)
		require.Equal(t, 403, r.do("POST", path, url.Values{"do": {"verify"}, "digits": {"0123"}}, "Sec-Fetch-Site", "cross-site").status)
		delete(r.cookies, "postern_parcel")
		for range 4 {
			require.Equal(t, 422, give("9998").status)
		}
		for _, l := range locale.All() {
			r.cookies["postern_lang"] = l.Code
			g := give("0123")
			require.Equal(t, 429, g.status)
			require.Equal(t, "900", g.header("Retry-After"))
			require.Contains(t, g.body, locale.Word(l.Code, "track.locked", "15"))
			require.NotContains(t, g.body, door)
			clean(t, r, g)
		}
		r.signedIn()
		for _, l := range locale.All() {
			r.cookies["postern_lang"] = l.Code
			g := r.do("GET", "/console", nil)
			require.Contains(t, g.body, webtest.Waiting)
			require.Contains(t, g.body, locale.Value(l.Code, "exception", "proof_locked"))
		}
	})
}
