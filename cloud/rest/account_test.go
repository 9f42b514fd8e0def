package rest

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
)

const keysPath = "/api/v1/user/api-keys"

// made is the object under a name in a good answer.
func (r *rig) made(g got, status int, name string) map[string]any {
	r.t.Helper()
	require.Equal(r.t, status, g.status, "%s", g.body)
	require.Equal(r.t, true, g.json["result"])
	out, ok := g.json[name].(map[string]any)
	require.True(r.t, ok, "%s", g.body)
	return out
}

func number(v any) int64 { return int64(v.(float64)) }

// A key is shown once, does what its scopes say and nothing else, and ends.
func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const cabinet = "/api/v1/smart-lockers/devices/88"

	g := r.do("POST", keysPath, admin, `{"name":"Nightly","scopes":["lockers:read","lockers:read"],"ip_allowlist":["0.0.0.0/0"]}`)
	key := r.made(g, 201, "api_key")
	token := g.json["token"].(string)
	require.Len(t, token, 64)
	require.Equal(t, []any{"lockers:read"}, key["scopes"])
	require.Equal(t, "ops-readonly", key["profile"])
	ends, err := time.Parse(time.RFC3339, key["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().AddDate(1, 0, 0), ends, time.Minute)

	require.Equal(t, 200, r.do("GET", cabinet, token, "").status)
	r.refused(r.do("POST", cabinet+"/grids/8809/unblock", token, "{}"), 403, "FORBIDDEN")
	for _, op := range []string{"GET " + keysPath, "POST " + keysPath, "DELETE " + keysPath + "/1", "GET " + keysPath + "/1"} {
		var method, path string
		fmt.Sscan(op, &method, &path)
		r.refused(r.do(method, path, token, `{"name":"another"}`), 403, "LOGIN_REQUIRED")
	}

	one := fmt.Sprintf("%s/%d", keysPath, number(key["id"]))
	require.NotContains(t, string(r.do("GET", one, admin, "").body), "token")
	require.Equal(t, "Nightly", r.made(r.do("GET", one, admin, ""), 200, "api_key")["name"])
	for _, other := range []string{r.w.Tokens[cloud.ClientEmployee], r.w.Tokens[cloud.Broker]} {
		r.refused(r.do("GET", one, other, ""), 404, "API_KEY_NOT_FOUND")
		r.refused(r.do("DELETE", one, other, ""), 404, "API_KEY_NOT_FOUND")
		require.Equal(t, 0.0, r.do("GET", keysPath, other, "").json["total"])
	}
	require.Equal(t, 1.0, r.do("GET", keysPath, admin, "").json["total"])
	require.Equal(t, 200, r.do("DELETE", one, admin, "").status)
	r.refused(r.do("GET", cabinet, token, ""), 401, "TOKEN_INVALID")
	r.refused(r.do("DELETE", one, admin, ""), 404, "API_KEY_NOT_FOUND")
	require.Equal(t, []any{}, r.do("GET", keysPath, admin, "").json["api_keys"])

	g = r.do("POST", keysPath, admin, `{"name":"Default"}`)
	r.refused(r.do("GET", cabinet, g.json["token"].(string), ""), 403, "FORBIDDEN")
	g = r.do("POST", keysPath, admin, `{"name":"Elsewhere","profile":"full","ip_allowlist":["203.0.113.9"]}`)
	r.refused(r.do("GET", cabinet, g.json["token"].(string), ""), 403, "IP_NOT_ALLOWED")
}

func TestKeysThatCannotBeMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	far := time.Now().AddDate(5, 0, 2).Format(time.DateTime)
	for field, body := range map[string]string{
		"name": `{}`, "scopes.1": `{"name":"x","scopes":["orders:read","orders:all"]}`, "profile": `{"name":"x","profile":"root"}`,
		"ip_allowlist.0": `{"name":"x","ip_allowlist":["example.com"]}`, "expires_at": `{"name":"x","expires_at":"2001-01-01"}`} {
		g := r.do("POST", keysPath, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	r.refused(r.do("POST", keysPath, admin, `{"name":"x","expires_at":"`+far+`"}`), 422, "VALIDATION_FAILED")
	for _, q := range []string{"?per_page=0", "?per_page=201", "?page=0", "?page=x", "?sort=hash"} {
		r.refused(r.do("GET", keysPath+q, admin, ""), 422, "VALIDATION_FAILED")
	}
	for range 100 {
		require.Equal(t, 201, r.do("POST", keysPath, admin, `{"name":"x"}`).status)
	}
	r.refused(r.do("POST", keysPath, admin, `{"name":"x"}`), 409, "KEY_LIMIT")
	g := r.do("GET", keysPath+"?per_page=60&page=2&sort=id", admin, "")
	require.Equal(t, 100.0, g.json["total"])
	list := g.json["api_keys"].([]any)
	require.Len(t, list, 40)
	require.Less(t, number(list[0].(map[string]any)["id"]), number(list[1].(map[string]any)["id"]))
	require.Equal(t, []any{}, r.do("GET", keysPath+"?page=1000000", admin, "").json["api_keys"], "beyond the end")
}

// What a key may not, it may not on any operation that has scopes.
func TestKeysAreNarrowedEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.made(r.do("PUT", "/api/v1/features/order_chat", r.w.Tokens[cloud.ClientAdmin], `{"enabled":true}`), 200, "feature")
	g := r.do("POST", keysPath, r.w.Tokens[cloud.ClientAdmin], `{"name":"x","scopes":["boards:read"]}`)
	token := g.json["token"].(string)
	tried := 0
	for _, op := range r.s.cfg.Catalog.Operations() {
		if len(op.Scopes) > 0 && op.Method != http.MethodOptions && admits(op, cloud.ClientAdmin) {
			tried++
			r.refused(r.do(op.Method, r.fill(op.Path), token, bodies[op.Name]), 403, "FORBIDDEN")
		}
	}
	require.GreaterOrEqual(t, tried, 2)
}

func admits(o catalog.Operation, t cloud.AccountType) bool {
	for _, x := range o.Types {
		if x == t {
			return true
		}
	}
	return false
}

func TestUsersOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const users = "/api/v1/users"
	u := r.made(r.do("POST", users, admin, `{"account_type":"client_employee","name":"Ana","email":" Ana@Acme.example","password":"long enough","permissions":["lockers:read"]}`), 201, "user")
	require.Equal(t, "ana@acme.example", u["email"])
	require.NotContains(t, fmt.Sprint(u), "argon2")
	one := fmt.Sprintf("%s/%d", users, number(u["id"]))
	g := r.do("POST", "/api/v1/user/login", "", `{"email":"ana@acme.example","password":"long enough"}`)
	require.Equal(t, 200, g.status, "%s", g.body)
	ana := g.json["access_token"].(string)
	const cabinet = "/api/v1/smart-lockers/devices/88"
	require.Equal(t, 200, r.do("GET", cabinet, ana, "").status)
	r.refused(r.do("GET", users, ana, ""), 403, "ACCOUNT_TYPE_NOT_ALLOWED")

	// What is taken away is gone at once, for logins and keys.
	key := r.do("POST", keysPath, ana, `{"name":"k","scopes":["lockers:read"]}`).json["token"].(string)
	require.Equal(t, 200, r.do("GET", cabinet, key, "").status)
	r.made(r.do("PATCH", one, admin, `{"permissions":[]}`), 200, "user")
	r.refused(r.do("GET", cabinet, ana, ""), 403, "FORBIDDEN")
	r.refused(r.do("GET", cabinet, key, ""), 403, "FORBIDDEN")
	u = r.made(r.do("PATCH", one, admin, `{"enabled":false,"name":"Ana B."}`), 200, "user")
	require.Equal(t, []any{"Ana B.", false, "ana@acme.example"}, []any{u["name"], u["enabled"], u["email"]})
	r.refused(r.do("GET", cabinet, ana, ""), 403, "ACCOUNT_DISABLED")
	r.refused(r.do("GET", cabinet, key, ""), 403, "ACCOUNT_DISABLED")
	r.made(r.do("PATCH", one, admin, `{"enabled":true,"permissions":["lockers:read"],"password":"another one"}`), 200, "user")
	r.refused(r.do("GET", cabinet, ana, ""), 401, "TOKEN_INVALID")
	require.Equal(t, 200, r.do("GET", cabinet, key, "").status, "a key is no login")

	for field, body := range map[string]string{"email": `{"email":"client_admin@42.example"}`, "account_type": `{"account_type":"platform_admin"}`, "permissions.0": `{"permissions":["root"]}`,
		"password": `{"password":"short"}`, "name": `{"name":" "}`} {
		g := r.do("PATCH", one, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	r.refused(r.do("POST", users, admin, `{}`), 422, "VALIDATION_FAILED")

	g = r.do("GET", users+"?sort=name&per_page=3", admin, "")
	require.Equal(t, 200, g.status, "%s", g.body)
	require.Equal(t, 6.0, g.json["total"])
	require.Equal(t, "Ana B.", g.json["users"].([]any)[0].(map[string]any)["name"])
	require.NotContains(t, string(r.do("GET", users, admin, "").body), "platform_admin")
	for _, other := range []string{one, users + "/5", users + "/6", users + "/20", users + "/x", users + "/999"} { // customer, platform, provider, none
		token := admin
		if other == one {
			token = r.w.OtherAdmin
		}
		r.refused(r.do("GET", other, token, ""), 404, "USER_NOT_FOUND")
		r.refused(r.do("PATCH", other, token, `{"password":"long enough"}`), 404, "USER_NOT_FOUND")
	}
}

// A business always keeps an admin who is let in, however many go at once.
func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store.DB{"sqlite": storetest.OpenSQLite, "postgres": storetest.OpenSecondPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rigOn(t, webtest.NewOn(t, open(t)), nil)
			admin := r.w.Tokens[cloud.ClientAdmin]
			r.made(r.do("PATCH", "/api/v1/users/22", admin, `{"enabled":false}`), 200, "user") // the other one
			for _, body := range []string{`{"enabled":false}`, `{"account_type":"broker"}`} {
				r.refused(r.do("PATCH", "/api/v1/users/1", admin, body), 409, "LAST_ADMIN")
			}
			r.made(r.do("PATCH", "/api/v1/users/1", admin, `{"name":"Still here"}`), 200, "user")
			for range 10 {
				r.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: 1, BusinessID: 42, Type: cloud.ClientAdmin, Email: "client_admin@42.example", Name: "a", Enabled: true},
					{ID: 22, BusinessID: 42, Type: cloud.ClientAdmin, Email: "former@42.example", Name: "b", Enabled: true}}}})
				var wg sync.WaitGroup
				for _, id := range []int{1, 22} {
					wg.Go(func() { r.do("PATCH", fmt.Sprint("/api/v1/users/", id), admin, `{"enabled":false}`) })
				}
				wg.Wait()
				require.NoError(t, r.w.DB.Look(t.Context(), func(v cloud.View) error {
					_, n, err := v.Accounts(cloud.AccountFilter{BusinessID: 42, Types: []cloud.AccountType{cloud.ClientAdmin}, Enabled: true, Page: cloud.Page{Sort: "id"}})
					require.Equal(t, 1, n.Total)
					return err
				}))
			}
		})
	}
}

func TestProvidersOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, rival := r.w.Tokens[cloud.ClientAdmin], r.w.OtherAdmin
	const providers = "/api/v1/providers"
	p := r.made(r.do("POST", providers, admin, `{"code":"quick-box","name":"Quick Box","services":["otep","locker"]}`), 201, "provider")
	require.Equal(t, []any{"partner", "own", false}, []any{p["source_type"], p["scope"], p["livemode_allowed"]})
	one := fmt.Sprintf("%s/%d", providers, number(p["id"]))
	p = r.made(r.do("PATCH", one, admin, `{"source_type":"carrier","scope":"all","livemode_allowed":true}`), 200, "provider")
	require.Equal(t, []any{"carrier", "all", true, "quick-box"}, []any{p["source_type"], p["scope"], p["livemode_allowed"], p["code"]})
	require.Equal(t, p, r.made(r.do("GET", one, admin, ""), 200, "provider"))
	for field, body := range map[string]string{"code": `{"code":"swiftparcel"}`, "source_type": `{"source_type":"ufo"}`, "scope": `{"scope":"world"}`, "services.0": `{"services":["taxi"]}`, "name": `{"name":""}`} {
		g := r.do("PATCH", one, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	r.refused(r.do("PATCH", one, admin, `{"code":"Quick Box"}`), 422, "VALIDATION_FAILED")
	r.refused(r.do("POST", providers, admin, `{}`), 422, "VALIDATION_FAILED")
	require.Equal(t, 2.0, r.do("GET", providers+"?sort=-code", admin, "").json["total"])

	require.Equal(t, []any{}, r.do("GET", one+"/tokens", admin, "").json["tokens"])
	r.refused(r.do("POST", one+"/tokens", admin, `{}`), 422, "VALIDATION_FAILED")
	g := r.do("POST", one+"/tokens", admin, `{"name":"Production"}`)
	made := r.made(g, 201, "provider_token")
	token := g.json["token"].(string)
	require.Equal(t, "quick-box", r.made(r.do("GET", base+"/me", token, ""), 200, "provider")["code"])
	g = r.do("GET", one+"/tokens", admin, "")
	require.Equal(t, []any{made}, g.json["tokens"], "%s", g.body)
	require.NotContains(t, string(g.body), token)
	revoke := fmt.Sprintf("%s/tokens/%d", one, number(made["id"]))
	for method, path := range map[string]string{"GET": one, "PATCH": one, "POST": one + "/tokens", "DELETE": revoke} {
		r.refused(r.do(method, path, rival, `{"name":"x"}`), 404, "PROVIDER_NOT_FOUND")
	}
	r.refused(r.do("GET", one+"/tokens", rival, ""), 404, "PROVIDER_NOT_FOUND")
	require.Equal(t, 1.0, r.do("GET", providers, rival, "").json["total"], "its own")
	r.refused(r.do("DELETE", providers+"/17/tokens/"+fmt.Sprint(number(made["id"])), admin, ""), 404, "TOKEN_NOT_FOUND")
	require.Equal(t, 200, r.do("DELETE", revoke, admin, "").status)
	r.refused(r.do("GET", base+"/me", token, ""), 401, "TOKEN_INVALID")
	r.refused(r.do("DELETE", revoke, admin, ""), 404, "TOKEN_NOT_FOUND")
}

func TestCustomersOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, rival := r.w.Tokens[cloud.ClientAdmin], r.w.OtherAdmin
	const customers = "/api/v1/customers"
	c := r.made(r.do("POST", customers, admin, `{"name":"Maple Books","email":"shop@maple.example","password":"long enough","price_hidden_families":["ltl","label","ltl"]}`), 201, "customer")
	require.Equal(t, []any{"label", "ltl"}, c["price_hidden_families"])
	one := fmt.Sprintf("%s/%d", customers, number(c["id"]))
	require.Equal(t, c, r.made(r.do("GET", one, admin, ""), 200, "customer"))
	g := r.do("POST", "/api/v1/user/login", "", `{"email":"shop@maple.example","password":"long enough"}`)
	require.Equal(t, c["id"], r.made(g, 200, "user")["customer_id"])
	r.refused(r.do("GET", customers, g.json["access_token"].(string), ""), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
	c = r.made(r.do("PATCH", one, admin, `{"price_hidden_families":[],"name":"Maple"}`), 200, "customer")
	require.Equal(t, []any{[]any{}, "Maple", true}, []any{c["price_hidden_families"], c["name"], c["enabled"]})
	for field, body := range map[string]string{"price_hidden_families.0": `{"price_hidden_families":["taxi"]}`, "email": `{"email":"no"}`} {
		g := r.do("PATCH", one, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	require.Equal(t, 2.0, r.do("GET", customers, admin, "").json["total"])
	require.Equal(t, 1.0, r.do("GET", customers, rival, "").json["total"], "its own")
	r.refused(r.do("GET", one, rival, ""), 404, "CUSTOMER_NOT_FOUND")
	r.refused(r.do("PATCH", one, rival, `{"name":"x"}`), 404, "CUSTOMER_NOT_FOUND")
	r.refused(r.do("PATCH", customers+"/1", admin, `{"enabled":false}`), 404, "CUSTOMER_NOT_FOUND")
}

func TestSettingsOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, rival := r.w.Tokens[cloud.ClientAdmin], r.w.OtherAdmin
	const settings = "/api/v1/settings"
	fresh := map[string]any{"timezone": "America/Toronto", "default_locale": "en", "country": nil, "currency": nil, "correction_window_minutes": 15.0, "interception_review": false, "allow_self_approval": false,
		"exact_geocodes": false, "signature_required": false, "photo_required": false, "second_factor_required": false, "driver_may_mark_ready": false, "driver_acceptance_required": false, "locker_returns": false}
	require.Equal(t, fresh, r.made(r.do("GET", settings, admin, ""), 200, "settings"))
	before := r.made(r.do("GET", settings, rival, ""), 200, "settings")
	for _, name := range []string{"interception_review", "allow_self_approval", "exact_geocodes", "signature_required", "photo_required", "driver_may_mark_ready", "driver_acceptance_required", "locker_returns"} {
		fresh[name] = true
		require.Equal(t, fresh, r.made(r.do("PUT", settings, admin, `{"`+name+`":true}`), 200, "settings"), "only what was named")
	}
	fresh["timezone"], fresh["default_locale"], fresh["correction_window_minutes"] = "Asia/Shanghai", "zh-Hans", 0.0
	r.made(r.do("PUT", settings, admin, `{"timezone":"Asia/Shanghai","default_locale":"zh-Hans","correction_window_minutes":0}`), 200, "settings")
	require.Equal(t, fresh, r.made(r.do("GET", settings, admin, ""), 200, "settings"))
	require.Equal(t, before, r.made(r.do("GET", settings, rival, ""), 200, "settings"), "another business keeps its own")
	for field, body := range map[string]string{"timezone": `{"timezone":"Mars/Base"}`, "default_locale": `{"default_locale":"xx"}`, "correction_window_minutes": `{"correction_window_minutes":61}`} {
		g := r.do("PUT", settings, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	r.refused(r.do("POST", base+fmt.Sprintf("/deliveries/%d/correction", r.w.Delivery.ID), r.provider(), `{"reason":"wrong parcel"}`), 409, "CORRECTION_WINDOW_CLOSED")
}

func TestFeaturesOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := account.New(account.Config{Store: r.w.DB})
	gate := func(family string) string {
		var e *cloud.Error
		if errors.As(s.Gate(t.Context(), 42, family), &e) {
			return e.Code
		}
		return ""
	}
	admin, platform := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.PlatformAdmin]
	const features, grant = "/api/v1/features", "/api/v1/admin/features"
	require.Len(t, r.do("GET", features, admin, "").json["features"], 4)
	others := string(r.do("GET", features, r.w.OtherAdmin, "").body)
	require.Equal(t, "FEATURE_DISABLED", gate("sms_marketing"))
	r.made(r.do("PUT", grant+"/contractor_assignment/42", platform, `{"state":"allowed","enabled":false}`), 200, "feature")
	require.Equal(t, "MODULE_DISABLED", gate("contractor_assignment"))
	require.Equal(t, true, r.made(r.do("PUT", features+"/sms_marketing", admin, `{"enabled":true}`), 200, "feature")["enabled"])
	require.Equal(t, "", gate("sms_marketing"))
	r.refused(r.do("PUT", features+"/contractor_assignment", admin, `{"enabled":true}`), 403, "FORBIDDEN")
	r.refused(r.do("PUT", features+"/nosuch", admin, `{"enabled":true}`), 404, "FEATURE_NOT_FOUND")
	r.refused(r.do("PUT", features+"/order_chat", admin, `{}`), 422, "VALIDATION_FAILED")
	r.made(r.do("PUT", grant+"/contractor_assignment/42", platform, `{"state":"allowed","enabled":true}`), 200, "feature")
	require.Equal(t, "", gate("contractor_assignment"))
	require.Equal(t, "revoked", r.made(r.do("PUT", grant+"/sms_marketing/42", platform, `{"state":"revoked","enabled":true}`), 200, "feature")["state"])
	require.Equal(t, "FEATURE_REVOKED", gate("sms_marketing"))
	r.refused(r.do("PUT", features+"/sms_marketing", admin, `{"enabled":true}`), 409, "FEATURE_REVOKED")
	r.refused(r.do("PUT", grant+"/sms_marketing/999", platform, `{"state":"allowed","enabled":true}`), 404, "BUSINESS_NOT_FOUND")
	r.refused(r.do("PUT", grant+"/sms_marketing/42", platform, `{"state":"maybe","enabled":true}`), 422, "VALIDATION_FAILED")
	require.Equal(t, others, string(r.do("GET", features, r.w.OtherAdmin, "").body), "another business has its own")
}

// A provider that may use test lockers only reserves no door of a real one.
func TestProvidersForTestsReserveNoRealDoor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, body := r.w.Tokens[cloud.ClientAdmin], bodies["third_party.deliveries.create"]
	p := r.made(r.do("POST", "/api/v1/providers", admin, `{"code":"tester","name":"Tester","services":["locker"]}`), 201, "provider")
	one := fmt.Sprint("/api/v1/providers/", number(p["id"]))
	g := r.do("POST", one+"/tokens", admin, `{"name":"x"}`)
	require.Equal(t, 201, g.status, "%s", g.body)
	token, _ := g.json["token"].(string)
	r.refused(r.do("POST", base+"/deliveries", token, body), 403, "LIVEMODE_NOT_ALLOWED")
	require.Equal(t, 200, r.do("PATCH", one, admin, `{"livemode_allowed":true}`).status)
	require.Equal(t, 201, r.do("POST", base+"/deliveries", token, body).status)
}
