package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
)

// document is a call of run_graphql_query with a mutation.
func document(query string) string {
	return fmt.Sprintf(`{"query":%q,"allow_mutation":true,"variables":{"confirm":true}}`, query)
}

// Staff ask for a write. A key of the administrator that asks a person first asks
// for a document that approves it, and staff, who may not approve their own
// request, approve the document: their write was done, and both were shown as
// waiting. A call that waits approves nothing.
func TestNoDocumentThatWaitsApproves(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, staff := c.box.Admin.Token, c.box.Staff.Token
	asks := c.key(admin, `{"name":"agent","scopes":["orders:read","orders:write","approvals:read","approvals:write"],"require_approval":"all"}`)
	for name, by := range map[string]struct {
		token   string
		headers []string
	}{
		"by the key":    {asks, nil},
		"by the header": {admin, []string{"X-MCP-Require-Approval", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			wanted, other := c.order("D-1-"+name), c.order("D-2-"+name)
			waits := c.did("propose_write", fmt.Sprintf(`{"tool":"hold_order","arguments":{"order_id":%d,"reason":"late"}}`, wanted), staff).at("approval_id")
			a, failed := c.toolAt("/mcp/developer", "run_graphql_query", document(fmt.Sprintf(`mutation{orderHold(orderId:%d,reason:"y"){order_id} ...f} fragment f on Mutation{x:approvalsApprove(approvalId:%q){result}}`, other, waits)), by.token, by.headers...)
			if id := a.at("approval_id"); id != nil {
				c.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", id, "/approve"), staff, `{}`)
			}
			require.Equal(t, []int{1, 1}, []int{c.status(wanted), c.status(other)}, "nothing was done")
			require.Equal(t, []any{true, "APPROVAL_NEEDS_PERSON"}, []any{failed, a.at("code")}, "%s", a.raw)
			done := c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits, "/approve"), admin, `{}`)
			require.Equal(t, "executed", done.at("approval.status"), "a person approves it: %s", done.raw)
		})
	}
}

// Tools take no credentials, and a GraphQL document run by a tool made an
// administrator whose password the program chose.
func TestToolsSetNoPassword(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.box.Admin.Token
	for field, arguments := range map[string]string{
		"usersCreate":     `accountType:"client_admin",name:"Eve",email:"eve@acme.example",password:"long-and-secret-1"`,
		"usersEdit":       `id:2,password:"long-and-secret-1"`,
		"customersCreate": `name:"Eve",email:"eve@shop.example",password:"long-and-secret-1"`,
	} {
		for mode, headers := range map[string][]string{"now": nil, "queued": {"X-MCP-Require-Approval", "1"}, "dry": {"X-MCP-Dry-Run", "1"}} {
			a, _ := c.toolAt("/mcp/developer", "run_graphql_query", document("mutation{"+field+"("+arguments+"){__typename}}"), admin, headers...)
			require.Contains(t, strings.ToUpper(string(a.raw)), "NOT_FOR_TOOLS", "%s, %s", field, mode)
		}
	}
	require.EqualValues(t, 0, c.ok("GET", "/api/v1/mcp/approvals?status=all", admin, "").at("total"), "nothing was queued")
	a, failed := c.toolAt("/mcp/developer", "run_graphql_query", document(`mutation{usersEdit(id:2,name:"Kim"){user{name}}}`), admin)
	require.False(t, failed, "what takes no password is done: %s", a.raw)
}

// A stranger sends documents that are not good, as often as it likes: each cost up
// to 80 ms and was answered with 20 times its size, and no limit counted it. Longer ones
// are not checked at all.
func TestBadDocumentsHaveAPrice(t *testing.T) {
	t.Parallel()
	c := start(t, func(cfg *server.Config) { cfg.Limits.Anonymous = 5 })
	bad := fmt.Sprintf(`{"query":"{%s}"}`, strings.Repeat("usersLis ", 230))
	long := fmt.Sprintf(`{"query":"{%s}"}`, strings.Repeat("usersLis ", 900))
	require.Contains(t, string(c.send("POST", "/api/graphql", "", long).raw), "asks for too much")
	for range 4 {
		a := c.send("POST", "/api/graphql", "", bad)
		require.Contains(t, string(a.raw), "Cannot query field")
		require.Less(t, len(a.raw), 8_000)
	}
	for name, body := range map[string]string{"wrong": bad, "long": long, "no document": `{"query":"{"}`, "too much": fmt.Sprintf(`{"query":"{%s}"}`, strings.Repeat("me{id} ", 600)), "good": `{"query":"{me{id}}"}`} {
		a := c.send("POST", "/api/graphql", "", body)
		require.Contains(t, string(a.raw), "RATE_LIMITED", name)
	}
	a := c.send("POST", "/api/graphql", c.box.Admin.Token, bad)
	require.Contains(t, string(a.raw), "Cannot query field", "others are not held up")
}

// Texts of a document are masked where it waits, and the preview said only that an
// account is new: a person could not see that it is an administrator.
func TestTheReviewerSeesWhatAnAccountMay(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.box.Admin.Token
	affected := func(query string) map[string]any {
		a, failed := c.toolAt("/mcp/developer", "run_graphql_query", document(query), admin, "X-MCP-Require-Approval", "1")
		require.False(t, failed, "%s", a.raw)
		return a.at("approval.preview.would_change.affected").([]any)[0].(map[string]any)
	}
	fresh := affected(`mutation{usersCreate(accountType:"client_admin",name:"Eve",email:"eve@acme.example"){user{id}}}`)
	require.Equal(t, map[string]any{"new": true, "account_type": "client_admin", "name": "Eve", "email": "eve@acme.example", "enabled": true}, fresh["after"])
	changed := affected(`mutation{usersEdit(id:2,accountType:"client_admin",permissions:[]){user{id}}}`)
	require.Equal(t, "client_employee", changed["before"].(map[string]any)["account_type"])
	require.Equal(t, "client_admin", changed["after"].(map[string]any)["account_type"])
}
