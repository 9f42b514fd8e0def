package catalog

import (
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// areas are what scopes are about. Each has a read and a write scope, but for
// those of settings, which only has write.
var areas = []struct{ name, about string }{
	{"orders", "orders, their tracking and proofs"},
	{"approvals", "writes of agents that wait for a person"},
	{"routes", "routes and their stops"},
	{"drivers", "drivers"},
	{"webhooks", "webhook endpoints, their events and deliveries"},
	{"storage", "things kept in lockers"},
	{"labels", "carriers' labels and rates"},
	{"uniorder", "orders across services"},
	{"customer_shipping", "shipping by customers"},
	{"wms", "warehouses"},
	{"datasets", "sets of data"},
	{"alliance", "work for other businesses"},
	{"address", "addresses"},
	{"analytics", "figures"},
	{"lockers", "cabinets, compartments and deliveries into them"},
	{"chat", "talk about orders"},
	{"handoff", "goods handed from one to another"},
	{"boards", "route boards"},
}

// AboutScope says in a few words what a scope lets one do.
func AboutScope(scope string) string {
	if scope == "settings:write" {
		return "Read and change accounts and settings of the business"
	}
	area, verb, _ := strings.Cut(scope, ":")
	for _, a := range areas {
		if a.name == area {
			return map[string]string{"read": "Read ", "write": "Read and change "}[verb] + a.about
		}
	}
	return ""
}

// Scopes lists every scope by name.
func Scopes() []string {
	out := []string{"settings:write"}
	for _, a := range areas {
		out = append(out, a.name+":read", a.name+":write")
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
	for _, s := range scopes {
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
