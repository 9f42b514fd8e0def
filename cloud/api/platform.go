package api

import (
	"context"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/platform"
)

// operators are what operators of the platform do, and what a business sees and ends
// of it.
func (c Config) operators() []catalog.Operation {
	p := c.Platform
	row := func(o catalog.Operation) catalog.Operation {
		o.Tag, o.Types, o.Scopes = "Client", operatorTypes, []string{"settings:write"}
		return o
	}
	return []catalog.Operation{
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.list",
			Summary:     "List businesses",
			Description: "All businesses of the deployment, newest first, with status, limits and features. Nothing of their work is shown.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/businesses",
			Noun: &catalog.Noun{
				Name: "business", Path: "businesses", Area: "platform", Icon: "building",
				ID: "business_id", Refs: []string{"business_id"}, Named: true, Title: []string{"name", "code"}, State: "status", States: "business",
				Columns: []string{"name", "status", "code", "timezone", "limits.cabinets", "suspended_at"},
				Verbs:   []string{"platform.businesses.edit", "platform.businesses.suspend", "platform.businesses.resume", "platform.passes.open", "platform.exports.begin"},
				Related: []catalog.Relation{{Noun: "platform_pass", By: "business_id"}},
			},
		}), p.List, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.find",
			Summary:     "Get a business",
			Description: "Status, limits and features of a business.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/businesses/{business_id}",
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42}`,
		}), p.Find, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.create",
			Summary:     "Create a business and invite its first administrator",
			Description: "The link for the administrator goes there by mail, or is in the answer once where the deployment has no mail server. Without limits a business has no bounds but those of the deployment.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses",
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Example:     `{"code":"harbour","name":"Harbour Parcels","timezone":"America/Toronto","administrator_email":"dana@harbour.example","administrator_name":"Dana Reyes"}`,
		}), p.Create, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.edit",
			Summary:     "Update a business and its limits",
			Description: "Members that are left out stay. A lower limit takes nothing away that is there; it stops what is new.",
			Method:      http.MethodPatch,
			Path:        "/api/v1/platform/businesses/{business_id}",
			Risk:        catalog.RiskMedium,
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42,"limits":{"cabinets":50,"requests_per_minute":6000}}`,
		}), p.Edit, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.suspend",
			When:        []string{"active"},
			Summary:     "Suspend a business",
			Description: "Logins, keys, agents and partner tokens of the business answer BUSINESS_SUSPENDED at once, and its webhooks wait. Cabinets go on, so that parcels inside can be collected.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses/{business_id}/suspend",
			Risk:        catalog.RiskHigh,
			Errors:      []string{"BUSINESS_NOT_FOUND", "BUSINESS_SUSPENDED"},
			Example:     `{"business_id":42,"reason":"The contract ended"}`,
		}), p.Suspend, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.businesses.resume",
			When:        []string{"suspended"},
			Summary:     "Resume a suspended business",
			Description: "Its people, keys and partners are let in again, and webhooks that waited are sent within minutes. Not while it is being removed.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses/{business_id}/resume",
			Risk:        catalog.RiskMedium,
			Errors:      []string{"BUSINESS_NOT_FOUND", "BUSINESS_NOT_SUSPENDED", "BUSINESS_REMOVAL_RUNNING"},
			Example:     `{"business_id":42}`,
		}), p.Resume, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.passes.open",
			Summary:     "Open a pass into a business",
			Description: "For 1 to 4 hours the token of the answer acts inside the business as an administrator, and every change is in its audit trail. Credentials and accounts are closed to it. Administrators of the business see the pass with its reason and end it.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses/{business_id}/passes",
			Risk:        catalog.RiskHigh,
			Status:      http.StatusCreated,
			Secret:      true,
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42,"reason":"Ticket 1187: a route does not build","hours":2}`,
		}), p.OpenPass, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.passes.list",
			Summary:     "List passes into a business",
			Description: "Passes of all operators into a business, newest first.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/businesses/{business_id}/passes",
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42}`,
			Noun: &catalog.Noun{
				Name: "platform_pass", Path: "platform-passes",
				ID: "pass_id", Title: []string{"reason"}, State: "status", States: "pass",
				Columns: []string{"operator", "status", "reason", "created_at", "expires_at"},
				Verbs:   []string{"platform.passes.end"},
			},
		}), p.ListPasses, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.passes.end",
			When:        []string{"active"},
			Summary:     "Revoke your own pass",
			Description: "Its token is dead at once.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/passes/{pass_id}/end",
			Risk:        catalog.RiskMedium,
			Errors:      []string{"PASS_NOT_FOUND", "PASS_ENDED"},
			Example:     `{"pass_id":1}`,
		}), p.EndPass, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.health.list",
			Summary:     "List the health of all businesses",
			Description: "Cabinets online, webhook endpoints that fail and deliveries that wait, as they were counted within the last minutes. Newest business first.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/health",
			Noun: &catalog.Noun{
				Name: "health", Path: "health", Area: "platform", Icon: "pulse",
				Title:   []string{"business_id"},
				Columns: []string{"business_id", "cabinets", "cabinets_online", "webhook_endpoints", "webhook_endpoints_failing", "webhook_backlog", "counted_at"},
			},
		}), p.ListHealth, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.exports.begin",
			Summary:     "Start an export of a business's data",
			Description: "An archive of all rows of the business as JSON lines and of its uploaded files, made in small steps and kept a week. Secrets, codes, passwords and tokens are not in it. While one is made, it is that one.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses/{business_id}/exports",
			Risk:        catalog.RiskHigh,
			Status:      http.StatusAccepted,
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42}`,
		}), p.Export, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.exports.find",
			Summary:     "Get the state of an export",
			Description: "Rows and bytes so far; download the archive when it is finished.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/exports/{job_id}",
			Errors:      []string{"JOB_NOT_FOUND"},
			Example:     `{"job_id":1}`,
		}), p.FindExport, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.exports.download",
			Summary:     "Get the archive of an export",
			Description: "A gzip file with a tar archive: one file of JSON lines for each step and table, and uploaded files below files/ by the path of their row.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/exports/{job_id}/archive",
			Risk:        catalog.RiskHigh,
			Secret:      true,
			Media:       []string{"application/gzip"},
			Errors:      []string{"JOB_NOT_FOUND", "EXPORT_NOT_READY", "EXPORT_EXPIRED"},
			Example:     `{"job_id":1}`,
		}), func(ctx context.Context, caller cloud.Caller, in platform.ByJob) (catalog.Stream, error) {
			body, size, name, err := p.Download(ctx, caller, in)
			return catalog.Stream{ReadCloser: body, Size: size, Type: "application/gzip", Name: name}, err
		}, func(s catalog.Stream) catalog.Answer {
			return catalog.Answer{Body: s, Type: s.Type, Headers: [][2]string{{"Content-Disposition", `attachment; filename="` + s.Name + `"`}, {"X-Content-Type-Options", "nosniff"}}}
		}),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.removals.preview",
			Summary:     "Get a preview of the removal of a business",
			Description: "Counts of what would be removed, the parcels that keep the business from it, and the digest that a removal names. Any change in the business gives another digest.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/businesses/{business_id}/removal",
			Errors:      []string{"BUSINESS_NOT_FOUND"},
			Example:     `{"business_id":42}`,
		}), p.PreviewRemoval, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.removals.begin",
			Summary:     "Remove a business with all its data",
			Description: "Only of a suspended business without parcels in its cabinets or on their way there, by the digest of the preview and its code. Its cabinets are cut off first; a parcel that came meanwhile stops the removal. It goes on over restarts and cannot be undone; a line of the platform's audit trail stays.",
			Method:      http.MethodPost,
			Path:        "/api/v1/platform/businesses/{business_id}/removal",
			Risk:        catalog.RiskHigh,
			Status:      http.StatusAccepted,
			Errors:      []string{"BUSINESS_NOT_FOUND", "BUSINESS_NOT_SUSPENDED", "PARCELS_INSIDE", "APPROVAL_CHANGED"},
			Example:     `{"business_id":42,"digest":"7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069","code":"acme","reason":"The contract ended","confirm":true}`,
		}), p.Remove, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.removals.find",
			Summary:     "Get the state of a removal",
			Description: "Rows removed so far. It is there when the business is not any more. stopped: a parcel came while cabinets were cut off, and nothing was removed.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/removals/{job_id}",
			Errors:      []string{"JOB_NOT_FOUND"},
			Example:     `{"job_id":1}`,
		}), p.FindRemoval, nil),
		catalog.Define(row(catalog.Operation{
			Name:        "platform.audit.list",
			Summary:     "List audit lines of the platform",
			Description: "Changes that operators made, newest first. Lines of a business are in its own trail.",
			Method:      http.MethodGet,
			Path:        "/api/v1/platform/audit",
			Noun: &catalog.Noun{
				Name: "platform_audit_line", Path: "platform-audit", Area: "platform", Icon: "eye",
				Title: []string{"action"}, State: "outcome", States: "outcome",
				Columns: []string{"at", "actor_name", "action", "target", "outcome", "ip"},
			},
		}), func(ctx context.Context, caller cloud.Caller, in account.AuditInput) (account.AuditOutput, error) {
			return account.AccessOf(c.Accounts).ListAudits(ctx, caller, in)
		}, nil),
		catalog.Define(catalog.Operation{
			Name:        "operator_passes.list",
			Summary:     "List passes of platform operators",
			Description: "Operators of the platform who were let into your business: who, why and until when. Audit lines of what they did name the pass. Newest first.",
			Tag:         "Client",
			Method:      http.MethodGet,
			Path:        "/api/v1/operator-passes",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Noun: &catalog.Noun{
				Name: "operator_pass", Path: "operator-passes", Area: "business", Icon: "badge",
				ID: "pass_id", Title: []string{"reason"}, State: "status", States: "pass",
				Columns: []string{"operator", "status", "reason", "created_at", "expires_at", "ended_at"},
				Verbs:   []string{"operator_passes.end"},
			},
		}, p.ListOwnPasses, nil),
		catalog.Define(catalog.Operation{
			Name:        "operator_passes.end",
			When:        []string{"active"},
			Summary:     "Revoke a pass of a platform operator",
			Description: "The operator is out at once. Changes that were made stay, and are in the audit trail.",
			Tag:         "Client",
			Method:      http.MethodPost,
			Path:        "/api/v1/operator-passes/{pass_id}/end",
			Types:       admins,
			Scopes:      []string{"settings:write"},
			Risk:        catalog.RiskMedium,
			Errors:      []string{"PASS_NOT_FOUND", "PASS_ENDED"},
			Example:     `{"pass_id":1}`,
		}, p.EndPass, nil),
	}
}
