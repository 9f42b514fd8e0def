package catalog

import (
	"reflect"
	"slices"
	"strconv"

	"github.com/postern-io/postern/cloud/check"
)

// constrain adds rules of a member, or of its elements, to the schema of its type.
// Outputs show what values look like; what is required of callers and what stands
// for absent members is of inputs.
func constrain(o object, r check.Rules, t reflect.Type, input bool) {
	null := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	put := func(key string, n *float64) {
		if n != nil {
			o[key] = *n
		}
	}
	if !input {
		r.Required, r.Line, r.Default = false, false, ""
	}
	if k := t.Kind(); r.Required && r.Min == nil && (k == reflect.String || k == reflect.Slice || k == reflect.Map) {
		r.Min = new(1.0)
	}
	if r.Item == nil { // of lists in lists
		r.Item, r.Key = &check.Rules{}, &check.Rules{}
	}
	switch kind := o["type"]; {
	case t == rawType || kind == nil: // JSON as it came, or a type of its own
		return
	case kind == "boolean":
	case t.Kind() == reflect.String:
		put("minLength", r.Min)
		put("maxLength", r.Max)
		form(o, r)
	case t.Kind() == reflect.Slice:
		put("minItems", r.Min)
		put("maxItems", r.Max)
		if r.Unique {
			o["uniqueItems"] = true
		}
		if items, ok := o["items"].(object); ok && !r.Rows {
			constrain(items, *r.Item, t.Elem(), input)
		}
	case t.Kind() == reflect.Map:
		put("minProperties", r.Min)
		put("maxProperties", r.Max)
		constrain(o["additionalProperties"].(object), *r.Item, t.Elem(), input)
		keys := object{}
		constrainKeys(keys, *r.Key)
		if len(keys) > 0 {
			o["propertyNames"] = keys
		}
	case t.Kind() != reflect.Struct:
		put("minimum", r.Min)
		put("maximum", r.Max)
		put("exclusiveMinimum", r.Above)
	}
	if len(r.Enum) > 0 {
		o["enum"] = values(r.Enum, t, null || slices.Contains(typesOf(o), "null"))
	}
	if r.Default != "" {
		o["default"] = values([]string{r.Default}, t, false)[0]
	}
}

func constrainKeys(o object, r check.Rules) {
	if r.Max != nil {
		o["minLength"], o["maxLength"] = *r.Min, *r.Max
	}
	if len(r.Enum) > 0 {
		o["enum"] = r.Enum
	}
}

// form adds the form of a text. A format that has a regular expression shows it:
// readers of schemas do not know our formats.
func form(o object, r check.Rules) {
	switch {
	case r.Format != "":
		if r.Format != "time" { // theirs has seconds and an offset (RFC 3339 full-time), ours is 18:12
			o["format"] = r.Format
		}
		if p := check.FormatPattern(r.Format); p != "" {
			o["pattern"] = p
		}
	case r.Pattern != "":
		o["pattern"] = r.Pattern
		if r.Example != "" {
			o["examples"] = []string{r.Example}
		}
	case len(r.Enum) > 0:
	case r.Line && r.Required:
		o["pattern"] = `^\P{Cc}*[^\s\p{Cc}]\P{Cc}*$`
	case r.Line:
		o["pattern"] = `^\P{Cc}*$`
	case r.Required:
		o["pattern"] = `\S`
	}
}

// values are texts of tags as values of a type.
func values(list []string, t reflect.Type, null bool) []any {
	var out []any
	for _, s := range list {
		switch n, err := strconv.ParseFloat(s, 64); {
		case t.Kind() == reflect.Bool:
			out = append(out, s == "true")
		case t.Kind() != reflect.String && err == nil:
			out = append(out, n)
		default:
			out = append(out, s)
		}
	}
	if null {
		out = append(out, nil)
	}
	return out
}

// typesOf are the types that a schema allows.
func typesOf(o object) []string {
	list, _ := o["type"].([]string)
	return list
}
