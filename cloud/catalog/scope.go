package catalog

import "github.com/postern-io/postern/cloud"

// missingScope is the first of the operation's scopes that the caller does not have,
// "" when it has all. Only employees and tokens that were narrowed are held to
// scopes; a write scope holds the read scope of its area.
func missingScope(o *Operation, c cloud.Caller) string {
	if c.Scopes == nil {
		return ""
	}
	for _, s := range o.Scopes {
		if !cloud.HasScope(c.Scopes, s) {
			return s
		}
	}
	return ""
}

// Intersect are the scopes that two sets hold, where nil is every scope.
func Intersect(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := []string{}
	for _, s := range cloud.AllScopes() {
		if cloud.HasScope(a, s) && cloud.HasScope(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// Holds reports whether a caller has all of some scopes.
func Holds(c cloud.Caller, scopes []string) bool {
	return missingScope(&Operation{Scopes: scopes}, c) == ""
}
