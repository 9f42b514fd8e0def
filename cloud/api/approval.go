package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud/catalog"
)

// approvals are the operations by which people decide about writes that agents
// asked for.
func approvals(c Config) []catalog.Operation {
	a := c.Approvals
	return []catalog.Operation{
		catalog.Define(catalog.Operation{
			Name:        "approvals.list",
			Summary:     "List approvals, newest first",
			Description: "Writes of keys and agents that wait for a person, and those that were decided. Arguments are shown to those who may decide.",
			Tag:         "Operations AI Agent",
			Method:      http.MethodGet,
			Path:        "/api/v1/mcp/approvals",
			Types:       staff,
			Scopes:      []string{"approvals:read"},
			Tools:       []string{"list_pending_approvals"},
		}, a.List, nil),
		catalog.Define(catalog.Operation{
			Name:        "approvals.find",
			Summary:     "Get an approval and its outcome",
			Description: "The call, what it would change, who asked for it, who decided and what came of it.",
			Tag:         "Operations AI Agent",
			Method:      http.MethodGet,
			Path:        "/api/v1/mcp/approvals/{approval_id}",
			Types:       staff,
			Scopes:      []string{"approvals:read"},
			Errors:      []string{"APPROVAL_NOT_FOUND"},
			Example:     `{"approval_id":"apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D"}`,
		}, a.Find, nil),
		catalog.Define(catalog.Operation{
			Name:        "approvals.approve",
			Summary:     "Approve and execute a pending write",
			Description: "Executes the call if it still does what the reviewer saw; otherwise nothing is done, and the error carries the new preview. An own request needs another reviewer unless the business allows self-approval.",
			Tag:         "Operations AI Agent",
			Method:      http.MethodPost,
			Path:        "/api/v1/mcp/approvals/{approval_id}/approve",
			Types:       staff,
			Scopes:      []string{"approvals:write"},
			Risk:        catalog.RiskHigh,
			Confirm:     true,
			NoPass:      true,
			Tools:       []string{"approve_pending_write"},
			Errors:      []string{"APPROVAL_NOT_FOUND", "APPROVAL_ALREADY_DECIDED", "APPROVAL_EXPIRED", "APPROVAL_CHANGED", "SELF_APPROVAL_NOT_ALLOWED", "FORBIDDEN"},
			Example:     `{"approval_id":"apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D","note":"Checked with the customer"}`,
		}, a.Approve, nil),
		catalog.Define(catalog.Operation{
			Name:        "approvals.reject",
			Summary:     "Reject a pending write",
			Description: "The call is never executed. The account that asked for it can withdraw it by this call, too.",
			Tag:         "Operations AI Agent",
			Method:      http.MethodPost,
			Path:        "/api/v1/mcp/approvals/{approval_id}/reject",
			Types:       staff,
			Scopes:      []string{"approvals:write"},
			Risk:        catalog.RiskMedium,
			Tools:       []string{"reject_pending_write"},
			Errors:      []string{"APPROVAL_NOT_FOUND", "APPROVAL_ALREADY_DECIDED", "APPROVAL_EXPIRED"},
			Example:     `{"approval_id":"apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D","reason":"The order is out for delivery already"}`,
		}, a.Reject, nil),
		catalog.Define(catalog.Operation{
			Name:        "approvals.reject_many",
			Summary:     "Reject several pending writes",
			Description: "Approvals that cannot be rejected stay as they are and are named in the answer.",
			Tag:         "Operations AI Agent",
			Method:      http.MethodPost,
			Path:        "/api/v1/mcp/approvals/reject",
			Types:       staff,
			Scopes:      []string{"approvals:write"},
			Risk:        catalog.RiskMedium,
			Example:     `{"approval_ids":["apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D"],"reason":"The agent repeats itself"}`,
		}, a.RejectMany, nil),
	}
}
