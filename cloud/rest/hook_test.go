package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webtest"
)

const (
	hooksPath = "/api/v1/webhook-settings"
	logsPath  = "/api/v1/webhook-delivery-logs"
	signKey   = "0123456789abcdef0123456789abcdef"
)

// customer adds another customer of a business and gives its token.
func (r *rig) customer(id cloud.AccountID, b cloud.BusinessID) string {
	token := auth.NewToken()
	r.w.Write(r.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{{ID: id, BusinessID: b, Type: cloud.Customer, Name: "another", Email: fmt.Sprintf("%d@c.example", id), Enabled: true}},
		Tokens: []cloud.Token{{Hash: auth.Hash(token), AccountID: id, Name: "test", ExpiresAt: time.Now().Add(time.Hour)}}}})
	return token
}

// settings are those of a good answer.
func (r *rig) settings(g got) map[string]any {
	r.t.Helper()
	require.NotContains(r.t, string(g.body), signKey)
	return r.made(g, 200, "settings")
}

func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin, customer := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Customer]
	put := func(token, query, body string) got { return r.do("PUT", hooksPath+query, token, body) }

	g := r.do("GET", hooksPath, admin, "")
	require.Nil(t, r.settings(g)["webhook_sign_secret"])
	require.Equal(t, []any{"business", nil, map[string]any{}, []any{}}, []any{g.json["level"], g.json["customer_id"], g.json["effective"], g.json["urls"]})

	six := strings.Repeat("https://a.example/%d,", 6)
	for field, body := range map[string]string{
		"route_board_webhook_url":           `{"route_board_webhook_url":"https://a.example/"}`,
		"driver_location_min_interval_sec":  `{"driver_location_min_interval_sec":4}`,
		"device_order_events":               `{"device_order_events":"device_order.stored,order.delivered"}`,
		"webhook_url_options.0.format":      `{"webhook_url_options":[{"url":"https://a.example/","format":"ce_batch"}]}`,
		"webhook_url_options.0.signature":   `{"webhook_url_options":[{"url":"https://a.example/","signature":"v1b"}]}`,
		"webhook_url_options.0.url":         `{"webhook_url_options":[{"url":"https://nobody.example/"}]}`,
		"webhook_url_options.0.private_key": `{"webhook_url_options":[{"url":"https://a.example/","signature":"standard_webhooks","private_key":"whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}]}`,
		"webhook_sign_secret":               `{"webhook_sign_secret":"short","order_create_webhook_url":"https://a.example/"}`,
		"webhook_sign_secret_next":          `{"webhook_sign_secret_next":"` + signKey + `"}`,
		"order_deleted_webhook_url":         `{"webhook_sign_secret":"` + signKey + `","order_deleted_webhook_url":"` + fmt.Sprintf(six, 1, 2, 3, 4, 5, 6) + `"}`,
		"order_lifecycle_events":            `{"order_lifecycle_events":"order.delivered,driver.location_update"}`,
		"order_create_async_postback_url":   `{"order_create_async_postback_url":5}`,
	} {
		g := put(admin, "", body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field, "%s", g.body)
	}
	for _, bad := range []string{"short", signKey[:15], "whsec_MDEyMzQ1Njc4OWFiY2RlZg", "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=", "with spaces in its midst"} {
		g := put(admin, "", `{"webhook_sign_secret":"`+bad+`"}`)
		r.refused(g, 422, "VALIDATION_FAILED")
		for _, said := range []string{"16 to 128", "no spaces", "whsec_"} {
			require.Contains(t, fmt.Sprint(g.json["errors"]), said, "one that is long enough is told what else is wrong")
		}
	}
	g = put(admin, "", `{"webhook_sign_secret":"`+signKey+`","pod_files_webhook_url":"https://a.example/,https://inside.example/"}`)
	r.refused(g, 422, "BLOCKED_URL")
	require.Equal(t, "not a public address", g.json["details"].(map[string]any)["pod_files_webhook_url"])
	require.Nil(t, r.settings(r.do("GET", hooksPath, admin, ""))["webhook_sign_secret"], "nothing of it was kept")

	g = put(admin, "", `{"webhook_sign_secret":"`+signKey+`","order_create_webhook_url":"https://a.example/1, https://a.example/2","order_lifecycle_webhook_url":"https://a.example/1",
		"order_lifecycle_events":"order.delivered, order.driver_*"}`)
	s := r.settings(g)
	require.Equal(t, []any{"***cdef", "https://a.example/1,https://a.example/2", "order.delivered,order.driver_*", true},
		[]any{s["webhook_sign_secret"], s["order_create_webhook_url"], s["order_lifecycle_events"], s["enabled"]})
	urls := g.json["urls"].([]any)
	require.Len(t, urls, 2)
	require.Equal(t, []any{"order_create_webhook_url", "order_lifecycle_webhook_url"}, urls[0].(map[string]any)["settings"])
	require.Equal(t, "healthy", urls[0].(map[string]any)["status"])

	// An address that said it was gone shows as that, and saving tries it again,
	// with what was kept for it meanwhile.
	id := cloud.EndpointID(urls[0].(map[string]any)["url_id"].(float64))
	require.NoError(t, r.w.DB.SetEndpointStatus(t.Context(), id, "gone", "", time.Now()))
	r.w.Write(t, cloud.Changes{OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{Event: cloud.OutboxEvent{EventID: "OSC-1", Event: "order.status_change", BusinessID: 42, Channel: cloud.ChannelAccount, Body: []byte("{}")},
		Deliveries: []cloud.OutboxDelivery{{ID: 1, EventID: "OSC-1", EndpointID: id, BusinessID: 42, WebhookID: "OSC-1", State: cloud.OutboxPaused, MaxAttempts: 6, CreatedAt: time.Now()}}}}}})
	require.Equal(t, "gone", r.do("GET", hooksPath, admin, "").json["urls"].([]any)[0].(map[string]any)["status"])
	require.Equal(t, "healthy", put(admin, "", `{}`).json["urls"].([]any)[0].(map[string]any)["status"])
	kept, err := r.w.DB.FindOutbox(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, cloud.OutboxPending, kept.Delivery.State)

	// Only keys that are there change; a null and an empty text clear.
	s = r.settings(put(admin, "", `{"order_create_webhook_url":null,"enabled":false}`))
	require.Equal(t, []any{nil, "https://a.example/1", false}, []any{s["order_create_webhook_url"], s["order_lifecycle_webhook_url"], s["enabled"]})
	e, err := r.w.DB.FindEndpoint(t.Context(), id)
	require.NoError(t, err)
	require.False(t, e.Enabled, "what is on its way to an address that is off is given up")
	require.Equal(t, true, r.settings(put(admin, "", `{"enabled":null,"order_lifecycle_events":""}`))["enabled"])
	g = put(admin, "", `{"webhook_sign_secret":""}`)
	r.refused(g, 422, "VALIDATION_FAILED")

	// Rotation.
	require.Equal(t, "***aaaa", r.settings(put(admin, "", `{"webhook_sign_secret_next":"aaaaaaaaaaaaaaaa"}`))["webhook_sign_secret_next"])
	g = put(admin, "", `{"webhook_sign_secret_next":"bbbbbbbbbbbbbbbb"}`)
	require.Equal(t, true, g.json["dropped_oldest"])
	require.Equal(t, []any{"***aaaa", "***bbbb"}, []any{r.settings(g)["webhook_sign_secret"], r.settings(g)["webhook_sign_secret_next"]})
	g = put(admin, "", `{"webhook_sign_secret":"`+signKey+`"}`)
	require.Equal(t, []any{"***cdef", nil, false}, []any{r.settings(g)["webhook_sign_secret"], r.settings(g)["webhook_sign_secret_next"], g.json["dropped_oldest"]})

	// A customer's own, over the business's.
	g = put(customer, "?customer_id=1", `{"order_lifecycle_webhook_url":"none","order_deleted_webhook_url":"https://c.example/"}`)
	s = r.settings(g)
	own, _ := g.json["generated_secret"].(string)
	require.Len(t, own, 43, "with its first address, once")
	require.Equal(t, []any{"customer", 5.0, "none", "***" + own[39:]}, []any{g.json["level"], g.json["customer_id"], s["order_lifecycle_webhook_url"], s["webhook_sign_secret"]})
	require.Equal(t, map[string]any{"webhook_sign_secret": "customer", "order_lifecycle_webhook_url": "customer", "order_deleted_webhook_url": "customer"}, g.json["effective"])
	require.NotContains(t, string(g.body), "a.example", "the business's addresses are its own")
	require.Equal(t, "none", r.settings(r.do("GET", hooksPath+"?customer_id=5", admin, ""))["order_lifecycle_webhook_url"])
	require.Equal(t, "***eeee", r.settings(put(admin, "?customer_id=5", `{"webhook_sign_secret":"eeeeeeeeeeeeeeee"}`))["webhook_sign_secret"])
	require.Equal(t, "***cdef", r.settings(r.do("GET", hooksPath, admin, ""))["webhook_sign_secret"])
	r.refused(put(admin, "", `{"webhook_sign_secret":null,"order_lifecycle_webhook_url":null}`), 422, "VALIDATION_FAILED")

	// A blank value clears like an empty text; it does not say that no endpoint gets the event.
	for _, blank := range []string{" ", ",", " , ,"} {
		s = r.settings(put(customer, "", `{"order_lifecycle_webhook_url":" none "}`))
		require.Equal(t, "none", s["order_lifecycle_webhook_url"])
		g = put(customer, "", `{"order_lifecycle_webhook_url":"`+blank+`"}`)
		require.Nil(t, r.settings(g)["order_lifecycle_webhook_url"], "%q", blank)
		require.Equal(t, "business", g.json["effective"].(map[string]any)["order_lifecycle_webhook_url"], "%q", blank)
	}

	// Strangers.
	r.customer(40, 43)
	for _, query := range []string{"?customer_id=40", "?customer_id=2", "?customer_id=999"} {
		r.refused(r.do("GET", hooksPath+query, admin, ""), 404, "CUSTOMER_NOT_FOUND")
		r.refused(put(admin, query, `{}`), 404, "CUSTOMER_NOT_FOUND")
	}
	require.Nil(t, r.settings(r.do("GET", hooksPath, r.w.OtherAdmin, ""))["webhook_sign_secret"])
	require.Nil(t, r.settings(r.do("GET", hooksPath, r.customer(41, 42), ""))["order_lifecycle_webhook_url"])
}

