package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/internal/ring"
)

const documentURL = "https://example.com/openapi.json"

// schemaCompiler compiles schemas of the document, with our formats enforced.
func schemaCompiler(t *testing.T, c *catalog.Catalog) *jsonschema.Compiler {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.OpenAPI("https://example.com", "1")))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	for _, name := range check.Formats() {
		compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if s, ok := v.(string); ok && !check.HasFormat(name, s) {
				return fmt.Errorf("%q is no %s", s, name)
			}
			return nil
		}})
	}
	require.NoError(t, compiler.AddResource(documentURL, doc))
	return compiler
}

func pointer(parts ...string) string {
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	return documentURL + "#/" + strings.Join(parts, "/")
}

// The document and the check of inputs are two readings of the same tags: what
// one takes the other takes. An empty text and a number 0 stand for an absent
// member and are left out here.
func TestSchemasSayWhatChecksSay(t *testing.T) {
	t.Parallel()
	c := table()
	compiler := schemaCompiler(t, c)
	verdicts := map[bool]int{}
	for _, o := range c.Operations() {
		if o.Raw() != nil || o.Upload() != nil {
			continue
		}
		if o.HasBody() && slices.ContainsFunc(o.Members(), func(m catalog.Member) bool { return m.Place == "" }) {
			schema, err := compiler.Compile(pointer("paths", o.Path, strings.ToLower(o.Method), "requestBody", "content", "application/json", "schema"))
			require.NoError(t, err, o.Name)
			t.Run(o.Name, rapid.MakeCheck(func(r *rapid.T) {
				g := generator{T: r, wild: rapid.Bool().Draw(r, "wild")}
				body, err := json.Marshal(g.object(o.In(), 0))
				require.NoError(r, err)
				in := reflect.New(o.In())
				require.NoError(r, json.Unmarshal(body, in.Interface()), "%s: %s", o.Name, body)
				v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
				require.NoError(r, err)
				shown, checked := schema.Validate(v), check.Input(in.Interface())
				require.Equal(r, checked == nil, shown == nil, "%s takes %.2000s\ncheck: %v\nschema: %v", o.Name, body, fieldsOf(checked), shown)
				verdicts[checked == nil]++
			}))
		}
	}
	require.Greater(t, verdicts[true], 500, "%v", verdicts)
	require.Greater(t, verdicts[false], 500, "%v", verdicts)
}

// Of members outside of the body each has a schema of its own.
func TestSchemasOfParametersSayWhatChecksSay(t *testing.T) {
	ring.SkipUnlessCheck(t, "single operations; this one walks over all of them")
	t.Parallel()
	c := table()
	compiler := schemaCompiler(t, c)
	refused := 0
	for _, o := range c.Operations() {
		at := 0
		for _, f := range reflect.VisibleFields(o.In()) {
			place, name := "", ""
			for _, p := range []string{"path", "query", "header"} {
				if n := f.Tag.Get(p); n != "" && n != "*" && !(p == "header" && n == "Accept") {
					place, name = p, n
				}
			}
			if place == "" {
				continue
			}
			schema, err := compiler.Compile(pointer("paths", o.Path, strings.ToLower(o.Method), "parameters", fmt.Sprint(at), "schema"))
			require.NoError(t, err, o.Name)
			at++
			t.Run(o.Name+" "+name, rapid.MakeCheck(func(r *rapid.T) {
				g := generator{T: r, wild: rapid.Bool().Draw(r, "wild")}
				given := g.value(f.Type, check.RulesOf(f), 0)
				if given == nil {
					return
				}
				raw, err := json.Marshal(given)
				require.NoError(r, err)
				in := reflect.New(o.In())
				require.NoError(r, json.Unmarshal(raw, in.Elem().FieldByIndex(f.Index).Addr().Interface()))
				v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
				require.NoError(r, err)
				shown, good := schema.Validate(v), true
				for path := range fieldsOf(check.Input(in.Interface())) {
					good = good && path != name && !strings.HasPrefix(path, name+".")
				}
				require.Equal(r, good, shown == nil, "%s takes %s of %s, schema: %v", o.Name, name, raw, shown)
				if !good {
					refused++
				}
			}))
		}
	}
	require.Greater(t, refused, 50)
}

func fieldsOf(err error) map[string][]string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Fields
	}
	return nil
}

// generator makes JSON values of types; wild ones break a rule now and then.
type generator struct {
	*rapid.T
	wild bool
}

func (g generator) one(of ...any) any { return rapid.SampledFrom(of).Draw(g.T, "one") }

func (g generator) breaks() bool { return g.wild && rapid.IntRange(0, 9).Draw(g.T, "breaks") == 0 }

