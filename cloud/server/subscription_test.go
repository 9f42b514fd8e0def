package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/signature"
)

// A parcel's subscribers get what a provider says about it, once and signed with the secret of the
// subscription, and no secret is in any later answer. One that fails is tried again as others are.
func TestSubscribersReceiveEvents(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); subscribersReceive(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); subscribersReceive(t, storetest.MigratedPostgresURL(t)) })
}

func subscribersReceive(t *testing.T, database string) {
	w := newHookWorld(t, database)
	w.reply = func(r *http.Request, _ []byte) int {
		if r.URL.Path == "/dead" {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	}
	admin, provider := w.box.Admin.Token, w.box.Provider.Token
	const number = "SWIFT-1"
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		p := w.box.ProviderCaller.Provider
		return &cloud.Changes{TrackingChanges: cloud.TrackingChanges{Shipments: []cloud.Shipment{{ID: 9001, BusinessID: p.BusinessID, Number: number, ProviderID: p.ID, Profile: "parcel", CreatedAt: time.Now()}}}}, nil
	}))
	subscribe := func(token string, in map[string]any) map[string]any {
		t.Helper()
		in["tracking_numbers"] = []any{number}
		status, out := w.call("POST", "/api/v1/otep/subscriptions", token, in)
		require.Equal(t, 201, status, "%v", out)
		return out
	}
	const given = "0123456789abcdef-of-the-staff"
	mine := subscribe(admin, map[string]any{"url": w.hook.URL + "/staff", "secret": given})
	require.NotContains(t, mine, "secret", "who gave it knows it")
	theirs := subscribe(provider, map[string]any{"url": w.hook.URL + "/provider", "format": "ce_structured", "signature": "standard_webhooks"})
	made := theirs["secret"].(string)
	subscribe(admin, map[string]any{"url": w.hook.URL + "/dead", "secret": given})
	for token, want := range map[string]int{"": 401, w.box.Customer.Token: 404} {
		status, out := w.call("POST", "/api/v1/otep/subscriptions", token, map[string]any{"tracking_numbers": []any{number}, "url": w.hook.URL + "/other"})
		require.Equal(t, want, status, "%v", out)
		if want == 404 {
			require.Equal(t, map[string]any{"tracking_numbers": []any{number}}, out["details"])
		}
	}
	status, out := w.call("POST", "/api/v1/otep/subscriptions", admin, map[string]any{"all": true, "url": "http://169.254.169.254/latest"})
	require.Equal(t, []any{422, "BLOCKED_URL"}, []any{status, out["error_code"]})

	event := map[string]any{"event_id": "one", "status_code": "in_transit", "occurred_at": time.Now().Add(time.Second).Format(time.RFC3339Nano), "source": map[string]any{"type": "carrier"}}
	for range 2 { // a repeat is told once
		status, out = w.call("POST", "/api/v1/otep/ingest", provider, map[string]any{"otep_version": "0.1", "subject": map[string]any{"tracking_number": number}, "events": []any{event}})
		require.Equal(t, 200, status, "%v", out)
	}
	ring.Await(t, func() bool { return len(w.got()) >= 3 })
	time.Sleep(50 * time.Millisecond)
	got := map[string]told{}
	for _, g := range w.got() {
		require.NotContains(t, got, g.path, "once")
		got[g.path] = g
	}
	require.Len(t, got, 3)
	type body struct {
		EventID string `json:"event_id"`
		Event   string
		Data    struct {
			Order   *struct{}
			Package struct {
				Number string `json:"tracking_number"`
			}
			Key string `json:"tracking_event_key"`
		}
	}
	check := func(raw []byte) (b body) {
		t.Helper()
		require.NoError(t, json.Unmarshal(raw, &b))
		require.Equal(t, []any{"tracking.event", number, "in_transit"}, []any{b.Event, b.Data.Package.Number, b.Data.Key})
		require.Nil(t, b.Data.Order)
		return b
	}
	staff := got["/staff"]
	require.Equal(t, check(staff.body).EventID, staff.head.Get("X-Webhook-Event-Id"))
	require.NoError(t, signature.VerifyV2(staff.head.Get, staff.body, time.Now(), []byte(given)))
	require.NoError(t, signature.VerifyLegacy(staff.head.Get, staff.body, []byte(given)))
	require.Error(t, signature.VerifyV2(staff.head.Get, staff.body, time.Now(), []byte(made)))
	partner := got["/provider"]
	_, err := signature.Verify(partner.head.Get, partner.body, time.Now(), made)
	require.NoError(t, err)
	require.NotEmpty(t, partner.head.Get("webhook-signature"))
	var ce struct {
		Subject string
		Data    json.RawMessage
	}
	require.NoError(t, json.Unmarshal(partner.body, &ce))
	require.Equal(t, "parcel/"+number, ce.Subject)
	require.NotEqual(t, check(staff.body).EventID, check(ce.Data).EventID)

	// The log has them, of the one that failed too; it says when the next attempt is.
	status, out = w.call("GET", "/api/v1/webhook-delivery-logs?event=tracking.event", admin, nil)
	require.Equal(t, 200, status)
	states := map[any]any{}
	for _, r := range out["logs"].([]any) {
		row := r.(map[string]any)
		require.Equal(t, []any{"subscription", "parcel", number}, []any{row["level"], row["reference_type"], row["reference_id"]})
		states[row["status"]] = row["next_retry_at"]
	}
	require.Len(t, states, 2)
	require.NotNil(t, states["retrying"])
	status, out = w.call("GET", "/api/v1/webhook-urls", admin, nil)
	require.Equal(t, 200, status)
	require.Len(t, out["urls"], 2)
	id := out["urls"].([]any)[0].(map[string]any)["url_id"]
	for _, verb := range []string{"pause", "resume"} {
		status, out = w.call("POST", fmt.Sprintf("/api/v1/webhook-urls/%.0f/%s", id, verb), admin, map[string]any{})
		require.Equal(t, 200, status, "%v", out)
	}
	for _, path := range []string{"/api/v1/otep/subscriptions", fmt.Sprintf("/api/v1/otep/subscriptions/%.0f", mine["subscription"].(map[string]any)["subscription_id"]), "/api/v1/webhook-delivery-logs", "/api/v1/webhook-urls"} {
		status, out = w.call("GET", path, admin, nil)
		require.Equal(t, 200, status, "%v", out)
		raw, err := json.Marshal(out)
		require.NoError(t, err)
		require.NotContains(t, string(raw), given, path)
	}
}

