package server

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postern-io/postern/cloud/locker"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

const hookSecret = "0123456789abcdef0123456789abcdef"

// Everything that people do by hand with webhooks, against a running cloud and
// a receiver that really gets what is sent.
func TestWebhooksByHand(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls and packets")
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); webhooksByHand(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); webhooksByHand(t, storetest.SecondPostgresURL(t)) })
}

func webhooksByHand(t *testing.T, database string) {
	w := newHookWorld(t, database)
	admin, customer := w.box.Admin.Token, w.box.Customer.Token
	at := func(path string) string { return w.hook.URL + path }
	good := func(method, path, token string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, token, body)
		require.Equal(t, 200, status, "%v", out)
		return out
	}
	log := func(id any) map[string]any {
		t.Helper()
		return good("GET", fmt.Sprintf("/api/v1/webhook-delivery-logs/%.0f", id), admin, nil)["log"].(map[string]any)
	}
	verify := func(g told, secret string) {
		t.Helper()
		require.NoError(t, signature.VerifyV2(g.head.Get, g.body, time.Now(), []byte(secret)))
		require.NoError(t, signature.VerifyLegacy(g.head.Get, g.body, []byte(secret)))
	}

	// A test needs an address and a secret; with both of its own it needs no settings.
	status, out := w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{})
	require.Equal(t, 422, status, "%v", out)
	status, out = w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/x")})
	require.Equal(t, 422, status, "%v", out)
	status, out = w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": "http://169.254.169.254/", "secret": hookSecret})
	require.Equal(t, []any{422, "BLOCKED_URL"}, []any{status, out["error_code"]})
	status, _ = w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/x"), "secret": hookSecret, "event": "order.unheard_of"})
	require.Equal(t, 422, status)
	require.Empty(t, w.got())
	out = good("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/x"), "secret": "another-secret-of-mine"})
	require.Equal(t, []any{true, 200.0, nil}, []any{out["delivered"], out["http_status"], out["error"]})
	g := w.got()[0]
	verify(g, "another-secret-of-mine")
	require.Equal(t, []string{"1", "1"}, []string{g.head.Get("X-Webhook-Test"), g.head.Get("X-Webhook-Attempt")})
	var body struct {
		EventID string `json:"event_id"`
		Event   string
		Test    bool
	}
	require.NoError(t, json.Unmarshal(g.body, &body))
	require.True(t, body.Test && strings.HasPrefix(body.EventID, "TEST-") && body.Event == "order.created", "%s", g.body)
	entry := log(out["log_id"])
	require.Equal(t, []any{true, "success", at("/x"), 1.0}, []any{entry["is_test"], entry["status"], entry["url"], entry["attempt"]})
	require.NotContains(t, fmt.Sprint(entry), "another-secret-of-mine")

	good("PUT", "/api/v1/webhook-settings", admin, map[string]any{"webhook_sign_secret": hookSecret, "order_create_webhook_url": at("/created"), "order_status_change_webhook_url": at("/status")})
	out = good("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"event": "order.status_change"})
	require.Equal(t, true, out["delivered"])
	g = w.got()[1]
	require.Equal(t, "/status", g.path, "the address that is set for the event")
	verify(g, hookSecret)
	for i, scheme := range []string{"provider", "ohp"} {
		good("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/scheme"), "scheme": scheme})
		g := w.got()[2+i]
		if scheme == "provider" {
			require.NoError(t, signature.VerifyProvider(g.head.Get, g.body, time.Now(), []byte(hookSecret)))
		} else {
			require.NoError(t, signature.VerifyHandoff(g.head.Get, g.body, time.Now(), []byte(hookSecret)))
			require.Regexp(t, `^v1=[0-9a-f]{64}$`, g.head.Get("X-Ohp-Signature"))
			require.Regexp(t, `^\d{10}$`, g.head.Get("X-Ohp-Timestamp"))
		}
	}
	for i, format := range []string{"ce_binary", "ce_structured"} {
		good("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/format"), "format": format})
		g := w.got()[4+i]
		verify(g, hookSecret)
		kind := g.head.Get("Ce-Type")
		if format == "ce_structured" {
			var event struct{ Type string }
			require.Equal(t, "application/cloudevents+json", g.head.Get("Content-Type"))
			require.NoError(t, json.Unmarshal(g.body, &event))
			kind = event.Type
		}
		require.True(t, strings.HasSuffix(kind, "order.created"), "%q", kind)
	}
	status, _ = w.call("POST", "/api/v1/webhook-settings/test", admin, map[string]any{"url": at("/format"), "format": "ce_batch"})
	require.Equal(t, 422, status)
	w.mu.Lock()
	w.told, w.reply = nil, func(r *http.Request, _ []byte) int {
		if r.URL.Path == "/created" {
			return 500
		}
		return 200
	}
	w.mu.Unlock()

	// A real event that failed: replayed to another address by an administrator,
	// and to none by a customer.
	parcel := map[string]any{"type": "D", "packages": []any{map[string]any{"weight": 1}}, "recipient": map[string]any{"name": "Ada", "phone": "+14165550123",
		"address_line1": "100 Queen St W", "city": "Toronto", "province": "ON", "postal_code": "M5H 2N2", "country": "CA"}}
	status, out = w.call("POST", "/api/v1/client/orderCreate", admin, parcel)
	require.Equal(t, 201, status, "%v", out)
	ring.Await(t, func() bool {
		return good("GET", "/api/v1/webhook-delivery-logs?status=retrying&event=order.created", admin, nil)["total"] == 1.0
	})
	failed := good("GET", "/api/v1/webhook-delivery-logs?status=retrying", admin, nil)["logs"].([]any)[0].(map[string]any)
	first := w.got()[0]
	again := fmt.Sprintf("/api/v1/webhook-delivery-logs/%.0f/replay", failed["id"])
	status, out = w.call("POST", again, admin, map[string]any{"url": "http://10.0.0.1/"})
	require.Equal(t, []any{422, "BLOCKED_URL"}, []any{status, out["error_code"]})
	status, _ = w.call("POST", again, customer, map[string]any{"url": at("/mine")})
	require.Equal(t, 403, status)
	out = good("POST", again, admin, map[string]any{"url": at("/elsewhere")})
	require.Equal(t, "success", out["status"])
	g = w.got()[1]
	require.Equal(t, []any{"/elsewhere", string(first.body), first.head.Get("X-Webhook-Id"), "1"}, []any{g.path, string(g.body), g.head.Get("X-Webhook-Id"), g.head.Get("X-Webhook-Replay")})
	verify(g, hookSecret)
	require.Equal(t, failed["id"], log(out["log_id"])["replay_of"])
	require.Equal(t, "retrying", log(failed["id"])["status"], "what is done by hand uses up nothing")

	// Bulk: counted first, then sent; the job says how far it is.
	out = good("POST", "/api/v1/webhook-delivery-logs/replay", admin, map[string]any{"event": "order.created", "dry_run": true})
	require.Equal(t, []any{1.0, nil}, []any{out["count"], out["job_id"]}, "tests and replays are none of it")
	status, _ = w.call("POST", "/api/v1/webhook-delivery-logs/replay", admin, map[string]any{"from": time.Now().Add(-15 * 24 * time.Hour).Format(time.RFC3339)})
	require.Equal(t, 422, status)
	w.mu.Lock()
	w.reply = nil
	w.mu.Unlock()
	out = good("POST", "/api/v1/webhook-delivery-logs/replay", admin, map[string]any{"event": "order.created"})
	job := "/api/v1/webhook-replay-jobs/" + out["job_id"].(string)
	status, _ = w.call("GET", job, customer, nil)
	require.Equal(t, 404, status)
	ring.Await(t, func() bool {
		out = good("GET", job, admin, nil)
		return out["status"] == "done" && len(w.got()) >= 3
	})
	require.Equal(t, 1.0, out["sent"])
	require.Equal(t, []any{"/created", "1"}, []any{w.got()[2].path, w.got()[2].head.Get("X-Webhook-Replay")})
	require.Equal(t, "done", good("DELETE", job, admin, nil)["status"], "what has ended stays as it is")

	// Paused by hand, everything is kept; resumed, it is sent.
	var id float64
	for _, u := range good("GET", "/api/v1/webhook-urls", admin, nil)["urls"].([]any) {
		if u := u.(map[string]any); u["url"] == at("/created") {
			id = u["url_id"].(float64)
		}
	}
	require.NotZero(t, id)
	require.Empty(t, good("GET", "/api/v1/webhook-urls", customer, nil)["urls"])
	status, out = w.call("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/pause", id), customer, nil)
	require.Equal(t, []any{404, "WEBHOOK_URL_NOT_FOUND"}, []any{status, out["error_code"]})
	out = good("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/pause", id), admin, nil)["url"].(map[string]any)
	require.Equal(t, "paused", out["status"])
	seen := len(w.got())
	status, _ = w.call("POST", "/api/v1/client/orderCreate", admin, parcel)
	require.Equal(t, 201, status)
	ring.Await(t, func() bool {
		return good("GET", "/api/v1/webhook-delivery-logs?status=paused", admin, nil)["total"] == 1.0
	})
	require.Len(t, w.got(), seen)
	status, _ = w.call("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/resume", id), admin, map[string]any{"mode": "drop"})
	require.Equal(t, 422, status)
	out = good("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/resume", id), admin, map[string]any{"mode": "send"})["url"].(map[string]any)
	require.NotEqual(t, "paused", out["status"])
	ring.Await(t, func() bool { return len(w.got()) > seen })

	// A check-up of a receiver that verifies all, and of one that takes anything.
	ids := map[string]bool{}
	w.mu.Lock()
	w.reply = func(r *http.Request, body []byte) int {
		if signature.VerifyV2(r.Header.Get, body, time.Now(), []byte(hookSecret)) != nil {
			return 401
		}
		ids[r.Header.Get("X-Webhook-Id")] = true
		return 200
	}
	w.mu.Unlock()
	checkUp := func() (wrong []string, n int) {
		t.Helper()
		list := good("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/check-up", id), admin, nil)["checks"].([]any)
		for _, x := range list {
			if x := x.(map[string]any); x["ok"] != true {
				wrong = append(wrong, fmt.Sprint(x["name"], " ", x["got"]))
			}
		}
		return wrong, len(list)
	}
	wrong, n := checkUp()
	require.Empty(t, wrong)
	require.Equal(t, 8, n)
	require.Len(t, ids, 4, "one id came twice")
	good("PUT", "/api/v1/webhook-settings", admin, map[string]any{"webhook_url_options": []any{map[string]any{"url": at("/created"), "signature": "standard_webhooks_v1a"}}})
	shown := good("GET", "/api/v1/webhook-settings", admin, nil)["settings"].(map[string]any)["webhook_url_options"].([]any)[0].(map[string]any)
	public := w.s.Keys.webhookKey().Public().(ed25519.PublicKey)
	require.Equal(t, signature.PublicText(public), shown["public_key"], "the deployment's")
	require.Equal(t, signature.KeyID(public), shown["kid"])
	w.mu.Lock()
	w.reply = func(r *http.Request, body []byte) int {
		if signature.VerifyStandardAsymmetric(r.Header.Get, body, time.Now(), public) != nil {
			return 401
		}
		return 200
	}
	w.mu.Unlock()
	wrong, _ = checkUp()
	require.Empty(t, wrong, "one that knows the public key and no secret")
	w.mu.Lock()
	w.reply = nil
	w.mu.Unlock()
	wrong, _ = checkUp()
	require.Equal(t, []string{"wrong_key 200", "changed_body 200", "old_timestamp 200"}, wrong)
	w.hook.Close()
	wrong, n = checkUp()
	require.Equal(t, []any{[]string{"valid CONNECT"}, 1}, []any{wrong, n}, "where nothing answers the first is enough")
}

