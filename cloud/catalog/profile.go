package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

// profiles are named sets of scopes that a key is narrowed to.
var profiles = map[string][]string{
	"ops-readonly":      {"orders:read", "labels:read", "routes:read", "drivers:read", "analytics:read", "address:read", "approvals:read"},
	"support":           {"orders:read", "analytics:read", "address:read", "approvals:read"},
	"ops-write":         {"orders:read", "orders:write", "labels:read", "labels:write", "routes:read", "routes:write", "drivers:read", "analytics:read", "address:read", "approvals:read", "approvals:write"},
	"wms-readonly":      {"wms:read", "orders:read"},
	"datasets-readonly": {"datasets:read"},
	"alliance-readonly": {"alliance:read"},
	"full":              {"*"},
}

// Profiles are the names of all profiles, those that hold least first.
func Profiles() []string {
	return slices.SortedFunc(maps.Keys(profiles), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b))
	})
}

func size(profile string) int {
	if slices.Contains(profiles[profile], "*") {
		return len(cloud.AllScopes())
	}
	return len(profiles[profile])
}

// ProfileScopes are the scopes of a profile, ["*"] for all; nil when there is
// no such profile.
func ProfileScopes(name string) []string { return slices.Clone(profiles[name]) }

// SameResource reports whether two addresses are the same tool server, which has
// two of them, or the same.
func SameResource(a, b string) bool {
	baseA, serverA := serverAt(a)
	baseB, serverB := serverAt(b)
	return baseA == baseB && serverA == serverB
}

// serverAt is the deployment and the tool server that an address is of; an
// address of none is its own deployment.
func serverAt(address string) (base, server string) {
	long := 0
	base = address
	for _, x := range ToolServers() {
		for _, path := range []string{x.Path, strings.TrimPrefix(x.Path, "/api")} {
			if rest, ok := strings.CutSuffix(address, path); ok && len(path) > long {
				long, base, server = len(path), rest, x.ID
			}
		}
	}
	return base, server
}

// goodAt reports whether a token lets in at an address. One of the
// authorization server is good at the server that is its audience, or at all of
// them where that is the whole deployment, and its refresh tokens nowhere
// (RFC 8707).
func goodAt(t cloud.Token, resource string) bool {
	if t.Grant == 0 && (t.Kind == "" || t.Kind == cloud.SetupToken || t.Kind == cloud.PassToken) && t.Audience == "" {
		return true
	}
	if t.Kind != cloud.AccessToken || t.Audience == "" {
		return false
	}
	base, server := serverAt(resource)
	return server != "" && t.Audience == base || SameResource(resource, t.Audience)
}

// SessionHolds reports whether a session has all of some scopes.
func SessionHolds(s auth.Session, scopes ...string) bool {
	return Holds(cloud.Caller{Scopes: scopesOf(&s)}, scopes)
}

// scopesOf is what a session is narrowed to; nil when it is not. A key of an
// employee has what both the key and the employee have.
func scopesOf(s *auth.Session) []string {
	var key []string
	switch {
	case len(s.Token.Scopes) > 0 || s.Token.Grant != 0: // a grant of nothing is no grant of everything
		key = append([]string{}, s.Token.Scopes...)
	case s.Token.Profile != "":
		key = append([]string{}, profiles[s.Token.Profile]...) // of an unknown one: nothing
	}
	switch {
	case s.Account.Type != cloud.ClientEmployee:
		return slices.Clone(key)
	case key == nil:
		return append([]string{}, s.Account.Permissions...)
	}
	return Intersect(key, append([]string{}, s.Account.Permissions...))
}
