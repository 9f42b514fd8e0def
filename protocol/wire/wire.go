// Package wire holds the messages of the device link: what a cabinet's agent
// and the cloud say to each other over MQTT, byte for byte.
//
// Everything is CBOR in core deterministic encoding (RFC 8949, 4.2.1) with
// small integer keys. Unknown keys are ignored, which is how the link grows; a
// published key never changes its meaning. The package holds no state, does no
// I/O, and every function is safe for concurrent use.
//
// Times are unix nanoseconds. A door is always a compartment number. An absent
// key means unknown or none.
package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// Limits of the link. Nothing larger is ever built, and decoders refuse it.
const (
	Version    = 1
	MaxPayload = 128 << 10 // bytes of one MQTT payload
	MaxRecord  = 16 << 10  // bytes of one encoded record
	MaxRecords = 1024      // records in one batch
	MaxDoors   = 64        // doors one command or opening may name
)

// Raw is one encoded CBOR item, kept as it came.
type Raw = cbor.RawMessage

// Lane separates what a person waits for from the rest.
type Lane uint8

// The two lanes of a store. Each has its own sequence, starting at 1.
const (
	Settlement Lane = 0 // openings, settlements, pickups, outcomes, exceptions, gaps; never evicted
	Telemetry  Lane = 1 // door edges, scans, sensor values, health; oldest segments may go, named by a gap
	Lanes           = 2
)

func (l Lane) String() string {
	switch l {
	case Settlement:
		return "settlement"
	case Telemetry:
		return "telemetry"
	}
	return fmt.Sprintf("lane(%d)", uint8(l))
}

// Epoch is the random id of one store file. A new file is a new epoch.
type Epoch [16]byte

func (e Epoch) String() string { return hex.EncodeToString(e[:]) }

// IsZero reports whether e is unset.
func (e Epoch) IsZero() bool { return e == Epoch{} }

// Head is a lane's hash-chain value after some record.
type Head [32]byte

func (h Head) String() string { return hex.EncodeToString(h[:]) }

// FirstHead is the chain value before record 1 of a lane.
func FirstHead(e Epoch, l Lane) Head {
	b := make([]byte, 0, 32)
	b = append(b, "postern/chain/1"...)
	b = append(b, e[:]...)
	b = append(b, byte(l))
	return sha256.Sum256(b)
}

// Next is the chain value after record, the bytes as sent.
func (h Head) Next(record []byte) Head {
	var b [256]byte // most records fit, and cost no allocation
	if len(h)+len(record) <= len(b) {
		n := copy(b[:], h[:])
		n += copy(b[n:], record)
		return sha256.Sum256(b[:n])
	}
	s := sha256.New()
	s.Write(h[:])
	s.Write(record)
	var out Head
	s.Sum(out[:0])
	return out
}

// ErrBad is wrapped by every decoding error of this package: the bytes are not
// a message of the link, or break one of its limits.
var ErrBad = errors.New("bad message")

var (
	encMode = must(cbor.EncOptions{
		Sort:          cbor.SortCoreDeterministic,
		ShortestFloat: cbor.ShortestFloat16,
		NaNConvert:    cbor.NaNConvert7e00,
		InfConvert:    cbor.InfConvertFloat16,
		IndefLength:   cbor.IndefLengthForbidden,
	}.EncMode())
	decMode  = must(decOptions(cbor.TagsAllowed).DecMode())
	untagged = must(decOptions(cbor.TagsForbidden).DecMode())
	kept     = must(cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		MaxMapPairs: keptItems, MaxArrayElements: keptItems}.DecMode())
)

// keptItems bounds what a value that is read by DecodeKept holds in one map or list.
const keptItems = 1 << 20

func decOptions(tags cbor.TagsMode) cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		MaxNestedLevels:   8,
		MaxMapPairs:       64,
		MaxArrayElements:  MaxRecords,
		ExtraReturnErrors: cbor.ExtraDecErrorNone,
		DefaultMapType:    reflect.TypeOf(map[uint64]any(nil)),
		TagsMd:            tags,
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Encode returns the deterministic encoding of v, one of this package's
// messages. It fails only for values that have no encoding.
func Encode(v any) ([]byte, error) { return encMode.Marshal(v) }

// MustEncode is Encode for values built by our own code from plain fields,
// which always have an encoding.
func MustEncode(v any) []byte { return must(encMode.Marshal(v)) }

// DecodeKept is Decode for what its reader has kept itself, which may be larger than a
// message.
func DecodeKept(b []byte, v any) error {
	if err := kept.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	return nil
}

// Decode reads exactly one item into v. The error wraps ErrBad and says what
// was wrong, never what the bytes held.
func Decode(b []byte, v any) error {
	if len(b) > MaxPayload {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrBad, len(b), MaxPayload)
	}
	if err := decMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrBad, err)
	}
	return nil
}
