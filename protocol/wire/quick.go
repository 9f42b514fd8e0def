package wire

// The reader of records that came as our own encoder writes them: keys in
// order, nothing nested deeply, no tags. A backlog is millions of records, and
// the library's reader, which has to find out by reflection what these few lines
// know, was half of the cost of taking it in. Whatever looks unusual is left to
// the library, so both accept the same bytes and mean the same by them; a fuzz
// target holds them to it.

// The major types of CBOR (RFC 8949, 3.1).
const (
	majorUint = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

// quickDepth is less than the link allows: a record in a batch lies two levels
// below the payload.
const quickDepth = 5

// skip returns what follows the item at the front of p; false for one that the
// library has to judge.
func skip(p []byte, depth int) ([]byte, bool) {
	major, n, rest, ok := head(p)
	if !ok {
		return nil, false
	}
	switch major {
	case majorUint, majorNegative:
		return rest, true
	case majorBytes, majorText:
		if n > uint64(len(rest)) {
			return nil, false
		}
		return rest[n:], true
	case majorArray, majorMap:
		if depth == 0 || major == majorArray && n > MaxRecords || major == majorMap && n > 64 {
			return nil, false
		}
		if major == majorMap {
			n *= 2
		}
		for ; n > 0; n-- {
			if rest, ok = skip(rest, depth-1); !ok {
				return nil, false
			}
		}
		return rest, true
	case majorSimple:
		// false to undefined, and floating point numbers
		info := p[0] & 31
		return rest, info >= 20 && info <= 23 || info >= 25 && info <= 27
	}
	return nil, false
}

// quickRecord reads the frame of a record. The body shares p's memory.
func quickRecord(p []byte) (r Record, ok bool) {
	major, pairs, p, ok := head(p)
	if !ok || major != majorMap {
		return r, false
	}
	var before uint64
	for ; pairs > 0; pairs-- {
		m, key, rest, ok := head(p)
		if !ok || m != majorUint || key <= before || key > 7 {
			return r, false
		}
		before = key
		if key == 7 {
			if len(rest) == 0 || rest[0] >= majorSimple<<5 { // null is the library's
				return r, false
			}
			if p, ok = skip(rest, quickDepth); !ok {
				return r, false
			}
			n := len(rest) - len(p)
			r.Body = Raw(rest[:n:n])
			continue
		}
		m, v, rest, ok := head(rest)
		if !ok || m > majorNegative || v > 1<<63-1 {
			return r, false
		}
		p = rest
		signed := int64(v)
		if m == majorNegative {
			signed = -1 - signed
		}
		switch {
		case key == 2:
			r.At = signed
		case key == 4:
			r.Mono = signed
		case m == majorNegative:
			return r, false
		case key == 1:
			r.Kind = Kind(v)
		case key == 3:
			r.Boot = v
		case key == 5 && v <= 1<<8-1:
			r.Clock = Clock(v)
		case key == 6 && v <= 1<<32-1:
			r.ErrMS = uint32(v)
		default:
			return r, false
		}
	}
	return r, len(p) == 0 && r.Kind != 0
}

// quickBatch reads a batch whose members stand in order. Records share p's
// memory.
func quickBatch(p []byte) (b Batch, ok bool) {
	major, pairs, p, ok := head(p)
	if !ok || major != majorMap {
		return b, false
	}
	fields := [...]any{1: &b.Version, 2: &b.Epoch, 3: &b.Lane, 4: &b.First, 6: &b.Sent, 7: &b.PrevEpoch, 8: &b.Head, 9: &b.Boots, 10: &b.Signature}
	var before uint64
	for ; pairs > 0; pairs-- {
		m, key, rest, ok := head(p)
		if !ok || m != majorUint || key <= before || key >= uint64(len(fields)) {
			return b, false
		}
		before = key
		if key == 5 {
			if b.Records, p, ok = quickItems(rest); !ok {
				return b, false
			}
			continue
		}
		if p, ok = skip(rest, quickDepth); !ok {
			return b, false
		}
		if decMode.Unmarshal(rest[:len(rest)-len(p)], fields[key]) != nil {
			return b, false
		}
	}
	return b, len(p) == 0
}

// quickItems splits an array into its items.
func quickItems(p []byte) (items []Raw, rest []byte, ok bool) {
	major, n, p, ok := head(p)
	if !ok || major != majorArray || n > MaxRecords {
		return nil, nil, false
	}
	items = make([]Raw, n)
	for i := range items {
		rest, ok := skip(p, quickDepth)
		if !ok {
			return nil, nil, false
		}
		size := len(p) - len(rest)
		items[i] = Raw(p[:size:size])
		p = rest
	}
	return items, p, true
}
