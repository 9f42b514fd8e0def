package graphql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// Settings are one value, beside which the customer is named.
func TestWebhookSettingsAsFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const update = `mutation ($in: WebhookSettingsInput!, $c: Int) { webhookSettingsUpdate(input: $in, customerId: $c) { result level customer_id settings } }`
	save := func(settings map[string]any, customer any) map[string]any {
		t.Helper()
		_, m := r.ask(update, map[string]any{"in": map[string]any{"settings": settings}, "c": customer}, admin)
		require.Empty(t, m["errors"])
		return m["data"].(map[string]any)["webhookSettingsUpdate"].(map[string]any)
	}
	out := save(map[string]any{"webhook_sign_secret": "0123456789abcdef", "order_create_webhook_url": "https://a.example/"}, nil)
	require.Equal(t, []any{true, "business", nil}, []any{out["result"], out["level"], out["customer_id"]})
	require.Equal(t, "***cdef", out["settings"].(map[string]any)["webhook_sign_secret"])
	out = save(map[string]any{"order_create_webhook_url": "none"}, 5)
	require.Equal(t, []any{"customer", 5.0}, []any{out["level"], out["customer_id"]})
	out = save(map[string]any{"order_create_webhook_url": nil}, nil)
	require.Nil(t, out["settings"].(map[string]any)["order_create_webhook_url"], "null clears")
	_, m := r.ask(update, map[string]any{"in": map[string]any{"settings": map[string]any{"route_board_webhook_url": ""}}}, admin)
	r.failed(m, "VALIDATION_FAILED", 422)
	_, m = r.ask(update, map[string]any{"in": map[string]any{"webhook_sign_secret": "fedcba9876543210"}}, admin)
	require.Empty(t, m["errors"])

	_, m = r.ask(`query { webhookSettings(customerId: 5) { settings effective urls } webhookDeliveryLogs(filter: {event: "order.created"}, perPage: 5) { total logs } }`, nil, admin)
	require.Empty(t, m["errors"])
	data := m["data"].(map[string]any)
	require.Equal(t, "none", data["webhookSettings"].(map[string]any)["settings"].(map[string]any)["order_create_webhook_url"])
	require.Equal(t, map[string]any{"total": 0.0, "logs": []any{}}, data["webhookDeliveryLogs"])
	_, m = r.ask(`query { webhookSettings { settings } }`, nil, r.w.Tokens[cloud.Broker])
	r.failed(m, "ACCOUNT_TYPE_NOT_ALLOWED", 403)
}
