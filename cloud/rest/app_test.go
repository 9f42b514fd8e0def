package rest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/chat"
)

// An app gets its settings before any account has signed in, from a business that
// has none of them to one that has set everything.
func TestAppBootstrap(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const boot, conf = "/api/v1/apps/customer-app/clients/acme/bootstrap", "/api/v1/apps/customer-app"
	r.refused(r.do("GET", "/api/v1/apps/nosuch/clients/acme/bootstrap", "", ""), 404, "APP_NOT_FOUND")
	r.refused(r.do("GET", "/api/v1/apps/customer-app/clients/nosuch/bootstrap", "", ""), 404, "CLIENT_NOT_FOUND")
	r.refused(r.do("GET", boot, "", ""), 403, "APP_NOT_ENABLED_FOR_CLIENT")
	r.made(r.do("PUT", conf, admin, `{"enabled":true}`), 200, "app")

	g := r.do("GET", boot, "", "")
	d := r.made(g, 200, "data")
	require.Equal(t, []any{"send", "return", "lockers"}, d["settings"].(map[string]any)["home"].(map[string]any)["quick_actions"])
	can := d["capabilities"].(map[string]any)
	require.Equal(t, true, can["lockers"], "it has cabinets")
	require.Equal(t, false, can["wallet"])
	require.Equal(t, "unknown", d["version_policy"].(map[string]any)["status"])
	require.Equal(t, "Acme Logistics", d["client"].(map[string]any)["name"])
	require.Equal(t, "public, max-age=300", g.header("Cache-Control"))
	tag := g.header("ETag")
	require.Equal(t, `"`+d["etag"].(string)+`"`, tag)
	again := r.do("GET", boot, "", "", "If-None-Match", tag)
	require.Equal(t, 304, again.status)
	require.Empty(t, again.body)

	r.made(r.do("PUT", "/api/v1/settings", admin, `{"country":"CA","currency":"CAD"}`), 200, "settings")
	saved := r.made(r.do("PUT", conf, admin, `{"name":"Parcel Pal","colors":{"primary":"#112233"},"quick_actions":["pay","send"],"off":["return"],
		"versions":{"ios":{"latest":"2.4.0","minimum":"2.1.0","recommended":"2.3.0","store_url":"https://apps.example.com/x"}}}`), 200, "app")
	require.Equal(t, true, saved["enabled"], "what is absent stays")
	require.Equal(t, 200, r.do("GET", boot, "", "", "If-None-Match", tag).status, "it has changed")
	for version, status := range map[string]string{"2.0.9": "update_required", "2.1.0": "update_recommended", "2.3.0-rc.1": "update_recommended", "2.3.0": "ok", "3.0.0": "ok"} {
		d = r.made(r.do("GET", boot+"?platform=ios&app_version="+version, "", "", "Accept-Language", "fr"), 200, "data")
		p := d["version_policy"].(map[string]any)
		require.Equal(t, status, p["status"], version)
		require.Equal(t, status == "ok", p["message"] == nil)
		if status == "update_required" {
			require.Contains(t, p["message"], "Mettez")
		}
	}
	require.Equal(t, []any{"pay", "send"}, d["settings"].(map[string]any)["home"].(map[string]any)["quick_actions"], "in the client's order, whatever is off")
	require.Equal(t, false, d["capabilities"].(map[string]any)["return"])
	require.Equal(t, "#112233", d["branding"].(map[string]any)["colors"].(map[string]any)["primary"])
	require.Equal(t, "Parcel Pal", d["app"].(map[string]any)["name"])
	require.Equal(t, "CAD", d["client"].(map[string]any)["currency"])
	require.Equal(t, "Livraison locale", d["service_contracts"].([]any)[0].(map[string]any)["name"])

	for _, q := range []string{"?platform=web", "?app_version=new", "?app_version=2.x"} {
		r.refused(r.do("GET", boot+q, "", ""), 422, "VALIDATION_FAILED")
	}
	for _, body := range []string{`{"quick_actions":["fly"]}`, `{"quick_actions":["send","send"]}`, `{"colors":{"primary":"red"}}`, `{"colors":{"edge":"#112233"}}`, `{"logo_url":"http://x.example"}`,
		`{"off":["wallet"]}`, `{"versions":{"web":{}}}`, `{"versions":{"ios":{"latest":"new"}}}`, `{"radius":33}`, `{"dark_mode":"dusk"}`} {
		r.refused(r.do("PUT", conf, admin, body), 422, "VALIDATION_FAILED")
	}
	for _, body := range []string{`{"country":"Canada"}`, `{"currency":"C$"}`} {
		r.refused(r.do("PUT", "/api/v1/settings", admin, body), 422, "VALIDATION_FAILED")
	}
	r.refused(r.do("GET", conf, "", ""), 401, "UNAUTHENTICATED")
	r.refused(r.do("PUT", "/api/v1/apps/nosuch", admin, `{}`), 404, "APP_NOT_FOUND")
	require.Equal(t, false, r.made(r.do("GET", conf, r.w.OtherAdmin, ""), 200, "app")["enabled"], "another business has its own")
	require.Len(t, r.do("GET", "/api/v1/apps", admin, "").json["apps"], 2)
}

