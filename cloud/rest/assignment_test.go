package rest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
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

// A row of the list has the members of the interface document with values of their
// kind; while its order is on a route, the contractor cannot give it back.
func TestRowsOfAssignments(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, broker := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Broker]
	const path = "/api/v1/broker-order-assignments"
	r.made(r.do("PUT", "/api/v1/admin/features/contractor_assignment/42", r.w.Tokens[cloud.PlatformAdmin], `{"state":"allowed","enabled":true}`), 200, "feature")
	id, _ := r.order(admin, "SO-8")
	require.Equal(t, 200, r.do("PATCH", "/api/v1/orders/"+id, admin, `{"scheduled_date":"2099-12-01"}`).status)
	assign := func(note int) got {
		return r.do("POST", path, admin, fmt.Sprintf(`{"order_ids":[%s],"broker_id":3,"note":%q}`, id, strings.Repeat("é", note)))
	}
	r.refused(assign(501), 422, "VALIDATION_FAILED")
	require.Equal(t, 1.0, assign(500).json["assigned"])
	staff, err := r.w.FindToken(t.Context(), auth.Hash(r.w.Tokens[cloud.ClientEmployee]))
	require.NoError(t, err)
	staff.Account.Permissions = []string{"orders:read"}
	r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{staff.Account}}})
	row := func() map[string]any {
		t.Helper()
		g := r.do("GET", path, r.w.Tokens[cloud.ClientEmployee], "")
		require.Equal(t, 200, g.status, "%s", g.body)
		return g.json["assignments"].([]any)[0].(map[string]any)
	}
	a := row()
	at, err := time.Parse(time.RFC3339, a["assigned_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, map[string]any{"id": a["id"], "order_id": a["order_id"], "order_ref": "SO-8", "order_status_id": 1.0, "scheduled_date": "2099-12-01", "route_id": nil, "broker_id": 3.0,
		"broker_name": "broker", "status": "active", "note": strings.Repeat("é", 500), "assigned_by": 1.0, "assigned_at": a["assigned_at"], "ended_by": nil, "ended_at": nil, "end_reason": nil}, a)
	require.Equal(t, id, fmt.Sprint(a["order_id"]))
	require.Positive(t, a["id"])
	for query, total := range map[string]float64{"?broker_id=3": 1, "?broker_id=4": 0, "?order_id=" + id: 1, "?order_id=999": 0, "?status=active": 1, "?status=revoked": 0} {
		require.Equal(t, total, r.do("GET", path+query, admin, "").json["total"], query)
	}
	require.Equal(t, 1.0, r.do("GET", path+"?broker_id=4", broker, "").json["total"], "a contractor's list is its own whatever it asks for")

	route := r.route(broker, `{"date":"2099-12-01"}`)
	require.Equal(t, 1.0, r.do("POST", route+"/orders", broker, `{"order_ids":[`+id+`]}`).json["added"])
	require.Equal(t, route, fmt.Sprint("/api/v1/routes/", row()["route_id"]))
	release := func(reason int) got {
		return r.do("POST", path+"/release", broker, fmt.Sprintf(`{"order_id":%s,"reason":%q}`, id, strings.Repeat("x", reason)))
	}
	r.refused(release(1), 400, "ORDER_ON_ROUTE")
	require.Equal(t, 200, r.do("POST", route+"/orders/remove", broker, `{"order_ids":[`+id+`]}`).status)
	r.refused(release(256), 422, "VALIDATION_FAILED")
	require.Equal(t, 200, release(255).status)
	a = row()
	require.Equal(t, []any{"released", 3.0, strings.Repeat("x", 255), nil}, []any{a["status"], a["ended_by"], a["end_reason"], a["route_id"]})
	_, err = time.Parse(time.RFC3339, a["ended_at"].(string))
	require.NoError(t, err)
	r.refused(r.do("GET", path+"?page=0", admin, ""), 422, "VALIDATION_FAILED")
	for _, typ := range []cloud.AccountType{cloud.Customer, cloud.DriverAccount, cloud.ProviderType} {
		r.refused(r.do("GET", path, r.w.Tokens[typ], ""), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
}
