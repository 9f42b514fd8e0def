package otep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON is what Read answers to a body that is not ValidJSON, that nests too deeply, or that repeats a member of one object, which readers
// would understand differently.
var ErrJSON = errors.New("not JSON")

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
	if !ValidJSON(b) {
		return nil, ErrJSON
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = endOfString(b, i) - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, fmt.Errorf("%w of this protocol: nested more than %d levels deep", ErrJSON, maxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return bytes.TrimSpace(b), nil
}

// ValidJSON reports whether b is JSON (RFC 8259) in UTF-8 whose text every
// reader and every database takes alike: no string of it holds U+0000 or half
// of a surrogate pair (RFC 7493 2.1).
func ValidJSON(b []byte) bool {
	if !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			return true
		}
		if b = b[i:]; b[1] != 'u' {
			b = b[2:]
			continue
		}
		r := escaped(b)
		b = b[6:]
		if utf16.IsSurrogate(r) {
			if utf16.DecodeRune(r, escaped(b)) == utf8.RuneError {
				return false
			}
			b = b[6:]
		}
		if r == 0 {
			return false
		}
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
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }

// members lists what an object holds, nothing for other values.
func (v value) members() ([]member, error) {
	if !v.isObject() {
		return nil, nil
	}
	out := make([]member, 0, 8)
	var seen map[string]bool
	for i := skip(v, 1); v[i] != '}'; i = skip(v, i) {
		end := endOfString(v, i)
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
			return nil, fmt.Errorf("%w of this protocol: member %.64q is given twice", ErrJSON, name)
		}
		if seen != nil {
			seen[string(name)] = true
		}
		out = append(out, member{name, v[i:end]})
		i = end
	}
	return out, nil
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

// text is what a string says; ok is false for other values.
func (v value) text() (s string, ok bool) {
	if len(v) == 0 || v[0] != '"' {
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

// whole is an integer, digit by digit; 12.0 and 1e3 are integers too as far as
// a double holds them exactly.
func (v value) whole() (int64, bool) {
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	if !bytes.ContainsAny(v, ".eE") {
		return 0, false
	}
	f, ok := v.number()
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

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
