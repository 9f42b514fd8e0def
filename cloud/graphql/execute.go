package graphql

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locale"
)

// execution is one operation while it runs.
type execution struct {
	s      *Server
	q      Request
	doc    *ast.QueryDocument
	vars   map[string]any
	errors []failed
	nodes  int // of introspection that were visited, and their texts
	// unbounded visits as many as there are: for documents of ours.
	unbounded bool

	replayed bool
	account  cloud.AccountID // that calls
}

// ordered is an object whose members come out in the order they were asked for.
type ordered struct {
	keys   []string
	values map[string]any
}

// MarshalJSON writes the members in order.
func (o *ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(k) // a name
		b.Write(key)
		b.WriteByte(':')
		v, err := json.Marshal(o.values[k])
		if err != nil {
			return nil, err
		}
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o *ordered) set(key string, v any) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = v
}

// run runs an operation's root fields one after the other. A field that must
// not be null and is makes the whole answer null; what mutations before it did is
// then the member done of its error's extensions.
func (e *execution) run(ctx context.Context, op *ast.OperationDefinition) any {
	out := &ordered{values: map[string]any{}}
	root := "Query"
	if op.Operation == ast.Mutation {
		root = "Mutation"
	}
	for _, g := range e.collect(op.SelectionSet, root) {
		f := g[0]
		var v any
		switch f.Name {
		case "__typename":
			v = root
		case "__schema":
			v = e.describe(schemaNode{e.s.schema}, g)
		case "__type":
			v = e.describe(typeNamed(e.s.schema, f.ArgumentMap(e.vars)["name"]), g)
		default:
			v = e.call(ctx, f, g)
		}
		if v == nil && f.Definition.Type.NonNull {
			if n := len(e.errors); n > 0 && root == "Mutation" && len(out.keys) > 0 {
				e.errors[n-1].Extensions["done"] = out
			}
			return nil
		}
		out.set(f.Alias, v)
	}
	return out
}

// call runs the operation behind a root field and projects its answer.
func (e *execution) call(ctx context.Context, f *ast.Field, group []*ast.Field) any {
	at := e.s.fields[f.Name]
	given := at.given(f.ArgumentMap(e.vars))
	if e.q.Tool && (at.op.Secret || at.op.EndsToken || given["password"] != nil) { // who sets a password logs in
		e.fail(f, cloud.E(cloud.Forbidden, "NOT_FOR_TOOLS"))
		return nil
	}
	ctx, caller, _, err := e.s.cfg.Pipeline.Admit(ctx, at.op, e.q.Who)
	e.account = cmp.Or(caller.Account.ID, e.account)
	if err == nil {
		var a catalog.Answer
		raw, _ := json.Marshal(given) // plain values always encode, in the order of their names
		a, err = e.s.cfg.Pipeline.Run(ctx, at.op, caller, e.key(f, raw), at.op.Values(given))
		if e.replayed = e.replayed || a.Replayed; err == nil {
			var v any
			if v, err = jsonValue(a.Body, at.op.GraphQL.Pick); err == nil {
				return e.project(v, f.Definition.Type, group)
			}
		}
	}
	e.fail(f, err)
	return nil
}

// key is what makes repeats of a field's call known.
func (e *execution) key(f *ast.Field, raw []byte) catalog.Key {
	k := catalog.Key{Value: e.q.Key, Address: "graphql " + f.Name, Request: raw, Always: e.q.Always}
	if k.Always {
		k.Value += "/" + f.Alias
	}
	return k
}

// given turns arguments into the operation's members.
func (f field) given(args map[string]any) map[string]any {
	out := map[string]any{}
	if f.op.GraphQL.Input {
		m, _ := args["input"].(map[string]any)
		maps.Copy(out, m)
	}
	for name, v := range args {
		if members, ok := v.(map[string]any); ok && name == "filter" && f.op.GraphQL.Filter != "" {
			maps.Copy(out, members)
		} else if to := f.args[name]; to != "" {
			out[to] = v
		}
	}
	return out
}

// jsonValue is an answer as values of JSON, or one member of it.
func jsonValue(body any, pick string) (any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if pick != "" {
		m, _ := v.(map[string]any)
		v = m[pick]
	}
	return v, nil
}

