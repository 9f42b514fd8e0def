package oauth

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
)

// RFC 8414, 9728: what is described is what is served.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.do("GET", serverPath, "", "")
	require.Equal(t, 200, m.status)
	require.Equal(t, "application/json", m.header("Content-Type"))
	require.Equal(t, "*", m.header("Access-Control-Allow-Origin"))
	require.Equal(t, base, m.json["issuer"])
	require.Equal(t, []any{"S256"}, m.json["code_challenge_methods_supported"])
	require.Equal(t, []any{"none"}, m.json["token_endpoint_auth_methods_supported"])
	require.Equal(t, true, m.json["authorization_response_iss_parameter_supported"])
	require.Equal(t, true, m.json["client_id_metadata_document_supported"])
	served := map[string]bool{AuthorizePath: true} // a page
	for _, x := range r.s.Routes() {
		served[x.Path] = true
	}
	for _, n := range []string{"authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"} {
		require.True(t, served[strings.TrimPrefix(m.text(n), base)], n)
	}
	for path, name := range map[string]string{"": "Postern", "/mcp": "Operations tools", "/mcp/developer": "Developer tools", "/api/mcp": "Operations tools", "/api/mcp/developer": "Developer tools", "/mcp/lockers": "Locker tools", "/api/mcp/lockers": "Locker tools"} {
		p := r.do("GET", "/.well-known/oauth-protected-resource"+path, "", "")
		require.Equal(t, 200, p.status)
		require.Equal(t, "public, max-age=3600", p.header("Cache-Control"))
		require.Equal(t, "*", p.header("Access-Control-Allow-Origin"))
		require.Equal(t, map[string]any{"resource": base + path, "authorization_servers": []any{base}, "bearer_methods_supported": []any{"header"}, "resource_name": name,
			"scopes_supported":       []any{"orders:read", "labels:read", "routes:read", "drivers:read", "analytics:read", "address:read", "approvals:read"},
			"resource_documentation": base + "/llms.txt"}, p.json)
		require.Equal(t, base+path, resourceOf(base, p.text("resource")))
	}
	require.NotContains(t, everyday(), "offline_access")
	for _, s := range everyday() {
		require.True(t, cloud.KnownScope(s))
	}
	none := New(Config{Store: r.db, BaseURL: base})
	require.False(t, none.describe(base).Documents)
}

func TestMethods(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, x := range r.s.Routes() {
		good, bad := "GET", "POST"
		if !strings.HasPrefix(x.Path, "/.well-known/") {
			good, bad = bad, good
		}
		for _, m := range []string{bad, "PUT", "DELETE", "PATCH"} {
			a := r.do(m, x.Path, "", "")
			require.Equal(t, 405, a.status, x.Path)
			require.Contains(t, a.header("Allow"), good)
		}
		a := r.do("OPTIONS", x.Path, "", "")
		require.Equal(t, 204, a.status)
		require.Equal(t, good, a.header("Access-Control-Allow-Methods"))
		require.Contains(t, a.header("Access-Control-Allow-Headers"), "MCP-Protocol-Version")
		require.Empty(t, a.header("Access-Control-Allow-Credentials"))
	}
}

