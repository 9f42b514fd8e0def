package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
)

// Over REST: a caller that lacks the tool's own scope gets its name, one decision counts,
// one's own request is another person's to approve, and lists are of what waits.
func TestApprovalsOverREST(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	const path = "/api/v1/mcp/approvals/"
	id := x.approval()
	clerk := x.login(x.token(cloud.ClientEmployee), "approvals:write")
	a := x.do("POST", path+id+"/approve", clerk, `{}`)
	require.Equal(t, 403, a.status)
	require.Equal(t, "FORBIDDEN", a.code())
	require.Equal(t, "orders:write", at(a.json, "details", "scope"))
	require.InDelta(t, 1, x.made("GET", path[:len(path)-1], clerk, "")["total"], 0)

	done := x.made("POST", path+id+"/approve", x.token(admin), `{"note":"ok"}`)
	require.Equal(t, "executed", at(done, "approval", "status"))
	require.Equal(t, "client_admin", at(done, "approval", "reviewed_by", "name"))
	require.Equal(t, "executed", done["outcome"])
	delete(done, "outcome") // of approving
	require.Equal(t, done, x.made("GET", path+id, x.token(admin), ""))
	require.Nil(t, at(x.made("GET", path+id, clerk, ""), "approval", "arguments"), "who may not decide is not shown what others asked for")
	for _, verb := range []string{"approve", "reject"} {
		a = x.do("POST", path+id+"/"+verb, x.token(admin), `{}`)
		require.Equal(t, 409, a.status)
		require.Equal(t, "APPROVAL_ALREADY_DECIDED", a.code())
	}
	require.InDelta(t, 0, x.made("GET", path[:len(path)-1], clerk, "")["total"], 0)
	require.InDelta(t, 1, x.made("GET", path[:len(path)-1]+"?status=executed&tool=hold_order&requested_by=3", clerk, "")["total"], 0)
	require.Equal(t, 422, x.do("GET", path[:len(path)-1]+"?status=open", clerk, "").status)

	s, err := x.w.FindToken(t.Context(), auth.Hash(x.token(admin)))
	require.NoError(t, err)
	own, err := x.asked.Propose(t.Context(), cloud.Caller{Account: s.Account}, approval.ProposeInput{Server: "operations", Tool: "hold_order", Arguments: json.RawMessage(`{"order_id":1}`), Risk: "high"})
	require.NoError(t, err)
	mine := path + string(own.Approval.ApprovalID)
	require.Equal(t, "SELF_APPROVAL_NOT_ALLOWED", x.do("POST", mine+"/approve", x.token(admin), `{}`).code())
	x.made("PUT", "/api/v1/settings", x.token(admin), `{"allow_self_approval":true}`)
	require.Equal(t, "executed", at(x.made("POST", mine+"/approve", x.token(admin), `{}`), "approval", "status"))
	require.Equal(t, 422, x.do("POST", mine+"/reject", x.token(admin), `{"reason":7}`).status)
}
