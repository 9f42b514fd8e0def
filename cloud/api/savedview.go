package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/savedview"
)

// viewers are who have lists in the console.
var viewers = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.Customer}

func savedViews(c Config) []catalog.Operation {
	views := savedview.New(c.Store)
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "saved_views.list",
			Summary:     "List saved views of the console's lists",
			Description: "The caller's own views by name; staff also get those that others share. A view is the query of a list's address.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/saved-views",
			Types:       viewers,
			Example:     `{"noun":"order"}`,
		}, views.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "saved_views.find",
			Summary:     "Get a saved view",
			Description: "One of the caller's own views, or for staff a shared one.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/saved-views/{id}",
			Types:       viewers,
			Errors:      []string{"SAVED_VIEW_NOT_FOUND"},
			Example:     `{"id":7}`,
		}, views.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "saved_views.create",
			Summary:     "Create a saved view",
			Description: "Keeps the filters, columns and sort of a list under a name. Staff may share a view with all staff of the business.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/saved-views",
			Types:       viewers,
			Idempotent:  true,
			Status:      http.StatusCreated,
			Errors:      []string{"SAVED_VIEW_EXISTS", "SAVED_VIEW_LIMIT_REACHED", "LOGIN_REQUIRED"},
			Example:     `{"noun":"order","name":"Held orders","query":"status_ids=3"}`,
		}, byPerson(views.Create), nil),
		catalog.Define(catalog.Operation{
			Name:        "saved_views.remove",
			Summary:     "Remove a saved view",
			Description: "Only its owner removes a view; administrators remove shared ones too.",
			Tag:         "Client",
			Method:      http.MethodDelete,
			Path:        "/api/v1/saved-views/{id}",
			Types:       viewers,
			Errors:      []string{"SAVED_VIEW_NOT_FOUND", "SAVED_VIEW_NOT_OWN", "LOGIN_REQUIRED"},
			Example:     `{"id":7}`,
		}, byPerson(views.Remove), nil),
	}
}
