package attack

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Any token of the business was taken for the owner of each of its parcels: an
// employee without permissions and a key for chats alone read names, postal codes,
// references and proofs on every face, and pulled all events.
func TestAttackTokensWithoutTheScopeAreNoOwners(t *testing.T) {
	t.Parallel()
	g := launch(t)
	p := g.order(g.box.Admin.Token, "SCOPE-1")
	const partner = "PARTNER-1" // of no order
	key := func(scope string) string {
		return g.must("POST", "/api/v1/user/api-keys", g.box.Admin.Token, fmt.Sprintf(`{"name":%q,"scopes":[%q]}`, scope, scope)).text("token")
	}
	require.NoError(t, g.server.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: 1, Types: []cloud.AccountType{cloud.ClientEmployee}, Page: cloud.Page{Sort: "id", Limit: 10}})
		for i := range list {
			list[i].Permissions = []string{}
		}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: list}, TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 9401, BusinessID: 1, Number: partner, Profile: "parcel", CreatedAt: time.Now().UTC()}}}}, err
	}))
	level := func(number, token string) string {
		return g.must("GET", "/api/v1/tracking/"+number, token, "").text("access.level")
	}
	for name, token := range map[string]string{"employee": g.box.Staff.Token, "key": key("chat:read")} {
		r := g.must("GET", "/api/v1/tracking/"+p.number, token, "")
		require.Equal(t, "public", r.text("access.level"), name)
		require.NotContains(t, r.raw, "SCOPE-1", name)
		query := fmt.Sprintf(`{"query":"{trackingPublic(trackingNumber:\"%s\"){access order_ref}}"}`, p.number)
		require.Equal(t, "public", g.must("POST", "/api/graphql", token, query).text("data.trackingPublic.access.level"), name)
		require.Equal(t, "public", level(partner, token), name)
		require.Equal(t, 403, g.call("GET", "/api/v1/otep/epcis/events", token, "").status, name)
	}
	orders, lockers := key("orders:read"), key("lockers:read")
	require.Equal(t, "owner", level(p.number, orders))
	require.Equal(t, "owner", level(partner, orders))
	require.Equal(t, "owner", level(partner, lockers))
	require.Equal(t, "public", level(p.number, lockers))
	require.Equal(t, "owner", level(p.number, key("orders:write")), "a write scope holds the read scope")
	for _, token := range []string{g.box.Admin.Token, g.box.Provider.Token, orders} {
		g.must("GET", "/api/v1/otep/epcis/events", token, "")
	}
}
