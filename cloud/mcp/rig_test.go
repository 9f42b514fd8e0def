package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
)

var testKey = bytes.Repeat([]byte{7}, 32)

// shop is a small catalogue: a tool that finds, one that asks, one that counts,
// and others that break.
func shop() Config {
	object := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	tools := []Tool{
		{Name: "find_order", Title: "Find", Description: "Finds <an> order & more.", Annotations: Annotations{ReadOnly: true, Idempotent: true},
			Input:  json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"additionalProperties":false}`),
			Output: json.RawMessage(`{"type":"object"}`), Run: findOrder},
		{Name: "cancel_order", Description: "Cancels.", Input: object, Run: cancelOrder},
		{Name: "count", Description: "Counts to three.", Input: object, Streams: true, Run: count},
		{Name: "region", Description: "Is mirrored.", Run: echo, Input: json.RawMessage(`{"type":"object","properties":{
			"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"},"in":{"type":"object","properties":{"b":{"type":"boolean","x-mcp-header":"B"}}}}}`)},
		{Name: "echo", Description: "Echoes.", Input: object, Run: echo},
		{Name: "panics", Description: "Panics.", Input: object, Run: func(context.Context, *Call) (*Result, error) { panic("secret of the house") }},
		{Name: "fails", Description: "Fails.", Input: object, Run: func(context.Context, *Call) (*Result, error) { return nil, errors.New("secret of the house") }},
		{Name: "refuses", Description: "Refuses.", Input: object, Streams: true, Run: func(context.Context, *Call) (*Result, error) {
			return nil, &Error{Status: 403, Code: 403, Message: "no <way>", Headers: [][2]string{{"WWW-Authenticate", "Bearer"}}}
		}},
	}
	for i := range 12 {
		tools = append(tools, Tool{Name: fmt.Sprintf("tool_%02d", i), Description: strings.Repeat("Does little. ", 20), Input: object, Run: echo})
	}
	return Config{
		Name: "shop", Title: "Shop", Version: "1.0", Instructions: "Use find_order first.", Tools: tools, Key: testKey,
		Public: []string{"https://shop.example", "http://shop.test"}, Origins: []string{"https://pages.example"},
		Admit: admit, RequestID: func(*fasthttp.RequestCtx) string { return "request-1" },
	}
}

// admit knows one token and lets everybody in who has none.
func admit(_ context.Context, r *Request) (Caller, error) {
	switch r.Authorization {
	case "":
		return Caller{}, nil
	case "Bearer panic":
		panic("secret of the house")
	case "Bearer good":
		return Caller{ID: "ann", Set: "few", Sees: func(tool string) bool { return !strings.HasPrefix(tool, "tool_") }}, nil
	}
	return Caller{}, &Error{Status: 401, Code: 401, Message: "Get a new token.", Headers: [][2]string{{"WWW-Authenticate", `Bearer error="invalid_token"`}}}
}

func findOrder(_ context.Context, c *Call) (*Result, error) {
	var in struct{ Number json.Number }
	if err := json.Unmarshal(c.Arguments, &in); err != nil || c.Repeated != "" {
		return &Result{IsError: true, Structured: json.RawMessage(`{"result":false,"code":"VALIDATION_FAILED","message":"number must be a whole number"}`)}, nil
	}
	return &Result{Structured: json.RawMessage(`{"result":true,"note":"<b>\"Ünïcode\"</b>\\ &","number":` + cmp.Or(in.Number.String(), "0") + `}`)}, nil
}

// echo tells what a tool gets to know.
func echo(_ context.Context, c *Call) (*Result, error) {
	b, err := encode(map[string]any{"request": c.Request, "arguments": c.Arguments, "repeated": c.Repeated, "modern": c.Modern, "can_ask": c.CanAsk, "id": c.Caller.ID})
	return &Result{Structured: b}, err
}

// cancelOrder asks once and then tells what was answered.
func cancelOrder(_ context.Context, c *Call) (*Result, error) {
	if c.State != nil {
		return &Result{Structured: json.RawMessage(fmt.Sprintf(`{"state":%q,"nonce":%q,"answer":%s}`, c.State, c.Nonce, cmp.Or(string(c.Answers["confirm"]), "null")))}, nil
	}
	return &Result{State: []byte("once"), Ask: map[string]Question{"confirm": {Method: "elicitation/create", Params: map[string]any{
		"mode": "form", "message": "Cancel <it>?", "requestedSchema": json.RawMessage(`{"type":"object","properties":{"confirm":{"type":"boolean"}},"required":["confirm"]}`)}}}}, nil
}

func count(_ context.Context, c *Call) (*Result, error) {
	for _, n := range []float64{1, 2, 2, 1, 3} {
		c.Progress(n, 3, fmt.Sprint("at ", n))
	}
	return &Result{Structured: json.RawMessage(`{"counted":3}`)}, nil
}

// rig is a server on a connection in memory.
type rig struct {
	t  testing.TB
	c  *fasthttp.Client
	s  *Server
	ln *fasthttputil.InmemoryListener
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	h := &fasthttp.Server{Handler: s.Handle, MaxRequestBodySize: 8 << 20, NoDefaultServerHeader: true, NoDefaultContentType: true}
	ln := fasthttputil.NewInmemoryListener()
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		_ = ln.Close()
		<-ended
	})
	return &rig{t, &fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}, s, ln}
}

type response struct {
	status  int
	headers map[string]string
	body    []byte
	json    map[string]any
}

func (r *response) code() int {
	e, _ := r.json["error"].(map[string]any)
	n, _ := e["code"].(float64)
	return int(n)
}

func (r *response) result() map[string]any {
	m, _ := r.json["result"].(map[string]any)
	return m
}

// do sends a request; headers are names and values in turn.
func (r *rig) do(method, body string, headers ...string) *response {
	r.t.Helper()
	var req fasthttp.Request
	var resp fasthttp.Response
	req.SetRequestURI("http://shop.test/mcp")
	req.Header.SetMethod(method)
	req.Header.SetContentType("application/json")
	req.SetBodyString(body)
	for i := 0; i+1 < len(headers); i += 2 {
		switch headers[i] {
		case "Content-Type":
			req.Header.SetContentType(headers[i+1])
		case "Host":
			req.UseHostHeader = true
			req.Header.SetHost(headers[i+1])
		default:
			req.Header.Add(headers[i], headers[i+1])
		}
	}
	require.NoError(r.t, r.c.Do(&req, &resp))
	out := &response{status: resp.StatusCode(), headers: map[string]string{}, body: bytes.Clone(resp.Body())}
	for k, v := range resp.Header.All() {
		out.headers[string(k)] = string(v)
	}
	if string(resp.Header.ContentEncoding()) == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(out.body))
		require.NoError(r.t, err)
		out.body, err = io.ReadAll(z)
		require.NoError(r.t, err)
	}
	if len(out.body) > 0 && out.headers["Content-Type"] == "application/json" && out.body[0] == '{' {
		require.NoError(r.t, json.Unmarshal(out.body, &out.json), "%s", out.body)
		require.Equal(r.t, "2.0", out.json["jsonrpc"])
	}
	return out
}

func (r *rig) post(body string, headers ...string) *response {
	r.t.Helper()
	return r.do("POST", body, headers...)
}

const envelope = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// now is a modern request with the right headers. params are members without
// braces; an M at the end stands for the envelope.
func (r *rig) now(method, name, params string, headers ...string) *response {
	r.t.Helper()
	h := []string{"MCP-Protocol-Version", modern, "Mcp-Method", method}
	if name != "" {
		h = append(h, "Mcp-Name", name)
	}
	if before, ok := strings.CutSuffix(params, "M"); ok {
		params = before + envelope
	}
	return r.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s}}`, method, params), append(h, headers...)...)
}

// events reads the messages of an event stream.
func events(t testing.TB, body []byte) (list []string) {
	t.Helper()
	in := bufio.NewScanner(bytes.NewReader(body))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			list = append(list, data)
			continue
		}
		require.Contains(t, []string{"", ":", "event: message"}, line)
	}
	return list
}

// TestMain serves one request so that the HTTP library's clock starts outside
// any bubble of time.
func TestMain(m *testing.M) {
	ln := fasthttputil.NewInmemoryListener()
	go func() { _ = fasthttp.Serve(ln, func(*fasthttp.RequestCtx) {}) }()
	c := fasthttp.Client{Dial: func(string) (net.Conn, error) { return ln.Dial() }}
	_, _, _ = c.GetTimeout(nil, "http://x", time.Second)
	m.Run()
}