// The case of a host makes no other address, which would hear of everything
// twice; that of a path does.
func TestAnAddressIsOneHoweverItsHostIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	g := r.do("PUT", hooksPath, admin, `{"webhook_sign_secret":"`+signKey+`","order_create_webhook_url":"https://A.example/Hook?K=v, https://a.example/Hook?K=v,https://a.example/hook"}`)
	require.Equal(t, "https://A.example/Hook?K=v,https://a.example/hook", r.settings(g)["order_create_webhook_url"])
	id := g.json["urls"].([]any)[0].(map[string]any)["url_id"]
	g = r.do("PUT", hooksPath, admin, `{"order_deleted_webhook_url":"https://a.EXAMPLE/Hook?K=v","webhook_url_options":[{"url":"https://a.Example/Hook?K=v","format":"ce_binary"}]}`)
	require.Equal(t, "https://A.example/Hook?K=v", r.settings(g)["order_deleted_webhook_url"])
	urls := g.json["urls"].([]any)
	require.Len(t, urls, 2)
	require.Equal(t, []any{id, []any{"order_create_webhook_url", "order_deleted_webhook_url"}}, []any{urls[0].(map[string]any)["url_id"], urls[0].(map[string]any)["settings"]})
	require.Len(t, r.settings(g)["webhook_url_options"], 1)
	g = r.do("PUT", hooksPath, admin, `{"webhook_url_options":[{"url":"https://a.example/Hook?K=v"},{"url":"https://A.example/Hook?K=v"}]}`)
	r.refused(g, 422, "VALIDATION_FAILED") // each once
}

