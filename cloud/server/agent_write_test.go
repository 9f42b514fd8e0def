package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
)

// dump is every row of the database, by table, but for those that say how far
// ids were given out, and for what the node itself writes about processes and connections.
func (w *agentWorld) dump() map[string][]string {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.s.cfg.Dir, "postern.db")+"?mode=ro")
	require.NoError(w.t, err)
	defer db.Close()
	out := map[string][]string{}
	for _, table := range rowsOf(w.t, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'id_%' AND name NOT IN ('node', 'task', 'device_session')`) {
		name := strings.TrimSuffix(strings.TrimPrefix(table, `["`), `"]`)
		out[name] = rowsOf(w.t, db, `SELECT * FROM "`+name+`"`)
		slices.Sort(out[name])
	}
	return out
}

func rowsOf(t *testing.T, db *sql.DB, query string) (out []string) {
	rows, err := db.Query(query)
	require.NoError(t, err, query)
	defer rows.Close()
	columns, err := rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		require.NoError(t, rows.Scan(values...))
		raw, err := json.Marshal(values)
		require.NoError(t, err)
		out = append(out, string(raw))
	}
	require.NoError(t, rows.Err())
	return out
}

// writes says how every tool that writes is called for once; each of its orders
// is fresh.
var writes = map[string]func(w *agentWorld, n int) string{
	"create_order":                func(_ *agentWorld, n int) string { return fmt.Sprintf(anOrder, fmt.Sprint("C-", n)) },
	"update_delivery_instruction": func(w *agentWorld, n int) string { return w.about(n, `"delivery_instruction":"Ring twice"`) },
	"update_order_note":           func(w *agentWorld, n int) string { return w.about(n, `"note":"Call first"`) },
	"update_time_window_by_refs": func(w *agentWorld, n int) string {
		w.order(fmt.Sprint("W-", n))
		return fmt.Sprintf(`{"order_refs":["W-%d"],"time_window_start":"10:00","time_window_end":"12:00"}`, n)
	},
	"cancel_order": func(w *agentWorld, n int) string { return w.about(n, `"reason":"twice"`) },
	"bulk_create_orders": func(_ *agentWorld, n int) string {
		return fmt.Sprintf(`{"orders":[`+anOrder+`,{"type":"D"}]}`, fmt.Sprint("B-", n))
	},
	"bulk_create_orders_async": func(_ *agentWorld, n int) string { return fmt.Sprintf(`{"orders":[`+anOrder+`]}`, fmt.Sprint("A-", n)) },
	"reroute_to_address": func(w *agentWorld, n int) string {
		return w.about(n, `"new_address":{"name":"Ann Lee","address_line1":"1 Main St","city":"Toronto","province":"ON","postal_code":"M5H 2N2","country":"CA"}`)
	},
	"hold_order": func(w *agentWorld, n int) string { return w.about(n, `"reason":"late"`) },
	"release_order": func(w *agentWorld, n int) string {
		text := w.about(n, `"reason":"ready"`)
		w.good("hold_order", strings.Replace(text, "{", `{"confirm":true,`, 1), "Authorization", w.box.Admin.Token)
		return text
	},
	"propose_write": func(w *agentWorld, n int) string {
		return fmt.Sprintf(`{"tool":"hold_order","arguments":%s}`, w.about(n, `"reason":"late"`))
	},
	"reject_pending_write":  func(w *agentWorld, n int) string { return w.waiting(n) },
	"approve_pending_write": func(w *agentWorld, n int) string { return w.waiting(n) },
	"update_webhook_settings": func(*agentWorld, int) string {
		return `{"settings":{"webhook_sign_secret":"0123456789abcdef0123456789abcdef","order_deleted_webhook_url":"https://hooks.acme.example/orders"}}`
	},
	"test_webhook_delivery": func(*agentWorld, int) string {
		return `{"url":"https://93.184.216.34/hook","secret":"0123456789abcdef0123456789abcdef"}`
	},
	"run_graphql_query": func(w *agentWorld, n int) string {
		return fmt.Sprintf(`{"query":"mutation($id: Int!){orderHold(orderId:$id){order_id}}","variables":{"id":%d,"confirm":true},"allow_mutation":true}`, w.order(fmt.Sprint("G-", n)))
	},
}

// about names a fresh order, with more members.
func (w *agentWorld) about(n int, more string) string {
	return fmt.Sprintf(`{"order_id":%d,%s}`, w.order(fmt.Sprint("O-", n)), more)
}

// waiting is a write of another account that waits.
func (w *agentWorld) waiting(n int) string {
	out := w.good("hold_order", w.about(n, `"reason":"late"`), "Authorization", w.box.Staff.Token, "X-MCP-Require-Approval", "1")
	return fmt.Sprintf(`{"approval_id":%q}`, out["approval_id"])
}

// Every tool that writes can be tried without changing a byte, and waits
// without changing anything but the queue; then it does what the trial said.
func TestEveryWriteCanBeTriedFirst(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls of the same tools; this one walks over all of them")
	t.Parallel()
	var dials atomic.Int64 // of webhooks: no receiver answers
	w := newAgentWorld(t, Config{WebhookDial: func(context.Context, netip.AddrPort) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("connection refused")
	}})
	admin := []string{"Authorization", w.box.Admin.Token}
	n := 0
	for server, path := range map[string]string{catalog.OperationsServer: "/mcp", catalog.DeveloperServer: "/mcp/developer"} {
		for _, tool := range w.s.Catalog.Tools(server) {
			if !tool.Writes() && tool.Effect == catalog.Usual {
				continue
			}
			arguments := writes[tool.Name]
			if tool.Name == "replay_webhook_delivery" { // has nothing to send again here
				continue
			}
			require.NotNil(t, arguments, "how is %s called?", tool.Name)
			t.Run(server+"/"+tool.Name, func(t *testing.T) {
				w := &agentWorld{t, w.s, w.box, w.base}
				n++
				text := arguments(w, n)
				before := w.dump()
				dry := w.on(path, tool.Name, text, append(slices.Clone(admin), "X-MCP-Dry-Run", "1")...)
				require.False(t, dry.failed || dry.body == nil, "%s", dry.raw)
				require.Equal(t, "preview", dry.body["outcome"])
				for table, rows := range w.dump() {
					require.True(t, slices.Equal(before[table], rows), "a preview changed %s", table)
				}
				change := dry.body["would_change"].(map[string]any)
				require.NotEmpty(t, change["affected"], "%s", dry.raw)
				require.NotEmpty(t, change["method"])
				require.NotContains(t, string(dry.raw), "0123456789abcdef", "no secrets in previews")

				if tool.Writes() && !strings.Contains(tool.Name, "pending_write") {
					queued := w.on(path, tool.Name, text, append(slices.Clone(admin), "X-MCP-Require-Approval", "1")...)
					require.Equal(t, "pending_approval", queued.body["outcome"], "%s", queued.raw)
					require.NotContains(t, string(queued.raw), "0123456789abcdef", "no secrets in approvals")
					after := w.dump()
					for table, rows := range before {
						if table != "approval" && table != "audit" {
							require.True(t, slices.Equal(rows, after[table]), "%s changed while the call waits", table)
						}
					}
				}
				require.Zero(t, dials.Load(), "nothing is sent by trying or asking")
				if tool.Confirm {
					refused := w.on(path, tool.Name, text, admin...)
					require.True(t, refused.failed, "%s", refused.raw)
					require.Equal(t, "CONFIRMATION_REQUIRED", refused.body["code"])
					text = strings.Replace(text, "{", `{"confirm":true,`, 1)
				}
				done := w.on(path, tool.Name, text, admin...)
				if tool.Name == "test_webhook_delivery" {
					require.EqualValues(t, 1, dials.Swap(0))
				}
				require.False(t, done.failed || done.body == nil, "%s", done.raw)
				if id, ok := done.body["asyncId"].(string); ok {
					ring.Await(t, func() bool {
						return w.good("get_async_batch_result", fmt.Sprintf(`{"async_id":%q}`, id), admin...)["status"] == "completed"
					})
				}
				if tool.Name != "propose_write" {
					require.Equal(t, "executed", done.body["outcome"], "%s", done.raw)
				}
				if effect := change["affected"].([]any)[0].(map[string]any); effect["type"] == "order" && effect["id"] != nil {
					now := w.good("get_order_detail", fmt.Sprintf(`{"order_id":%.0f}`, effect["id"]), admin...)["order"].(map[string]any)
					for name, v := range effect["after"].(map[string]any) {
						if have, ok := now[name]; ok && name != "recipient" && tool.Name != "propose_write" {
							require.Equal(t, v, have, "%s of the order is not what the preview said", name)
						}
					}
				}
			})
		}
	}
}

// A write waits for another person, who sees what it would do, approves it, and
// is in the audit as who did it for whom; no account approves its own.
func TestAWriteIsApprovedAndDoneOnce(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin, staff := []string{"Authorization", w.box.Admin.Token}, []string{"Authorization", w.box.Staff.Token}
	id := w.order("P-1")
	agent := []string{"Authorization", w.key(w.box.Staff.Token, "ops-readonly")}
	r := w.good("propose_write", `{"tool":"cancel_order","arguments":{"order_ref":"P-1","reason":"twice"},"reason":"The customer wrote twice","expires_in_hours":5}`, agent...)
	require.Equal(t, "pending_approval", r["outcome"])
	which := fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, r["approval_id"])

	require.Equal(t, "SCOPE_REQUIRED", w.call("approve_pending_write", which, agent...).body["code"])
	require.Equal(t, "SELF_APPROVAL_NOT_ALLOWED", w.call("approve_pending_write", which, staff...).body["code"])
	require.Equal(t, "CONFIRMATION_REQUIRED", w.call("approve_pending_write", strings.Replace(which, `,"confirm":true`, "", 1), admin...).body["code"])
	require.Equal(t, 1, w.status(id))
	list := w.good("list_pending_approvals", `{}`, admin...)
	require.Equal(t, 1.0, list["total"])

	done := w.good("approve_pending_write", which, admin...)
	approval := done["approval"].(map[string]any)
	require.Equal(t, "executed", approval["status"])
	require.Equal(t, "executed", approval["result"].(map[string]any)["outcome"])
	require.Equal(t, 50, w.status(id))
	line := w.audit("orders.cancel")
	require.Equal(t, []any{"approval", r["approval_id"], "cancel_order", "operations"}, []any{line["consent"], line["approval"], line["tool"], line["server"]})
	require.NotEqual(t, line["actor"], line["requested_by"])
	require.Equal(t, "APPROVAL_ALREADY_DECIDED", w.call("approve_pending_write", which, admin...).body["code"])

	// What cannot be done is not queued, and what can no longer be done says so.
	require.Equal(t, "ORDER_NOT_CANCELLABLE", w.call("propose_write", `{"tool":"cancel_order","arguments":{"order_ref":"P-1"}}`, agent...).body["code"])
	for _, tool := range []string{"get_orders", "approve_pending_write", "propose_write", "nosuch"} {
		require.Equal(t, "VALIDATION_FAILED", w.call("propose_write", fmt.Sprintf(`{"tool":%q,"arguments":{}}`, tool), agent...).body["code"], tool)
	}
	w.order("P-2")
	r = w.good("propose_write", `{"tool":"hold_order","arguments":{"order_ref":"P-2"}}`, agent...)
	w.good("cancel_order", `{"order_ref":"P-2","confirm":true}`, admin...)
	failed := w.good("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, r["approval_id"]), admin...)
	require.Equal(t, "failed", failed["approval"].(map[string]any)["status"])
	require.Equal(t, "ORDER_STATUS_CONFLICT", failed["approval"].(map[string]any)["error"].(map[string]any)["code"])
}

// A document of GraphQL runs as the caller, within what the connection is
// narrowed to.
func TestGraphQLAsATool(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	admin := w.box.Admin.Token
	run := func(arguments string, headers ...string) called {
		return w.on("/mcp/developer", "run_graphql_query", arguments, headers...)
	}
	read := run(`{"query":"{ orders { total } }"}`, "Authorization", admin, "X-MCP-Dry-Run", "1", "X-MCP-Require-Approval", "1")
	require.False(t, read.failed, "%s", read.raw)
	require.Equal(t, "executed", read.body["outcome"], "a read is a read under every header")
	id := w.order("G-1")
	mutation := func(variables string, more string) string {
		return fmt.Sprintf(`{"query":"mutation($id: Int!){orderHold(orderId:$id){order_id}}","variables":{"id":%d%s}%s}`, id, variables, more)
	}
	require.Equal(t, "VALIDATION_FAILED", run(mutation(`,"confirm":true`, ""), "Authorization", admin).body["code"])
	require.Equal(t, "CONFIRMATION_REQUIRED", run(mutation("", `,"allow_mutation":true`), "Authorization", admin).body["code"])
	require.Equal(t, "CONFIRMATION_REQUIRED", run(mutation(`,"confirm":"true"`, `,"allow_mutation":true`), "Authorization", admin).body["code"])
	hidden := fmt.Sprintf(`{"query":"mutation($id: Int!, $no: Boolean!){orderHold(orderId:$id) @include(if:$no){order_id}}","variables":{"id":%d,"no":true},"allow_mutation":true}`, id)
	require.Equal(t, "CONFIRMATION_REQUIRED", run(hidden, "Authorization", admin).body["code"], "a directive hides nothing")
	narrow := run(mutation(`,"confirm":true`, `,"allow_mutation":true`), "Authorization", admin, "X-MCP-Scopes", "orders:read")
	require.Equal(t, []any{true, "FORBIDDEN"}, []any{narrow.failed, narrow.body["code"]}, "%s", narrow.raw)
	require.Equal(t, 1, w.status(id))
	done := run(mutation(`,"confirm":true`, `,"allow_mutation":true`), "Authorization", admin)
	require.Equal(t, "executed", done.body["outcome"], "%s", done.raw)
	require.Equal(t, 3, w.status(id))
	require.Equal(t, 401, run(`{"query":"{ me { id } }"}`).status)
}
