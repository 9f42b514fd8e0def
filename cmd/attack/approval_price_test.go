package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// prices sets what a delivery costs.
func (c *target) prices(base string) {
	c.t.Helper()
	c.ok("PUT", "/api/v1/settings", c.box.Admin.Token, `{"currency":"CAD"}`)
	c.ok("PUT", "/api/v1/settings/prices", c.box.Admin.Token, `{"prices":{"base":`+base+`,"included_kilograms":5,"countries":["CA"],"max_kilograms":500}}`)
}

// newOrder is the body of an order that a business or customer makes.
func newOrder(ref string) string {
	return fmt.Sprintf(`{"type":"D","order_ref":%q,"scheduled_date":"2099-01-05","recipient":%s,"packages":[{"weight":2.5}]}`, ref, fmt.Sprintf(recipient, "100 Queen St W"))
}

// made counts the orders with a reference.
func (c *target) made(ref string) int {
	c.t.Helper()
	n, ok := c.ok("GET", "/api/v1/orders?keyword="+ref, c.box.Admin.Token, "").at("total").(float64)
	require.True(c.t, ok)
	return int(n)
}

// A person looks at a new order that an agent wants to make, and before the
// decision the price list changes. The order is not made at a price that was not
// shown, whatever way the decision comes.
func TestApprovalIsBoundToThePriceThatWasShown(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	admin, staff := c.box.Admin.Token, c.box.Staff.Token
	propose := func(c *target, ref string) string {
		c.prices("10")
		a := c.did("propose_write", fmt.Sprintf(`{"tool":"create_order","arguments":%s}`, newOrder(ref)), staff)
		require.EqualValues(c.t, 10, a.at("approval.preview.would_change.affected").([]any)[0].(map[string]any)["after"].(map[string]any)["total_price"], "%s", a.raw)
		return a.at("approval_id").(string)
	}
	t.Run("by the tool", func(t *testing.T) {
		c := c.in(t)
		id := propose(c, "PR-1")
		c.prices("900")
		a, failed := c.tool("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, id), admin)
		require.Equal(t, []any{true, "APPROVAL_CHANGED"}, []any{failed, a.at("code")}, "%s", a.raw)
		require.Contains(t, string(a.raw), `"total_price":900`, "the new preview says it")
		require.Zero(t, c.made("PR-1"))
	})
	t.Run("by REST", func(t *testing.T) {
		c := c.in(t)
		id := propose(c, "PR-2")
		c.prices("900")
		approve := func(body string) answer {
			return c.send("POST", "/api/v1/mcp/approvals/"+id+"/approve", admin, body)
		}
		a := approve(`{}`)
		require.Equal(t, []any{409, "APPROVAL_CHANGED"}, []any{a.status, a.at("code")}, "%s", a.raw)
		require.Zero(t, c.made("PR-2"))
		a = approve(fmt.Sprintf(`{"digest":%q}`, a.at("details.digest")))
		require.Equal(t, "executed", a.at("approval.status"), "who saw the new price may approve it: %s", a.raw)
		require.Equal(t, 1, c.made("PR-2"))
	})
	t.Run("on a page that was left open", func(t *testing.T) {
		c := c.in(t)
		id := propose(c, "PR-3")
		person := c.signIn(c.box.Admin.Email, c.box.Admin.Password)
		page := person.get("/mcp-approvals/" + id)
		require.Contains(t, page, "Total price")
		form := hidden(page)
		form.Set("decision", "approve")
		c.prices("900")
		status, page := person.post("/mcp-approvals/"+id, form)
		require.Equal(t, 409, status)
		require.Contains(t, page, "900")
		require.Zero(t, c.made("PR-3"))
	})
	t.Run("by a question to the client", func(t *testing.T) {
		c := c.in(t)
		id := propose(c, "PR-4")
		approve := fmt.Sprintf(`{"approval_id":%q}`, id)
		state := c.ask("approve_pending_write", approve, "").at("result.requestState")
		require.NotEmpty(t, state)
		c.prices("900")
		require.Contains(t, string(c.ask("approve_pending_write", approve, fmt.Sprintf(yes, state)).raw), "APPROVAL_CHANGED")
		require.Zero(t, c.made("PR-4"))
	})
	t.Run("a batch", func(t *testing.T) {
		c := c.in(t)
		c.prices("10")
		key := c.key(staff, `{"name":"batch","profile":"full","require_approval":"all"}`)
		waits := c.send("POST", "/api/v1/client/batchOrderCreateAsync", key, `{"orders":[`+newOrder("PR-5")+`]}`)
		require.Equal(t, 202, waits.status, "%s", waits.raw)
		c.prices("900")
		a := c.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits.at("approval_id"), "/approve"), admin, `{}`)
		require.Equal(t, []any{409, "APPROVAL_CHANGED"}, []any{a.status, a.at("code")}, "%s", a.raw)
	})
	t.Run("what the business asks of the driver", func(t *testing.T) {
		c := c.in(t)
		id := propose(c, "PR-6")
		c.ok("PUT", "/api/v1/settings", admin, `{"signature_required":true}`)
		a := c.send("POST", "/api/v1/mcp/approvals/"+id+"/approve", admin, `{}`)
		require.Equal(t, []any{409, "APPROVAL_CHANGED"}, []any{a.status, a.at("code")}, "%s", a.raw)
		require.Zero(t, c.made("PR-6"))
	})
}

