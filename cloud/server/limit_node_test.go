package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/internal/ring"
)

// Two nodes give a caller no more than one would, and who is locked out at one is at the
// other, also after a restart.
func TestNodesShareLimitsAndLocks(t *testing.T) {
	t.Parallel()
	database, dir := storetest.MigratedPostgresURL(t), t.TempDir()
	start := func(name string) *running {
		n := startNode(t, server.Config{Dir: dir, Database: database, Node: name, Rates: map[string]int{"login_address": 0, "login_account": 0}, Limits: catalog.Limits{Authenticated: 12}}, false)
		n.awaitReady(t)
		return n
	}
	nodes := []*running{start("one"), start("two")}
	box, err := nodes[0].Sandbox(t.Context(), server.SandboxConfig{})
	require.NoError(t, err)
	ring.Await(t, func() bool { return nodes[0].Nodes() == 2 && nodes[1].Nodes() == 2 }, "both know of each other")
	call := func(n *running, method, path, token, body string) (int, string, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer a.Body.Close()
		text, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(text), a.Header
	}

	begun, passed := time.Now(), 0
	for i := range 40 {
		status, text, head := call(nodes[i%2], "GET", "/api/v1/user/me", box.Admin.Token, "")
		require.Equal(t, "12", head.Get("X-RateLimit-Limit"))
		switch status {
		case http.StatusOK:
			passed++
		case http.StatusTooManyRequests:
		default:
			t.Fatal(status, text)
		}
	}
	require.LessOrEqual(t, float64(passed), 12+2+time.Since(begun).Minutes()*12)
	require.GreaterOrEqual(t, passed, 12)

	try := func(n *running) (int, string) {
		status, text, _ := call(n, "POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":"wrong"}`, "nobody@example.com"))
		return status, text
	}
	for i := range 10 {
		status, text := try(nodes[i%2])
		require.Equal(t, http.StatusUnauthorized, status, text)
	}
	nodes = append(nodes, start("three"))
	for _, n := range nodes {
		status, text := try(n)
		require.Equal(t, http.StatusLocked, status, text)
		require.Contains(t, text, "ACCOUNT_LOCKED")
	}
}
