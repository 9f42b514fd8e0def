package cloud

import (
	"strings"
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// Device is a cabinet, kiosk, smart drop or warehouse post.
type Device struct {
	ID              DeviceID
	BusinessID      BusinessID
	Code            string // [A-Za-z0-9_-]{1,32}, fixed once enrolled
	Name            string
	Type            string // one of the Type constants
	Address         string // one line
	PostalCode      string // as people write it; empty: not known
	Country         string // one of Countries; empty: not known
	Latitude        float64
	Longitude       float64
	Timezone        string
	Protocol        string // mqtt, http, mock
	Disabled        bool
	Livemode        bool
	Public          bool // it is listed as a pickup point, for everybody
	OwnerProviderID ProviderID
	CreatedAt       time.Time

	SecretMAC  []byte // HMAC-SHA256 of the device secret under the server key
	SealedCode []byte // encrypted code_salt and code_key
	EnrolledAt time.Time
	// UpKey is the device's own public key, 32 bytes Ed25519: what it sends counts
	// only with a signature by it. nil: it signs nothing.
	UpKey []byte
	// CutOffAt is when staff last cut the device off; zero: never. Certificates and
	// enrolment tokens that were made before count for nothing.
	CutOffAt time.Time
	// RetiredAt is when staff took the device out of use for good; zero: they have not.
	RetiredAt time.Time
	// MaintenanceAt is since when the device takes no new deliveries; zero: it takes them.
	MaintenanceAt time.Time
	Profile       DeviceProfile

	Config        []byte // current configuration, encoded wire.Config
	ConfigVersion uint64
	CodeList      uint64 // number of the newest code list entry
	ListFrom      uint64 // lists with an older number are void as a whole; 0: none is
	// CodeGeneration is that of the code list. It starts at 1 and counts up when
	// numbers may go back: new secrets, or a held number above the newest.
	CodeGeneration uint64

	// What the device last said.
	Applied   uint64 // configuration version
	CodesHeld uint64 // code list number
	// HeldGeneration is the generation of that list, 0 when none was ever held.
	HeldGeneration uint64
	Firmware       string
	Program        DeviceProgram
	LastSeenAt     time.Time
	LastPlaced     time.Time // occurred_at of the last placed record
	StatusAt       time.Time
	StatusEnds     [wire.Lanes]uint64 // last sequence number of each lane in the newest status
	StatusEpoch    wire.Epoch
	// TypedLocked is until when the keypad takes no typed codes; zero: it takes them.
	TypedLocked time.Time
}

// Types of devices.
const (
	TypeSmartLocker = "smart_locker"
	TypeKiosk       = "kiosk"
	TypeSmartDrop   = "smart_drop"
	// TypeScanPost is a warehouse post: its agent scans labels of parcels, and it has no doors.
	TypeScanPost = "scan_post"
)

// IsPost reports whether d is a warehouse post, which has no doors and takes no deliveries.
func (d Device) IsPost() bool { return d.Type == TypeScanPost }

// DeviceProgram is what a device last said of its program, beside its version. The zero value
// is a device that said nothing.
type DeviceProgram struct {
	Platform string `json:"platform,omitempty"` // as Go names it: linux/arm64
	// Updates is whether it takes updates by command.
	Updates bool   `json:"updates,omitempty"`
	Trial   bool   `json:"trial,omitempty"`    // Firmware is on trial
	GivenUp string `json:"given_up,omitempty"` // newest version that did not work and was left, without v
	Reason  string `json:"reason,omitempty"`   // why it was left
}

// ProtocolMock is the protocol of mock cabinets: the cloud itself plays them.
const ProtocolMock = "mock"

// MockCodePrefix begins the codes of mock cabinets.
const MockCodePrefix = "MOCK-"

// MockCabinet is a mock cabinet between two steps of it.
type MockCabinet struct {
	DeviceID DeviceID
	State    []byte    // in the form of cloud/mock; a change without one changes DueAt alone
	DueAt    time.Time // when time alone or an order changes something; zero: nothing is due
}

// ProtocolMQTT is that of devices that run an agent; ProtocolHTTP that of devices that call
// the cloud, which runs their rules.
const (
	ProtocolMQTT = "mqtt"
	ProtocolHTTP = "http"
)

// HTTPDevice is a device that speaks HTTP between two steps of it.
type HTTPDevice struct {
	DeviceID DeviceID
	// SealedSecret is the encrypted device secret. A change with one begins the device anew;
	// Orders is 0 then.
	SealedSecret []byte
	State        []byte    // in the form of cloud/httpdevice; a change without one changes DueAt alone
	Orders       uint64    // ever given to the device
	DueAt        time.Time // when time alone or an order of the cloud's changes something; zero: nothing is due
	Ended        bool      // a change that drops the device and its nonces: it was retired
}

// HTTPNonce is one that a request of a device used: a second request with it is refused.
type HTTPNonce struct {
	DeviceID  DeviceID
	Nonce     string
	ExpiresAt time.Time // then a request with it is too old
	Now       time.Time
}

// IsCutOff reports whether the device has no way in: its hardware was stolen,
// replaced or retired, and none has enrolled since.
func (d Device) IsCutOff() bool { return len(d.SecretMAC) == 0 && !d.CutOffAt.IsZero() }

// Place is where the device stands, in degrees; nil while that is not known.
func (d Device) Place() (latitude, longitude *float64) {
	if d.Latitude == 0 && d.Longitude == 0 {
		return nil, nil
	}
	return &d.Latitude, &d.Longitude
}

// ListHeld is the number up to which the device confirmed the present list, 0
// when what it holds is of another generation.
func (d Device) ListHeld() uint64 {
	if d.HeldGeneration != max(d.CodeGeneration, 1) || d.CodesHeld > d.CodeList || d.CodesHeld < d.ListFrom {
		return 0
	}
	return d.CodesHeld
}

// Session is the row that owns a device's connection. Generation grows with
// every login; a batch or command of an older generation counts for nothing.
type Session struct {
	DeviceID    DeviceID
	Generation  int64
	Node        string
	Online      bool
	Instance    string // of the newest status, hex
	Instances   []InstanceSeen
	ConnectedAt time.Time
	LastSeenAt  time.Time
}

// InstanceSeen remembers the last agents that connected under one identity, to
// tell a reconnect from two agents that take turns, and a new status from one
// that was kept. The one that spoke last comes last, at most MaxInstances.
type InstanceSeen struct {
	Instance string    `json:"Instance"`
	At       time.Time `json:"At"` // when it began to be the one that speaks
	// Boot and Count are those of its newest status.
	Boot  uint64 `json:"Boot"`
	Count uint64 `json:"Count"`
	// Highest is the highest Boot of all agents before it, remembered or not.
	Highest uint64 `json:"Highest"`
}

// MaxInstances is how many agents of a device are remembered.
const MaxInstances = 16

// Epoch is one store of a device.
type Epoch struct {
	DeviceID DeviceID
	Epoch    wire.Epoch
	Prev     wire.Epoch // zero when unknown
	Current  bool       // a device has one current epoch
	OpenedAt time.Time
	ClosedAt time.Time
}

// LaneState is where the cloud stands in one lane of one epoch. It is the lock
// of that lane: Changes.Lanes are conditional on Next being what was read.
type LaneState struct {
	DeviceID DeviceID
	Epoch    wire.Epoch
	Lane     wire.Lane
	Next     uint64 // everything below is stored or named by a gap
	Head     wire.Head
}

// JournalBatch is one batch as it came: the evidence from which everything
// derived can be made again.
type JournalBatch struct {
	DeviceID   DeviceID
	Epoch      wire.Epoch
	Lane       wire.Lane
	First      uint64
	Count      int
	Bytes      []byte // the MQTT payload
	Head       wire.Head
	ReceivedAt time.Time
	// Aside holds the reason when the batch was kept as evidence only (fork,
	// epoch_conflict, bad_batch); such a row derives nothing. Of each device the
	// newest are kept: MaxAside batches, MaxAsideBytes together.
	Aside string
}

// Bounds of the batches of one device that are kept as evidence only.
const (
	MaxAside      = 100
	MaxAsideBytes = 8 << 20
)

// GapRange is a range of one lane that a gap record named.
type GapRange struct {
	DeviceID DeviceID
	Epoch    wire.Epoch // whose records are missing
	Lane     wire.Lane
	First    uint64
	Last     uint64 // 0: unknown
	Reason   string
	Missing  uint64    // records of the range that the cloud lacks
	Head     wire.Head // chain value after Last, zero when unknown
}

// DetailText is what a device said, or a decoder quotes of its bytes, as it is kept: fit for
// storing, and not long.
func DetailText(s string) string {
	const most = 512
	s = wire.CleanText(s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// DeviceException is a fault of the link or of a device's behaviour, for the
// console and metrics. It sends no webhook. At most one of a type is open per
// device; Count says how often it was seen.
type DeviceException struct {
	DeviceID DeviceID
	Type     string // one of the Dev constants
	Detail   string
	Count    int64
	OpenedAt time.Time
	SeenAt   time.Time
	ClosedAt time.Time
}

// Types of device exceptions.
const (
	DevBadBatch          = "bad_batch"
	DevEpochConflict     = "epoch_conflict"
	DevStoreFork         = "store_fork"
	DevForeignReference  = "foreign_reference"
	DevDuplicateIdentity = "duplicate_identity"
	// DevBadSignature: something came that the device's own key has not signed.
	DevBadSignature = "bad_signature"
	// DevContentsMismatch: the cabinet and the cloud disagree about what lies in
	// compartments, which are out of use until they agree or staff decide.
	DevContentsMismatch = "contents_mismatch"
	// DevTooManyEpochs: the device begins new stores faster than disks fail.
	DevTooManyEpochs = "too_many_epochs"
	// DevKeypadLocked: the keypad takes no typed codes after thirty wrong ones.
	DevKeypadLocked = "keypad_locked"
	// DevConfigRefused: the cabinet has refused the newest configuration.
	DevConfigRefused = "config_refused"
	// DevCompartmentBlocked: couriers had compartments blocked at the cabinet.
	DevCompartmentBlocked = "compartment_blocked"
	// DevDoorShut: doors stayed shut when they were last to open, and have not opened since.
	DevDoorShut = "door_not_opening"
	// DevUnknownLabel: a scanner read a label that names no parcel of the business.
	DevUnknownLabel = "unknown_label"
	// DevReportedStolen: staff have reported the cabinet as stolen.
	DevReportedStolen = "reported_stolen"
)

// ExpiringCommand says when a command that no cabinet has taken expires.
type ExpiringCommand struct {
	DeviceID  DeviceID
	ExpiresAt time.Time
}

// CommandState is where a command row stands.
type CommandState string

// Command states.
const (
	CommandQueued      CommandState = "queued"
	CommandSent        CommandState = "sent"
	CommandAccepted    CommandState = "accepted"
	CommandDone        CommandState = "done"
	CommandPartial     CommandState = "partial"
	CommandFailed      CommandState = "failed"
	CommandRefused     CommandState = "refused"
	CommandExpired     CommandState = "expired"
	CommandInterrupted CommandState = "interrupted"
)

// Ended reports whether the command has an outcome.
func (s CommandState) Ended() bool {
	switch s {
	case CommandQueued, CommandSent, CommandAccepted:
		return false
	}
	return true
}

// Command is one signed order to a device.
type Command struct {
	ID        string // UUIDv7
	DeviceID  DeviceID
	OpeningID string // when it is about one
	Kind      wire.CommandKind
	Body      []byte // encoded body of wire.Command
	Versions  map[uint]uint64
	IssuedAt  time.Time
	ExpiresAt time.Time
	State     CommandState
	Reason    string
	Doors     map[uint]string // error codes
	SentAt    time.Time       // last time it was handed to the broker
	EndedAt   time.Time
	Trace     string // traceparent of the call that gave it, "" when that was not followed
}

// Expired reports whether no cabinet takes the command at a time: its life is over, and
// none had accepted it.
func (c Command) Expired(at time.Time) bool {
	return c.State == CommandExpired || (c.State == CommandQueued || c.State == CommandSent) && !at.Before(c.ExpiresAt)
}

// CodeRow is one entry of a device's numbered code list.
type CodeRow struct {
	DeviceID    DeviceID
	DeliveryID  DeliveryID  // 0: it is of no delivery
	StaffCodeID StaffCodeID // 0: it is of no staff member
	Entry       wire.CodeEntry
	CreatedAt   time.Time
	DroppedAt   time.Time // the delivery or the day has ended; left out of whole lists
}

// Ends reports whether the entry ends codes, where the cabinet has it.
func (r CodeRow) Ends() bool { return r.Entry.Op == wire.CodeRevoke }

// EnrolmentToken lets one device enrol once.
type EnrolmentToken struct {
	Hash      [32]byte
	DeviceID  DeviceID
	ExpiresAt time.Time
	UsedAt    time.Time
}

// DeviceView reads the present of cabinets and what they send.
type DeviceView interface {
	Device(DeviceID) (Device, error)
	// Devices lists a part of a business's devices, in the order that the page of
	// the filter asks for: id, name or code.
	Devices(DeviceFilter) ([]Device, Listed, error)
	// DeviceExceptions lists the open device exceptions of a device, oldest first.
	DeviceExceptions(DeviceID) ([]DeviceException, error)
	Session(DeviceID) (Session, error)
	CurrentEpoch(DeviceID) (Epoch, error)
	// FindEpoch finds an epoch of any device.
	FindEpoch(wire.Epoch) (Epoch, error)
	// EpochsSince counts a device's epochs that were opened at a time or later, up to
	// most.
	EpochsSince(d DeviceID, at time.Time, most int) (int, error)
	Lane(DeviceID, wire.Epoch, wire.Lane) (LaneState, error)
	// Gaps lists the stored gap ranges of a lane that end at or after from,
	// by First.
	Gaps(d DeviceID, e wire.Epoch, l wire.Lane, from uint64) ([]GapRange, error)
	// MockCabinet is the state of a mock cabinet.
	MockCabinet(DeviceID) (MockCabinet, error)
	// HTTPDevice is the state of a device that speaks HTTP.
	HTTPDevice(DeviceID) (HTTPDevice, error)
	// MockOf is the mock cabinet of a provider.
	MockOf(ProviderID) (Device, error)
	// HasDevice reports whether a device of the deployment has a code.
	HasDevice(code string) (bool, error)
	// Journal lists stored batches (not aside) of a lane that hold a record in
	// [first, last], by First.
	Journal(d DeviceID, e wire.Epoch, l wire.Lane, first, last uint64) ([]JournalBatch, error)
}

// DeviceChanges are the changes of cabinets and what they send.
type DeviceChanges struct {
	// Generation, when not 0, is the session generation that Device must have.
	Generation int64 `change:"condition"`
	// Lanes moves lanes: the stored Next must equal From (0: no row yet).
	Lanes        []LaneMove
	Devices      []Device // all but the columns of DeviceSeen
	Seen         []DeviceSeen
	Sessions     []Session
	Epochs       []Epoch
	Batches      []JournalBatch // insert
	Gaps         []GapRange
	DeviceFaults []DeviceException // counts up the open one of its type, or opens it
	Enrolments   []EnrolmentToken
	Mocks        []MockCabinet
	HTTPDevices  []HTTPDevice
	HTTPNonces   []HTTPNonce // insert: cloud.ErrExists for one that was used
}

func (s *DeviceChanges) preview(e *effectList) {
	previewEach(e, "Devices", s.Devices, func(x Device) {
		old, err := e.view.Device(x.ID)
		showChanged(e, "device", x.ID, x.Code, x.withoutReports(), old.withoutReports(), err, Device.members)
	})
}

// members are those of a device that a preview shows.
func (d Device) members() map[string]any {
	return map[string]any{"name": OrNull(d.Name), "address": OrNull(d.Address), "postal_code": OrNull(d.PostalCode), "country": OrNull(d.Country), "timezone": OrNull(d.Timezone), "enabled": !d.Disabled, "maintenance": !d.MaintenanceAt.IsZero(),
		"awaits_hardware": d.IsCutOff(), "retired": !d.RetiredAt.IsZero()}
}

// LaneMove is a conditional update of one lane.
type LaneMove struct {
	From uint64
	To   LaneState
}

// DeviceSeen is what a status or batch teaches about a device. Zero fields
// leave the stored value.
type DeviceSeen struct {
	DeviceID   DeviceID
	LastSeenAt time.Time
	LastPlaced time.Time
	Applied    uint64
	CodesHeld  *uint64
	// HeldGeneration goes with CodesHeld.
	HeldGeneration *uint64
	// TypedLocked is until when the keypad is locked; a zero time: it is not.
	TypedLocked *time.Time
	Firmware    string
	Program     *DeviceProgram
	StatusAt    time.Time
	StatusEnds  *[wire.Lanes]uint64
	StatusEpoch wire.Epoch
}

// withoutReports is a device without what it last said: it speaks all the time,
// and that is no other version of what people decide about.
func (d Device) withoutReports() Device {
	d.Applied, d.CodesHeld, d.HeldGeneration, d.Firmware, d.Program = 0, 0, 0, "", DeviceProgram{}
	d.LastSeenAt, d.LastPlaced, d.StatusAt, d.TypedLocked = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	d.StatusEnds, d.StatusEpoch = [wire.Lanes]uint64{}, wire.Epoch{}
	return d
}

// DeviceChange is something that a node may have to send to a device, or a change of what it
// is sent. Two that are equal are the same change.
type DeviceChange struct {
	DeviceID DeviceID
	Command  string // its id; "" for a change of codes, configuration or standing
	At       int64  // ms, by the clock of the node that committed it
}
