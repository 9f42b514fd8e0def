package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
)

// query is what came, copied.
type query struct {
	path   func(name string) string
	arg    func(name string) string // "*" is the whole query string
	header func(name string) string
	body   []byte
	form   form // of an upload; body is what was given, the same for the same
}

// bind is the input of a request.
func (r *route) bind(q *query) catalog.Bind {
	return func(in any) error {
		if r.HasBody() {
			if err := decodeBody(q.body, in); err != nil {
				return err
			}
			if err := r.CheckFixed(q.body); err != nil {
				return err
			}
		}
		v := reflect.ValueOf(in).Elem()
		if r.Upload() != nil {
			if err := r.takeForm(v, q.form); err != nil {
				return err
			}
		}
		if err := r.fill(v, q); err != nil {
			return err
		}
		if at := r.Raw(); at != nil {
			v.FieldByIndex(at).SetBytes(q.body)
		}
		return nil
	}
}

func invalid(field, message string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{field: {message}}}
}

// unknownHeader names the members of a body that had no effect.
const unknownHeader = "X-Unknown-Members"

// nameUnknown says which members the operation does not know. A name that is no visible
// ASCII in their names, and commas, are shown by percent.
func nameUnknown(ctx *fasthttp.RequestCtx, paths []string) {
	if len(paths) == 0 {
		return
	}
	var b strings.Builder
	for i, path := range paths {
		if i > 0 {
			b.WriteString(", ")
		}
		for j, c := range []byte(path) {
			switch {
			case j == maxPath:
				b.WriteString("%E2%80%A6")
			case j > maxPath:
			case c < ' ', c > '~', c == '%', c == ',', c == ':':
				fmt.Fprintf(&b, "%%%02X", c)
			default:
				b.WriteByte(c)
			}
		}
	}
	ctx.Response.Header.Set(unknownHeader, b.String())
}

// maxPath is what is shown of one path, in bytes.
const maxPath = 100

// decodeBody reads one JSON object. No body is an empty object. Unknown members
// are left out; nameUnknown names them. Errors: MALFORMED_JSON, VALIDATION_FAILED with the
// path of a member that has the wrong type or text that cannot be kept. A row that is
// checked by itself refuses its own text.
func decodeBody(body []byte, in any) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' || !json.Valid(body) || !utf8.Valid(body) {
		return cloud.E(cloud.Malformed, "MALFORMED_JSON")
	}
	if !otep.ValidJSON(body) {
		if path, message, found := check.BadText(body, check.RowsOf(in)...); found {
			f := check.Fields{}
			f.Say(path, message)
			return f.Err()
		}
	}
	return catalog.Decode(body, in)
}

// binder plans which members of a type come from path, query and headers.
func binder(t reflect.Type) func(reflect.Value, *query) error {
	type member struct {
		index []int
		name  string
		from  func(*query) func(string) string
		path  bool
	}
	path := func(q *query) func(string) string { return q.path }
	arg := func(q *query) func(string) string { return q.arg }
	header := func(q *query) func(string) string { return q.header }
	var members []member
	if t.Kind() != reflect.Struct {
		panic("rest: an input is no struct")
	}
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("path"); name != "" {
			members = append(members, member{f.Index, name, path, true})
		} else if name := f.Tag.Get("query"); name != "" {
			members = append(members, member{f.Index, name, arg, false})
		} else if name := f.Tag.Get("header"); name != "" {
			members = append(members, member{f.Index, name, header, false})
		}
	}
	return func(v reflect.Value, q *query) error {
		for _, m := range members {
			text := m.from(q)(m.name)
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return cloud.E(cloud.Malformed, "BAD_REQUEST")
			}
			if text == "" && !m.path {
				continue
			}
			if !catalog.SetText(v.FieldByIndex(m.index), text) {
				if m.path { // names nothing; the operation says what it is that is not there
					v.FieldByIndex(m.index).SetInt(-1)
					continue
				}
				return catalog.WrongText(m.name, v.FieldByIndex(m.index).Type())
			}
		}
		return nil
	}
}
