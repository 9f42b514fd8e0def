package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// staffCodes are the operations of the codes by which staff open cabinets at their screens.
func staffCodes(c Config) []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.staff_codes.list",
			Summary:     "List staff members with codes for cabinets",
			Description: "Members for whom codes are drawn day by day, at most 50. No codes are shown.",
			Tag:         "Smart Locker",
			Method:      http.MethodGet,
			Path:        "/api/v1/smart-lockers/staff-codes",
			Types:       staff,
			Scopes:      []string{"lockers:read"},
			Noun: &catalog.Noun{
				Name: "staff_code", Path: "staff-codes", Area: "lockers", Icon: "key",
				Begin: catalog.OwnAccount,
				ID:    "account_id", Title: []string{"name"},
				Columns: []string{"name", "since"},
				Verbs:   []string{"smart_lockers.staff_codes.end"},
			},
		}, c.Lockers.ListStaffCodes, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.staff_codes.find",
			Summary:     "Get your codes for cabinets",
			Description: "The codes of the caller for today and the seven days that follow. A code of 8 digits opens the staff's view at the screen of every cabinet of the business, also without a network, on its own day only.",
			Tag:         "User",
			Method:      http.MethodGet,
			Path:        "/api/v1/user/staff-codes",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Secret:      true,
		}, c.Lockers.FindStaffCodes, nil),
		catalog.Define(catalog.Operation{
			Name:        "user.staff_codes.draw",
			Summary:     "Draw your codes for cabinets",
			Description: "Draws a code for today and each of the seven days that follow, and from then on one for each day that comes. Former codes of the caller end; cabinets learn of it as soon as their lists say so, one without a network when it is back. What is opened with a code is recorded under the caller's name.",
			Tag:         "User",
			Method:      http.MethodPost,
			Path:        "/api/v1/user/staff-codes",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Errors:      []string{"STAFF_CODE_LIMIT_REACHED"},
			Example:     `{}`,
		}, c.Lockers.DrawStaffCodes, nil),
		catalog.Define(catalog.Operation{
			Name:        "smart_lockers.staff_codes.end",
			Summary:     "End the codes of a staff member for cabinets",
			Description: "Your own, or as an administrator those of any member. No more are drawn until the member draws some again.",
			Tag:         "Smart Locker",
			Method:      http.MethodDelete,
			Path:        "/api/v1/smart-lockers/staff-codes/{account_id}",
			Types:       staff,
			Scopes:      []string{"lockers:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"STAFF_CODES_NOT_FOUND"},
			Example:     `{"account_id":7}`,
		}, c.Lockers.EndStaffCodes, nil),
	}
}
