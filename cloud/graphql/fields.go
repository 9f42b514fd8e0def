package graphql

import (
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud/catalog"
)

// Fields are the root fields of the schema, queries first, by name.
func (s *Server) Fields() []catalog.GraphQLField {
	var out []catalog.GraphQLField
	for _, root := range []*ast.Definition{s.schema.Query, s.schema.Mutation} {
		if root == nil {
			continue
		}
		list := slices.SortedFunc(slices.Values(root.Fields), func(a, b *ast.FieldDefinition) int { return strings.Compare(a.Name, b.Name) })
		for _, d := range list {
			if f, ok := s.fields[d.Name]; ok { // the library adds fields of its own
				out = append(out, s.described(d, f, root == s.schema.Mutation))
			}
		}
	}
	return out
}

func (s *Server) described(d *ast.FieldDefinition, f field, mutation bool) catalog.GraphQLField {
	out := catalog.GraphQLField{Operation: f.op, Name: d.Name, Mutation: mutation, Returns: d.Type.String(), Arguments: []catalog.GraphQLArgument{}}
	example := f.op.WorkedInput()
	about := map[string]string{}
	for _, m := range f.op.Members() {
		about[m.Name] = m.Field.Tag.Get("doc")
	}
	variables := map[string]any{}
	var declared, given []string
	for _, a := range d.Arguments {
		required := a.Type.NonNull && a.DefaultValue == nil
		out.Arguments = append(out.Arguments, catalog.GraphQLArgument{Name: a.Name, Type: a.Type.String(), Required: required, Description: about[f.args[a.Name]]})
		value, shown := example[f.args[a.Name]]
		if a.Name == "input" && f.op.GraphQL.Input {
			value, shown = s.only(a.Type, example), example != nil
		}
		if required && !shown {
			value, shown = s.sample(a.Name, a.Type), true
		}
		if shown {
			variables[a.Name] = value
		}
		if shown {
			declared, given = append(declared, "$"+a.Name+": "+a.Type.String()), append(given, a.Name+": $"+a.Name)
		}
	}
	kind := "query"
	if mutation {
		kind = "mutation"
	}
	out.Document = kind
	if len(declared) > 0 {
		out.Document += " (" + strings.Join(declared, ", ") + ")"
	}
	out.Document += " { " + d.Name
	if len(given) > 0 {
		out.Document += "(" + strings.Join(given, ", ") + ")"
	}
	out.Document += s.selectValues(d.Type, map[string]bool{}) + " }"
	if len(variables) > 0 {
		out.Variables = variables
	}
	return out
}

// sample is a value of an argument's type for which a row has no example: a
// text is the argument's name.
func (s *Server) sample(name string, t *ast.Type) any {
	d := s.schema.Types[t.Name()]
	switch {
	case t.Elem != nil:
		return []any{s.sample(name, t.Elem)}
	case d.Kind == ast.Enum:
		return d.EnumValues[0].Name
	case d.Kind == ast.InputObject:
		out := map[string]any{}
		for _, f := range d.Fields {
			if f.Type.NonNull {
				out[f.Name] = s.sample(f.Name, f.Type)
			}
		}
		return out
	}
	switch d.Name {
	case "Int", "Long", "Float":
		return 1
	case "Boolean":
		return true
	case "Date":
		return "2026-11-02"
	case "DateTime":
		return "2026-11-02T15:04:05Z"
	}
	return name
}

// only are the members of an example that an input type has: others stand
// beside it.
func (s *Server) only(t *ast.Type, example map[string]any) map[string]any {
	out := maps.Clone(example)
	maps.DeleteFunc(out, func(name string, _ any) bool { return s.schema.Types[t.Name()].Fields.ForName(name) == nil })
	return out
}

// selectValues selects the members of a type that are values, or where it has none but
// lists and objects, those of the first of them that has any.
func (s *Server) selectValues(t *ast.Type, open map[string]bool) string {
	d := s.schema.Types[t.Name()]
	if d.IsLeafType() {
		return ""
	}
	open[d.Name] = true
	var values []string
	objects := ""
	for _, f := range d.Fields {
		inner := s.schema.Types[f.Type.Name()]
		switch {
		case strings.HasPrefix(f.Name, "__"):
		case inner.IsLeafType():
			values = append(values, f.Name)
		case objects == "" && !open[inner.Name]:
			objects = f.Name + s.selectValues(f.Type, open)
		}
	}
	if objects != "" && len(values) < 4 {
		values = append(values, objects)
	}
	return " { " + strings.Join(values, " ") + " }"
}
