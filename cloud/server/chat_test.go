package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/internal/ring"
)

// written keeps what is logged. Safe for concurrent use.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// rest is a call of a REST address.
func (w *agentWorld) rest(method, path, token, body string) reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	out := reply{status: resp.StatusCode, header: resp.Header}
	out.raw, err = io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(out.raw, &out.json), "%s", out.raw)
	return out
}

// A running node lets the recipient of an order chat by the token of the tracking
// answer, which is nowhere in its log.
func TestARecipientChats(t *testing.T) {
	t.Parallel()
	var log written
	w := newAgentWorld(t, Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	admin := w.box.Admin.Token
	order := w.order("CHAT-1")
	number := w.rest("GET", fmt.Sprintf("/api/v1/orders/%d", order), admin, "").json["order"].(map[string]any)["tracking_number"].(string)
	invited := func() (string, bool) {
		chat := w.rest("GET", "/api/v1/tracking/"+number, admin, "").json["chat"].(map[string]any)
		token, _ := chat["token"].(string)
		return token, chat["enabled"].(bool)
	}
	_, ok := invited()
	require.False(t, ok, "recipients are let in by a setting")
	require.Equal(t, 200, w.rest("PUT", "/api/v1/order-chat/settings", admin, `{"allow_recipient":true}`).status)
	var token string
	ring.Await(t, func() bool { token, ok = invited(); return ok })
	path := fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", order)
	sent := w.rest("POST", path, token, `{"client_message_id":"1","text":"Hello"}`)
	require.Equal(t, 201, sent.status, "%s", sent.raw)
	list := w.rest("GET", path, admin, "").json["messages"].([]any)
	require.Len(t, list, 1)
	require.Equal(t, "recipient", list[0].(map[string]any)["sender"].(map[string]any)["type"])
	require.Equal(t, 401, w.rest("GET", fmt.Sprintf("/api/v1/orders/%d", order), token, "").status)
	require.Equal(t, 401, w.rest("GET", path, token[:len(token)-2], "").status)
	require.Equal(t, 401, w.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", token).status)
	require.NotContains(t, log.text(), token[:20])

	// What an agent tries first is not sent.
	before := len(list)
	tried := w.on("/mcp/developer", "run_graphql_query", fmt.Sprintf(`{"query":"mutation { orderChatSend(input: {order_id: %d, text: \"tried\"}) { text } }","allow_mutation":true}`, order),
		"Authorization", admin, "X-MCP-Dry-Run", "1")
	require.Contains(t, string(tried.raw), "chat_message")
	require.Len(t, w.rest("GET", path, admin, "").json["messages"], before)
}

// A deployment without the family invites no participant.
func TestADeploymentWithoutChat(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{Unavailable: []string{"order_chat"}})
	order := w.order("CHAT-1")
	var number string
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(1)
		if err != nil {
			return nil, err
		}
		o, err := v.Order(b.ID, cloud.OrderID(order))
		number, b.Settings.Chat.Recipient = o.Number, true
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
	require.Equal(t, map[string]any{"enabled": false, "token": nil, "order_id": nil}, w.rest("GET", "/api/v1/tracking/"+number, "", "").json["chat"])
	r := w.rest("GET", fmt.Sprintf("/api/v1/order-chat/orders/%d/messages", order), w.box.Admin.Token, "")
	require.Equal(t, 409, r.status)
	require.Equal(t, false, r.json["feature_enabled"])
}
