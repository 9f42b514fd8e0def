package wire

import "encoding/binary"

// PeekBatch reads which records a batch claims to hold, of bytes that
// DecodeBatch has refused, so that the refusal can name them. Only what stands
// at the front is read: deterministic encoding puts epoch, lane and first there,
// whatever is wrong behind them. ok is false when that is damaged as well.
func PeekBatch(p []byte) (e Epoch, l Lane, first uint64, ok bool) {
	major, pairs, p, ok := head(p)
	if !ok || major != 5 || pairs < 4 {
		return e, 0, 0, false
	}
	var lane uint64
	for _, key := range []uint64{1, 2, 3, 4} {
		m, k, rest, ok := head(p)
		if !ok || m != 0 || k != key {
			return e, 0, 0, false
		}
		m, v, rest, ok := head(rest)
		if !ok {
			return e, 0, 0, false
		}
		if key == 2 {
			if m != 2 || v != uint64(len(e)) || len(rest) < len(e) {
				return e, 0, 0, false
			}
			p = rest[copy(e[:], rest):]
			continue
		}
		if m != 0 {
			return e, 0, 0, false
		}
		p = rest
		switch key {
		case 3:
			lane = v
		case 4:
			first = v
		}
	}
	return e, Lane(lane), first, lane < Lanes && first > 0 && !e.IsZero()
}

// head reads the head of one CBOR item: major type, argument, and what follows
// (RFC 8949, 3). Indefinite lengths are not of the link.
func head(p []byte) (major byte, arg uint64, rest []byte, ok bool) {
	if len(p) == 0 {
		return 0, 0, nil, false
	}
	major, info := p[0]>>5, p[0]&31
	p = p[1:]
	if info < 24 {
		return major, uint64(info), p, true
	}
	n := 1 << (info - 24)
	if info > 27 || len(p) < n {
		return 0, 0, nil, false
	}
	var b [8]byte
	copy(b[8-n:], p[:n])
	return major, binary.BigEndian.Uint64(b[:]), p[n:], true
}
