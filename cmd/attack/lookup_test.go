package attack

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/peer"
	"github.com/postern-io/postern/cloud/server"
)

// counted is a cloud with the usual limits of people without an account, which
// believes its callers' addresses.
func counted(t *testing.T, rates map[string]int) *gateway {
	t.Helper()
	proxies, err := peer.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "")
	require.NoError(t, err)
	return launch(t, func(c *server.Config) {
		c.Limits, c.Rates, c.Proxies = catalog.Limits{Authenticated: -1}, rates, proxies
	})
}

// from sends a request of a stranger at an address.
func (g *gateway) from(address, method, path, body string, headers ...string) result {
	g.t.Helper()
	return g.call(method, path, "", body, append(headers, "X-Forwarded-For", address)...)
}

// Two limiters counted lookups, and the second one knew addresses only: thirty
// people in one house who reload their parcels shut each other out.
func TestAttackThirtyRecipientsBehindOneAddress(t *testing.T) {
	t.Parallel()
	g := counted(t, nil)
	parcels := make([]parcel, 30)
	for i := range parcels {
		parcels[i] = g.order(g.box.Admin.Token, fmt.Sprintf("HOUSE-%d", i))
	}
	const house = "198.51.100.7"
	for range 4 {
		for _, p := range parcels {
			for _, path := range []string{"/api/v1/tracking/", "/track/", "/api/v1/otep/trackings/"} {
				r := g.from(house, "GET", path+p.number, "")
				require.Equal(t, 200, r.status, r.raw)
			}
		}
	}
	t.Run("beside one who guesses numbers", func(t *testing.T) {
		// Guesses come back at one a second: on a slow machine some did since.
		stopped := func(path string, header ...string) bool {
			for range 200 {
				if g.from(house, "GET", "/api/v1/tracking/"+cloud.NewTrackingNumber(), "").status == 429 && g.from(house, "GET", path, "", header...).status == 429 {
					return true
				}
			}
			return false
		}
		require.True(t, stopped("/api/v1/tracking/"+cloud.NewTrackingNumber()), "guesses are bounded")
		for _, p := range parcels {
			require.Equal(t, 200, g.from(house, "GET", "/track/"+p.number, "").status, "those who watch a parcel go on")
		}
		fresh := g.order(g.box.Admin.Token, "HOUSE-31")
		require.True(t, stopped("/api/v1/tracking/"+fresh.number))
		require.Equal(t, 200, g.from(house, "GET", "/api/v1/tracking/"+fresh.number, "", "X-Tracking-Key", fresh.key(t)).status, "the link is no guess")
		require.True(t, stopped("/api/v1/tracking/"+cloud.NewTrackingNumber(), "X-Tracking-Key", fresh.key(t)), "of another parcel it is")
	})
	t.Run("one who reloads without end", func(t *testing.T) {
		last := 0
		for range 70 {
			last = g.from("203.0.113.9", "GET", "/api/v1/tracking/"+parcels[0].number, "").status
		}
		require.Equal(t, 429, last)
		require.Equal(t, 200, g.from("203.0.113.9", "GET", "/api/v1/tracking/"+parcels[1].number, "").status)
	})
}

// Nothing counted what all addresses together ask about one parcel.
func TestAttackOneParcelFromManyAddresses(t *testing.T) {
	t.Parallel()
	g := counted(t, map[string]int{"parcel_all": 100})
	p, other := g.order(g.box.Admin.Token, "MANY-1"), g.order(g.box.Admin.Token, "MANY-2")
	refused := 0
	for i := range 220 {
		path := []string{"/api/v1/tracking/", "/api/v1/otep/trackings/", "/track/"}[i%3]
		if r := g.from(fmt.Sprintf("203.%d.%d.9", i/200, i%200), "GET", path+p.number, ""); r.status == 429 {
			require.NotEmpty(t, r.header.Get("Retry-After"))
			refused++
		}
	}
	require.Greater(t, refused, 100, "one parcel is slowed, whichever address asks")
	require.Equal(t, 429, g.from("192.0.2.1", "GET", "/api/v1/tracking/"+strings.ToLower(p.number[:6]+" "+p.number[6:]), "").status, "however it is written")
	require.Equal(t, 200, g.from("192.0.2.1", "GET", "/api/v1/tracking/"+other.number, "").status, "another parcel is not slowed")
	require.Equal(t, 200, g.from("192.0.2.1", "GET", "/api/v1/tracking/"+p.number, "", "X-Tracking-Key", p.key(t)).status, "the recipient has the link")
	require.Equal(t, 200, g.from("192.0.2.2", "GET", "/track/"+p.number, "", "Cookie", "postern_parcel="+p.key(t)).status)
	require.Equal(t, 429, g.from("192.0.2.2", "GET", "/track/"+p.number, "", "Cookie", "postern_parcel="+other.key(t)).status)
	require.Equal(t, 200, g.call("GET", "/api/v1/tracking/"+p.number, g.box.Admin.Token, "").status, "its owner is not limited by it")
}

// A document of GraphQL with ten fields is ten guesses.
func TestAttackGuessesInOneDocument(t *testing.T) {
	t.Parallel()
	g := counted(t, nil)
	document := func() result {
		var fields strings.Builder
		for i := range 10 {
			fmt.Fprintf(&fields, `g%d:trackingPublic(trackingNumber:\"%s\"){order_ref} `, i, cloud.NewTrackingNumber())
		}
		return g.from("198.51.100.8", "POST", "/api/graphql", `{"query":"{`+fields.String()+`}"}`)
	}
	p := g.order(g.box.Admin.Token, "DOC-1")
	require.NotContains(t, document().raw, "RATE_LIMITED")
	document()
	require.Contains(t, document().raw, "RATE_LIMITED", "a document costs its size")
	require.Equal(t, 429, g.from("198.51.100.8", "GET", "/api/v1/tracking/"+p.number, "").status)
	require.Equal(t, 200, g.from("198.51.100.9", "GET", "/api/v1/tracking/"+p.number, "").status)
}
