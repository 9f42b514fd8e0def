package cloud

import "github.com/postern-io/postern/protocol/otep"

// TraceState is what a trace collector knows of an event.
type TraceState int

// The values of TraceState.
const (
	TraceUntold    TraceState = 0
	TraceSent      TraceState = 1
	TraceWithdrawn TraceState = 2 // withdrawn, and not sent as that
)

// TracedEvent is an event of a timeline with what the collector knows of it.
// Event.Withdrawn says whether it is in the timeline.
type TracedEvent struct {
	N     int64 // its row
	State TraceState
	Event otep.Event
}

// TracedParcel is a parcel with all its events.
type TracedParcel struct {
	Shipment Shipment
	Events   []TracedEvent
}
