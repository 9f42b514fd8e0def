package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/webhook"
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
	settings, update := row("webhook_settings.find", "Get webhook settings", "GET", "/webhook-settings", "CUSTOMER_NOT_FOUND"),
		row("webhook_settings.save", "Save webhook settings", "PUT", "/webhook-settings", "CUSTOMER_NOT_FOUND", "BLOCKED_URL")
	settings.GraphQL = &catalog.GraphQL{Field: "webhookSettings", Type: "WebhookSettings"}
	update.GraphQL = &catalog.GraphQL{Field: "webhookSettingsUpdate", Type: "WebhookSettings", Input: true, Mutation: true}
	secret, url := "0123456789abcdef0123456789abcdef", "https://hooks.example.com/orders"
	update.Example = webhook.SettingsInput{Secret: &secret, OrderCreate: &url, StatusChange: &url}
	logs, entry, replay := row("webhook_logs.list", "List webhook deliveries", "GET", "/webhook-delivery-logs"),
		row("webhook_logs.find", "Get a webhook delivery with its attempts", "GET", "/webhook-delivery-logs/{id}", "WEBHOOK_DELIVERY_NOT_FOUND"),
		row("webhook_logs.replay", "Replay a webhook delivery", "POST", "/webhook-delivery-logs/{id}/replay", "WEBHOOK_DELIVERY_NOT_FOUND", "BLOCKED_URL")
	logs.GraphQL = &catalog.GraphQL{Field: "webhookDeliveryLogs", Type: "WebhookLogList", Filter: "WebhookLogFilter"}
	replay.Group = catalog.Replay
	test := row("webhook_settings.test", "Send a test webhook", "POST", "/webhook-settings/test", "CUSTOMER_NOT_FOUND", "WEBHOOK_URL_NOT_FOUND", "BLOCKED_URL")
	test.Group, test.Example = catalog.Replay, webhook.TestInput{Event: "order.created", URL: url}
	lost := "WEBHOOK_URL_NOT_FOUND"
	urls, pause := row("webhook_urls.list", "List webhook endpoints with their health", "GET", "/webhook-urls"), row("webhook_urls.pause", "Pause a webhook endpoint", "POST", "/webhook-urls/{url_id}/pause", lost)
	resume, checkup := row("webhook_urls.resume", "Resume a webhook endpoint", "POST", "/webhook-urls/{url_id}/resume", lost),
		row("webhook_urls.check_up", "Check whether a receiver verifies signatures", "POST", "/webhook-urls/{url_id}/check-up", lost)
	checkup.Group = catalog.Replay
	gone := "WEBHOOK_REPLAY_NOT_FOUND"
	many, job, stop := row("webhook_logs.replay_many", "Replay webhook deliveries in bulk", "POST", "/webhook-delivery-logs/replay"), row("webhook_replays.find", "Get the progress of a replay", "GET", "/webhook-replay-jobs/{job_id}", gone),
		row("webhook_replays.cancel", "Cancel a replay", "DELETE", "/webhook-replay-jobs/{job_id}", gone)
	many.Idempotent = true // a repeat would send everything twice
	many.Group, many.Example = catalog.Replay, webhook.BulkInput{Status: "failed", DryRun: true}
	return []catalog.Operation{
		catalog.Define(tools(settings, "get_webhook_settings"), r.FindSettings, nil),
		catalog.Define(tools(update, "update_webhook_settings"), r.SaveSettings, nil),
		catalog.Define(tools(logs, "get_webhook_delivery_logs"), r.ListLogs, nil),
		catalog.Define(entry, r.FindLog, nil),
		catalog.Define(tools(replay, "replay_webhook_delivery"), r.Replay, nil),
		catalog.Define(tools(test, "test_webhook_delivery"), r.Test, nil),
		catalog.Define(urls, r.ListURLs, nil),
		catalog.Define(pause, r.Pause, nil),
		catalog.Define(resume, r.Resume, nil),
		catalog.Define(checkup, r.CheckUp, nil),
		catalog.Define(many, r.ReplayMany, nil),
		catalog.Define(job, r.FindReplay, nil),
		catalog.Define(stop, r.CancelReplay, nil),
	}
}
