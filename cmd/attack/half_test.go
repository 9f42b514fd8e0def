package attack

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A document of two mutations of which one is done and one refused says which,
// whether it was run at once or after an approval.
func TestAHalfDoneDocumentSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.box.Admin.Token
	document := func(id int) string {
		return fmt.Sprintf(`{"query":"mutation{first:orderCancel(orderId:%d){order_id} second:orderCancel(orderId:%d){order_id}}","allow_mutation":true,"variables":{"confirm":true}}`, id, id)
	}
	says := func(a answer, at string) {
		t.Helper()
		require.Equal(t, "PARTLY_DONE", a.at(at+"code"), "%s", a.raw)
		require.NotNil(t, a.at(at+"details.data.first"), "%s", a.raw)
		require.Nil(t, a.at(at+"details.data.second"), "%s", a.raw)
		require.Contains(t, fmt.Sprint(a.at(at+"details.errors")), "second", "%s", a.raw)
	}
	id := c.order("H-1")
	a, failed := c.toolAt("/mcp/developer", "run_graphql_query", document(id), admin)
	require.True(t, failed)
	says(a, "")
	require.Equal(t, 50, c.status(id))

	id = c.order("H-2")
	waits, _ := c.toolAt("/mcp/developer", "run_graphql_query", document(id), c.key(c.box.Staff.Token, `{"name":"agent","profile":"full","require_approval":"all"}`))
	done := c.ok("POST", fmt.Sprint("/api/v1/mcp/approvals/", waits.at("approval_id"), "/approve"), admin, `{}`)
	require.Equal(t, "failed", done.at("outcome"), "%s", done.raw)
	says(done, "approval.error.")
	require.Equal(t, 50, c.status(id))
}
