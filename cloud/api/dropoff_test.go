package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// A drop-off is read and cancelled by its sender's link, at any node. Any other key and any
// other caller is answered, byte for byte, as about a number that there is not.
func TestADropoffIsItsSenders(t *testing.T) { onBoth(t, askAsSender) }

func TestADropoffIsItsSendersAtAnyNode(t *testing.T) {
	t.Parallel()
	askAsSender(t, newWorldOfNodes(t))
}

func askAsSender(t *testing.T, x *world) {
	const dropoffs = "/api/v1/customer/lockers/dropoffs/"
	number := x.dropoff()
	key := x.links[number]
	id := cloud.DeliveryID(0)
	require.NoError(t, x.w.DB.Look(t.Context(), func(v cloud.View) error {
		d, err := v.DeliveryByNumber(number)
		id = d.ID
		return err
	}))
	calls := []struct{ method, path, body string }{{"GET", "", ""}, {"POST", "/cancel", "{}"}}
	for _, c := range calls {
		unknown := x.do(c.method, dropoffs+"LD-000999999"+c.path, "", c.body, "X-Tracking-Key", key)
		require.Equal(t, []any{http.StatusNotFound, "DELIVERY_NOT_FOUND"}, []any{unknown.status, unknown.code()})
		for name, wrong := range map[string]string{"none": "", "another sender's": webtest.Links.OfSender(id + 1), "a parcel's": webtest.Links.OfShipment(cloud.ShipmentID(id), 0), "an order's": webtest.Links.OfOrder(cloud.OrderID(id), 0),
			"a day's proof": webtest.Links.Until(key, time.Now().Add(time.Hour)), "cut short": key[:len(key)-1], "very long": strings.Repeat("A", 4000)} {
			a := x.do(c.method, dropoffs+number+c.path, "", c.body, "X-Tracking-Key", wrong)
			require.Equal(t, string(unknown.body), string(a.body), "%s %s", c.method, name)
		}
		for _, tokens := range []map[cloud.AccountType]string{x.w.Tokens, x.w.Others} {
			for typ, token := range tokens {
				token = x.login(token, "lockers:read", "lockers:write")
				none := x.do(c.method, dropoffs+"LD-000999999"+c.path, token, c.body)
				foreign := x.do(c.method, dropoffs+number+c.path, token, c.body)
				require.Equal(t, http.StatusNotFound, foreign.status, "%s %s: %s", c.method, typ, foreign.body)
				require.Equal(t, string(none.body), string(foreign.body), "%s %s", c.method, typ)
			}
		}
		require.Equal(t, "TOKEN_INVALID", x.do(c.method, dropoffs+number+c.path, "unknown", c.body, "X-Tracking-Key", key).code(), "a bad token is no anonymous call")
	}
	// The sender's key opens nothing of a delivery that waits for its recipient.
	waiting := webtest.Links.OfSender(x.w.Delivery.ID)
	require.Equal(t, http.StatusNotFound, x.do("GET", dropoffs+x.w.Delivery.Number, "", "", "X-Tracking-Key", waiting).status)
	require.Equal(t, http.StatusNotFound, x.do("POST", parcel, "", toSam, "X-Tracking-Key", waiting).status)

	shown := x.do("GET", dropoffs+number, "", "", "X-Tracking-Key", key)
	require.Equal(t, http.StatusOK, shown.status, "%s", shown.body)
	require.Equal(t, []any{"to_bring", "send", true}, []any{at(shown.json, "dropoff", "state"), at(shown.json, "dropoff", "purpose"), at(shown.json, "dropoff", "can_cancel")})
	code, _ := at(shown.json, "dropoff", "dropoff_code").(string)
	require.Len(t, code, 7)
	require.NotContains(t, string(shown.body), "4165550100", "the recipient's")
	require.NotContains(t, string(shown.body), "pickup_code")

	done := x.do("POST", dropoffs+number+"/cancel", "", "{}", "X-Tracking-Key", key)
	require.Equal(t, http.StatusOK, done.status, "%s", done.body)
	require.Equal(t, []any{"cancelled", nil, false}, []any{at(done.json, "dropoff", "state"), at(done.json, "dropoff", "dropoff_code"), at(done.json, "dropoff", "can_cancel")})
	again := x.do("POST", dropoffs+number+"/cancel", "", "{}", "X-Tracking-Key", key)
	require.Equal(t, []any{http.StatusConflict, "DELIVERY_STATE_CONFLICT", "cancelled"}, []any{again.status, again.code(), at(again.json, "details", "status")})
	for _, l := range x.audits() {
		for _, secret := range []string{code, key} {
			require.NotContains(t, l.Detail+l.Target+l.Actor, secret)
		}
	}
}