// An account that is neither administrator nor customer has no access to it.
func TestWebhookSettingsAreForAdministratorsAndCustomers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, op := range []string{"GET " + hooksPath, "PUT " + hooksPath, "GET " + logsPath, "GET " + logsPath + "/1", "POST " + logsPath + "/1/replay"} {
		method, path, _ := strings.Cut(op, " ")
		for kind, token := range r.w.Tokens {
			if kind != cloud.ClientAdmin && kind != cloud.Customer {
				r.refused(r.do(method, path, token, "{}"), 403, "ACCOUNT_TYPE_NOT_ALLOWED")
			}
		}
		r.refused(r.do(method, path, "", "{}"), 401, "UNAUTHENTICATED")
	}
}

func TestWebhookLogs(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); webhookLogs(t, newRig(t, nil)) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		webhookLogs(t, rigOn(t, webtest.NewOn(t, storetest.OpenSecondPostgres(t)), nil))
	})
}

func webhookLogs(t *testing.T, r *rig) {
	admin, customer := r.w.Tokens[cloud.ClientAdmin], r.w.Tokens[cloud.Customer]
	stranger := r.customer(41, 42)
	for token, url := range map[string]string{admin: "https://a.example/", customer: "https://c.example/"} {
		g := r.do("PUT", hooksPath, token, `{"webhook_sign_secret":"`+signKey+`","order_create_webhook_url":"`+url+`"}`)
		require.Equal(t, 200, g.status, "%s", g.body)
	}
	ids := map[string]string{}
	for name, token := range map[string]string{"admin": admin, "customer": customer, "stranger": stranger} {
		ids[name], _ = r.order(token, "SO-"+name)
	}
	list := func(token, query string, total int) []any {
		t.Helper()
		g := r.do("GET", logsPath+query, token, "")
		require.Equal(t, 200, g.status, "%s", g.body)
		require.Equal(t, float64(total), g.json["total"], "%s", g.body)
		require.NotContains(t, string(g.body), webtest.PickupCode)
		return g.json["logs"].([]any)
	}
	require.Len(t, list(admin, "", 3), 3, "no provider's")
	require.Len(t, list(admin, "?page=2&per_page=2", 3), 1)
	list(admin, "?reference_id="+ids["customer"]+"&event=order.created&reference_type=order&channel=account&status=pending", 1)
	list(admin, "?channel=locker_provider", 0)
	list(admin, "?status=dead", 0)
	list(admin, "?customer_id=5", 1)
	list(stranger, "", 0)
	list(stranger, "?customer_id=5", 0)
	list(r.w.OtherAdmin, "", 0)
	for _, q := range []string{"?page=-1", "?per_page=201", "?status=odd", "?from=noon", "?page=99999999999"} {
		r.refused(r.do("GET", logsPath+q, admin, ""), 422, "VALIDATION_FAILED")
	}
	row := list(customer, "", 1)[0].(map[string]any)
	require.Equal(t, []any{"account", "order_create_webhook_url", "customer", 5.0, nil, "order", ids["customer"], 6.0, "OCR-" + ids["customer"]},
		[]any{row["channel"], row["setting"], row["level"], row["customer_id"], row["provider_id"], row["reference_type"], row["reference_id"], row["max_attempts"], row["webhook_id"]})

	one := fmt.Sprintf("%s/%.0f", logsPath, row["id"])
	for token, sees := range map[string]bool{admin: true, customer: true, stranger: false, r.w.OtherAdmin: false} {
		for _, op := range []string{"GET " + one, "POST " + one + "/replay"} {
			method, path, _ := strings.Cut(op, " ")
			g := r.do(method, path, token, "{}")
			if !sees {
				r.refused(g, 404, "WEBHOOK_DELIVERY_NOT_FOUND")
				continue
			}
			require.Equal(t, 200, g.status, "%s", g.body)
		}
	}
	entry := r.made(r.do("GET", one, customer, ""), 200, "log")
	require.Equal(t, "order.created", entry["request_body"].(map[string]any)["event"])
	require.Equal(t, 3, len(list(customer, "", 3)), "itself and twice again")
	echoed(t, r, admin)
	again := list(customer, "?per_page=1", 3)[0].(map[string]any)
	require.Equal(t, []any{row["id"], row["event_id"], row["webhook_id"], 1.0, "customer"},
		[]any{again["replay_of"], again["event_id"], again["webhook_id"], again["max_attempts"], again["level"]})
	// A provider's delivery is none of the account channel, nor the other way round.
	theirs := fmt.Sprint(r.w.Outbox)
	r.refused(r.do("GET", logsPath+"/"+theirs, admin, ""), 404, "WEBHOOK_DELIVERY_NOT_FOUND")
	r.refused(r.do("POST", logsPath+"/"+theirs+"/replay", admin, ""), 404, "WEBHOOK_DELIVERY_NOT_FOUND")
	r.refused(r.do("GET", fmt.Sprintf("%s/webhook-deliveries/%.0f", base, row["id"]), r.provider(), ""), 404, "WEBHOOK_DELIVERY_NOT_FOUND")
	audits, err := r.w.DB.ListAudits(t.Context(), 42, 0, 100)
	require.NoError(t, err)
	all, err := json.Marshal(audits)
	require.NoError(t, err)
	require.Contains(t, string(all), "webhook_settings_saved")
	require.Contains(t, string(all), "webhook_redelivered")
	require.NotContains(t, string(all), signKey)
}

