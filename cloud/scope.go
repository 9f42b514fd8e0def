package cloud

import (
	"slices"
	"strings"
)

// scopeAreas are what scopes are about. Each has a read and a write scope, but for
// settings, which only have the latter.
var scopeAreas = []string{"address", "alliance", "analytics", "approvals", "boards", "chat", "customer_shipping", "datasets", "drivers", "handoff", "labels", "lockers", "orders", "routes",
	"settings", "storage", "uniorder", "webhooks", "wms"}

// everyScope lists every scope by name.
var everyScope = func() (out []string) {
	for _, a := range scopeAreas {
		if a != "settings" {
			out = append(out, a+":read")
		}
		out = append(out, a+":write")
	}
	return out
}()

// AllScopes lists every scope by name.
func AllScopes() []string { return slices.Clone(everyScope) }

// KnownScope reports whether there is such a scope.
func KnownScope(s string) bool {
	_, ok := slices.BinarySearch(everyScope, s)
	return ok
}

// Scopes are the rights of an employee, a key or a grant.
type Scopes []string

// ItemValues are the scopes that there are.
func (Scopes) ItemValues() []string { return AllScopes() }

// HasScope reports whether scopes hold one: a write scope holds the read scope of
// its area, and "*" holds all. No scopes hold none.
func HasScope(have []string, want string) bool {
	if slices.Contains(have, want) || slices.Contains(have, "*") {
		return true
	}
	area, ok := strings.CutSuffix(want, ":read")
	return ok && area != "" && slices.Contains(have, area+":write")
}

// HasScope reports whether a call may do what a scope stands for. A call that is
// narrowed to no scopes may do everything that its account may.
func (c Caller) HasScope(scope string) bool { return c.Scopes == nil || HasScope(c.Scopes, scope) }
