package rest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/webtest"
)

// Drivers and contractor of the world (webtest).
const driverID, brokerID = 4, 3

// route makes a route and gives its address.
func (r *rig) route(token, body string) string {
	r.t.Helper()
	x := r.made(r.do("POST", "/api/v1/routes", token, body), 201, "route")
	return "/api/v1/routes/" + strconv.Itoa(int(number(x["route_id"])))
}

// settings changes what the business wants.
func (r *rig) rules(body string) {
	r.t.Helper()
	g := r.do("PUT", "/api/v1/settings", r.w.Tokens[cloud.ClientAdmin], body)
	require.Equal(r.t, 200, g.status, "%s", g.body)
}

// TestRoutesOverREST walks a route through its addresses, as a dispatcher and a
// driver would.
func TestRoutesOverREST(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, driver := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.DriverAccount]
	a, _ := r.order(admin, "SO-1")
	b, _ := r.order(admin, "SO-2")
	require.Equal(t, 0.0, r.do("GET", "/api/v1/orders", driver, "").json["total"])
	r.refused(r.do("GET", "/api/v1/orders/"+a, driver, ""), 404, "ORDER_NOT_FOUND")

	one := r.route(admin, `{"name":"Morning","date":"2026-12-01","vehicle_name":"Van 3","start_at":"2026-12-01 08:00:00","end_at":"2026-12-01T13:00:00-05:00"}`)
	x := r.made(r.do("GET", one, admin, ""), 200, "route")
	require.Equal(t, "draft", x["status"])
	require.Equal(t, "2026-12-01T08:00:00-05:00", x["start_at"])
	require.Nil(t, x["planned_distance_km"])
	r.refused(r.do("GET", one, driver, ""), 404, "ROUTE_NOT_FOUND")
	g := r.do("POST", one+"/orders", admin, fmt.Sprintf(`{"order_ids":[%s,%s,%s,99]}`, a, b, b), "Accept-Language", "fr")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, []any{true, 2.0, 0.0}, []any{g.json["result"], g.json["added"], g.json["skipped"]})
	failed := g.json["errors"].([]any)[0].(map[string]any)
	require.Equal(t, "ORDER_NOT_FOUND", failed["code"])
	require.Contains(t, failed["message"], "commande")
	r.refused(r.do("POST", one+"/dispatch", admin, ""), 409, "DRIVER_REQUIRED")
	x = r.made(r.do("PATCH", one, admin, fmt.Sprintf(`{"driver_id":%d,"name":"Early"}`, driverID)), 200, "route")
	require.Equal(t, []any{"Early", "planned", "driver", 2.0}, []any{x["name"], x["status"], x["driver_name"], x["stop_count"]})
	require.Equal(t, "dispatched", r.made(r.do("POST", one+"/dispatch", admin, ""), 200, "route")["status"])

	list := r.do("GET", "/api/v1/orders?driver_id=4", driver, "")
	require.Equal(t, 2.0, list.json["total"], "%s", list.body)
	require.Equal(t, 0.0, r.do("GET", "/api/v1/orders?driver_id=5", driver, "").json["total"])
	require.Equal(t, 200, r.do("GET", "/api/v1/orders/"+a, driver, "").status)
	require.Equal(t, 1.0, r.do("GET", "/api/v1/driver/routes?date=2026-12-01", driver, "").json["total"])
	require.Equal(t, 0.0, r.do("GET", "/api/v1/driver/routes?date=2026-12-02", driver, "").json["total"])
	require.Equal(t, 200, r.do("GET", one, driver, "").status)

	act := func(order, verb, body string, status float64) {
		t.Helper()
		g := r.do("POST", "/api/v1/driver/orders/"+order+"/"+verb, driver, body)
		require.Equal(t, 200, g.status, "%s", g.body)
		require.Equal(t, status, g.json["order_status_id"])
	}
	act(a, "accept", "", 12)
	act(a, "start-delivery", "", 40)
	r.refused(r.do("POST", "/api/v1/driver/orders/"+a+"/start-pickup", driver, ""), 409, "ORDER_STATUS_CONFLICT")
	g = r.do("POST", "/api/v1/driver/orders/"+a+"/deliver", driver, `{"result":"failed","failure_code":"gremlins"}`, "Accept-Language", "de")
	r.refused(g, 422, "VALIDATION_FAILED")
	require.Contains(t, fmt.Sprint(g.json["errors"]), "Bitte einen Grund aus OTEP angeben")
	act(a, "deliver", `{"result":"failed","failure_code":"recipient_unavailable","follow_up":"redelivery"}`, 43)
	act(a, "start-delivery", "", 40)
	act(a, "deliver", `{"result":"success"}`, 41)
	act(b, "decline", `{"reason":"too big"}`, 1)
	x = r.made(r.do("GET", one, admin, ""), 200, "route")
	require.Equal(t, []any{"completed", 1.0, 1.0}, []any{x["status"], x["completed_count"], x["stop_count"]})
	for query, total := range map[string]float64{"": 1, "?status=completed": 1, "?status=planned": 0, "?date=2026-12-01&driver_id=4": 1, "?date_from=2026-12-02": 0, "?date_to=2026-12-01": 1, "?driver_id=9": 0,
		"?date=2026-12-01&date_from=2026-12-02": 0, "?broker_id=3": 0} {
		g = r.do("GET", "/api/v1/routes"+query, admin, "")
		require.Equal(t, total, g.json["total"], "%s: %s", query, g.body)
	}
	for _, query := range []string{"?status=lost", "?date=tomorrow", "?per_page=201", "?page=-1", "?sort=body"} {
		r.refused(r.do("GET", "/api/v1/routes"+query, admin, ""), 422, "VALIDATION_FAILED")
	}
	r.refused(r.do("POST", one+"/cancel", admin, ""), 409, "ROUTE_STATUS_CONFLICT")
	require.Equal(t, 200, r.do("POST", "/api/v1/orders/"+b+"/driver", admin, `{"driver_id":4}`).status)
	g = r.do("POST", "/api/v1/orders/"+b+"/driver", admin, `{"driver_id":null}`)
	require.Equal(t, []any{1.0, nil}, []any{g.json["order_status_id"], g.json["driver_id"]}, "%s", g.body)
}