// echoed has a receiver say a code back in words of its own: the log shows its
// answer without it.
func echoed(t *testing.T, r *rig, admin string) {
	t.Helper()
	const code = "734921"
	now := time.Now().UTC()
	e := cloud.Endpoint{ID: 7001, BusinessID: 42, Kind: cloud.AccountEndpoint, URL: "https://echo.example/", Enabled: true, Status: "healthy", Events: []string{"*"}, CreatedAt: now, StatusSince: now}
	r.w.Write(t, cloud.Changes{HookChanges: cloud.HookChanges{Endpoints: []cloud.Endpoint{e}},
		OutboxChanges: cloud.OutboxChanges{Outbox: []cloud.OutboxWrite{{
			Event:      cloud.OutboxEvent{EventID: "OSC-7001", Event: "order.status_change", BusinessID: 42, Channel: cloud.ChannelAccount, CreatedAt: now, Body: []byte(`{"data":{"pickup_code":"` + code + `","note":"Code ` + code + `"}}`)},
			Deliveries: []cloud.OutboxDelivery{{ID: 7001, EventID: "OSC-7001", EndpointID: 7001, BusinessID: 42, WebhookID: "OSC-7001", State: cloud.OutboxPending, MaxAttempts: 6, NextAt: now, CreatedAt: now.Add(-time.Hour)}}}}}})
	work, err := r.w.DB.ClaimOutbox(t.Context(), 7001, now.Add(time.Hour), 1)
	require.NoError(t, err)
	require.Len(t, work, 1)
	d := work[0].Delivery
	lost, err := r.w.DB.FinishOutbox(t.Context(), []cloud.OutboxResult{{ID: d.ID, Generation: d.Generation, State: cloud.OutboxFailed, Attempts: 1, Attempt: &cloud.OutboxAttempt{DeliveryID: d.ID, Attempt: 1, At: now,
		URL: e.URL, HTTPStatus: 500, ErrorCode: "HTTP_STATUS", AnswerHead: "HTTP/1.1 500 Oops\nX-Code: " + code, AnswerBody: "500 no locker for code " + code}}})
	require.NoError(t, err)
	require.Empty(t, lost)
	g := r.do("GET", logsPath+"/7001", admin, "")
	require.NotContains(t, string(g.body), code)
	log := r.made(g, 200, "log")
	require.Equal(t, []any{"500 no locker for code ******", "******"}, []any{log["response_body"], log["response_headers"].(map[string]any)["X-Code"]})
	require.Equal(t, "Code ******", log["request_body"].(map[string]any)["data"].(map[string]any)["note"])
}

