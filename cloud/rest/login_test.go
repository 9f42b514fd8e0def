package rest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/webtest"
)

// One person works for two businesses: who knows both passwords is asked which
// one is meant, who knows one of them gets in there and learns of no other.
func TestOneEmailInSeveralBusinesses(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const login = "/api/v1/user/login"
	user := func(token, password string) map[string]any {
		t.Helper()
		return r.made(r.do("POST", "/api/v1/users", token, `{"account_type":"client_employee","name":"Ana","email":"Ana@both.example","password":"`+password+`"}`), 201, "user")
	}
	user(r.w.Tokens[cloud.ClientAdmin], webtest.Password)
	other := user(r.w.OtherAdmin, "another password")
	r.refused(r.do("POST", "/api/v1/users", r.w.OtherAdmin, `{"account_type":"client_employee","name":"Ana","email":"ana@both.example","password":"`+webtest.Password+`"}`), 422, "VALIDATION_FAILED")

	where := func(g got) float64 {
		t.Helper()
		require.Equal(t, 200, g.status, "%s", g.body)
		return g.json["user"].(map[string]any)["business_id"].(float64)
	}
	require.Equal(t, 42.0, where(r.do("POST", login, "", `{"email":"ana@both.example","password":"`+webtest.Password+`"}`)))
	require.Equal(t, 43.0, where(r.do("POST", login, "", `{"email":"ana@both.example","password":"another password"}`)))
	r.refused(r.do("POST", login, "", `{"email":"ana@both.example","password":"another password","client_code":"acme"}`), 401, "INVALID_CREDENTIALS")

	one := "/api/v1/users/" + fmt.Sprint(number(other["id"]))
	r.made(r.do("PATCH", one, r.w.OtherAdmin, `{"password":"`+webtest.Password+`"}`), 200, "user")
	g := r.do("POST", login, "", `{"email":"ana@both.example","password":"`+webtest.Password+`"}`)
	r.refused(g, 409, "CLIENT_CODE_REQUIRED")
	require.Equal(t, []any{map[string]any{"code": "acme", "name": "Acme Logistics"}, map[string]any{"code": "other", "name": "Other Freight"}}, g.json["details"].(map[string]any)["clients"])
	g = r.do("POST", login, "", `{"email":"ana@both.example","password":"wrong password"}`)
	r.refused(g, 401, "INVALID_CREDENTIALS")
	require.NotContains(t, string(g.body), "acme")
	require.Equal(t, 43.0, where(r.do("POST", login, "", `{"email":"ana@both.example","password":"`+webtest.Password+`","client_code":"OTHER"}`)))

	// Where she no longer works does not count.
	r.made(r.do("PATCH", one, r.w.OtherAdmin, `{"enabled":false}`), 200, "user")
	require.Equal(t, 42.0, where(r.do("POST", login, "", `{"email":"ana@both.example","password":"`+webtest.Password+`"}`)))
	r.refused(r.do("POST", login, "", `{"email":"ana@both.example","password":"`+webtest.Password+`","client_code":"other"}`), 403, "ACCOUNT_DISABLED")
}
