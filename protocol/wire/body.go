package wire

import "slices"

// Item is an item sensor's reading. The zero value is no sensor or no reading.
type Item uint8

// Item readings. On the wire an absent key is ItemUnknown.
const (
	ItemUnknown Item = 0
	ItemAbsent  Item = 1
	ItemPresent Item = 2
)

// OpeningKind says what an opening is for.
type OpeningKind string

// Opening kinds.
const (
	OpenDeposit    OpeningKind = "deposit"
	OpenReassign   OpeningKind = "reassign"
	OpenCorrection OpeningKind = "correction"
	OpenPickup     OpeningKind = "pickup"
	OpenStaff      OpeningKind = "staff"
)

// IsDeposit reports whether an opening of this kind ends with a settlement.
func (k OpeningKind) IsDeposit() bool {
	return k == OpenDeposit || k == OpenReassign || k == OpenCorrection
}

// ConfirmedBy says how a deposit was confirmed.
type ConfirmedBy string

// Ways a deposit is confirmed. The first three are settled by the cabinet, the
// last two by the cloud.
const (
	ByDoorClose         ConfirmedBy = "door_close"
	ByTimeoutDoorClosed ConfirmedBy = "timeout_door_closed"
	ByCourierTerminal   ConfirmedBy = "courier_terminal"
	ByPartnerAPI        ConfirmedBy = "partner_api"
	ByConsole           ConfirmedBy = "console"
)

// IsStated reports whether a deposit was confirmed by what the partner or staff said, and
// not by what the cabinet saw.
func (c ConfirmedBy) IsStated() bool { return c == ByPartnerAPI || c == ByConsole }

// Package outcomes in a settlement.
const (
	Deposited  = "deposited"
	Unverified = "unverified"
	Failed     = "failed"
)

// Reasons an opening ends without a settlement.
const (
	EndDone              = "done"
	EndDepositUnverified = "deposit_unverified"
	EndOpenFailed        = "open_failed"
	EndCancelled         = "cancelled"
	EndNotCollected      = "not_collected"
)

// OpeningStarted is the body of kind 1. CommandID is "local" for an opening
// that the cabinet authorised itself. Keys after 5 say what the opening is
// for when the cloud has not named it: the cabinet made its id.
type OpeningStarted struct {
	OpeningID   string      `cbor:"1,keyasint"`
	Kind        OpeningKind `cbor:"2,keyasint"`
	Doors       []uint      `cbor:"3,keyasint"`
	CommandID   string      `cbor:"4,keyasint"`
	Who         string      `cbor:"5,keyasint"` // courier, recipient, staff, remote
	DeliveryRef string      `cbor:"6,keyasint,omitempty"`
	EndsAt      int64       `cbor:"7,keyasint,omitempty"` // planned end by the device's wall clock, unix ns
	// How and PassID are set when a signed QR code was shown: PassInput, and the id that
	// the code has used up.
	How    string `cbor:"8,keyasint,omitempty"`
	PassID []byte `cbor:"9,keyasint,omitempty"`
	// CodeNumber is the code list entry of the code that authorised a local opening.
	CodeNumber uint64 `cbor:"10,keyasint,omitempty"`
	// Packages are those that go behind each door of a reassignment that the cabinet began
	// itself. Without them all that wait go to its doors.
	Packages map[uint][]string `cbor:"11,keyasint,omitempty"`
}

// LocalCommand stands for the command of an opening the cabinet authorised.
const LocalCommand = "local"

// DoorOpened is the body of kind 2.
type DoorOpened struct {
	OpeningID string `cbor:"1,keyasint,omitempty"`
	Door      uint   `cbor:"2,keyasint"`
	Pulses    uint   `cbor:"3,keyasint,omitempty"`
}

// DoorClosed is the body of kind 3.
type DoorClosed struct {
	OpeningID string `cbor:"1,keyasint,omitempty"`
	Door      uint   `cbor:"2,keyasint"`
	OpenMS    int64  `cbor:"3,keyasint"`
	Item      Item   `cbor:"4,keyasint,omitempty"`
}

// OpeningSettled is the body of kind 4: the deposit's time is the last
// closed_at. Correction is true for an opening of kind correction.
type OpeningSettled struct {
	OpeningID   string           `cbor:"1,keyasint"`
	ConfirmedBy ConfirmedBy      `cbor:"2,keyasint"`
	Doors       []SettledDoor    `cbor:"3,keyasint"`
	Packages    []SettledPackage `cbor:"4,keyasint"`
}