// While a family is off, every address of it says so, in the words of its gate.
func TestFamiliesThatAreOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, customer := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Customer]
	for _, path := range []string{"/api/v1/order-chat", "/api/v1/order-chat/orders/7/nothing", "/api/v1/ops-agent/sessions", "/api/v1/sms-marketing/campaigns/3/send"} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			r.refused(r.do(method, path, "", ""), 401, "UNAUTHENTICATED")
			for _, token := range []string{admin, customer} {
				g := r.do(method, path, token, "")
				r.refused(g, 409, "FEATURE_DISABLED")
				require.Equal(t, false, g.json["result"])
				require.Equal(t, false, g.json["feature_enabled"])
			}
		}
	}
	for _, op := range r.s.cfg.Catalog.Operations() {
		if op.Gate == chat.Feature {
			r.refused(r.do(op.Method, r.fill(op.Path), "", ""), 401, "UNAUTHENTICATED")
			for _, token := range []string{admin, customer} { // whether or not its row names them
				require.Equal(t, false, r.do(op.Method, r.fill(op.Path), token, "").json["feature_enabled"], op.Name)
			}
		}
	}
	r.refused(r.do("GET", "/api/v1/order-chatter", admin, ""), 404, "NOT_FOUND")
	r.made(r.do("PUT", "/api/v1/features/sms_marketing", admin, `{"enabled":true}`), 200, "feature")
	r.refused(r.do("GET", "/api/v1/sms-marketing/campaigns", customer, ""), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
	r.refused(r.do("GET", "/api/v1/sms-marketing/nosuch", admin, ""), 404, "NOT_FOUND")
	r.made(r.do("PUT", "/api/v1/admin/features/sms_marketing/42", r.w.Tokens[cloud.PlatformAdmin], `{"state":"revoked","enabled":true}`), 200, "feature")
	r.refused(r.do("GET", "/api/v1/sms-marketing/campaigns", admin, ""), 409, "FEATURE_REVOKED")
}

// A deployment can be without a family altogether.
func TestFamiliesThatAreNotThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *options) { o.Unavailable = []string{"contractor_assignment", "sms_marketing", "ops_agent"} })
	admin := r.w.Tokens[cloud.ClientAdmin]
	g := r.do("GET", "/api/v1/broker-order-assignments", admin, "")
	r.refused(g, 503, "MODULE_UNAVAILABLE")
	require.NotEmpty(t, g.header("Retry-After"))
	r.refused(r.do("GET", "/api/v1/broker-order-assignments", r.w.Tokens[cloud.Customer], ""), 503, "MODULE_UNAVAILABLE")
	r.refused(r.do("PUT", "/api/v1/features/sms_marketing", admin, `{"enabled":true}`), 409, "FEATURE_NOT_MIGRATED")
	r.refused(r.do("GET", "/api/v1/sms-marketing/settings", admin, ""), 409, "FEATURE_NOT_MIGRATED")
	r.refused(r.do("PUT", "/api/v1/features/ops_agent", admin, `{"enabled":true}`), 409, "FEATURE_DISABLED")
	for _, f := range r.do("GET", "/api/v1/features", admin, "").json["features"].([]any) {
		if f := f.(map[string]any); f["family"] != "order_chat" {
			require.Equal(t, false, f["enabled"], fmt.Sprint(f))
		}
	}
}
