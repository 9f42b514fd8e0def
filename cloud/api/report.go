package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/report"
)

// reports are the operations that add up what happened. Each needs the rights of what it
// adds up.
func reports(c Config) []catalog.Operation {
	s := &report.Service{Store: c.Store}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "reports.deliveries",
			Summary:     "Count deposits and collections by hour or day",
			Description: "Parcels put into cabinets and taken out of them: by hours up to two days, else by days, and by the hour of the day. At most 31 days.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/deliveries",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Tool:        catalog.Whole{Name: "report_deliveries", Category: "analytics"},
			Example:     `{"from":"2026-11-16","to":"2026-11-18"}`,
		}, s.Deliveries, nil),
		catalog.Define(catalog.Operation{
			Name:        "reports.collection",
			Summary:     "Get the time from deposit to collection",
			Description: "Collections of the chosen days by how long the parcel lay in the cabinet, with the mean of each day. At most 31 days.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/collection",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Tool:        catalog.Whole{Name: "report_time_to_collection", Category: "analytics"},
			Example:     `{"from":"2026-11-16","to":"2026-11-18"}`,
		}, s.Collection, nil),
		catalog.Define(catalog.Operation{
			Name:        "reports.occupancy",
			Summary:     "Get the occupancy of cabinets",
			Description: "Compartments of all cabinets in use by their state now, and the fullest cabinets.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/occupancy",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Tool:        catalog.Whole{Name: "report_occupancy", Category: "analytics"},
		}, s.Occupancy, nil),
		catalog.Define(catalog.Operation{
			Name:        "reports.connections",
			Summary:     "Get the connection gaps of cabinets",
			Description: "Times of a minute or longer in which a cabinet in use had no connection, added up by cabinet, the longest first. At most 31 days.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/connections",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Tool:        catalog.Whole{Name: "report_connection_gaps", Category: "analytics"},
			Example:     `{"from":"2026-11-16","to":"2026-11-18"}`,
		}, s.Connections, nil),
		catalog.Define(catalog.Operation{
			Name:        "reports.webhooks",
			Summary:     "Count webhook attempts by hour or day",
			Description: "Attempts at all webhook endpoints of the business and those that failed: by hours up to two days, else by days. Counts are kept for 32 days.",
			Tag:         "Webhooks",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/webhooks",
			Types:       admins,
			Scopes:      []string{"webhooks:read"},
			Tool:        catalog.Whole{Name: "report_webhooks", Category: "analytics"},
			Example:     `{"from":"2026-11-16","to":"2026-11-18"}`,
		}, s.Webhooks, nil),
		catalog.Define(catalog.Operation{
			Name:        "reports.orders",
			Summary:     "Count orders by day and status",
			Description: "Orders planned for each of the chosen days, by the status that they have now. At most 31 days.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/reports/orders",
			Types:       staff,
			Scopes:      []string{"orders:read"},
			Tool:        catalog.Whole{Name: "report_orders", Category: "analytics"},
			Example:     `{"from":"2026-11-16","to":"2026-11-18"}`,
		}, s.Orders, nil),
	}
}