// Only a name of the loopback is believed.
func TestBase(t *testing.T) {
	t.Parallel()
	at := func(s *Service, host string) string {
		var req fasthttp.Request
		req.SetRequestURI("/")
		req.Header.SetHost(host)
		var ctx fasthttp.RequestCtx
		ctx.Init(&req, &net.TCPAddr{}, nil)
		return s.Base(&ctx)
	}
	s := New(Config{})
	for host, want := range map[string]string{"localhost": "localhost", "LOCALHOST:8080": "localhost:8080", "127.0.0.1:8080": "127.0.0.1:8080", "127.9.9.9": "127.9.9.9", "[::1]:8080": "[::1]:8080", "[::1]": "[::1]",
		"evil.example": "", "localhost.evil.example": "", "127.0.0.1.evil.example:80": "", "10.0.0.1": "", "localhost:80@evil.example": "", "localhost:99999999": "", "127.0.0.1:80/x": "", "localhost:": "", "": ""} {
		if want == "" {
			want = "0.0.0.0:0" // the connection's own, in this test
		}
		require.Equal(t, "http://"+want, at(s, host), host)
	}
	for _, configured := range []string{base, base + "/", "https://X.Example:443"} {
		require.Equal(t, base, at(New(Config{BaseURL: configured}), "localhost"))
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{base: base, base + "/": base, "HTTPS://X.Example/mcp": base + "/mcp", base + ":443/mcp/": base + "/mcp", base + "/api/mcp/developer": base + "/api/mcp/developer",
		base + "/mcp?x": "", base + "/mcp#": "", base + "/mcp#x": "", "http://x.example/mcp": "", base + "/MCP": "", base + ":8443/mcp": "", base + ".evil/mcp": "", "https://u@x.example/mcp": "",
		base + "/mcp//": "", base + "/%6dcp": "", base + "/other": "", "/mcp": "", "": "", "x": "", "https:///mcp": "", base + "/mcp?": ""} {
		require.Equal(t, want, resourceOf(base, raw), raw)
	}
	require.Equal(t, "http://[::1]:9/mcp", resourceOf("http://[::1]:9", "http://[::1]:9/mcp"))
}

// RFC 7591: public clients only, whose answer says what holds.
func TestRegister(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ask := func(body string) reply {
		r.unlimited()
		return r.do("POST", RegisterPath, "application/json; charset=utf-8", body)
	}
	a := ask(`{"client_name":"Desk \u202eevil\u0000\nname","redirect_uris":["https://desk.example/cb","http://localhost:1/cb"],"token_endpoint_auth_method":"client_secret_basic","grant_types":["authorization_code","implicit"],"scope":"x","more":1}`)
	require.Equal(t, 201, a.status, a.body)
	require.Equal(t, "no-store", a.header("Cache-Control"))
	require.Equal(t, "Desk evil name", a.text("client_name"))
	require.Equal(t, "none", a.text("token_endpoint_auth_method"))
	require.Equal(t, []any{"authorization_code", "refresh_token"}, a.json["grant_types"])
	require.Equal(t, []any{"https://desk.example/cb", "http://localhost:1/cb"}, a.json["redirect_uris"])
	require.NotContains(t, a.json, "client_secret")
	require.NotEqual(t, a.text("client_id"), ask(`{"redirect_uris":["https://desk.example/cb"]}`).text("client_id"))
	require.Len(t, []rune(ask(`{"redirect_uris":["https://a.example/"],"client_name":"`+strings.Repeat("é", 500)+`"}`).text("client_name")), maxName)
	for body, want := range map[string]string{
		`{}`: InvalidRedirect, `{"redirect_uris":[]}`: InvalidRedirect, `{"redirect_uris":["http://desk.example/cb"]}`: InvalidRedirect, `{"redirect_uris":["javascript:alert(1)"]}`: InvalidRedirect,
		`{"redirect_uris":["desk://cb"]}`: InvalidRedirect, `{"redirect_uris":["https://a.example/#f"]}`: InvalidRedirect, `{"redirect_uris":["/x"]}`: InvalidRedirect,
		`{"redirect_uris":["https://u:p@a.example/"]}`: InvalidRedirect, fmt.Sprintf(`{"redirect_uris":[%s"https://a.example/"]}`, strings.Repeat(`"https://a.example/",`, 10)): InvalidRedirect,
		`{"redirect_uris":["https://a.example/"],"grant_types":["implicit"]}`: InvalidMetadata, `{"redirect_uris":["https://a.example/"],"response_types":["token"]}`: InvalidMetadata,
		`{"redirect_uris":"https://a.example/"}`: InvalidMetadata, `[]`: InvalidMetadata, `{`: InvalidMetadata, ``: InvalidMetadata, `{"redirect_uris":["https://a.example/"],"client_name":7}`: InvalidMetadata,
	} {
		a := ask(body)
		require.Equal(t, 400, a.status, body)
		require.Equal(t, want, a.error(), body)
	}
	require.Equal(t, InvalidMetadata, r.do("POST", RegisterPath, "application/x-www-form-urlencoded", "redirect_uris=x").error())
	require.Contains(t, r.audits(), "oauth_client_registered")
	r.unlimited()
	for range r.s.cfg.Limits.Register {
		require.Equal(t, 201, r.do("POST", RegisterPath, "application/json", `{"redirect_uris":["https://a.example/"]}`).status)
	}
	a = r.do("POST", RegisterPath, "application/json", `{"redirect_uris":["https://a.example/"]}`)
	require.Equal(t, 429, a.status)
	require.NotEmpty(t, a.header("Retry-After"))
}

// A body that is no form, and clients that bring a password.
func TestTokenEndpointTakesForms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const form = "application/x-www-form-urlencoded"
	for _, path := range []string{TokenPath, RevokePath} {
		a := r.do("POST", path, "application/json", "{}")
		require.Equal(t, 400, a.status)
		require.Equal(t, InvalidRequest, a.error())
		require.Equal(t, InvalidRequest, r.do("POST", path, form, "a=%zz").error())
		require.Equal(t, InvalidRequest, r.do("POST", path, form, "a;b").error())
		a = r.do("POST", path, form, "grant_type=refresh_token", "Authorization", "Basic YTpi")
		require.Equal(t, 401, a.status)
		require.Equal(t, InvalidClient, a.error())
		require.Equal(t, "Basic", a.header("WWW-Authenticate"))
		require.Equal(t, "no-store", a.header("Cache-Control"))
	}
}