// TestRoutesThatCannotBeMade names the member that is wrong.
func TestRoutesThatCannotBeMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	for body, field := range map[string]string{`{}`: "date", `{"date":"01.12.2026"}`: "date", `{"date":"2026-12-01","name":"` + strings.Repeat("x", 101) + `"}`: "name",
		`{"date":"2026-12-01","start_at":"soon"}`: "start_at", `{"date":"2026-12-01","start_at":"2026-12-01 09:00:00","end_at":"2026-12-01 09:00:00"}`: "end_at",
		`{"date":"2026-12-01","vehicle_id":-1}`: "vehicle_id", `{"date":"2026-12-01","broker_id":4}`: "broker_id", `{"date":"2026-12-01","broker_id":99}`: "broker_id"} {
		g := r.do("POST", "/api/v1/routes", admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field, body)
	}
	r.refused(r.do("POST", "/api/v1/routes", admin, `{"date":"2026-12-01","driver_id":99}`), 404, "DRIVER_NOT_FOUND")
	one := r.route(admin, `{"date":"2026-12-01"}`)
	for _, body := range []string{`{}`, `{"order_ids":[]}`, `{"order_ids":["x"]}`} {
		r.refused(r.do("POST", one+"/orders", admin, body), 422, "VALIDATION_FAILED")
	}
	r.refused(r.do("POST", one+"/dispatch", admin, ""), 409, "ROUTE_STATUS_CONFLICT")
}

