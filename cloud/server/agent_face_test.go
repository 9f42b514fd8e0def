package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/store/storetest"
)

// A token that a person granted an agent is refused, in the transport's own way,
// when it lacks a right: the client can then ask for more (vector 36). It is
// good at the address that it was granted for, and nowhere else.
func TestGrantedTokensLackingARightAreChallenged(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	session, err := w.s.findToken(t.Context(), auth.Hash(w.box.Admin.Token))
	require.NoError(t, err)
	token := auth.NewToken()
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		id, err := v.NewID(cloud.OAuthGrantIDs)
		now := time.Now().UTC()
		g := cloud.OAuthGrant{ID: cloud.OAuthGrantID(id), AccountID: session.Account.ID, ClientID: "c", Scopes: []string{"orders:read"}, Audience: w.base + "/mcp", CreatedAt: now, ExpiresAt: now.Add(time.Hour), Code: cloud.OAuthCode{ExpiresAt: now.Add(time.Minute), UsedAt: now}}
		return &cloud.Changes{OAuthChanges: cloud.OAuthChanges{OAuthGrants: []cloud.OAuthGrant{g}},
			AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(token), AccountID: session.Account.ID, Name: "Desk", CreatedAt: now, ExpiresAt: now.Add(time.Hour),
				Grant: g.ID, Kind: cloud.AccessToken, Audience: g.Audience, Scopes: g.Scopes}}}}, err
	}))
	id := w.order("G-1")
	r := w.call("cancel_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), "Authorization", token)
	require.Equal(t, 403, r.status)
	require.Equal(t, fmt.Sprintf(`Bearer error="insufficient_scope", resource_metadata="%s/.well-known/oauth-protected-resource/mcp", scope="orders:write"`, w.base), r.header.Get("WWW-Authenticate"))
	require.Equal(t, 403.0, errorOf(r.reply)["code"])
	require.Equal(t, 1, w.status(id))
	require.False(t, w.call("get_orders", `{}`, "Authorization", token).failed)
	narrow := w.call("get_orders", `{}`, "Authorization", token, "X-MCP-Profile", "datasets-readonly")
	require.Equal(t, []any{200, "SCOPE_REQUIRED"}, []any{narrow.status, narrow.body["code"]}, "what the connection's own header leaves out is no matter of the token")
	require.Equal(t, 200, w.post("/api/mcp", list, "Authorization", token).status)
	require.Equal(t, 401, w.post("/mcp/developer", list, "Authorization", token).status)
}

// Whatever face is asked, the answer is the same.
func TestTheFacesAgree(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	token := w.box.Admin.Token
	id := w.order("A-1")
	w.order("A-2")
	w.good("hold_order", fmt.Sprintf(`{"order_id":%d,"confirm":true}`, id), "Authorization", token)
	number := w.good("get_order_detail", fmt.Sprintf(`{"order_id":%d}`, id), "Authorization", token)["order"].(map[string]any)["tracking_number"].(string)
	w.good("hold_order", `{"order_ref":"A-2"}`, "Authorization", token, "X-MCP-Require-Approval", "1")
	path := func(format string, a ...any) string { return fmt.Sprintf(format, a...) }
	// How each tool that is one operation is asked, and the same by REST.
	same := map[string]struct {
		arguments string
		method    string
		path      string
		body      string
	}{
		"track_package":             {path(`{"tracking_number":%q}`, number), "GET", "/api/v1/tracking/" + number, ""},
		"otep_tracking":             {path(`{"tracking_number":%q,"format":"epcis"}`, number), "GET", "/api/v1/otep/trackings/" + number + "?format=epcis", ""},
		"get_otep_tracking":         {path(`{"tracking_number":%q,"events_only":true}`, number), "GET", "/api/v1/otep/trackings/" + number + "/events", ""},
		"get_orders":                {`{"status_ids":[3],"sort":"-id"}`, "GET", "/api/v1/orders?status_ids=3&sort=-id&per_page=20", ""},
		"get_order_detail":          {path(`{"order_id":%d,"include":["tracking","operation_events"]}`, id), "GET", path("/api/v1/orders/%d?include=tracking,operation_events", id), ""},
		"find_order":                {`{"query":"ann lee","fields":["recipient_name"]}`, "GET", "/api/v1/orders/search?query=ann%20lee&fields=recipient_name", ""},
		"get_operation_events":      {`{"order_ref":"A-1"}`, "POST", "/api/v1/tracking/operationevents", `{"order_ref":"A-1","per_page":20}`},
		"list_exceptions":           {`{"types":["on_hold"]}`, "GET", "/api/v1/orders/exceptions?types=on_hold&per_page=20", ""},
		"get_routes":                {`{}`, "GET", "/api/v1/routes?per_page=20", ""},
		"get_drivers":               {`{"status":"active","keyword":"DRIVER"}`, "GET", "/api/v1/drivers?status=active&keyword=driver&per_page=20", ""},
		"list_pending_approvals":    {`{}`, "GET", "/api/v1/mcp/approvals?per_page=20", ""},
		"get_webhook_settings":      {`{}`, "GET", "/api/v1/webhook-settings", ""},
		"get_webhook_delivery_logs": {`{}`, "GET", "/api/v1/webhook-delivery-logs?per_page=20", ""},
		"validate_otep_payload":     {`{"payload":{"otep_version":"1.0"}}`, "POST", "/api/v1/otep/validate", `{"otep_version":"1.0"}`},
		"get_driver_routes_today":   {`{"driver_id":4,"date":"2026-12-01"}`, "GET", "/api/v1/drivers/4/routes?date=2026-12-01", ""},
		"otep_client_tracking":      {`{"order_ref":"A-1"}`, "GET", "/api/v1/otep/trackings/" + number, ""},
	}
	// Those that are more than one operation, or whose answers are new each time.
	others := []string{"get_capabilities", "order_snapshot", "otep_client_locker_storage", "quote_delivery", "get_async_batch_result", "get_route_detail", "get_order_audit_timeline",
		"get_api_endpoints", "get_graphql_operations", "check_skill_update", "get_integration_guide", "get_otep_guide", "get_webhook_guide", "verify_webhook_signature"}
	for server, address := range servers {
		for _, x := range w.s.Catalog.Tools(server) {
			if server == catalog.LockersServer { // whose tools are their operations by rule
				continue
			}
			if x.Writes() || x.Effect != catalog.Usual || slices.Contains(others, x.Name) {
				continue
			}
			ask, ok := same[x.Name]
			require.True(t, ok, "how is %s asked by REST?", x.Name)
			got := w.on(address, x.Name, ask.arguments, "Authorization", token)
			require.False(t, got.failed || got.body == nil, "%s", got.raw)
			req, err := http.NewRequestWithContext(t.Context(), ask.method, w.base+ask.path, strings.NewReader(ask.body))
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			raw, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode, "%s: %s", x.Name, raw)
			var want map[string]any
			require.NoError(t, json.Unmarshal(raw, &want))
			require.Equal(t, want, got.body, x.Name)
			if list, ok := got.body["total"].(float64); ok && !slices.Contains([]string{"get_routes", "get_webhook_delivery_logs", "get_driver_routes_today"}, x.Name) {
				require.Positive(t, list, x.Name)
			}
		}
	}
}

