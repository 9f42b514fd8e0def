package mcp

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func TestBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	all := func(body string, headers ...string) (list []response) {
		t.Helper()
		res := r.post(body, headers...)
		require.Equal(t, 200, res.status, "%s", res.body)
		var raw []map[string]any
		require.NoError(t, json.Unmarshal(res.body, &raw), "%s", res.body)
		for _, m := range raw {
			list = append(list, response{json: m})
		}
		return list
	}
	for _, v := range []string{assumed, "2024-11-05"} {
		require.Len(t, all("["+ping+"]", "MCP-Protocol-Version", v), 1)
	}
	require.Len(t, all("["+strings.TrimSuffix(strings.Repeat(ping+",", 20), ",")+"]"), 20)
	list := all(`[{"jsonrpc":"2.0","id":1,"method":"initialize"},{"jsonrpc":"2.0","id":2},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"refuses"}},
		{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"count","_meta":{"progressToken":1}}},{"jsonrpc":"2.0","id":5,"result":{}}]`, "Accept", "application/json, text/event-stream")
	require.Len(t, list, 4)
	require.Equal(t, CodeInvalidRequest, list[0].code(), "no handshake in a batch")
	require.EqualValues(t, 1, list[0].json["id"])
	require.Equal(t, CodeInvalidRequest, list[1].code())
	require.NotContains(t, list[1].json, "id")
	require.Equal(t, 403, list[2].code(), "a tool's own refusal stays in the batch")
	require.NotNil(t, list[3].result(), "no stream")

	for _, body := range []string{
		"[" + strings.TrimSuffix(strings.Repeat(ping+",", 21), ",") + "]", "[[" + ping + "]]", "[" + ping + ",7]", "[{}, null]",
		`[{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + envelope + `}}]`,
	} {
		res := r.post(body)
		require.Equal(t, 400, res.status, body)
		require.Equal(t, CodeInvalidRequest, res.code(), body)
	}
	for _, v := range []string{modern, newest, "2025-06-18", "v999"} {
		require.Equal(t, CodeInvalidRequest, r.post("["+ping+"]", "MCP-Protocol-Version", v).code(), v)
	}
	res := r.post(`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`)
	require.Equal(t, 202, res.status)
	require.Empty(t, res.body)
	res = r.post("["+ping+"]", "Authorization", "Bearer bad")
	require.Equal(t, 401, res.status)
	require.Equal(t, CodeInvalidRequest, r.post(`[{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}]`).code())
}

func TestWhatIsTakenAndGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON ;x=y"} {
		require.Equal(t, 200, r.post(ping, "Content-Type", kind).status, kind)
	}
	for _, kind := range []string{"text/plain", "application/jsonp", "multipart/form-data"} {
		res := r.post(ping, "Content-Type", kind)
		require.Equal(t, 415, res.status, kind)
		require.Equal(t, 415, res.code())
	}
	require.Equal(t, 415, r.post(ping, "Content-Encoding", "gzip").status)
	res := r.post(`"` + strings.Repeat("x", maxBody) + `"`)
	require.Equal(t, 413, res.status)
	require.Equal(t, 413, res.code())
	var tooLarge fasthttp.RequestCtx
	tooLarge.Request.Header.SetMethod("POST")
	r.s.TooLarge(&tooLarge)
	require.Equal(t, 413, tooLarge.Response.StatusCode())
	require.Equal(t, string(res.body), string(tooLarge.Response.Body()), "also when nobody read it")
	for accept, status := range map[string]int{
		"*/*": 200, "application/*": 200, "application/json;q=0.1": 200, "text/html, application/json": 200,
		"text/html": 406, "application/json;q=0": 406, "application/json; q=0.000, text/html": 406,
	} {
		res := r.post(ping, "Accept", accept)
		require.Equal(t, status, res.status, accept)
		require.Equal(t, "application/json", res.headers["Content-Type"])
	}
	res = r.post(ping, "Accept", "text/event-stream")
	require.Equal(t, "text/event-stream", res.headers["Content-Type"])
	require.Equal(t, []string{`{"jsonrpc":"2.0","id":1,"result":{}}`}, events(t, res.body))
	res = r.post(`{"jsonrpc":"2.0","id":1,"method":"nope","params":{`+envelope+`}}`, "Accept", "text/event-stream", "MCP-Protocol-Version", modern, "Mcp-Method", "nope")
	require.Equal(t, 404, res.status)
	require.Equal(t, "application/json", res.headers["Content-Type"], "an error keeps its status")
	res = r.do("HEAD", "")
	require.Equal(t, 405, res.status)
	for _, id := range []string{`"a\u00e9\/"`, `-0`, `12345678901234567890123`, `""`} {
		require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, string(r.post(`{"jsonrpc":"2.0","id": `+id+` ,"method":"ping"}`).body), "byte for byte")
	}
	require.NotContains(t, r.post(ping, "Mcp-Session-Id", "x", "Last-Event-ID", "y").headers, "Mcp-Session-Id")
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	for _, origin := range []string{"https://shop.example", "HTTPS://Shop.Example:443", "http://shop.test", "https://pages.example"} {
		res := r.post(ping, "Origin", origin)
		require.Equal(t, 200, res.status, origin)
		require.Equal(t, origin, res.headers["Access-Control-Allow-Origin"])
		require.Equal(t, "Origin", res.headers["Vary"])
		require.Equal(t, "WWW-Authenticate, Retry-After", res.headers["Access-Control-Expose-Headers"])
		res = r.do("OPTIONS", "", "Origin", origin, "Access-Control-Request-Method", "POST")
		require.Equal(t, 204, res.status)
		require.Equal(t, "POST", res.headers["Access-Control-Allow-Methods"])
		require.Contains(t, res.headers["Access-Control-Allow-Headers"], "Mcp-Name, ")
		require.Equal(t, "600", res.headers["Access-Control-Max-Age"])
		require.Equal(t, origin, res.headers["Access-Control-Allow-Origin"])
		require.NotContains(t, res.headers, "Access-Control-Allow-Credentials")
		require.Equal(t, origin, r.post("{", "Origin", origin).headers["Access-Control-Allow-Origin"], "pages may read refusals")
	}
	for _, origin := range []string{"null", "http://shop.example", "https://shop.example:8443", "https://shop.example.evil.example", "https://shop.example/", "https://x@shop.example", "file://", "http://localhost", "http://127.0.0.1:9", ""} {
		for _, method := range []string{"POST", "OPTIONS"} {
			res := r.do(method, ping, "Origin", origin)
			require.Equal(t, 403, res.status, origin)
			require.Equal(t, 403, res.code())
			require.NotContains(t, res.headers, "Access-Control-Allow-Origin")
		}
	}
	require.Equal(t, 403, r.post(ping, "Origin", "http://evil.example", "Origin", "https://shop.example").status, "two origins")
	require.Equal(t, 204, r.do("OPTIONS", "").status)
	require.NotContains(t, r.post(ping).headers, "Vary")
}

// On a loopback listener a page that resolves its own name to this machine is
// kept out, and local pages are let in.
func TestLoopback(t *testing.T) {
	t.Parallel()
	for name, public := range map[string][]string{"configured": {"https://shop.example"}, "not configured": nil} {
		cfg := shop()
		cfg.Public = public
		url := Listen(t, cfg)
		address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
		r := &rig{t: t, c: &fasthttp.Client{Dial: func(string) (net.Conn, error) { return net.Dial("tcp", address) }}}
		for _, host := range []string{"localhost", "localhost:80", "127.0.0.1", "127.9.9.9:1", "[::1]:8080", "LOCALHOST"} {
			require.Equal(t, 200, r.post(ping, "Host", host).status, host)
		}
		for _, host := range []string{"evil.example", "localhost.evil.example", "10.0.0.1", "shop.example.evil.example"} {
			res := r.post(ping, "Host", host)
			require.Equal(t, 403, res.status, host)
			require.Equal(t, 403, res.code())
		}
		want := 403
		if public != nil {
			want = 200
		}
		require.Equal(t, want, r.post(ping, "Host", "shop.example").status, name)
		for _, origin := range []string{"http://localhost:5173", "http://127.0.0.1", "http://[::1]:3000"} {
			require.Equal(t, 200, r.post(ping, "Host", address, "Origin", origin).status, origin)
		}
		require.Equal(t, 403, r.post(ping, "Host", address, "Origin", "http://evil.example").status)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	at := func(host string, public ...string) string {
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, nil, nil)
		ctx.Request.Header.SetHost(host)
		return BaseURL(&ctx, public)
	}
	two := []string{"https://shop.example/", "http://shop.test:8080/base"}
	require.Equal(t, "https://shop.example", at("shop.example", two...))
	require.Equal(t, "http://shop.test:8080/base", at("SHOP.test:8080", two...))
	require.Equal(t, "https://shop.example", at("evil.example", two...))
	require.Equal(t, "https://shop.example", at("localhost", two...))
	require.Equal(t, "http://localhost:8080", at("Localhost:8080"))
	require.Equal(t, "http://[::1]:8080", at("[::1]:8080"))
	require.Equal(t, "http://0.0.0.0:0", at("evil.example"), "the address of the connection")
}

func TestWhatAdmitGetsToKnow(t *testing.T) {
	t.Parallel()
	cfg := shop()
	var last Request
	cfg.Admit = func(_ context.Context, r *Request) (Caller, error) {
		last = *r
		return Caller{}, nil
	}
	r := newRig(t, cfg)
	r.now("tools/call", "echo", `"name":"echo","arguments":{"a":1},`+strings.Replace(envelope, `{"`, `{"io.modelcontextprotocol/clientInfo":{"name":"Cl\u0007ient","version":"2"},"`, 1),
		"Authorization", "Bearer x", "X-MCP-Profile", " support ", "X-MCP-Dry-Run", "yes", "X-MCP-Require-Approval", "off", "Accept-Language", "de-CH")
	require.NotNil(t, last.Profile)
	require.Equal(t, "support", *last.Profile)
	last.Profile = nil
	require.Equal(t, Request{
		Authorization: "Bearer x", DryRun: true, Method: "tools/call", Tool: "echo", Arguments: json.RawMessage(`{"a":1}`), Path: "/mcp", BaseURL: "http://shop.test",
		IP: last.IP, Language: "de", RequestID: "request-1", Client: "Client 2",
	}, last)
	r.post(ping, "X-MCP-Scopes", "")
	require.NotNil(t, last.Scopes, "empty is not missing")
	require.Nil(t, last.Profile)
	for value, want := range map[string]bool{"1": true, "TRUE": true, "on": true, "maybe": true, "0": false, "False": false, "no": false, "": false, " off ": false} {
		r.post(ping, "X-MCP-Require-Approval", value)
		require.Equal(t, want, last.Approval, value)
	}
	r.post(ping, "X-MCP-Dry-Run", "0", "X-MCP-Dry-Run", "1")
	require.True(t, last.DryRun, "one yes is enough")
	r.post(ping, "Authorization", "Bearer a", "Authorization", "Bearer b")
	require.NotContains(t, []string{"Bearer a", "Bearer b"}, last.Authorization, "which one would it be?")
	r.post(strings.Replace(handshake, "%q", `"2024-11-05"`, 1))
	require.Equal(t, "t 1", last.Client)
}

func TestMessagesAreInTheCallersLanguage(t *testing.T) {
	t.Parallel()
	r := newRig(t, shop())
	seen := map[string]bool{}
	for _, lang := range []string{"en", "de", "fr", "es", "zh-CN", "zh-TW"} {
		res := r.post(`{"jsonrpc":"2.0","id":1,"method":"nope"}`, "Accept-Language", lang)
		message := res.json["error"].(map[string]any)["message"].(string)
		require.Contains(t, message, "nope")
		require.False(t, seen[message])
		seen[message] = true
	}
}
