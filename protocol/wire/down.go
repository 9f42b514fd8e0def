package wire

import "fmt"

// DownType says what a down message is.
type DownType uint

// Down message types. All but DownAck are COSE_Sign1 envelopes.
const (
	DownAck     DownType = 1
	DownCommand DownType = 2
	DownTime    DownType = 3
	DownCodes   DownType = 4
	// DownReceipt is an Ack in a COSE_Sign1 envelope. A device with a key of its
	// own is answered by it and takes no plain Ack: the owner of a broker could
	// otherwise acknowledge records that the cloud never saw.
	DownReceipt DownType = 5
)

// Down is the outer map of every message on a device's down topic.
type Down struct {
	Type DownType `cbor:"1,keyasint"`
	Body Raw      `cbor:"2,keyasint"`
}

// EncodeDown wraps body, an Ack or a signed envelope's bytes.
func EncodeDown(t DownType, body []byte) []byte {
	return MustEncode(Down{Type: t, Body: body})
}

// DecodeDown reads the outer map; the body is left as it came.
func DecodeDown(p []byte) (Down, error) {
	var d Down
	if err := Decode(p, &d); err != nil {
		return d, fmt.Errorf("decode down message: %w", err)
	}
	if len(d.Body) == 0 {
		return d, fmt.Errorf("%w: down message without a body", ErrBad)
	}
	return d, nil
}

// Reasons in an Ack's Refused.
const (
	RefusedBadBatch      = "bad_batch"
	RefusedFork          = "fork"
	RefusedEpochConflict = "epoch_conflict"
)

// Ack is the cloud's receipt: everything of the lane below Next is durable.
type Ack struct {
	Epoch Epoch  `cbor:"1,keyasint"`
	Lane  Lane   `cbor:"2,keyasint"`
	Next  uint64 `cbor:"3,keyasint"`
	Head  Head   `cbor:"4,keyasint"` // chain value at Next-1
	// Credit is lane 1 records per second while there is a backlog; nil is no
	// limit. It holds until the next ack.
	Credit       *uint64 `cbor:"5,keyasint,omitempty"`
	ResendFrom   uint64  `cbor:"6,keyasint,omitempty"` // set when a hole was found
	Refused      string  `cbor:"7,keyasint,omitempty"`
	RefusedFirst uint64  `cbor:"8,keyasint,omitempty"` // first of the batch that was refused
	// Holds is set with RefusedFork when the device was acknowledged more than the cloud
	// holds: the next record of each lane of the epoch. Key 9 is that of the incarnation.
	Holds []uint64 `cbor:"10,keyasint,omitempty"`
}

// CommandKind says what a command asks for.
type CommandKind string

// Command kinds.
const (
	CmdOpenDoors    CommandKind = "open_doors"
	CmdCloseSession CommandKind = "close_session"
	CmdSyncConfig   CommandKind = "sync_config"
	CmdBlock        CommandKind = "block"
	CmdUnblock      CommandKind = "unblock"
	CmdClear        CommandKind = "clear"
	CmdResetTries   CommandKind = "reset_tries"
	CmdReboot       CommandKind = "reboot"
	CmdBeep         CommandKind = "beep"
	CmdShowMessage  CommandKind = "show_message"
	CmdCapture      CommandKind = "capture"
	CmdUpdate       CommandKind = "update"
	// Diagnoses. Their answer goes up as a file.
	CmdChannelTest   CommandKind = "channel_test"
	CmdSupportBundle CommandKind = "support_bundle"
	CmdBoardView     CommandKind = "board_view"
)

// IsDiagnosis reports whether a command asks for a file that goes up.
func (k CommandKind) IsDiagnosis() bool {
	return k == CmdChannelTest || k == CmdSupportBundle || k == CmdBoardView
}

// Command is the payload of a signed command.
type Command struct {
	CommandID  string          `cbor:"1,keyasint"` // UUIDv7
	DeviceCode string          `cbor:"2,keyasint"`
	IssuedAt   int64           `cbor:"3,keyasint"`           // unix ns
	ExpiresAt  int64           `cbor:"4,keyasint"`           // unix ns
	Versions   map[uint]uint64 `cbor:"5,keyasint,omitempty"` // door to compartment version
	Kind       CommandKind     `cbor:"6,keyasint"`
	Body       Raw             `cbor:"7,keyasint,omitempty"`
	// Trace is the traceparent (W3C Trace Context 3.2) of the call that gave the
	// command, for the device's log; "" when that was not followed.
	Trace string `cbor:"8,keyasint,omitempty"`
}