// The power goes between the commit of an event and its sending: it is sent when the cloud is there again.
func TestSubscribersReceiveWhatAPowerCutLeft(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); powerCut(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); powerCut(t, storetest.MigratedPostgresURL(t)) })
}

func powerCut(t *testing.T, database string) {
	const given = "0123456789abcdef-of-the-staff"
	w, cfg := newHooks(t, database)
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	box, err := s.Sandbox(t.Context(), SandboxConfig{})
	require.NoError(t, err)
	_, err = s.webhooks.Subscribe(t.Context(), box.AdminCaller, webhook.SubscriptionInput{All: true, URL: w.hook.URL + "/cut", Secret: given})
	require.NoError(t, err)
	made, err := s.orders.Create(t.Context(), box.AdminCaller, order.CreateInput{Type: cloud.DeliveryOrder, Packages: []order.PackageInput{{Weight: 1}},
		Recipient: &cloud.Address{Name: "Ada", Phone: "+14165550123", Line1: "100 Queen St W", City: "Toronto", Province: "ON", PostalCode: "M5H 2N2", Country: "CA"}})
	require.NoError(t, err)
	require.NoError(t, errors.Join(s.Broker.Close(), s.Store.Close()))
	require.Empty(t, w.got())
	w.s, err = New(t.Context(), cfg)
	require.NoError(t, err)
	w.run()
	ring.Await(t, func() bool { return len(w.got()) > 0 })
	time.Sleep(50 * time.Millisecond)
	got := w.got()
	require.Len(t, got, 1)
	require.NoError(t, signature.VerifyV2(got[0].head.Get, got[0].body, time.Now(), []byte(given)))
	require.Contains(t, string(got[0].body), fmt.Sprintf(`"tracking_number":%q`, made.Order.Number))
}
