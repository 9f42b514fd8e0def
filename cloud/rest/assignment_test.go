package rest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// An order goes to a contractor and comes back, through the addresses of the
// interface document, in two languages.
func TestContractorAssignmentOverREST(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, staff, broker := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.ClientEmployee], r.w.Tokens[cloud.Broker]
	const path = "/api/v1/broker-order-assignments"
	id, _ := r.order(admin, "SO-7")
	other, _ := r.order(r.w.OtherAdmin, "SO-7")
	body := fmt.Sprintf(`{"order_ids":[%s,%s],"broker_id":3,"note":"before noon"}`, id, other)

	// The gate comes before everything but the question who asks.
	platform := r.w.Tokens[cloud.PlatformAdmin]
	const grant = "/api/v1/admin/features/contractor_assignment/42"
	r.made(r.do("PUT", grant, platform, `{"state":"allowed","enabled":false}`), 200, "feature")
	r.refused(r.do("GET", path, "", ""), 401, "UNAUTHENTICATED")
	for _, token := range []string{admin, broker, r.w.Tokens[cloud.Customer]} {
		r.refused(r.do("GET", path, token, ""), 403, "MODULE_DISABLED")
		r.refused(r.do("POST", path, token, body), 403, "MODULE_DISABLED")
	}
	r.made(r.do("PUT", grant, platform, `{"state":"allowed","enabled":true}`), 200, "feature")
	for call, token := range map[string]string{"GET " + path: r.w.Tokens[cloud.Customer], "POST " + path: staff, "POST " + path + "/revoke": staff, "POST " + path + "/release": admin} {
		var method, p string
		fmt.Sscan(call, &method, &p)
		r.refused(r.do(method, p, token, body), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
	}

	g := r.do("POST", path, admin, body, "Accept-Language", "de")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, 1.0, g.json["assigned"])
	require.Equal(t, 1.0, g.json["skipped"])
	why := g.json["errors"].([]any)[0].(map[string]any)
	require.Equal(t, "ORDER_NOT_FOUND", why["code"], "another business's order is none")
	require.Contains(t, why["message"], "Auftrag")
	require.Contains(t, fmt.Sprint(r.do("POST", path, admin, body).json["errors"]), "This contractor has the order already")

	g = r.do("GET", path+"?status=active", broker, "")
	require.Equal(t, 1.0, g.json["total"], "%s", g.body)
	a := g.json["assignments"].([]any)[0].(map[string]any)
	require.Equal(t, "SO-7", a["order_ref"])
	require.Nil(t, a["ended_at"])
	require.Equal(t, 200, r.do("GET", "/api/v1/orders/"+id, broker, "").status)
	require.Equal(t, 1.0, r.do("GET", "/api/v1/orders", broker, "").json["total"])

	r.refused(r.do("POST", path, admin, `{"order_ids":[],"broker_id":3}`), 422, "VALIDATION_FAILED")
	r.refused(r.do("POST", path, admin, fmt.Sprintf(`{"order_ids":[%s],"broker_id":5}`, id)), 422, "VALIDATION_FAILED")
	r.refused(r.do("GET", path+"?status=lost", admin, ""), 422, "VALIDATION_FAILED")
	r.refused(r.do("GET", path+"?per_page=201", admin, ""), 422, "VALIDATION_FAILED")

	r.refused(r.do("POST", path+"/release", broker, `{"order_id":`+other+`}`), 400, "NOT_ASSIGNED")
	g = r.do("POST", path+"/release", broker, `{"order_id":`+id+`,"reason":"no van"}`, "Accept-Language", "fr")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Contains(t, g.json["message"], "commande")
	r.refused(r.do("GET", "/api/v1/orders/"+id, broker, ""), 404, "ORDER_NOT_FOUND")
	r.refused(r.do("POST", path+"/release", broker, `{"order_id":`+id+`}`), 400, "NOT_ASSIGNED")
	g = r.do("POST", path+"/revoke", admin, `{"order_ids":[`+id+`]}`)
	require.Equal(t, false, g.json["result"])
	require.Equal(t, 1.0, g.json["skipped"])
}
