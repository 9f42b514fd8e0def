package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/protocol/wire"
)

// target is a running cloud. Its tokens are those of a sandbox: an
// administrator, an employee with every scope, and others.
type target struct {
	t      *testing.T
	server *server.Server
	box    server.Sandbox
	base   string
}

// start starts a cloud that limits no calls; startWithPasswords one whose people
// can log in.
func start(t *testing.T, change ...func(*server.Config)) *target {
	t.Helper()
	return startOf(t, false, change)
}

func startWithPasswords(t *testing.T, change ...func(*server.Config)) *target {
	t.Helper()
	return startOf(t, true, change)
}

// Codes and passwords that cost next to nothing to check: no attack here is on a
// stolen list.
var (
	cheapCodes     = wire.CodeParams{MemoryKiB: 8, Passes: 1}
	cheapPasswords = auth.Cost{MemoryKiB: 8, Passes: 1}
)

func startOf(t *testing.T, passwords bool, change []func(*server.Config)) *target {
	ring.SkipUnlessCheck(t, "each rule of these attacks has tests beside its code")
	t.Helper()
	cfg := server.Config{Dir: t.TempDir(), ToolsPerMinute: -1, Limits: catalog.Limits{Authenticated: -1, Anonymous: -1, Replay: -1, Batch: -1, Quotes: -1, Doors: -1}}
	for _, f := range change {
		f(&cfg)
	}
	s, err := server.New(t.Context(), cfg)
	require.NoError(t, err)
	box, err := s.Sandbox(t.Context(), server.SandboxConfig{Passwords: passwords, HashCost: cheapPasswords, Codes: cheapCodes})
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, server.Listeners{HTTP: ln}) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return &target{t, s, box, "http://" + ln.Addr().String()}
}

// in is the same cloud for a part of a test.
func (c *target) in(t *testing.T) *target { return &target{t, c.server, c.box, c.base} }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	raw    []byte
	json   map[string]any
}

// at is a member of the answer by its path: error.data.code. nil: there is none.
func (a answer) at(path string) any {
	var v any = a.json
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// send sends a request with a JSON body. Headers are pairs.
func (c *target) send(method, path, token, body string, headers ...string) answer {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	out := answer{status: resp.StatusCode, header: resp.Header}
	out.raw, err = io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	_ = json.Unmarshal(out.raw, &out.json) // of a page there is none
	return out
}

// ok sends a request that must succeed.
func (c *target) ok(method, path, token, body string, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, token, body, headers...)
	require.Less(c.t, a.status, 300, "%s %s: %s", method, path, a.raw)
	return a
}

// tool calls a tool of the server at path and gives its text block, or the whole
// answer where there is none. failed is its isError.
func (c *target) toolAt(path, name, arguments, token string, headers ...string) (a answer, failed bool) {
	c.t.Helper()
	a = c.send("POST", path, token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments), headers...)
	failed, _ = a.at("result.isError").(bool)
	if content, _ := a.at("result.content").([]any); len(content) == 1 {
		text, _ := content[0].(map[string]any)["text"].(string)
		a.raw, a.json = []byte(text), nil
		require.NoError(c.t, json.Unmarshal(a.raw, &a.json))
	}
	return a, failed
}

func (c *target) tool(name, arguments, token string, headers ...string) (answer, bool) {
	c.t.Helper()
	return c.toolAt("/mcp", name, arguments, token, headers...)
}

// did calls a tool that must do what it is asked for.
func (c *target) did(name, arguments, token string, headers ...string) answer {
	c.t.Helper()
	a, failed := c.tool(name, arguments, token, headers...)
	require.False(c.t, failed || a.at("result") != true, "%s: %s", name, a.raw)
	return a
}

const recipient = `{"name":"Ann Lee","phone":"+14165550123","address_line1":%q,"city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}`

// order makes an order of the business's own and gives its id.
func (c *target) order(ref string) int {
	c.t.Helper()
	a := c.ok("POST", "/api/v1/client/orderCreate", c.box.Admin.Token, fmt.Sprintf(`{"type":"D","order_ref":%q,"recipient":%s,"packages":[{"weight":2.5}]}`, ref, fmt.Sprintf(recipient, "100 Queen St W")))
	id, ok := a.at("order_id").(float64)
	if !ok {
		id, ok = a.at("order.order_id").(float64)
	}
	require.True(c.t, ok, "%s", a.raw)
	return int(id)
}

// status is an order's.
func (c *target) status(id int) int {
	c.t.Helper()
	n, ok := c.ok("GET", fmt.Sprintf("/api/v1/orders/%d", id), c.box.Admin.Token, "").at("order.order_status_id").(float64)
	require.True(c.t, ok)
	return int(n)
}

// moveReference lets the reference of an order go to a new order: the way of
// reroute_to_address. It gives the new order's id.
func (c *target) moveReference(id int) int {
	c.t.Helper()
	a := c.ok("POST", fmt.Sprintf("/api/v1/orders/%d/reroute", id), c.box.Admin.Token, fmt.Sprintf(`{"new_address":%s}`, fmt.Sprintf(recipient, "1 Main St")))
	next, ok := a.at("new_order.order_id").(float64)
	require.True(c.t, ok, "%s", a.raw)
	require.NotEqual(c.t, id, int(next))
	return int(next)
}

// key makes a key in the settings of the token's owner, as a person does.
func (c *target) key(of, body string) string {
	c.t.Helper()
	token, ok := c.ok("POST", "/api/v1/user/api-keys", of, body).at("token").(string)
	require.True(c.t, ok)
	return token
}