// A yes is worth one execution, however many claim it at once, on either
// database; and so is an approval, whichever approver decides.
func TestAWordIsWorthOneExecution(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); worthOne(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); worthOne(t, storetest.SecondPostgresURL(t)) })
}

func worthOne(t *testing.T, database string) {
	w := newAgentWorld(t, Config{Database: database, Node: "one"})
	admin := w.box.Admin.Token
	id := w.order("W-1")
	about := fmt.Sprintf(`{"order_id":%d,"new_address":{"name":"Ann Lee","address_line1":"1 Main St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}}`, id)
	state := w.modern("reroute_to_address", about, "", "Authorization", admin).json["result"].(map[string]any)["requestState"].(string)
	yes := fmt.Sprintf(`,"requestState":%q,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}}`, state)
	var done, used int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			r := w.modern("reroute_to_address", about, yes, "Authorization", admin)
			mu.Lock()
			defer mu.Unlock()
			switch result, _ := r.json["result"].(map[string]any); {
			case errorOf(r)["code"] == -32602.0 || strings.Contains(string(r.raw), "IDEMPOTENCY_IN_PROGRESS"):
				used++
			case result != nil && result["isError"] == nil:
				done++
			default:
				t.Errorf("%s", r.raw)
			}
		})
	}
	wg.Wait()
	require.Equal(t, []int{1, 11}, []int{done, used})
	require.Equal(t, 2.0, w.good("get_orders", `{"keyword":"Ann Lee"}`, "Authorization", admin)["total"], "the old order and one in its place")

	waits := w.good("create_order", fmt.Sprintf(anOrder, "W-2"), "Authorization", w.box.Staff.Token, "X-MCP-Require-Approval", "1")["approval_id"]
	done, used = 0, 0
	for range 12 {
		wg.Go(func() {
			r := w.call("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, waits), "Authorization", admin)
			mu.Lock()
			defer mu.Unlock()
			if r.failed {
				require.Equal(t, "APPROVAL_ALREADY_DECIDED", r.body["code"])
				used++
			} else {
				done++
			}
		})
	}
	wg.Wait()
	require.Equal(t, []int{1, 11}, []int{done, used})
	require.Equal(t, 3.0, w.good("get_orders", `{}`, "Authorization", admin)["total"])

	// A process that ended after the call and before it wrote so down does the
	// call again: it is the first one's answer.
	a, err := waiting{nil, w.s}.Find(t.Context(), cloud.Caller{Account: cloud.Account{BusinessID: w.business()}}, cloud.ApprovalID(waits.(string)))
	require.NoError(t, err)
	reviewer, err := w.s.findToken(t.Context(), auth.Hash(admin))
	require.NoError(t, err)
	again, err := w.s.tools.Approved(t.Context(), cloud.Caller{Account: reviewer.Account, Language: "en", BaseURL: w.base}, a)
	require.NoError(t, err)
	var first, second map[string]any
	require.NoError(t, json.Unmarshal(a.Result, &first))
	require.NoError(t, json.Unmarshal(again, &second))
	require.Equal(t, first["order_id"], second["order_id"])
	require.Equal(t, 3.0, w.good("get_orders", `{}`, "Authorization", admin)["total"])
}
