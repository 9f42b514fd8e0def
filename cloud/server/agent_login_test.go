package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/mcp/mcptest"
)

// A desktop agent of either generation needs one address: its user logs in and
// allows it something, and its tools work.
func TestADesktopAgentNeedsOneAddress(t *testing.T) {
	t.Parallel()
	dir, program := mcptest.Node(t)
	w := newAgentWorld(t, Config{})
	const password = "correct horse battery"
	session, err := w.s.findToken(t.Context(), auth.Hash(w.box.Admin.Token))
	require.NoError(t, err)
	session.Account.PasswordHash = auth.HashPassword(password)
	require.NoError(t, w.s.Store.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) {
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{session.Account}}}, nil
	}))
	for _, client := range []string{"sdk1", "sdk2"} {
		t.Run(client, func(t *testing.T) {
			arg := fmt.Sprintf(`{"client":%q,"url":%q,"tool":"get_orders","arguments":{}}`, client, w.base+"/mcp")
			cmd := exec.CommandContext(t.Context(), program, "login.mjs", arg)
			cmd.Dir = dir
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			said := bufio.NewReader(out)
			page, err := said.ReadString('\n')
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(page, w.base+"/oauth/authorize?"), page)
			answer := consent(t, strings.TrimSpace(page), session.Account.Email, password, "support")
			_, err = io.WriteString(in, answer.Encode()+"\n")
			require.NoError(t, err)
			raw, err := said.ReadBytes('\n')
			require.NoError(t, err)
			var got struct {
				Result struct {
					Structured map[string]any `json:"structuredContent"`
				}
				Scope   string
				Refresh bool
			}
			require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)
			require.Equal(t, true, got.Result.Structured["result"])
			require.Equal(t, "orders:read analytics:read address:read approvals:read", got.Scope)
			require.True(t, got.Refresh)
			require.NoError(t, in.Close())
			require.NoError(t, cmd.Wait())
		})
	}
}
