package api_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// A value of the wrong type, at any depth and in any list, is refused by its name and
// with what it must be: its schema does not take it either.
func TestValuesOfTheWrongTypeAreNamed(t *testing.T) {
	t.Parallel()
	sent := 0
	for _, o := range table().Operations() {
		if !o.HasBody() {
			continue
		}
		var walk func(at reflect.Type, wrap func(name string, v any) any, path string)
		refuse := func(body any, path string) {
			sent++
			raw, err := json.Marshal(body)
			require.NoError(t, err)
			var e *cloud.Error
			require.True(t, errors.As(catalog.Decode(raw, reflect.New(o.In()).Interface()), &e), "%s takes %s", o.Name, raw)
			require.Equal(t, "VALIDATION_FAILED", e.Code, "%s refuses %s", o.Name, raw)
			require.Len(t, e.Fields[path], 1, "%s: %s names %v", o.Name, raw, e.Fields)
			require.Contains(t, e.Fields[path][0], " must be ", o.Name)
		}
		walk = func(at reflect.Type, wrap func(name string, v any) any, path string) {
			for _, f := range reflect.VisibleFields(at) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if name == "" || name == "-" || !f.IsExported() || len(f.Index) > 1 && !isBare(at, f) || f.Type == reflect.TypeFor[json.RawMessage]() || f.Tag.Get("rows") == "true" {
					continue
				}
				inner := f.Type
				for inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				switch inner.Kind() {
				case reflect.Interface:
				case reflect.Struct:
					refuse(wrap(name, []any{}), path+name)
					walk(inner, func(n string, v any) any { return wrap(name, map[string]any{n: v}) }, path+name+".")
				case reflect.Slice:
					refuse(wrap(name, "x"), path+name)
					if k := inner.Elem().Kind(); k != reflect.Pointer && k != reflect.Uint8 {
						refuse(wrap(name, []any{nil}), path+name+".0")
						if k == reflect.Struct && strings.Count(path, ".") < 4 {
							walk(inner.Elem(), func(n string, v any) any { return wrap(name, []any{map[string]any{n: v}}) }, path+name+".0.")
						}
					}
				case reflect.String, reflect.Map:
					refuse(wrap(name, true), path+name)
				default:
					refuse(wrap(name, "x"), path+name)
					if inner.Kind() != reflect.Bool {
						refuse(wrap(name, json.Number("1e400")), path+name)
					}
				}
			}
		}
		walk(o.In(), func(name string, v any) any { return map[string]any{name: v} }, "")
	}
	require.Greater(t, sent, 500)
}
