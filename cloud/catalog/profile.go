package catalog

import (
	"cmp"
	"maps"
	"net/netip"
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

// KnownProfile reports whether there is such a profile.
func KnownProfile(name string) bool { _, ok := profiles[name]; return ok }

// Profiles are the names of all profiles, those that hold least first.
func Profiles() []string {
	return slices.SortedFunc(maps.Keys(profiles), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(a), size(b)), cmp.Compare(a, b))
	})
}

func size(profile string) int {
	if slices.Contains(profiles[profile], "*") {
		return len(scopes)
	}
	return len(profiles[profile])
}

// ProfileScopes are the scopes of a profile, ["*"] for all; nil when there is
// no such profile.
func ProfileScopes(name string) []string { return slices.Clone(profiles[name]) }

// goodAt reports whether a token lets in at an address. One of the
// authorization server is good at its audience and below, and its refresh
// tokens nowhere (RFC 8707).
func goodAt(t cloud.Token, resource string) bool {
	if t.Grant == 0 && t.Kind == "" && t.Audience == "" {
		return true
	}
	if t.Kind != cloud.AccessToken || t.Audience == "" {
		return false
	}
	rest, ok := strings.CutPrefix(resource, t.Audience)
	return ok && (rest == "" || rest[0] == '/')
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
	return Both(key, append([]string{}, s.Account.Permissions...))
}

// fromAllowed reports whether a token may be used from an address.
func fromAllowed(t cloud.Token, ip string) bool {
	if len(t.IPAllowlist) == 0 {
		return true
	}
	at, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	at = at.Unmap().WithZone("")
	for _, text := range t.IPAllowlist {
		if !strings.Contains(text, "/") {
			a, err := netip.ParseAddr(text)
			if err == nil && a == at {
				return true
			}
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err == nil && p.Contains(at) {
			return true
		}
	}
	return false
}
