package catalog

import (
	"slices"

	"github.com/postern-io/postern/cloud"
)

// areas are what scopes are about. Each has a read and a write scope, but for
// those of settings, which only has write.
var areas = []string{"orders", "approvals", "routes", "drivers", "webhooks", "storage", "labels", "uniorder", "customer_shipping", "wms", "datasets", "alliance",
	"address", "analytics", "lockers", "chat", "handoff", "boards"}

// Scopes lists every scope by name.
func Scopes() []string {
	out := []string{"settings:write"}
	for _, a := range areas {
		out = append(out, a+":read", a+":write")
	}
	slices.Sort(out)
	return out
}

var scopes = Scopes()

// KnownScope reports whether there is such a scope.
func KnownScope(s string) bool {
	_, ok := slices.BinarySearch(scopes, s)
	return ok
}

// lacking is the first of the operation's scopes that the caller does not have,
// "" when it has all. Only employees and tokens that were narrowed are held to
// scopes; a write scope holds the read scope of its area.
func lacking(o *Operation, c cloud.Caller) string {
	if c.Scopes == nil {
		return ""
	}
	for _, s := range o.Scopes {
		if !holds(c.Scopes, s) {
			return s
		}
	}
	return ""
}

// Both are the scopes that two sets hold, where nil is every scope.
func Both(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := []string{}
	for _, s := range scopes {
		if holds(a, s) && holds(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// Covers reports whether scopes hold one: a write scope holds the read scope of
// its area, and "*" holds all. No scopes hold none.
func Covers(have []string, want string) bool { return holds(have, want) }

// Holds reports whether a caller has all of some scopes.
func Holds(c cloud.Caller, scopes []string) bool {
	return lacking(&Operation{Scopes: scopes}, c) == ""
}

func holds(have []string, want string) bool {
	if slices.Contains(have, want) || slices.Contains(have, "*") {
		return true
	}
	if area, ok := cutSuffix(want, ":read"); ok {
		return slices.Contains(have, area+":write")
	}
	return false
}

func cutSuffix(s, suffix string) (string, bool) {
	if len(s) > len(suffix) && s[len(s)-len(suffix):] == suffix {
		return s[:len(s)-len(suffix)], true
	}
	return s, false
}
