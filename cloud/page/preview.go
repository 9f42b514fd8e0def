package page

import (
	"bytes"
	"encoding/json"
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
	Besides  string // kinds of things that change and of which nothing is shown
	More     int    // things that are not shown
	Checks   []finding
	Warnings []string
	Known    bool // there is one

	affected []effect
	whole    string // all that people decide by, to compare
}

// effect is what a call would change, as a dry run says it. Before and After are
// objects, nil where there is none.
type effect struct {
	Type, Name    string
	Kind          string // of an exception: its type
	ID            any
	Before, After any
}

// thing is what a call would change, in words.
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
			Affected     []effect
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
	p.affected = said.WouldChange.Affected[:min(len(said.WouldChange.Affected), maxThings)]
	p.More = len(said.WouldChange.Affected) - len(p.affected)
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

// differing are two values as they are shown, nil for none: of long ones what they have
// in common is left out at the front, so that the difference is seen.
func differing(a, b *string) (x, y *string) {
	cut := 0
	if a != nil && b != nil {
		k, l := []rune(*a), []rune(*b)
		for len(k) > maxValue || len(l) > maxValue {
			if cut == len(k) || cut == len(l) || k[cut] != l[cut] {
				break
			}
			cut++
		}
	}
	show := func(s *string) *string {
		if s == nil {
			return nil
		}
		text := *s
		if cut > 40 {
			text = "…" + string([]rune(text)[cut-40:])
		}
		text = shorten(text)
		return &text
	}
	return show(a), show(b)
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
