package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// Paths of the registry and of its exceptions.
const (
	deviceOrders    = "/api/v1/device-orders"
	orderExceptions = "/api/v1/device-order-exceptions"
)

// deviceOrders are the operations on what rests in cabinets, and on the exceptions at their
// compartments.
func (c Config) deviceOrders() []catalog.Operation {
	const notFound, conflict = "DEVICE_ORDER_NOT_FOUND", "DEVICE_ORDER_STATE_CONFLICT"
	inside := []string{"stored", "overdue"}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "device_orders.list",
			Summary:     "List what rests in cabinets",
			Description: "One row for each package in a compartment, and for those that have left: newest first. Filters by state, cabinet and reference number. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        deviceOrders,
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "device_order", Path: "registry", Area: "lockers", Icon: "door",
				Begin: "cabinet",
				Live:  []string{"DeviceOrders", "Exceptions"},
				ID:    "id", Refs: []string{"device_order_id"}, Title: []string{"tracking_number"}, State: "status", States: "device_order",
				Columns: []string{"tracking_number", "status", "door_name", "device_id", "next_actor", "due_at", "stored_at"},
				Verbs:   []string{"device_orders.extend", "device_orders.resend_code", "device_orders.remove"},
				Links: []catalog.Link{
					{Words: "todo.door", To: "/console/cabinets/{device_id}#door-{grid_code}", Operation: "smart_lockers.devices.find"},
					{Words: "todo.parcel", To: "/console/parcels/{delivery_id}", Operation: "smart_lockers.deliveries.find"},
				},
			},
		}, c.Lockers.ListDeviceOrders, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_orders.find",
			Summary:     "Get a device order",
			Description: "The package with its compartment, times, exceptions and moments. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        deviceOrders + "/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{notFound},
			Example:     `{"id":8301}`,
		}, c.Lockers.FindDeviceOrder, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_orders.remove",
			When:        append([]string{"unverified"}, inside...),
			Summary:     "Remove a package from the registry",
			Description: "States that staff have taken the package out, and why. Given to its recipient (handover, its order is delivered) or returned (overdue_return), its delivery is picked up by staff; with any other reason it has failed. Codes of a delivery of which nothing is left die, and the cabinet is ordered to forget what its compartment held.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        deviceOrders + "/{id}/remove",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{notFound, conflict, "DOOR_OPEN", "DELIVERY_STATE_CONFLICT", "DEVICE_DISABLED", "GRID_NOT_FOUND"},
			Example:     `{"id":8301,"removal_reason":"handover","note":"The keypad was dark; handed over at the counter"}`,
		}, c.Lockers.RemoveDeviceOrder, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_orders.extend",
			When:        inside,
			Summary:     "Extend the time to collect a package",
			Description: "Moves the due time of all that its delivery has inside. An overdue package waits for its recipient again.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        deviceOrders + "/{id}/extend",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Idempotent:  true,
			Errors:      []string{notFound, conflict},
			Example:     `{"id":8301,"hours":48}`,
		}, c.Lockers.ExtendDeviceOrder, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_orders.resend_code",
			When:        inside,
			Summary:     "Send the pickup code of a package again",
			Description: "To the person who collects, by mail or SMS, at most once a minute. The answer shows where it goes, masked, and no code.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        deviceOrders + "/{id}/resend-code",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Shows:       true,
			Errors:      []string{notFound, conflict, "CHANNEL_NOT_CONFIGURED"},
			Example:     `{"id":8301,"channel":"email"}`,
		}, c.Lockers.ResendDeviceOrderCode, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_order_exceptions.list",
			Summary:     "List exceptions at compartments",
			Description: "Doors left open, deposits that are not verified, missing and overdue parcels: each needs a person. Newest first; open ones unless status says otherwise.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        orderExceptions,
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "cabinet_exception", Path: "exceptions", Area: "lockers", Icon: "warning",
				Live: []string{"Exceptions"},
				ID:   "exception_id", Title: []string{"type"}, State: "status", States: "exception_status",
				Columns: []string{"type", "severity", "status", "device_id", "door_name", "opened_at", "closed_at"},
				Verbs:   []string{"device_order_exceptions.resolve", "device_order_exceptions.dismiss"},
				Parts:   []catalog.Part{{Input: "resolution_action", Of: "resolutions", ID: "resolution_action", Title: "resolution_action", Only: map[string]string{"hours": "extended"}}},
				Story: []catalog.Strand{
					{Operation: "device_order_exceptions.find", Fills: map[string]string{"id": "{exception_id}"}, Rows: "exception.evidence.door_reports", Icon: "door", At: "requested_at", What: "kind", Words: "value", More: []string{"requested_by_name", "reason", "doors.0.door_name"}, State: "state", States: "opening"},
					{Operation: "audit.list", Fills: map[string]string{"target": "exception:{exception_id}", "per_page": "50"}, Rows: "lines", Icon: "eye", At: "at", What: "action", Words: "action", More: []string{"actor_name", "surface"}},
				},
				Links: []catalog.Link{
					{Words: "todo.door", To: "/console/cabinets/{device_id}#door-{grid_code}", Operation: "smart_lockers.devices.find"},
					{Words: "todo.parcel", To: "/console/parcels/{delivery_id}", Operation: "smart_lockers.deliveries.find"},
					{Words: "noun.work_item", To: "/console/work#exception-{exception_id}", Operation: "work_items.list"},
				},
			},
		}, c.Lockers.ListCabinetExceptions, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_order_exceptions.find",
			Summary:     "Get an exception with its evidence",
			Description: "The exception with the reports of its door, what its sensor sees, the package that it is about, and the actions that can resolve it with what each is followed by.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        orderExceptions + "/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"EXCEPTION_NOT_FOUND"},
			Example:     `{"id":9301}`,
		}, c.Lockers.FindCabinetException, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_order_exceptions.resolve",
			When:        []string{"open"},
			Free:        []string{"open_door"},
			Summary:     "Resolve an exception",
			Description: "States what a person found or did, and does what follows: deposit_confirmed settles the deposit behind this door and makes its code live; deposit_cancelled, package_lost and package_returned clear the compartment, in the cabinet too; extended gives more time (hours); door_closed_on_site asks the cabinet where it stands; package_found and no_action only close it.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        orderExceptions + "/{id}/resolve",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Idempotent:  true,
			Errors:      []string{"EXCEPTION_NOT_FOUND", "EXCEPTION_CLOSED", "RESOLUTION_NOT_POSSIBLE", "DOOR_OPEN", "DELIVERY_NOT_FOUND", "DELIVERY_STATE_CONFLICT", conflict, "DEVICE_DISABLED", "GRID_NOT_FOUND"},
			Example:     `{"id":9301,"resolution_action":"no_action","note":"A cleaner had propped the door open"}`,
		}, c.Lockers.ResolveException, nil),
		catalog.Define(catalog.Operation{
			Name:        "device_order_exceptions.dismiss",
			When:        []string{"open"},
			Free:        []string{"open_door"},
			Summary:     "Dismiss an exception",
			Description: "For one that turned out to be none; nothing else changes. An overdue parcel stays an exception until it is collected, has more time or was removed.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Many:        500,
			Path:        orderExceptions + "/{id}/dismiss",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"EXCEPTION_NOT_FOUND", "EXCEPTION_CLOSED", "RESOLUTION_NOT_POSSIBLE", "DOOR_OPEN"},
			Example:     `{"id":9302,"note":"Seen on the spot: all is well"}`,
		}, c.Lockers.DismissException, nil),
	}
}
