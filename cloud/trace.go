package cloud

import "github.com/postern-io/postern/protocol/otep"

// Told is what a trace collector knows of an event.
type Told int

// The values of Told.
const (
	TraceUntold    Told = 0
	TraceTold      Told = 1
	TraceWithdrawn Told = 2 // withdrawn, and not told of that
)

// TracedEvent is an event of a timeline with what the collector knows of it.
// Event.Withdrawn says whether it is in the timeline.
type TracedEvent struct {
	N     int64 // its row
	Told  Told
	Event otep.Event
}

// TracedParcel is a parcel with all its events.
type TracedParcel struct {
	Shipment Shipment
	Events   []TracedEvent
}
