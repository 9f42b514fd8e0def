package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Member is one member of an input, as faces without addresses see it.
type Member struct {
	Name     string // of the body, path or query
	Place    string // "" is the body
	Type     reflect.Type
	Required bool
	Field    reflect.StructField
}

// OfNew reports whether a new record needs the member, though a change does not: its doc
// begins with that.
func (m Member) OfNew() bool {
	return strings.HasPrefix(m.Field.Tag.Get("doc"), "Required of a new one")
}

// Members lists what a caller can give an operation: members of the body, the
// path and the query. Headers and raw bodies are not among them. The list is the
// caller's.
func (o *Operation) Members() []Member {
	if list, ok := membersOf.Load(o.in); ok {
		return slices.Clone(list.([]Member))
	}
	list := o.members()
	membersOf.Store(o.in, list)
	return slices.Clone(list)
}

// membersOf are lists of members by the type of an input.
var membersOf sync.Map // of reflect.Type to []Member

func (o *Operation) members() []Member {
	var out []Member
	for _, f := range reflect.VisibleFields(o.in) {
		in := place(f)
		switch name, _, ok := jsonName(f); {
		case in == "path", in == "query" && f.Tag.Get(in) != "*":
			out = append(out, Member{f.Tag.Get(in), in, f.Type, in == "path" || f.Tag.Get("required") == "true", f})
		case in == "" && ok && promoted(o.in, f):
			out = append(out, Member{name, "", f.Type, f.Tag.Get("required") == "true", f})
		}
	}
	return out
}

// rawBody is the value that stands for a body which is taken as it came, and
// fileBody that for an uploaded file.
const (
	rawBody  = "body"
	fileBody = "file"
)

// Values binds an operation's input from values by member name, as JSON has
// them. Absent members stay zero; unknown ones are an error. A body that
// is taken as it came is the value called body, a json.RawMessage; an uploaded
// file is the value called file, a []byte.
func (o *Operation) Values(given map[string]any) Bind {
	return func(in any) error {
		body := map[string]any{}
		v := reflect.ValueOf(in).Elem()
		known := map[string]bool{}
		if raw, ok := given[rawBody].(json.RawMessage); ok && o.raw != nil {
			v.FieldByIndex(o.raw).SetBytes(raw)
			known[rawBody] = true
		}
		if file, ok := given[fileBody].([]byte); ok && o.upload != nil {
			v.FieldByIndex(o.upload).SetBytes(file)
			known[fileBody] = true
		}
		for _, m := range o.Members() {
			known[m.Name] = true
			x, ok := given[m.Name]
			if !ok || x == nil {
				continue
			}
			if m.Place == "" {
				body[m.Name] = x
				continue
			}
			if !SetText(v.FieldByIndex(m.Field.Index), textOf(x)) {
				return WrongText(m.Name, m.Type)
			}
		}
		for name := range given {
			if !known[name] {
				return invalid(name, "This member is not known.")
			}
		}
		raw, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode input: %w", err)
		}
		if path, message, found := check.BadText(raw, check.RowsOf(in)...); found {
			f := check.Fields{}
			f.Say(path, message)
			return f.Err()
		}
		return Decode(raw, in)
	}
}

// Decode reads a valid JSON object into in, a pointer to a struct. Errors:
// VALIDATION_FAILED, which names the values of another type than their members', or 0 where
// that is none, and then the others that break a rule; MALFORMED_JSON.
func Decode(body []byte, in any) error {
	err := json.Unmarshal(body, in)
	var invalid *cloud.Error
	switch {
	case err == nil && !bytes.Contains(body, []byte("null")) && !check.HasZero(body):
		return nil
	case errors.As(err, &invalid): // of a type that reads itself
		return invalid
	}
	if wrong := check.WrongType(body, in); wrong != nil || err == nil {
		return check.Beside(wrong, in)
	}
	return cloud.E(cloud.Malformed, "MALFORMED_JSON")
}

// WrongText is the error of a text that SetText does not take.
func WrongText(name string, t reflect.Type) error {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice { // a list is a text with commas
		t = t.Elem()
	}
	f := check.Fields{}
	f.Say(name, check.TypeMessage(t))
	return f.Err()
}

// textOf is a value as an address would have it.
func textOf(v any) string {
	list, ok := v.([]any)
	if !ok {
		return fmt.Sprint(v)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprint(x)
	}
	return strings.Join(parts, ",")
}

func invalid(field, message string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{field: {message}}}
}

// SetText sets a member from text, a list from texts with commas between them;
// false when the text has the wrong form.
func SetText(v reflect.Value, text string) bool {
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if !SetText(p.Elem(), text) {
			return false
		}
		v.Set(p)
		return true
	case reflect.String:
		v.SetString(text)
		return true
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err == nil {
			v.SetBool(b)
		}
		return err == nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			v.SetInt(n)
		}
		return err == nil
	}
	if v.Kind() == reflect.Float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
		v.SetFloat(x)
		return true
	}
	if v.Kind() == reflect.Slice {
		for part := range strings.SplitSeq(text, ",") {
			item := reflect.New(v.Type().Elem()).Elem()
			if !SetText(item, strings.TrimSpace(part)) {
				return false
			}
			v.Set(reflect.Append(v, item))
		}
		return true
	}
	panic("catalog: a path or query member is a " + v.Kind().String())
}

// Status is the HTTP status of an error.
func Status(e *cloud.Error) int {
	if s := codeStatus[e.Code]; s != 0 {
		return s
	}
	return kindStatus[e.Kind]
}

// kindStatus is the status of each kind of error; codeStatus of codes that have
// one of their own.
var kindStatus = map[cloud.Kind]int{
	cloud.Internal: 500, cloud.Invalid: 422, cloud.Malformed: 400, cloud.Unauthenticated: 401, cloud.Forbidden: 403, cloud.NotFound: 404,
	cloud.Conflict: 409, cloud.TooLarge: 413, cloud.Limited: 429, cloud.Unavailable: 503, cloud.Timeout: 504,
}

var codeStatus = map[string]int{
	"METHOD_NOT_ALLOWED": 405, "UNSUPPORTED_MEDIA_TYPE": 415, "ACCOUNT_LOCKED": 423, "SECOND_FACTOR_LOCKED": 423, "GONE": 410, "CURSOR_EXPIRED": 410,
}
