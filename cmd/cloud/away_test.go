package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/postgres"
	"github.com/postern-io/postern/internal/ring"
)

// A database that is away is said so on every face, with when to come again, and what comes
// once it is there again is answered.
func TestADatabaseThatIsAwayIsNoInternalError(t *testing.T) {
	ring.SkipUnlessCheck(t, "a server is started for it")
	t.Parallel()
	db, err := postgres.New(t.Context(), os.TempDir())
	ring.Needs(t, ring.EnvTools, "PostgreSQL's programs", err == nil)
	t.Cleanup(func() { require.NoError(t, db.Remove()) })
	t.Cleanup(func() { require.NoError(t, db.Crash()) })
	require.NoError(t, db.Start(t.Context()))
	require.NoError(t, db.CreateDatabase(t.Context()))
	at := []string{"-data", t.TempDir(), "-database", postgres.Address(db)}
	out, err := program(t, append(at[:2:2], "-database", at[3], "demo-data")...)
	require.NoError(t, err)
	var box server.Sandbox
	require.NoError(t, json.Unmarshal([]byte(out), &box))
	n := startNode(t, at...)
	ask := func(method, path, body string) (status int, retry, text string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.http+path, strings.NewReader(body))
		require.NoError(t, err)
		q.Header.Set("Authorization", "Bearer "+box.Admin.Token)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		r, err := http.DefaultClient.Do(q)
		require.NoError(t, err)
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode, r.Header.Get("Retry-After"), string(b)
	}
	const query = `{"query":"{ orders { total } }"}`
	status, _, text := ask("GET", "/api/v1/orders", "")
	require.Equal(t, 200, status, text)
	_, _, text = ask("POST", "/api/graphql", query)
	require.Contains(t, text, `"total":0`)

	require.NoError(t, db.Stop())
	status, retry, text := ask("GET", "/api/v1/orders", "")
	require.Equal(t, 503, status, text)
	require.Equal(t, "5", retry)
	require.Contains(t, text, `"MODULE_UNAVAILABLE"`)
	_, _, text = ask("POST", "/api/graphql", query)
	require.Contains(t, text, `"MODULE_UNAVAILABLE"`)
	status, _, text = ask("GET", "/track/PK-NONE", "")
	require.Equal(t, 503, status, text)
	require.NotContains(t, text, "SQLSTATE")
	status, _, text = ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Contains(t, []int{200, 503}, status)
	require.NotContains(t, text, "INTERNAL_ERROR")
	require.NotEmpty(t, n.log.find("request failed", "err"), "operators are told why")

	require.NoError(t, db.Start(t.Context()))
	ring.Await(t, func() bool {
		time.Sleep(100 * time.Millisecond)
		status, _, _ := ask("GET", "/api/v1/orders", "")
		return status == 200
	}, "the node answers again")
}
