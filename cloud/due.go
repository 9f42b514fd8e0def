package cloud

import "time"

// DueEventID names a due event.
type DueEventID int64

// DueEventIDs is their sequence.
const DueEventIDs IDKind = "due_event"

// DueEvent is a stored event of a timeline that counts at a time to come. It is removed in the transaction in
// which the event comes to count, or is taken back before.
type DueEvent struct {
	Kept[DueEventID]
	ShipmentID ShipmentID `row:",fixed"`
	PackageID  PackageID  `row:",fixed"` // that the event is about, 0 for the whole shipment
	EventID    string     `row:",fixed"`
	ProviderID ProviderID `row:",fixed"` // who sent it
	DueAt      time.Time
}

// RowKind implements Row.
func (DueEvent) RowKind() IDKind { return DueEventIDs }

// Ref names the event.
func (e DueEvent) Ref() EventRef {
	return EventRef{ShipmentID: e.ShipmentID, Package: e.PackageID, EventID: e.EventID}
}