// SettledDoor is one door of a settled opening. A zero time means that it was
// not seen. Times are unix ns by the device's wall clock.
type SettledDoor struct {
	Door     uint  `cbor:"1,keyasint"`
	OpenedAt int64 `cbor:"2,keyasint,omitempty"`
	ClosedAt int64 `cbor:"3,keyasint,omitempty"`
	Item     Item  `cbor:"4,keyasint,omitempty"`
	// ClosedAfter and ClosedBefore bound a close that was not seen: the door was
	// last known open at the first and first read closed at the second. ClosedAt
	// is then the second.
	ClosedAfter  int64 `cbor:"5,keyasint,omitempty"`
	ClosedBefore int64 `cbor:"6,keyasint,omitempty"`
}

// SettledPackage is the result for one package.
type SettledPackage struct {
	Ref         string `cbor:"1,keyasint"`
	Door        uint   `cbor:"2,keyasint"`
	Outcome     string `cbor:"3,keyasint"`
	FailureCode string `cbor:"4,keyasint,omitempty"`
	CodeNumber  uint64 `cbor:"5,keyasint,omitempty"` // code list entry that this settlement activated
}

// OpeningEnded is the body of kind 5.
type OpeningEnded struct {
	OpeningID string `cbor:"1,keyasint"`
	Reason    string `cbor:"2,keyasint"`
}

// PickupCompleted is the body of kind 6. It never holds the code.
type PickupCompleted struct {
	DeliveryRef string `cbor:"1,keyasint"`
	OpeningID   string `cbor:"2,keyasint"`
	Doors       []uint `cbor:"3,keyasint"`
	StillOpen   bool   `cbor:"4,keyasint,omitempty"`
	How         string `cbor:"5,keyasint"` // keypad, qr, signed_qr, remote
	CodeNumber  uint64 `cbor:"6,keyasint,omitempty"`
	ListNumber  uint64 `cbor:"7,keyasint,omitempty"`
	// Left are doors of the delivery that keep their packages and the code:
	// they did not open, or something is still inside.
	Left []uint `cbor:"8,keyasint,omitempty"`
}

// Command outcomes.
const (
	OutcomeDone        = "done"
	OutcomePartial     = "partial"
	OutcomeFailed      = "failed"
	OutcomeRefused     = "refused"
	OutcomeExpired     = "expired"
	OutcomeInterrupted = "interrupted"
)

// Reasons in a refused outcome, and codes of single doors.
const (
	ReasonClock       = "clock"
	ReasonBusy        = "busy"
	ReasonOccupied    = "occupied"
	ReasonNotInside   = "not_inside" // the delivery to correct or to collect does not lie there (any more)
	ReasonOvertaken   = "overtaken"
	ReasonUnknownDoor = "unknown_door"
	ReasonBoard       = "board_offline"
	ReasonSuspect     = "out_of_service"
	ReasonStore       = "store_full"
	ReasonUnsupported = "unsupported"
	ReasonNoOpening   = "no_opening"
	// ReasonMemory: the command is older than a loss of the cabinet's memory, which
	// does not know whether it was carried out. A new one is needed.
	ReasonMemory = "memory_lost"
	// Reasons of CmdUpdate.
	ReasonNoLauncher = "no_launcher"      // nothing starts another program when this one ends
	ReasonNoKey      = "no_release_key"   // the device knows none
	ReasonNoCloud    = "no_cloud_address" // nor where its cloud's HTTPS is
	ReasonForged     = "not_signed"       // by a release key that the device knows, or not what was signed
	ReasonMachine    = "other_machine"    // it is for another product, system or processor
	ReasonNotNewer   = "not_newer"        // than each version that was accepted before, or the packaged one
	ReasonTrial      = "update_on_trial"  // the version that runs has yet to show that it works
	ReasonUpdating   = "update_running"   // another update is being fetched
	ReasonFetch      = "not_fetched"      // the cloud did not give the artefact, or not in time
	ReasonDisk       = "not_kept"         // the disk did not take it
	// Reasons of diagnoses, beside ReasonNoCloud and ReasonDisk.
	ReasonDiagnosing = "diagnosis_running" // another one has no outcome yet
	ReasonNotSent    = "not_sent"          // the cloud did not take the answer, or not in time
	ReasonRestarted  = "restarted"         // the agent started in the middle of it
	DoorOpenFailed   = "open_failed"
	DoorNotSeen      = "not_seen"
)

