package mcptest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// Clients are the names of Call.Client.
var Clients = []string{"go", "go-old", "sdk1", "sdk2", "sdk2-old", "inspector", "inspector-old"}

// Packages are the packages of the Clients.
var Packages = map[string]string{
	"go": goPackage, "go-old": goPackage, "sdk1": "@modelcontextprotocol/sdk", "sdk2": "@modelcontextprotocol/client", "sdk2-old": "@modelcontextprotocol/client",
	"inspector": "@modelcontextprotocol/inspector", "inspector-old": "@modelcontextprotocol/inspector",
}

const goPackage = "github.com/modelcontextprotocol/go-sdk"

// Call is what a client does: it lists all tools and calls one. Clients named
// -old shake hands, as those of 2025-11-25 and before do.
type Call struct {
	Client    string            `json:"client"` // one of Clients
	URL       string            `json:"url"`
	Tool      string            `json:"tool"`
	Arguments map[string]any    `json:"arguments"` // nil: {}
	Token     string            `json:"token,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// Confirm is what forms are answered with, by sdk2 only: true or false, or
	// a JSON null to decline. Without it the client offers no forms.
	Confirm json.RawMessage `json:"confirm,omitempty"`
}

// Called is what became of it.
type Called struct {
	Protocol string `json:"protocol"` // version, "" when the client does not tell
	Tools    []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Result struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	} `json:"result"`
	Asked  []string `json:"asked"` // messages of forms
	Error  string   `json:"error"` // what the client says of a refusal
	Status any      `json:"status"`
}

// Do runs a client. A refusal is in Called.Error.
func Do(t *testing.T, c Call) (out Called) {
	t.Helper()
	if c.Arguments == nil {
		c.Arguments = map[string]any{}
	}
	switch c.Client {
	case "go":
		return goClient(t, c, "")
	case "go-old":
		return goClient(t, c, "2025-11-25")
	}
	dir, program := Node(t)
	arg, err := json.Marshal(c)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "call.mjs", string(arg))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // the Inspector keeps files there
	b, err := cmd.Output()
	require.NoError(t, err, "%s", b)
	require.NoError(t, json.Unmarshal(b, &out), "%s", b)
	return out
}

// headers adds a call's headers to every request.
type headers struct{ c Call }

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if h.c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+h.c.Token)
	}
	for k, v := range h.c.Headers {
		r.Header.Set(k, v)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// goClient is the official Go SDK's.
func goClient(t *testing.T, c Call, version string) (out Called) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "postern-checks", Version: "1.0.0"}, nil)
	var o *mcp.ClientSessionOptions
	if version != "" {
		o = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: c.URL, HTTPClient: &http.Client{Transport: headers{c}}, DisableStandaloneSSE: true}, o)
	if err != nil {
		return Called{Error: err.Error()}
	}
	defer func() { _ = s.Close() }()
	out.Protocol = s.InitializeResult().ProtocolVersion
	for tool, err := range s.Tools(ctx, nil) {
		if err != nil {
			return Called{Error: err.Error()}
		}
		out.Tools = append(out.Tools, struct {
			Name string `json:"name"`
		}{tool.Name})
	}
	res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool, Arguments: c.Arguments})
	if err != nil {
		return Called{Error: err.Error()}
	}
	b, err := json.Marshal(res)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &out.Result))
	return out
}
