package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proposing needs no scope of the tool, so what a proposal answers must not read
// orders in its place.
func TestProposingReadsNothing(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("P-1")
	number := c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), c.box.Admin.Token, "").at("order.tracking_number").(string)
	key := c.key(c.box.Staff.Token, `{"name":"blind","scopes":["approvals:read"]}`)
	for _, call := range []string{
		`{"tool":"cancel_order","arguments":{"order_ref":%q,"reason":"x"}}`,
		`{"tool":"reroute_to_address","arguments":{"order_ref":%q,"new_address":` + fmt.Sprintf(recipient, "1 Main St") + `}}`,
		`{"tool":"release_order","arguments":{"order_ref":%q}}`,
	} {
		for _, headers := range [][]string{nil, {"X-MCP-Dry-Run", "1"}} {
			real, failed := c.tool("propose_write", fmt.Sprintf(call, "P-1"), key, headers...)
			none, failedToo := c.tool("propose_write", fmt.Sprintf(call, "P-nothing"), key, headers...)
			require.Equal(t, []bool{false, false}, []bool{failed, failedToo}, "%s and %s", real.raw, none.raw)
			require.Equal(t, none.at("outcome"), real.at("outcome"), "what is there and what is not look alike")
			for _, secret := range []string{number, "Queen", "Ann Lee", "NEW_ORDER"} {
				require.NotContains(t, string(real.raw), secret)
			}
			if headers == nil {
				seen := c.did("list_pending_approvals", `{}`, key)
				for _, secret := range []string{number, "Queen", "NEW_ORDER"} {
					require.NotContains(t, string(seen.raw), secret)
				}
				a := c.ok("GET", fmt.Sprint("/api/v1/mcp/approvals/", real.at("approval_id")), c.box.Admin.Token, "")
				require.NotNil(t, a.at("approval.preview"), "who decides sees it: %s", a.raw)
			}
		}
	}
}

// Arguments of others are for accounts that may decide about them.
func TestArgumentsOfOthersAreForThoseWhoDecide(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("P-2")
	waits := c.did("cancel_order", fmt.Sprintf(`{"order_id":%d,"reason":"a private reason"}`, id), c.box.Admin.Token, "X-MCP-Require-Approval", "1").at("approval_id")
	for scopes, sees := range map[string]bool{`"approvals:read"`: false, `"approvals:read","orders:read"`: false, `"approvals:write"`: false, `"approvals:read","orders:write"`: false, `"approvals:write","orders:write"`: true} {
		key := c.key(c.box.Staff.Token, `{"name":"reader","scopes":[`+scopes+`]}`)
		for _, a := range []answer{c.ok("GET", "/api/v1/mcp/approvals", key, ""), c.ok("GET", fmt.Sprint("/api/v1/mcp/approvals/", waits), key, ""), c.did("list_pending_approvals", `{}`, key)} {
			require.Contains(t, string(a.raw), "cancel_order", "that something waits is no secret")
			if sees {
				require.Contains(t, string(a.raw), "a private reason", scopes)
			} else {
				require.NotContains(t, string(a.raw), "a private reason", scopes)
			}
		}
	}
}

