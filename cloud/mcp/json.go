package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how far values may be nested.
const maxDepth = 64

// scan reads a body strictly: UTF-8, no text with U+0000 or half of a surrogate
// pair (which readers replace in different ways), nothing behind the value. It
// notes members that an object has twice.
type scan struct {
	b []byte
	i int
	// outside is the path of the first repeated member that is no argument of
	// a tool; arguments are the paths of the first repeated argument by the
	// message's index in a batch, -1 when there is none.
	outside   string
	arguments map[int]string
}

// place is where an object or array lies. Index is that in an array.
type place struct {
	up    *place
	name  []byte
	index int
	depth int
}

// read checks the whole body.
func (s *scan) read() bool {
	if !utf8.Valid(s.b) {
		return false
	}
	s.space()
	if !s.value(nil) {
		return false
	}
	s.space()
	return s.i == len(s.b)
}

func (s *scan) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

func (s *scan) next(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scan) value(at *place) bool {
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '{':
		return s.object(at)
	case '[':
		return s.array(at)
	case '"':
		return s.text()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scan) word(w string) bool {
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return false
	}
	s.i += len(w)
	return true
}

func (s *scan) array(at *place) bool {
	in := place{up: at, depth: depth(at) + 1}
	if in.depth > maxDepth {
		return false
	}
	s.i++
	s.space()
	if s.next(']') {
		return true
	}
	for ; ; in.index++ {
		s.space()
		if !s.value(&in) {
			return false
		}
		s.space()
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func (s *scan) object(at *place) bool {
	in := place{up: at, depth: depth(at) + 1}
	if in.depth > maxDepth {
		return false
	}
	s.i++
	s.space()
	if s.next('}') {
		return true
	}
	var seen names
	for {
		s.space()
		from := s.i
		if s.i >= len(s.b) || s.b[s.i] != '"' || !s.text() {
			return false
		}
		in.name = unquote(s.b[from:s.i])
		if seen.add(in.name) {
			s.repeated(&in)
		}
		s.space()
		if !s.next(':') {
			return false
		}
		s.space()
		if !s.value(&in) {
			return false
		}
		s.space()
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

func depth(at *place) int {
	if at == nil {
		return 0
	}
	return at.depth
}

func (s *scan) text() bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return true
		case c < 0x20:
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		}
	}
	return false
}

// escape reads what follows a backslash and ends at its last byte.
func (s *scan) escape() bool {
	s.i++
	if s.i >= len(s.b) {
		return false
	}
	if s.b[s.i] != 'u' {
		return bytes.IndexByte([]byte(`"\/bfnrt`), s.b[s.i]) >= 0
	}
	r, ok := s.hex()
	switch {
	case !ok || r == 0 || 0xdc00 <= r && r < 0xe000:
		return false
	case r < 0xd800 || 0xe000 <= r:
		return true
	}
	if !bytes.HasPrefix(s.b[s.i+1:], []byte(`\u`)) {
		return false
	}
	s.i += 2
	r, ok = s.hex()
	return ok && 0xdc00 <= r && r < 0xe000
}

// hex reads the four digits behind a u and ends at the last.
func (s *scan) hex() (uint64, bool) {
	if s.i+4 >= len(s.b) {
		return 0, false
	}
	r, err := strconv.ParseUint(string(s.b[s.i+1:s.i+5]), 16, 16)
	s.i += 4
	return r, err == nil
}

func (s *scan) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		return s.digits()
	}
	return true
}

func (s *scan) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

// repeated notes a member that its object has already.
func (s *scan) repeated(at *place) {
	path := make([]*place, 0, maxDepth+1)
	for p := at; p != nil; p = p.up {
		path = append(path, p)
	}
	// path ends with the outermost place.
	message, rest := -1, path
	if last := rest[len(rest)-1]; last.name == nil {
		message, rest = last.index, rest[:len(rest)-1]
	}
	if n := len(rest); n > 2 && string(rest[n-1].name) == "params" && string(rest[n-2].name) == "arguments" {
		if _, ok := s.arguments[message]; !ok && len(s.arguments) <= maxBatch {
			if s.arguments == nil {
				s.arguments = map[int]string{}
			}
			s.arguments[message] = written(rest[:n-2])
		}
		return
	}
	if s.outside == "" {
		s.outside = written(path)
	}
}

// written is a path as people write it: stops[2].address.
func written(path []*place) string {
	var b strings.Builder
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].name == nil {
			b.WriteString("[" + strconv.Itoa(path[i].index) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(short(string(path[i].name)))
	}
	return b.String()
}

// names are those of one object.
type names struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// add reports whether name is there already.
func (n *names) add(name []byte) bool {
	if n.many != nil {
		if n.many[string(name)] {
			return true
		}
		n.many[string(name)] = true
		return false
	}
	for _, have := range n.few[:n.n] {
		if bytes.Equal(have, name) {
			return true
		}
	}
	if n.n < len(n.few) {
		n.few[n.n] = name
		n.n++
		return false
	}
	n.many = map[string]bool{string(name): true}
	for _, have := range n.few {
		n.many[string(have)] = true
	}
	return false
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
	s := scan{b: raw, i: 1}
	for {
		s.space()
		if s.next('}') {
			return o, true
		}
		s.next(',')
		s.space()
		from := s.i
		s.text()
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
	s := scan{b: raw, i: 1}
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
			s.text()
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
