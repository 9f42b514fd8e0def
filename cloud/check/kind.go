package check

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
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

// maxWrong is the most values of another type that one error names.
const maxWrong = 50

// WrongType says which values of a JSON object cannot be read into in, a pointer to a
// struct, and what they must be: the first maxWrong in the order of the body. nil: none. So
// does a number 0 that a required member does not take: once it is read, it cannot be told from an
// absent one. A null stands for an absent member and is no element of a list, unless its elements may be
// null or each of them is checked by itself.
func WrongType(body []byte, in any) error {
	f := Fields{}
	wrongTypes("", body, reflect.TypeOf(in), func(path string, t reflect.Type, zero *Rules) bool {
		if zero != nil {
			zero.zero(f, path)
		} else {
			f.Say(cmp.Or(path, "body"), TypeMessage(t))
		}
		return len(f) < maxWrong
	})
	return f.Err()
}

// zero says what a required number must be, of one that is 0.
func (r *Rules) zero(f Fields, path string) {
	if r.number(f, path, 0); len(f[path]) == 0 {
		f.Say(path, MessageAbove, "0")
	}
}

// zeroOf are the rules of a required member whose value 0 stands for an absent one, where raw is
// a 0; nil for others.
func zeroOf(m reflect.StructField, raw json.RawMessage) *Rules {
	if m.Tag.Get("required") != "true" || len(raw) == 0 || raw[0] != '0' && raw[0] != '-' {
		return nil
	}
	v := reflect.New(m.Type)
	if !v.Elem().CanInt() && !v.Elem().CanUint() && !v.Elem().CanFloat() || json.Unmarshal(raw, v.Interface()) != nil || !v.Elem().IsZero() {
		return nil
	}
	rules := RulesOf(m)
	return &rules
}

// HasZero reports whether a body may have a number 0.
func HasZero(body []byte) bool {
	for i, c := range body {
		if c == '0' && (i+1 == len(body) || body[i+1] < '0' || body[i+1] > '9') && (i == 0 || body[i-1] < '0' || body[i-1] > '9') {
			return true
		}
	}
	return false
}

// Beside adds to the error of WrongType what the rules say of the other values of in, which
// was filled as far as its types allow.
func Beside(wrong error, in any) error {
	var e *cloud.Error
	if !errors.As(wrong, &e) || e.Fields["body"] != nil { // nothing of it was read
		return wrong
	}
	f := Fields(maps.Clone(e.Fields))
	for path, list := range Of(in) {
		within := func(of string) bool {
			return strings.EqualFold(path, of) || strings.HasPrefix(path, of+".") || strings.HasPrefix(of, path+".")
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(e.Fields)), within) {
			f[path] = list
		}
	}
	return f.Err()
}

// ReadRow reads an element of a list of which each is refused by itself, into a pointer to a
// struct. refused, of kind cloud.Invalid, is what makes it unreadable, and what the rules say
// of the members beside that. The rules of a
// readable row are for the operation to check.
func ReadRow(raw []byte, in any) (refused, err error) {
	err = json.Unmarshal(raw, in)
	if path, message, found := BadText(raw); found {
		f := Fields{}
		f.Say(path, message)
		return f.Err(), nil
	}
	if refused = Beside(WrongType(raw, in), in); refused != nil {
		return refused, nil
	}
	return nil, err
}

// wrongTypes says where the values below raw are that a type does not take, and the type
// that each should have, or the rules of a number that must not be 0, until say ends it by false.
func wrongTypes(path string, raw json.RawMessage, t reflect.Type, say func(string, reflect.Type, *Rules) bool) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return true
	}
	own := reflect.PointerTo(t).Implements(unmarshalerType) || reflect.PointerTo(t).Implements(textType)
	switch kind := t.Kind(); {
	case kind == reflect.Struct && raw[0] == '{':
		members := membersOf(t)
		return eachValue(raw, func(name string, _ int, x json.RawMessage) bool {
			in, ok := memberNamed(members, name)
			if !ok {
				return true
			}
			if in.Tag.Get("rows") == "true" && x[0] == '[' && readsItself(in.Type) {
				return true // each is checked by itself
			}
			if zero := zeroOf(in, x); zero != nil {
				return say(join(path, name), in.Type, zero)
			}
			return wrongTypes(join(path, name), x, in.Type, say)
		})
	case kind == reflect.Map && raw[0] == '{' && !own:
		return eachValue(raw, func(name string, _ int, x json.RawMessage) bool {
			return wrongTypes(join(path, name), x, t.Elem(), say)
		})
	case kind == reflect.Slice && raw[0] == '[' && !own && t.Elem().Kind() != reflect.Uint8:
		return eachValue(raw, func(_ string, n int, x json.RawMessage) bool {
			at := join(path, strconv.Itoa(n))
			if string(x) == "null" && !takesNull(t.Elem()) {
				return say(at, t.Elem(), nil)
			}
			return wrongTypes(at, x, t.Elem(), say)
		})
	}
	return json.Unmarshal(raw, reflect.New(t).Interface()) == nil || say(path, t, nil)
}

// readsItself reports whether the elements of a list say themselves what is wrong with them.
func readsItself(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && reflect.PointerTo(t.Elem()).Implements(unmarshalerType)
}

// takesNull reports whether null is an element like others.
func takesNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(unmarshalerType) || t == reflect.TypeFor[json.RawMessage]()
}

// eachValue goes through the values of a valid object or list until fn ends it by false.
func eachValue(raw json.RawMessage, fn func(name string, n int, x json.RawMessage) bool) bool {
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
		if !fn(name, n, x) {
			return false
		}
	}
	return true
}

// membersOf are the members of a struct as encoding/json reads them, by name.
func membersOf(t reflect.Type) map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
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
			for name, m := range membersOf(inner) {
				if _, shadowed := out[name]; !shadowed {
					out[name] = m
				}
			}
		default:
			out[cmp.Or(name, f.Name)] = f
		}
	}
	return out
}

// memberNamed finds a member as encoding/json does: by its name, or by one that differs
// in the case of letters alone.
func memberNamed(members map[string]reflect.StructField, name string) (reflect.StructField, bool) {
	if m, ok := members[name]; ok {
		return m, true
	}
	for known, m := range members {
		if strings.EqualFold(known, name) {
			return m, true
		}
	}
	return reflect.StructField{}, false
}
