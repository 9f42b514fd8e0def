package attack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A token is good at the server that its user agreed to, at both addresses of
// it, and not at another server whose address begins alike.
func TestATokenIsGoodAtOneServer(t *testing.T) {
	t.Parallel()
	c := startWithPasswords(t)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	operations, developer, lockers := []string{"/mcp", "/api/mcp"}, []string{"/mcp/developer", "/api/mcp/developer"}, []string{"/mcp/lockers", "/api/mcp/lockers"}
	all := append(append(operations[:2:2], developer...), lockers...)
	for at, good := range map[string][]string{"/mcp": operations, "/api/mcp": operations, "/mcp/developer": developer, "/api/mcp/lockers": lockers, "": all} {
		token := c.connect(t, at, "never")
		for _, path := range all {
			want := 401
			for _, p := range good {
				if p == path {
					want = 200
				}
			}
			require.Equal(t, want, c.send("POST", path, token, list).status, "a token for %q at %s", at, path)
		}
		require.Equal(t, 401, c.send("GET", "/api/v1/orders", token, "").status, "nor at REST")
	}
}
