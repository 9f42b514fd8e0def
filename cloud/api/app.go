package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/catalog"
)

// apps are the settings of the platform's apps, and how a business keeps them.
func apps(c Config) []catalog.Operation {
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "platformAppBootstrap",
			Summary:     "Get an app's appearance before login",
			Description: "Name, colours, links, languages and the oldest version that may still be used. Needs no login.",
			Tag:         "Platform Apps",
			Method:      http.MethodGet,
			Path:        "/api/v1/apps/{appCode}/clients/{clientCode}/bootstrap",
			NoToken:     true,
			Tagged:      true,
			Errors:      []string{"APP_NOT_FOUND", "CLIENT_NOT_FOUND", "APP_NOT_ENABLED_FOR_CLIENT"},
			Example:     `{"appCode":"customer-app","clientCode":"acme"}`,
		},
			c.Apps.Bootstrap, func(out app.BootstrapOutput) catalog.Answer {
				return catalog.Answer{Body: out, Tag: out.Data.ETag, Headers: [][2]string{{"Cache-Control", "public, max-age=300"}, {"Vary", "Accept-Language"}}}
			}),
		catalog.Define(catalog.Operation{
			Name:        "apps.list",
			Summary:     "List the app settings of the business",
			Description: "Each app as the business wants it.",
			Tag:         "Platform Apps",
			Method:      http.MethodGet,
			Path:        "/api/v1/apps",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Noun: &catalog.Noun{
				Name: "app", Path: "apps", Area: "business", Icon: "phone",
				ID: "code", Title: []string{"name", "code"},
				Columns: []string{"code", "name", "enabled", "support_url"},
				Verbs:   []string{"apps.save"},
			},
		}, c.Apps.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "apps.find",
			Summary:     "Get the settings of an app",
			Description: "One app as the business wants it.",
			Tag:         "Platform Apps",
			Method:      http.MethodGet,
			Path:        "/api/v1/apps/{app_code}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Errors:      []string{"APP_NOT_FOUND"},
			Example:     `{"app_code":"driver-app"}`,
		}, c.Apps.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "apps.save",
			Summary:     "Save the settings of an app",
			Description: "Members that are left out stay. Apps read the change with their next start.",
			Tag:         "Platform Apps",
			Method:      http.MethodPut,
			Path:        "/api/v1/apps/{app_code}",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"APP_NOT_FOUND"},
			Example:     `{"app_code":"driver-app","enabled":true,"radius":8,"colors":{"primary":"#0B5FFF"},"quick_actions":["send","lockers"],"versions":{"ios":{"latest":"2.4.0","minimum":"2.1.0"}}}`,
		}, c.Apps.Save, nil),
	}
}
