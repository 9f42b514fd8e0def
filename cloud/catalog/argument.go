package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/internal/spelling"
)

// Argument is one argument of a tool.
type Argument struct {
	Name     string
	Kind     string // text, integer, number, boolean, date, date-time, time, object
	List     bool   // a list of that kind
	Required bool
	Enum     []string // the only values of a text or integer
	Doc      string
	// Least and Most bound a number, the length of a text in characters, or how
	// many items a list has. nil: no bound.
	Least, Most *float64

	shape string // JSON Schema of an object, or of each of a list, as its type says; "": any
}

// Arguments reads a table of arguments, one a line:
//
//	name[!] [list] kind [least..most] [· what it is]
//
// with ! for one that must be given, and a|b|c for a kind that is one of these
// values. It panics on anything else, at start.
func Arguments(tables ...string) []Argument {
	var out []Argument
	for _, table := range tables {
		for line := range strings.Lines(table) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, argument(line))
			}
		}
	}
	return out
}

var kinds = []string{"text", "integer", "number", "boolean", "date", "date-time", "time", "object"}

func argument(line string) Argument {
	words, doc, _ := strings.Cut(line, "·")
	parts := strings.Fields(words)
	bad := func() { panic("catalog: an argument cannot be read: " + line) }
	if len(parts) < 2 {
		bad()
	}
	a := Argument{Doc: strings.TrimSpace(doc)}
	a.Name, a.Required = strings.CutSuffix(parts[0], "!")
	parts = parts[1:]
	if parts[0] == "list" && len(parts) > 1 {
		a.List, parts = true, parts[1:]
	}
	switch kind := parts[0]; {
	case strings.Contains(kind, "|"):
		a.Enum, a.Kind = strings.Split(kind, "|"), "text"
		if _, err := strconv.Atoi(a.Enum[0]); err == nil {
			a.Kind = "integer"
		}
	case slices.Contains(kinds, kind):
		a.Kind = kind
	default:
		bad()
	}
	if len(parts) == 2 {
		low, high, ok := strings.Cut(parts[1], "..")
		if !ok {
			bad()
		}
		a.Least, a.Most = bound(low, bad), bound(high, bad)
	} else if len(parts) > 2 {
		bad()
	}
	return a
}

func bound(text string, bad func()) *float64 {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		bad()
	}
	return &n
}

const timePattern = `^([01]\d|2[0-3]):[0-5]\d$`

// write adds the schema of an argument to a document, in a fixed order.
func (a Argument) write(b *bytes.Buffer) {
	one := func(bounds bool) {
		if a.shape != "" {
			b.WriteString(strings.TrimSuffix(a.shape, "}"))
			return
		}
		kind, format := a.Kind, ""
		switch a.Kind {
		case "text", "time":
			kind = "string"
		case "date", "date-time":
			kind, format = "string", a.Kind
		}
		fmt.Fprintf(b, `{"type":%q`, kind)
		if format != "" {
			fmt.Fprintf(b, `,"format":%q`, format)
		}
		if a.Kind == "time" {
			fmt.Fprintf(b, `,"pattern":%s`, quoted(timePattern))
		}
		for i, v := range a.Enum {
			b.WriteString([]string{`,"enum":[`, `,`}[min(i, 1)])
			if a.Kind == "integer" {
				b.WriteString(v)
			} else {
				b.WriteString(quoted(v))
			}
		}
		if len(a.Enum) > 0 {
			b.WriteByte(']')
		}
		if bounds {
			low, high := "minimum", "maximum"
			if kind == "string" {
				low, high = "minLength", "maxLength"
			}
			a.bounds(b, low, high)
		}
	}
	if !a.List {
		one(true)
		if a.Doc != "" {
			b.WriteString(`,"description":` + quoted(a.Doc))
		}
		b.WriteByte('}')
		return
	}
	b.WriteString(`{"type":"array","items":`)
	one(false)
	b.WriteByte('}')
	a.bounds(b, "minItems", "maxItems")
	if a.Doc != "" {
		b.WriteString(`,"description":` + quoted(a.Doc))
	}
	b.WriteByte('}')
}

