package rest

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

const parcel = `{"type":"D","order_ref":"%s","recipient":{"name":"Ada Moreau","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},
	"packages":[{"weight":2.5,"weight_unit":"kg","dimension_unit":"cm"}],"note":"for staff","metadata":{"channel":"shop"}}`

// order makes an order and gives its id.
func (r *rig) order(token, ref string, headers ...string) (string, got) {
	r.t.Helper()
	g := r.do("POST", "/api/v1/client/orderCreate", token, fmt.Sprintf(parcel, ref), headers...)
	require.Equal(r.t, 201, g.status, "%s", g.body)
	return strconv.Itoa(int(g.json["order_id"].(float64))), g
}

// Text that no database takes is an error of its row, and of the whole body elsewhere.
func TestBatchTextThatNoDatabaseTakes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	path := "/api/v1/client/batchOrderCreateAsync"
	g := r.do("POST", path, admin, `{"orders":[`+fmt.Sprintf(parcel, "Z-1")+`,`+fmt.Sprintf(parcel, `Z\u0000`)+`]}`)
	require.Equal(t, 202, g.status, "%s", g.body)
	require.Equal(t, 2.0, g.json["total"])
	g = r.do("POST", path, admin, `{"orders":[`+fmt.Sprintf(parcel, `Z\u0000`)+`],"postback_url":"\u0000"}`)
	r.refused(g, 422, "VALIDATION_FAILED")
	require.Contains(t, g.json["errors"], "postback_url")
}

// TestOrdersOverREST walks an order through its addresses, as a shop would.
func TestOrdersOverREST(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	id, made := r.order(admin, "SO-1", "Idempotency-Key", "k1")
	again, twice := r.order(admin, "SO-1", "Idempotency-Key", "k1")
	require.Equal(t, id, again)
	require.Equal(t, string(made.body), string(twice.body))
	dup := r.do("POST", "/api/v1/client/orderCreate", admin, fmt.Sprintf(parcel, "SO-1"))
	r.refused(dup, 409, "DUPLICATE_ORDER_REF")
	require.Equal(t, made.json["order_id"], dup.json["details"].(map[string]any)["order_id"])

	one := "/api/v1/orders/" + id
	status := func(g got) string {
		t.Helper()
		require.Equal(t, 200, g.status, "%s", g.body)
		return g.json["order"].(map[string]any)["order_status"].(string)
	}
	fresh := status(r.do("GET", one, admin, ""))
	for _, by := range []string{"order_ref=SO-1", "order_id=" + id, "tracking_number=" + made.json["tracking_number"].(string)} {
		require.Equal(t, fresh, status(r.do("GET", "/api/v1/orders/detail?"+by, admin, "")))
	}
	held := status(r.do("POST", one+"/hold", admin, `{"reason":"customs"}`))
	require.NotEqual(t, fresh, held)
	require.Equal(t, fresh, status(r.do("POST", one+"/release", admin, `{}`)))
	g := r.do("PATCH", one, admin, `{"delivery_instruction":"ring twice"}`)
	require.Equal(t, "ring twice", g.json["order"].(map[string]any)["delivery_instruction"])

	state := r.do("GET", one, admin, "").json["order"].(map[string]any)["order_status_id"]
	for query, total := range map[string]int{"": 1, fmt.Sprintf("?status_ids=99,%v", state): 1, "?status_ids=99": 0, "?keyword=moreau": 1, "?keyword=nobody": 0} {
		g = r.do("GET", "/api/v1/orders"+query, admin, "")
		require.Equal(t, float64(total), g.json["total"], "%s: %s", query, g.body)
	}
	r.refused(r.do("GET", "/api/v1/orders?status_ids=1,x", admin, ""), 422, "VALIDATION_FAILED")
	g = r.do("GET", "/api/v1/orders/search?query=moreau&fields=recipient_name,phone", admin, "")
	require.Len(t, g.json["matches"], 1, "%s", g.body)

	g = r.do("POST", one+"/interceptions", admin, `{"outcome":"return_to_sender","reason":"wrong item"}`)
	require.Equal(t, 201, g.status, "%s", g.body)
	stop := strconv.Itoa(int(g.json["interception"].(map[string]any)["interception_id"].(float64)))
	r.refused(r.do("POST", one+"/interceptions", admin, `{"outcome":"dispose"}`), 409, "INTERCEPTION_OPEN")
	g = r.do("POST", "/api/v1/interceptions/"+stop+"/withdraw", admin, `{"reason":"found it"}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Len(t, r.do("GET", one+"/interceptions", admin, "").json["interceptions"], 1)

	cancelled := status(r.do("POST", one+"/cancel", admin, `{"reason":"changed mind"}`))
	require.NotEqual(t, fresh, cancelled)
	r.refused(r.do("POST", one+"/cancel", admin, `{}`), 409, "ORDER_NOT_CANCELLABLE")

	g = r.do("POST", "/api/v1/tracking/operationevents", admin, `{"order_ref":"SO-1"}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	require.GreaterOrEqual(t, g.json["total"], 6.0, "made, held, released, edited, stopped, taken back, cancelled")
}

// TestCustomersSeeTheirOwnOrders: not those of the business, and no notes of
// the staff.
func TestCustomersSeeTheirOwnOrders(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	customer := r.w.Tokens[cloud.Customer]
	theirs, _ := r.order(r.w.Tokens[cloud.ClientAdmin], "SO-1")
	own, _ := r.order(customer, "MINE")
	r.refused(r.do("GET", "/api/v1/orders/"+theirs, customer, ""), 404, "ORDER_NOT_FOUND")
	g := r.do("GET", "/api/v1/orders/"+own, customer, "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Nil(t, g.json["order"].(map[string]any)["note"])
	require.Equal(t, float64(1), r.do("GET", "/api/v1/orders", customer, "").json["total"])
}
