package wire

import "fmt"

// Without returns the map p, encoded as this package encodes, without the given
// keys: what a signature inside a message is made over. p itself is not changed.
// The error wraps ErrBad when p is anything but one map with keys in order.
func Without(p []byte, keys ...uint64) ([]byte, error) {
	major, pairs, rest, ok := head(p)
	if !ok || major != majorMap || pairs > 64 {
		return nil, fmt.Errorf("%w: not a map", ErrBad)
	}
	kept, body := uint64(0), make([]byte, 0, len(p))
	for before := uint64(0); pairs > 0; pairs-- {
		m, key, value, ok := head(rest)
		if !ok || m != majorUint || key <= before {
			return nil, fmt.Errorf("%w: keys are not in order", ErrBad)
		}
		before = key
		after, ok := pass(value, maxPassed)
		if !ok {
			return nil, fmt.Errorf("%w: value of key %d", ErrBad, key)
		}
		if !contains(keys, key) {
			body = append(body, rest[:len(rest)-len(after)]...)
			kept++
		}
		rest = after
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the map", ErrBad, len(rest))
	}
	out := []byte{majorMap<<5 | byte(kept)}
	if kept > 23 {
		out = []byte{majorMap<<5 | 24, byte(kept)}
	}
	return append(out, body...), nil
}

// Frame is what can be read of a batch whatever is wrong with its records: which
// they claim to be, their bytes, the chain's head after them, and the signature.
type Frame struct {
	Epoch     Epoch
	Lane      Lane
	First     uint64
	Records   []Raw
	Head      Head
	Signature []byte
}

// Last is the sequence number of the frame's last record.
func (f Frame) Last() uint64 { return f.First + uint64(len(f.Records)) - 1 }

// PeekFrame reads the frame of a batch, which DecodeBatch may refuse. ok is false
// when it is not one whose keys are in order, or has no records. Records and
// signature share p's memory.
func PeekFrame(p []byte) (f Frame, ok bool) {
	if f.Epoch, f.Lane, f.First, ok = PeekBatch(p); !ok {
		return f, false
	}
	_, pairs, rest, _ := head(p)
	for ; pairs > 0; pairs-- {
		_, key, value, ok := head(rest)
		if !ok {
			return f, false
		}
		after, ok := pass(value, maxPassed)
		if !ok {
			return f, false
		}
		major, n, body, _ := head(value)
		switch {
		case key == 5 && major == majorArray:
			for ; n > 0; n-- {
				next, ok := pass(body, maxPassed)
				if !ok {
					return f, false
				}
				f.Records = append(f.Records, Raw(body[:len(body)-len(next)]))
				body = next
			}
		case key == 8 && major == majorBytes && n == uint64(len(f.Head)):
			copy(f.Head[:], body)
		case key == 10 && major == majorBytes:
			f.Signature = body[:n:n]
		}
		rest = after
	}
	return f, len(f.Records) > 0
}

// maxPassed is how deep what a signature leaves out or covers may nest: deeper
// than the link allows, so that a batch with a bad record in it is still known to
// be the device's, and can be refused to it.
const maxPassed = 32

// pass returns what follows the item at the front of p, whatever it is; false for
// one that is cut off, of indefinite length or nested too deeply.
func pass(p []byte, depth int) ([]byte, bool) {
	major, n, rest, ok := head(p)
	if !ok || depth == 0 {
		return nil, false
	}
	switch major {
	case majorBytes, majorText:
		if n > uint64(len(rest)) {
			return nil, false
		}
		return rest[n:], true
	case majorMap:
		if n > uint64(len(rest)) {
			return nil, false
		}
		n *= 2
	case majorArray:
	case majorTag:
		n = 1
	default:
		return rest, true
	}
	for ; n > 0; n-- {
		if rest, ok = pass(rest, depth-1); !ok {
			return nil, false
		}
	}
	return rest, true
}

func contains(keys []uint64, k uint64) bool {
	for _, x := range keys {
		if x == k {
			return true
		}
	}
	return false
}
