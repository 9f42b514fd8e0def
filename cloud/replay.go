package cloud

import "time"

// ReplayJob sends deliveries of the account channel again, those that its
// filter chooses, oldest first.
type ReplayJob struct {
	ID         string
	BusinessID BusinessID
	CustomerID AccountID // whose level; 0: all of the business
	Filter     ReplayFilter
	Status     string // running, done, cancelled
	// PositionAt and Position are creation and id of the last delivery that was
	// looked at.
	PositionAt time.Time
	Position   OutboxID
	Sent       int // so far
	Total      int // when it began
	CreatedAt  time.Time
	FinishedAt time.Time
}

// States of replay jobs.
const (
	ReplayRunning   = "running"
	ReplayDone      = "done"
	ReplayCancelled = "cancelled"
)

// ReplayFilter chooses deliveries. Zero fields do not filter.
type ReplayFilter struct {
	From       time.Time   `json:"From"`
	To         time.Time   `json:"To"` // of creation, To excluded; both required
	Event      string      `json:"Event"`
	State      OutboxState `json:"State"`
	EndpointID EndpointID  `json:"EndpointID"`
}

// ReplayChanges are the changes of webhooks to send again.
type ReplayChanges struct {
	ReplayJobs []ReplayJob
}