// TestRoutesAreBoundToTheirTenant tries every operation of routes and drivers on
// those of another business: foreign ids answer like unknown ones.
func TestRoutesAreBoundToTheirTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	id, _ := r.order(admin, "SO-1")
	one := r.route(admin, fmt.Sprintf(`{"name":"Secret run","date":"2026-12-01","driver_id":%d}`, driverID))
	require.Equal(t, 1.0, r.do("POST", one+"/orders", admin, `{"order_ids":[`+id+`]}`).json["added"])
	route := one[strings.LastIndex(one, "/")+1:]
	stranger := r.w.Others[cloud.DriverAccount]
	before := string(r.do("GET", one, admin, "").body) + string(r.do("GET", "/api/v1/orders/"+id, admin, "").body)
	tried := 0
	for _, op := range r.s.cfg.Catalog.Operations() {
		area, _, _ := strings.Cut(op.Name, ".")
		if !slices.Contains([]string{"routes", "drivers", "driver"}, area) || op.Name == "driver.register" || op.Name == "driver.duty" || op.Name == "driver.location" || strings.HasPrefix(op.Name, "driver.push_token.") || op.Name == "routes.create" {
			continue
		}
		tried++
		token := r.w.OtherAdmin
		if area == "driver" {
			token = stranger
		}
		body := map[string]string{"routes.add": `{"order_ids":[` + id + `]}`, "routes.remove": `{"order_ids":[` + id + `]}`, "driver.orders.pickup": `{"result":"success"}`,
			"driver.orders.deliver": `{"result":"success"}`, "driver.orders.proof_files": proofForm}[op.Name]
		ask := func(route, order, driver string) got {
			return r.do(op.Method, strings.NewReplacer("{route_id}", route, "{order_id}", order, "{driver_id}", driver).Replace(op.Path), token, body)
		}
		theirs, unknown := ask(route, id, strconv.Itoa(driverID)), ask("777777", "777777", "777777")
		require.Equal(t, unknown.status, theirs.status, op.Name)
		require.Equal(t, unknown.code(), theirs.code(), op.Name)
		require.NotContains(t, string(theirs.body), "Secret run", op.Name)
		require.NotContains(t, string(theirs.body), "Moreau", op.Name)
		switch op.Name {
		case "routes.list", "driver.routes":
			require.Equal(t, 0.0, theirs.json["total"])
		case "drivers.list":
			require.Equal(t, 1.0, theirs.json["total"], "their own")
		case "driver.pushes.list":
			require.Empty(t, theirs.json["pushes"])
		case "driver.orders.ready":
			r.refused(theirs, 403, "FORBIDDEN")
		default:
			require.Equal(t, 404, theirs.status, op.Name)
		}
	}
	require.Equal(t, 21, tried)
	mine := r.route(r.w.OtherAdmin, `{"date":"2026-12-01"}`)
	g := r.do("POST", mine+"/orders", r.w.OtherAdmin, `{"order_ids":[`+id+`,777777]}`)
	require.Equal(t, []string{"ORDER_NOT_FOUND", "ORDER_NOT_FOUND"}, codesOf(g))
	r.refused(r.do("PATCH", mine, r.w.OtherAdmin, fmt.Sprintf(`{"driver_id":%d}`, driverID)), 404, "DRIVER_NOT_FOUND")
	require.Equal(t, before, string(r.do("GET", one, admin, "").body)+string(r.do("GET", "/api/v1/orders/"+id, admin, "").body))
}

func codesOf(g got) (out []string) {
	for _, e := range g.json["errors"].([]any) {
		out = append(out, e.(map[string]any)["code"].(string))
	}
	return out
}

// TestContractorsPlanTheirOwn: their routes, their drivers, the orders they hold.
func TestContractorsPlanTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, broker := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Broker]
	id, _ := r.order(admin, "SO-1")
	ours := r.route(admin, `{"date":"2026-12-01"}`)
	require.Equal(t, 0.0, r.do("GET", "/api/v1/drivers", broker, "").json["total"])
	r.refused(r.do("GET", "/api/v1/drivers/4", broker, ""), 404, "DRIVER_NOT_FOUND")
	r.refused(r.do("GET", ours, broker, ""), 404, "ROUTE_NOT_FOUND")
	r.refused(r.do("PATCH", "/api/v1/drivers/4", broker, `{"phone":"+14165550100"}`), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
	d := r.made(r.do("PATCH", "/api/v1/drivers/4", admin, fmt.Sprintf(`{"broker_id":%d,"phone":"+14165550100","skills":["fragile"],"vehicle":{"type":"van","capacity_weight":800.5},"shift":{"start":"22:00","end":"06:00"}}`, brokerID)), 200, "driver")
	require.Equal(t, 3.0, d["broker_id"])
	require.Equal(t, map[string]any{"start": "22:00", "end": "06:00"}, d["shift"])
	require.Equal(t, 800.5, d["vehicle"].(map[string]any)["capacity_weight"])
	require.Equal(t, 1.0, r.do("GET", "/api/v1/drivers", broker, "").json["total"])
	mine := r.route(broker, `{"date":"2026-12-01","driver_id":4}`)
	require.Equal(t, 3.0, r.made(r.do("GET", mine, admin, ""), 200, "route")["broker_id"])
	require.Equal(t, []string{"ORDER_NOT_FOUND"}, codesOf(r.do("POST", mine+"/orders", broker, `{"order_ids":[`+id+`]}`)))
	require.Equal(t, []string{"NOT_HELD_BY_CONTRACTOR"}, codesOf(r.do("POST", mine+"/orders", admin, `{"order_ids":[`+id+`]}`)))
	r.refused(r.do("PATCH", ours, admin, `{"driver_id":4}`), 409, "DRIVER_NOT_AVAILABLE")
	require.Equal(t, 1.0, r.do("GET", "/api/v1/drivers/4/routes?date=2026-12-01", broker, "").json["total"])
	require.Equal(t, 1.0, r.do("GET", "/api/v1/routes", broker, "").json["total"])
	require.Equal(t, 0.0, r.do("GET", "/api/v1/routes?broker_id=9", broker, "").json["total"])
	for body, field := range map[string]string{`{"status":"pending_review"}`: "status", `{"broker_id":4}`: "broker_id", `{"skills":[""]}`: "skills.0", `{"vehicle":{"capacity_packages":-1}}`: "vehicle.capacity_packages",
		`{"shift":{"start":"8"}}`: "shift.start", `{"phone":"` + strings.Repeat("1", 33) + `"}`: "phone"} {
		g := r.do("PATCH", "/api/v1/drivers/4", admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field, body)
	}
}