// The format of an address stands with the address: it is set as one list, checked,
// shown, and forgotten with the address. A private key is never shown.
func TestWebhookFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	put := func(body string) got { return r.do("PUT", hooksPath, admin, body) }
	options := func(g got) (out []any) {
		t.Helper()
		require.Equal(t, 200, g.status, "%s", g.body)
		return r.settings(g)["webhook_url_options"].([]any)
	}
	const seedKey, public = "whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="
	g := put(`{"webhook_sign_secret":"0123456789abcdef","order_create_webhook_url":"https://a.example/1,https://a.example/2","device_order_webhook_url":"https://a.example/3",
		"device_order_events":"device_order.exception_*","webhook_url_options":[{"url":"https://a.example/2","format":"ce_structured","signature":"standard_webhooks_v1a","private_key":"` + seedKey + `"},
		{"url":"https://a.example/3","format":"ce_binary"},{"url":"https://a.example/1","format":"native","signature":"native"}]}`)
	want := []any{
		map[string]any{"url": "https://a.example/2", "format": "ce_structured", "signature": "standard_webhooks_v1a", "rate_per_second": nil, "burst": nil, "sequence": false, "public_key": public, "kid": "1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"},
		map[string]any{"url": "https://a.example/3", "format": "ce_binary", "signature": "native", "rate_per_second": nil, "burst": nil, "sequence": false, "public_key": nil, "kid": nil},
	}
	require.ElementsMatch(t, want, options(g))
	require.NotContains(t, string(g.body), seedKey)
	require.Equal(t, "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", g.json["webhook_sign_secret_standard"], "shown once")
	require.Len(t, g.json["warnings"], 1, "16 bytes are few for Standard Webhooks")
	require.Equal(t, "device_order.exception_*", r.settings(g)["device_order_events"])
	g = r.do("GET", hooksPath, admin, "")
	require.ElementsMatch(t, want, options(g))
	require.NotContains(t, g.json, "webhook_sign_secret_standard")

	// Other changes leave the options alone; the key is kept while they are said anew.
	require.ElementsMatch(t, want, options(put(`{"pod_files_webhook_url":"https://a.example/4"}`)))
	g = put(`{"webhook_sign_secret":"0123456789abcdef01234567","webhook_url_options":[{"url":"https://a.example/2","signature":"standard_webhooks_v1a"}]}`)
	require.Equal(t, []any{map[string]any{"url": "https://a.example/2", "format": "native", "signature": "standard_webhooks_v1a", "rate_per_second": nil, "burst": nil, "sequence": false, "public_key": public, "kid": "1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}}, options(g))
	require.Empty(t, g.json["warnings"])
	// Without a key of its own the deployment's signs.
	g = put(`{"webhook_url_options":[{"url":"https://a.example/1","signature":"standard_webhooks_v1a"}]}`)
	require.Nil(t, options(g)[0].(map[string]any)["public_key"])
	require.Empty(t, options(put(`{"order_create_webhook_url":"https://a.example/2"}`)))
	require.Empty(t, options(put(`{"order_create_webhook_url":"https://a.example/1,https://a.example/2"}`)), "it came back as it was at first")
	r.refused(put(`{"webhook_url_options":[{"url":"https://a.example/1"},{"url":"https://a.example/1","format":"ce_binary"}]}`), 422, "VALIDATION_FAILED")
	require.Equal(t, []any{map[string]any{"url": "https://a.example/1", "format": "native", "signature": "native", "rate_per_second": 2.5, "burst": 1.0, "sequence": true, "public_key": nil, "kid": nil}},
		options(put(`{"webhook_url_options":[{"url":"https://a.example/1","rate_per_second":2.5,"sequence":true}]}`)))
	for _, bad := range []string{`"rate_per_second":0`, `"rate_per_second":1001`, `"rate_per_second":1,"burst":0`, `"burst":5`} {
		r.refused(put(`{"webhook_url_options":[{"url":"https://a.example/1",`+bad+`}]}`), 422, "VALIDATION_FAILED")
	}
	require.Empty(t, options(put(`{"webhook_url_options":null}`)))
}

func TestProviderWebhookFormats(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	partner := r.w.Tokens[cloud.ProviderType]
	const path = "/api/v1/third-party-delivery/webhook-endpoint"
	put := func(body string) map[string]any {
		t.Helper()
		g := r.do("PUT", path, partner, body)
		require.Equal(t, 200, g.status, "%s", g.body)
		return g.json["webhook_endpoint"].(map[string]any)
	}
	for _, bad := range []string{`{"format":"ce_batch"}`, `{"signature":"v1a"}`, `{"private_key":"whsk_AA=="}`} {
		r.refused(r.do("PUT", path, partner, bad), 422, "VALIDATION_FAILED")
	}
	e := put(`{"url":"https://hooks.example/p","format":"ce_binary","signature":"standard_webhooks_v1a","private_key":"whsk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}`)
	require.Equal(t, []any{"ce_binary", "standard_webhooks_v1a", "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="}, []any{e["format"], e["signature"], e["public_key"]})
	e = put(`{"enabled":true}`)
	require.Equal(t, []any{"ce_binary", "standard_webhooks_v1a", "whpk_A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="}, []any{e["format"], e["signature"], e["public_key"]})
	e = put(`{"format":"native","signature":"native"}`)
	require.Equal(t, []any{"native", "native", nil}, []any{e["format"], e["signature"], e["public_key"]})
	g := r.do("POST", path+"/secret", partner, `{"secret":"0123456789abcdef"}`)
	require.Equal(t, "whsec_MDEyMzQ1Njc4OWFiY2RlZg==", g.json["standard_secret"])
	require.Equal(t, []any{}, g.json["warnings"])
}