func (g generator) object(t reflect.Type, depth int) map[string]any {
	out := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() || f.Tag.Get("path") != "" || f.Tag.Get("query") != "" || len(f.Index) > 1 && !isBare(t, f) {
			continue
		}
		r := check.RulesOf(f)
		if r.Required != g.breaks() || rapid.IntRange(0, 2).Draw(g.T, "there") == 0 {
			if v := g.value(f.Type, r, depth); v != nil {
				out[name] = v
			}
		}
	}
	for _, f := range reflect.VisibleFields(t) { // pairs come together, but for wild ones
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if with := f.Tag.Get("with"); with != "" && out[with] == nil && !g.breaks() {
			delete(out, name)
		}
	}
	return out
}

// isBare reports whether an embedded struct has no name.
func isBare(t reflect.Type, f reflect.StructField) bool {
	return t.FieldByIndex(f.Index[:1]).Tag.Get("json") == ""
}

// value is a value of a type, nil for one that is made of none here.
func (g generator) value(t reflect.Type, r check.Rules, depth int) any {
	given := t.Kind() == reflect.Pointer || r.Required
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if own := reflect.PointerTo(t); t != reflect.TypeFor[cloud.Money]() && own.Implements(reflect.TypeFor[json.Unmarshaler]()) || depth > 6 {
		return nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return g.one(true, false)
	case reflect.String:
		return g.text(r)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return g.list(t.Elem(), r, depth)
	case reflect.Map:
		if r.Item == nil {
			return nil
		}
		return g.pairs(t, r, depth)
	case reflect.Struct:
		return g.object(t, depth+1)
	case reflect.Interface:
		return nil
	}
	n := g.number(r, t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64)
	if n == 0 && !given {
		return nil
	}
	return n
}

func (g generator) number(r check.Rules, fraction bool) float64 {
	if len(r.Enum) > 0 && !g.breaks() {
		var n float64
		_, err := fmt.Sscan(rapid.SampledFrom(r.Enum).Draw(g.T, "enum"), &n)
		require.NoError(g.T, err)
		return n
	}
	low, high := 1.0, 1000.0
	if r.Max != nil {
		high = *r.Max
	}
	switch {
	case r.Min != nil:
		low = *r.Min
	case r.Above != nil:
		low = *r.Above + 1
	}
	high = max(low, high)
	if g.breaks() {
		return g.one(low-1, high+1, 0.0, -5.0).(float64)
	}
	if fraction && high > low {
		return g.one(low, high, low+0.5).(float64)
	}
	return g.one(low, high, min(high, low+1)).(float64)
}

func (g generator) text(r check.Rules) string {
	switch {
	case g.breaks():
		return g.one("no such value", "a\nb", "?", strings.Repeat("é", 300), strings.Repeat("x", 5000), "xy").(string)
	case len(r.Enum) > 0:
		return rapid.SampledFrom(r.Enum).Draw(g.T, "enum")
	case r.Example != "":
		return r.Example
	case r.Format != "":
		return check.FormatExample(r.Format)
	}
	low, high := 1, 40
	if r.Max != nil {
		high = int(*r.Max)
	}
	if r.Min != nil {
		low = max(1, int(*r.Min))
	}
	return strings.Repeat(g.one("x", "é").(string), g.one(low, high, min(high, low+2)).(int))
}

func (g generator) list(of reflect.Type, r check.Rules, depth int) []any {
	low, high := 0, 3
	if r.Required {
		low = 1
	}
	if r.Min != nil {
		low = max(low, int(*r.Min))
	}
	if r.Max != nil {
		high = int(*r.Max)
	}
	n := g.one(low, low+1, min(high, low+2)).(int)
	if g.breaks() {
		n = g.one(0, low, high+1).(int)
	}
	n = min(n, 2001)
	item := check.Rules{}
	if r.Item != nil {
		item = *r.Item
	}
	g.wild = g.wild && !r.Rows // a row that is refused does not refuse the others
	out := []any{}
	for i := range n {
		if i > 3 && !r.Unique {
			out = append(out, out[i-1])
			continue
		}
		x := g.value(of, item, depth+1)
		if x == nil {
			return []any{}
		}
		if r.Unique && slices.Contains(out, x) && !g.breaks() {
			break
		}
		out = append(out, x)
	}
	return out
}

func (g generator) pairs(t reflect.Type, r check.Rules, depth int) map[string]any {
	out := map[string]any{}
	names := []string{"a", "b c", "key"}
	if r.Key != nil && len(r.Key.Enum) > 0 {
		names = r.Key.Enum
	}
	for _, name := range names[:rapid.IntRange(0, min(3, len(names))).Draw(g.T, "keys")] {
		if x := g.value(t.Elem(), *r.Item, depth+1); x != nil {
			out[name] = x
		}
	}
	if g.breaks() {
		key := g.one("", "no such key", strings.Repeat("k", 300)).(string)
		if x := g.value(t.Elem(), *r.Item, depth+1); x != nil {
			out[key] = x
		}
	}
	return out
}