// CommandOutcome is the body of kind 7.
type CommandOutcome struct {
	CommandID string          `cbor:"1,keyasint"`
	Outcome   string          `cbor:"2,keyasint"`
	Doors     map[uint]string `cbor:"3,keyasint,omitempty"` // error code per door that has one
	Reason    string          `cbor:"4,keyasint,omitempty"`
	// Digest is the SHA-256 of the file that a diagnosis has sent up.
	Digest []byte `cbor:"5,keyasint,omitempty"`
}

// Exception is the body of kinds 8 and 9. In kind 9 Evidence says how it
// ended; Type, Severity and Door are repeated.
type Exception struct {
	ID       string `cbor:"1,keyasint"`
	Type     string `cbor:"2,keyasint"`
	Severity string `cbor:"3,keyasint"`
	Door     uint   `cbor:"4,keyasint,omitempty"`
	Evidence string `cbor:"5,keyasint,omitempty"`
}

// Types and severities of exceptions.
const (
	ExDoorLeftOpen      = "door_left_open"
	ExDepositUnverified = "deposit_unverified"
	ExItemMissing       = "item_missing"

	SeverityLow    = "low"
	SeverityMedium = "medium"
	SeverityHigh   = "high"
)

// TrackingEvent is the body of kind 10: an OTEP event made at the device.
type TrackingEvent struct {
	Subject    string            `cbor:"1,keyasint"` // tracking number
	StatusCode string            `cbor:"2,keyasint"`
	Location   string            `cbor:"3,keyasint,omitempty"` // name of the post
	Extensions map[string]string `cbor:"4,keyasint,omitempty"`
	ScannedAt  int64             `cbor:"5,keyasint,omitempty"` // see Scan
}

// ScannedUnknown is the ScannedAt of a scan that came later, of which nothing says when it was
// made.
const ScannedUnknown = -1

// Scan is the body of kind 11.
type Scan struct {
	Raw         []byte            `cbor:"1,keyasint"`
	Symbology   string            `cbor:"2,keyasint,omitempty"`
	Identifiers map[string]string `cbor:"3,keyasint,omitempty"` // application identifier to value
	Certainty   string            `cbor:"4,keyasint,omitempty"` // exact, recovered, ambiguous
	Post        string            `cbor:"5,keyasint,omitempty"`
	Step        string            `cbor:"6,keyasint,omitempty"`
	Repeats     uint              `cbor:"7,keyasint,omitempty"`
	// ScannedAt is of a scanner that keeps its scans and sends them later: when it was made by
	// the scanner's own clock, unix ns, or ScannedUnknown. The record's time is that of sending.
	ScannedAt int64 `cbor:"8,keyasint,omitempty"`
}

// Measurement is the body of kind 12.
type Measurement struct {
	Type  string  `cbor:"1,keyasint"`
	Value float64 `cbor:"2,keyasint"`
	Unit  string  `cbor:"3,keyasint,omitempty"`
	Door  uint    `cbor:"4,keyasint,omitempty"`
}

// Health is the body of kind 13. Keys of the maps are names of counters.
type Health struct {
	Boards       map[string]uint64  `cbor:"1,keyasint,omitempty"` // errors per board
	StoreUse     map[string]uint64  `cbor:"2,keyasint,omitempty"`
	Uplink       map[string]uint64  `cbor:"3,keyasint,omitempty"`
	Temperatures map[string]float64 `cbor:"4,keyasint,omitempty"`
	Versions     map[string]string  `cbor:"5,keyasint,omitempty"`
	Locks        []LockWear         `cbor:"6,keyasint,omitempty"` // by door; in some reports only
}

// LockWear is what a lock has done. An act is an opening of its door by pulses.
type LockWear struct {
	Door    uint   `cbor:"1,keyasint"`
	Cycles  uint64 `cbor:"2,keyasint"`           // acts that opened the door
	Failed  uint64 `cbor:"3,keyasint,omitempty"` // acts that did not
	Trouble uint32 `cbor:"4,keyasint,omitempty"` // of the last 32 acts, the newest in bit 0: the first pulse did not open the door
	Acts    uint8  `cbor:"5,keyasint,omitempty"` // how many of the last acts there are, to 32
	DelayMS uint32 `cbor:"6,keyasint,omitempty"` // from pulse to open door, smoothed
}

// Outcomes of a code attempt.
const (
	CodeOK        = "ok"
	CodeUnknown   = "unknown"
	CodeNotActive = "not_active"
	CodeExpired   = "expired"
	CodeLockedOut = "locked_out"
)

// CodeAttempt is the body of kind 14. It never holds the code.
type CodeAttempt struct {
	Outcome string `cbor:"1,keyasint"`
	Input   string `cbor:"2,keyasint"` // keypad, qr, signed_qr
}

