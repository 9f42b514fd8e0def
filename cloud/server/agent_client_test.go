package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/mcp/mcptest"
	"github.com/postern-io/postern/internal/ring"
	"github.com/postern-io/postern/internal/verdict"
)

// Official clients of both generations list and call the real tools: every
// public one without a token (vector 50), and with one a read and a write.
func TestOfficialClientsOfTheRealServers(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	id := w.order("X-1")
	number := w.good("get_order_detail", fmt.Sprintf(`{"order_id":%d}`, id), "Authorization", w.box.Admin.Token)["order"].(map[string]any)["tracking_number"]
	arguments := map[string]map[string]any{
		"track_package": {"tracking_number": number}, "otep_tracking": {"tracking_number": number}, "get_otep_tracking": {"tracking_number": number},
		"validate_otep_payload": {"payload": map[string]any{"otep_version": "1.0"}},
		"get_api_endpoints":     {"tag": "Tracking", "include_schemas": true}, "get_graphql_operations": {"kind": "query", "include_sdl": true}, "check_skill_update": {"current_hash": "00000000000000000000000000000000"},
		"get_integration_guide": {"topic": "auth", "language": "go"}, "get_otep_guide": {"section": "examples"}, "get_webhook_guide": {"event": "order.created", "lang": "fr"},
		"verify_webhook_signature": {"scheme": "signature", "raw_body": "{}", "secret": "0123456789abcdef", "signature": "00"},
	}
	for _, client := range mcptest.Clients {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			if client != "sdk2" {
				ring.SkipUnlessFull(t, "cloud/mcp calls by every client, and this test by sdk2")
			}
			verdict.RecordTest(t, mcptest.Packages[client], "client of the tool servers of a node: "+client)
			do := func(c mcptest.Call) mcptest.Called {
				t.Helper()
				c.Client = client
				got := mcptest.Do(t, c)
				require.Empty(t, got.Error)
				return got
			}
			for server, path := range servers {
				for _, x := range w.s.Catalog.Tools(server) {
					if !x.Public() {
						continue
					}
					got := do(mcptest.Call{URL: w.base + path, Tool: x.Name, Arguments: arguments[x.Name]})
					require.Len(t, got.Tools, len(w.s.Catalog.Tools(server)))
					if len(arguments[x.Name]) > 0 || len(x.Arguments) == 0 {
						require.False(t, got.Result.IsError, "%s: %v", x.Name, got.Result.Content)
					}
				}
			}
			token := w.box.Admin.Token
			got := do(mcptest.Call{URL: w.base + "/mcp", Token: token, Tool: "get_order_detail", Arguments: map[string]any{"order_id": id}})
			require.Contains(t, string(got.Result.Structured), fmt.Sprintf("%q", number))
			got = do(mcptest.Call{URL: w.base + "/mcp", Token: token, Tool: "cancel_order", Arguments: map[string]any{"order_id": id, "confirm": true}, Headers: map[string]string{"X-MCP-Dry-Run": "1"}})
			require.Contains(t, string(got.Result.Structured), `"outcome":"preview"`)
			got = do(mcptest.Call{URL: w.base + "/mcp", Token: token, Tool: "create_order", Arguments: decoded(t, fmt.Sprintf(anOrder, "X-"+client))})
			require.Contains(t, string(got.Result.Structured), `"outcome":"executed"`)
			got = mcptest.Do(t, mcptest.Call{Client: client, URL: w.base + "/mcp", Token: token, Tool: "cancel_order", Arguments: map[string]any{"order_id": id, "reason": 5}})
			if got.Error != "" { // the Inspector takes it for a failure of its own
				require.Contains(t, got.Error, "isError:true")
			} else {
				require.True(t, got.Result.IsError)
				require.Contains(t, got.Result.Content[0].Text, "VALIDATION_FAILED", "the message is what the model reads")
			}

			got = mcptest.Do(t, mcptest.Call{Client: client, URL: w.base + "/mcp", Tool: "get_orders"})
			require.NotEmpty(t, got.Error, "a token is needed")
		})
	}
	t.Run("asked", func(t *testing.T) {
		id := w.order("X-2")
		got := mcptest.Do(t, mcptest.Call{Client: "sdk2", URL: w.base + "/mcp", Token: w.box.Admin.Token, Tool: "cancel_order", Arguments: map[string]any{"order_id": id}, Confirm: json.RawMessage("true")})
		require.Empty(t, got.Error)
		require.Len(t, got.Asked, 1)
		require.Contains(t, string(got.Result.Structured), `"outcome":"executed"`)
		require.Equal(t, 50, w.status(id))
	})
}

func decoded(t *testing.T, text string) (out map[string]any) {
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out
}