// OpenDoors is the body of CmdOpenDoors.
type OpenDoors struct {
	OpeningID      string            `cbor:"1,keyasint"`
	Kind           OpeningKind       `cbor:"2,keyasint"`
	Doors          []uint            `cbor:"3,keyasint"`
	SessionSeconds uint              `cbor:"4,keyasint"` // from the intent
	DeliveryRef    string            `cbor:"5,keyasint,omitempty"`
	Packages       map[uint][]string `cbor:"6,keyasint,omitempty"` // door to package refs
	Code           *CodeEntry        `cbor:"7,keyasint,omitempty"` // activated at settle
	Light          bool              `cbor:"8,keyasint,omitempty"`
	Replaces       string            `cbor:"9,keyasint,omitempty"` // opening id, for reassign
}

// Ways to close a session from the cloud.
const (
	CloseSettle = "settle"
	CloseCancel = "cancel"
)

// CloseSession is the body of CmdCloseSession.
type CloseSession struct {
	OpeningID   string      `cbor:"1,keyasint"`
	How         string      `cbor:"2,keyasint"`
	ConfirmedBy ConfirmedBy `cbor:"3,keyasint,omitempty"`
	// Packages names what was deposited, door to package refs; none: all of it.
	Packages map[uint][]string `cbor:"4,keyasint,omitempty"`
	// DeliveryRef is the opening's delivery, for a cabinet that has lost the opening.
	DeliveryRef string `cbor:"5,keyasint,omitempty"`
}

// DoorReason is the body of block, unblock, clear and reset_tries.
type DoorReason struct {
	Door   uint   `cbor:"1,keyasint,omitempty"`
	Reason string `cbor:"2,keyasint,omitempty"`
	// DeliveryRef is what a clear takes out; another delivery behind the door stays.
	DeliveryRef string `cbor:"3,keyasint,omitempty"`
}

// SyncConfig is the body of CmdSyncConfig.
type SyncConfig struct {
	Version uint64 `cbor:"1,keyasint"`
}

// Update is the body of CmdUpdate: a version of the device's program and where its artefact
// is. Version, Size and Digest repeat what the manifest says that Signature holds.
type Update struct {
	Version string `cbor:"1,keyasint"`
	// URL is a path at the cloud that the device was enrolled at, such as /api/v1/…; it
	// names no host.
	URL       string `cbor:"2,keyasint"`
	Size      int64  `cbor:"3,keyasint"` // of the program, bytes
	Digest    []byte `cbor:"4,keyasint"` // SHA-256 of the program
	Signature []byte `cbor:"5,keyasint"` // envelope of the manifest, by a release key
}

// Upload is where the answer to a diagnosis goes, once.
type Upload struct {
	// Path is at the cloud that the device was enrolled at, such as /api/v1/…; it names no
	// host. It has a token, which is secret.
	Path  string `cbor:"1,keyasint"`
	Until int64  `cbor:"2,keyasint"` // unix ns, after which nothing is taken
	Max   int64  `cbor:"3,keyasint"` // bytes of the file
}

// Diagnosis is the body of CmdBoardView and CmdSupportBundle.
type Diagnosis struct {
	Upload Upload `cbor:"1,keyasint"`
}

// ChannelTest is the body of CmdChannelTest: an opening by staff of one door, whose readings
// are the answer. Its keys are those of OpenDoors where it has the same.
type ChannelTest struct {
	OpeningID      string      `cbor:"1,keyasint"`
	Kind           OpeningKind `cbor:"2,keyasint"` // OpenStaff
	Doors          []uint      `cbor:"3,keyasint"` // one
	SessionSeconds uint        `cbor:"4,keyasint"` // from the intent
	Upload         Upload      `cbor:"10,keyasint"`
	Occupied       bool        `cbor:"11,keyasint,omitempty"` // a delivery may lie behind the door
}

