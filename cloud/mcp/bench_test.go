//go:build unix

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
)

// benchTools is as many as the larger server has.
const benchTools = 93

var (
	benchInput  = json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"},"note":{"type":"string"}},"required":["number"],"additionalProperties":false}`)
	benchOutput = json.RawMessage(`{"type":"object","properties":{"result":{"type":"boolean"},"number":{"type":"integer"}},"required":["result"]}`)
)

type benchArguments struct {
	Number int    `json:"number"`
	Note   string `json:"note"`
}

type benchOrder struct {
	Result bool     `json:"result"`
	Number int      `json:"number"`
	Status string   `json:"status"`
	Steps  []string `json:"steps"`
}

// benchWork is what the tool does on either side.
func benchWork(raw json.RawMessage) ([]byte, error) {
	var in benchArguments
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	return json.Marshal(benchOrder{true, in.Number, "out_for_delivery", []string{"created", "picked_up", "at_hub", "out_for_delivery", in.Note}})
}

// BenchmarkCall answers a tools/call and compares its processor time with that
// of the official Go SDK's server: the same tools, the same request, the same
// work in the tool, the HTTP library left out on both sides.
func BenchmarkCall(b *testing.B) {
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + envelope + `,"name":"tool_40","arguments":{"number":1042,"note":"Ring twice, \"please\""}}}`
	for _, version := range []string{modern, newest} {
		b.Run(version, func(b *testing.B) {
			if version == newest {
				body = strings.Replace(body, envelope+",", "", 1)
			}
			base := officialCall(b, version, body)
			own := ownCall(b, version, body)
			b.ReportMetric(0, "ns/op") // wall time of both together says nothing
			b.ReportMetric(float64(own.Nanoseconds())/float64(b.N)/1e3, "us/call")
			b.ReportMetric(float64(base)/float64(own), "ratio")
		})
	}
}

// processorTime is what f costs.
func processorTime(b *testing.B, f func()) time.Duration {
	b.Helper()
	now := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := now()
	f()
	return now() - start
}

func ownCall(b *testing.B, version, body string) time.Duration {
	cfg := Config{Name: "bench", Version: "1", Key: testKey}
	for i := range benchTools {
		cfg.Tools = append(cfg.Tools, Tool{
			Name: fmt.Sprintf("tool_%d", i), Title: "Tool", Description: "Does the work.", Input: benchInput, Output: benchOutput,
			Run: func(_ context.Context, c *Call) (*Result, error) {
				out, err := benchWork(c.Arguments)
				return &Result{Structured: out}, err
			},
		})
	}
	s, err := New(cfg)
	require.NoError(b, err)
	var ctx fasthttp.RequestCtx
	once := func() {
		ctx.Response.Reset()
		s.Handle(&ctx)
	}
	ctx.Request.SetRequestURI("http://localhost/mcp")
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.Header.SetContentType("application/json")
	for k, v := range benchHeaders(version) {
		ctx.Request.Header.Set(k, v)
	}
	ctx.Request.SetBodyString(body)
	once()
	require.Contains(b, string(ctx.Response.Body()), `"structuredContent":{"result":true,"number":1042`)
	return processorTime(b, func() {
		for range b.N {
			once()
		}
	})
}

func officialCall(b *testing.B, version, body string) time.Duration {
	server := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	for i := range benchTools {
		server.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool_%d", i), Title: "Tool", Description: "Does the work.", InputSchema: benchInput, OutputSchema: benchOutput},
			func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				out, err := benchWork(r.Params.Arguments)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(out)}}, StructuredContent: json.RawMessage(out)}, err
			})
	}
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	once := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for k, v := range benchHeaders(version) {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	require.Contains(b, once().Body.String(), `"structuredContent":{"result":true,"number":1042`)
	return processorTime(b, func() {
		for range b.N {
			once()
		}
	})
}

func benchHeaders(version string) map[string]string {
	h := map[string]string{"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
	if version == modern {
		h["Mcp-Method"], h["Mcp-Name"] = "tools/call", "tool_40"
	}
	return h
}
