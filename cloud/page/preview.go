package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// What agents propose comes from outside: texts are cut, lists end, and nothing
// in them changes how the rest of a page is read.
const (
	maxThings = 20  // that one call affects
	maxLeaves = 40  // of one value
	maxValue  = 300 // characters of one leaf
	maxDepth  = 6   // below which a value is one text
	maxChecks = 30
	maxPretty = 60_000 // characters of a value shown whole
)

// preview is a dry run as a page shows it.
type preview struct {
	Request  string // method and address
	Things   []thing
	More     int // things that are not shown
	Checks   []finding
	Warnings []string
	Known    bool // there is one

	whole string // all that people decide by, to compare
}

// thing is what a call would change.
type thing struct {
	Type, ID      string
	Rows          []change
	More          int  // rows that are not shown
	Made, Dropped bool // there is none before, or none after
}

// change is a member that would differ. A value that is not there is nil.
type change struct {
	Name          string
	Before, After *string
}

// same reports whether two changes say the same.
func (c change) same(o change) bool {
	equal := func(a, b *string) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
	return c.Name == o.Name && equal(c.Before, o.Before) && equal(c.After, o.After)
}

type finding struct {
	Name, Message string
	OK            bool
}

// leaf is a value with its path.
type leaf struct{ Name, Value string }

// same reports whether two dry runs say the same.
func (p preview) same(o preview) bool { return p.Known == o.Known && p.whole == o.whole }

// readPreview reads what a dry run said; what has another form is left out.
func readPreview(raw json.RawMessage) preview {
	var said struct {
		WouldChange struct {
			Method, Path string
			Affected     []struct {
				Type, Name    string
				ID            any
				Before, After any
			}
		} `json:"would_change"`
		Checks []struct {
			Check   string
			OK      bool
			Message *string
		}
		Warnings []any
	}
	if !decode(raw, &said) {
		return preview{}
	}
	p := preview{Known: true, whole: marshalJSON([]any{said.WouldChange.Affected, said.Checks, said.Warnings})}
	p.Request = strings.TrimSpace(outside(said.WouldChange.Method, 10) + " " + outside(said.WouldChange.Path, maxValue))
	for i, a := range said.WouldChange.Affected {
		if i == maxThings {
			p.More = len(said.WouldChange.Affected) - i
			break
		}
		t := thing{Type: words(a.Type), ID: inLine(a.ID), Made: a.Before == nil && a.After != nil, Dropped: a.After == nil && a.Before != nil}
		if a.Name != "" {
			t.ID = outside(a.Name, maxValue)
		}
		t.Rows, t.More = changes(a.Before, a.After)
		p.Things = append(p.Things, t)
	}
	for _, c := range said.Checks[:min(len(said.Checks), maxChecks)] {
		x := finding{Name: outside(c.Check, maxValue), OK: c.OK}
		if c.Message != nil {
			x.Message = outside(*c.Message, maxValue)
		}
		p.Checks = append(p.Checks, x)
	}
	for _, w := range said.Warnings[:min(len(said.Warnings), maxChecks)] {
		p.Warnings = append(p.Warnings, inLine(w))
	}
	return p
}

// changes are the leaves that differ, by name.
func changes(before, after any) (out []change, more int) {
	old, next := map[string]string{}, map[string]string{}
	flatten("", before, 0, old)
	flatten("", after, 0, next)
	names := map[string]bool{}
	for _, m := range []map[string]string{old, next} {
		for k := range m {
			if v, ok := next[k]; old[k] != v || !ok || !has(old, k) {
				names[k] = true
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		if len(out) == maxLeaves {
			return out, len(names) - maxLeaves
		}
		c := change{Name: words(k)}
		a, b := differing(old[k], next[k])
		if has(old, k) {
			c.Before = &a
		}
		if has(next, k) {
			c.After = &b
		}
		out = append(out, c)
	}
	return out, 0
}

// differing are two values as they are shown: of long ones what they have in
// common is left out at the front, so that the difference is seen.
func differing(a, b string) (string, string) {
	if x, y := []rune(a), []rune(b); len(x) > maxValue || len(y) > maxValue {
		n := 0
		for n < len(x) && n < len(y) && x[n] == y[n] {
			n++
		}
		if n -= 40; n > 0 {
			a, b = "…"+string(x[n:]), "…"+string(y[n:])
		}
	}
	return shorten(a), shorten(b)
}

func has(m map[string]string, k string) bool { _, ok := m[k]; return ok }

// leaves are the values of a JSON value by path, at most so many.
func leaves(raw json.RawMessage) []leaf {
	var v any
	if !decode(raw, &v) {
		return nil
	}
	return leavesOf(v, func(path, text string) leaf { return leaf{cmp.Or(words(path), "–"), shorten(text)} })
}

// leavesOf are the leaves of a value as show makes them, by path, at most so many.
func leavesOf(v any, show func(path, text string) leaf) (out []leaf) {
	all := map[string]string{}
	flatten("", v, 0, all)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if len(out) == maxLeaves {
			return append(out, leaf{"…", "+" + strconv.Itoa(len(all)-maxLeaves)})
		}
		out = append(out, show(path, all[path]))
	}
	return out
}

// flatten lists the leaves of a value by path: a.b[0].c.
func flatten(path string, v any, depth int, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		if depth < maxDepth && len(v) > 0 {
			for k, m := range v {
				flatten(strings.TrimPrefix(path+"."+k, "."), m, depth+1, out)
			}
			return
		}
	case []any:
		if depth < maxDepth && len(v) > 0 {
			for i, m := range v {
				flatten(path+"["+strconv.Itoa(i)+"]", m, depth+1, out)
			}
			return
		}
	case nil:
		if path == "" {
			return
		}
	}
	out[path] = whole(v)
}

// inLine is a value in a line.
func inLine(v any) string { return shorten(whole(v)) }

func whole(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case nil:
		return "–"
	}
	return marshalJSON(v)
}

func shorten(s string) string { return outside(s, maxValue) }

// pretty is a JSON value whole, with a line for each leaf.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if len(raw) == 0 || string(raw) == "null" || json.Indent(&b, raw, "", "  ") != nil {
		return ""
	}
	return outside(b.String(), maxPretty)
}

// words are a member's name or path as people read it.
func words(name string) string { return outside(strings.ReplaceAll(name, "_", " "), 80) }

func decode(raw json.RawMessage, v any) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return len(raw) > 0 && string(raw) != "null" && d.Decode(v) == nil
}

func marshalJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil { // it was read from JSON
		return ""
	}
	return strings.TrimSpace(b.String())
}

// outside is a text of others on a page of ours: so many characters at most,
// and none that is not seen but changes how the rest is read.
func outside(s string, most int) string {
	r := []rune(strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\u200c', r == '\u200d':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
	if len(r) > most {
		r = append(r[:most-1], '…')
	}
	return string(r)
}
