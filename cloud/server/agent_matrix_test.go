package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
)

// servers are the tool servers with the address of each.
var servers = map[string]string{catalog.OperationsServer: "/mcp", catalog.DeveloperServer: "/api/mcp/developer", catalog.LockersServer: "/api/mcp/lockers"}

// profileScopes are those of interface document 5.2, written down once more.
var profileScopes = map[string]string{
	"":                  "*",
	"full":              "*",
	"ops-readonly":      "orders:read labels:read routes:read drivers:read analytics:read address:read approvals:read",
	"support":           "orders:read analytics:read address:read approvals:read",
	"ops-write":         "orders:read orders:write labels:read labels:write routes:read routes:write drivers:read analytics:read address:read approvals:read approvals:write",
	"wms-readonly":      "wms:read orders:read",
	"datasets-readonly": "datasets:read",
	"alliance-readonly": "alliance:read",
}

// Every tool with every profile in the name of every kind of account: who is
// let in gets as far as its arguments, which are wrong on purpose.
func TestWhoMayCallWhichTool(t *testing.T) {
	ring.SkipUnlessCheck(t, "single calls of the same tools; this one walks over all of them")
	t.Parallel()
	w := newAgentWorld(t, Config{})
	tokens := map[cloud.AccountType]string{"": "", cloud.ClientAdmin: w.box.Admin.Token, cloud.ClientEmployee: w.box.Staff.Token, cloud.Broker: w.box.Contractor.Token,
		cloud.DriverAccount: w.box.Driver.Token, cloud.Customer: w.box.Customer.Token, cloud.ProviderType: w.box.Provider.Token}
	tried := map[string]int{}
	for server, path := range servers {
		for _, x := range w.s.Catalog.Tools(server) {
			for profile, scopes := range profileScopes {
				for kind, token := range tokens {
					want := "VALIDATION_FAILED"
					switch lacks := slices.ContainsFunc(x.Scopes, func(s string) bool { return scopes != "*" && !slices.Contains(strings.Fields(scopes), s) }); {
					case len(x.Scopes) == 0 && x.Types == nil:
					case kind == "":
						want = "UNAUTHENTICATED"
					case lacks:
						want = "SCOPE_REQUIRED"
					case x.Types != nil && !slices.Contains(x.Types, kind):
						want = "ACCOUNT_TYPE_NOT_ALLOWED"
					}
					var headers []string
					if token != "" {
						headers = append(headers, "Authorization", token)
					}
					if profile != "" {
						headers = append(headers, "X-MCP-Profile", profile)
					}
					r := w.on(path, x.Name, `{"nosuch":1}`, headers...)
					got, _ := r.body["code"].(string)
					if data, ok := errorOf(r.reply)["data"].(map[string]any); ok {
						got, _ = data["code"].(string)
					}
					require.Equal(t, want, got, "%s/%s as %s with profile %q", server, x.Name, kind, profile)
					tried[want]++
				}
			}
		}
	}
	for _, code := range []string{"VALIDATION_FAILED", "UNAUTHENTICATED", "SCOPE_REQUIRED", "ACCOUNT_TYPE_NOT_ALLOWED"} {
		require.Greater(t, tried[code], 50, code)
	}
	t.Logf("%v", tried)
}

// A key's own profile narrows like the header, and headers never widen it.
func TestKeysAreNarrowedByTheirProfile(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	for profile, scopes := range profileScopes {
		if profile == "" {
			continue
		}
		listed := names(w.post("/mcp", list, "Authorization", w.key(w.box.Admin.Token, profile), "X-MCP-Profile", "full"))
		var want []string
		for _, x := range w.s.Catalog.Tools(catalog.OperationsServer) {
			if !slices.ContainsFunc(x.Scopes, func(s string) bool { return scopes != "*" && !slices.Contains(strings.Fields(scopes), s) }) {
				want = append(want, x.Name)
			}
		}
		require.ElementsMatch(t, want, listed, profile)
	}
	capable := w.good("get_capabilities", `{}`, "Authorization", w.key(w.box.Admin.Token, "ops-readonly"))
	require.Equal(t, "ops-readonly", capable["profile"])
	require.ElementsMatch(t, strings.Fields(profileScopes["ops-readonly"]), capable["scopes"])
	require.Equal(t, "agent-1", capable["identity"].(map[string]any)["token_name"])
	for _, x := range capable["tools"].([]any) {
		require.Equal(t, true, x.(map[string]any)["available"])
	}
	all := w.good("get_capabilities", `{"available_only":false}`)
	reasons := map[string]int{}
	for _, x := range all["tools"].([]any) {
		row := x.(map[string]any)
		tool := w.s.Catalog.Tool(catalog.OperationsServer, row["name"].(string))
		require.Equal(t, []any{string(tool.Risk), tool.Confirm}, []any{row["risk"], row["confirm_required"]}, tool.Name)
		require.ElementsMatch(t, tool.Scopes, row["required_scopes"], tool.Name)
		reason, _ := x.(map[string]any)["unavailable_reason"].(string)
		reasons[reason]++
	}
	require.Equal(t, map[string]int{"": 3, "UNAUTHENTICATED": len(w.s.Catalog.Tools(catalog.OperationsServer)) - 3}, reasons)
}