// TestDriverSettings: what the business lets drivers do, and wants of them.
func TestDriverSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, driver := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.DriverAccount]
	id, _ := r.order(admin, "SO-1")
	const orders = "/api/v1/driver/orders/"
	for _, x := range []string{id, "777777"} { // says nothing about which orders there are
		r.refused(r.do("POST", orders+x+"/ready", driver, ""), 403, "FORBIDDEN")
	}
	r.rules(`{"driver_may_mark_ready":true,"driver_acceptance_required":true}`)
	r.refused(r.do("POST", orders+"777777/ready", driver, ""), 404, "ORDER_NOT_FOUND")
	g := r.do("POST", orders+id+"/ready", driver, "")
	require.Equal(t, []any{200, 4.0}, []any{g.status, g.json["order_status_id"]}, "%s", g.body)
	r.refused(r.do("POST", orders+id+"/ready", driver, ""), 409, "ORDER_STATUS_CONFLICT")
	require.Equal(t, 200, r.do("POST", "/api/v1/orders/"+id+"/driver", admin, `{"driver_id":4}`).status)
	r.refused(r.do("POST", orders+id+"/start-delivery", driver, ""), 409, "ORDER_STATUS_CONFLICT")
	require.Equal(t, 200, r.do("POST", orders+id+"/accept", driver, "").status)
	require.Equal(t, 200, r.do("POST", orders+id+"/start-delivery", driver, "").status)

	held, _ := r.order(admin, "SO-2")
	n, _ := strconv.ParseInt(held, 10, 64)
	require.NoError(t, r.w.DB.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(42, cloud.OrderID(n))
		o.BrokerID = brokerID
		return &cloud.Changes{OrderChanges: cloud.OrderChanges{Orders: []cloud.Order{o}}}, err
	}))
	r.refused(r.do("POST", orders+held+"/ready", driver, ""), 404, "ORDER_NOT_FOUND")

	require.Equal(t, true, r.do("POST", "/api/v1/driver/duty", driver, `{"on_duty":true}`).json["on_duty"])
	require.Equal(t, true, r.made(r.do("GET", "/api/v1/drivers/4", admin, ""), 200, "driver")["on_duty"])
	require.Equal(t, 200, r.do("POST", "/api/v1/driver/duty", driver, `{"on_duty":true}`).status)
	require.Equal(t, false, r.do("POST", "/api/v1/driver/duty", driver, `{"on_duty":false}`).json["on_duty"])
	r.refused(r.do("POST", "/api/v1/driver/duty", driver, `{}`), 422, "VALIDATION_FAILED")
	audits, err := r.w.DB.ListAudits(t.Context(), 42, 0, 50)
	require.NoError(t, err)
	var duty []string
	for _, a := range audits {
		if strings.HasPrefix(a.Action, "driver_duty") {
			duty = append(duty, a.Action+" "+a.Detail)
		}
	}
	require.Len(t, duty, 2)
	for i, want := range []string{`driver_duty_off {`, `driver_duty_on {`} {
		require.Contains(t, duty[i], want)
		require.Contains(t, duty[i], []string{`"operation_type":2012`, `"operation_type":2011`}[i])
	}
}

