package api

import (
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/catalog"
)

// approvals are the operations by which people decide about writes that agents
// asked for.
func (c Config) approvals() []catalog.Operation {
	a := c.Approvals
	row := func(name, summary, method, path string, errors ...string) catalog.Operation {
		o := catalog.Operation{Name: name, Summary: summary, Tag: "Operations AI Agent", Method: method, Path: "/api/v1/mcp/approvals" + path, Types: staff,
			Scopes: []string{approval.ReadScope}, Errors: errors}
		if method != http.MethodGet {
			o.Scopes, o.Risk = []string{approval.WriteScope}, catalog.RiskMedium
		}
		return o
	}
	const one, unknown, decided, expired = "/{approval_id}", "APPROVAL_NOT_FOUND", "APPROVAL_ALREADY_DECIDED", "APPROVAL_EXPIRED"
	approve := asked(row("approvals.approve", "Approve and execute a pending write", "POST", one+"/approve", unknown, decided, expired, "APPROVAL_CHANGED", "SELF_APPROVAL_NOT_ALLOWED", "FORBIDDEN"), "approve_pending_write")
	approve.Example = approval.ApproveInput{ID: exampleApproval, Note: "Checked with the customer"}
	reject := tools(row("approvals.reject", "Reject a pending write", "POST", one+"/reject", unknown, decided, expired), "reject_pending_write")
	reject.Example = approval.RejectInput{ID: exampleApproval, Reason: "The order is out for delivery already"}
	together := row("approvals.reject_many", "Reject several pending writes", "POST", "/reject")
	together.Example = approval.RejectManyInput{IDs: []cloud.ApprovalID{exampleApproval}, Reason: "The agent repeats itself"}
	return []catalog.Operation{
		catalog.Define(tools(row("approvals.list", "List approvals, newest first", "GET", ""), "list_pending_approvals"), a.List, nil),
		catalog.Define(row("approvals.find", "Get an approval and its outcome", "GET", one, unknown), a.Find, nil),
		catalog.Define(approve, a.Approve, nil),
		catalog.Define(reject, a.Reject, nil),
		catalog.Define(together, a.RejectMany, nil),
	}
}

const exampleApproval = "apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D"
