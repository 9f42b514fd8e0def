package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A key that leaked makes no person who has neither its allow-list nor its
// limits, and gives no account a password.
func TestAKeyMakesNoPerson(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	admin := c.box.Admin.Token
	people := len(c.ok("GET", "/api/v1/users", admin, "").at("users").([]any))
	key := c.key(admin, `{"name":"nightly","profile":"full","ip_allowlist":["127.0.0.1"],"limits":{"writes_per_day":50}}`)
	mallory := `{"name":"Mallory","email":"mallory@evil.example","account_type":"client_admin","password":"correct horse"}`
	a := c.send("POST", "/api/v1/users", key, mallory)
	require.Equal(t, []any{403, "LOGIN_REQUIRED"}, []any{a.status, a.at("code")}, "%s", a.raw)
	admins := c.ok("GET", "/api/v1/users", admin, "").at("users").([]any)
	require.Len(t, admins, people)
	id := int(admins[0].(map[string]any)["id"].(float64))
	a = c.send("PATCH", fmt.Sprintf("/api/v1/users/%d", id), key, `{"password":"another long one"}`)
	require.Equal(t, []any{403, "LOGIN_REQUIRED"}, []any{a.status, a.at("code")}, "%s", a.raw)
	g := c.send("POST", "/api/graphql", key, `{"query":"mutation{userCreate(input:{name:\"Mallory\",email:\"mallory@evil.example\",accountType:\"client_admin\",password:\"correct horse\"}){user{id}}}"}`)
	require.NotContains(t, string(g.raw), `"id"`, "%s", g.raw)

	made := c.send("POST", "/api/v1/customers", key, `{"name":"Harbour Books","email":"books@harbour.example"}`)
	require.Equal(t, 201, made.status, "customers without a login are made by keys as before: %s", made.raw)
	book := int(made.at("customer.id").(float64))
	for _, x := range [][3]string{
		{"POST", "/api/v1/customers", `{"name":"Mallory","email":"mallory@evil.example","password":"correct horse"}`},
		{"PATCH", fmt.Sprintf("/api/v1/customers/%d", book), `{"email":"mallory@evil.example","password":"correct horse"}`},
	} {
		a = c.send(x[0], x[1], key, x[2])
		require.Equal(t, []any{403, "LOGIN_REQUIRED"}, []any{a.status, a.at("code")}, "%s", a.raw)
	}

	a = c.send("POST", fmt.Sprintf("/api/v1/providers/%d/tokens", c.box.ProviderCaller.Provider.ID), key, `{"name":"x"}`)
	require.Equal(t, []any{403, "LOGIN_REQUIRED"}, []any{a.status, a.at("code")}, "a provider's token opens doors: %s", a.raw)

	asks := c.key(admin, `{"name":"agent","profile":"full","require_approval":"high"}`)
	a = c.send("POST", "/api/v1/customers", asks, `{"name":"Mallory","email":"mallory@evil.example","password":"correct horse"}`)
	require.Equal(t, []any{403, "LOGIN_REQUIRED"}, []any{a.status, a.at("code")}, "this call would not wait: %s", a.raw)
	waits := c.send("POST", "/api/v1/users", asks, `{"name":"Ben","email":"ben@acme.example","account_type":"client_employee"}`)
	require.Equal(t, 202, waits.status, "a call that a person approves is a person's: %s", waits.raw)
	done := c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits.at("approval_id"), "/approve"), c.box.Staff.Token, `{}`)
	require.Equal(t, "executed", done.at("approval.status"), "%s", done.raw)
	require.Len(t, c.ok("GET", "/api/v1/users", admin, "").at("users").([]any), people+1)
	other := c.key(c.box.Staff.Token, `{"name":"nightly","profile":"full"}`)
	for _, body := range []string{mallory, `{"name":"Ben","email":"x@acme.example","account_type":"client_employee"}`} {
		w := c.send("POST", "/api/v1/users", asks, body)
		require.Equal(t, 202, w.status, "%s", w.raw)
		a = c.send("POST", fmt.Sprint("/api/v1/mcp/approvals/", w.at("approval_id"), "/approve"), other, `{}`)
		require.Equal(t, []any{"failed", "LOGIN_REQUIRED"}, []any{a.at("outcome"), a.at("approval.error.code")}, "no key approves it: %s", a.raw)
	}
	require.Len(t, c.ok("GET", "/api/v1/users", admin, "").at("users").([]any), people+1)
}

// No tool ends the token that it came with.
func TestToolsDoNotLogOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	key := c.key(c.box.Staff.Token, `{"name":"agent","profile":"full"}`)
	a, _ := c.toolAt("/mcp/developer", "run_graphql_query", `{"query":"mutation{userLogout{result}}","allow_mutation":true,"variables":{"confirm":true}}`, key)
	require.Contains(t, string(a.raw), "NOT_FOR_TOOLS", "%s", a.raw)
	c.did("get_orders", `{}`, key)
}
