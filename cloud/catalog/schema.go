package catalog

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// JSON Schemas (2020-12) of inputs and outputs come from the Go types and the
// rules of their members, which package check reads (check.Rules). Further tags
// add what is no rule:
//
//	doc:"…"          description
//	price:"true"     may be hidden
//	null:"true"      may be null, of lists
//
// Members of inputs are required when their rules say so, those of outputs unless
// they have omitempty. A pointer may be null.

// schemas collects the named types of a document.
type schemas struct {
	list  map[string]any
	named map[reflect.Type]string
}

func newSchemas() *schemas {
	return &schemas{list: map[string]any{}, named: map[reflect.Type]string{}}
}

type object = map[string]any

var (
	rawType   = reflect.TypeFor[json.RawMessage]()
	moneyType = reflect.TypeFor[cloud.Money]()
	textType  = reflect.TypeFor[encoding.TextMarshaler]()
)

// of is the schema of a type. input says whether members are only required when
// marked so.
func (s *schemas) of(t reflect.Type, input bool) object {
	switch {
	case t == rawType:
		return object{"description": "any JSON value", "type": []string{"object", "array", "string", "number", "boolean", "null"}}
	case t == moneyType:
		return object{"type": "number"}
	case t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && (t.Implements(textType) || reflect.PointerTo(t).Implements(textType)):
		return object{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return nullable(s.of(t.Elem(), input))
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": s.of(t.Elem(), input)}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem(), input)}
	case reflect.Struct:
		if t.Name() == "" {
			return s.members(t, input)
		}
		return object{"$ref": schemaRoot + s.name(t, input)}
	case reflect.Interface:
		return object{}
	}
	panic(fmt.Sprintf("catalog: %s has no schema", t))
}

// nullable lets a schema be null as well.
func nullable(o object) object {
	if kind, ok := o["type"].(string); ok {
		o["type"] = []string{kind, "null"}
		return o
	}
	if len(o) == 0 || o["$ref"] == nil {
		return o
	}
	return object{"anyOf": []any{o, object{"type": "null"}}}
}

// name registers a struct under a name of its own. Types with an input and an
// output side have both.
func (s *schemas) name(t reflect.Type, input bool) string {
	name := title(Room(t.PkgPath())) + title(strings.NewReplacer("[", "Of", "]", "", ".", "", "*", "", "/", "").Replace(t.Name()))
	if input && !strings.HasSuffix(name, "Input") {
		name += "Input"
	}
	if _, known := s.list[name]; !known {
		s.list[name] = nil // types may hold themselves
		s.list[name] = s.members(t, input)
	}
	return name
}

// Room is the package below cloud that a package belongs to, of other packages the
// last part of their path: what moves into a package of its own below another keeps
// its published name.
func Room(path string) string {
	if _, below, ok := strings.Cut(path, "/cloud/"); ok {
		room, _, _ := strings.Cut(below, "/")
		return room
	}
	return path[strings.LastIndex(path, "/")+1:]
}

// resultSchema is the schema of a tool's result by the type of its answer: the members at
// its root with their kinds. Deeper members stand in the tool's description: the
// schemas of all tools are read before the first is called.
func resultSchema(t reflect.Type) json.RawMessage {
	if schema, ok := resultSchemas.Load(t); ok {
		return schema.(json.RawMessage)
	}
	m := newSchemas().members(t, false)
	properties := object{}
	for name, p := range m["properties"].(object) {
		properties[name] = kindOf(p.(object))
	}
	m["properties"] = properties
	schema, _ := json.Marshal(m) // of maps and texts
	resultSchemas.Store(t, json.RawMessage(schema))
	return schema
}

// shapeOf is the schema of a type with the schemas of its members in their places. A type
// within itself is an object there.
func shapeOf(t reflect.Type, input bool) json.RawMessage {
	s := newSchemas()
	root := any(s.of(t, input))
	open := map[string]bool{}
	var inline func(x any) any
	inline = func(x any) any {
		switch x := x.(type) {
		case object:
			if ref, ok := x["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, schemaRoot)
				if open[name] {
					return object{"type": "object"}
				}
				open[name] = true
				defer delete(open, name)
				out := inline(s.list[name]).(object)
				for key, v := range x { // what a member says of it
					if key != "$ref" {
						out[key] = v
					}
				}
				return out
			}
			out := object{}
			for key, v := range x {
				out[key] = inline(v)
			}
			return out
		case []any:
			out := make([]any, len(x))
			for i, v := range x {
				out[i] = inline(v)
			}
			return out
		}
		return x
	}
	schema, _ := encode(inline(root)) // of maps, lists and texts
	return schema
}

// schemaRoot is where the named schemas of a document lie.
const schemaRoot = "#/components/schemas/"

// resultSchemas are results of resultSchema.
var resultSchemas sync.Map // of reflect.Type to json.RawMessage

// kindOf is a schema without what it says beyond the kinds of values.
func kindOf(p object) object {
	switch {
	case p["$ref"] != nil:
		return object{"type": "object"}
	case p["anyOf"] != nil:
		return object{"type": []string{"object", "null"}}
	case p["type"] != nil:
		return object{"type": p["type"]}
	}
	return object{}
}

func title(s string) string {
	if s == "" {
		return s
	}
	return string(unicode.ToUpper(rune(s[0]))) + s[1:]
}

// members is the schema of a struct's body.
func (s *schemas) members(t reflect.Type, input bool) object {
	properties, pairs := object{}, map[string][]string{}
	required := []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, ok := jsonName(f)
		if !ok || !promoted(t, f) || input && f.Tag.Get("path") != "" { // which GraphQL alone takes from the body
			continue
		}
		rules := check.RulesOf(f)
		properties[name] = described(s.of(f.Type, input), f, input)
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") || f.Tag.Get("price") == "true"
		if input && rules.Required || !input && !optional {
			required = append(required, name)
		}
		if input && rules.With != "" {
			pairs[name] = []string{rules.With}
		}
	}
	out := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	if len(pairs) > 0 {
		out["dependentRequired"] = pairs
	}
	return out
}

// jsonName is the member's name in a body; ok is false for one that has none.
func jsonName(f reflect.StructField) (name, options string, ok bool) {
	name, options, _ = strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" || f.Tag.Get("body") != "" {
		return "", "", false
	}
	if name == "" && (f.Anonymous || place(f) != "") {
		return "", "", false
	}
	if name == "" {
		name = f.Name
	}
	return name, options, true
}

// promoted reports whether a field shows in the body of t: those of embedded
// structs do, unless the embedding member has a name.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for depth := 1; depth < len(f.Index); depth++ {
		outer := t.FieldByIndex(f.Index[:depth])
		if name, _, _ := strings.Cut(outer.Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

// place is where a member comes from when it is not the body: path, query or
// header.
func place(f reflect.StructField) string {
	for _, in := range []string{"path", "query", "header"} {
		if f.Tag.Get(in) != "" {
			return in
		}
	}
	return ""
}

// described adds what the tags say.
func described(o object, f reflect.StructField, input bool) object {
	if f.Tag.Get("null") == "true" {
		o = nullable(o)
	}
	constrain(o, check.RulesOf(f), f.Type, input)
	if d := f.Tag.Get("doc"); d != "" {
		o["description"] = d
	}
	if f.Tag.Get("price") == "true" {
		o["x-price"] = true
	}
	return o
}
