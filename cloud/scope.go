package cloud

import (
	"slices"
	"strings"
)

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