// fail notes what went wrong with a field, as REST would show it.
func (e *execution) fail(f *ast.Field, err error) {
	var held *catalog.Held
	if errors.As(err, &held) {
		e.errors = append(e.errors, e.held(f, held))
		return
	}
	shown, ours := cloud.Answered(err)
	if ours {
		e.s.cfg.Log.Error("graphql field failed", "request_id", e.q.RequestID, "field", f.Name, "err", err)
		if errors.Is(err, context.DeadlineExceeded) {
			shown = &cloud.Error{Kind: cloud.Unavailable, Code: "MODULE_UNAVAILABLE", RetryAfter: 5}
		}
	}
	localised := *shown
	localised.Fields = locale.Fields(e.q.Language, shown.Fields)
	out := failed{Message: locale.Error(e.q.Language, shown.Code, shown.Args...), Path: []any{f.Alias}, Extensions: e.s.extensions(e.q, &localised)}
	if f.Position != nil {
		out.Locations = []location{{f.Position.Line, f.Position.Column}}
	}
	e.errors = append(e.errors, out)
}

// held says of a field that it was not done: it was tried, or waits for a person.
func (e *execution) held(f *ast.Field, h *catalog.Held) failed {
	code := "DRY_RUN"
	if h.Outcome == catalog.OutcomePending {
		code = "PENDING_APPROVAL"
	}
	x := map[string]any{"code": code, "error_code": code, "http_status": h.Status(), "request_id": e.q.RequestID, "outcome": h.Outcome, "held": h.Body}
	if h.Approval != "" {
		x["approval_id"] = h.Approval
	}
	return failed{Message: locale.Error(e.q.Language, code), Path: []any{f.Alias}, Extensions: x}
}

// project is v as the selections of a group of fields ask for it.
func (e *execution) project(v any, t *ast.Type, group []*ast.Field) any {
	if v == nil {
		return nil
	}
	if t.Elem != nil {
		list, ok := v.([]any)
		if !ok {
			return nil
		}
		out := make([]any, len(list))
		for i, x := range list {
			out[i] = e.project(x, t.Elem, group)
		}
		return out
	}
	def := e.s.schema.Types[t.NamedType]
	if def == nil || def.Kind != ast.Object {
		return v
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := &ordered{values: map[string]any{}}
	for _, g := range e.collect(selections(group), t.NamedType) {
		f := g[0]
		if f.Name == "__typename" {
			out.set(f.Alias, t.NamedType)
			continue
		}
		out.set(f.Alias, e.project(m[f.Name], f.Definition.Type, g))
	}
	return out
}

// selections are those of all fields of one response key.
func selections(group []*ast.Field) ast.SelectionSet {
	if len(group) == 1 {
		return group[0].SelectionSet
	}
	var all ast.SelectionSet
	for _, f := range group {
		all = append(all, f.SelectionSet...)
	}
	return all
}

// collect gathers the fields of a selection by response key, fragments opened,
// in the order in which they stand (GraphQL, 6.3.2).
func (e *execution) collect(set ast.SelectionSet, typ string) [][]*ast.Field {
	var out [][]*ast.Field
	place := map[string]int{}
	open := map[string]bool{}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, sel := range set {
			switch sel := sel.(type) {
			case *ast.Field:
				if !e.included(sel.Directives) {
					continue
				}
				i, ok := place[sel.Alias]
				if !ok {
					i = len(out)
					place[sel.Alias] = i
					out = append(out, nil)
				}
				out[i] = append(out[i], sel)
			case *ast.InlineFragment:
				if e.included(sel.Directives) && (sel.TypeCondition == "" || sel.TypeCondition == typ) {
					walk(sel.SelectionSet)
				}
			case *ast.FragmentSpread:
				f := e.doc.Fragments.ForName(sel.Name)
				if f == nil || open[sel.Name] || !e.included(sel.Directives) || f.TypeCondition != typ {
					continue
				}
				open[sel.Name] = true
				walk(f.SelectionSet)
			}
		}
	}
	walk(set)
	return out
}

// included applies @skip and @include.
func (e *execution) included(list ast.DirectiveList) bool {
	for _, d := range list {
		on, _ := d.ArgumentMap(e.vars)["if"].(bool)
		if d.Name == "skip" && on || d.Name == "include" && !on {
			return false
		}
	}
	return true
}
