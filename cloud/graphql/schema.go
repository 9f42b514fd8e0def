package graphql

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// field is one root field with its operation.
type field struct {
	op   *catalog.Operation
	args map[string]string // argument → member
}

// writer makes the schema's text from Go types.
type writer struct {
	types   map[string]string // name → body of the definition
	named   map[reflect.Type]string
	uses    map[reflect.Type]int // how many operations answer with a type
	generic bool                 // types that are met belong to fields that are made from rows alone
}

// build makes the schema of a table, and the operations behind its root fields.
func build(c *catalog.Catalog) (*ast.Schema, map[string]field, string, error) {
	w := &writer{types: map[string]string{}, named: map[reflect.Type]string{}, uses: map[reflect.Type]int{}}
	roots := map[bool][]string{}
	fields := map[string]field{}
	list := slices.DeleteFunc(c.Operations(), func(o catalog.Operation) bool { return o.GraphQL == nil })
	slices.SortStableFunc(list, func(a, b catalog.Operation) int { // whose types have their names first
		return cmp.Compare(btoi(a.GraphQL.Plain), btoi(b.GraphQL.Plain))
	})
	for i := range list {
		w.uses[list[i].Out()]++
	}
	for i := range list {
		o := &list[i]
		w.generic = o.GraphQL.Plain
		f := field{op: o, args: map[string]string{}}
		line := "  " + comment(o.Summary) + "  " + o.GraphQL.Field + w.arguments(o, &f) + ": " + w.answer(o) + "\n"
		roots[o.GraphQL.Mutation] = append(roots[o.GraphQL.Mutation], line)
		fields[o.GraphQL.Field] = f
	}
	var b strings.Builder
	b.WriteString("scalar DateTime\nscalar Date\nscalar JSON\nscalar Long\n")
	for _, root := range []struct {
		name     string
		mutation bool
	}{{"Query", false}, {"Mutation", true}} {
		if lines := roots[root.mutation]; len(lines) > 0 {
			b.WriteString("\ntype " + root.name + " {\n" + strings.Join(lines, "") + "}\n")
		}
	}
	names := make([]string, 0, len(w.types))
	for n := range w.types {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		b.WriteString("\n" + w.types[n])
	}
	text := b.String()
	s, err := gqlparser.LoadSchema(&ast.Source{Name: "postern", Input: text})
	if err != nil {
		return nil, nil, text, fmt.Errorf("the schema is not one: %w", err)
	}
	delete(s.Directives, "defer") // the library's prelude has it; answers here come in one piece
	return s, fields, text, nil
}

func comment(s string) string { return fmt.Sprintf("%q\n", s) }

// besideFilter are the members that stand beside a filter.
var besideFilter = []string{"page", "per_page", "cursor", "sort"}

// arguments writes a root field's arguments: the input's members in camel case.
func (w *writer) arguments(o *catalog.Operation, f *field) string {
	var out []string
	if o.GraphQL.Input { // what is in the query stands beside it
		text := "(input: " + w.input(o.In()) + "!"
		for _, m := range o.Members() {
			if m.Place == "query" {
				f.args[camel(m.Name)] = m.Name
				text += ", " + camel(m.Name) + ": " + strings.TrimSuffix(w.typed(m.Type, m.Field, true), "!")
			}
		}
		return text + ")"
	}
	var filter strings.Builder
	for _, m := range o.Members() {
		if m.Field.Tag.Get("graphql") == "-" {
			continue
		}
		t := strings.TrimSuffix(w.typed(m.Type, m.Field, true), "!")
		if o.GraphQL.Filter != "" && !slices.Contains(besideFilter, m.Name) {
			filter.WriteString("  " + m.Name + ": " + t + "\n")
			continue
		}
		name := camel(m.Name)
		f.args[name] = m.Name
		if m.Required {
			t += "!"
		}
		out = append(out, name+": "+t)
	}
	if o.GraphQL.Filter != "" {
		w.types[o.GraphQL.Filter] = "input " + o.GraphQL.Filter + " {\n" + filter.String() + "}\n"
		out = slices.Insert(out, 0, "filter: "+o.GraphQL.Filter)
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// answer is the type of a root field.
func (w *writer) answer(o *catalog.Operation) string {
	g := o.GraphQL
	t := o.Out()
	name := "JSON"
	if g.Pick != "" {
		t = member(t, g.Pick)
	}
	if !g.JSON {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case g.Type != "":
			w.named[t] = g.Type
		case g.Plain && w.named[t] == "" && w.uses[t] == 1 && strings.HasSuffix(t.Name(), "Output"): // an answer of its own and no thing
			w.named[t] = upper(g.Field) + "Result"
		}
		name = strings.TrimSuffix(w.typed(t, reflect.StructField{}, false), "!")
	}
	if g.Nullable {
		return name
	}
	return name + "!"
}

// member is the type of a struct's member by its name in JSON.
func member(t reflect.Type, name string) reflect.Type {
	for _, f := range reflect.VisibleFields(t) {
		if n, _, _ := strings.Cut(f.Tag.Get("json"), ","); n == name {
			return f.Type
		}
	}
	panic("graphql: " + t.String() + " has no member " + name)
}

var (
	raw       = reflect.TypeFor[json.RawMessage]()
	money     = reflect.TypeFor[cloud.Money]()
	marshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// typed is the GraphQL type of a Go type, with "!" where it is never null. The
// tag graphql names another scalar; "!" alone says that what looks as if it could
// be null never is.
func (w *writer) typed(t reflect.Type, f reflect.StructField, input bool) string {
	null := ""
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	} else if !input && f.Tag.Get("price") != "true" && !strings.Contains(f.Tag.Get("json"), ",omit") {
		null = "!"
	}
	if s := f.Tag.Get("graphql"); s == "!" {
		f.Tag = ""
		return strings.TrimSuffix(w.typed(t, f, input), "!") + "!"
	} else if strings.HasSuffix(s, "!") {
		return s
	} else if s != "" {
		return s + null
	}
	switch {
	case t == raw || t.Kind() == reflect.Interface || t.Kind() == reflect.Map:
		return "JSON"
	case t.Kind() == reflect.Struct && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)):
		return "DateTime" + null
	case t == money:
		return "Float" + null
	}
	switch t.Kind() {
	case reflect.Bool:
		return "Boolean" + null
	case reflect.String:
		if l, ok := reflect.Zero(t).Interface().(interface{ Values() []string }); ok {
			return w.enum(t, l.Values()) + null
		}
		return "String" + null
	case reflect.Float32, reflect.Float64:
		return "Float" + null
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice {
			null = strings.TrimSuffix(null, "!") // nil is null
		}
		return "[" + strings.TrimSuffix(w.typed(t.Elem(), reflect.StructField{}, input), "!") + "!]" + null
	case reflect.Struct:
		if input {
			return w.input(t)
		}
		return w.object(t) + null
	}
	return "Int" + null // every other kind of our types is a whole number
}

