package api_test

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/internal/ring"
)

// asks is a key of a token's owner that asks a person about every write.
func (x *world) asks(token string) string {
	s, err := x.w.FindToken(x.t.Context(), auth.Hash(token))
	require.NoError(x.t, err)
	fresh := auth.NewToken()
	x.n++
	x.w.Write(x.t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(fresh), AccountID: s.Account.ID, Name: "asks", ID: cloud.TokenID(1000 + x.n), Profile: "full", Policy: cloud.KeyPolicy{Approval: cloud.AskAll}, ExpiresAt: time.Now().Add(time.Hour)}}}})
	return fresh
}

// A key that asks a person does no write of the table by itself: each waits, as
// it was given, or is refused.
func TestKeysThatAskWriteNothing(t *testing.T) {
	ring.SkipUnlessCheck(t, "single operations; this one walks over all of them")
	t.Parallel()
	x := newWorld(t)
	waited := 0
	for _, o := range x.table.Operations() {
		if !o.Held() || o.NoToken || strings.HasPrefix(o.Name, "approvals.reject") {
			continue
		}
		c := x.call(o)
		token, before := x.asks(x.token(cmp.Or(c.as, cloud.Customer))), x.done() // what takes calls without a token, too
		a := x.do(o.Method, c.path, token, c.body)
		switch {
		case o.Name == "approvals.approve":
			require.Equal(t, "APPROVAL_NEEDS_PERSON", a.code())
		case o.Raw() != nil, o.Upload() != nil, o.Secret, c.as == cloud.PlatformAdmin: // approvals are a business's
			require.Contains(t, []string{"APPROVAL_NOT_POSSIBLE", "LOGIN_REQUIRED"}, a.code(), "%s: %s", o.Name, a.body)
		default:
			require.Equal(t, []any{202, catalog.OutcomePending}, []any{a.status, a.json["outcome"]}, "%s: %s", o.Name, a.body)
			waited++
		}
		require.Equal(t, before, x.done(), "%s did something", o.Name)
	}
	require.Greater(t, waited, 60)
}
