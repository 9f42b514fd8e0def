package check

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// Messages about values of another type than their member, by what it must be.
const (
	MessageText   = "%s must be a text."
	MessageWhole  = "%s must be a whole number of at most 18 digits."
	MessageNumber = "%s must be a number."
	MessageAmount = "%s must be an amount of at most 1000000000000."
	MessageBool   = "%s must be true or false."
	MessageTime   = "%s must be a date and time with offset, such as 2026-06-10T11:30:00-04:00."
	MessageList   = "%s must be a list."
	MessageObject = "%s must be an object."
)

var (
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
	textType        = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// TypeMessage is what is said of a value that cannot be read into a type.
func TypeMessage(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == moneyType:
		return MessageAmount
	case reflect.PointerTo(t).Implements(textType):
		return MessageTime
	}
	switch t.Kind() {
	case reflect.String:
		return MessageText
	case reflect.Bool:
		return MessageBool
	case reflect.Float32, reflect.Float64:
		return MessageNumber
	case reflect.Slice, reflect.Array:
		return MessageList
	case reflect.Struct, reflect.Map:
		return MessageObject
	}
	return MessageWhole
}

// WrongType says which value of a JSON object cannot be read into in, a pointer to a
// struct, and what it must be: the first in the order of the body. nil: none. A null
// stands for an absent member and is no element of a list, unless its elements may be
// null or each of them is checked by itself.
func WrongType(body []byte, in any) error {
	f := Fields{}
	if path, t, found := wrongType("", body, reflect.TypeOf(in)); found {
		f.Say(cmp.Or(path, "body"), TypeMessage(t))
	}
	return f.Err()
}

// wrongType is the path of the first value below raw that a type does not take, and
// the type that it should have.
func wrongType(path string, raw json.RawMessage, t reflect.Type) (string, reflect.Type, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil, false
	}
	own := reflect.PointerTo(t).Implements(unmarshalerType) || reflect.PointerTo(t).Implements(textType)
	switch kind := t.Kind(); {
	case kind == reflect.Struct && raw[0] == '{':
		members := membersOf(t)
		return eachValue(raw, func(name string, _ int, x json.RawMessage) (string, reflect.Type, bool) {
			if in, ok := memberNamed(members, name); ok {
				return wrongType(join(path, name), x, in)
			}
			return "", nil, false
		})
	case kind == reflect.Map && raw[0] == '{' && !own:
		return eachValue(raw, func(name string, _ int, x json.RawMessage) (string, reflect.Type, bool) {
			return wrongType(join(path, name), x, t.Elem())
		})
	case kind == reflect.Slice && raw[0] == '[' && !own && t.Elem().Kind() != reflect.Uint8:
		return eachValue(raw, func(_ string, n int, x json.RawMessage) (string, reflect.Type, bool) {
			at := join(path, strconv.Itoa(n))
			if string(x) == "null" && !takesNull(t.Elem()) {
				return at, t.Elem(), true
			}
			return wrongType(at, x, t.Elem())
		})
	}
	return path, t, json.Unmarshal(raw, reflect.New(t).Interface()) != nil
}

// takesNull reports whether null is an element like others.
func takesNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(unmarshalerType) || t == reflect.TypeFor[json.RawMessage]()
}

// eachValue goes through the values of a valid object or list until fn finds one.
func eachValue(raw json.RawMessage, fn func(name string, n int, x json.RawMessage) (string, reflect.Type, bool)) (string, reflect.Type, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // its opening
	for n := 0; dec.More(); n++ {
		name := ""
		if raw[0] == '{' {
			token, err := dec.Token()
			if err != nil {
				break
			}
			name, _ = token.(string)
		}
		var x json.RawMessage
		if dec.Decode(&x) != nil {
			break
		}
		if path, t, found := fn(name, n, x); found {
			return path, t, true
		}
	}
	return "", nil, false
}

// membersOf are the members of a struct as encoding/json reads them, by name.
func membersOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous && inner.Kind() == reflect.Struct:
			for name, t := range membersOf(inner) {
				if _, shadowed := out[name]; !shadowed {
					out[name] = t
				}
			}
		default:
			out[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return out
}

// memberNamed finds a member as encoding/json does: by its name, or by one that differs
// in the case of letters alone.
func memberNamed(members map[string]reflect.Type, name string) (reflect.Type, bool) {
	if t, ok := members[name]; ok {
		return t, true
	}
	for known, t := range members {
		if strings.EqualFold(known, name) {
			return t, true
		}
	}
	return nil, false
}
