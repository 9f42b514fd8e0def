package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/thirdparty"
)

// thirdParties are the orders that delivery companies carry: given and taken back
// by the business, reported on by the company.
func (c Config) thirdParties() []catalog.Operation {
	o := thirdparty.New(c.Orders)
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.create",
			When:        order.StatusesBefore(order.HandOver),
			Free:        []string{"third_party"},
			Summary:     "Assign an order to a delivery provider",
			Description: "The provider gets a webhook, and only the provider can plan the order. The order moves on when packages are handed over.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"ORDER_NOT_FOUND", "ORDER_STATUS_CONFLICT", "HELD_BY_THIRD_PARTY", "HELD_BY_CONTRACTOR", "ORDER_ON_ROUTE"},
			Example:     `{"order_id":120045,"provider_id":17,"service_code":"same_day"}`,
		}, o.Assign, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.list",
			Summary:     "List assignments to delivery providers",
			Description: "Staff see all of the business's, a provider its own.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/assignments",
			Types:       staffProviders,
			Scopes:      []string{"orders:read"},
			Noun: &catalog.Noun{
				Name: "third_party_assignment", Path: "carrier-assignments", Area: "delivery", Icon: "truck",
				Begin: "order",
				Live:  []string{"ThirdParties", "Orders"},
				ID:    "assignment_number", Title: []string{"assignment_number"}, State: "status", States: "third_party",
				Columns: []string{"assignment_number", "status", "provider.name", "order.tracking_number", "created_at", "ended_at"},
				Verbs:   []string{"third_party.assignments.cancel"},
			},
		}, o.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.find",
			Summary:     "Get an assignment to a delivery provider",
			Description: "The packages of the assignment, its legs and the outcome of each package.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}",
			Types:       staffProviders,
			Scopes:      []string{"orders:read"},
			Errors:      []string{"ASSIGNMENT_NOT_FOUND"},
			Example:     `{"assignment_number":"TPA-120045-1"}`,
		}, o.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.hand_over",
			Summary:     "Record the hand-over of packages to a provider",
			Description: "The order is with the provider from the first package on, whose events go on the timeline. No list means all packages.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/hand-over",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT", "ORDER_STATUS_CONFLICT"},
			Example:     `{"assignment_number":"TPA-120045-1"}`,
		}, o.HandOver, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.cancel",
			Summary:     "Cancel an assignment to a delivery provider",
			Description: "The order goes back to where it was before and can be planned again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/cancel",
			Types:       staff,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskHigh,
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "ORDER_STATUS_CONFLICT"},
			Example:     `{"assignment_number":"TPA-120045-1","reason":"fallback_to_self_delivery"}`,
		}, o.Cancel, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.accept",
			Summary:     "Accept an assignment",
			Description: "The provider takes the assignment on. Accepting again changes nothing.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/accept",
			Types:       providers,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT"},
			Example:     `{"assignment_number":"TPA-120045-1"}`,
		}, o.Accept, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.reject",
			Summary:     "Reject an assignment",
			Description: "Only while nothing was handed over. The order falls back to the business's own drivers.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/reject",
			Types:       providers,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT"},
			Example:     `{"assignment_number":"TPA-120045-1","reason":"No van today"}`,
		}, o.Reject, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.set_leg",
			Summary:     "Save a carrier leg of an assignment",
			Description: "Keeps the carrier's own numbers for all packages or some. The external tracking number becomes that of its packages.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/legs",
			Types:       providers,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Idempotent:  true, // a repeat would be another leg
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT"},
			Example:     `{"assignment_number":"TPA-120045-1","external_order_id":"SW-55120","external_tracking_number":"SWP100200300"}`,
		}, o.SetLeg, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.assignments.report",
			Summary:     "Report the outcome of packages",
			Description: "With the outcome of the last package the assignment ends, and the order is delivered, delivered in part, refused, returned or failed. An outcome that is repeated changes nothing.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        "/api/v1/third-party-delivery/assignments/{assignment_number}/outcomes",
			Types:       providers,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"ASSIGNMENT_NOT_FOUND", "ASSIGNMENT_STATE_CONFLICT", "PACKAGE_NOT_IN_ASSIGNMENT"},
			Example:     `{"assignment_number":"TPA-120045-1","packages":[{"tracking_number":"SR204518837-1","outcome":"delivered"},{"tracking_number":"SR204518837-2","outcome":"failed","failure_code":"damaged"}]}`,
		}, o.Report, nil),
	}
}
