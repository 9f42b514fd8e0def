package cloud

import (
	"reflect"
	"time"

	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// View reads the present inside one transaction. Values are copies. A missing
// row is ErrNotFound. It must not be used after the decision returned, nor
// from another goroutine.
type View interface {
	// NewID gives an id that was never given before. Ids of a decision that
	// wrote nothing are lost.
	NewID(IDKind) (int64, error)

	// Setup is the deployment's one row. In a decision on PostgreSQL it waits for
	// others that decide about it; a decision that makes the first administrator
	// writes it.
	Setup() (Setup, error)
	// HasAdministrator reports whether any business has an administrator.
	HasAdministrator() (bool, error)

	Business(BusinessID) (Business, error)
	BusinessByCode(string) (Business, error)
	Account(AccountID) (Account, error)
	Provider(ProviderID) (Provider, error)
	Endpoints(ProviderID) ([]Endpoint, error) // of one provider, enabled or not
	// WebhookSettings are those of a business, or with a customer of that
	// customer's level. In a decision they stay as they are until it is stored.
	WebhookSettings(BusinessID, AccountID) (WebhookSettings, error)
	// AccountEndpoints lists the receivers of a business's account channel, those
	// of its customers and of postbacks too, enabled or not, without secrets.
	AccountEndpoints(BusinessID) ([]Endpoint, error)

	Device(DeviceID) (Device, error)
	// DeviceExceptions lists the open device exceptions of a device, oldest first.
	DeviceExceptions(DeviceID) ([]DeviceException, error)
	Session(DeviceID) (Session, error)
	CurrentEpoch(DeviceID) (Epoch, error)
	// FindEpoch finds an epoch whoever's it is.
	FindEpoch(wire.Epoch) (Epoch, error)
	// EpochsSince counts a device's epochs that were opened at a time or later, up to
	// most.
	EpochsSince(d DeviceID, at time.Time, most int) (int, error)
	Lane(DeviceID, wire.Epoch, wire.Lane) (LaneState, error)
	// Gaps lists the stored gap ranges of a lane that end at or after from,
	// by First.
	Gaps(d DeviceID, e wire.Epoch, l wire.Lane, from uint64) ([]GapRange, error)
	// Journal lists stored batches (not aside) of a lane that hold a record in
	// [first, last], by First.
	Journal(d DeviceID, e wire.Epoch, l wire.Lane, first, last uint64) ([]JournalBatch, error)

	Compartments(DeviceID) ([]Compartment, error) // by door
	Compartment(DeviceID, uint) (Compartment, error)
	Delivery(DeliveryID) (Delivery, error)
	DeliveryByNumber(string) (Delivery, error)
	DeliveryByReference(ProviderID, string) (Delivery, error)
	Opening(string) (Opening, error)
	// RunningOpenings lists openings of a device that have no end yet.
	RunningOpenings(DeviceID) ([]Opening, error)
	// DeliveryOpenings lists a delivery's openings, oldest first.
	DeliveryOpenings(DeliveryID) ([]Opening, error)
	Command(string) (Command, error)
	// OpenCommands lists a device's commands without an outcome, oldest first.
	OpenCommands(DeviceID) ([]Command, error)
	// CodeRows lists code list entries of a device with a number above from,
	// by number; dropped ones too unless from is 0. At most limit.
	CodeRows(d DeviceID, from uint64, limit int) ([]CodeRow, error)
	DeliveryCodes(DeliveryID) ([]CodeRow, error)
	DeviceOrders(DeliveryID) ([]DeviceOrder, error)
	// OpenExceptions lists open exceptions of a device; ExceptionBySource finds
	// one, open or closed, by what raised it.
	OpenExceptions(DeviceID) ([]Exception, error)
	ExceptionBySource(DeviceID, string) (Exception, error)

	ShipmentByNumber(string) (Shipment, error)
	// ShipmentsBySubject lists a business's shipments that the first known
	// identifier of the subject names, in the order of OTEP's identity key:
	// several when carriers use an external number again.
	ShipmentsBySubject(BusinessID, otep.Subject) ([]Shipment, error)
	// Timeline lists a shipment's events in no particular order. Those that were
	// taken back are marked as withdrawn.
	Timeline(ShipmentID) ([]TimelineEvent, error)
	// HasEventsAfter reports whether a shipment has an event that occurs after a time.
	HasEventsAfter(s ShipmentID, at time.Time) (bool, error)
	Observation(s ShipmentID, source string) (Observation, error)
	// DeliveryShipments lists the timelines of a delivery's parcels, by id.
	DeliveryShipments(DeliveryID) ([]Shipment, error)
	// ProofGuesses are those of a shipment. Who writes them reads the shipment by
	// its number first, which waits for others in a decision.
	ProofGuesses(ShipmentID) (ProofGuesses, error)

	// Order, in a decision on PostgreSQL, waits for others that decide about
	// the same order.
	Order(BusinessID, OrderID) (Order, error)
	OrderByNumber(BusinessID, string) (Order, error)
	// OrderByRef finds an order by its reference among those of one customer,
	// or with customer 0 of the business itself.
	OrderByRef(b BusinessID, customer AccountID, ref string) (Order, error)
	// OrdersByRef lists a business's orders with a reference, whosever they are.
	OrdersByRef(BusinessID, string) ([]Order, error)
	OrderShipment(BusinessID, OrderID) (Shipment, error)
	Interception(BusinessID, InterceptionID) (Interception, error)
	Assignment(BusinessID, AssignmentID) (Assignment, error)
	ThirdParty(BusinessID, ThirdPartyID) (ThirdPartyAssignment, error)
	ThirdPartyByNumber(BusinessID, string) (ThirdPartyAssignment, error)
	// Route, in a decision on PostgreSQL, waits for others that decide about the
	// same route. Who changes what is on a route writes the route too.
	Route(BusinessID, RouteID) (Route, error)
	// Routes lists a part of what a business has, and says how much there is.
	Routes(RouteFilter) ([]Route, int, error)
	// RouteOrders lists the orders that have a stop on a route, by id.
	RouteOrders(BusinessID, RouteID) ([]Order, error)
	// Driver finds a driver of a business, whether anything is kept beside the
	// account or not.
	Driver(BusinessID, AccountID) (Driver, error)
	Drivers(DriverFilter) ([]Driver, int, error)
	// DriverPlace is where a driver was last.
	DriverPlace(BusinessID, AccountID) (DriverPlace, error)
	OrderJob(BusinessID, string) (OrderJob, error)
	// OrderJobRow, in a decision on PostgreSQL, waits for others that decide
	// about the same row.
	OrderJobRow(job string, row int) (OrderJobRow, error)
	OrderJobRows(job string) ([]OrderJobRow, error) // by number
	// Approval, in a decision on PostgreSQL, waits for others that decide about
	// the same approval.
	Approval(BusinessID, ApprovalID) (Approval, error)
	// Approvals lists a part of what a business has, and says how much there is.
	Approvals(ApprovalFilter) ([]Approval, int, error)
	// Tokens lists an account's tokens, expired and revoked ones too, in no
	// particular order.
	Tokens(AccountID) ([]Token, error)
	// Accounts and Providers list a part of what a business has, and say how
	// much there is.
	Accounts(AccountFilter) ([]Account, int, error)
	Providers(BusinessID, Page) ([]Provider, int, error)

	// Conversation is that of an order. Who changes anything about it reads the
	// order first and writes the conversation.
	Conversation(BusinessID, OrderID) (Conversation, error)
	ChatMessage(BusinessID, ChatMessageID) (ChatMessage, error)
	// ChatMessageByClient finds a message by its sender's own id.
	ChatMessageByClient(b BusinessID, o OrderID, sender AccountID, id string) (ChatMessage, error)
	ChatMessages(ChatPage) ([]ChatMessage, error)
	// ChatReads lists when somebody had read up to a message or beyond, in the
	// order of messages. At most limit.
	ChatReads(b BusinessID, o OrderID, reader AccountID, from ChatMessageID, limit int) ([]ChatRead, error)
	// ChatUnread counts messages of others that a reader has not read and that
	// are not deleted.
	ChatUnread(b BusinessID, o OrderID, staff bool, reader AccountID, read ChatMessageID) (int, error)
	// ChatAttachment finds a file that no message has.
	ChatAttachment(BusinessID, int64) (ChatAttachment, error)

	// OAuthClient finds a client that registered itself.
	OAuthClient(string) (OAuthClient, error)
	// UnusedOAuthClients counts clients that were never used and registered at
	// since or later.
	UnusedOAuthClients(since time.Time) (int, error)
	// OAuthGrant and OAuthGrantByCode, in a decision on PostgreSQL, wait for
	// others that decide about the same grant. Who gives, changes or ends its
	// tokens writes the grant too.
	OAuthGrant(OAuthGrantID) (OAuthGrant, error)
	OAuthGrantByCode(hash [32]byte) (OAuthGrant, error)
	// OAuthGrants lists an account's grants, ended ones too, newest first.
	OAuthGrants(AccountID) ([]OAuthGrant, error)
	// Token finds a token by its hash, expired and revoked ones too.
	Token(hash [32]byte) (Token, error)
}

// Changes is everything one decision writes. Entities with an id or key are
// inserted when it is new and replaced as a whole when it is known, unless a
// field says otherwise. The zero Changes writes nothing.
type Changes struct {
	// Conditions. If one does not hold, nothing is written: ErrStale.

	// Generation, when not 0, is the session generation that Device must have.
	Generation int64
	// Lanes moves lanes: the stored Next must equal From (0: no row yet).
	Lanes []LaneMove

	Setup *Setup // nil: as it is

	Businesses []Business
	Providers  []Provider
	Accounts   []Account
	Tokens     []Token
	Endpoints  []Endpoint

	OAuthClients []OAuthClient
	OAuthGrants  []OAuthGrant
	OAuthEnds    []OAuthEnd
	DropOAuth    OAuthDrop

	WebhookSettings []WebhookSettings

	Devices      []Device // all but the columns of DeviceSeen
	Seen         []DeviceSeen
	Sessions     []Session
	Epochs       []Epoch
	Batches      []JournalBatch // insert
	Gaps         []GapRange
	DeviceFaults []DeviceException // counts up the open one of its type, or opens it
	Enrolments   []EnrolmentToken

	Shelves      map[DeviceID][]Shelf
	Compartments []Compartment
	Doors        []DoorPresent // only the present of a compartment
	Deliveries   []Delivery    // with packages
	Openings     []Opening
	Commands     []Command
	Codes        []CodeRow
	DeviceOrders []DeviceOrder
	Exceptions   []Exception

	Shipments []Shipment
	Events    []TimelineEvent // insert; a known event id is left as it is
	// Withdrawn events leave their timelines; their rows stay.
	Withdrawn    []EventRef
	Observations []Observation
	ProofGuesses []ProofGuesses

	Orders          []Order // with packages
	OrderTerms      []OrderTerms
	OrderOperations []OrderOperation // insert
	Interceptions   []Interception
	Assignments     []Assignment           // those that end before those that begin
	ThirdParties    []ThirdPartyAssignment // likewise
	Routes          []Route
	Drivers         []Driver      // without the account
	DriverPlaces    []DriverPlace // unless one that was recorded later is stored
	OrderJobs       []OrderJob
	OrderJobRows    []OrderJobRow
	Approvals       []Approval
	// Conversations are one per order. Their members' positions go with them.
	Conversations []Conversation
	ChatMessages  []ChatMessage
	ChatReads     []ChatRead // insert
	// ChatAttachments wait for a message, which takes them: they are dropped then.
	ChatAttachments        []ChatAttachment // insert
	DroppedChatAttachments []ChatAttachment
	// DroppedConversations are removed with all that is kept about them.
	DroppedConversations []OrderKey
	// DropJobsBefore removes jobs that were finished before it; the zero time
	// removes none.
	DropJobsBefore time.Time
	// DroppedOrders are removed with all that is kept about them, but for
	// operations of the same Changes and audit lines.
	DroppedOrders []OrderKey
	// Files say which stored files are needed; DroppedFiles are needed no more.
	Files        []KeptFile // insert
	DroppedFiles []KeptFile

	Outbox []OutboxWrite // insert
	Live   []LiveEvent   // insert
	Pushes []Push        // insert, with their live events
	// Retold and RetoldPushes have other words for what is kept under these ids;
	// what became of a push stays.
	Retold       []LiveEvent
	RetoldPushes []Push
	PushTokens   []PushToken
	// NoPushTokens ends what logins gave, by their hashes.
	NoPushTokens [][32]byte
	ReplayJobs   []ReplayJob
	Audits       []Audit // insert

	// Answer is what the call that the decision is made for is answered if
	// nothing more comes of it, as the operation gives it. It is kept for calls
	// that come with a key, and is no change by itself. Unfinished says that the
	// call goes on and may be answered otherwise.
	Answer     any
	Unfinished bool
	// Refused says that the call is refused, although something is written: no
	// audit line says that it was done.
	Refused bool
	// Unaudited says that nobody did anything: what is written was measured.
	Unaudited bool
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
	StatusAt    time.Time
	StatusEnds  *[wire.Lanes]uint64
	StatusEpoch wire.Epoch
}

// DoorPresent is the present of one compartment, as a status or record said.
type DoorPresent struct {
	DeviceID   DeviceID
	Door       uint
	DoorStatus string
	Occupied   *bool
	OpeningID  string
}

// OutboxWrite is an event and the deliveries that it leads to. With no
// deliveries nothing is written.
type OutboxWrite struct {
	Event      OutboxEvent
	Deliveries []OutboxDelivery
}

// OrderKey names an order of a business.
type OrderKey struct {
	BusinessID BusinessID
	ID         OrderID
}

// Join adds what another decision about other things writes. Conditions of one
// session generation cannot be joined with those of another: the later wins.
func (c *Changes) Join(other *Changes) {
	to, from := reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem()
	for i := range to.NumField() {
		switch f := to.Field(i); {
		case f.Kind() == reflect.Slice:
			f.Set(reflect.AppendSlice(f, from.Field(i)))
		case f.Kind() == reflect.Map && !f.IsNil():
			for m := from.Field(i).MapRange(); m.Next(); {
				f.SetMapIndex(m.Key(), m.Value())
			}
		case !from.Field(i).IsZero():
			f.Set(from.Field(i))
		}
	}
}

// Empty reports whether c writes nothing.
func (c *Changes) Empty() bool {
	return len(c.Lanes) == 0 && c.Setup == nil && len(c.Businesses) == 0 && len(c.Providers) == 0 && len(c.Accounts) == 0 &&
		len(c.Tokens) == 0 && len(c.Endpoints) == 0 &&
		len(c.OAuthClients) == 0 && len(c.OAuthGrants) == 0 && len(c.OAuthEnds) == 0 && c.DropOAuth == (OAuthDrop{}) && len(c.WebhookSettings) == 0 && len(c.Devices) == 0 && len(c.Seen) == 0 &&
		len(c.Sessions) == 0 && len(c.Epochs) == 0 && len(c.Batches) == 0 && len(c.Gaps) == 0 &&
		len(c.DeviceFaults) == 0 && len(c.Enrolments) == 0 && len(c.Shelves) == 0 && len(c.Compartments) == 0 &&
		len(c.Doors) == 0 && len(c.Deliveries) == 0 && len(c.Openings) == 0 && len(c.Commands) == 0 &&
		len(c.Codes) == 0 && len(c.DeviceOrders) == 0 && len(c.Exceptions) == 0 && len(c.Shipments) == 0 &&
		len(c.Events) == 0 && len(c.Withdrawn) == 0 && len(c.Observations) == 0 && len(c.ProofGuesses) == 0 &&
		len(c.Orders) == 0 && len(c.OrderTerms) == 0 && len(c.OrderOperations) == 0 && len(c.Interceptions) == 0 && len(c.Assignments) == 0 && len(c.ThirdParties) == 0 &&
		len(c.Routes) == 0 && len(c.Drivers) == 0 && len(c.DriverPlaces) == 0 &&
		len(c.OrderJobs) == 0 && len(c.OrderJobRows) == 0 && len(c.Approvals) == 0 &&
		len(c.Conversations) == 0 && len(c.ChatMessages) == 0 && len(c.ChatReads) == 0 && len(c.ChatAttachments) == 0 && len(c.DroppedChatAttachments) == 0 && len(c.DroppedConversations) == 0 &&
		c.DropJobsBefore.IsZero() && len(c.DroppedOrders) == 0 &&
		len(c.Files) == 0 && len(c.DroppedFiles) == 0 && len(c.Outbox) == 0 && len(c.Live) == 0 && len(c.Pushes) == 0 && len(c.Retold) == 0 && len(c.RetoldPushes) == 0 && len(c.PushTokens) == 0 && len(c.NoPushTokens) == 0 && len(c.ReplayJobs) == 0 && len(c.Audits) == 0
}