// A customer from whom prices are hidden reads none in a preview, nor finds one by
// trying prices until a digest is the one that it was shown: digests are keyed.
func TestPreviewsTellNoHiddenPrices(t *testing.T) {
	t.Parallel()
	preview := func(c *target, base string) answer {
		c.prices(base)
		me := c.ok("GET", "/api/v1/user/me", c.box.Customer.Token, "")
		c.ok("PATCH", fmt.Sprintf("/api/v1/customers/%v", me.at("user.id")), c.box.Admin.Token, `{"price_hidden_families":["local_delivery"]}`)
		key := c.key(c.box.Customer.Token, `{"name":"agent","profile":"full","require_approval":"all"}`)
		a := c.send("POST", "/api/v1/client/orderCreate", key, newOrder("HP-1"))
		require.Equal(t, 202, a.status, "%s", a.raw)
		for _, hidden := range []string{"total_price", "shipping_price", "price_details", "4711.53"} {
			require.NotContains(t, string(a.raw), hidden)
		}
		require.Contains(t, string(a.raw), `"price_hidden":true`)
		tried := c.send("POST", "/api/v1/client/orderCreate", c.key(c.box.Customer.Token, `{"name":"dry","profile":"full","dry_run_only":true}`), newOrder("HP-2"))
		require.NotContains(t, string(tried.raw), "4711.53", "%s", tried.raw)
		require.Contains(t, string(tried.raw), `"price_hidden":true`)
		return a
	}
	one, other := start(t), start(t)
	a, b := preview(one, "4711.53"), preview(other, "4711.53")
	require.Equal(t, a.at("approval.preview.would_change.affected"), b.at("approval.preview.would_change.affected"), "the same call of the same customer")
	require.NotEqual(t, a.at("approval.digest"), b.at("approval.digest"), "without the key of the deployment nothing can be compared")

	seen := one.ok("GET", fmt.Sprint("/api/v1/mcp/approvals/", a.at("approval_id")), one.box.Admin.Token, "")
	require.Contains(t, string(seen.raw), "4711.53", "who decides sees the price: %s", seen.raw)
	one.prices("900")
	refused := one.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", a.at("approval_id"), "/approve"), one.box.Admin.Token, `{}`)
	require.Equal(t, "APPROVAL_CHANGED", refused.at("code"), "%s", refused.raw)
}
