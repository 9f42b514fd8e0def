package catalog

import (
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

// Profiles lists the names of the profiles, sorted.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

// ScopesOf are the scopes of a profile, nil when there is none.
func ScopesOf(profile string) []string { return slices.Clone(profiles[profile]) }

// scopesOf is what a session is narrowed to; nil when it is not. A key of an
// employee has what both the key and the employee have.
func scopesOf(s *auth.Session) []string {
	var key []string
	switch {
	case len(s.Token.Scopes) > 0:
		key = s.Token.Scopes
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
