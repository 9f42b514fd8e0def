package graphql

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Introspection (GraphQL, 4.2): nodes of the schema that are asked for field by
// field, since they lead to each other in circles.

// node is one object of introspection.
type node interface {
	typename() string
	// value is a member: a plain value, a node, or a list of nodes.
	value(name string, args map[string]any) any
}

// describe projects a node onto what is asked of it.
func (e *execution) describe(n node, group []*ast.Field) any {
	if n == nil {
		return nil
	}
	out := &ordered{values: map[string]any{}}
	for _, g := range e.collect(selections(group), n.typename()) {
		if e.nodes++; e.over() {
			return nil
		}
		f := g[0]
		if f.Name == "__typename" {
			out.set(f.Alias, n.typename())
			continue
		}
		switch v := n.value(f.Name, f.ArgumentMap(e.vars)).(type) {
		case node:
			out.set(f.Alias, e.describe(v, g))
		case []node:
			list := make([]any, 0, len(v))
			for _, x := range v {
				if e.over() {
					return nil
				}
				list = append(list, e.describe(x, g))
			}
			out.set(f.Alias, list)
		case string:
			e.nodes += len(v) / nodeText
			out.set(f.Alias, v)
		default:
			out.set(f.Alias, v)
		}
	}
	return out
}

// nodeText is how many bytes of text cost as much as a node.
const nodeText = 64

// over reports whether the operation has visited more of the schema than it may:
// the rest is left out, and the answer is an error.
func (e *execution) over() bool { return !e.unbounded && e.nodes > MaxNodes }

type schemaNode struct{ s *ast.Schema }

func (schemaNode) typename() string { return "__Schema" }

func (n schemaNode) value(name string, _ map[string]any) any {
	switch name {
	case "types":
		names := make([]string, 0, len(n.s.Types))
		for k := range n.s.Types {
			names = append(names, k)
		}
		slices.Sort(names)
		var out []node
		for _, k := range names {
			out = append(out, typeNode{n.s, n.s.Types[k]})
		}
		return out
	case "queryType":
		return typeNode{n.s, n.s.Query}
	case "mutationType":
		if n.s.Mutation != nil {
			return typeNode{n.s, n.s.Mutation}
		}
	case "directives":
		names := make([]string, 0, len(n.s.Directives))
		for k := range n.s.Directives {
			names = append(names, k)
		}
		slices.Sort(names)
		var out []node
		for _, k := range names {
			out = append(out, directiveNode{n.s, n.s.Directives[k]})
		}
		return out
	}
	return nil
}

// typeNamed is the node of a type by name; nil when there is none.
func typeNamed(s *ast.Schema, name any) node {
	text, _ := name.(string)
	if d := s.Types[text]; d != nil {
		return typeNode{s, d}
	}
	return nil
}

type typeNode struct {
	s *ast.Schema
	d *ast.Definition
}

func (typeNode) typename() string { return "__Type" }

func (n typeNode) value(name string, args map[string]any) any {
	switch name {
	case "kind":
		return string(n.d.Kind)
	case "name":
		return n.d.Name
	case "description":
		return text(n.d.Description)
	case "fields":
		if n.d.Kind != ast.Object && n.d.Kind != ast.Interface {
			return nil
		}
		out := []node{}
		for _, f := range n.d.Fields {
			if !strings.HasPrefix(f.Name, "__") {
				out = append(out, fieldNode{n.s, f})
			}
		}
		return out
	case "inputFields":
		if n.d.Kind != ast.InputObject {
			return nil
		}
		out := []node{}
		for _, f := range n.d.Fields {
			out = append(out, valueNode{n.s, f.Name, f.Description, f.Type, f.DefaultValue})
		}
		return out
	case "interfaces":
		if n.d.Kind == ast.Object || n.d.Kind == ast.Interface {
			return []node{}
		}
	case "enumValues":
		if n.d.Kind != ast.Enum {
			return nil
		}
		out := []node{}
		for _, v := range n.d.EnumValues {
			out = append(out, enumNode{v})
		}
		return out
	case "isOneOf":
		if n.d.Kind == ast.InputObject {
			return false
		}
	}
	return nil
}

// ref is the node of a type as it is used: lists and non-null wrap it.
func ref(s *ast.Schema, t *ast.Type) node {
	if t.NonNull {
		inner := *t
		inner.NonNull = false
		return wrapNode{"NON_NULL", ref(s, &inner)}
	}
	if t.Elem != nil {
		return wrapNode{"LIST", ref(s, t.Elem)}
	}
	return typeNode{s, s.Types[t.NamedType]}
}

type wrapNode struct {
	kind string
	of   node
}

func (wrapNode) typename() string { return "__Type" }

func (n wrapNode) value(name string, _ map[string]any) any {
	switch name {
	case "kind":
		return n.kind
	case "ofType":
		return n.of
	}
	return nil
}

type fieldNode struct {
	s *ast.Schema
	f *ast.FieldDefinition
}

func (fieldNode) typename() string { return "__Field" }

func (n fieldNode) value(name string, _ map[string]any) any {
	switch name {
	case "name":
		return n.f.Name
	case "description":
		return text(n.f.Description)
	case "args":
		return arguments(n.s, n.f.Arguments)
	case "type":
		return ref(n.s, n.f.Type)
	case "isDeprecated":
		return false
	}
	return nil
}

func arguments(s *ast.Schema, list ast.ArgumentDefinitionList) []node {
	out := []node{}
	for _, a := range list {
		out = append(out, valueNode{s, a.Name, a.Description, a.Type, a.DefaultValue})
	}
	return out
}

type valueNode struct {
	s           *ast.Schema
	name        string
	description string
	t           *ast.Type
	fallback    *ast.Value
}

func (valueNode) typename() string { return "__InputValue" }

func (n valueNode) value(name string, _ map[string]any) any {
	switch name {
	case "name":
		return n.name
	case "description":
		return text(n.description)
	case "type":
		return ref(n.s, n.t)
	case "defaultValue":
		if n.fallback != nil {
			return n.fallback.String()
		}
	case "isDeprecated":
		return false
	}
	return nil
}

type enumNode struct{ v *ast.EnumValueDefinition }

func (enumNode) typename() string { return "__EnumValue" }

func (n enumNode) value(name string, _ map[string]any) any {
	switch name {
	case "name":
		return n.v.Name
	case "description":
		return text(n.v.Description)
	case "isDeprecated":
		return false
	}
	return nil
}

type directiveNode struct {
	s *ast.Schema
	d *ast.DirectiveDefinition
}

func (directiveNode) typename() string { return "__Directive" }

func (n directiveNode) value(name string, _ map[string]any) any {
	switch name {
	case "name":
		return n.d.Name
	case "description":
		return text(n.d.Description)
	case "locations":
		out := make([]string, len(n.d.Locations))
		for i, l := range n.d.Locations {
			out[i] = string(l)
		}
		return out
	case "args":
		return arguments(n.s, n.d.Arguments)
	case "isRepeatable":
		return n.d.IsRepeatable
	}
	return nil
}

func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}
