package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/webtest"
)

// Whatever takes a password asks an account with a second factor for a code.
func TestEveryPasswordPathDemandsTheSecondFactor(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	x.factor(1, true)
	codes := []int{-1, 0, 1}
	next := func() string {
		c, err := totp.GenerateCode(auth.KeyText(factorSecret), time.Now().Add(time.Duration(codes[0])*auth.CodePeriod))
		require.NoError(t, err)
		codes = codes[1:]
		return c
	}
	login := func(more string) answer {
		return x.do("POST", "/api/v1/user/login", "", fmt.Sprintf(`{"email":%q,"password":%q%s}`, x.w.Emails[admin], webtest.Password, more))
	}
	a := login("")
	require.Equal(t, []any{401, "SECOND_FACTOR_REQUIRED"}, []any{a.status, a.code()})
	challenge, _ := at(a.json, "details", "challenge").(string)
	require.Len(t, challenge, 64)
	require.Equal(t, "SECOND_FACTOR_INVALID", login(`,"otp":"000000000"`).code())
	a = login(`,"otp":"` + next() + `"`)
	require.Equal(t, 200, a.status, "%s", a.body)

	field := func(more string) answer {
		return x.ask(fmt.Sprintf(`mutation { userLogin(email: %q, password: %q%s) { access_token } }`, x.w.Emails[admin], webtest.Password, more), "")
	}
	a = field("")
	require.Equal(t, []any{401, "SECOND_FACTOR_REQUIRED"}, []any{a.status, a.json["error_code"]})
	other, _ := at(a.json, "details", "challenge").(string)
	require.Len(t, other, 64)
	require.Equal(t, 200, field(`, otp: "`+next()+`"`).status)

	a = x.do("POST", "/api/v1/user/login/second-factor", "", `{"challenge":"`+challenge+`","otp":"`+next()+`"}`)
	require.Equal(t, 200, a.status, "%s", a.body)
	token, _ := a.json["access_token"].(string)
	require.Equal(t, 200, x.do("GET", "/api/v1/user/me", token, "").status)
	require.Equal(t, "CHALLENGE_EXPIRED", x.do("POST", "/api/v1/user/login/second-factor", "", `{"challenge":"`+challenge+`","otp":"000000"}`).code())
	require.Equal(t, "SECOND_FACTOR_REQUIRED", x.do("POST", "/api/v1/user/password", token, `{"password":"`+webtest.Password+`","new_password":"another long password"}`).code())
	for _, path := range []string{"recovery-codes", "remove"} {
		require.Equal(t, "SECOND_FACTOR_REQUIRED", x.do("POST", "/api/v1/user/second-factor/"+path, token, `{"password":"`+webtest.Password+`"}`).code(), path)
	}
}

// No key changes what lets a person in, whatever it may do and whomever it asks;
// nothing of such a call is kept for an approval.
func TestNoKeyChangesWhatLetsIn(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	before := x.waiting()
	for _, body := range []string{`{"name":"k","scopes":["settings:write","orders:write"]}`, `{"name":"k","scopes":["settings:write","orders:write"],"require_approval":"all"}`, `{"name":"k","scopes":["settings:write","orders:write"],"dry_run_only":true}`} {
		key, _ := x.made("POST", "/api/v1/user/api-keys", x.token(admin), body)["token"].(string)
		n := 0
		for _, o := range x.table.Operations() {
			if !strings.HasPrefix(o.Name, "user.second_factor") && !strings.HasPrefix(o.Name, "user.password.c") && !strings.HasPrefix(o.Name, "user.sessions") && o.Name != "users.second_factor.reset" && o.Name != "users.identities.end" {
				continue
			}
			n++
			c := x.call(o)
			a := x.do(o.Method, c.path, key, c.body)
			require.Contains(t, []string{"LOGIN_REQUIRED", "APPROVAL_NOT_POSSIBLE", "PENDING_APPROVAL", "DRY_RUN"}, a.code(), "%s: %s", o.Name, a.body)
			if o.Secret {
				require.Equal(t, 403, a.status, "%s: %s", o.Name, a.body)
			}
		}
		require.Equal(t, 11, n)
	}
	require.Equal(t, before, x.waiting())
}

// waiting is how many calls wait for a person.
func (x *world) waiting() (n int) {
	require.NoError(x.t, x.w.DB.Look(x.t.Context(), func(v cloud.View) error {
		_, listed, err := v.Approvals(cloud.ApprovalFilter{BusinessID: 42, Page: cloud.Page{Sort: "id", Limit: 1}})
		n = listed.Total
		return err
	}))
	return n
}

// In a business that demands a second factor every operation is shut to a login
// without one, by REST and by GraphQL, but those that set one up.
func TestDemandedSecondFactorShutsEverything(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	fresh := auth.NewToken()
	x.w.Write(t, cloud.Changes{AccountChanges: cloud.AccountChanges{Tokens: []cloud.Token{{Hash: auth.Hash(fresh), AccountID: 1, Kind: cloud.SetupToken, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)}}}})
	open := 0
	for _, o := range x.table.Operations() {
		if o.NoToken || o.SetsUp || o.EndsToken {
			open++
			continue
		}
		path := strings.NewReplacer("{", "", "}", "").Replace(o.Path)
		a := x.do(o.Method, path, fresh, map[bool]string{true: "{}"}[o.HasBody()])
		require.Equal(t, "SECOND_FACTOR_SETUP_REQUIRED", a.code(), "%s: %s", o.Name, a.body)
	}
	require.LessOrEqual(t, open, 23)
	a := x.ask(`{ webhookSettings { result } }`, fresh)
	require.Equal(t, "SECOND_FACTOR_SETUP_REQUIRED", a.json["error_code"])
	require.Equal(t, 200, x.do("GET", "/api/v1/user/second-factor", fresh, "").status)
}

// The options of a login with a passkey are answered to anybody, and a challenge that no login
// gave is refused as such.
func TestOptionsOfALoginWithAPasskey(t *testing.T) {
	t.Parallel()
	x := newWorld(t)
	begin := func(body string) answer { return x.do("POST", "/api/v1/user/login/passkey/options", "", body) }
	a := begin(`{}`)
	require.Equal(t, 200, a.status, "%s", a.body)
	require.Equal(t, true, a.json["result"])
	require.NotEmpty(t, at(a.json, "options"))
	require.Equal(t, "CHALLENGE_EXPIRED", begin(`{"challenge":"`+strings.Repeat("a", 64)+`"}`).code())
}
