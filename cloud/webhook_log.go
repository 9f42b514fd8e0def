package cloud

import "time"

// BusinessLog chooses webhook deliveries of all channels of a business, newest
// first. Zero fields do not filter.
type BusinessLog struct {
	BusinessID  BusinessID // required
	EndpointID  EndpointID
	Event       string
	ReferenceID string
	State       OutboxState // as rows show it
	From, To    time.Time   // of creation, To excluded
	Before      OutboxMark  // what is older than this row; zero: from the newest
	Limit       int
}

// OutboxMark is a row's place in a log.
type OutboxMark struct {
	At time.Time // CreatedAt
	ID OutboxID
}

// MaxFailing is how far deliveries that did not arrive are counted.
const MaxFailing = 1000
