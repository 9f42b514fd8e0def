package lockbus

// ScanBuffer is how many bytes a Scanner keeps at most. When more come without
// a frame in them, the oldest are dropped.
const ScanBuffer = 256

// Scanner finds frames in a stream of bytes: it skips noise, stale bytes and
// the echo of a request, and takes a frame by length and check byte alone. Its
// memory is bounded by ScanBuffer. It belongs to one goroutine.
type Scanner struct {
	codec    Codec
	requests bool
	n        int
	size     int // of the last frame returned
	buf      [ScanBuffer]byte
}

// NewScanner returns a scanner for the answers that c's boards send.
func NewScanner(c Codec) *Scanner { return &Scanner{codec: c} }

// NewRequestScanner returns a scanner for the requests that c's boards get.
func NewRequestScanner(c Codec) *Scanner { return &Scanner{codec: c, requests: true} }

// Feed adds bytes to the stream. p is not kept.
func (s *Scanner) Feed(p []byte) {
	if len(p) >= len(s.buf) {
		s.n = copy(s.buf[:], p[len(p)-len(s.buf):])
		return
	}
	if over := s.n + len(p) - len(s.buf); over > 0 {
		s.drop(over)
	}
	s.n += copy(s.buf[s.n:], p)
}

// Reset forgets everything that was fed.
func (s *Scanner) Reset() { s.n = 0 }

// Next returns the first whole valid frame that want accepts and forgets all
// bytes up to its end. A nil want accepts every frame. Frames that want turned
// down may be shown to it again on the next call. When there is none, the bytes
// that can no longer begin a frame are forgotten.
func (s *Scanner) Next(want func(*Frame) bool) (Frame, bool) {
	keep := s.n
	for i := 0; i < s.n; i++ {
		f, size, open := s.at(i, want)
		if size > 0 {
			s.size = size
			s.drop(i + size)
			return f, true
		}
		if open && keep == s.n {
			keep = i
		}
	}
	s.drop(keep)
	return Frame{}, false
}

// Size is the length of the frame that Next returned last, 0 before the first.
func (s *Scanner) Size() int { return s.size }

func (s *Scanner) drop(n int) {
	copy(s.buf[:], s.buf[n:s.n])
	s.n -= n
}

// at looks for a frame that begins at i. open says that one may still come when
// more bytes have arrived.
func (s *Scanner) at(i int, want func(*Frame) bool) (f Frame, size int, open bool) {
	p := s.buf[i:s.n]
	sizes, count, open := s.codec.sizes(p, s.requests)
	for _, size := range sizes[:count] {
		if size > len(p) {
			open = true
			continue
		}
		f, err := s.decode(p[:size])
		if err == nil && (want == nil || want(&f)) {
			return f, size, false
		}
	}
	return Frame{}, 0, open
}

func (s *Scanner) decode(p []byte) (Frame, error) {
	if s.requests {
		return s.codec.DecodeRequest(p)
	}
	return s.codec.DecodeAnswer(p)
}

// sizes returns the lengths that a frame beginning with p can have, the
// shortest first. open says that p is too short to tell.
func (c Codec) sizes(p []byte, requests bool) (sizes [2]int, count int, open bool) {
	one := func(head byte, n int) ([2]int, int, bool) {
		if p[0] != head {
			return sizes, 0, false
		}
		return [2]int{n}, 1, false
	}
	switch {
	case c.Family == CU48 && !requests:
		return one(stx, lenCU48)
	case c.Family == CU48B && !requests && p[0] == stx:
		return [2]int{lenCU48Ask, lenCU48B}, 2, false
	case c.Family == CU48, c.Family == CU48B && requests:
		return one(stx, lenCU48Ask)
	case c.Family == CU16 && requests:
		return one(stx, lenCU16Ask)
	case c.Family == CU16:
		return one(stx, lenCU16)
	case c.Family == Station && requests:
		return one(stationHead, lenStationAsk)
	case c.Family == Station:
		return one(stationHead, lenStation)
	case c.Family == Door80 && p[0] == door80Unlock:
		return [2]int{lenDoor80One}, 1, false
	case c.Family == Door80 && p[0] == door80Status && requests:
		return [2]int{lenDoor80One}, 1, false
	case c.Family == Door80 && p[0] == door80Status:
		return [2]int{lenDoor80One, lenDoor80All}, 2, false
	case c.Family == Preamble:
		return preambleSize(p)
	}
	return sizes, 0, false
}

func preambleSize(p []byte) (sizes [2]int, count int, open bool) {
	head := [4]byte{0x57, 0x4B, 0x4C, 0x59}
	for i, b := range head {
		if i == len(p) {
			return sizes, 0, true
		}
		if p[i] != b {
			return sizes, 0, false
		}
	}
	if len(p) < 5 {
		return sizes, 0, true
	}
	if n := int(p[4]); n >= preMin && n <= MaxFrame {
		return [2]int{n}, 1, false
	}
	return sizes, 0, false
}
