package wire

import "fmt"

// Clock says how far a device's wall clock can be trusted.
type Clock uint8

// Clock qualities.
const (
	ClockUnset   Clock = 0 // never set
	ClockCarried Clock = 1 // carried over from an earlier boot
	ClockSynced  Clock = 2 // set in this boot by a signed time answer
)

// Sample places a boot's monotonic clock in time. On the wire it is an array.
type Sample struct {
	_     struct{} `cbor:",toarray"`
	Boot  uint64
	Mono  int64 // ns since that start of the agent
	Wall  int64 // unix ns
	Clock Clock
	ErrMS uint32 // bound of Wall's error when Clock is ClockSynced
}

// BootSync is an earlier boot's last synchronisation.
type BootSync struct {
	_     struct{} `cbor:",toarray"`
	Mono  int64
	Wall  int64
	ErrMS uint32
}

// Batch is a run of records of one lane without a hole, as it goes up.
type Batch struct {
	Version   uint                `cbor:"1,keyasint"`
	Epoch     Epoch               `cbor:"2,keyasint"`
	Lane      Lane                `cbor:"3,keyasint"`
	First     uint64              `cbor:"4,keyasint"`
	Records   []Raw               `cbor:"5,keyasint"`
	Sent      Sample              `cbor:"6,keyasint"`
	PrevEpoch *Epoch              `cbor:"7,keyasint,omitempty"`
	Head      Head                `cbor:"8,keyasint"`
	Boots     map[uint64]BootSync `cbor:"9,keyasint,omitempty"`
	// Signature is the device's own, over everything but the records, for which
	// Head vouches: signed.DeviceKey makes it. A device without a key has none.
	Signature []byte `cbor:"10,keyasint,omitempty"`
}

// Last is the sequence number of the batch's last record.
func (b *Batch) Last() uint64 { return b.First + uint64(len(b.Records)) - 1 }

// DecodeBatch reads a batch and checks everything that can be checked without
// knowing the device: version, lane, count, sizes. Records stay as they came
// and may share p's memory; DecodeRecord reads one.
func DecodeBatch(p []byte) (*Batch, error) {
	b, ok := Batch{}, false
	if len(p) <= MaxPayload {
		b, ok = quickBatch(p)
	}
	if !ok {
		b = Batch{}
		if err := Decode(p, &b); err != nil {
			return nil, fmt.Errorf("decode batch: %w", err)
		}
	}
	switch {
	case b.Version != Version:
		return nil, fmt.Errorf("%w: batch version %d", ErrBad, b.Version)
	case b.Epoch.IsZero():
		return nil, fmt.Errorf("%w: batch without an epoch", ErrBad)
	case b.Lane >= Lanes:
		return nil, fmt.Errorf("%w: lane %d", ErrBad, b.Lane)
	case b.First == 0 || b.First > 1<<62:
		return nil, fmt.Errorf("%w: first record is %d", ErrBad, b.First)
	case len(b.Records) == 0 || len(b.Records) > MaxRecords:
		return nil, fmt.Errorf("%w: %d records", ErrBad, len(b.Records))
	case b.PrevEpoch != nil && b.First != 1:
		return nil, fmt.Errorf("%w: prev_epoch on record %d", ErrBad, b.First)
	}
	for i, r := range b.Records {
		if len(r) > MaxRecord {
			return nil, fmt.Errorf("%w: record %d has %d bytes", ErrBad, b.First+uint64(i), len(r))
		}
	}
	return &b, nil
}

// Kind says what a record is about.
type Kind uint

// Record kinds.
const (
	KindOpeningStarted     Kind = 1
	KindDoorOpened         Kind = 2
	KindDoorClosed         Kind = 3
	KindOpeningSettled     Kind = 4
	KindOpeningEnded       Kind = 5
	KindPickupCompleted    Kind = 6
	KindCommandOutcome     Kind = 7
	KindExceptionOpened    Kind = 8
	KindExceptionClosed    Kind = 9
	KindTrackingEvent      Kind = 10
	KindScan               Kind = 11
	KindTelemetry          Kind = 12
	KindHealth             Kind = 13
	KindCodeAttempt        Kind = 14
	KindConfigApplied      Kind = 15
	KindGap                Kind = 16
	KindTamper             Kind = 17
	KindRemoval            Kind = 18
	KindCompartmentBlocked Kind = 19
)

var kindNames = [...]string{
	KindOpeningStarted: "opening_started", KindDoorOpened: "door_opened", KindDoorClosed: "door_closed",
	KindOpeningSettled: "opening_settled", KindOpeningEnded: "opening_ended", KindPickupCompleted: "pickup_completed",
	KindCommandOutcome: "command_outcome", KindExceptionOpened: "exception_opened", KindExceptionClosed: "exception_closed",
	KindTrackingEvent: "tracking_event", KindScan: "scan", KindTelemetry: "telemetry", KindHealth: "health",
	KindCodeAttempt: "code_attempt", KindConfigApplied: "config_applied", KindGap: "gap", KindTamper: "tamper", KindRemoval: "removal",
	KindCompartmentBlocked: "compartment_blocked",
}

func (k Kind) String() string {
	if k.IsKnown() {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint(k))
}

// IsKnown reports whether this version knows the kind.
func (k Kind) IsKnown() bool { return int(k) < len(kindNames) && kindNames[k] != "" }

// Lane is where records of this kind belong. An unknown kind belongs to
// Telemetry.
func (k Kind) Lane() Lane {
	switch k {
	case KindDoorOpened, KindDoorClosed, KindScan, KindTelemetry, KindHealth, KindCodeAttempt:
		return Telemetry
	}
	if !k.IsKnown() {
		return Telemetry
	}
	return Settlement
}

// Record is one thing that happened at a device. (Boot, Mono) is different for
// every record of a device and survives a change of epoch, so together with
// the device and Kind it is the record's identity.
type Record struct {
	Kind  Kind   `cbor:"1,keyasint"`
	At    int64  `cbor:"2,keyasint"` // the device's wall clock, unix ns
	Boot  uint64 `cbor:"3,keyasint"` // starts of the agent, counted in the store
	Mono  int64  `cbor:"4,keyasint"` // ns since that start
	Clock Clock  `cbor:"5,keyasint"`
	ErrMS uint32 `cbor:"6,keyasint,omitempty"` // bound of At's error when Clock is ClockSynced
	Body  Raw    `cbor:"7,keyasint,omitempty"` // a map, by Kind
}

// DecodeRecord reads the frame of a record. Its body, which may share p's
// memory, is read by Decode into the type of its kind.
func DecodeRecord(p []byte) (Record, error) {
	if len(p) > MaxRecord {
		return Record{}, fmt.Errorf("%w: record of %d bytes", ErrBad, len(p))
	}
	if r, ok := quickRecord(p); ok {
		return r, nil
	}
	return libraryRecord(p)
}

func libraryRecord(p []byte) (Record, error) {
	var r Record
	// Records hold no tags. The decoder would pass over the content of one that
	// no field reads, and such a record could not be encoded again.
	if err := untagged.Unmarshal(p, &r); err != nil {
		return r, fmt.Errorf("decode record: %w: %w", ErrBad, err)
	}
	if r.Kind == 0 {
		return r, fmt.Errorf("%w: record without a kind", ErrBad)
	}
	return r, nil
}