// ConfigApplied is the body of kind 15. Result is "ok" or the reason in words.
type ConfigApplied struct {
	Version uint64 `cbor:"1,keyasint"`
	Result  string `cbor:"2,keyasint"`
}

// Reasons of a gap.
const (
	GapEvicted         = "evicted"
	GapRefused         = "refused"
	GapStoreCreated    = "store_created"
	GapStoreDamaged    = "store_damaged"
	GapStoreRolledBack = "store_rolled_back"
	GapCloudRestored   = "cloud_restored"
)

// Gap is the body of kind 16: records that will never come. Last 0 means that
// the end is unknown; First 0 that nothing is known to be missing. A gap of
// another epoch than the batch's own says why the batch's epoch began.
type Gap struct {
	Epoch     Epoch           `cbor:"1,keyasint"`
	Lane      Lane            `cbor:"2,keyasint"`
	First     uint64          `cbor:"3,keyasint"`
	Last      uint64          `cbor:"4,keyasint,omitempty"`
	Reason    string          `cbor:"5,keyasint"`
	Counts    map[Kind]uint64 `cbor:"6,keyasint,omitempty"`
	HeadAfter *Head           `cbor:"7,keyasint,omitempty"`
}

// Kinds of tampering.
const (
	TamperDoorForced      = "door_forced"
	TamperCabinetOpened   = "cabinet_opened"
	TamperStoreRolledBack = "store_rolled_back"
	TamperBadSignature    = "bad_signature"
	TamperOldList         = "old_code_list" // a code list that would have gone back
)

// Tamper is the body of kind 17. Count is how often it was seen since the
// last record of its kind and door, when more than once.
type Tamper struct {
	What  string `cbor:"1,keyasint"`
	Door  uint   `cbor:"2,keyasint,omitempty"`
	Count uint64 `cbor:"3,keyasint,omitempty"`
}

// Outcomes of a removal.
const (
	RemovalTaken    = "taken"     // the packages were taken out
	RemovalNotFound = "not_found" // the compartment was empty
	RemovalRefused  = "refused"   // they were left inside
)

// RemovalCollected is the reason of a removal by which overdue or outgoing packages are
// collected from a compartment.
const RemovalCollected = "collected"

// RemovalReasons are the other reasons of a removal, those of the registry of packages in
// cabinets.
func RemovalReasons() []string {
	return []string{"overdue_return", "handover", "relay", "anomaly", "recovery", "pending_area", "deleted", "destroyed"}
}

// IsRemoval reports whether a removal has such an outcome and such a reason: packages that
// were not found, or left inside, were only to be collected.
func IsRemoval(outcome, reason string) bool {
	switch outcome {
	case RemovalTaken:
		return reason == RemovalCollected || slices.Contains(RemovalReasons(), reason)
	case RemovalNotFound, RemovalRefused:
		return reason == RemovalCollected
	}
	return false
}

// Removal is the body of kind 18: what staff stated at the cabinet's screen of all packages
// of a delivery behind a door that a staff opening had opened. The cabinet has let go of them,
// unless they were left inside.
type Removal struct {
	ID          string `cbor:"1,keyasint"` // random, at most 40 characters; a removal counts once
	DeliveryRef string `cbor:"2,keyasint"`
	OpeningID   string `cbor:"3,keyasint"`
	Door        uint   `cbor:"4,keyasint"`
	Outcome     string `cbor:"5,keyasint"` // as IsRemoval allows
	Reason      string `cbor:"6,keyasint"`
	// CodeNumber is the code list entry of the staff code, 0 for a signed QR code.
	CodeNumber uint64 `cbor:"7,keyasint,omitempty"`
	Item       Item   `cbor:"8,keyasint,omitempty"` // what the sensor saw then
}

// Reasons for which a courier has a compartment blocked at the cabinet.
const (
	BlockOccupied = "occupied" // something lies in it although it was free
	BlockDirty    = "dirty"
	BlockBroken   = "broken"
)

// CompartmentBlocked is the body of kind 19: the cabinet has taken a compartment out of use by
// itself. A block has an id of its own, so that one that was lifted does not come again.
type CompartmentBlocked struct {
	BlockID   string `cbor:"1,keyasint"` // random, at most 40 characters
	Door      uint   `cbor:"2,keyasint"`
	Reason    string `cbor:"3,keyasint"` // BlockOccupied, BlockDirty or BlockBroken
	OpeningID string `cbor:"4,keyasint,omitempty"`
	Who       string `cbor:"5,keyasint"` // as in OpeningStarted
}