func (a Argument) bounds(b *bytes.Buffer, low, high string) {
	if a.Least != nil {
		fmt.Fprintf(b, `,%q:%v`, low, *a.Least)
	}
	if a.Most != nil {
		fmt.Fprintf(b, `,%q:%v`, high, *a.Most)
	}
}

// quoted is a text in JSON, with nothing escaped for HTML.
func quoted(s string) string {
	b, _ := encode(s) // a text always has an encoding
	return string(b)
}

// inputSchema is the JSON Schema of arguments as tools show it.
func inputSchema(list []Argument) json.RawMessage {
	if len(list) == 0 {
		return json.RawMessage(`{"type":"object","additionalProperties":false}`)
	}
	var b bytes.Buffer
	var required []string
	for i, a := range list {
		b.WriteString([]string{`{"type":"object","properties":{`, `,`}[min(i, 1)])
		b.WriteString(quoted(a.Name) + ":")
		a.write(&b)
		if a.Required {
			required = append(required, quoted(a.Name))
		}
	}
	b.WriteByte('}')
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + `]`)
	}
	b.WriteString(`,"additionalProperties":false}`)
	return b.Bytes()
}

// Problem is what is wrong with an argument.
type Problem struct {
	Argument string
	Rule     string // unknown, twice, missing, one_of, zero, kind, enum, least, most, shortest, longest, fewest, many, date, date-time, time
	Got      string // the value, shortened; "" when there is none to show
	Want     string // of the rule: a kind, the values, a bound, the nearest name
}

const maxProblems = 5

// Check reads arguments and says what is wrong with them, up to five problems.
// repeated is the path of a member that is there twice.
func (t *Tool) Check(raw json.RawMessage, repeated string) (map[string]any, []Problem) {
	var out []Problem
	if repeated != "" {
		out = append(out, Problem{Argument: repeated, Rule: "twice"})
	}
	given := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(&given)
	if _, more := d.Token(); err != nil || !errors.Is(more, io.EOF) {
		return nil, []Problem{{Argument: "arguments", Rule: "kind", Want: "object"}}
	}
	for _, a := range t.Arguments {
		v, ok := given[a.Name]
		switch {
		case v == nil:
			delete(given, a.Name)
			if a.Required {
				out = append(out, Problem{Argument: a.Name, Rule: "missing", Want: a.want()})
			}
		case ok:
			out = append(out, a.check(v)...)
			if path, found := zeroIn(a.Name, v); found && a.Name != t.Rows {
				out = append(out, Problem{Argument: path, Rule: "zero"})
			}
		}
	}
	var unknown []string
	for name := range given {
		if !slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown) // only those that are shown are compared with all names
	for _, name := range unknown[:min(len(unknown), maxProblems)] {
		out = append(out, Problem{Argument: short(name), Rule: "unknown", Want: t.nearest(name)})
	}
	if len(t.OneOf) > 0 && !slices.ContainsFunc(t.OneOf, func(group []string) bool {
		return !slices.ContainsFunc(group, func(name string) bool { return given[name] == nil })
	}) {
		var groups []string
		for _, g := range t.OneOf {
			groups = append(groups, strings.Join(g, " + "))
		}
		out = append(out, Problem{Argument: t.OneOf[0][0], Rule: "one_of", Want: strings.Join(groups, ", ")})
	}
	slices.SortFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Argument, b.Argument), cmp.Compare(a.Rule, b.Rule))
	})
	return given, out[:min(len(out), maxProblems)]
}

// zeroIn finds a text with the character U+0000 in a value: stops[2].address. That of a
// member's name is at its object.
func zeroIn(path string, v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return path, strings.ContainsRune(v, 0)
	case []any:
		for i, x := range v {
			if at, found := zeroIn(path+"["+strconv.Itoa(i)+"]", x); found {
				return at, true
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if strings.ContainsRune(name, 0) {
				return path, true
			}
			if at, found := zeroIn(path+"."+name, v[name]); found {
				return at, true
			}
		}
	}
	return "", false
}

