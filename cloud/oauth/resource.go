package oauth

import (
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/mcp"
)

// Paths of the authorization server. The first two are pages.
const (
	AuthorizePath = "/oauth/authorize"
	ConsentPath   = "/oauth/consent"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"

	serverPath   = "/.well-known/oauth-authorization-server"
	resourcePath = "/.well-known/oauth-protected-resource"
)

// resource is what tokens can be bound to: everything that agents reach, or one
// endpoint.
type resource struct{ path, name string }

var resources = []resource{
	{"", "Postern"},
	{"/mcp", "Operations tools"},
	{"/mcp/developer", "Developer tools"},
	{"/mcp/lockers", "Locker tools"},
	{"/api/mcp", "Operations tools"},
	{"/api/mcp/developer", "Developer tools"},
	{"/api/mcp/lockers", "Locker tools"},
}

// everyday are the scopes that a client asks for when nothing says which.
func everyday() []string { return catalog.ProfileScopes(everydayProfile) }

const everydayProfile = "ops-readonly"

// Base is our own address as the caller reaches it, by the rule of the tool
// servers: tokens are bound to it. The configured one is in canonical form.
func (s *Service) Base(ctx *fasthttp.RequestCtx) string {
	if s.cfg.BaseURL == "" {
		return mcp.BaseURL(ctx, nil)
	}
	return Canonical(s.cfg.BaseURL)
}

// Canonical is an address of ours with scheme, host and port as they are
// compared, without a slash at the end.
func Canonical(address string) string {
	if is := canonical(address); is != "" {
		return is
	}
	return strings.TrimRight(address, "/")
}

// resourceOf is the one of our resources that an address names; "" when none.
func resourceOf(base, raw string) string {
	is := canonical(raw)
	if is == "" || !slices.ContainsFunc(resources, func(r resource) bool { return is == base+r.path }) {
		return ""
	}
	return is
}

// canonical is an address as it is compared: schemes and hosts have no case,
// the port of the scheme and a slash at the end say nothing. It is empty for
// what is no plain address.
func canonical(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#") {
		return ""
	}
	port := ":" + u.Port()
	if port == ":" || u.Scheme == "https" && port == ":443" || u.Scheme == "http" && port == ":80" {
		port = ""
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host + port + strings.TrimSuffix(u.EscapedPath(), "/")
}

// protected describes one resource (RFC 9728).
type protected struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	Name          string   `json:"resource_name"`
	Documentation string   `json:"resource_documentation"`
}

func describe(base string, r resource) protected {
	return protected{base + r.path, []string{base}, everyday(), []string{"header"}, r.name, base + "/llms.txt"}
}

// serverMetadata describes the server (RFC 8414).
type serverMetadata struct {
	Issuer             string   `json:"issuer"`
	Authorization      string   `json:"authorization_endpoint"`
	Token              string   `json:"token_endpoint"`
	Registration       string   `json:"registration_endpoint"`
	Revocation         string   `json:"revocation_endpoint"`
	Scopes             []string `json:"scopes_supported"`
	ResponseTypes      []string `json:"response_types_supported"`
	ResponseModes      []string `json:"response_modes_supported"`
	GrantTypes         []string `json:"grant_types_supported"`
	AuthMethods        []string `json:"token_endpoint_auth_methods_supported"`
	RevocationMethods  []string `json:"revocation_endpoint_auth_methods_supported"`
	ChallengeMethods   []string `json:"code_challenge_methods_supported"`
	Issues             bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
	Documents          bool     `json:"client_id_metadata_document_supported"`
	ProtectedResources []string `json:"protected_resources"` // RFC 9728 4
}

func (s *Service) describe(base string) serverMetadata {
	m := serverMetadata{Issuer: base, Authorization: base + AuthorizePath, Token: base + TokenPath, Registration: base + RegisterPath, Revocation: base + RevokePath,
		Scopes: everyday(), ResponseTypes: []string{"code"}, ResponseModes: []string{"query"}, GrantTypes: grantTypes, AuthMethods: []string{"none"},
		RevocationMethods: []string{"none"}, ChallengeMethods: []string{"S256"}, Issues: true, Documents: s.cfg.Fetch != nil}
	for _, r := range resources {
		m.ProtectedResources = append(m.ProtectedResources, base+r.path)
	}
	return m
}

var grantTypes = []string{"authorization_code", "refresh_token"}