// An agent that asks without end does not fill the list, and what it asked for is
// rejected together.
func TestAFloodOfProposalsEnds(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	id := c.order("P-3")
	staff, admin := c.box.Staff.Token, c.box.Admin.Token
	propose := func(n int) (answer, bool) {
		return c.tool("propose_write", fmt.Sprintf(`{"tool":"update_order_note","arguments":{"order_id":%d,"note":"note %d"}}`, id, n), staff)
	}
	var ids []string
	for n := range 20 {
		a, failed := propose(n)
		require.False(t, failed, "%s", a.raw)
		ids = append(ids, a.at("approval_id").(string))
	}
	a, failed := propose(20)
	require.Equal(t, []any{true, "TOO_MANY_APPROVALS"}, []any{failed, a.at("code")}, "%s", a.raw)
	same, failed := propose(3)
	require.Equal(t, []any{false, ids[3]}, []any{failed, same.at("approval_id")}, "what waits already is not asked again")

	foreign := "apr_01JD4V4Q2M8Z3N6R7T9X0B5C1D"
	many := c.ok("POST", "/api/v1/mcp/approvals/reject", admin, fmt.Sprintf(`{"approval_ids":[%q,%q,%q],"reason":"too many"}`, ids[0], ids[1], foreign))
	require.ElementsMatch(t, []any{ids[0], ids[1]}, many.at("rejected"), "%s", many.raw)
	require.Equal(t, "APPROVAL_NOT_FOUND", many.at("not_rejected").([]any)[0].(map[string]any)["code"])
	require.Equal(t, 403, c.send("POST", "/api/v1/mcp/approvals/reject", c.key(staff, `{"name":"r","scopes":["approvals:read"]}`), fmt.Sprintf(`{"approval_ids":[%q]}`, ids[2])).status)
	for _, body := range []string{`{}`, `{"approval_ids":[]}`} {
		require.Equal(t, 422, c.send("POST", "/api/v1/mcp/approvals/reject", admin, body).status)
	}

	person := c.signIn(c.box.Admin.Email, c.box.Admin.Password)
	page := person.get("/mcp-approvals")
	require.Contains(t, page, "18")
	form := hidden(page)
	require.NotEmpty(t, form.Get("group"))
	form.Set("decision", "reject")
	status, page := person.post("/mcp-approvals", form)
	require.Equal(t, 303, status, page)
	require.EqualValues(t, 0, c.ok("GET", "/api/v1/mcp/approvals", admin, "").at("total"))
	_, failed = propose(21)
	require.False(t, failed)
}

// An approved call that the tool refuses says so in its outcome.
func TestAFailedApprovalSaysSo(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("P-4")
	waits := c.did("hold_order", fmt.Sprintf(`{"order_id":%d}`, id), c.box.Staff.Token, "X-MCP-Require-Approval", "1").at("approval_id")
	c.did("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), c.box.Admin.Token)
	a := c.did("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, waits), c.box.Admin.Token)
	require.Equal(t, []any{"failed", "failed"}, []any{a.at("outcome"), a.at("approval.status")}, "%s", a.raw)
	list := c.ok("GET", "/api/v1/mcp/approvals?status=failed", c.box.Admin.Token, "")
	require.EqualValues(t, 1, list.at("total"))
}

// An agent with a full list of proposals does not lock out the other keys of its
// person; a person's many keys together do not fill the list either.
func TestAFullListOfOneKeyLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	c := start(t)
	id := c.order("P-5")
	note := func(key string, n int) (answer, bool) {
		return c.tool("propose_write", fmt.Sprintf(`{"tool":"update_order_note","arguments":{"order_id":%d,"note":"note %d"}}`, id, n), key)
	}
	fill := func(key string) {
		for n := range 20 {
			a, failed := note(key, n)
			require.False(t, failed, "%s", a.raw)
		}
	}
	refused := func(key string, per string, limit int) {
		a, failed := note(key, 20)
		require.Equal(t, []any{true, "TOO_MANY_APPROVALS"}, []any{failed, a.at("code")}, "%s", a.raw)
		require.Equal(t, []any{per, float64(limit)}, []any{a.at("details.per"), a.at("details.limit")}, "%s", a.raw)
		require.Contains(t, a.at("message"), fmt.Sprint(limit), "%s", a.raw)
	}
	key := func() string { return c.key(c.box.Staff.Token, `{"name":"agent","profile":"full"}`) } // names may repeat
	flood := key()
	fill(flood)
	refused(flood, "key", 20)
	for range 4 {
		other := key()
		fill(other)
		refused(other, "key", 20)
	}
	refused(key(), "user", 100)
	refused(c.box.Staff.Token, "user", 100)
	_, failed := note(c.box.Admin.Token, 1)
	require.False(t, failed, "another person's writes have room")
}
