package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/tracking"
)

// aliases are the operations on numbers by which others know a parcel.
func aliases(c Config) []catalog.Operation {
	s := tracking.AliasesOf(c.Tracking)
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "otep.aliases.list",
			Summary:     "List aliases of a parcel",
			Description: "Numbers by which carriers and partners know a parcel, a package or a container.",
			Tag:         "OTEP",
			Method:      http.MethodGet,
			Path:        "/api/v1/otep/trackings/{tracking_number}/aliases",
			Types:       packing,
			Scopes:      []string{"orders:read"},
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"tracking_number":"SWP100200301"}`,
		}, s.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.aliases.add",
			Summary:     "Add an alias to a parcel",
			Description: "Events that name the alias are events of the parcel, package or container, until 180 days after its end; then the value may be another one's. An alias gives no rights, and is no public number.",
			Tag:         "OTEP",
			Method:      http.MethodPost,
			Path:        "/api/v1/otep/trackings/{tracking_number}/aliases",
			Status:      http.StatusCreated,
			Types:       packing,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskLow,
			Idempotent:  true,
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "ALIAS_TAKEN", "TOO_MANY_ALIASES", "OTEP_INVALID_REQUEST", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"tracking_number":"SWP100200301","kind":"carrier","issuer":"ups","value":"1Z999AA10123456784"}`,
		}, s.Add, nil),
		catalog.Define(catalog.Operation{
			Name:        "otep.aliases.remove",
			Summary:     "Remove an alias of a parcel",
			Description: "Events that came by it stay; later ones that name it are refused.",
			Tag:         "OTEP",
			Method:      http.MethodDelete,
			Path:        "/api/v1/otep/trackings/{tracking_number}/aliases/{id}",
			Types:       packing,
			Scopes:      []string{"orders:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"OTEP_TRACKING_NOT_FOUND", "ALIAS_NOT_FOUND", "OTEP_PROVIDER_FORBIDDEN"},
			Example:     `{"tracking_number":"SWP100200301","id":1}`,
		}, s.Remove, nil),
	}
}
