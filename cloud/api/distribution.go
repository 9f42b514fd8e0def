package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/distribution"
)

// distributions are the operations on sites and on the packages that carriers announce for them.
func distributions(c Config) []catalog.Operation {
	s := distribution.New(c.Store)
	const announced = "/api/v1/third-party-delivery/announced-packages"
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "sites.list",
			Summary:     "List sites",
			Description: "Places at which cabinets stand and to which packages are distributed, with their opening hours. Providers see those of their business.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/sites",
			Types:       staffProviders,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "site", Path: "sites", Area: "lockers", Icon: "building", Named: true,
				ID: "location_id", Refs: []string{"location_id", "destination_location_id"}, Title: []string{"name"},
				Columns: []string{"name", "address", "timezone", "created_at"},
				Verbs:   []string{"sites.edit"},
				Related: []catalog.Relation{{Noun: "announced_package", By: "location_id"}},
			},
		}, collection.MakeList(c.Store, distribution.LikeSite, distribution.SiteRow, distribution.ShowSites), nil),
		catalog.Define(catalog.Operation{
			Name:        "sites.find",
			Summary:     "Get a site",
			Description: "The site with its address and opening hours.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/sites/{location_id}",
			Types:       staffProviders,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"SITE_NOT_FOUND"},
			Example:     `{"location_id":12}`,
		}, s.FindSite, nil),
		catalog.Define(catalog.Operation{
			Name:        "sites.create",
			Summary:     "Create a site",
			Description: "A place with a name of its own. Cabinets are put there by their location_id.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Many:        1000,
			Path:        "/api/v1/sites",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskLow,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"SITE_EXISTS"},
			Example:     `{"name":"Union Concourse","address":"65 Front St W, Toronto ON","opening_hours":[{"day":1,"open":"06:00","close":"22:00"}]}`,
		}, collection.MakeCreate(c.Store, distribution.FillSite, distribution.ShowSite), nil),
		catalog.Define(catalog.Operation{
			Name:        "sites.edit",
			Summary:     "Update a site",
			Description: "Members that are left out stay.",
			Tag:         "Smart Locker",
			Method:      http.MethodPatch,
			Path:        "/api/v1/sites/{location_id}",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskLow,
			Errors:      []string{"SITE_NOT_FOUND", "SITE_EXISTS"},
			Example:     `{"location_id":12,"address":"120 Front St W, Toronto ON M5J 2L7"}`,
		}, collection.MakeChange(c.Store, distribution.EditSite, distribution.ShowSite), nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.announced_packages.create",
			Summary:     "Announce packages for sites",
			Description: "Up to 200 packages that the carrier will bring to the business. Each is taken or rejected by itself; the same carrier_reference with the same data is the package that was announced.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodPost,
			Path:        announced,
			Types:       providers,
			Idempotent:  true,
			Example:     `{"packages":[{"carrier_reference":"SWP100200301","member_number":"M-204","recipient":{"name":"Jane Smith","phone":"+14165550123"},"destination_location_id":12,"size":"M","weight":2.4}]}`,
		}, s.Announce, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.announced_packages.list",
			Summary:     "List announced packages",
			Description: "The caller's own, newest first; by state, carrier_reference and member_number.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        announced,
			Types:       providers,
		}, s.ListOwn, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.announced_packages.find",
			Summary:     "Get an announced package",
			Description: "The package with its recipient and destination.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodGet,
			Path:        announced + "/{package_number}",
			Types:       providers,
			Errors:      []string{"ANNOUNCED_PACKAGE_NOT_FOUND"},
			Example:     `{"package_number":"CPD-PKG-7781"}`,
		}, s.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "third_party.announced_packages.remove",
			Summary:     "Withdraw an announced package",
			Description: "For one that will not be brought. Its carrier_reference is free again.",
			Tag:         "ThirdPartyDelivery",
			Method:      http.MethodDelete,
			Path:        announced + "/{package_number}",
			Types:       providers,
			Errors:      []string{"ANNOUNCED_PACKAGE_NOT_FOUND"},
			Example:     `{"package_number":"CPD-PKG-7781"}`,
		}, s.Withdraw, nil),
		catalog.Define(catalog.Operation{
			Name:        "package_distribution.packages.list",
			Summary:     "List the packages that carriers have announced",
			Description: "What carriers will bring, newest first; by state and site.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/package-distribution/packages",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "announced_package", Path: "announced", Area: "lockers", Icon: "truck",
				Begin: "site",
				ID:    "package_number", Title: []string{"package_number"}, Find: "package_distribution.packages.find", State: "status", States: "announced_package",
				Columns: []string{"package_number", "status", "destination.name", "recipient.name", "carrier_reference", "size", "announced_at"},
			},
		}, s.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "package_distribution.packages.find",
			Summary:     "Get a package that a carrier has announced",
			Description: "The package with its carrier, recipient and destination.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/package-distribution/packages/{package_number}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"ANNOUNCED_PACKAGE_NOT_FOUND"},
			Example:     `{"package_number":"CPD-PKG-7781"}`,
		}, s.Find, nil),
	}
}