// want is what an argument is, in words of schemas.
func (a Argument) want() string {
	kind := a.Kind
	if len(a.Enum) > 0 {
		kind = strings.Join(a.Enum, ", ")
	}
	if a.List {
		return "[" + kind + "]"
	}
	return kind
}

func (a Argument) check(v any) []Problem {
	if !a.List {
		if p := a.value(v, true); p != nil {
			return []Problem{*p}
		}
		return nil
	}
	list, ok := v.([]any)
	n := float64(len(list))
	switch {
	case !ok:
		return []Problem{{a.Name, "kind", show(v), a.want()}}
	case a.Least != nil && n < *a.Least:
		return []Problem{{a.Name, "fewest", strconv.Itoa(len(list)), number(*a.Least)}}
	case a.Most != nil && n > *a.Most:
		return []Problem{{a.Name, "many", strconv.Itoa(len(list)), number(*a.Most)}}
	}
	var out []Problem
	for i, x := range list {
		if p := a.value(x, false); p != nil {
			p.Argument = fmt.Sprintf("%s[%d]", a.Name, i)
			out = append(out, *p)
		}
		if len(out) == maxProblems {
			break
		}
	}
	return out
}

var clock = regexp.MustCompile(timePattern)

// value checks one value; bounds says whether the argument's are those of it.
func (a Argument) value(v any, bounds bool) *Problem {
	wrong := &Problem{a.Name, "kind", show(v), a.want()}
	var size float64
	switch a.Kind {
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong
		}
		return nil
	case "object":
		if _, ok := v.(map[string]any); !ok {
			return wrong
		}
		return nil
	case "integer", "number":
		n, ok := v.(json.Number)
		if !ok {
			return wrong
		}
		f, err := n.Float64()
		if _, whole := n.Int64(); err != nil || a.Kind == "integer" && whole != nil {
			return wrong
		}
		if len(a.Enum) > 0 && !slices.Contains(a.Enum, n.String()) {
			return &Problem{a.Name, "enum", n.String(), a.want()}
		}
		size = f
	default:
		s, ok := v.(string)
		if !ok {
			return wrong
		}
		if p := a.text(s); p != nil {
			return p
		}
		size = float64(utf8.RuneCountInString(s))
	}
	if !bounds {
		return nil
	}
	low, high := "least", "most"
	if a.Kind == "text" {
		low, high = "shortest", "longest"
	}
	switch {
	case a.Least != nil && size < *a.Least:
		return &Problem{a.Name, low, show(v), number(*a.Least)}
	case a.Most != nil && size > *a.Most:
		return &Problem{a.Name, high, show(v), number(*a.Most)}
	}
	return nil
}

func (a Argument) text(s string) *Problem {
	switch {
	case len(a.Enum) > 0 && !slices.Contains(a.Enum, s):
		return &Problem{a.Name, "enum", short(s), a.want()}
	case a.Kind == "date" && !parses(time.DateOnly, s), a.Kind == "date-time" && !parses(time.RFC3339, s) && !parses(time.DateTime, s), a.Kind == "time" && !clock.MatchString(s):
		return &Problem{a.Name, a.Kind, short(s), ""}
	}
	return nil
}

func parses(layout, s string) bool {
	_, err := time.Parse(layout, s)
	return err == nil
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// show is a value as it came, shortened.
func show(v any) string {
	b, err := encode(v)
	if err != nil {
		return ""
	}
	return short(string(b))
}

const maxShown = 40 // characters

func short(s string) string {
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return s
}

// nearest is the argument whose name is closest to an unknown one; "" when none
// is close.
func (t *Tool) nearest(name string) string {
	names := make([]string, len(t.Arguments))
	for i, a := range t.Arguments {
		names[i] = a.Name
	}
	return spelling.Nearest(name, names)
}
