package buffer

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/postern-io/postern/protocol/wire"
)

// stored is one record as it lies in a segment:
//
//	kind (1) · flags (1, bit 0: head present) · boot (uvarint) · [head before (32)] · record
type stored struct {
	kind   wire.Kind
	boot   uint64
	before *wire.Head
	record []byte
}

// size is how many bytes a page gives to the record: its value, its key and the
// page's own entry.
func (r stored) size() uint64 {
	n := 2 + (bits.Len64(r.boot|1)+6)/7 + len(r.record) + 8 + elemSize
	if r.before != nil {
		n += len(r.before)
	}
	return uint64(n)
}

func (r stored) encode() []byte {
	b := make([]byte, 0, r.size())
	var flags byte
	if r.before != nil {
		flags = 1
	}
	b = append(b, byte(r.kind), flags)
	b = binary.AppendUvarint(b, r.boot)
	if r.before != nil {
		b = append(b, r.before[:]...)
	}
	return append(b, r.record...)
}

var errShortRecord = fmt.Errorf("%w: stored record is too short", ErrDamaged)

// decodeStored reads a segment's value. record aliases b.
func decodeStored(b []byte) (r stored, err error) {
	if len(b) < 3 {
		return r, errShortRecord
	}
	r.kind = wire.Kind(b[0])
	flags := b[1]
	boot, n := binary.Uvarint(b[2:])
	if n <= 0 || flags > 1 {
		return r, fmt.Errorf("%w: stored record has a bad frame", ErrDamaged)
	}
	r.boot, b = boot, b[2+n:]
	if flags == 1 {
		if len(b) < len(r.before) {
			return r, errShortRecord
		}
		var h wire.Head
		copy(h[:], b)
		r.before, b = &h, b[len(h):]
	}
	if len(b) == 0 {
		return r, errShortRecord
	}
	r.record = b
	return r, nil
}
