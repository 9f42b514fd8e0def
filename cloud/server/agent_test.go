package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
)

// agentWorld is a running cloud with people, as agents meet it.
type agentWorld struct {
	t    *testing.T
	s    *Server
	box  Sandbox
	base string
}

func newAgentWorld(t *testing.T, cfg Config) *agentWorld { return agentWorldOf(t, cfg, false) }

// agentWorldOf is one where people may have passwords, which takes time.
func agentWorldOf(t *testing.T, cfg Config, passwords bool) *agentWorld {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	if cfg.Limits == (catalog.Limits{}) {
		cfg.Limits = catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Quotes: -1, Doors: -1}
	}
	cfg.ToolsPerMinute = -1
	return agentWorldOn(t, cfg, ln, passwords)
}

// agentWorldOn is one on a listener with the limits of its settings.
func agentWorldOn(t *testing.T, cfg Config, ln net.Listener, passwords bool) *agentWorld {
	cfg.Dir = t.TempDir()
	s, err := New(t.Context(), cfg)
	require.NoError(t, err)
	box, err := s.Sandbox(t.Context(), SandboxConfig{Passwords: passwords, HashCost: auth.Cost{MemoryKiB: 8, Passes: 1}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, Listeners{HTTP: ln}) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return &agentWorld{t, s, box, "http://" + ln.Addr().String()}
}

// key makes a key of an account's, narrowed to a profile or scopes.
func (w *agentWorld) key(of string, profile string, scopes ...string) string {
	w.t.Helper()
	session, err := w.s.findToken(w.t.Context(), auth.Hash(of))
	require.NoError(w.t, err)
	text := auth.NewToken()
	require.NoError(w.t, w.s.Store.Decide(w.t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.TokenIDs)
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(text), AccountID: session.Account.ID, Name: "agent-1", ID: cloud.TokenID(id), Profile: profile, Scopes: scopes, CreatedAt: time.Now().UTC()}}}}, err
	}))
	return text
}

type reply struct {
	status int
	header http.Header
	raw    []byte
	json   map[string]any
}

// post sends a body to a tool server. Headers are pairs; Authorization is a
// token alone.
func (w *agentWorld) post(path, body string, headers ...string) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.base+path, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	headers = slices.Clone(headers)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Authorization" {
			headers[i+1] = "Bearer " + headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	out := reply{status: resp.StatusCode, header: resp.Header, raw: raw}
	if len(raw) > 0 {
		require.NoError(w.t, json.Unmarshal(raw, &out.json), "%s", raw)
	}
	return out
}

// called is what came of a tools/call.
type called struct {
	reply
	failed bool           // isError
	body   map[string]any // the text block as JSON
}

func (w *agentWorld) on(path, tool, arguments string, headers ...string) called {
	w.t.Helper()
	r := w.post(path, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments), headers...)
	out := called{reply: r}
	result, ok := r.json["result"].(map[string]any)
	if !ok {
		return out
	}
	out.failed, _ = result["isError"].(bool)
	content, _ := result["content"].([]any)
	require.Len(w.t, content, 1, "%s", r.raw)
	text, _ := content[0].(map[string]any)["text"].(string)
	require.NoError(w.t, json.Unmarshal([]byte(text), &out.body), text)
	if !out.failed {
		require.Equal(w.t, out.body, result["structuredContent"], "content and structuredContent are the same")
		server := catalog.OperationsServer
		if strings.HasSuffix(path, "/mcp/developer") {
			server = catalog.DeveloperServer
		} else if strings.HasSuffix(path, "/mcp/lockers") {
			server = catalog.LockersServer
		}
		w.conforms(server, tool, out)
	} else {
		require.NotContains(w.t, result, "structuredContent")
	}
	return out
}

func (w *agentWorld) call(tool, arguments string, headers ...string) called {
	w.t.Helper()
	return w.on("/mcp", tool, arguments, headers...)
}

// good is a call that must be done.
func (w *agentWorld) good(tool, arguments string, headers ...string) map[string]any {
	w.t.Helper()
	c := w.call(tool, arguments, headers...)
	require.False(w.t, c.failed || c.body == nil, "%s", c.raw)
	return c.body
}

const anOrder = `{"type":"D","order_ref":%q,"recipient":{"name":"Ann Lee","phone":"+14165550123","address_line1":"100 Queen St W","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"},"packages":[{"weight":2.5}]}`

// order makes an order and gives its id.
func (w *agentWorld) order(ref string) int {
	w.t.Helper()
	return int(w.good("create_order", fmt.Sprintf(anOrder, ref), "Authorization", w.box.Admin.Token)["order_id"].(float64))
}

