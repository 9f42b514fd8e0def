package cloud

import (
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

// Subject is a shipment as timelines name it.
func (s Shipment) Subject() otep.Subject {
	return otep.Subject{TrackingNumber: s.Number, OrderID: int64(s.OrderID), ExternalTrackingNumber: s.External, SSCC: s.SSCC, PieceID: s.PieceID}
}

// TimelineEvent is one stored event of a shipment. It is never changed.
type TimelineEvent struct {
	ShipmentID ShipmentID
	BusinessID BusinessID
	Event      otep.Event
}

// EventRef names one event of a shipment.
type EventRef struct {
	ShipmentID  ShipmentID
	EventID     string
	At          time.Time // when it was taken back
	Reason      string    // otep.DidNotOccur, otep.IncorrectData, or "" for none
	By          string    // code of the provider that took it back
	CorrectedBy string    // id of the event that took its place, "" for none
}

// WithdrawnEvent is an event that was taken back.
type WithdrawnEvent struct {
	EventRef
	Event otep.Event
}

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

// EventRow is one event with its shipment.
type EventRow struct {
	Cursor   EventCursor
	Shipment Shipment
	Event    otep.Event
}

// TrackingView reads the present of timelines.
type TrackingView interface {
	ShipmentByNumber(string) (Shipment, error)
	// ShipmentsBySubject lists a business's shipments that the first known
	// identifier of the subject names, in the order of OTEP's identity key:
	// several when carriers use an external number again.
	ShipmentsBySubject(BusinessID, otep.Subject) ([]Shipment, error)
	// Timeline lists a shipment's events in no particular order. Those that were
	// taken back are marked as withdrawn.
	Timeline(ShipmentID) ([]TimelineEvent, error)
	// WithdrawnEvents lists a shipment's events that were taken back, in no particular order.
	WithdrawnEvents(ShipmentID) ([]WithdrawnEvent, error)
	// HasEventsAfter reports whether a shipment has an event that occurs after a time.
	HasEventsAfter(s ShipmentID, at time.Time) (bool, error)
	Observation(s ShipmentID, source string) (Observation, error)
	// DeliveryShipments lists the timelines of a delivery's parcels, by id.
	DeliveryShipments(DeliveryID) ([]Shipment, error)
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
	Observations []Observation
	ProofGuesses []ProofGuesses
}
