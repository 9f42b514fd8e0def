package otep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON is what Read answers to a body that is not JSON (RFC 8259) in UTF-8 whose text every
// reader and every database takes alike (no string holds U+0000 or half of a surrogate pair,
// RFC 7493 2.1), that nests too deeply, or that repeats a member of one object, which readers
// would understand differently. Each such error is a *JSONError.
var ErrJSON = errors.New("not JSON")

// JSONError says where a body is not JSON.
type JSONError struct {
	Offset  int // in bytes, from 0
	Line    int // from 1
	Column  int // in characters, from 1
	Problem string
}

func (e *JSONError) Error() string {
	return fmt.Sprintf("%v: line %d, column %d: %s", ErrJSON, e.Line, e.Column, e.Problem)
}

// Unwrap makes it an ErrJSON.
func (e *JSONError) Unwrap() error { return ErrJSON }

// In is the same of a body that has the one of e from start on.
func (e *JSONError) In(body []byte, start int) *JSONError {
	return jsonError(body, start+e.Offset, e.Problem)
}

// jsonError is what a body has wrong at an offset.
func jsonError(body []byte, offset int, problem string) *JSONError {
	before := body[:min(max(offset, 0), len(body))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &JSONError{len(before), 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(line), problem}
}

// value is one value of a checked document, as it was given, without white
// space around it. Nothing is decoded before it is asked for.
type value []byte

// member is a member of an object. Its name is decoded, its value never nil.
type member struct {
	name  []byte
	value value
}

// document checks a body as a whole.
func document(b []byte) (value, error) {
	if err := CheckJSON(b); err != nil {
		return nil, err
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfString(b, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, jsonError(b, i, fmt.Sprintf("nested more than %d levels deep", maxDepth))
			}
		case '}', ']':
			depth--
		}
	}
	return bytes.TrimSpace(b), nil
}

// ValidJSON reports whether CheckJSON finds nothing.
func ValidJSON(b []byte) bool { return utf8.Valid(b) && json.Valid(b) && badText(b) < 0 }

// CheckJSON says where a body is not JSON in UTF-8, or has text that not all read alike: the
// error is nil or a *JSONError. Depth and repeated members are not looked at.
func CheckJSON(b []byte) error {
	if !utf8.Valid(b) {
		at := 0
		for {
			r, n := utf8.DecodeRune(b[at:])
			if r == utf8.RuneError && n <= 1 {
				return jsonError(b, at, "a byte is not UTF-8")
			}
			at += n
		}
	}
	if !json.Valid(b) {
		var raw json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(b, &raw); !errors.As(err, &syntax) {
			return jsonError(b, 0, fmt.Sprint(err))
		}
		at := int(syntax.Offset)
		if at < len(b) || !strings.HasPrefix(syntax.Error(), "unexpected end") {
			at-- // it counts the byte that is wrong
		}
		return jsonError(b, at, syntax.Error())
	}
	if at := badText(b); at >= 0 {
		return jsonError(b, at, "a string holds U+0000 or half of a surrogate pair")
	}
	return nil
}

// badText is the offset of an escape in JSON that stands for no character that every reader takes,
// -1 when there is none.
func badText(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\\')
		if i < 0 {
			return -1
		}
		if at += i; b[at+1] != 'u' {
			at += 2
			continue
		}
		r := escaped(b[at:])
		if r == 0 {
			return at
		}
		if utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escaped(b[at+6:])) == utf8.RuneError {
				return at
			}
			at += 6
		}
		at += 6
	}
}

// escaped is the code unit that checked JSON gives as \uXXXX at its start, 0
// for anything else.
func escaped(b []byte) (r rune) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, _ := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n)
}

// endOfString is the offset after the string that starts at b[i].
func endOfString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfValue is the offset after the value that starts at b[i].
func endOfValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = endOfString(b, i); depth == 0 {
				return i
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// skip is the offset of the next byte that carries meaning: white space, commas
// and colons of a checked document do not.
func skip(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}

func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isArray() bool  { return len(v) > 0 && v[0] == '[' }
func (v value) isText() bool   { return len(v) > 0 && v[0] == '"' }
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }

