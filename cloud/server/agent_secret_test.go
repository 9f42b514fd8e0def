package server

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

// A secret that an agent proposes is shown to no account, in none of its forms:
// neither what would be done, nor what was.
func TestSecretsOfProposedSettingsAreMasked(t *testing.T) {
	t.Parallel()
	w := newAgentWorld(t, Config{})
	const secret, next = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(w.business())
		b.Settings.SelfApproval = true
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, err
	}))
	admin := []string{"Authorization", w.box.Admin.Token}
	queued := w.on("/mcp/developer", "update_webhook_settings", fmt.Sprintf(`{"settings":{"webhook_sign_secret":%q,"webhook_sign_secret_next":%q}}`, secret, next),
		append(admin[:2:2], "X-MCP-Require-Approval", "1")...)
	require.Equal(t, "pending_approval", queued.body["outcome"], "%s", queued.raw)
	approval := fmt.Sprintf(`{"approval_id":%q,"confirm":true}`, queued.body["approval_id"])
	for _, seen := range []called{queued, w.on("/mcp", "list_pending_approvals", `{}`, admin...), w.on("/mcp", "approve_pending_write", approval, admin...), w.on("/mcp", "list_pending_approvals", `{"status":"all"}`, admin...)} {
		require.False(t, seen.failed, "%s", seen.raw)
		for _, s := range []string{secret, next} {
			require.NotContains(t, string(seen.raw), s)
			require.NotContains(t, string(seen.raw), base64.StdEncoding.EncodeToString([]byte(s)), "the form for libraries is the secret")
		}
	}
}