// A mock event of a provider goes the way of sandbox events, marked as one.
func TestMockEventsOfProviders(t *testing.T) {
	t.Parallel()
	w := newHookWorld(t, "")
	token := w.box.Provider.Token
	const path = "/api/v1/third-party-delivery/webhook-endpoint"
	good := func(method, path string, body any) map[string]any {
		t.Helper()
		status, out := w.call(method, path, token, body)
		require.Less(t, status, 300, "%v", out)
		return out
	}
	secret, _ := good("PUT", path, map[string]any{"url": w.hook.URL + "/live", "events": []string{"*"}})["secret"].(string)
	if secret == "" {
		secret = good("POST", path+"/secret", map[string]any{})["secret"].(string)
	}
	send := func() map[string]any {
		t.Helper()
		return good("POST", path+"/test", map[string]any{"event": locker.EventDelivered})
	}
	require.Equal(t, true, send()["delivered"])
	good("PUT", path, map[string]any{"sandbox_url": w.hook.URL + "/sandbox"})
	require.Equal(t, true, send()["delivered"])
	good("PUT", path, map[string]any{"sandbox_enabled": false})
	out := send()
	require.Equal(t, []any{false, "sandbox_disabled"}, []any{out["delivered"], out["error"]}, "and the log has it")
	require.Len(t, w.got(), 2)
	for i, g := range w.got() {
		require.Equal(t, []string{"/live", "/sandbox"}[i], g.path)
		require.NoError(t, signature.VerifyProvider(g.head.Get, g.body, time.Now(), []byte(secret)))
		require.Equal(t, "1", g.head.Get("X-Webhook-Test"))
		require.True(t, strings.HasPrefix(g.head.Get("X-Webhook-Event-Id"), "PLE-MOCK-"))
		require.Contains(t, string(g.body), `"livemode":false`)
	}
	require.Len(t, good("GET", "/api/v1/third-party-delivery/webhook-deliveries", nil)["deliveries"], 3)
	require.Equal(t, "success", func() any {
		good("PUT", path, map[string]any{"sandbox_enabled": true})
		good("POST", fmt.Sprintf("/api/v1/third-party-delivery/webhook-deliveries/%.0f/redeliver", out["log_id"]), map[string]any{})
		var state any
		ring.Await(t, func() bool {
			state = good("GET", "/api/v1/third-party-delivery/webhook-deliveries", nil)["deliveries"].([]any)[0].(map[string]any)["status"]
			return state == "success"
		})
		return state
	}(), "by hand, once the switch is on again")
	status, _ := w.call("POST", path+"/test", token, map[string]any{"event": "order.created"})
	require.Equal(t, 422, status)
}

// Every event that there is has a whole sample.
func TestSamples(t *testing.T) {
	t.Parallel()
	require.Len(t, HookEvents(), 48)
	for _, e := range HookEvents() {
		s, ok := sample(e.Name)
		require.True(t, ok, e.Name)
		require.Equal(t, e.Name, s.Event)
		require.NotEmpty(t, s.ReferenceType)
		var data map[string]any
		require.NoError(t, json.Unmarshal(s.Data, &data), e.Name)
		require.NotEmpty(t, data, e.Name)
		require.Equal(t, e.Channel == cloud.ChannelThirdParty, data["test"] == true, "of these only a third party's data says that it is a test: %s", e.Name)
	}
	for _, e := range HookEvents() {
		wanted := 0
		for _, c := range cloud.ThirdPartyCategories() {
			if (cloud.Endpoint{Kind: cloud.ThirdPartyEndpoint, Enabled: true, Events: []string{"*"}, Categories: []string{c}}).Wants(e.Name) {
				wanted++
			}
		}
		require.Equal(t, e.Channel == cloud.ChannelThirdParty, wanted == 1, "each of a third party is of one category: %s", e.Name)
	}
	_, ok := sample("../hook")
	require.False(t, ok)
}
