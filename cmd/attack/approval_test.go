package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// An agent asks to cancel an order by its reference, a person looks at it, and
// before the decision the reference goes to another order. Whatever way the
// decision comes, the other order is not cancelled.
func TestApprovalIsBoundToTheOrderThatWasShown(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	admin, staff := c.box.Admin.Token, c.box.Staff.Token
	propose := func(c *target, ref string) (first int, id string) {
		first = c.order(ref)
		a := c.did("propose_write", fmt.Sprintf(`{"tool":"cancel_order","arguments":{"order_ref":%q,"reason":"twice"}}`, ref), staff)
		return first, a.at("approval_id").(string)
	}
	find := func(c *target, id string) answer { return c.ok("GET", "/api/v1/mcp/approvals/"+id, admin, "") }

	t.Run("the reference is not asked again", func(t *testing.T) {
		c := c.in(t)
		first, id := propose(c, "A-1")
		a := find(c, id)
		require.EqualValues(t, first, a.at("approval.arguments.order_id"), "%s", a.raw)
		require.Nil(t, a.at("approval.arguments.order_ref"), "%s", a.raw)
		require.NotEmpty(t, a.at("approval.digest"), "%s", a.raw)
	})
	t.Run("by the tool", func(t *testing.T) {
		c := c.in(t)
		_, id := propose(c, "A-2")
		first := find(c, id).at("approval.preview.would_change.affected").([]any)[0].(map[string]any)["id"]
		next := c.moveReference(int(first.(float64)))
		a, failed := c.tool("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, id), admin)
		require.Equal(t, 1, c.status(next), "the order that was not shown is as it was: %s", a.raw)
		if !failed { // the order that was shown is cancelled already: the call is over, without anything done
			require.Equal(t, "failed", a.at("approval.status"), "%s", a.raw)
		}
	})
	t.Run("by the tool, for what changed but can still be done", func(t *testing.T) {
		c := c.in(t)
		first, id := propose(c, "A-3")
		c.ok("PATCH", fmt.Sprintf("/api/v1/orders/%d", first), admin, `{"delivery_instruction":"Leave it with the neighbour"}`)
		a, failed := c.tool("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, id), admin)
		require.True(t, failed, "%s", a.raw)
		require.Equal(t, "APPROVAL_CHANGED", a.at("code"), "%s", a.raw)
		require.NotEmpty(t, a.at("details.preview.would_change.affected"), "%s", a.raw)
		require.Equal(t, 1, c.status(first))
		other, failed := c.tool("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"digest":%q,"confirm":true}`, id, a.at("details.digest")), admin)
		require.True(t, failed, "the tool takes its published arguments only")
		require.Equal(t, "VALIDATION_FAILED", other.at("code"))
		require.Equal(t, 1, c.status(first))
	})
	t.Run("by REST, with what was seen", func(t *testing.T) {
		c := c.in(t)
		first, id := propose(c, "A-4")
		seen := find(c, id).at("approval.digest")
		c.ok("PATCH", fmt.Sprintf("/api/v1/orders/%d", first), admin, `{"note":"changed"}`)
		approve := func(body string) answer {
			return c.send("POST", "/api/v1/mcp/approvals/"+id+"/approve", admin, body)
		}
		for _, body := range []string{`{}`, fmt.Sprintf(`{"digest":%q}`, seen), `{"digest":"0000"}`} {
			a := approve(body)
			require.Equal(t, 409, a.status, "%s", a.raw)
			require.Equal(t, "APPROVAL_CHANGED", a.at("code"))
			require.Equal(t, 1, c.status(first))
		}
		now := approve(`{}`).at("details.digest")
		require.NotEqual(t, seen, now)
		a := approve(fmt.Sprintf(`{"digest":%q}`, now))
		require.Equal(t, "executed", a.at("approval.status"), "who saw the new preview may approve it: %s", a.raw)
		require.Equal(t, 50, c.status(first))
	})
	t.Run("on a page that was left open", func(t *testing.T) {
		c := c.in(t)
		first, id := propose(c, "A-5")
		person := c.signIn(c.box.Admin.Email, c.box.Admin.Password)
		page := person.get("/mcp-approvals/" + id)
		form := hidden(page)
		require.NotEmpty(t, form.Get("digest"), "the form says what was shown")
		c.ok("PATCH", fmt.Sprintf("/api/v1/orders/%d", first), admin, `{"note":"changed while the page was open"}`)
		form.Set("decision", "approve")
		status, page := person.post("/mcp-approvals/"+id, form)
		require.Equal(t, 409, status)
		require.Equal(t, 1, c.status(first))
		form = hidden(page) // the page shows what would happen now
		form.Set("decision", "approve")
		status, _ = person.post("/mcp-approvals/"+id, form)
		require.Equal(t, 303, status)
		require.Equal(t, 50, c.status(first))
	})
	t.Run("by a question to the client", func(t *testing.T) {
		c := c.in(t)
		cancel := `{"order_ref":"A-6","reason":"twice"}`
		first := c.order("A-6")
		state := c.ask("cancel_order", cancel, "").at("result.requestState")
		require.NotEmpty(t, state)
		next := c.moveReference(first)
		a := c.ask("cancel_order", cancel, fmt.Sprintf(yes, state))
		require.Equal(t, 1, c.status(next), "%s", a.raw)
		require.Contains(t, string(a.raw), "APPROVAL_CHANGED")
	})
	t.Run("by a question about an approval", func(t *testing.T) {
		c := c.in(t)
		first, id := propose(c, "A-7")
		approve := fmt.Sprintf(`{"approval_id":%q}`, id)
		state := c.ask("approve_pending_write", approve, "").at("result.requestState")
		c.ok("PATCH", fmt.Sprintf("/api/v1/orders/%d", first), admin, `{"note":"changed"}`)
		require.Contains(t, string(c.ask("approve_pending_write", approve, fmt.Sprintf(yes, state)).raw), "APPROVAL_CHANGED")
		require.Equal(t, 1, c.status(first))
		second, id := propose(c, "A-8")
		approve = fmt.Sprintf(`{"approval_id":%q}`, id)
		state = c.ask("approve_pending_write", approve, "").at("result.requestState")
		a := c.ask("approve_pending_write", approve, fmt.Sprintf(yes, state))
		require.Equal(t, "executed", a.at("result.structuredContent.outcome"), "%s", a.raw)
		require.Equal(t, 50, c.status(second))
	})
}

// yes is the answer of a client whose user agreed.
const yes = `,"requestState":%q,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}}`

// ask calls a tool as the administrator, by a client that can ask its user.
func (c *target) ask(tool, arguments, more string) answer {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s,`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, tool, arguments, more)
	return c.send("POST", "/mcp", c.box.Admin.Token, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool)
}
