package page

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// things are the effects of an operation in words, and the kinds of those of which
// nothing is shown, in one line.
func (m *maker) things(effects []effect) (out []thing, besides string) {
	var kinds []string
	for _, e := range effects {
		t := thing{Type: locale.Thing(m.f.Lang, e.Type), ID: outside(e.Name, maxValue), Made: e.Before == nil && e.After != nil, Dropped: e.After == nil && e.Before != nil}
		if t.ID == "" && e.ID != nil {
			t.ID = inLine(e.ID)
		}
		for _, d := range differences(e.Before, e.After) {
			c, kind := change{Name: pathWords(m.f.Lang, d.Path)}, m.stateKind(e.Type, d.Path)
			c.Before, c.After = differing(m.side(d.Path, kind, d.Before), m.side(d.Path, kind, d.After))
			switch {
			case slices.Contains(unsaid, d.Path) || slices.ContainsFunc(t.Rows, c.same): // a status by its number and by its code
			case len(t.Rows) == maxLeaves:
				t.More++
			default:
				t.Rows = append(t.Rows, c)
			}
		}
		if len(t.Rows) > 0 || t.Made || t.Dropped {
			out = append(out, t)
		} else if name := strings.TrimSpace(t.Type + " " + t.ID); !slices.Contains(kinds, name) {
			kinds = append(kinds, name)
		}
	}
	return out, strings.Join(kinds, ", ")
}

// effectsOf are the effects of a dry run as their JSON says them.
func effectsOf(list []cloud.Effect) []effect {
	out := make([]effect, len(list))
	for i, e := range list {
		out[i] = effect{Type: e.Type, Name: e.Name, ID: e.ID}
		for _, side := range []struct {
			from map[string]any
			to   *any
		}{{e.Before, &out[i].Before}, {e.After, &out[i].After}} {
			if o, err := asObject(side.from); err == nil && o != nil {
				*side.to = o
			}
		}
	}
	return out
}

// unsaid are members of what changes that say nothing to people: marks of what has no
// members to show, and the code of a status whose number is shown in words.
var unsaid = []string{"", "changed", "new", "order_status"}

// stateKind is the kind of the words of a thing's state, "" where a member is none.
func (m *maker) stateKind(thing, path string) string {
	if thing == "compartment" && path == "status" {
		return "grid"
	}
	if n := m.p.cfg.Catalog.Noun(locale.NounOf(thing)); n != nil && n.State == path {
		return n.States
	}
	return ""
}

// unbounded are members whose 0 is no bound.
var unbounded = []string{"writes_per_day", "money_per_day"}

// side is one side of a difference in words, nil for none. kind is that of a state's words.
func (m *maker) side(path, kind string, v any) *string {
	if _, ok := v.(absent); ok {
		return nil
	}
	s := m.valueInWords(path, v)
	if state, ok := v.(string); ok && kind != "" {
		s = stateShown(m.f, kind, state).Text
	}
	return &s
}

// valueInWords is a value of a member in words: states and choices by their words, records by
// their names, the elements of a list one after the other.
func (m *maker) valueInWords(path string, v any) string {
	list, ok := v.([]any)
	if !ok {
		return m.elementWords(path, v)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = m.elementWords(path, x)
	}
	if len(parts) == 0 {
		return m.f.T("approvals.nothing")
	}
	return strings.Join(parts, ", ")
}

func (m *maker) elementWords(path string, v any) string {
	if o, ok := v.(map[string]any); v == nil || ok && len(o) == 0 {
		return "–"
	}
	text := whole(v)
	for _, c := range m.parts[path] {
		if c.Value == text {
			return c.Text
		}
	}
	if len(text) > maxValue { // cut where it is shown, so that a difference is seen
		return text
	}
	s := m.refs.title(path, m.p.value(m.f, path, v, ""))
	if s.At != nil {
		return s.At.Full
	}
	return cmp.Or(s.Text, text)
}

// leaves are the values of an object in words, at most so many, secrets first. Members
// without a value are left out.
func (m *maker) leaves(v any) []leaf { return m.leavesWith(v, "", "{}", "[]") }

// leavesWith are leaves but for those with one of the texts that stand for none.
func (m *maker) leavesWith(v any, empty ...string) (out []leaf) {
	type part struct {
		path string
		v    any
	}
	var first, then []part
	walk("", v, 0, func(path string, v any) {
		if v == nil || slices.Contains(empty, whole(v)) {
			return
		}
		if isSecret(path) || lastPart(path) == "token" {
			first = append(first, part{path, v})
		} else {
			then = append(then, part{path, v})
		}
	})
	all := append(first, then...)
	for _, x := range all[:min(len(all), maxLeaves)] {
		most := maxValue
		if list, ok := x.v.([]any); ok { // a list is shown with all of its elements
			most *= min(max(len(list), 1), maxLeaves)
		}
		out = append(out, leaf{pathWords(m.f.Lang, x.path), outside(m.valueInWords(x.path, x.v), most)})
	}
	if len(all) > maxLeaves {
		out = append(out, leaf{"…", "+" + strconv.Itoa(len(all)-maxLeaves)})
	}
	return out
}

// leavesOf are the leaves of JSON.
func (m *maker) leavesOf(raw json.RawMessage) []leaf {
	var v any
	if !decode(raw, &v) {
		return nil
	}
	return m.leaves(v)
}