// What belongs to another business looks like what there is not, whatever the
// tool.
func TestForeignThingsLookLikeNothing(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	other := auth.NewToken()
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err1 := v.NewID(cloud.BusinessIDs)
		a, err2 := v.NewID(cloud.AccountIDs)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("ids: %w, %w", err1, err2)
		}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: cloud.BusinessID(b), Code: "other", Name: "Other", Timezone: "UTC"}},
			Accounts: []cloud.Account{{ID: cloud.AccountID(a), BusinessID: cloud.BusinessID(b), Type: cloud.ClientAdmin, Email: "other@other.example", Enabled: true}},
			Tokens:   []cloud.Token{{Hash: auth.Hash(other), AccountID: cloud.AccountID(a), Name: "login"}}}}, nil
	}))
	id := w.order("F-1")
	detail := w.good("get_order_detail", fmt.Sprintf(`{"order_id":%d}`, id), "Authorization", w.box.Admin.Token)["order"].(map[string]any)
	tried := 0
	for server, path := range servers {
		for _, x := range w.s.Catalog.Tools(server) {
			if server == catalog.LockersServer || !slices.ContainsFunc(x.Arguments, func(a catalog.Argument) bool { return a.Name == "order_id" }) { // those have a test of their own
				continue
			}
			need := ""
			for _, a := range x.Arguments {
				if a.Required {
					value, ok := map[string]string{"delivery_instruction": `"x"`, "note": `"x"`, "new_address": `{"name":"A","address_line1":"1","city":"T","province":"ON","postal_code":"M5H 2N2","country":"CA"}`}[a.Name]
					require.True(t, ok, "%s needs %s", x.Name, a.Name)
					need += fmt.Sprintf(`,%q:%s`, a.Name, value)
				}
			}
			if x.Confirm {
				need += `,"confirm":true`
			}
			for _, dry := range []string{"0", "1"} {
				ask := func(name, value string) string {
					r := w.on(path, x.Name, fmt.Sprintf(`{%q:%s%s}`, name, value, need), "Authorization", other, "X-MCP-Dry-Run", dry)
					if dry == "1" && x.Writes() {
						require.Contains(t, string(r.raw), `\"ok\":false`, "%s: %s", x.Name, r.raw)
						return strings.ReplaceAll(string(r.raw), "orders/"+value, "orders/x")
					}
					require.Equal(t, "ORDER_NOT_FOUND", r.body["code"], "%s: %s", x.Name, r.raw)
					return string(r.raw)
				}
				require.Equal(t, ask("order_id", "987654"), ask("order_id", fmt.Sprint(id)), x.Name)
				require.Equal(t, ask("tracking_number", `"SR000000000"`), ask("tracking_number", fmt.Sprintf("%q", detail["tracking_number"])), x.Name)
				tried++
			}
		}
	}
	require.Greater(t, tried, 15)
	require.Equal(t, 1, w.status(id))
	waiting := w.good("hold_order", `{"order_ref":"F-1"}`, "Authorization", w.box.Staff.Token, "X-MCP-Require-Approval", "1")["approval_id"]
	for _, x := range []string{"approve_pending_write", "reject_pending_write"} {
		confirm := map[string]string{"approve_pending_write": `,"confirm":true`}[x]
		mine := w.call(x, fmt.Sprintf(`{"approval_id":%q%s}`, waiting, confirm), "Authorization", other)
		nobodys := w.call(x, fmt.Sprintf(`{"approval_id":"apr_00000000000000000000000000"%s}`, confirm), "Authorization", other)
		require.Equal(t, "APPROVAL_NOT_FOUND", mine.body["code"])
		require.Equal(t, string(nobodys.raw), string(mine.raw))
	}
}
