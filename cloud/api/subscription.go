package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// subscribing are who own parcels, and may have their events sent.
var subscribing = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Customer, cloud.ProviderType}

// subscriptions are the operations by which owners of parcels have their events sent.
func (c Config) subscriptions() []catalog.Operation {
	r := c.Receivers
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "tracking_subscriptions.list",
			Summary:     "List subscriptions to tracking numbers",
			Description: "Newest first: those of the business for its staff, a customer's and a provider's own.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/subscriptions",
			Types:       subscribing,
			Scopes:      []string{"webhooks:read"},
			Noun: &catalog.Noun{
				Name: "tracking_subscription", Path: "tracking-subscriptions", Area: "connections", Icon: "webhook",
				Live: []string{"Endpoints", "Outbox"},
				ID:   "subscription_id", Title: []string{"url"}, State: "status", States: "endpoint",
				Columns: []string{"url", "status", "parcels", "events", "expires_at", "created_at"},
				Verbs:   []string{"tracking_subscriptions.remove"},
			},
		}, r.ListSubscriptions, nil),
		catalog.Define(catalog.Operation{
			Name:        "tracking_subscriptions.find",
			Summary:     "Get a subscription to tracking numbers",
			Description: "With its numbers and how its endpoint is doing. Its secret is shown by its last characters.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/subscriptions/{id}",
			Types:       subscribing,
			Scopes:      []string{"webhooks:read"},
			Errors:      []string{"TRACKING_SUBSCRIPTION_NOT_FOUND"},
			Example:     `{"id":7}`,
		}, r.FindSubscription, nil),
		catalog.Define(catalog.Operation{
			Name:        "tracking_subscriptions.create",
			Summary:     "Subscribe to tracking numbers",
			Description: "Events of the parcels are sent to url, signed as webhooks of accounts are. Up to 1,000 numbers that the caller owns; details of OTEP_TRACKING_NOT_FOUND list the others. A secret that is made is in this answer and nowhere else. A business, a customer and a provider have up to 100.",
			Tag:         "OTEP",
			NoPass:      true, // an address is sent events when the pass is over
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/subscriptions",
			Status:      http.StatusCreated,
			Types:       subscribing,
			Scopes:      []string{"webhooks:write", "orders:read"},
			Risk:        catalog.RiskMedium,
			Secret:      true,
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "SUBSCRIPTION_LIMIT_REACHED", "BLOCKED_URL"},
			Example:     `{"tracking_numbers":["SWP100200300"],"url":"https://hooks.example.com/parcels","events":["tracking.event","tracking.event_withdrawn"]}`,
		}, r.Subscribe, nil),
		catalog.Define(catalog.Operation{
			Name:        "tracking_subscriptions.remove",
			Summary:     "End a subscription to tracking numbers",
			Description: "What waits for its endpoint is not sent any more.",
			Tag:         "OTEP",
			Method:      http.MethodDelete,
			Path:        "/api/v1/otep/subscriptions/{id}",
			Types:       subscribing,
			Scopes:      []string{"webhooks:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"TRACKING_SUBSCRIPTION_NOT_FOUND"},
			Example:     `{"id":7}`,
		}, r.Unsubscribe, nil),
	}
}