// TestDriversRegister: no driver drives before an account of the business said so,
// and no caller learns which emails are known.
func TestDriversRegister(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const path, form = "/api/v1/driver/register", `{"client_code":"%s","name":"Sam Okafor","phone":"+14165550177","email":"%s","password":"%s","vehicle_type":"van","licence_number":"O1"}`
	register := func(code, email, password string) got {
		return r.do("POST", path, "", fmt.Sprintf(form, code, email, password))
	}
	g := register("acme", "Sam@Drivers.example", "long enough")
	require.Equal(t, 201, g.status, "%s", g.body)
	require.Equal(t, "pending_review", g.json["status"])
	id := strconv.Itoa(int(number(g.json["driver_id"])))
	login := func() got {
		return r.do("POST", "/api/v1/user/login", "", `{"email":"sam@drivers.example","password":"long enough"}`)
	}
	r.refused(login(), 403, "ACCOUNT_DISABLED")
	d := r.made(r.do("GET", "/api/v1/drivers/"+id, admin, ""), 200, "driver")
	require.Equal(t, []any{"pending_review", "+14165550177", "sam@drivers.example"}, []any{d["status"], d["phone"], d["email"]})
	require.Equal(t, "van", d["vehicle"].(map[string]any)["type"])
	r.refused(r.do("POST", "/api/v1/routes", admin, `{"date":"2026-12-01","driver_id":`+id+`}`), 409, "DRIVER_NOT_AVAILABLE")

	for _, email := range []string{"sam@drivers.example", r.w.Emails[cloud.ClientAdmin]} { // of a driver, and of another account
		other := register("acme", email, "another password")
		require.Equal(t, 201, other.status, "%s", other.body)
		require.Equal(t, []any{true, "pending_review"}, []any{other.json["result"], other.json["status"]})
		require.Len(t, other.json, len(g.json))
		r.refused(r.do("GET", fmt.Sprintf("/api/v1/drivers/%d", number(other.json["driver_id"])), admin, ""), 404, "DRIVER_NOT_FOUND")
	}
	second := register("other", "sam@drivers.example", "another password")
	r.made(r.do("GET", fmt.Sprintf("/api/v1/drivers/%d", number(second.json["driver_id"])), r.w.OtherAdmin, ""), 200, "driver")
	require.Equal(t, 200, r.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q}`, r.w.Emails[cloud.ClientAdmin], webtest.Password)).status, "the account is as it was")

	require.Equal(t, 200, r.do("PATCH", "/api/v1/users/"+id, admin, `{"enabled":true}`).status)
	require.Equal(t, 200, login().status)
	status := func() any { return r.made(r.do("GET", "/api/v1/drivers/"+id, admin, ""), 200, "driver")["status"] }
	require.Equal(t, "active", status())
	require.Equal(t, 200, r.do("PATCH", "/api/v1/users/"+id, admin, `{"enabled":false}`).status)
	require.Equal(t, "inactive", status(), "the review is over")
	require.Equal(t, "active", r.made(r.do("PATCH", "/api/v1/drivers/"+id, admin, `{"status":"active"}`), 200, "driver")["status"])
	require.Equal(t, 200, login().status)

	r.refused(register("nobody", "a@b.example", "long enough"), 404, "CLIENT_NOT_FOUND")
	for field, body := range map[string]string{"password": fmt.Sprintf(form, "acme", "a@b.example", "short"), "email": fmt.Sprintf(form, "acme", "a b", "long enough"), "name": `{"client_code":"acme"}`,
		"licence_number": `{"licence_number":"` + strings.Repeat("1", 33) + `"}`} {
		g := r.do("POST", path, "", body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}

	limited := newRig(t, func(o *options) { o.Limits = catalog.Limits{Anonymous: 2} })
	for range 2 {
		require.Equal(t, 422, limited.do("POST", path, "", `{}`).status)
	}
	limited.refused(limited.do("POST", path, "", `{}`), 429, "RATE_LIMITED")
}