// members lists what an object holds, nothing for other values. The error is a *repeated.
func (v value) members() ([]member, error) {
	if !v.isObject() {
		return nil, nil
	}
	out := make([]member, 0, 8)
	var seen map[string]bool
	for i := skip(v, 1); v[i] != '}'; i = skip(v, i) {
		start, end := i, endOfString(v, i)
		name := v[i:end].name()
		i = skip(v, end)
		end = endOfValue(v, i)
		if len(out) == 16 {
			seen = make(map[string]bool)
			for _, m := range out {
				seen[string(m.name)] = true
			}
		}
		if seen[string(name)] || seen == nil && has(out, name) {
			return nil, &repeated{v[start:], fmt.Sprintf("member %.64q is given twice", name)}
		}
		if seen != nil {
			seen[string(name)] = true
		}
		out = append(out, member{name, v[i:end]})
		i = end
	}
	return out, nil
}

// repeated is a member that stands twice in an object. rest is the document from it on.
type repeated struct {
	rest    value
	problem string
}

func (e *repeated) Error() string { return e.problem }

// located is an error of reading a body, with its place.
func located(err error, body []byte) error {
	var twice *repeated
	if errors.As(err, &twice) { // both end with the body's memory
		return jsonError(body, cap(body)-cap(twice.rest), twice.problem)
	}
	return err
}

// find is the value of a member, nil when there is none.
func find(members []member, name string) value {
	for i := range members {
		if string(members[i].name) == name {
			return members[i].value
		}
	}
	return nil
}

func has(members []member, name []byte) bool {
	return slices.ContainsFunc(members, func(m member) bool { return bytes.Equal(m.name, name) })
}

// name is the text of a member's name. It shares the document's bytes.
func (v value) name() []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	s, _ := v.text()
	return []byte(s)
}

// items lists what an array holds, nothing for other values.
func (v value) items() []value {
	if !v.isArray() {
		return nil
	}
	out := []value{}
	for i := skip(v, 1); v[i] != ']'; i = skip(v, i) {
		end := endOfValue(v, i)
		out = append(out, v[i:end])
		i = end
	}
	return out
}

// count is how many values an array holds, 0 for other values.
func (v value) count() (n int) {
	if !v.isArray() {
		return 0
	}
	for i := skip(v, 1); v[i] != ']'; i = skip(v, i) {
		i = endOfValue(v, i)
		n++
	}
	return n
}

// text is what a string says; ok is false for other values.
func (v value) text() (s string, ok bool) {
	if !v.isText() {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	err := json.Unmarshal(v, &s)
	return s, err == nil
}

// flag is a boolean; ok is false for other values.
func (v value) flag() (b, ok bool) {
	return len(v) == 4 && v[0] == 't', len(v) > 0 && (v[0] == 't' || v[0] == 'f')
}

// number is a finite number; ok is false for other values and for numbers that
// a double cannot hold.
func (v value) number() (float64, bool) {
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// whole is an integer of 64 bits; 12.0 and 1e3 are integers, too.
func (v value) whole() (int64, bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, ok := v.number()
	if !ok || !bytes.ContainsAny(v, ".eE") || len(v) > maxDigits || math.Abs(f) > 1<<63 || f != 0 && math.Abs(f) < 1 {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(string(v))
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return exact.Num().Int64(), true
}

// maxDigits is how long a number with a point or an exponent may be to be an integer.
const maxDigits = 100

// citation is a value as a message cites it: a string's text, nothing for one
// that is missing, everything else as JSON without white space.
func (v value) citation() string {
	if s, ok := v.text(); ok {
		return s
	}
	var b bytes.Buffer
	if len(v) > 0 {
		_ = json.Compact(&b, v) // the document was checked
	}
	return b.String()
}

// unique checks the members of every object below v.
func (v value) unique() error {
	members, err := v.members()
	for i := 0; err == nil && i < len(members); i++ {
		err = members[i].value.unique()
	}
	for _, item := range v.items() {
		if err == nil {
			err = item.unique()
		}
	}
	return err
}
