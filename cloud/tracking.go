package cloud

import (
	"fmt"
	"strconv"
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// Shipment is what a timeline belongs to.
type Shipment struct {
	ID         ShipmentID
	BusinessID BusinessID
	Number     string // tracking number as given; unique in the deployment, compared upper case
	External   string // carrier's number; compared upper case
	SSCC       string // 18 digits
	PieceID    string // of a ONE Record piece
	Estimated  string // delivery, as its source wrote it: RFC 3339; empty when not known
	ProviderID ProviderID
	DeliveryID DeliveryID // a partner's parcel in a locker, the latest of its number; 0 otherwise
	LinkFrom   DeliveryID // first delivery that its present link shows; deliveries before had another link. Without meaning for an order's
	OrderID    OrderID    // whose packages it is; 0 otherwise
	CustomerID AccountID  // whose order that is; 0 when it is the business's own
	Profile    string
	Current    otep.Code // cached fold of the timeline, never the truth
	LastAt     time.Time // occurred_at of the latest event
	CreatedAt  time.Time
}

// OfProvider reports whether a shipment is a provider's to see and add to.
func (s Shipment) OfProvider(p Provider) bool {
	return p.ID != 0 && (p.ID == s.ProviderID || p.Scope == ScopeAll && p.BusinessID == s.BusinessID)
}

// Owns reports whether a caller owns a shipment: a business all of its own, a customer those of its
// orders, a provider those that are handed to it. Callers that are narrowed to scopes need one to read it.
func (c Caller) Owns(s Shipment) bool {
	if c.Anonymous() || !c.HasScope("orders:read") && (s.OrderID != 0 || !c.HasScope("lockers:read")) {
		return false
	}
	switch c.Account.Type {
	case ProviderType:
		return s.OfProvider(c.Provider)
	case ClientAdmin, ClientEmployee:
		return c.Account.BusinessID == s.BusinessID
	case Customer:
		return s.OrderID != 0 && c.Account.ID == s.CustomerID && c.Account.BusinessID == s.BusinessID
	}
	return false
}

// OwnerKey is all that Owns decides by, beside the shipment.
func (c Caller) OwnerKey() string {
	return fmt.Sprint(c.Account.ID, " ", c.Account.Type, " ", c.Account.BusinessID, " ", c.HasScope("orders:read"), c.HasScope("lockers:read"), " ", c.Provider.ID, " ", c.Provider.BusinessID, " ", c.Provider.Scope)
}

// AnswerSubject is what an answer about a timeline is about: the answer is old once one of them changes.
// The zero value keeps nothing.
type AnswerSubject struct {
	Shipment ShipmentID
	Order    OrderID // 0 for none
	// Named says that the number that was asked for is its own, and can come to stand for no other.
	Named bool
}

// Subject is a shipment as timelines name it.
func (s Shipment) Subject() otep.Subject {
	return otep.Subject{TrackingNumber: s.Number, OrderID: int64(s.OrderID), ExternalTrackingNumber: s.External, SSCC: s.SSCC, PieceID: s.PieceID}
}

// PackageSubject is a package of the shipment's order as timelines name it.
func (s Shipment) PackageSubject(id PackageID, number, external string) otep.Subject {
	sub := s.Subject()
	sub.TrackingNumber, sub.ExternalTrackingNumber, sub.PackageID = number, external, int64(id)
	return sub
}

// How many events a timeline takes before only those that end it are taken: unless set otherwise, and
// the most that can be set.
const (
	TimelineEvents    = 2000
	MaxTimelineEvents = 50_000
)

// TimelineEvent is one stored event of a shipment. It is never changed.
type TimelineEvent struct {
	ShipmentID ShipmentID
	BusinessID BusinessID
	Package    PackageID // of the shipment's order; 0: it is about the whole shipment
	Event      otep.Event
}

// Ref names an event.
func (e TimelineEvent) Ref() EventRef {
	return EventRef{ShipmentID: e.ShipmentID, Package: e.Package, EventID: e.Event.EventID}
}

// EventRef names one event of a shipment.
type EventRef struct {
	ShipmentID  ShipmentID
	Package     PackageID // that the event is about, 0 for the whole shipment
	EventID     string
	At          time.Time // when it was taken back
	Reason      string    // otep.DidNotOccur, otep.IncorrectData, or "" for none
	By          string    // code of the provider that took it back
	CorrectedBy string    // id of the event that took its place, "" for none
}

// Key is what the event is known by among those of its shipment. No id has the character between both.
func (r EventRef) Key() string {
	if r.Package == 0 {
		return r.EventID
	}
	return r.EventID + "\x1f" + strconv.FormatInt(int64(r.Package), 10)
}

// PackageNumber is a package of an order by the numbers that find it.
type PackageNumber struct {
	ID       PackageID
	Number   string // upper case
	External string // carrier's, upper case; "" for none
}

// FoundTimeline is a shipment that a number names, with its newest events in no particular order, those taken
// back marked as withdrawn.
type FoundTimeline struct {
	Shipment Shipment
	Events   []TimelineEvent
	Longer   bool // there may be older events
	// Package is the one of several that the number names, 0 when it names the whole shipment.
	Package PackageNumber
	// Packages are those of an order with several, by id.
	Packages []PackageNumber
}

// WithdrawnEvent is an event that was taken back.
type WithdrawnEvent struct {
	EventRef
	Event otep.Event
}

// JudgedEvent is a stored event that comes to count or, reported, to be a report.
type JudgedEvent struct {
	EventRef
	OccurredAt time.Time
	Reported   bool
}

// TrackingNews is what a provider says about an order's shipment and its packages, in the order
// in which it happened.
type TrackingNews struct {
	Shipment  Shipment // with what is to be kept in it
	By        Provider
	Events    []TimelineEvent
	Withdrawn []EventRef
	// Due says that the events are stored, and that their time has come. What is stored counts of them, and of the
	// shipment.
	Due bool
}

// TrackedOrder is what became of an order by the news of a provider.
type TrackedOrder struct {
	OrderID OrderID
	Status  OrderStatus
	Moved   bool
	Reason  TrackingReason // why it has not moved; "" when it is where the news lead
	Current otep.Code      // of its timeline, "" before the first event
	// Disagrees is set when an event was taken back that had ended the order, which stays as it is.
	Disagrees bool
	// Reported are those of the events, by their place, that the provider had no say in.
	Reported []int
	// Contested are those of them that would have moved the order.
	Contested []int
}

// TrackingReason is why an order did not move by a provider's news.
type TrackingReason string

// Values of TrackingReason.
const (
	TrackingLate        TrackingReason = "late"        // something later is known
	TrackingCustody     TrackingReason = "custody"     // the goods are with another
	TrackingTerminal    TrackingReason = "terminal"    // the order has come to its end
	TrackingHeld        TrackingReason = "held"        // it is on hold or waits for payment
	TrackingIntercepted TrackingReason = "intercepted" // it is stopped
	TrackingNoRule      TrackingReason = "no_rule"     // no status follows from the code
)

// Observation is the last word of a source that only knows a current status.
type Observation struct {
	ShipmentID ShipmentID
	Source     string // provider code
	Raw        string
	Code       otep.Code
	SeenAt     time.Time
}

// EventQuery asks for a page of a business's events, oldest first.
type EventQuery struct {
	BusinessID BusinessID
	ProviderID ProviderID // 0: of every provider and none
	From, To   time.Time  // occurred_at, To not included; a zero To has no end
	After      EventCursor
	Limit      int
}

// EventCursor is the place of an event in the order of a query. The zero
// cursor is before the first.
type EventCursor struct {
	At time.Time
	N  int64
}

// RecentTimeline is a timeline of which a checkpoint stands for older events.
type RecentTimeline struct {
	Events []TimelineEvent // those behind the checkpoint, and the ones that it keeps
	Count  int             // of the whole timeline
	Upto   time.Time       // of the checkpoint; zero for none
}

// TimelineCheckpoint stands for the events of a timeline up to a moment: those that Kept names are all that
// is needed to judge what comes after it.
type TimelineCheckpoint struct {
	Upto   time.Time // a whole millisecond: events of it are before the checkpoint
	Events int       // that it stands for
	Kept   []string  // keys of events
}

// IsBehind reports whether events of a time are all among those of t.
func (t RecentTimeline) IsBehind(at time.Time) bool {
	return t.Upto.IsZero() || at.UnixMilli() > t.Upto.UnixMilli()
}

// EventRow is one event with its shipment.
type EventRow struct {
	Cursor   EventCursor
	Shipment Shipment
	Package  PackageNumber // that the event is about, zero for the whole shipment
	Event    otep.Event
}

// TrackingView reads the present of timelines.
type TrackingView interface {
	ShipmentByNumber(string) (Shipment, error)
	ShipmentByID(ShipmentID) (Shipment, error)
	// ShipmentsBySubject lists a business's shipments that the first known
	// identifier of the subject names, in the order of OTEP's identity key:
	// several when carriers use an external number again.
	ShipmentsBySubject(BusinessID, otep.Subject) ([]Shipment, error)
	// Timeline lists a shipment's events in no particular order. Those that were
	// taken back are marked as withdrawn.
	Timeline(ShipmentID) ([]TimelineEvent, error)
	// CountEvents is how many events Timeline has.
	CountEvents(ShipmentID) (int, error)
	// RecentTimeline is Timeline without events that a checkpoint stands for: what is left is all that later
	// events are judged by.
	RecentTimeline(ShipmentID) (RecentTimeline, error)
	// Checkpoint is the one that decisions about a shipment go by.
	Checkpoint(ShipmentID) (TimelineCheckpoint, error)
	// TimelineEvent finds an event of a shipment by the key of its reference.
	TimelineEvent(s ShipmentID, key string) (TimelineEvent, error)
	// WithdrawnEvents lists a shipment's events of two milliseconds and all between that were taken back, in no
	// particular order; a zero time is no bound.
	WithdrawnEvents(s ShipmentID, from, upto time.Time) ([]WithdrawnEvent, error)
	// TimelineUpto lists events of a millisecond and before, the latest first, at most so many. The zero time is
	// the end of all times.
	TimelineUpto(s ShipmentID, upto time.Time, limit int) ([]TimelineEvent, error)
	// IsSplit reports whether an event of a shipment is about one package alone.
	IsSplit(ShipmentID) (bool, error)
	// HasEventsAfter reports whether a shipment has an event that occurs after a time.
	HasEventsAfter(s ShipmentID, at time.Time) (bool, error)
	Observation(s ShipmentID, source string) (Observation, error)
	// DeliveryShipments lists the timelines of a delivery's parcels, by id.
	DeliveryShipments(DeliveryID) ([]Shipment, error)
	// PackagesOf lists the packages of an order, by id.
	PackagesOf(BusinessID, OrderID) ([]PackageNumber, error)
	// ProofGuesses are those of a shipment. Who writes them reads the shipment by
	// its number first, which waits for others in a decision.
	ProofGuesses(ShipmentID) (ProofGuesses, error)
	OrderShipment(BusinessID, OrderID) (Shipment, error)
}

// TrackingChanges are the changes of timelines.
type TrackingChanges struct {
	Shipments []Shipment
	Events    []TimelineEvent // insert; a known event id is left as it is
	// Withdrawn events leave their timelines; their rows stay.
	Withdrawn    []EventRef
	Judged       []JudgedEvent
	Observations []Observation
	ProofGuesses []ProofGuesses
	// Unsettled shipments lose their checkpoints: the next decision reads their timelines whole.
	Unsettled []ShipmentID
}

// trackingEventIDs are the numbers of the tracking event dictionary (interface 4.2).
var trackingEventIDs = map[otep.Code]int{
	otep.InformationSubmitted: 10, otep.BookingConfirmed: 11, otep.AwaitingPickup: 12, otep.OutForPickup: 20, otep.PickedUp: 21,
	otep.PickupFailed: 22, otep.PickupRescheduled: 23, otep.Received: 30, otep.ArrivalScan: 31, otep.InTransit: 32, otep.PackageOutbound: 33,
	otep.RemovedFromRoute: 34, otep.RouteCancelled: 35, otep.OutForDelivery: 40, otep.Delivered: 41, otep.DeliveryFailed: 43,
	otep.DeliveryRescheduled: 44, otep.RejectedByRecipient: 45, otep.AvailableForPickup: 46, otep.ReturnToSender: 47, otep.Intercepted: 48, otep.Cancelled: 50,
	otep.PickupOverdue: 51, otep.RemovedFromDevice: 52,
}

// TrackingEventID is the number of an event; one that the dictionary does not name has
// that of the code which it counts as.
func TrackingEventID(e otep.Event) int {
	if id, ok := trackingEventIDs[e.StatusCode]; ok {
		return id
	}
	return trackingEventIDs[otep.Project(e.StatusCode, e.Phase).Parent]
}
