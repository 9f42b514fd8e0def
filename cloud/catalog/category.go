package catalog

import (
	"slices"
	"strings"
)

// Category is what tools are about, for programs and people that choose among them.
type Category struct{ Name, Title string }

// categories are those of agents' tools (mcp-ai 6), in the order in which they
// are shown, whether a tool stands in them or not.
var categories = []Category{
	{"tracking", "Where a parcel is"},
	{"orders", "Orders and what happens to them"},
	{"approvals", "Writes that wait for a person"},
	{"routes", "Routes and drivers"},
	{"labels", "Carriers' labels and rates"},
	{"address", "Addresses"},
	{"analytics", "Figures"},
	{"wms", "Warehouses"},
	{"datasets", "Sets of data"},
	{"alliance", "Businesses that deliver for each other"},
	{"uniorder", "Orders across services"},
	{"customer_shipping", "Shipping by customers"},
	{"storage", "Keeping things in lockers"},
	{"webhooks", "Webhook endpoints, their events and deliveries"},
	{"cabinets", "Cabinets, their doors and exceptions"},
	{"deliveries", "Deliveries into cabinets"},
	{"contractors", "Contractors and delivery companies"},
	{"chats", "Conversations about orders"},
	{"people", "People and partners of the business"},
	{"developer", "Building on the interface"},
	{"system", "The connection itself"},
}

func knownCategory(name string) bool {
	return slices.ContainsFunc(categories, func(c Category) bool { return c.Name == name })
}

// Categories are those that tools of a server stand in; "" is any server.
func (c *Catalog) Categories(server string) []Category {
	var out []Category
	for _, x := range categories {
		if slices.ContainsFunc(c.tools, func(t *Tool) bool { return t.Category == x.Name && t.on(server) }) {
			out = append(out, x)
		}
	}
	return out
}

func (t *Tool) on(server string) bool { return server == "" || slices.Contains(t.Servers, server) }

// maxRelated bounds what is shown beside a tool.
const maxRelated = 8

// Related are names of tools to consider beside one: those that its description
// names, then others of its category, on one of its servers.
func (c *Catalog) Related(t *Tool) []string {
	out, same := []string{}, []string{}
	for _, x := range c.tools {
		if x == t || x.Name == t.Name || !slices.ContainsFunc(t.Servers, func(s string) bool { return x.on(s) }) || slices.Contains(out, x.Name) {
			continue
		}
		if names(t.Description, x.Name) {
			out = append(out, x.Name)
		} else if x.Category == t.Category {
			same = append(same, x.Name)
		}
	}
	out = append(out, same...)
	return out[:min(len(out), maxRelated)]
}

// names reports whether a text has a name as a word of its own.
func names(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }), name)
}

// SideEffects says what a tool's call leaves behind.
func (t *Tool) SideEffects() string {
	var out []string
	switch {
	case t.Risk == RiskLow && t.Effect == Usual:
		return "None: it only reads."
	case t.Effect == Creates:
		out = append(out, "Adds something new.")
	case t.Effect == Overwrites:
		out = append(out, "Changes what is there; the same call again changes nothing more.")
	default:
		out = append(out, "Changes or ends what is there, which may not be undone.")
	}
	if t.Outside {
		out = append(out, "Sends something to people or systems outside.")
	}
	if slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.Name == "idempotency_key" }) {
		out = append(out, "With the same idempotency_key it is done once.")
	}
	return strings.Join(out, " ")
}

// SideEffects says what an operation's call leaves behind, where no tool says
// it in better words.
func (o *Operation) SideEffects() string {
	var out string
	switch {
	case !o.Writes():
		return "None: it only reads."
	case o.Risk == RiskLow:
		out = "Nothing that others rely on."
	case o.Risk == RiskMedium:
		out = "Changes what others rely on."
	default:
		out = "Opens, ends or shows what may not be undone."
	}
	if o.Idempotent {
		out += " With the same Idempotency-Key it is done once."
	}
	return out
}
