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
	External   string
	ProviderID ProviderID
	DeliveryID DeliveryID // a partner's parcel in a locker; 0 otherwise
	Profile    string
	Current    otep.Code // cached fold of the timeline, never the truth
	LastAt     time.Time // occurred_at of the latest event
	CreatedAt  time.Time
}

// TimelineEvent is one stored event of a shipment. It is never changed.
type TimelineEvent struct {
	ShipmentID ShipmentID
	BusinessID BusinessID
	Event      otep.Event
}
