package wire

import "fmt"

// Presence states.
const (
	Online  = "online"
	Offline = "offline"
)

// Door states as a status shows them.
const (
	DoorUnknown  = "unknown"
	DoorLocked   = "locked"
	DoorOpening  = "opening"
	DoorOpen     = "open"
	DoorSettling = "closed_settling"
)

// Status is a device's present. It is sent on connect before any backlog,
// every 10 minutes, and after door changes; its offline form is the last will.
type Status struct {
	State         string            `cbor:"1,keyasint"`
	At            int64             `cbor:"2,keyasint"`
	AgentVersion  string            `cbor:"3,keyasint,omitempty"`
	Instance      []byte            `cbor:"4,keyasint,omitempty"` // random per start of the agent
	Boot          uint64            `cbor:"5,keyasint,omitempty"`
	Epoch         Epoch             `cbor:"6,keyasint"`
	UptimeS       uint64            `cbor:"7,keyasint,omitempty"`
	Boards        map[string]string `cbor:"8,keyasint,omitempty"`  // board name to online, offline, noisy
	StoreUse      []uint64          `cbor:"9,keyasint,omitempty"`  // bytes per lane
	Backlog       []uint64          `cbor:"10,keyasint,omitempty"` // records per lane not acknowledged
	Ends          []LaneEnd         `cbor:"11,keyasint,omitempty"` // per lane
	ConfigVersion uint64            `cbor:"12,keyasint,omitempty"`
	CodeList      uint64            `cbor:"13,keyasint,omitempty"`
	Nonce         []byte            `cbor:"14,keyasint,omitempty"`
	Doors         []DoorStatus      `cbor:"15,keyasint,omitempty"`
	Exceptions    []Exception       `cbor:"16,keyasint,omitempty"`
	// Signature is the device's own, over the status without it; see
	// signed.DeviceKey. A device without a key has none.
	Signature []byte `cbor:"17,keyasint,omitempty"`
	// Count numbers the statuses of one boot from 1: (Boot, Count) never repeats,
	// so a status that was kept and sent again is found to be old.
	Count uint64 `cbor:"18,keyasint,omitempty"`
	// Snapshot is 1 when Contents is complete: a door that it does not name is
	// empty. 0 is an agent that does not tell contents; SnapshotOfUse is one whose
	// Blocked and Unconfirmed are complete, too.
	Snapshot uint `cbor:"19,keyasint,omitempty"`
	// Contents is what lies behind doors: door to delivery ref.
	Contents map[uint]string `cbor:"20,keyasint,omitempty"`
	// Generation is that of the code list held, 0 when none was ever taken.
	Generation uint64 `cbor:"21,keyasint,omitempty"`
	// Lost is set from a loss of the cabinet's memory until a whole code list has
	// brought back what lies where.
	Lost bool `cbor:"22,keyasint,omitempty"`
	// TypedLocked is when the keypad takes typed codes again after thirty wrong
	// ones within a day, unix ns by the device's wall clock; 0 when it takes them.
	TypedLocked int64 `cbor:"23,keyasint,omitempty"`
	// Echo is the newest Time.Challenge that came in this start of the agent: it
	// proves that the status was made after it.
	Echo []byte `cbor:"24,keyasint,omitempty"`
	// Acked is the next record that the cloud waits for, per lane, as the device was
	// told: a cloud that holds less was restored from a backup.
	Acked []uint64 `cbor:"25,keyasint,omitempty"`
	// Blocked are the doors that the device keeps out of use, and why: the reason of the
	// order, or ReasonSuspect by its own rule.
	Blocked map[uint]string `cbor:"26,keyasint,omitempty"`
	// Unconfirmed are the doors that it keeps for a delivery without knowing that its
	// packages lie there: no pickup code opens them.
	Unconfirmed []uint `cbor:"27,keyasint,omitempty"`
	// Platform is what the device's program runs on, as Go names it: linux/arm64.
	Platform string `cbor:"28,keyasint,omitempty"`
	// Update is where updates of the program stand; nil: it takes none by command.
	Update *UpdateState `cbor:"29,keyasint,omitempty"`
}

// UpdateState is where updates of a device's program stand.
type UpdateState struct {
	Trial   bool   `cbor:"1,keyasint,omitempty"` // AgentVersion is on trial
	GivenUp string `cbor:"2,keyasint,omitempty"` // newest version that did not work and was left, without v
	Reason  string `cbor:"3,keyasint,omitempty"` // why it was left, at most 200 bytes
}

// SnapshotOfUse is a Status.Snapshot.
const SnapshotOfUse = 2

// LaneEnd is the end of one lane of the device's store.
type LaneEnd struct {
	_    struct{} `cbor:",toarray"`
	Last uint64   // sequence number of the last record, 0 when there is none
	Head Head     // chain value after it
}

// DoorStatus is one door in a snapshot.
type DoorStatus struct {
	_         struct{} `cbor:",toarray"`
	Door      uint
	State     string
	Item      Item
	OpeningID string // "" when none runs on it
	Version   uint64 // highest compartment version stored
}

// DecodeStatus reads a status.
func DecodeStatus(p []byte) (*Status, error) {
	var s Status
	if err := Decode(p, &s); err != nil {
		return nil, fmt.Errorf("decode status: %w", err)
	}
	if s.State != Online && s.State != Offline {
		return nil, fmt.Errorf("%w: status state %q", ErrBad, s.State)
	}
	return &s, nil
}
