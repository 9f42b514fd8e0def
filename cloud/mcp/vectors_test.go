package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// The worked examples of the wire rules, by number, as far as they need no real
// tool.
func TestVectors(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	for i, v := range []string{"2024-11-05", "1.0.0", modern} { // 1-3
		want := []string{"2024-11-05", newest, newest}[i]
		res := r.post(fmt.Sprintf(handshake, v))
		require.Equal(t, 200, res.status)
		require.Equal(t, want, res.result()["protocolVersion"])
		require.Equal(t, map[string]any{"tools": map[string]any{}}, res.result()["capabilities"])
		require.Equal(t, map[string]any{"name": "shop", "title": "Shop", "version": "1.0"}, res.result()["serverInfo"])
		require.NotContains(t, res.result(), "resultType")
	}
	res := r.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) // 4
	require.Equal(t, 202, res.status)
	require.Empty(t, res.body)

	res = r.post(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`) // 5
	require.Equal(t, 200, res.status)
	require.Equal(t, "a", res.json["id"])
	require.Len(t, res.result()["tools"], 20)
	require.Len(t, res.result(), 1)
	require.Contains(t, string(res.body), "Finds <an> order & more.", "nothing is escaped for HTML")

	res = r.now("server/discover", "", "M") // 6
	require.Equal(t, 200, res.status)
	require.Equal(t, map[string]any{
		"resultType": "complete", "_meta": map[string]any{metaPrefix + "serverInfo": map[string]any{"name": "shop", "title": "Shop", "version": "1.0"}},
		"supportedVersions": []any{modern, newest, "2025-06-18", assumed, "2024-11-05"}, "capabilities": map[string]any{"tools": map[string]any{}},
		"instructions": "Use find_order first.", "ttlMs": 3600000.0, "cacheScope": "public",
	}, res.result())

	refused := func(number string, res *response, status, code int) {
		t.Helper()
		require.Equal(t, status, res.status, "%s: %s", number, res.body)
		require.Equal(t, code, res.code(), "%s: %s", number, res.body)
		require.Equal(t, "application/json", res.headers["Content-Type"])
		require.Equal(t, "no-store", res.headers["Cache-Control"])
	}
	refused("7", r.now("server/discover", "", ""), 400, CodeInvalidParams)
	refused("8", r.now("server/discover", "", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), 400, CodeInvalidParams)
	claim := func(v string) string {
		return `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{` + strings.ReplaceAll(envelope, modern, v) + `}}`
	}
	refused("9", r.post(claim("v999"), "MCP-Protocol-Version", modern), 400, CodeHeaderMismatch)
	res = r.post(claim("v999"), "MCP-Protocol-Version", "v999")
	refused("10", res, 400, CodeVersion)
	require.Equal(t, map[string]any{"requested": "v999", "supported": []any{modern, newest, "2025-06-18", assumed, "2024-11-05"}}, res.json["error"].(map[string]any)["data"])
	require.EqualValues(t, 3, res.json["id"])
	refused("11", r.post(claim(modern)), 400, CodeHeaderMismatch)
	refused("12", r.post(claim(modern), "MCP-Protocol-Version", modern), 400, CodeHeaderMismatch)
	refused("13", r.post(claim(modern), "MCP-Protocol-Version", modern, "Mcp-Method", "TOOLS/LIST"), 400, CodeHeaderMismatch)
	require.Equal(t, 200, r.post(claim(modern), "MCP-Protocol-Version", modern, "mcp-method", "tools/list").status, "14")
	require.Equal(t, 200, r.now("tools/call", "  find_order  ", `"name":"find_order",M`).status, "15")
	require.Equal(t, 200, r.now("tools/call", "=?base64?ZmluZF9vcmRlcg==?=", `"name":"find_order",M`).status, "16")
	refused("17", r.now("tools/call", "=?base64?ZmluZF9vcmRlcg=?=", `"name":"find_order",M`), 400, CodeHeaderMismatch)
	for _, m := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "subscriptions/listen", "nope"} {
		res := r.now(m, "", "M")
		refused("18", res, 404, CodeMethodNotFound)
		require.EqualValues(t, 7, res.json["id"])
	}
	res = r.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "MCP-Protocol-Version", newest)
	require.Equal(t, 200, res.status, "19")
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, string(res.body))
	refused("20", r.post(`{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`, "MCP-Protocol-Version", newest), 200, CodeMethodNotFound)
	refused("21", r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "MCP-Protocol-Version", "2027-01-01"), 400, CodeVersion)

	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"x","method":"nope"}]`
	res = r.post(batch) // 22
	require.Equal(t, 200, res.status)
	var two []map[string]any
	require.NoError(t, json.Unmarshal(res.body, &two))
	require.Len(t, two, 2)
	require.EqualValues(t, 1, two[0]["id"])
	require.Equal(t, "x", two[1]["id"])
	refused("23", r.post(batch, "MCP-Protocol-Version", "2025-06-18"), 400, CodeInvalidRequest)
	refused("24", r.post(`[]`), 400, CodeInvalidRequest)
	res = r.post(`{"jsonrpc":`)
	refused("25", res, 400, CodeParse)
	require.NotContains(t, res.json, "id")
	refused("26", r.post(`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`), 400, CodeInvalidRequest)
	for _, id := range []string{"null", "1.5", "{}", "true", "1e2", "[1]"} {
		res := r.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)
		refused("27", res, 400, CodeInvalidRequest)
		require.NotContains(t, res.json, "id")
	}
	refused("28", r.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin", "http://evil.example"), 403, 403)
	for _, m := range []string{"GET", "DELETE", "PUT", "PATCH"} {
		res := r.do(m, "")
		refused("29", res, 405, 405)
		require.Equal(t, "POST, OPTIONS", res.headers["Allow"])
	}
	for _, cursor := range []string{`"zzz"`, `""`, "3", "null"} {
		refused("30", r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":`+cursor+`}}`), 200, CodeInvalidParams)
	}
	res = r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such_tool"}}`)
	refused("32", res, 200, CodeInvalidParams)
	require.Contains(t, string(res.body), "Unknown tool: no_such_tool")
	res = r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_order","arguments":{"number":"x"}}}`)
	require.Equal(t, 200, res.status, "33")
	require.Equal(t, true, res.result()["isError"])
	require.NotContains(t, res.result(), "structuredContent")
	for _, m := range []string{"ping", "tools/list", "initialize", "nope", "notifications/initialized"} {
		res := r.post(`{"jsonrpc":"2.0","id":1,"method":"`+m+`"}`, "Authorization", "Bearer bad")
		refused("35", res, 401, 401)
		require.Equal(t, `Bearer error="invalid_token"`, res.headers["Www-Authenticate"])
	}

	progress := strings.Replace(envelope, `{"`, `{"progressToken":1e0,"`, 1)
	refused("token", r.now("tools/call", "count", `"name":"count",`+progress, "Accept", "application/json, text/event-stream"), 200, CodeInvalidParams)
	progress = strings.Replace(envelope, `{"`, `{"progressToken":12345678901234567890,"`, 1)
	res = r.now("tools/call", "count", `"name":"count",`+progress, "Accept", "application/json, text/event-stream") // 47
	require.Equal(t, "text/event-stream", res.headers["Content-Type"])
	list := events(t, res.body)
	require.Len(t, list, 4)
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":12345678901234567890,"progress":1,"total":3,"message":"at 1"}}`, list[0])
	require.Contains(t, list[3], `"id":7,"result":{"resultType":"complete"`)
	for _, accept := range []string{"application/json", ""} {
		res = r.now("tools/call", "count", `"name":"count",`+progress, "Accept", accept)
		require.Equal(t, "application/json", res.headers["Content-Type"])
	}
	res = r.now("tools/call", "count", `"name":"count",M`, "Accept", "application/json, text/event-stream") // 48
	require.Equal(t, "application/json", res.headers["Content-Type"])
	require.Equal(t, map[string]any{"counted": 3.0}, res.result()["structuredContent"])

	plain := r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	packed := r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Accept-Encoding", "gzip") // 49
	require.Equal(t, "gzip", packed.headers["Content-Encoding"])
	require.Equal(t, plain.body, packed.body)
}

// Vector 31: pages that advance and end.
func TestPages(t *testing.T) {
	t.Parallel()
	cfg := shop()
	cfg.PageSize = 9
	r := newRig(t, cfg)
	whole := newRig(t, shop())
	collect := func(auth ...string) (names, cursors []string) {
		params := "{}"
		for {
			res := r.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":`+params+`}`, auth...)
			require.Equal(t, 200, res.status)
			for _, x := range res.result()["tools"].([]any) {
				names = append(names, x.(map[string]any)["name"].(string))
			}
			next, ok := res.result()["nextCursor"].(string)
			if !ok {
				return names, cursors
			}
			require.NotContains(t, cursors, next)
			cursors = append(cursors, next)
			params = fmt.Sprintf(`{"cursor":%q}`, next)
		}
	}
	names, cursors := collect()
	require.Len(t, names, 20)
	require.Len(t, cursors, 2)
	require.IsIncreasing(t, names)
	few, _ := collect("Authorization", "Bearer good")
	require.Len(t, few, 8)

	ask := func(r *rig, cursor string, auth ...string) *response {
		return r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":%q}}`, cursor), auth...)
	}
	require.Len(t, ask(whole, cursors[0]).result()["tools"], 11, "a node with other pages goes on at the same place")
	require.Equal(t, CodeInvalidParams, ask(r, cursors[0], "Authorization", "Bearer good").code(), "another visible set")
	b, err := base64.RawURLEncoding.DecodeString(cursors[0])
	require.NoError(t, err)
	require.Equal(t, CodeInvalidParams, ask(r, base64.RawURLEncoding.EncodeToString(append(b, 'x'))).code())
	b, err = base64.RawURLEncoding.DecodeString(cursors[1])
	require.NoError(t, err)
	end := append(b[:12:12], names[len(names)-1]...)
	require.Equal(t, CodeInvalidParams, ask(r, base64.RawURLEncoding.EncodeToString(end)).code(), "behind the last there is nothing")
	cfg.Tools = cfg.Tools[1:]
	require.Equal(t, CodeInvalidParams, ask(newRig(t, cfg), cursors[0]).code(), "outdated")
}
