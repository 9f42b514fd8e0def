package rest

import "bytes"

// oddFraming reports whether header lines tell a request's length in a way that
// two readers may take differently (RFC 9112 6.1, 6.3): more than one length, a
// length beside chunks, another coding than chunked, a line that ends with a
// bare line feed, a folded line, white space before a colon.
func oddFraming(lines []byte) bool {
	lengths, chunks := 0, 0
	for len(lines) > 0 {
		i := bytes.IndexByte(lines, '\n')
		if i < 0 {
			return true
		}
		line := lines[:i]
		lines = lines[i+1:]
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return true
		}
		line = line[:len(line)-1]
		if len(line) == 0 {
			continue // the end
		}
		if line[0] == ' ' || line[0] == '\t' || bytes.IndexByte(line, '\r') >= 0 {
			return true
		}
		name, value, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(name) == 0 || name[len(name)-1] == ' ' || name[len(name)-1] == '\t' {
			return true
		}
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
			if !digits(bytes.TrimSpace(value)) {
				return true
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunks++
			if !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return true
			}
		}
	}
	return lengths+chunks > 1
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
