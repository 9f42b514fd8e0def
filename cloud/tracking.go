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
	DeliveryID DeliveryID // a partner's parcel in a locker; 0 otherwise
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
	ShipmentID ShipmentID
	EventID    string
	At         time.Time // when it was taken back
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