// Time is the payload of a signed time answer.
type Time struct {
	DeviceCode string `cbor:"1,keyasint"`
	Nonce      []byte `cbor:"2,keyasint"`
	ServerTime int64  `cbor:"3,keyasint"` // unix ns
	// Challenge is set when the status that is answered may be a recorded one. An
	// agent that has asked for this answer repeats it in its statuses from then on,
	// and sends one. Key 4 is that of the incarnation.
	Challenge []byte `cbor:"5,keyasint,omitempty"`
}

// Codes is the payload of a signed piece of the code list: the entries that
// lead from list number From to To. From 0 is the whole list and replaces what
// the device holds.
type Codes struct {
	DeviceCode string      `cbor:"1,keyasint"`
	From       uint64      `cbor:"2,keyasint"`
	To         uint64      `cbor:"3,keyasint"`
	Entries    []CodeEntry `cbor:"4,keyasint"`
	// Generation counts up for ever: an older one is refused, and only a newer one
	// may lower the list's number.
	Generation uint64 `cbor:"5,keyasint,omitempty"`
	// Nonce is that of the status which a whole list answers. A tail names that of
	// the newest status, which proves that it is no recorded one.
	Nonce []byte `cbor:"6,keyasint,omitempty"`
	// Part numbers the messages of a whole list that does not fit into one, from 1
	// to at most MaxListParts; 0 is a message that stands for itself. The parts of a
	// list have one Generation, Nonce and End, and lead from 0 to End like tails,
	// each from the To of the one before. A device applies all of them or none; one
	// that knows no parts takes the first for a list and the others for tails.
	Part uint `cbor:"7,keyasint,omitempty"`
	// End is the number to which the last part leads: while To is below it, more
	// parts follow. 0 without Part.
	End uint64 `cbor:"8,keyasint,omitempty"`
}

// MaxListParts bounds the parts of one code list, and so what a device holds of
// a list before it applies it: 4 MiB.
const MaxListParts = 32

// Last is the number to which the list leads that c is, or is a part of.
func (c Codes) Last() uint64 {
	if c.Part != 0 {
		return c.End
	}
	return c.To
}

// IsWhole reports whether c is a whole list or a part of one.
func (c Codes) IsWhole() bool { return c.From == 0 || c.Part != 0 }

// Operations and kinds of code list entries, and when they become active.
const (
	CodeSet    = "set"
	CodeRevoke = "revoke"

	CodeDelivery = "delivery"
	CodePickup   = "pickup"
	CodeStaff    = "staff"
	CodeHandover = "handover"
	// CodeOutgoing says where a parcel lies, or is to lie, that a courier collects. It has
	// no verifier: no code opens its doors.
	CodeOutgoing = "outgoing"

	ActiveNow      = "now"
	ActiveAtSettle = "at_settle"
)

// Purposes of a delivery in a code entry; "" is one that a courier brings and its
// recipient collects. The others are brought by their sender, and a courier collects them.
const (
	PurposeSend   = "send"
	PurposeReturn = "return"
)

// CodeEntry is one entry of a device's code list. It holds a verifier, never a
// code. A revocation names the delivery and code kind it ends, or, without a
// delivery, the verifier.
type CodeEntry struct {
	Number      uint64            `cbor:"1,keyasint"`
	Op          string            `cbor:"2,keyasint"`
	Kind        string            `cbor:"3,keyasint"`
	Verifier    []byte            `cbor:"4,keyasint,omitempty"` // 32 bytes
	DeliveryRef string            `cbor:"5,keyasint,omitempty"`
	Doors       []uint            `cbor:"6,keyasint,omitempty"`
	Sizes       []string          `cbor:"7,keyasint,omitempty"`
	Packages    map[uint][]string `cbor:"8,keyasint,omitempty"` // door to package refs; key 0 when the door is chosen at the cabinet
	NotBefore   int64             `cbor:"9,keyasint,omitempty"` // unix ns
	NotAfter    int64             `cbor:"10,keyasint,omitempty"`
	Active      string            `cbor:"11,keyasint,omitempty"`
	Purpose     string            `cbor:"12,keyasint,omitempty"` // of the delivery; "" is delivery
}