func (w *agentWorld) status(id int) int {
	w.t.Helper()
	o := w.good("get_order_detail", fmt.Sprintf(`{"order_id":%d}`, id), "Authorization", w.box.Admin.Token)
	return int(o["order"].(map[string]any)["order_status_id"].(float64))
}

func errorOf(r reply) map[string]any {
	e, _ := r.json["error"].(map[string]any)
	return e
}

func names(r reply) (out []string) {
	result, _ := r.json["result"].(map[string]any)
	list, _ := result["tools"].([]any)
	for _, x := range list {
		out = append(out, x.(map[string]any)["name"].(string))
	}
	return out
}

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// The test vectors of the wire rules that need real tools (mcp-wire 16).
func TestVectorsAgainstTheRealServers(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin := w.box.Admin.Token
	all := len(w.s.Catalog.Tools(catalog.OperationsServer))

	t.Run("5 the whole list, with a token and without", func(t *testing.T) {
		open, full := w.post("/api/mcp", list), w.post("/mcp", list, "Authorization", admin)
		require.Len(t, names(open), all)
		require.Equal(t, names(open), names(full))
		require.True(t, slices.IsSorted(names(open)))
		require.NotContains(t, open.json["result"], "ttlMs")
		require.Len(t, names(w.post("/mcp/developer", list)), len(w.s.Catalog.Tools(catalog.DeveloperServer)))
		require.Less(t, len(names(w.post("/mcp", list, "Authorization", w.key(admin, "support")))), all)
		require.Equal(t, names(w.post("/mcp", list, "X-MCP-Profile", "support")), names(w.post("/mcp", list, "Authorization", w.key(admin, "support"))), "a profile narrows the list without a token, too")
	})
	t.Run("34 a tool that needs a token", func(t *testing.T) {
		for path, document := range map[string]string{"/mcp": "/mcp", "/api/mcp": "/api/mcp"} {
			r := w.on(path, "get_orders", `{}`)
			require.Equal(t, 401, r.status)
			require.Equal(t, fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource%s", scope="orders:read"`, w.base, document), r.header.Get("WWW-Authenticate"))
			require.Equal(t, 401.0, errorOf(r.reply)["code"])
			require.Equal(t, 7.0, r.json["id"])
		}
	})
	t.Run("35 a bad token on any method", func(t *testing.T) {
		for _, body := range []string{list, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
			r := w.post("/mcp", body, "Authorization", "nobodys")
			require.Equal(t, 401, r.status, body)
			require.Contains(t, r.header.Get("WWW-Authenticate"), `error="invalid_token"`)
		}
	})
	id := w.order("V-1")
	about := fmt.Sprintf(`{"order_id":%d}`, id)
	confirmed := fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id)
	t.Run("36 a key that may only read", func(t *testing.T) {
		r := w.call("cancel_order", confirmed, "Authorization", w.key(admin, "ops-readonly"))
		require.Equal(t, []any{200, true, "SCOPE_REQUIRED"}, []any{r.status, r.failed, r.body["code"]})
		require.Contains(t, r.body["message"], "orders:write")
	})
	t.Run("37 a connection that is narrowed", func(t *testing.T) {
		r := w.call("cancel_order", confirmed, "Authorization", admin, "X-MCP-Profile", "ops-readonly")
		require.Equal(t, []any{200, true, "SCOPE_REQUIRED"}, []any{r.status, r.failed, r.body["code"]})
		require.Contains(t, r.body["message"], "X-MCP-Profile")
		r = w.call("cancel_order", confirmed, "Authorization", admin, "X-MCP-Scopes", "orders:read, routes:read", "X-MCP-Profile", "full")
		require.Contains(t, r.body["message"], "X-MCP-Scopes", "scopes win over the profile")
	})
	t.Run("38 unknown names never mean everything", func(t *testing.T) {
		for header, value := range map[string]string{"X-MCP-Profile": "nosuch", "X-MCP-Scopes": "order:read"} {
			for _, token := range []string{"", admin} {
				headers := []string{header, value}
				if token != "" {
					headers = append(headers, "Authorization", token)
				}
				r := w.post("/mcp", list, headers...)
				require.Equal(t, 400, r.status)
				require.Equal(t, -32602.0, errorOf(r)["code"])
				data := errorOf(r)["data"].(map[string]any)
				require.Equal(t, map[string]string{"X-MCP-Profile": "UNKNOWN_PROFILE", "X-MCP-Scopes": "UNKNOWN_SCOPE"}[header], data["code"])
				require.NotEmpty(t, data["valid"])
			}
		}
		require.Equal(t, 400, w.post("/mcp", list, "X-MCP-Scopes", "").status)
		require.Equal(t, 400, w.post("/mcp", list, "X-MCP-Profile", "").status)
	})
	t.Run("39 no confirmation", func(t *testing.T) {
		r := w.call("cancel_order", about, "Authorization", admin)
		require.Equal(t, []any{200, true, "CONFIRMATION_REQUIRED"}, []any{r.status, r.failed, r.body["code"]})
		require.Contains(t, r.body["message"], "confirm=true")
		require.Equal(t, 1, w.status(id))
		r = w.call("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":"true"}`, id), "Authorization", admin)
		require.Equal(t, "VALIDATION_FAILED", r.body["code"], "only the boolean counts")
		require.Equal(t, 1, w.status(id))
	})
	t.Run("43 a dry run wins over confirm", func(t *testing.T) {
		r := w.call("cancel_order", confirmed, "Authorization", admin, "X-MCP-Dry-Run", "1", "X-MCP-Require-Approval", "1")
		require.False(t, r.failed)
		require.Equal(t, "preview", r.body["outcome"])
		change := r.body["would_change"].(map[string]any)
		require.Equal(t, fmt.Sprintf("/api/v1/orders/%d/cancel", id), change["path"])
		effect := change["affected"].([]any)[0].(map[string]any)
		require.Equal(t, []any{1.0, 50.0}, []any{effect["before"].(map[string]any)["order_status_id"], effect["after"].(map[string]any)["order_status_id"]})
		require.Equal(t, 1, w.status(id))
		w.conforms(catalog.OperationsServer, "cancel_order", r)
	})
	t.Run("44 every write waits", func(t *testing.T) {
		for tool, arguments := range map[string]string{"cancel_order": confirmed, "update_order_note": fmt.Sprintf(`{"order_id":%d,"note":"hello"}`, id)} {
			r := w.call(tool, arguments, "Authorization", admin, "X-MCP-Require-Approval", "yes")
			require.False(t, r.failed, "%s", r.raw)
			require.Equal(t, "pending_approval", r.body["outcome"])
			require.Regexp(t, `^apr_[0-9A-Z]{26}$`, r.body["approval_id"])
			w.conforms(catalog.OperationsServer, tool, r)
		}
		o := w.good("get_order_detail", about, "Authorization", admin)["order"].(map[string]any)
		require.Equal(t, []any{1.0, nil}, []any{o["order_status_id"], o["note"]})
	})
	t.Run("46 errors carry no structured content", func(t *testing.T) {
		for _, tool := range w.s.Catalog.Tools(catalog.OperationsServer) { // on checks it for each
			r := w.call(tool.Name, `{"nosuch":1}`, "Authorization", admin)
			require.True(t, r.failed, tool.Name)
			require.Equal(t, "VALIDATION_FAILED", r.body["code"], tool.Name)
		}
	})
}

// conforms checks a result by its tool's output schema.
func (w *agentWorld) conforms(server, name string, r called) {
	w.t.Helper()
	t := w.s.Catalog.Tool(server, name)
	require.NotNil(w.t, t, "%s/%s", server, name)
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.Output()))
	require.NoError(w.t, err)
	c := jsonschema.NewCompiler()
	require.NoError(w.t, c.AddResource("out.json", schema))
	compiled, err := c.Compile("out.json")
	require.NoError(w.t, err)
	require.NoError(w.t, compiled.Validate(r.json["result"].(map[string]any)["structuredContent"]), "%s: %s", name, r.raw)
}

// modern is a tools/call of the newest revision.
func (w *agentWorld) modern(tool, arguments, more string, headers ...string) reply {
	w.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
		tool, arguments, more)
	return w.post("/mcp", body, append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}, headers...)...)
}

// Where the client can ask its user, it is asked (mcp-wire 8.2).
func TestTheUserIsAsked(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin := w.box.Admin.Token
	id := w.order("Q-1")
	about := fmt.Sprintf(`{"order_id":%d,"reason":"twice"}`, id)
	ask := func(more string, headers ...string) map[string]any {
		t.Helper()
		r := w.modern("cancel_order", about, more, append([]string{"Authorization", admin}, headers...)...)
		require.Equal(t, 200, r.status, "%s", r.raw)
		return r.json
	}
	first := ask("")["result"].(map[string]any)
	require.Equal(t, "input_required", first["resultType"])
	question := first["inputRequests"].(map[string]any)["confirm"].(map[string]any)
	require.Equal(t, "elicitation/create", question["method"])
	require.Contains(t, question["params"].(map[string]any)["message"], "cannot be undone")
	state := first["requestState"].(string)
	with := func(state, answers string) string {
		return fmt.Sprintf(`,"requestState":%q,"inputResponses":%s`, state, answers)
	}
	const yes = `{"confirm":{"action":"accept","content":{"confirm":true}}}`

	for name, answers := range map[string]string{"nothing": `{}`, "another question": `{"other":1}`, "no object": `{"confirm":3}`, "no word": `{"confirm":{"action":"accept","content":{}}}`, "no such action": `{"confirm":{"action":"maybe"}}`} {
		require.Equal(t, "input_required", ask(with(state, answers))["result"].(map[string]any)["resultType"], name)
	}
	for _, answers := range []string{`{"confirm":{"action":"accept","content":{"confirm":false}}}`, `{"confirm":{"action":"decline"}}`, `{"confirm":{"action":"cancel"}}`} {
		result := ask(with(state, answers))["result"].(map[string]any)
		require.Equal(t, true, result["isError"])
		require.Contains(t, result["content"].([]any)[0].(map[string]any)["text"], "CONFIRMATION_DECLINED")
	}
	refused := func(r map[string]any) {
		t.Helper()
		e, _ := r["error"].(map[string]any)
		require.Equal(t, -32602.0, e["code"], "%v", r)
	}
	last := state[len(state)-1:]
	refused(ask(with(state[:len(state)-1]+map[bool]string{true: "B", false: "A"}[last == "A"], yes)))
	refused(ask(`,"inputResponses":` + yes)) // without a state
	refused(w.modern("cancel_order", fmt.Sprintf(`{"order_id":%d,"reason":"other"}`, id), with(state, yes), "Authorization", admin).json)
	refused(w.modern("hold_order", about, with(state, yes), "Authorization", admin).json)
	refused(w.modern("cancel_order", about, with(state, yes), "Authorization", w.box.Staff.Token).json)
	require.Equal(t, 1, w.status(id))

	last2 := ask(with(state, yes))
	t.Logf("%v", last2)
	done := last2["result"].(map[string]any)
	require.Equal(t, "complete", done["resultType"], "%v", done)
	require.Equal(t, "executed", done["structuredContent"].(map[string]any)["outcome"])
	require.Equal(t, 50, w.status(id))
	refused(ask(with(state, yes))) // the answer is used up
	require.Equal(t, "question", w.audit("orders.cancel")["consent"])

	// A client that cannot be asked by a form learns what to do.
	r := w.post("/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold_order","arguments":{"order_id":%d},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}}}`, w.order("Q-2")),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "hold_order", "Authorization", admin)
	require.Contains(t, string(r.raw), "CONFIRMATION_REQUIRED")
}

