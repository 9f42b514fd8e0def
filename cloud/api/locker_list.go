package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// lockerLists are the operations that list what a business has in its cabinets.
func (c Config) lockerLists() []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.deliveries.list",
			Summary:     "List locker deliveries of all partners",
			Description: "Newest first; filters by state and cabinet. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/deliveries",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
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
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.exceptions.list",
			Summary:     "List exceptions at compartments",
			Description: "Doors left open, deposits that are not verified, missing and overdue parcels: each needs a person. Newest first; open ones unless status says otherwise.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/exceptions",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
		}, c.Lockers.ListCabinetExceptions, nil),
	}
}
