package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/locale"
)

func TestResultsOnBothWires(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	const object = `{"result":true,"note":"<b>\"Ünïcode\"</b>\\ &","number":0}`
	block := `{"type":"text","text":"{\"result\":true,\"note\":\"<b>\\\"Ünïcode\\\"</b>\\\\ &\",\"number\":0}"}`
	old := r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"find_order","task":{}}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{"content":[`+block+`],"structuredContent":`+object+`}}`, string(old.body))
	now := r.now("tools/call", "find_order", `"name":"find_order",M`)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[`+block+`],"structuredContent":`+object+
		`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"shop","title":"Shop","version":"1.0"}}}}`, string(now.body))

	list := r.now("tools/list", "", "M").result()
	require.Equal(t, 300000.0, list["ttlMs"])
	require.Equal(t, "private", list["cacheScope"])
	require.NotContains(t, now.result(), "ttlMs")
	first := list["tools"].([]any)[4].(map[string]any)
	require.Equal(t, map[string]any{
		"name": "find_order", "title": "Find", "description": "Finds <an> order & more.", "outputSchema": map[string]any{"type": "object"},
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"number": map[string]any{"type": "integer"}}, "additionalProperties": false},
		"annotations": map[string]any{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
	}, first)
}

func TestParametersOfACall(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	for params, parameter := range map[string]string{`{}`: "name", `{"name":7}`: "name", `{"name":"echo","arguments":[]}`: "arguments", `{"name":"echo","arguments":null}`: "arguments", `{"name":"echo","arguments":"{}"}`: "arguments", `{"name":"echo","_meta":7}`: "_meta"} {
		res := r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`)
		require.Equal(t, 200, res.status, params)
		require.Equal(t, CodeInvalidParams, res.code(), params)
		require.Equal(t, locale.Error("en", codeParameter, parameter), res.json["error"].(map[string]any)["message"], params)
	}
	echoed := func(res *response) map[string]any { return res.result()["structuredContent"].(map[string]any) }
	got := echoed(r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","inputResponses":7,"requestState":7}}`))
	require.Equal(t, map[string]any{}, got["arguments"], "the legacy wire knows no answers")
	got = echoed(r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"a":{"b":1,"b":2}}}}`))
	require.Equal(t, "a.b", got["repeated"])
	for capabilities, want := range map[string]bool{`{}`: false, `{"elicitation":{}}`: true, `{"elicitation":{"form":{}}}`: true, `{"elicitation":{"url":{}}}`: false, `{"elicitation":{"url":{},"form":{}}}`: true, `{"elicitation":true}`: false, `{"elicitation":null}`: false} {
		got = echoed(r.now("tools/call", "echo", `"name":"echo",`+able(capabilities)))
		require.Equal(t, want, got["can_ask"], capabilities)
		require.Equal(t, true, got["modern"])
	}
	res := r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + strings.Repeat("ü", 5000) + `"}}`)
	require.Contains(t, string(res.body), strings.Repeat("ü", 64)+"…")
	require.Less(t, len(res.body), 400)
}

// able is the envelope of a client with capabilities.
func able(capabilities string) string {
	return strings.Replace(envelope, `Capabilities":{}`, `Capabilities":`+capabilities, 1)
}

// explosive panics when it is written.
type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("secret of the house") }

func TestFailuresAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := shop()
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Failures = prometheus.NewCounter(prometheus.CounterOpts{Name: "x"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(cfg.Failures)
	cfg.Tools = append(cfg.Tools,
		Tool{Name: "nothing", Description: "x", Input: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, *Call) (*Result, error) { return nil, nil }},
		Tool{Name: "unwritable", Description: "x", Input: json.RawMessage(`{"type":"object"}`), Run: func(context.Context, *Call) (*Result, error) {
			return &Result{Content: []Content{{"type": func() {}}}}, nil
		}},
		Tool{Name: "panics_late", Description: "x", Streams: true, Input: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, c *Call) (*Result, error) {
			c.Progress(1, 0, "")
			panic("secret of the house")
		}},
		Tool{Name: "unwritable_late", Description: "x", Streams: true, Input: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, c *Call) (*Result, error) {
			c.Progress(1, 0, "")
			return &Result{Content: []Content{{"type": explosive{}}}}, nil
		}})
	r := newRig(t, cfg)
	for i, tool := range []string{"panics", "fails", "nothing", "unwritable", "cancel_order"} { // the last asks on a wire without questions
		res := r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q}}`, tool))
		require.Equal(t, 200, res.status, tool)
		require.Equal(t, CodeInternal, res.code(), tool)
		require.Equal(t, map[string]any{"request_id": "request-1"}, res.json["error"].(map[string]any)["data"])
		require.NotContains(t, string(res.body), "secret")
		require.EqualValues(t, 7, res.json["id"])
		counted, err := registry.Gather()
		require.NoError(t, err)
		require.InDelta(t, i+1, counted[0].GetMetric()[0].GetCounter().GetValue(), 0)
	}
	progress := strings.Replace(envelope, `{"`, `{"progressToken":1,"`, 1)
	for _, tool := range []string{"panics_late", "unwritable_late"} {
		res := r.now("tools/call", tool, `"name":"`+tool+`",`+progress, "Accept", "application/json, text/event-stream")
		require.Equal(t, "text/event-stream", res.headers["Content-Type"])
		list := events(t, res.body)
		require.Len(t, list, 2)
		require.Contains(t, list[1], `"id":7,"error":{"code":-32603`)
	}
	res := r.post(`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"panics"}},` + ping + `]`)
	require.Contains(t, string(res.body), `{"jsonrpc":"2.0","id":1,"error":{"code":-32603`)
	require.Contains(t, string(res.body), `{"jsonrpc":"2.0","id":1,"result":{}}`, "the others are answered")
	res = r.post(ping, "Authorization", "Bearer panic")
	require.Equal(t, 200, res.status)
	require.Equal(t, CodeInternal, res.code())
	require.Contains(t, log.String(), "secret of the house")
	require.Contains(t, log.String(), "request-1")
	res = r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"refuses"}}`)
	require.Equal(t, 403, res.status)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":403,"message":"no <way>"}}`, string(res.body))
	require.Equal(t, "Bearer", res.headers["Www-Authenticate"])
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	call := func(r *rig, tool, more string, headers ...string) *response {
		return r.now("tools/call", tool, `"name":"`+tool+`",`+more+able(`{"elicitation":{}}`), headers...)
	}
	first := call(r, "cancel_order", `"arguments":{"number":1,"confirm":false,"note":"x"},`)
	require.Equal(t, "input_required", first.result()["resultType"])
	require.Contains(t, string(first.body), `"message":"Cancel <it>?"`)
	require.NotContains(t, first.result(), "ttlMs")
	require.Contains(t, first.result(), "_meta")
	state := first.result()["requestState"].(string)
	with := func(state, arguments string) string {
		return fmt.Sprintf(`"arguments":%s,"requestState":%q,"inputResponses":{"confirm":{"action":"accept"},"other":1},`, arguments, state)
	}
	again := call(r, "cancel_order", with(state, `{ "note":"x", "number":1,"confirm":false}`)).result()["structuredContent"].(map[string]any)
	require.Equal(t, "once", again["state"])
	require.Equal(t, map[string]any{"action": "accept"}, again["answer"])
	nonce := again["nonce"]
	require.Len(t, nonce, 32)
	again = call(r, "cancel_order", with(state, `{"number":1,"confirm":false,"note":"x"}`)).result()["structuredContent"].(map[string]any)
	require.Equal(t, nonce, again["nonce"], "of the state")
	other := call(r, "cancel_order", `"arguments":{"number":1,"confirm":false,"note":"x"},`).result()["requestState"].(string)
	require.NotEqual(t, state, other)

	refused := func(why string, res *response) {
		t.Helper()
		require.Equal(t, 200, res.status, why)
		require.Equal(t, CodeInvalidParams, res.code(), "%s: %s", why, res.body)
	}
	good := `{"number":1,"confirm":false,"note":"x"}`
	for i := range state {
		c := "A"
		if state[i] == 'A' {
			c = "B"
		}
		refused("altered", call(r, "cancel_order", with(state[:i]+c+state[i+1:], good)))
	}
	refused("cut", call(r, "cancel_order", with(state[:20], good)))
	refused("empty", call(r, "cancel_order", with("", good)))
	refused("number", call(r, "cancel_order", `"requestState":7,`))
	refused("other arguments", call(r, "cancel_order", with(state, `{"number":2,"confirm":false,"note":"x"}`)))
	refused("another confirm", call(r, "cancel_order", with(state, `{"number":1,"confirm":true,"note":"x"}`)))
	refused("another spelling of a number", call(r, "cancel_order", with(state, `{"number":1.0,"confirm":false,"note":"x"}`)))
	refused("another tool", call(r, "echo", with(state, good)))
	refused("another caller", call(r, "cancel_order", with(state, good), "Authorization", "Bearer good"))
	refused("answers that are no object", call(r, "cancel_order", `"inputResponses":[],`))
	cfg := shop()
	cfg.Name = "bazaar"
	refused("another server", call(newRig(t, cfg), "cancel_order", with(state, good)))
	cfg = shop()
	cfg.Key = bytes.Repeat([]byte{8}, 32)
	refused("another key", call(newRig(t, cfg), "cancel_order", with(state, good)))
	require.Equal(t, "once", call(newRig(t, shop()), "cancel_order", with(state, good)).result()["structuredContent"].(map[string]any)["state"], "another node")

	res := r.now("tools/call", "cancel_order", `"name":"cancel_order",M`)
	require.Equal(t, 400, res.status, "a client that cannot be asked")
	require.Equal(t, CodeMissingCapability, res.code())
	require.Equal(t, map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}}}, res.json["error"].(map[string]any)["data"])
}

