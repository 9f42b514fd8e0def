package attack

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// A key that may only read asks run_graphql_query to log in with a password that
// it found, and would have a token without bounds. No tool logs in.
func TestToolsDoNotLogIn(t *testing.T) {
	t.Parallel()
	logged := &journal{}
	c := startWithPasswords(t, func(cfg *server.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	key := c.key(c.box.Admin.Token, `{"name":"reads","scopes":["orders:read","approvals:read"]}`)
	literal := fmt.Sprintf(`mutation{userLogin(email:%q,password:%q){access_token account_type}}`, c.box.Admin.Email, c.box.Admin.Password)
	bound := fmt.Sprintf(`"variables":{"e":%q,"p":%q,"confirm":true}`, c.box.Admin.Email, c.box.Admin.Password)
	for name, arguments := range map[string]string{
		"literals":   fmt.Sprintf(`{"query":%q,"allow_mutation":true}`, literal),
		"variables":  `{"query":"mutation($e:String!,$p:String!){userLogin(email:$e,password:$p){access_token}}",` + bound + `,"allow_mutation":true}`,
		"an alias":   `{"query":"mutation($e:String!,$p:String!){me:userLogin(email:$e,password:$p){access_token}}",` + bound + `,"allow_mutation":true}`,
		"a fragment": `{"query":"mutation($e:String!,$p:String!){...f} fragment f on Mutation{userLogin(email:$e,password:$p){access_token}}",` + bound + `,"allow_mutation":true}`,
	} {
		for mode, headers := range map[string][]string{"now": nil, "queued": {"X-MCP-Require-Approval", "1"}, "dry": {"X-MCP-Dry-Run", "1"}} {
			a, _ := c.toolAt("/mcp/developer", "run_graphql_query", arguments, key, headers...)
			require.Contains(t, strings.ToUpper(string(a.raw)), "NOT_FOR_TOOLS", "%s, %s", name, mode)
			require.NotContains(t, string(a.raw), "access_token\":", "%s, %s", name, mode)
		}
	}
	list := c.ok("GET", "/api/v1/mcp/approvals?status=all", c.box.Admin.Token, "")
	require.EqualValues(t, 0, list.at("total"), "nothing was queued: %s", list.raw)
	require.NotContains(t, logged.String(), c.box.Admin.Password)
	a := c.send("POST", "/api/graphql", "", fmt.Sprintf(`{"query":%q}`, literal))
	require.NotEmpty(t, a.at("data.userLogin.access_token"), "people log in by GraphQL as before: %s", a.raw)
}

// Secrets that tools take are in no queue, log or preview, and neither is the
// text of a document.
func TestSecretsOfToolArgumentsAreMasked(t *testing.T) {
	t.Parallel()
	logged := &journal{}
	c := startWithPasswords(t, func(cfg *server.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	admin := c.box.Admin.Token
	const secret = "s3cret-0123456789abcdef-s3cret-xyz"
	id := c.order("M-1")
	for tool, arguments := range map[string]string{
		"update_webhook_settings": `{"settings":{"webhook_sign_secret":"` + secret + `"}}`,
		"test_webhook_delivery":   `{"url":"https://93.184.216.34/hook","secret":"` + secret + `"}`,
		"run_graphql_query":       fmt.Sprintf(`{"query":"mutation{orderHold(orderId:%d,reason:\"%s\"){order_id}}","allow_mutation":true,"variables":{"confirm":true,"password":"%s"}}`, id, secret, secret),
	} {
		for _, headers := range [][]string{{"X-MCP-Dry-Run", "1"}, {"X-MCP-Require-Approval", "1"}} {
			a, failed := c.toolAt("/mcp/developer", tool, arguments, admin, headers...)
			if headers[0] == "X-MCP-Require-Approval" {
				require.False(t, failed, "%s: %s", tool, a.raw)
				require.NotContains(t, string(a.raw), secret, tool)
				seen := c.ok("GET", "/api/v1/mcp/approvals/"+a.at("approval_id").(string), admin, "")
				require.NotContains(t, argumentsOf(seen), secret, tool)
			}
		}
	}
	a, _ := c.toolAt("/mcp/developer", "verify_webhook_signature", `{"scheme":"v2","body":"{}","secret":"`+secret+`","headers":{"X-Webhook-Signature-V2":"x"}}`, admin)
	require.NotContains(t, string(a.raw), secret)
	a, _ = c.tool("propose_write", `{"tool":"cancel_order","arguments":{"order_id":1,"api_token":"`+secret+`"}}`, admin)
	require.NotContains(t, string(a.raw), secret)
	a, _ = c.tool("get_orders", `{"api_token":"`+secret+`"}`, admin)
	require.NotContains(t, string(a.raw), secret)
	person := c.signIn(c.box.Admin.Email, c.box.Admin.Password)
	for _, x := range c.ok("GET", "/api/v1/mcp/approvals", admin, "").json["approvals"].([]any) {
		one := x.(map[string]any)
		page := person.get("/mcp-approvals/" + one["approval_id"].(string))
		_, after, _ := strings.Cut(page, `id="h-arguments"`)
		require.NotContains(t, after, secret, one["tool"])
	}
	require.NotContains(t, logged.String(), secret)
}

// A level's first address gives it a secret. The tool that set the address answered
// with the whole secret, and so did a GraphQL document run by a tool; a secret that
// was given came back in the other notation. Tools are given neither.
func TestToolsGiveNoWebhookSecret(t *testing.T) {
	t.Parallel()
	c := start(t)
	customer := c.box.Customer.Token
	const given = "s3cret-0123456789abcdef-s3cret-xyz"
	document := func(input string) string {
		return fmt.Sprintf(`{"query":%q,"allow_mutation":true,"variables":{"confirm":true}}`, `mutation{webhookSettingsUpdate(input:{`+input+`}){settings generated_secret webhook_sign_secret_standard}}`)
	}
	for tool, arguments := range map[string]string{
		"update_webhook_settings": `{"settings":{"order_create_webhook_url":"https://93.184.216.34/a"}}`,
		"run_graphql_query":       document(`order_create_webhook_url:"https://93.184.216.34/a"`),
	} {
		a, failed := c.toolAt("/mcp/developer", tool, arguments, customer)
		require.False(t, failed, "%s: %s", tool, a.raw)
		require.NotContains(t, string(a.raw), "whsec_", tool)
		require.NotRegexp(t, `"generated_secret":"[^"]`, string(a.raw), tool)
		require.Equal(t, true, c.ok("GET", "/api/v1/webhook-settings", customer, "").at("secret_unseen"), tool)
		c.ok("PUT", "/api/v1/webhook-settings", customer, `{"order_create_webhook_url":null,"webhook_sign_secret":null}`)
	}
	for tool, arguments := range map[string]string{
		"update_webhook_settings": `{"settings":{"order_create_webhook_url":"https://93.184.216.34/a","webhook_sign_secret":"` + given + `"}}`,
		"run_graphql_query":       document(`order_create_webhook_url:"https://93.184.216.34/b",webhook_sign_secret:"` + given + `"`),
	} {
		a, failed := c.toolAt("/mcp/developer", tool, arguments, customer)
		require.False(t, failed, "%s: %s", tool, a.raw)
		require.NotContains(t, string(a.raw), "whsec_", tool)
		require.NotContains(t, string(a.raw), given, tool)
	}
	c.ok("PUT", "/api/v1/webhook-settings", customer, `{"order_create_webhook_url":null,"webhook_sign_secret":null}`)
	a := c.ok("PUT", "/api/v1/webhook-settings", customer, `{"order_create_webhook_url":"https://93.184.216.34/a"}`)
	require.NotEmpty(t, a.at("generated_secret"), "people get it as before: %s", a.raw)
}

// argumentsOf is the arguments of a shown approval as text.
func argumentsOf(a answer) string { return fmt.Sprint(a.at("approval.arguments")) }
