package check

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MessageZero is of text that no database takes.
const MessageZero = "%s must not contain the character U+0000."

// BadText finds the first text of a valid JSON body that no database takes: with the
// character U+0000, or with half of a surrogate pair. The path of a member's name is
// that of its object. Elements of the lists that rows names are left out: each of them
// is refused by itself.
func BadText(body []byte, rows ...string) (path, message string, found bool) {
	walkJSON(body, func(at string, raw []byte) bool {
		if message = badString(raw); message == "" || slices.ContainsFunc(rows, func(list string) bool { return strings.HasPrefix(at, list+".") }) {
			return true
		}
		path, found = at, true
		return false
	})
	if found && path == "" {
		path = "body"
	}
	return path, message, found
}

// RowsOf names the members of an input, a pointer to a struct, whose elements are checked by themselves.
func RowsOf(in any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(in).Elem()) {
		if f.Tag.Get("rows") == "true" {
			names = append(names, f.Tag.Get("json"))
		}
	}
	return names
}

// badString says what is wrong with a JSON string; "": nothing, or it is none.
func badString(raw []byte) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	const replaced = string(utf8.RuneError)
	plain := bytes.ReplaceAll(raw, []byte(`\\`), nil) // what follows a backslash is an escape
	switch {
	case strings.ContainsRune(s, 0):
		return MessageZero
	case strings.Count(s, replaced) > bytes.Count(plain, []byte(replaced))+bytes.Count(bytes.ToLower(plain), []byte(`\ufffd`)):
		return MessageUTF8
	}
	return ""
}

// walkJSON goes through the values of a valid body in their order: where each is
// and, of texts and member names, their bytes. fn ends it by false.
func walkJSON(body []byte, fn func(path string, raw []byte) bool) {
	type level struct {
		path  string
		array bool
		n     int  // elements so far
		key   bool // a member's name has been read
		name  string
	}
	var stack []level
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	for {
		start := dec.InputOffset()
		for start < int64(len(body)) && strings.IndexByte(" \t\r\n,:", body[start]) >= 0 {
			start++
		}
		token, err := dec.Token()
		if err != nil {
			return
		}
		raw := body[start:dec.InputOffset()]
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			stack = stack[:len(stack)-1]
			continue
		}
		path := ""
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			switch {
			case top.array:
				path = strings.TrimPrefix(top.path+"."+strconv.Itoa(top.n), ".")
				top.n++
			case !top.key:
				top.key, top.name = true, token.(string)
				if badString(raw) != "" && !fn(top.path, raw) {
					return
				}
				continue
			default:
				top.key = false
				if path = top.name; top.path != "" {
					path = top.path + "." + top.name
				}
			}
		}
		if !fn(path, raw) {
			return
		}
		if d, ok := token.(json.Delim); ok {
			stack = append(stack, level{path: path, array: d == '['})
		}
	}
}
