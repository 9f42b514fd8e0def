package mcp

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how far values may be nested.
const maxDepth = 64

// scan reads a body strictly: UTF-8, no text with half of a surrogate pair (which readers
// replace in different ways) or, beyond arguments, with U+0000, nothing behind the value. It
// notes members that an object has twice.
type scan struct {
	b       []byte
	i       int
	checked bool // the value was read before: only its parts are looked for
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
		return s.text(at)
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
		if s.i >= len(s.b) || s.b[s.i] != '"' || !s.text(&in) {
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

// text reads a text that lies at a place, or the name of a member there. One of arguments
// may have U+0000: the tool says which, and rows are refused one by one.
func (s *scan) text(at *place) bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return true
		case c < 0x20:
			return false
		case c == '\\':
			if !s.escape(at) {
				return false
			}
		}
	}
	return false
}

// escape reads what follows a backslash and ends at its last byte.
func (s *scan) escape(at *place) bool {
	s.i++
	if s.i >= len(s.b) {
		return false
	}
	if s.b[s.i] != 'u' {
		return bytes.IndexByte([]byte(`"\/bfnrt`), s.b[s.i]) >= 0
	}
	r, ok := s.hex()
	switch {
	case !ok || 0xdc00 <= r && r < 0xe000:
		return false
	case r == 0:
		return s.checked || isArgument(at)
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

// isArgument reports whether a place is the arguments of a tool, or inside of them.
func isArgument(at *place) bool {
	var outer [4]*place // innermost last, of the outermost ones
	n := depth(at)
	for p := at; p != nil; p = p.up {
		if n--; n < len(outer) {
			outer[n] = p
		}
	}
	first := outer[:]
	if first[0] != nil && first[0].name == nil { // a batch
		first = first[1:]
	}
	return first[0] != nil && string(first[0].name) == "params" && first[1] != nil && string(first[1].name) == "arguments" && first[2] != nil
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
