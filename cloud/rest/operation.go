package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Operation is one row of the table. Types nil lets everybody in, with or
// without a token.
type Operation struct {
	Name         string // as the catalogue names it
	Method, Path string
	Types        []cloud.AccountType
	Group        Group
	NoToken      bool // a token is not looked at
	Idempotent   bool // takes an Idempotency-Key
	Secret       bool // the answer holds a secret: never compressed
	Kept         bool // what nobody in particular is answered is kept for a moment
	// Media are types of a body beside application/json.
	Media []string
	// NoTokenCode is the error of a token that is not good; "" is TOKEN_INVALID.
	NoTokenCode string

	call func(ctx context.Context, c cloud.Caller, q *query) (Answer, error)
}

// Group is a rate limit that operations share.
type Group uint8

// Groups. General is by token, or by address without one; Replay is besides.
const (
	General Group = iota
	Replay
	Ingest    // by provider
	Unlimited // the operation limits itself
)

// Answer is what a caller gets. Status 0 is 200.
type Answer struct {
	Status  int
	Body    any
	Headers [][2]string
	ETag    bool   // over the body, with 304
	Type    string // of Body; "" is application/json
	// About is the shipment that a kept answer is about; 0 keeps nothing.
	About cloud.ShipmentID
}

// query is what came, copied.
type query struct {
	path   func(name string) string
	arg    func(name string) string // "*" is the whole query string
	header func(name string) string
	body   []byte
	ip     string
}

// define makes a row of a typed function. Members of In come from the path
// (tag path), the query (tag query), a header (tag header) and, for methods
// with a body, from JSON; a member with the tag body:"raw" takes the body as it
// came.
// answer shapes the result; nil answers 200 with Out.
func define[In, Out any](o Operation, fn func(context.Context, cloud.Caller, In) (Out, error), answer func(Out) Answer) Operation {
	bind := binder(reflect.TypeFor[In]())
	raw := rawMember(reflect.TypeFor[In]())
	hasBody := raw == nil && (o.Method == "POST" || o.Method == "PUT" || o.Method == "PATCH")
	o.call = func(ctx context.Context, c cloud.Caller, q *query) (Answer, error) {
		var in In
		if hasBody {
			if err := decodeBody(q.body, &in); err != nil {
				return Answer{}, err
			}
		}
		if err := bind(reflect.ValueOf(&in).Elem(), q); err != nil {
			return Answer{}, err
		}
		if raw != nil {
			reflect.ValueOf(&in).Elem().FieldByIndex(raw).SetBytes(q.body)
		}
		out, err := fn(ctx, c, in)
		if err != nil {
			return Answer{}, err
		}
		if answer == nil {
			return Answer{Body: out}, nil
		}
		return answer(out), nil
	}
	return o
}

func invalid(field, message string) error {
	return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{field: {message}}}
}

const wrongType = "The value has the wrong type."

// decodeBody reads one JSON object. No body is an empty object. Unknown members
// are ignored. Errors: MALFORMED_JSON, VALIDATION_FAILED with the path of the
// member that has the wrong type.
func decodeBody(body []byte, in any) error {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return nil
	}
	if body[0] != '{' || !otep.ValidJSON(body) {
		return cloud.E(cloud.Malformed, "MALFORMED_JSON")
	}
	err := json.Unmarshal(body, in)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return invalid(fieldPath(wrong.Field), wrongType)
	}
	return &cloud.Error{Kind: cloud.Malformed, Code: "MALFORMED_JSON"}
}

// fieldPath leaves names of embedded structs out of a decoder's path.
func fieldPath(path string) string {
	var out []string
	for _, p := range strings.Split(path, ".") {
		if p != "" && (p[0] < 'A' || p[0] > 'Z') {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return "body"
	}
	return strings.Join(out, ".")
}

// rawMember is where a type wants the body as it came, nil when it does not.
func rawMember(t reflect.Type) []int {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("body") == "raw" {
			return f.Index
		}
	}
	return nil
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
		panic(fmt.Sprintf("rest: input %s is no struct", t))
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
			if !setText(v.FieldByIndex(m.index), text) {
				if m.path {
					return cloud.E(cloud.NotFound, "NOT_FOUND")
				}
				return invalid(m.name, wrongType)
			}
		}
		return nil
	}
}

func setText(v reflect.Value, text string) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return true
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err == nil {
			v.SetInt(n)
		}
		return err == nil
	}
	panic("rest: a path or query member is a " + v.Kind().String())
}
