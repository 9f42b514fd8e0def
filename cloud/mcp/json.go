package mcp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// object is what a JSON object has, in order.
type object []member

type member struct{ name, value []byte }

// get is a member's value, nil when there is none.
func (o object) get(name string) []byte {
	for _, m := range o {
		if string(m.name) == name {
			return m.value
		}
	}
	return nil
}

// text is a member that is a string.
func (o object) text(name string) (string, bool) {
	raw := o.get(name)
	if !isText(raw) {
		return "", false
	}
	return string(unquote(raw)), true
}

// split takes a checked object apart. ok is false when raw is something else.
func split(raw []byte) (o object, ok bool) {
	if !isObject(raw) {
		return nil, false
	}
	s := scan{b: raw, i: 1, checked: true}
	for {
		s.space()
		if s.next('}') {
			return o, true
		}
		s.next(',')
		s.space()
		from := s.i
		s.text(nil)
		name := unquote(raw[from:s.i])
		s.space()
		s.i++
		s.space()
		from = s.i
		s.skip()
		o = append(o, member{name, raw[from:s.i]})
	}
}

// elements takes a checked array apart, up to one more than limit.
func elements(raw []byte, limit int) (list [][]byte) {
	s := scan{b: raw, i: 1, checked: true}
	for {
		s.space()
		if s.next(']') || len(list) > limit {
			return list
		}
		s.next(',')
		s.space()
		from := s.i
		s.skip()
		list = append(list, raw[from:s.i])
	}
}

// skip passes over a checked value.
func (s *scan) skip() {
	open := 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return
			}
			open--
		case '"':
			s.text(nil)
			s.i--
		case ',', ' ', '\t', '\n', '\r':
			if open == 0 {
				return
			}
		}
		s.i++
		if open == 0 && (s.b[s.i-1] == '}' || s.b[s.i-1] == ']' || s.b[s.i-1] == '"') {
			return
		}
	}
}

// unquote is the text of a checked JSON string, never nil. Without escapes it
// is part of raw.
func unquote(raw []byte) []byte {
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 {
		return in
	}
	var s string
	_ = json.Unmarshal(raw, &s) // it was checked
	return append([]byte{}, s...)
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isText(raw []byte) bool   { return len(raw) > 0 && raw[0] == '"' }

// isWhole reports whether a checked value is a number without fraction and
// exponent.
func isWhole(raw []byte) bool {
	raw = bytes.TrimPrefix(raw, []byte("-"))
	for _, c := range raw {
		if c < '0' || '9' < c {
			return false
		}
	}
	return len(raw) > 0
}

// encode is v as compact JSON, without the escapes that are meant for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// quote appends text as a JSON string.
func quote(b []byte, text string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, text[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += size
			continue
		}
		if i++; c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[from:i-1]...)
		from = i
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	return append(append(b, text[from:]...), '"')
}

// short is text for a message, cut after 64 characters.
func short(text string) string {
	n := 0
	for i := range text {
		if n++; n > 64 {
			return text[:i] + "…"
		}
	}
	return text
}
