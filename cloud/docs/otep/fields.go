package otepdocs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/postern-io/postern/protocol/otep"
)

// Group is an object of the protocol.
type Group struct {
	Name   string // timeline, event, location, …
	Fields []Field
}

// Field is a member of one.
type Field struct {
	Name     string
	Type     string // for people who read code: string ≤ 64, one of a, b, …
	Of       string // the Group that its value or its items are of, if any
	Required bool   // of a producer
	Example  string // JSON from the sample, "" where that has none or a large one
}

// shapes are the protocol's objects: their Go types give the order of the
// members, the schema what is said about them.
var shapes = []struct {
	name string
	typ  reflect.Type
}{
	{"timeline", reflect.TypeFor[otep.Timeline]()}, {"subject", reflect.TypeFor[otep.Subject]()}, {"event", reflect.TypeFor[otep.Event]()},
	{"location", reflect.TypeFor[otep.Location]()}, {"source", reflect.TypeFor[otep.Source]()}, {"pod", reflect.TypeFor[otep.Proof]()},
	{"withdrawal", reflect.TypeFor[otep.Withdrawal]()}, {"file", reflect.TypeFor[otep.File]()}, {"reading", reflect.TypeFor[otep.Reading]()},
}

// rules is a JSON Schema as far as this package reads it.
type rules struct {
	Ref         string           `json:"$ref"`
	Type        schemaType       `json:"type"`
	Required    []string         `json:"required"`
	Properties  map[string]rules `json:"properties"`
	Defs        map[string]rules `json:"$defs"`
	Items       *rules           `json:"items"`
	AnyOf       []rules          `json:"anyOf"`
	Enum        []*string        `json:"enum"`
	Pattern     string           `json:"pattern"`
	Description string           `json:"description"`
	MaxLength   int              `json:"maxLength"`
	MaxItems    int              `json:"maxItems"`
	Minimum     *float64         `json:"minimum"`
	Maximum     *float64         `json:"maximum"`
}

// schemaType is the type of a value, but for null: a member that is null is as none.
type schemaType string

// UnmarshalJSON reads a type or a list of one and null.
func (t *schemaType) UnmarshalJSON(b []byte) error {
	var list []string
	if json.Unmarshal(b, &list) != nil {
		list = []string{""}
		if err := json.Unmarshal(b, &list[0]); err != nil {
			return err
		}
	}
	*t = ""
	for _, s := range list {
		if s != "null" {
			*t = schemaType(s)
		}
	}
	return nil
}

// given is what r says of a value that is not null.
func (r rules) given() rules {
	r.Enum = slices.DeleteFunc(slices.Clone(r.Enum), func(s *string) bool { return s == nil })
	r.AnyOf = slices.DeleteFunc(slices.Clone(r.AnyOf), rules.isNull)
	if len(r.AnyOf) == 1 {
		return r.AnyOf[0]
	}
	return r
}

// isNull holds for what takes null alone, which no other rule of the schema does.
func (r rules) isNull() bool {
	return r.Type == "" && r.Ref == "" && r.Items == nil && r.Enum == nil && r.AnyOf == nil
}

// fields lists the members of every object, with examples from a timeline.
func fields(timeline string) ([]Group, error) {
	var schema rules
	if err := json.Unmarshal(otep.Schema(), &schema); err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	examples := map[string]string{}
	var tl any
	if err := json.Unmarshal([]byte(timeline), &tl); err != nil {
		return nil, fmt.Errorf("read the sample: %w", err)
	}
	gather(examples, "timeline", tl)
	var out []Group
	for _, s := range shapes {
		def := schema
		if s.name != "timeline" {
			def = schema.Defs[s.name]
		}
		g := Group{Name: s.name}
		for i := range s.typ.NumField() {
			name, _, _ := strings.Cut(s.typ.Field(i).Tag.Get("json"), ",")
			r, ok := def.Properties[name]
			if !ok {
				continue
			}
			r = r.given()
			g.Fields = append(g.Fields, Field{Name: name, Type: r.words(), Of: r.group(), Required: slices.Contains(def.Required, name), Example: examples[s.name+"."+name]})
		}
		out = append(out, g)
	}
	return out, nil
}

// members tell which object stands where in a timeline.
var members = map[string]string{"events": "event", "telemetry": "reading", "files": "file", "withdrawals": "withdrawal"}

// gather notes the first short value of every member.
func gather(out map[string]string, group string, v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			gather(out, group, item)
		}
	case map[string]any:
		for name, value := range v {
			switch value.(type) {
			case map[string]any, []any:
				inner := name
				if m, ok := members[name]; ok {
					inner = m
				}
				gather(out, inner, value)
				continue
			}
			if b, err := json.Marshal(value); err == nil && out[group+"."+name] == "" {
				out[group+"."+name] = string(b)
			}
		}
	}
}

// group is the object that r is about.
func (r rules) group() string {
	if r.Items != nil {
		r = *r.Items
	}
	name := strings.TrimPrefix(r.Ref, "#/$defs/")
	for _, s := range shapes {
		if s.name == name {
			return name
		}
	}
	return ""
}

// longest is how many values of an enumeration are spelled out; codebook pages
// have the others.
const longest = 10

// words is r on one line.
func (r rules) words() string {
	var parts []string
	switch {
	case strings.HasSuffix(r.Ref, "/date_time"):
		parts = append(parts, "RFC 3339")
	case r.Ref != "":
		parts = append(parts, strings.TrimPrefix(r.Ref, "#/$defs/"))
	case r.Items != nil:
		parts = append(parts, "[ "+r.Items.words()+" ]")
	case len(r.Enum) > longest:
		parts = append(parts, "string of the codebook")
	case len(r.Enum) > 0:
		parts = append(parts, "string: "+strings.Join(values(r.Enum), " | "))
	case len(r.AnyOf) > 0:
		for _, a := range r.AnyOf {
			if w := a.words(); !slices.Contains(parts, w) {
				parts = append(parts, w)
			}
		}
		return strings.Join(parts, " | ")
	case r.Type != "":
		parts = append(parts, string(r.Type))
	default:
		parts = append(parts, "any")
	}
	switch {
	case r.Description != "":
		parts = append(parts, r.Description)
	case r.Pattern != "" && r.Ref == "":
		parts = append(parts, "/"+r.Pattern+"/")
	}
	if r.MaxLength > 0 {
		parts = append(parts, fmt.Sprintf("≤ %d", r.MaxLength))
	}
	if r.MaxItems > 0 {
		parts = append(parts, fmt.Sprintf("≤ %d", r.MaxItems))
	}
	if r.Maximum != nil && *r.Maximum >= 1<<53 { // what a number can hold at all
		r.Maximum = nil
	}
	if r.Minimum != nil && *r.Minimum <= -1<<53 {
		r.Minimum = nil
	}
	if r.Minimum != nil && r.Maximum != nil {
		parts = append(parts, fmt.Sprintf("%g … %g", *r.Minimum, *r.Maximum))
	} else if r.Minimum != nil {
		parts = append(parts, fmt.Sprintf("≥ %g", *r.Minimum))
	}
	return strings.Join(parts, ", ")
}

func values(enum []*string) []string {
	out := make([]string, len(enum))
	for i, v := range enum {
		out[i] = *v
	}
	return out
}
