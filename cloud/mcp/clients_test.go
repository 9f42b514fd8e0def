package mcp

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/mcp/mcptest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// Listen serves an engine on the loopback and gives its address.
func Listen(t testing.TB, cfg Config) string {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := &fasthttp.Server{Handler: s.Handle, NoDefaultServerHeader: true, NoDefaultContentType: true, CloseOnShutdown: true, MaxRequestBodySize: maxBody}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		c, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.ShutdownWithContext(c)
		_ = ln.Close() // where Serve has not begun, the end of the server is not the listener's
		<-ended
	})
	return "http://" + ln.Addr().String() + "/mcp"
}

// Official clients of both generations list all tools and call one, with and
// without a token.
func TestOfficialClients(t *testing.T) {
	t.Parallel()
	cfg := shop()
	cfg.PageSize = 6
	url := Listen(t, cfg)
	versions := map[string]string{"go": modern, "sdk2": modern, "go-old": newest, "sdk1": newest, "sdk2-old": newest}
	for _, client := range mcptest.Clients {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(client, "inspector") {
				ring.SkipUnlessFull(t, "other clients of both generations list and call")
			}
			verdict.RecordTest(t, mcptest.Packages[client], "client of the tool engine: "+client)
			got := mcptest.Do(t, mcptest.Call{Client: client, URL: url, Tool: "find_order", Arguments: map[string]any{"number": 7}})
			require.Empty(t, got.Error)
			require.Len(t, got.Tools, 20)
			require.Equal(t, versions[client], got.Protocol)
			require.JSONEq(t, `{"result":true,"note":"<b>\"Ünïcode\"</b>\\ &","number":7}`, string(got.Result.Structured))
			require.JSONEq(t, string(got.Result.Structured), got.Result.Content[0].Text)

			got = mcptest.Do(t, mcptest.Call{Client: client, URL: url, Tool: "echo", Token: "good"})
			require.Empty(t, got.Error)
			require.Len(t, got.Tools, 8)
			require.Contains(t, string(got.Result.Structured), `"id":"ann"`)

			got = mcptest.Do(t, mcptest.Call{Client: client, URL: url, Tool: "echo", Token: "bad"})
			require.NotEmpty(t, got.Error, "a bad token")
		})
	}
	t.Run("confirm", func(t *testing.T) {
		t.Parallel()
		for confirm, want := range map[string]string{"true": `{"action":"accept","content":{"confirm":true}}`, "null": `{"action":"decline"}`} {
			got := mcptest.Do(t, mcptest.Call{Client: "sdk2", URL: url, Tool: "cancel_order", Confirm: json.RawMessage(confirm)})
			require.Empty(t, got.Error)
			require.Equal(t, []string{"Cancel <it>?"}, got.Asked)
			var result struct {
				State  string
				Answer json.RawMessage
			}
			require.NoError(t, json.Unmarshal(got.Result.Structured, &result))
			require.Equal(t, "once", result.State)
			require.JSONEq(t, want, string(result.Answer))
		}
	})
}
