package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/notification"
)

// notifications are what recipients and couriers are sent, and the inbox of the sandbox.
func (c Config) notifications() []catalog.Operation {
	l := notification.Lists{Store: c.Store}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "notifications.list",
			Summary:     "List notifications to recipients and couriers",
			Description: "Mails and short messages about locker deliveries with what became of each, newest first: waiting, sent (the mail server or the SMS gateway took it), failed or expired. Their texts are not shown. Staff see all of the business's, a provider those about its own deliveries. Kept for 400 days.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/notifications",
			Types:       staffProviders,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "notification", Path: "notifications", Area: "lockers", Icon: "mail", Begin: "delivery",
				State: "status", States: "notification",
				Columns: []string{"kind", "status", "channel", "delivery_id", "created_at", "ended_at", "reason"},
			},
		}, l.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "sandbox.messages.list",
			Summary:     "List messages of the sandbox",
			Description: "Mails and short messages about test deliveries as recipients and couriers would get them, newest first. None of them was sent; they are kept for 30 days. The codes in them open doors of test lockers alone.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/sandbox/messages",
			Types:       staffProviders,
			Scopes:      []string{"lockers:read"},
			Secret:      true,
			Noun: &catalog.Noun{
				Name: "sandbox_message", Path: "inbox", Area: "lockers", Icon: "inbox", Begin: "provider",
				ID: "message_id", Title: []string{"subject", "kind"}, Find: "sandbox.messages.find",
				Columns: []string{"kind", "channel", "sent_to", "text", "delivery_id", "created_at"},
			},
		}, l.Inbox, nil),
		catalog.Define(catalog.Operation{
			Name:        "sandbox.messages.find",
			Summary:     "Get a message of the sandbox",
			Description: "A mail or short message about a test delivery in full.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/sandbox/messages/{message_id}",
			Types:       staffProviders,
			Scopes:      []string{"lockers:read"},
			Secret:      true,
			Errors:      []string{"NOTIFICATION_NOT_FOUND"},
			Example:     `{"message_id":"6J4GZC2QW7TLNDA3K5RYHXBV"}`,
		}, l.FindMessage, nil),
	}
}
