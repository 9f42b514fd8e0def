package attack

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key that asks a person first does so on every surface, whatever headers the
// program leaves out.
func TestTheGateIsOnTheKey(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.box.Admin.Token
	asks := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","require_approval":"all"}`)
	cancel := func(id int) string { return fmt.Sprintf("/api/v1/orders/%d/cancel", id) }

	t.Run("REST", func(t *testing.T) {
		c := c.in(t)
		id := c.order("G-1")
		a := c.send("POST", cancel(id), asks, `{"reason":"twice"}`)
		require.Equal(t, []any{202, "pending_approval"}, []any{a.status, a.at("outcome")}, "%s", a.raw)
		require.Equal(t, 1, c.status(id))
		again := c.send("POST", cancel(id), asks, `{"reason":"twice"}`, "Idempotency-Key", "k-1")
		require.Equal(t, a.at("approval_id"), again.at("approval_id"), "the same call waits once")
		one := c.ok("GET", fmt.Sprint("/api/v1/mcp/approvals/", a.at("approval_id")), admin, "")
		require.Equal(t, []any{"api", "orders.cancel", "high"}, []any{one.at("approval.server"), one.at("approval.tool"), one.at("approval.risk")}, "%s", one.raw)
		done := c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", a.at("approval_id"), "/approve"), admin, `{}`)
		require.Equal(t, "executed", done.at("approval.status"), "%s", done.raw)
		require.Equal(t, 50, c.status(id))
		require.Equal(t, "twice", c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), admin, "").at("order.cancel_reason"))

		made := c.send("POST", "/api/v1/client/orderCreate", asks, `{"type":"D","order_ref":"G-2","recipient":`+fmt.Sprintf(recipient, "1 Main St")+`,"packages":[{"weight":2.5}]}`, "Idempotency-Key", "k-2")
		require.Equal(t, 202, made.status, "%s", made.raw)
		done = c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", made.at("approval_id"), "/approve"), admin, `{}`)
		require.Equal(t, "executed", done.at("approval.status"), "%s", done.raw)
		list := c.ok("GET", "/api/v1/orders?keyword=G-2", admin, "")
		require.EqualValues(t, 1, list.at("total"))
		require.Equal(t, "api", list.at("orders").([]any)[0].(map[string]any)["source"], "it came by REST")
	})
	t.Run("GraphQL", func(t *testing.T) {
		c := c.in(t)
		id := c.order("G-3")
		a := c.send("POST", "/api/graphql", asks, fmt.Sprintf(`{"query":"mutation{orderCancel(orderId:%d,reason:\"twice\"){order_id}}"}`, id))
		errs, _ := a.json["errors"].([]any)
		require.Len(t, errs, 1, "%s", a.raw)
		x := answer{json: errs[0].(map[string]any)}
		require.Equal(t, "pending_approval", x.at("extensions.outcome"), "%s", a.raw)
		require.Equal(t, 1, c.status(id))
		done := c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", x.at("extensions.approval_id"), "/approve"), admin, `{}`)
		require.Equal(t, "executed", done.at("approval.status"), "%s", done.raw)
		require.Equal(t, 50, c.status(id))
	})
	t.Run("MCP", func(t *testing.T) {
		c := c.in(t)
		id := c.order("G-4")
		a := c.did("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), asks, "X-MCP-Require-Approval", "0")
		require.Equal(t, "pending_approval", a.at("outcome"))
		q, _ := c.toolAt("/mcp/developer", "run_graphql_query", fmt.Sprintf(`{"query":"mutation{orderCancel(orderId:%d){order_id}}","allow_mutation":true,"variables":{"confirm":true}}`, id), asks)
		require.Equal(t, "pending_approval", q.at("outcome"), "%s", q.raw)
		require.Equal(t, 1, c.status(id))
		modes := c.did("get_capabilities", `{}`, asks)
		require.Equal(t, true, modes.at("modes.require_approval"))
	})
	t.Run("it approves nothing", func(t *testing.T) {
		c := c.in(t)
		id := c.order("G-5")
		waits := c.did("cancel_order", fmt.Sprintf(`{"order_id":%d}`, id), admin, "X-MCP-Require-Approval", "1").at("approval_id")
		a := c.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits, "/approve"), asks, `{}`)
		require.Equal(t, []any{403, "APPROVAL_NEEDS_PERSON"}, []any{a.status, a.at("code")}, "%s", a.raw)
		b, failed := c.tool("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, waits), asks)
		require.Equal(t, []any{true, "APPROVAL_NEEDS_PERSON"}, []any{failed, b.at("code")}, "%s", b.raw)
		require.Equal(t, 1, c.status(id))
	})
	t.Run("only high risk", func(t *testing.T) {
		c := c.in(t)
		high := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","require_approval":"high"}`)
		id := c.order("G-6")
		c.ok("PATCH", fmt.Sprintf("/api/v1/orders/%d", id), high, `{"note":"at once"}`)
		require.Equal(t, "at once", c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), admin, "").at("order.note"))
		require.Equal(t, 202, c.send("POST", cancel(id), high, `{}`).status)
		require.Equal(t, 1, c.status(id))
		a := c.did("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), high)
		require.Equal(t, "pending_approval", a.at("outcome"))
		require.Equal(t, "pending_approval", c.did("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"x"}`, id), high, "X-MCP-Require-Approval", "1").at("outcome"), "headers narrow further")
	})
	t.Run("only tried", func(t *testing.T) {
		c := c.in(t)
		dry := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","dry_run_only":true}`)
		id := c.order("G-7")
		a := c.ok("POST", cancel(id), dry, `{}`)
		require.Equal(t, "preview", a.at("outcome"), "%s", a.raw)
		require.NotEmpty(t, a.at("would_change.affected"))
		g := c.send("POST", "/api/graphql", dry, fmt.Sprintf(`{"query":"mutation{orderCancel(orderId:%d){order_id}}"}`, id))
		require.Contains(t, string(g.raw), `"outcome":"preview"`)
		require.Equal(t, "preview", c.did("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), dry, "X-MCP-Dry-Run", "0").at("outcome"))
		require.Equal(t, 1, c.status(id))
	})
	t.Run("on its surfaces", func(t *testing.T) {
		c := c.in(t)
		mcp := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","surfaces":["mcp"]}`)
		c.did("get_orders", `{}`, mcp)
		a := c.send("GET", "/api/v1/orders", mcp, "")
		require.Equal(t, []any{403, "SURFACE_NOT_ALLOWED"}, []any{a.status, a.at("code")}, "%s", a.raw)
		require.Contains(t, string(c.send("POST", "/api/graphql", mcp, `{"query":"{orders{total}}"}`).raw), "SURFACE_NOT_ALLOWED")
		api := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","surfaces":["api"]}`)
		require.Equal(t, 403, c.send("POST", "/mcp", api, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).status)
		a = c.send("POST", "/api/v1/user/live-token", api, "")
		require.Equal(t, []any{403, "SURFACE_NOT_ALLOWED", "live"}, []any{a.status, a.at("code"), a.at("details.surface")}, "%s", a.raw)
		live := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","surfaces":["live"]}`)
		a = c.send("POST", "/api/v1/user/live-token", live, "")
		require.Equal(t, 200, a.status, "%s", a.raw)
		require.NotEmpty(t, a.at("mqtt.password"))
		require.Equal(t, 403, c.send("GET", "/api/v1/orders", live, "").status)
	})
	t.Run("bad input", func(t *testing.T) {
		c := c.in(t)
		for _, body := range []string{`"require_approval":"sometimes"`, `"surfaces":["ftp"]`, `"limits":{"writes_per_day":-1}`, `"limits":{"money_per_day":-1}`} {
			a := c.send("POST", "/api/v1/user/api-keys", admin, `{"name":"x",`+body+`}`)
			require.Equal(t, 422, a.status, "%s: %s", body, a.raw)
		}
	})
}

// What a key may do in a day is counted for all surfaces together.
func TestDailyLimitsOfAKey(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.ok("PUT", "/api/v1/settings/prices", c.box.Admin.Token, `{"prices":{"base":10,"included_kilograms":5,"per_kilogram":0,"per_package":0,"cod_fee":0,"countries":["CA"],"max_kilograms":500}}`)
	three := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","limits":{"writes_per_day":3}}`)
	id := c.order("L-1")
	note := func(token, text string) answer {
		return c.send("PATCH", fmt.Sprintf("/api/v1/orders/%d", id), token, fmt.Sprintf(`{"note":%q}`, text))
	}
	require.Equal(t, 200, note(three, "one").status)
	require.Equal(t, 409, c.send("POST", fmt.Sprintf("/api/v1/orders/%d/release", id), three, `{}`).status, "what is refused takes nothing")
	c.did("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"two"}`, id), three)
	g := c.send("POST", "/api/graphql", three, fmt.Sprintf(`{"query":"mutation{orderHold(orderId:%d){order_id}}"}`, id))
	require.NotContains(t, string(g.raw), `"errors"`)
	over := note(three, "four")
	require.Equal(t, []any{429, "DAILY_LIMIT_REACHED"}, []any{over.status, over.at("code")}, "%s", over.raw)
	require.NotEmpty(t, over.header.Get("Retry-After"))
	b, failed := c.tool("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"four"}`, id), three)
	require.Equal(t, []any{true, "DAILY_LIMIT_REACHED"}, []any{failed, b.at("code")})
	require.Equal(t, 200, c.send("GET", fmt.Sprintf("/api/v1/orders/%d", id), three, "").status, "reads go on")
	require.Equal(t, "two", c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), c.box.Admin.Token, "").at("order.note"))
	require.Equal(t, 202, c.send("POST", "/api/v1/client/batchOrderCreateAsync", c.key(c.box.Staff.Token, `{"name":"a","profile":"full","limits":{"writes_per_day":2}}`), batch("LA", 2)).status)
	require.Equal(t, 429, c.send("POST", "/api/v1/client/batchOrderCreateAsync", c.key(c.box.Staff.Token, `{"name":"a","profile":"full","limits":{"writes_per_day":2}}`), batch("LB", 3)).status)

	money := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","limits":{"money_per_day":25}}`)
	make := func(ref string) answer {
		return c.send("POST", "/api/v1/client/orderCreate", money, fmt.Sprintf(`{"type":"D","order_ref":%q,"recipient":%s,"packages":[{"weight":2.5}]}`, ref, fmt.Sprintf(recipient, "1 Main St")))
	}
	first := make("LM-1")
	require.Equal(t, 201, first.status, "%s", first.raw)
	require.Equal(t, 201, make("LM-2").status)
	require.Equal(t, []any{429, "DAILY_LIMIT_REACHED"}, []any{make("LM-3").status, make("LM-3").at("code")})
	require.Equal(t, 429, c.send("POST", "/api/v1/client/batchOrderCreateAsync", money, batch("LC", 1)).status, "orders that are made later have no price yet")
}

func batch(ref string, n int) string {
	out := ""
	for i := range n {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`{"type":"D","order_ref":"%s-%d","recipient":%s,"packages":[{"weight":2.5}]}`, ref, i, fmt.Sprintf(recipient, "1 Main St"))
	}
	return `{"orders":[` + out + `]}`
}

// A user who lets a program act and only presses Allow is asked first.
func TestProgramsAskFirstByDefault(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	for ask, want := range map[string]string{"": "pending_approval", "never": "executed"} {
		token := c.connect(t, "/mcp", ask)
		id := c.order("C-" + ask)
		a := c.did("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"x"}`, id), token)
		require.Equal(t, want, a.at("outcome"), "%s", a.raw)
	}
}

// A program that asks first asks the user who connected it, at the page; no
// other token of that account approves in the user's place.
func TestTheUserIsAskedFirst(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	id := c.order("O-1")
	waits := c.did("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"asked"}`, id), c.connect(t, "/mcp", "all")).at("approval_id")
	key := c.key(c.box.Admin.Token, `{"name":"other","profile":"full"}`)
	for _, token := range []string{c.box.Admin.Token, key} {
		require.Equal(t, "SELF_APPROVAL_NOT_ALLOWED", c.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits, "/approve"), token, `{}`).at("code"))
	}
	path := fmt.Sprint("/mcp-approvals/", waits)
	user := c.signIn(c.box.Admin.Email, c.box.Admin.Password)
	form := hidden(user.get(path))
	form.Set("decision", "approve")
	status, page := user.post(path, form)
	require.Equal(t, 303, status, page)
	require.Equal(t, "asked", c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), c.box.Admin.Token, "").at("order.note"))
	own := c.did("update_order_note", fmt.Sprintf(`{"order_id":%d,"note":"header"}`, id), c.box.Admin.Token, "X-MCP-Require-Approval", "1").at("approval_id")
	form = hidden(user.get(fmt.Sprint("/mcp-approvals/", own)))
	form.Set("decision", "approve")
	status, _ = user.post(fmt.Sprint("/mcp-approvals/", own), form)
	require.Equal(t, 403, status, "what the user's own login asked for is for another reviewer")
}

