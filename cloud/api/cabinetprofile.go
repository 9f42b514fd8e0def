package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/cabinetprofile"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/collection"
)

// cabinetProfiles are the operations on settings of cabinets under a name.
func cabinetProfiles(c Config) []catalog.Operation {
	const path = "/api/v1/smart-lockers/profiles"
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.profiles.list",
			Summary:     "List configuration profiles",
			Description: "Settings of cabinets under a name: waits, a notice for the screen and opening hours.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "cabinet_profile", Path: "cabinet-profiles", Area: "lockers", Icon: "cabinet", Named: true,
				ID: "cabinet_profile_id", Refs: []string{"cabinet_profile_id"}, Title: []string{"name"},
				Columns: []string{"name", "revision", "notice", "updated_at"},
				Verbs:   []string{"smart_lockers.profiles.edit", "smart_lockers.profiles.remove"},
			},
		}, collection.MakeList(c.Store, cabinetprofile.Like, cabinetprofile.Row, cabinetprofile.ShowList), nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.profiles.find",
			Summary:     "Get a configuration profile",
			Description: "The settings and their revision.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        path + "/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Errors:      []string{"CABINET_PROFILE_NOT_FOUND"},
			Example:     `{"id":7}`,
		}, collection.MakeFind(c.Store, cabinetprofile.Show), nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.profiles.create",
			Summary:     "Create a configuration profile",
			Description: "It changes no cabinet: a roll-out with its cabinet_profile_id brings its settings to cabinets.",
			Tag:         "Smart Locker",
			Method:      http.MethodPost,
			Path:        path,
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskLow,
			Status:      http.StatusCreated,
			Idempotent:  true,
			Errors:      []string{"CABINET_PROFILE_EXISTS"},
			Example:     `{"name":"Stations","session_seconds":300,"left_open_sound_seconds":120,"reopen_seconds":60,"notice":"Closed on 1 January","opening_hours":[{"day":1,"open":"06:00","close":"22:00"}]}`,
		}, collection.MakeCreate(c.Store, cabinetprofile.Fill, cabinetprofile.Show), nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.profiles.edit",
			Summary:     "Update a configuration profile",
			Description: "Members that are left out stay. Changed settings are the next revision, which a roll-out brings to cabinets; a roll-out that runs goes on with the revision that it began with.",
			Tag:         "Smart Locker",
			Method:      http.MethodPatch,
			Path:        path + "/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskLow,
			Errors:      []string{"CABINET_PROFILE_NOT_FOUND", "CABINET_PROFILE_EXISTS"},
			Example:     `{"id":7,"notice":"Closed on 25 December"}`,
		}, collection.MakeChange(c.Store, cabinetprofile.Change, cabinetprofile.Show), nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.profiles.remove",
			Summary:     "Remove a configuration profile",
			Description: "Cabinets keep the settings that they have, and a roll-out that runs goes on.",
			Tag:         "Smart Locker",
			Method:      http.MethodDelete,
			Path:        path + "/{id}",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"CABINET_PROFILE_NOT_FOUND"},
			Example:     `{"id":7}`,
		}, collection.MakeRemove[cloud.CabinetProfile](c.Store), nil),
	}
}
