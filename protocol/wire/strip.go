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
		after, ok := skip(value, quickDepth)
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

func contains(keys []uint64, k uint64) bool {
	for _, x := range keys {
		if x == k {
			return true
		}
	}
	return false
}