// connect registers a program, lets the admin allow it at an address, and gives
// its token.
func (c *target) connect(t *testing.T, at, ask string) string {
	const verifier = "abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEF"
	client := c.ok("POST", "/oauth/register", "", `{"client_name":"Desk","redirect_uris":["http://127.0.0.1/cb"]}`).at("client_id").(string)
	p := c.browser()
	query := url.Values{"response_type": {"code"}, "client_id": {client}, "redirect_uri": {"http://127.0.0.1/cb"}, "resource": {c.base + at}, "scope": {"orders:write approvals:read"},
		"code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"}, "state": {"s"}}.Encode()
	form := hidden(p.get("/oauth/authorize?" + query))
	form.Set("email", c.box.Admin.Email)
	form.Set("password", c.box.Admin.Password)
	status, page := p.post("/oauth/login", form)
	require.Equal(t, 303, status, "%s", page)
	page = p.get("/oauth/authorize?" + query)
	require.Contains(t, page, `name="ask" value="all" checked`)
	form = hidden(page)
	form.Set("decision", "allow")
	form.Set("profile", "full")
	if ask != "" {
		form.Set("ask", ask)
	}
	code := p.redirected("/oauth/consent", form).Query().Get("code")
	require.NotEmpty(t, code)
	status, body := p.post("/oauth/token", url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {"http://127.0.0.1/cb"}, "resource": {c.base + at}})
	require.Equal(t, 200, status, body)
	token, ok := parse(t, body).at("access_token").(string)
	require.True(t, ok)
	return token
}

// A key that asks about what is high made an administrator with a password that it
// chose, and could log in as one without any policy; and it let its user approve
// their own requests.
func TestAKeyThatAsksMakesNoAdministrator(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.box.Admin.Token
	asks := c.key(admin, `{"name":"agent","scopes":["settings:write"],"require_approval":"high"}`)
	for address, body := range map[string]string{
		"POST /api/v1/users":    `{"account_type":"client_admin","name":"Eve","email":"eve@acme.example","password":"long-and-secret-1"}`,
		"PATCH /api/v1/users/2": `{"password":"long-and-secret-1"}`,
		"PUT /api/v1/settings":  `{"allow_self_approval":true}`,
	} {
		method, path, _ := strings.Cut(address, " ")
		a := c.send(method, path, asks, body)
		require.Equal(t, []any{202, "pending_approval"}, []any{a.status, a.at("outcome")}, "%s: %s", address, a.raw)
	}
}
