package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// part is one member of a body or one parameter.
type part struct {
	Name     string // dotted; [] after a list
	In       string // of parameters: path, query, header
	Kind     string // type and limits
	Doc      string
	Required bool
	Values   []string // the only ones
}

// Within is the name up to the member itself, Last the member's own.
func (p part) Within() string { return p.Name[:strings.LastIndexByte(p.Name, '.')+1] }
func (p part) Last() string   { return p.Name[len(p.Within()):] }

// schema is what is read of a JSON Schema.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 oneOrMore
	Format, Description  string
	Enum                 []any
	Minimum, Maximum     *float64
	MinLength, MaxLength *float64
	MinItems, MaxItems   *float64
	Items                *schema
	Properties           map[string]*schema
	Required             []string
	AnyOf                []*schema
	AdditionalProperties maybe
}

// oneOrMore is one type or several.
type oneOrMore []string

func (k *oneOrMore) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, (*[]string)(k))
	}
	*k = oneOrMore{""}
	return json.Unmarshal(b, &(*k)[0])
}

// maybe is a schema, or a word about whether there is one.
type maybe struct{ *schema }

func (m *maybe) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte("{")) {
		return nil
	}
	m.schema = &schema{}
	return json.Unmarshal(b, m.schema)
}

const deepest = 6 // levels of a body that are shown

// whole follows a reference and the one thing that may be null. Its names lead
// to it.
func (d *described) whole(s *schema) (at *schema, null bool, names string) {
	for s != nil {
		switch {
		case s.Ref != "":
			names = s.Ref
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.AnyOf) > 0:
			null = null || slices.ContainsFunc(s.AnyOf, func(x *schema) bool { return slices.Contains(x.Type, "null") })
			s = s.AnyOf[0]
		default:
			return s, null, names
		}
	}
	return &schema{}, null, names
}

// parts lists the members of a body, those that are required first.
func (d *described) parts(s *schema) []part {
	var out []part
	var walk func(s *schema, prefix string, open []string)
	walk = func(s *schema, prefix string, open []string) {
		at, _, ref := d.whole(s)
		if len(open) >= deepest || ref != "" && slices.Contains(open, ref) {
			return
		}
		open = append(slices.Clip(open), ref)
		names := slices.SortedFunc(maps.Keys(at.Properties), func(a, b string) int {
			x, y := slices.Contains(at.Required, a), slices.Contains(at.Required, b)
			if x != y {
				return map[bool]int{true: -1, false: 1}[x]
			}
			return cmp.Compare(a, b)
		})
		for _, name := range names {
			m := at.Properties[name]
			out = append(out, d.part(prefix+name, m, slices.Contains(at.Required, name)))
			walk(m, prefix+name+".", open)
		}
		if at.Items != nil {
			walk(at.Items, strings.TrimSuffix(prefix, ".")+"[].", open)
		}
		if at.AdditionalProperties.schema != nil {
			walk(at.AdditionalProperties.schema, prefix+"*.", open)
		}
	}
	walk(s, "", nil)
	return out
}

// part is one member with what its schema says.
func (d *described) part(name string, s *schema, required bool) part {
	out := part{Name: name, Required: required}
	if s != nil {
		out.Doc = s.Description
	}
	at, _, _ := d.whole(s)
	out.Kind, out.Doc = d.kind(s), cmp.Or(out.Doc, at.Description)
	if len(at.Enum) == 0 && at.Items != nil {
		at, _, _ = d.whole(at.Items)
	}
	for _, v := range at.Enum {
		if v != nil { // the kind says that it may be null
			out.Values = append(out.Values, fmt.Sprint(v))
		}
	}
	return out
}

// kind is a type in a few signs: "string 1–64", "array of object ≤ 20 | null".
func (d *described) kind(s *schema) string {
	at, null, _ := d.whole(s)
	list := slices.Clone(at.Type)
	if null {
		list = append(list, "null")
	}
	if len(list) == 0 && at.Description != "" {
		return "" // it says itself what it is
	}
	if len(list) == 0 {
		return "any"
	}
	if at.Items != nil {
		list[0] += " of " + d.kind(at.Items)
	}
	if at.Format != "" {
		list[0] = at.Format
	}
	list[0] += between(at.Minimum, at.Maximum) + between(at.MinLength, at.MaxLength) + between(at.MinItems, at.MaxItems)
	return strings.Join(list, " | ")
}

func between(low, high *float64) string {
	number := func(f *float64) string { return strconv.FormatFloat(*f, 'f', -1, 64) }
	switch {
	case low != nil && high != nil:
		return " " + number(low) + "–" + number(high)
	case low != nil:
		return " ≥ " + number(low)
	case high != nil:
		return " ≤ " + number(high)
	}
	return ""
}
