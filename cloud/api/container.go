package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/tracking"
)

// packing are the accounts that put parcels into containers.
var packing = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.ProviderType}

// containers are the operations on containers and what is inside.
func (c Config) containers() []catalog.Operation {
	s := tracking.ContainersOf(c.Tracking)
	bound := []string{"CONTAINER_NOT_FOUND", "OTEP_TRACKING_NOT_FOUND", "OTEP_INVALID_REQUEST", "OTEP_PROVIDER_FORBIDDEN"}
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "otep.containers.list",
			Summary:     "List containers",
			Description: "Pallets, bags, cages, routes and vehicles, newest first: those of the business for its staff, a provider's own.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/containers",
			Types:       packing,
			Scopes:      []string{"orders:read"},
			Errors:      []string{"OTEP_PROVIDER_FORBIDDEN"},
		}, s.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.containers.find",
			Summary:     "Get a container",
			Description: "With what is inside now, and its events.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/containers/{id}",
			Types:       packing,
			Scopes:      []string{"orders:read"},
			Errors:      []string{"CONTAINER_NOT_FOUND", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"id":1}`,
		}, s.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.containers.create",
			Summary:     "Create a container",
			Description: "Events that name its identity are events of the container, and of each thing that is inside when they occur.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/containers",
			Status:      http.StatusCreated,
			Types:       packing,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskLow,
			Idempotent:  true,
			Errors:      []string{"CONTAINER_EXISTS", "OTEP_INVALID_REQUEST", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"kind":"pallet","scheme":"own","identity":"PALLET-7"}`,
		}, s.Create, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.containers.bind",
			Summary:     "Put things into a container",
			Description: "Parcels, orders and other containers, up to five in one another and 5,000 in one. Events of the container from at on become theirs, also those that are there already. Terminal events do not pass, delivered passes as arrival_scan.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/containers/{id}/bind",
			Types:       packing,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      append([]string{"CONTAINER_CYCLE", "CONTAINER_TOO_DEEP", "CONTAINER_FULL"}, bound...),
			Example:     `{"id":1,"children":["SWP100200301"]}`,
		}, s.Bind, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.containers.unbind",
			Summary:     "Take things out of a container",
			Description: "Events of the container after at are not theirs; those that had come to them are withdrawn.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/containers/{id}/unbind",
			Types:       packing,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      bound,
			Example:     `{"id":1,"children":["SWP100200301"]}`,
		}, s.Unbind, nil),
	}
}
