package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// What waits is done as it was shown once it is approved, whatever tool it is of:
// the bounds on what may be written hold nothing back that was shown.
func TestEveryWriteIsDoneOnceItIsApproved(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{WebhookDial: func(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errors.New("connection refused") }})
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(w.business())
		b.Settings.SelfApproval = true // of what only administrators may ask for
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
	n := 0
	for server, path := range map[string]string{catalog.OperationsServer: "/mcp", catalog.DeveloperServer: "/mcp/developer"} {
		for _, tool := range w.s.Catalog.Tools(server) {
			if arguments := writes[tool.Name]; tool.Writes() && arguments != nil && !strings.Contains(tool.Name, "pending_write") {
				t.Run(server+"/"+tool.Name, func(t *testing.T) {
					w := &agentWorld{t, w.s, w.box, w.base}
					n++
					text := arguments(w, n)
					requester := w.box.Staff.Token
					if tool.Types != nil && !slices.Contains(tool.Types, cloud.ClientEmployee) {
						requester = w.box.Admin.Token
					}
					queued := w.on(path, tool.Name, text, "Authorization", requester, "X-MCP-Require-Approval", "1")
					require.Equal(t, "pending_approval", queued.body["outcome"], "%s", queued.raw)
					done := w.good("approve_pending_write", fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, queued.body["approval_id"]), "Authorization", w.box.Admin.Token)
					require.Equal(t, "executed", done["outcome"], "%v", done)
				})
			}
		}
	}
	require.Greater(t, n, 12)
}
