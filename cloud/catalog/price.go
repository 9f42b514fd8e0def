package catalog

import (
	"reflect"
	"strings"
	"sync"
)

// Prices are marked in the output types: price:"true" on a member that is an
// amount or says something about amounts. For a caller from whom its provider
// hides them they are left out, wherever they are nested, and price_hidden says
// so beside where they would have been.

// Hide is v as JSON values, without prices. It is v itself when its type has
// none.
func Hide(v any) any {
	if v == nil || !HasPrices(reflect.TypeOf(v)) {
		return v
	}
	return hidden(reflect.ValueOf(v))
}

var priced sync.Map // reflect.Type → bool

// HasPrices reports whether a type has a member that is a price, at any depth.
func HasPrices(t reflect.Type) bool {
	if known, ok := priced.Load(t); ok {
		return known.(bool)
	}
	found := hasPrices(t, map[reflect.Type]bool{})
	priced.Store(t, found)
	return found
}

func hasPrices(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasPrices(t.Elem(), seen)
	case reflect.Interface:
		return true // what is inside is known at run time
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if f.IsExported() && (f.Tag.Get("price") == "true" || hasPrices(f.Type, seen)) {
				return true
			}
		}
	}
	return false
}

// hidden copies a value into maps and lists as encoding/json would show it.
func hidden(v reflect.Value) any {
	if !HasPrices(v.Type()) {
		return v.Interface()
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return hidden(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = hidden(v.Index(i))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for _, k := range v.MapKeys() {
			out[k.String()] = hidden(v.MapIndex(k))
		}
		return out
	case reflect.Struct:
		out := map[string]any{}
		hideMembers(v, out)
		return out
	}
	return v.Interface()
}

func hideMembers(v reflect.Value, out map[string]any) {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			hideMembers(v.Field(i), out)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Tag.Get("price") == "true" {
			out["price_hidden"] = true
			continue
		}
		if name == "" {
			name = f.Name
		}
		if strings.Contains(options, "omitempty") && v.Field(i).IsZero() {
			continue
		}
		out[name] = hidden(v.Field(i))
	}
}