func TestToolsWithoutACallerAreRefused(t *testing.T) {
	t.Parallel()
	run := func(context.Context, *Call) (*Result, error) { return nil, nil }
	object := json.RawMessage(`{"type":"object"}`)
	mirrored := func(p string) Tool {
		return Tool{Name: "a", Run: run, Input: json.RawMessage(`{"type":"object","properties":{` + p + `}}`)}
	}
	for name, tools := range map[string][]Tool{
		"no name": {{Run: run, Input: object}}, "long": {{Name: strings.Repeat("a", 65), Run: run, Input: object}}, "odd": {{Name: "a b", Run: run, Input: object}},
		"twice": {{Name: "a", Run: run, Input: object}, {Name: "a", Run: run, Input: object}}, "idle": {{Name: "a", Input: object}},
		"no input": {{Name: "a", Run: run}}, "array": {{Name: "a", Run: run, Input: json.RawMessage(`[]`)}}, "text": {{Name: "a", Run: run, Input: json.RawMessage(`{"type":"string"}`)}},
		"cut": {{Name: "a", Run: run, Input: json.RawMessage(`{"type":"object"`)}}, "repeated": {{Name: "a", Run: run, Input: json.RawMessage(`{"type":"object","type":"object"}`)}},
		"output": {{Name: "a", Run: run, Input: object, Output: json.RawMessage(`{"type":"array"}`)}},
		"header": {mirrored(`"x":{"type":"string","x-mcp-header":"A B"}`)}, "same header": {mirrored(`"x":{"type":"string","x-mcp-header":"A"},"y":{"type":"string","x-mcp-header":"a"}`)},
		"number": {mirrored(`"x":{"type":"number","x-mcp-header":"A"}`)}, "object": {mirrored(`"x":{"type":"object","x-mcp-header":"A"}`)},
	} {
		_, err := New(Config{Name: "shop", Key: testKey, Tools: tools})
		require.Error(t, err, name)
	}
	for _, cfg := range []Config{{}, {Key: testKey[:31]}, {Key: testKey, PageSize: -1}, {Key: testKey, Timeout: -1}, {Key: testKey, Public: []string{"shop.example"}}, {Key: testKey, Origins: []string{"ftp://x"}}} {
		_, err := New(cfg)
		require.Error(t, err)
	}
}

// Callers choose what they see, but not how much is kept of it.
func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	cfg := shop()
	cfg.Admit = func(_ context.Context, r *Request) (Caller, error) {
		return Caller{Set: *r.Scopes, Sees: func(tool string) bool { return strings.HasPrefix(tool, *r.Scopes) }}, nil
	}
	r := newRig(t, cfg)
	for i := range 3 * maxViews {
		require.Empty(t, r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, "X-MCP-Scopes", fmt.Sprint("none", i)).result()["tools"])
	}
	require.Len(t, r.post(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, "X-MCP-Scopes", "tool_").result()["tools"], 12)
	require.LessOrEqual(t, len(r.s.views.list), maxViews)
}
