package catalog

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/postern-io/postern/cloud/check"
)

// Whole is an operation as a tool of a server: its arguments are the operation's
// members, its description is the operation's. Members called id are called id in
// the tool's arguments, device_id for instance: a model confuses ids that are all
// called alike.
type Whole struct {
	Name, Operation, Category string
	ID                        string // what the member id is called
	Effect                    Effect // of a write; Usual is Overwrites where the risk is medium
	// Leave are members that the tool does not take.
	Leave []string
}

// ToolOf is the row of a Whole. It panics, at start, when there is no such operation.
func (c *Catalog) ToolOf(server string, w Whole) Tool {
	o := c.byName[w.Operation]
	if o == nil {
		panic("catalog: the tool " + w.Name + " stands for the unknown operation " + w.Operation)
	}
	t := Tool{whole: o, Name: w.Name, Title: titleOf(w.Name), Servers: []string{server}, Category: w.Category, Operation: w.Operation, Effect: w.Effect,
		Description: o.Summary + ". " + o.Description, Arguments: o.arguments(w)}
	if o.Risk == RiskMedium && t.Effect == Usual {
		t.Effect = Overwrites
	}
	t.Run = func(ctx context.Context, a Agent, given Given) (any, error) {
		values := given.Without("idempotency_key", w.ID)
		if id, ok := given[w.ID]; ok && w.ID != "" {
			values["id"] = id
		}
		return a.Do(ctx, w.Operation, values, given.Text("idempotency_key"))
	}
	return t
}

// WholeTools are the tools of a server that operations say of themselves, in the order
// of the table.
func (c *Catalog) WholeTools(server string) []Tool {
	var out []Tool
	for _, o := range c.list {
		if w := o.Tool; w.Name != "" {
			w.Operation = o.Name
			out = append(out, c.ToolOf(server, w))
		}
	}
	return out
}

// titleOf is a name as people read it: open_doors is Open doors.
func titleOf(name string) string {
	r := []rune(strings.ReplaceAll(name, "_", " "))
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// arguments are an operation's members as a tool takes them: those of its address
// first. A cursor is not among them: tools ask for pages.
func (o *Operation) arguments(w Whole) []Argument {
	var out []Argument
	for _, m := range o.Members() {
		if m.Name == "cursor" || slices.Contains(w.Leave, m.Name) {
			continue
		}
		a := argumentOf(m)
		if m.Name == "id" && w.ID != "" {
			a.Name = w.ID
		}
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Argument) int { return compareBool(b.Required, a.Required) })
	if o.Idempotent {
		out = append(out, Arguments("idempotency_key text 1..128 · repeat-safe key")...)
	}
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// argumentOf is a member as an argument: its kind by its type, its bounds by its
// tags. A value that is not plain is an object of the shape that its type has, which the
// operation checks.
func argumentOf(m Member) Argument {
	t := m.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	r := check.RulesOf(m.Field)
	a := Argument{Name: m.Name, Required: m.Required, Doc: m.Field.Tag.Get("doc"), Least: r.Min, Most: r.Max, Enum: r.Enum}
	format := r.Format
	if t.Kind() == reflect.Slice && t != rawType {
		a.List, t = true, t.Elem()
		a.Enum, format = r.Item.Enum, r.Item.Format
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	switch t.Kind() {
	case reflect.String:
		a.Kind = "text"
		if slices.Contains([]string{"date", "date-time", "time"}, format) {
			a.Kind = format
		}
	case reflect.Bool:
		a.Kind = "boolean"
	case reflect.Float32, reflect.Float64:
		a.Kind = "number"
	case reflect.Struct, reflect.Map, reflect.Interface:
		a.Kind = "object"
	case reflect.Slice:
		a.Kind = "object"
	default:
		a.Kind = "integer"
	}
	if a.Kind == "object" && t.Kind() != reflect.Interface && t != rawType {
		a.shape = string(shapeOf(t, true))
	}
	if a.Kind == "object" && !a.List {
		a.Least, a.Most = nil, nil
	}
	if r.Default != "" {
		a.Doc = strings.TrimPrefix(a.Doc+" · default "+r.Default, " · ")
	}
	return a
}