// object defines an output type and gives its name.
func (w *writer) object(t reflect.Type) string {
	name := w.name(t, "")
	if _, ok := w.types[name]; ok {
		return name
	}
	w.types[name] = "" // types may hold themselves
	w.types[name] = "type " + name + " {\n" + w.members(t, false) + "}\n"
	return name
}

// enum defines the values of a type and gives its name.
func (w *writer) enum(t reflect.Type, values []string) string {
	name := w.name(t, "")
	w.types[name] = "enum " + name + " {\n  " + strings.Join(values, "\n  ") + "\n}\n"
	return name
}

func (w *writer) input(t reflect.Type) string {
	name := w.name(t, "Input")
	if _, ok := w.types[name]; ok {
		return name
	}
	w.types[name] = ""
	w.types[name] = "input " + name + " {\n" + w.members(t, true) + "}\n"
	return name
}

func (w *writer) members(t reflect.Type, input bool) string {
	var b strings.Builder
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" || !isShown(t, f) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		kind := w.typed(f.Type, f, input)
		if input && f.Tag.Get("required") == "true" && f.Tag.Get("graphql") == "" && !isRow(t) { // a type of its own says it itself
			kind = strings.TrimSuffix(kind, "!") + "!"
		}
		if d := f.Tag.Get("doc"); d != "" {
			b.WriteString("  " + comment(d))
		}
		b.WriteString("  " + name + ": " + kind + "\n")
	}
	return b.String()
}

// isRow reports whether a type reads itself: the elements of lists of which each is refused by
// itself, so that what is missing in one is no error of the others.
func isRow(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// isShown reports whether a promoted field has no named struct around it.
func isShown(t reflect.Type, f reflect.StructField) bool {
	for depth := 1; depth < len(f.Index); depth++ {
		if name, _, _ := strings.Cut(t.FieldByIndex(f.Index[:depth]).Tag.Get("json"), ","); name != "" {
			return false
		}
	}
	return true
}

// name gives a type a name of its own in the schema.
func (w *writer) name(t reflect.Type, suffix string) string {
	if n := w.named[t]; n != "" {
		return n + suffix
	}
	if x, ok := reflect.Zero(t).Interface().(interface{ GraphQLName() string }); ok {
		w.named[t] = x.GraphQLName()
		return w.named[t] + suffix
	}
	n := strings.TrimSuffix(t.Name(), "Input")
	short := strings.TrimSuffix(strings.TrimSuffix(n, "Output"), "Body")
	if w.generic && short != n {
		short += "Result" // what it holds has the short name
	}
	n = upper(short)
	pkg := upper(catalog.Room(t.PkgPath()))
	if w.generic && pkg != "Cloud" && !strings.HasPrefix(n, pkg) {
		n = pkg + n
	}
	for other, name := range w.named {
		if name == n && other != t || n == "Query" || n == "Mutation" || n == "" {
			n = pkg + n
			break
		}
	}
	w.named[t] = n
	return n + suffix
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// camel turns snake case into camel case.
func camel(s string) string {
	parts := strings.Split(s, "_")
	for i := 1; i < len(parts); i++ {
		parts[i] = upper(parts[i])
	}
	return strings.Join(parts, "")
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
