package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/catalog"
)

// apps are what the platform's apps are told, and how a business says it.
func (c Config) apps() []catalog.Operation {
	const area, one = "Platform Apps", "/api/v1/apps/{app_code}"
	yes, radius := true, 8
	return []catalog.Operation{
		catalog.Define(catalog.Operation{Name: "platformAppBootstrap", Summary: "Get an app's appearance before login", Tag: area, Method: http.MethodGet,
			Path: "/api/v1/apps/{appCode}/clients/{clientCode}/bootstrap", NoToken: true, Tagged: true, Errors: []string{"APP_NOT_FOUND", "CLIENT_NOT_FOUND", "APP_NOT_ENABLED_FOR_CLIENT"}},
			c.Apps.Bootstrap, func(out app.BootstrapOutput) catalog.Answer {
				return catalog.Answer{Body: out, Tag: out.Data.ETag, Headers: [][2]string{{"Cache-Control", "public, max-age=300"}, {"Vary", "Accept-Language"}}}
			}),
		catalog.Define(catalog.Operation{Name: "apps.list", Summary: "List the app settings of the business", Tag: area, Method: http.MethodGet, Path: "/api/v1/apps",
			Types: admins, Scopes: settingsWrite}, c.Apps.List, nil),
		catalog.Define(catalog.Operation{Name: "apps.find", Summary: "Get the settings of an app", Tag: area, Method: http.MethodGet, Path: one, Types: admins,
			Scopes: settingsWrite, Errors: []string{"APP_NOT_FOUND"}}, c.Apps.Find, nil),
		catalog.Define(catalog.Operation{Name: "apps.save", Summary: "Save the settings of an app", Tag: area, Method: http.MethodPut, Path: one, Types: admins,
			Scopes: settingsWrite, Risk: catalog.RiskMedium, Errors: []string{"APP_NOT_FOUND"}, Example: app.SaveInput{Enabled: &yes, Radius: &radius, Colors: map[string]string{"primary": "#0B5FFF"},
				QuickActions: []string{"send", "lockers"}, Versions: map[string]cloud.AppVersion{"ios": {Latest: "2.4.0", Minimum: "2.1.0"}}}}, c.Apps.Save, nil),
	}
}
