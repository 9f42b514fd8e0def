package wire

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Clean returns one well-formed item with every text string in it made fit for
// storing: NUL and what is not UTF-8 become U+FFFD. PostgreSQL takes neither in
// text. An item with nothing of the kind is returned as it is, and so is one
// that is not well-formed, which Decode refuses.
func Clean(item []byte) []byte {
	var out []byte // what was rewritten so far, nil while all is as it was
	rest := item
	for len(rest) > 0 {
		at := len(item) - len(rest)
		major, n, after, ok := head(rest)
		if !ok {
			return item
		}
		if major == 2 || major == 3 {
			if n > uint64(len(after)) {
				return item
			}
			s := after[:n]
			after = after[n:]
			if major == 3 && (bytes.IndexByte(s, 0) >= 0 || !utf8.Valid(s)) {
				if out == nil {
					out = append(make([]byte, 0, len(item)+64), item[:at]...)
				}
				out = appendText(out, CleanText(string(s)))
				rest = after
				continue
			}
		}
		if out != nil {
			out = append(out, rest[:len(rest)-len(after)]...)
		}
		rest = after
	}
	if out == nil {
		return item
	}
	return out
}

// CleanText is s with every NUL and everything that is not UTF-8 replaced by
// U+FFFD.
func CleanText(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// appendText appends the shortest encoding of a text string.
func appendText(b []byte, s string) []byte {
	n := len(s)
	switch {
	case n < 24:
		b = append(b, 3<<5|byte(n))
	case n <= 0xff:
		b = append(b, 3<<5|24, byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, 3<<5|25), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 3<<5|26), uint32(n))
	}
	return append(b, s...)
}
