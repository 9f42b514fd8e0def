package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// liveOnly are the values of a delivery whose numbers are real parcels': those of a test have no
// timeline, and may be another parcel's.
var liveOnly = map[string]string{"livemode": "true"}

// lockerLists are the operations that list what a business has in its cabinets.
func (c Config) lockerLists() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.list",
			Summary:     "List locker deliveries of all partners",
			Description: "Newest first; filters by state, cabinet and livemode, which is false for deliveries to test lockers. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/deliveries",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "delivery", Path: "parcels", Area: "lockers", Icon: "parcel", Key: "p",
				Begin: "cabinet",
				Live:  []string{"Deliveries", "Compartments", "Openings"},
				ID:    "delivery_id", Refs: []string{"delivery_id", "current_delivery_id"}, Title: []string{"delivery_number"}, State: "status", States: "delivery",
				Columns: []string{"delivery_number", "status", "livemode", "recipient_name", "device_id", "reference_number", "due_at", "created_at"},
				Verbs:   []string{"smart_lockers.deliveries.courier_qr", "smart_lockers.deliveries.confirm", "smart_lockers.deliveries.expire", "smart_lockers.deliveries.cancel"},
				Links: []catalog.Link{
					{Words: "story.recipient", To: "/track/{packages.0.tracking_number}", Operation: "smart_lockers.deliveries.find", Only: liveOnly},
					{Words: "hooklog.title", To: "/console/webhooks?reference={delivery_number}", Operation: "webhook_logs.list"},
				},
				Story: []catalog.Strand{
					{Operation: "otep.events", Fills: map[string]string{"tracking_number": "{packages.0.tracking_number}", "format": "otep"}, Only: liveOnly, Rows: "data", Icon: "parcel", At: "occurred_at", What: "status_code", Words: "otep", More: []string{"location.name", "incident_reason"}},
					{Operation: "smart_lockers.devices.door_reports", Fills: map[string]string{"id": "{device_id}", "delivery_id": "{delivery_id}"}, Rows: "door_reports", Icon: "door", At: "requested_at", What: "kind", Words: "value", More: []string{"requested_by_name", "reason", "doors.0.door_name"}, State: "state", States: "opening"},
					{Operation: "audit.list", Fills: map[string]string{"target": "{delivery_number}", "per_page": "50"}, Rows: "lines", Icon: "eye", At: "at", What: "action", Words: "action", More: []string{"actor_name", "surface"}},
				},
			},
		}, c.Lockers.ListStaffDeliveries, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.find",
			Summary:     "Get a locker delivery without its codes",
			Description: "The delivery of a partner with its packages, compartments and times. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/deliveries/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"DELIVERY_NOT_FOUND"},
			Example:     `{"id":"64021"}`,
		}, c.Lockers.FindStaffDelivery, nil),
	}
}
