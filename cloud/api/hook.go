package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/receiver"
)

// hooks are the operations by which a business and its customers keep who is
// told of their orders.
func (c Config) hooks() []catalog.Operation {
	r := c.Receivers
	row := func(name, summary, method, path string, errors ...string) catalog.Operation {
		o := catalog.Operation{Name: name, Summary: summary, Tag: "Webhooks", Method: method, Path: "/api/v1" + path, Scopes: []string{"webhooks:read"}, Errors: errors,
			Types: []cloud.AccountType{cloud.ClientAdmin, cloud.Customer}}
		if method != http.MethodGet {
			o.Scopes, o.Risk = []string{"webhooks:write"}, catalog.RiskMedium
		}
		return o
	}
	settings, update := row("webhook_settings.find", "Who is told of orders", "GET", "/webhook-settings", "CUSTOMER_NOT_FOUND"),
		row("webhook_settings.save", "Change who is told of orders", "PUT", "/webhook-settings", "CUSTOMER_NOT_FOUND", "BLOCKED_URL")
	settings.GraphQL = &catalog.GraphQL{Field: "webhookSettings", Type: "WebhookSettings"}
	update.GraphQL = &catalog.GraphQL{Field: "webhookSettingsUpdate", Type: "WebhookSettings", Input: true, Mutation: true}
	secret, url := "0123456789abcdef0123456789abcdef", "https://hooks.example.com/orders"
	update.Example = receiver.SettingsInput{Secret: &secret, OrderCreate: &url, StatusChange: &url}
	logs, entry, replay := row("webhook_logs.list", "What was sent to those who are told", "GET", "/webhook-delivery-logs"),
		row("webhook_logs.find", "One webhook delivery with its attempts", "GET", "/webhook-delivery-logs/{id}", "WEBHOOK_DELIVERY_NOT_FOUND"),
		row("webhook_logs.replay", "Send a webhook once more", "POST", "/webhook-delivery-logs/{id}/replay", "WEBHOOK_DELIVERY_NOT_FOUND")
	logs.GraphQL = &catalog.GraphQL{Field: "webhookDeliveryLogs", Type: "WebhookLogList", Filter: "WebhookLogFilter"}
	replay.Group = catalog.Replay
	return []catalog.Operation{
		catalog.Define(tools(settings, "get_webhook_settings"), r.FindSettings, nil),
		catalog.Define(tools(update, "update_webhook_settings"), r.SaveSettings, nil),
		catalog.Define(tools(logs, "get_webhook_delivery_logs"), r.ListLogs, nil),
		catalog.Define(entry, r.FindLog, nil),
		catalog.Define(tools(replay, "replay_webhook_delivery"), r.Replay, nil),
	}
}
