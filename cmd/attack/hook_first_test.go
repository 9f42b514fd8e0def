package attack

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/protocol/signature"
)

// sending is a cloud with people that may send to the loopback.
func sending(t *testing.T, address string) *target {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	require.NoError(t, err)
	return startWithPasswords(t, func(c *server.Config) {
		c.WebhookHTTP, c.WebhookNetworks, c.WebhookPorts = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, []uint16{uint16(port)}
	})
}

const settingsPath = "/api/v1/webhook-settings"

// A business that named its first address without a secret was refused, where its
// customers were given one: every level has a secret of its own from its first
// address on, shown once to the person who set it.
func TestFirstAddressBringsASecret(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	c := sending(t, at)
	admin := c.box.Admin.Token
	made := c.send("PUT", settingsPath, admin, fmt.Sprintf(`{"order_create_webhook_url":"%s/company"}`, at))
	require.Equal(t, 200, made.status, "%s", made.raw)
	secret, _ := made.at("generated_secret").(string)
	require.Len(t, secret, 43, "%s", made.raw)
	require.Equal(t, []any{"***" + secret[39:], false}, []any{made.at("settings.webhook_sign_secret"), made.at("secret_unseen")}, "%s", made.raw)
	again := c.ok("PUT", settingsPath, admin, fmt.Sprintf(`{"order_deleted_webhook_url":"%s/company"}`, at))
	require.Nil(t, again.at("generated_secret"), "there is one")
	require.NotContains(t, string(c.ok("GET", settingsPath, admin, "").raw), secret)
	c.order("FA-1")
	p := next(t, got, "order.created", "FA-1")
	require.Equal(t, signature.Legacy([]byte(secret), p.body), p.header.Get("Signature"))
	require.Equal(t, 422, c.send("PUT", settingsPath, admin, `{"webhook_sign_secret":null}`).status, "an address is never without one")

	me := c.ok("GET", "/api/v1/user/me", c.box.Customer.Token, "")
	theirs := c.ok("PUT", fmt.Sprint(settingsPath, "?customer_id=", me.at("user.id")), admin, fmt.Sprintf(`{"order_create_webhook_url":"%s/customer"}`, at))
	require.Len(t, theirs.at("generated_secret"), 43, "%s", theirs.raw)
	require.NotEqual(t, secret, theirs.at("generated_secret"))

	other := sending(t, at)
	g := other.ok("POST", "/api/graphql", other.box.Admin.Token, fmt.Sprintf(`{"query":%q}`, `mutation{webhookSettingsUpdate(input:{order_create_webhook_url:"`+at+`/g"}){generated_secret secret_unseen}}`))
	require.Len(t, g.at("data.webhookSettingsUpdate.generated_secret"), 43, "%s", g.raw)
	endpoint := other.ok("PUT", "/api/v1/third-party-delivery/webhook-endpoint", other.box.Provider.Token, fmt.Sprintf(`{"url":"%s/p"}`, at))
	require.NotNil(t, endpoint.at("webhook_endpoint.secret_hint"), "%s", endpoint.raw)
}

var shownSecret = regexp.MustCompile(`id="secret">([^<]+)<`)

