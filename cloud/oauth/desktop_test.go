package oauth

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud/auth"
)

// Desktop programs take the answer by a scheme of their own (RFC 8252 7.1): a
// domain name in reverse, or one of the few that widely used programs have.
func TestPrivateUseSchemes(t *testing.T) {
	t.Parallel()
	for raw, good := range map[string]bool{
		"com.example.desk:/cb":                   true,
		"com.example.desk://auth/cb?x=1":         true,
		"cursor://anysphere.cursor-mcp/oauth/cb": true,
		"vscode://vendor.extension/cb":           true,
		"desk://cb":                              false, // anybody's
		"com.example.desk:cb":                    false, // no path
		"com.example.desk:":                      false,
		"Com.Example.Desk:/cb":                   false, // compared as it stands
		"com.example.desk:/cb#f":                 false,
		"com.example.desk://u:p@auth/cb":         false,
		"com.example.desk:/c b":                  false,
		"com..desk:/cb":                          false,
		".desk:/cb":                              false,
		"javascript:/alert(1)":                   false,
		"data:/text":                             false,
		"file:///etc/passwd":                     false,
		"https.evil:/cb":                         true, // its own name, however it looks
		strings.Repeat("a", 70) + ".b:/cb":       false,
		"cursor:/cb":                             true,
		"cursor:":                                false,
	} {
		require.Equal(t, good, goodRedirect(raw), raw)
	}
	require.False(t, sameRedirect("com.example.desk:/cb", "com.example.desk:/cb2"))
	require.Equal(t, "com.example.desk:", hostOf("com.example.desk:/cb"))
	require.Equal(t, "cursor:", hostOf("cursor://anysphere.cursor-mcp/oauth/cb"))
	require.Equal(t, "com.example.desk:/cb?code=x", answerTo("com.example.desk:/cb", url.Values{"code": {"x"}}))
}

// A desktop agent logs in by its own scheme; of the addresses that it registers,
// one that is refused does not refuse the others.
func TestADesktopAgentLogsIn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const own = "cursor://anysphere.cursor-mcp/oauth/callback"
	a := r.do("POST", RegisterPath, "application/json", `{"client_name":"Desk","redirect_uris":["`+own+`","desk://cb","http://desk.example/cb","http://127.0.0.1/cb"]}`)
	require.Equal(t, 201, a.status, a.body)
	require.Equal(t, []any{own, "http://127.0.0.1/cb"}, a.json["redirect_uris"], "as they are kept")
	id := a.text("client_id")
	code := r.allowed(admin, "support", asking(id, "redirect_uri", own))
	r.given(paying(id, code, "redirect_uri", own))
	q, refusal := r.check(asking(id, "redirect_uri", own))
	require.Nil(t, refusal)
	require.True(t, q.Local())
	_, refusal = r.check(asking(id, "redirect_uri", own, "response_type", "token"))
	require.NotNil(t, refusal)
	require.False(t, refusal.Local, "a link starts no program with an error unasked")
	_, refusal = r.check(asking(id, "redirect_uri", "desk://cb"))
	require.Equal(t, InvalidRedirect, refusal.Err.Code)
}

// Clients from before RFC 8707 name no resource: their tokens are good at
// everything that agents reach, and at nothing else. One that named a resource
// when it asked need not name it again.
func TestOldClientsNameNoResource(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.client(callback)
	code := r.allowed(admin, "support", asking(id, "resource", ""))
	oldAccess, oldRefresh := r.given(paying(id, code, "resource", ""))
	l, err := r.db.FindToken(t.Context(), auth.Hash(oldAccess))
	require.NoError(t, err)
	require.Equal(t, base, l.Token.Audience)
	again, _ := r.given(refreshing(id, oldRefresh, "resource", ""))
	l, err = r.db.FindToken(t.Context(), auth.Hash(again))
	require.NoError(t, err)
	require.Equal(t, base, l.Token.Audience)

	code = r.allowed(admin, "support", asking(id))
	boundAccess, boundRefresh := r.given(paying(id, code, "resource", ""))
	l, err = r.db.FindToken(t.Context(), auth.Hash(boundAccess))
	require.NoError(t, err)
	require.Equal(t, base+"/mcp", l.Token.Audience, "what the user agreed to")
	require.Equal(t, InvalidTarget, r.token(refreshing(id, boundRefresh, "resource", base)).error(), "never more")
}