// audit is the newest audit line of an operation.
func (w *agentWorld) audit(operation string) map[string]any {
	w.t.Helper()
	list, err := w.s.Store.ListAudits(w.t.Context(), w.business(), 0, 200)
	require.NoError(w.t, err)
	for _, a := range list {
		var detail map[string]any
		require.NoError(w.t, json.Unmarshal([]byte(a.Detail), &detail))
		if detail["operation"] == operation {
			detail["actor"] = a.Actor
			return detail
		}
	}
	w.t.Fatalf("there is no audit line of %s", operation)
	return nil
}

func (w *agentWorld) business() cloud.BusinessID {
	s, err := w.s.findToken(w.t.Context(), auth.Hash(w.box.Admin.Token))
	require.NoError(w.t, err)
	return s.Account.BusinessID
}

// Every tool that reads is called as far as an order and no argument at all lead:
// each answer is what its output schema says, which on checks.
func TestReadingToolsGiveWhatTheyDescribe(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin := w.box.Admin.Token
	id := w.order("Q-1")
	answered := map[string]bool{}
	for _, x := range w.s.Catalog.Tools(catalog.OperationsServer) {
		if x.Writes() {
			continue
		}
		for _, arguments := range []string{`{}`, fmt.Sprintf(`{"order_id":%d}`, id), `{"keyword":"q-1"}`, `{"query":"q-1"}`} {
			if r := w.call(x.Name, arguments, "Authorization", admin); !r.failed && r.body != nil {
				answered[x.Name] = true
			}
		}
	}
	for _, name := range []string{"get_order_detail", "get_orders", "find_order", "get_routes", "list_exceptions"} {
		require.True(t, answered[name], name)
	}
	require.Greater(t, len(answered), 10, "%v", answered)
}