// A secret that a tool's call or an approved call made was seen by no person: the
// stored answer had it masked. The settings say so, and a person makes another one
// on the page of an address, shown once and in use at once. No tool, approval or
// log has either.
func TestSecretThatNoPersonSawIsMadeAnew(t *testing.T) {
	t.Parallel()
	at, got := receiver(t)
	for name, set := range map[string]func(c *target) answer{
		"a tool": func(c *target) answer {
			a, failed := c.toolAt("/mcp/developer", "update_webhook_settings", fmt.Sprintf(`{"settings":{"order_create_webhook_url":"%s/a"}}`, at), c.box.Admin.Token)
			require.False(c.t, failed, "%s", a.raw)
			return a
		},
		"a document of a tool": func(c *target) answer {
			a, failed := c.toolAt("/mcp/developer", "run_graphql_query", fmt.Sprintf(`{"query":%q,"allow_mutation":true,"variables":{"confirm":true}}`,
				`mutation{webhookSettingsUpdate(input:{order_create_webhook_url:"`+at+`/a"}){settings generated_secret webhook_sign_secret_standard secret_unseen secret_page warnings}}`), c.box.Admin.Token)
			require.False(c.t, failed, "%s", a.raw)
			a.json, _ = a.at("data.webhookSettingsUpdate").(map[string]any)
			return a
		},
		"an approved call of a key": func(c *target) answer {
			key := c.key(c.box.Admin.Token, `{"name":"agent","profile":"full","scopes":["webhooks:write","webhooks:read"],"require_approval":"all"}`)
			waits := c.send("PUT", settingsPath, key, fmt.Sprintf(`{"order_create_webhook_url":"%s/a"}`, at))
			require.Equal(c.t, 202, waits.status, "%s", waits.raw)
			return c.approved(waits)
		},
		"an approved call of a tool": func(c *target) answer {
			waits, failed := c.toolAt("/mcp/developer", "update_webhook_settings", fmt.Sprintf(`{"settings":{"order_create_webhook_url":"%s/a"}}`, at), c.box.Admin.Token, "X-MCP-Require-Approval", "1")
			require.False(c.t, failed, "%s", waits.raw)
			return c.approved(waits)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := sending(t, at)
			a := set(c)
			require.Equal(t, true, a.at("secret_unseen"), "%s", a.raw)
			require.Nil(t, a.at("generated_secret"), "%s", a.raw)
			require.Nil(t, a.at("webhook_sign_secret_standard"), "%s", a.raw)
			require.Len(t, a.at("warnings"), 1, "the answer says what to do: %s", a.raw)
			page, _ := a.at("secret_page").(string)
			require.Regexp(t, "^"+c.base+`/console/webhooks/receivers/\d+$`, page, "%s", a.raw)
			require.Equal(t, true, c.ok("GET", settingsPath, c.box.Admin.Token, "").at("secret_unseen"))

			person, path := c.signIn(c.box.Admin.Email, c.box.Admin.Password), page[len(c.base):]
			seen := person.get(path)
			require.Contains(t, seen, "No person has seen the secret of this address")
			form := hidden(seen)
			form.Set("do", "rotate")
			status, shown := person.post(path, form)
			require.Equal(t, 200, status)
			require.NotContains(t, shown, "No person has seen")
			m := shownSecret.FindStringSubmatch(shown)
			require.NotNil(t, m, shown)
			require.NotContains(t, person.get(path), m[1], "it is shown once")
			if id, _ := a.at("approval_id").(string); id != "" {
				require.NotContains(t, person.get("/mcp-approvals/"+id), "This call made a signing secret", "it is done")
			}
			after := c.ok("GET", settingsPath, c.box.Admin.Token, "")
			require.Equal(t, []any{false, nil, "***" + m[1][39:], nil}, []any{after.at("secret_unseen"), after.at("secret_page"), after.at("settings.webhook_sign_secret"), after.at("settings.webhook_sign_secret_next")}, "%s", after.raw)
			ref := "US-" + strconv.Itoa(len(name))
			c.order(ref)
			p := next(t, got, "order.created", ref)
			require.Equal(t, signature.Legacy([]byte(m[1]), p.body), p.header.Get("Signature"), "it counts at once")
			require.Empty(t, p.header.Get("Signature-Next"))
		})
	}
}

// approved lets a call through by REST, looks at its page, and gives the call's own
// answer.
func (c *target) approved(waits answer) answer {
	c.t.Helper()
	id := waits.at("approval_id").(string)
	c.ok("PUT", "/api/v1/settings", c.box.Admin.Token, `{"allow_self_approval":true}`)
	a := c.ok("POST", "/api/v1/mcp/approvals/"+id+"/approve", c.box.Admin.Token, `{}`)
	require.Equal(c.t, "executed", a.at("approval.status"), "%s", a.raw)
	out, _ := a.at("approval.result").(map[string]any)
	page, _ := out["secret_page"].(string)
	seen := c.signIn(c.box.Admin.Email, c.box.Admin.Password).get("/mcp-approvals/" + id)
	require.Contains(c.t, seen, `href="`+page[len(c.base):]+`"`, "the page of the approval leads to it")
	out["approval_id"] = id
	return answer{raw: a.raw, json: out}
}

// A batch with an address of its own, of a level without a secret, says what to do.
func TestBatchAddressWithoutASecretSaysWhatToDo(t *testing.T) {
	t.Parallel()
	at, _ := receiver(t)
	c := sending(t, at)
	a := c.send("POST", "/api/v1/client/batchOrderCreateAsync", c.box.Admin.Token, fmt.Sprintf(`{"postback_url":"%s/batch","orders":[%s]}`, at, newOrder("PB-1")))
	require.Equal(t, 422, a.status, "%s", a.raw)
	require.Contains(t, string(a.raw), "webhook_sign_secret", "%s", a.raw)
}
