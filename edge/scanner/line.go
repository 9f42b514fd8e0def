package scanner

// MaxLine is how many bytes of one scan are taken. A longer one is refused as a
// whole, once. It is more than any symbol of a label holds.
const MaxLine = 4096

// splitter cuts a stream of bytes into lines, which end by CR, LF or TAB, or by a
// pause. Empty lines, such as between CR and LF, are none. Used by one goroutine.
type splitter struct {
	line []byte
	long bool // the line under way is too long
}

// add takes bytes and gives each line that they complete; fits is false, and raw
// nil, for one that is too long. raw is the caller's to keep.
func (s *splitter) add(p []byte, give func(raw []byte, fits bool)) {
	for _, c := range p {
		switch {
		case c == '\r' || c == '\n' || c == '\t':
			s.end(give)
		case s.long:
		case len(s.line) == MaxLine:
			s.line, s.long = nil, true
		default:
			s.line = append(s.line, c)
		}
	}
}

// end ends the line under way, if there is one.
func (s *splitter) end(give func(raw []byte, fits bool)) {
	raw, long := s.line, s.long
	s.line, s.long = nil, false
	if long || len(raw) > 0 {
		give(raw, !long)
	}
}
