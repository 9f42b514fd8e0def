package rest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

const keysPath = "/api/v1/user/api-keys"

// made is the object under a name in a good answer.
func (r *rig) made(g got, status int, name string) map[string]any {
	r.t.Helper()
	require.Equal(r.t, status, g.status, "%s", g.body)
	require.Equal(r.t, true, g.json["result"])
	out, ok := g.json[name].(map[string]any)
	require.True(r.t, ok, "%s", g.body)
	return out
}

func number(v any) int64 { return int64(v.(float64)) }

// A key is shown once, does what its scopes say and nothing else, and ends.
func TestKeysOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	const cabinet = "/api/v1/smart-lockers/devices/88"

	g := r.do("POST", keysPath, admin, `{"name":"Nightly","scopes":["lockers:read","lockers:read"],"ip_allowlist":["0.0.0.0/0"]}`)
	key := r.made(g, 201, "api_key")
	token := g.json["token"].(string)
	require.Len(t, token, 64)
	require.Equal(t, []any{"lockers:read"}, key["scopes"])
	require.Equal(t, "ops-readonly", key["profile"])
	ends, err := time.Parse(time.RFC3339, key["expires_at"].(string))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().AddDate(1, 0, 0), ends, time.Minute)

	require.Equal(t, 200, r.do("GET", cabinet, token, "").status)
	r.refused(r.do("POST", cabinet+"/grids/8809/unblock", token, "{}"), 403, "FORBIDDEN")
	for _, op := range []string{"GET " + keysPath, "POST " + keysPath, "DELETE " + keysPath + "/1", "GET " + keysPath + "/1"} {
		var method, path string
		fmt.Sscan(op, &method, &path)
		r.refused(r.do(method, path, token, ""), 403, "LOGIN_REQUIRED")
	}

	one := fmt.Sprintf("%s/%d", keysPath, number(key["id"]))
	require.NotContains(t, string(r.do("GET", one, admin, "").body), "token")
	require.Equal(t, "Nightly", r.made(r.do("GET", one, admin, ""), 200, "api_key")["name"])
	for _, other := range []string{r.w.Tokens[cloud.ClientEmployee], r.w.Tokens[cloud.Broker]} {
		r.refused(r.do("GET", one, other, ""), 404, "API_KEY_NOT_FOUND")
		r.refused(r.do("DELETE", one, other, ""), 404, "API_KEY_NOT_FOUND")
		require.Equal(t, 0.0, r.do("GET", keysPath, other, "").json["total"])
	}
	require.Equal(t, 1.0, r.do("GET", keysPath, admin, "").json["total"])
	require.Equal(t, 200, r.do("DELETE", one, admin, "").status)
	r.refused(r.do("GET", cabinet, token, ""), 401, "TOKEN_INVALID")
	r.refused(r.do("DELETE", one, admin, ""), 404, "API_KEY_NOT_FOUND")
	require.Equal(t, []any{}, r.do("GET", keysPath, admin, "").json["api_keys"])

	g = r.do("POST", keysPath, admin, `{"name":"Default"}`)
	r.refused(r.do("GET", cabinet, g.json["token"].(string), ""), 403, "FORBIDDEN")
	g = r.do("POST", keysPath, admin, `{"name":"Elsewhere","profile":"full","ip_allowlist":["203.0.113.9"]}`)
	r.refused(r.do("GET", cabinet, g.json["token"].(string), ""), 403, "IP_NOT_ALLOWED")
}

func TestKeysThatCannotBeMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	admin := r.w.Tokens[cloud.ClientAdmin]
	far := time.Now().AddDate(5, 0, 2).Format(time.DateTime)
	for field, body := range map[string]string{
		"name": `{}`, "scopes.1": `{"name":"x","scopes":["orders:read","orders:all"]}`, "profile": `{"name":"x","profile":"root"}`,
		"ip_allowlist.0": `{"name":"x","ip_allowlist":["example.com"]}`, "expires_at": `{"name":"x","expires_at":"2001-01-01"}`} {
		g := r.do("POST", keysPath, admin, body)
		r.refused(g, 422, "VALIDATION_FAILED")
		require.Contains(t, g.json["errors"], field)
	}
	r.refused(r.do("POST", keysPath, admin, `{"name":"x","expires_at":"`+far+`"}`), 422, "VALIDATION_FAILED")
	for _, q := range []string{"?per_page=0", "?per_page=201", "?page=0", "?page=x", "?sort=hash"} {
		r.refused(r.do("GET", keysPath+q, admin, ""), 422, "VALIDATION_FAILED")
	}
	for range 100 {
		require.Equal(t, 201, r.do("POST", keysPath, admin, `{"name":"x"}`).status)
	}
	r.refused(r.do("POST", keysPath, admin, `{"name":"x"}`), 409, "KEY_LIMIT")
	g := r.do("GET", keysPath+"?per_page=60&page=2&sort=id", admin, "")
	require.Equal(t, 100.0, g.json["total"])
	list := g.json["api_keys"].([]any)
	require.Len(t, list, 40)
	require.Less(t, number(list[0].(map[string]any)["id"]), number(list[1].(map[string]any)["id"]))
	require.Equal(t, []any{}, r.do("GET", keysPath+"?page=1000000", admin, "").json["api_keys"], "beyond the end")
}

// What a key may not, it may not on any operation that has scopes.
func TestKeysAreNarrowedEverywhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	g := r.do("POST", keysPath, r.w.Tokens[cloud.ClientAdmin], `{"name":"x","scopes":["boards:read"]}`)
	token := g.json["token"].(string)
	tried := 0
	for _, op := range r.s.cfg.Catalog.Operations() {
		if len(op.Scopes) > 0 && op.Method != http.MethodOptions && admits(op, cloud.ClientAdmin) {
			tried++
			r.refused(r.do(op.Method, r.fill(op.Path), token, bodies[op.Name]), 403, "FORBIDDEN")
		}
	}
	require.GreaterOrEqual(t, tried, 2)
}

func admits(o catalog.Operation, t cloud.AccountType) bool {
	for _, x := range o.Types {
		if x == t {
			return true
		}
	}
	return false
}
