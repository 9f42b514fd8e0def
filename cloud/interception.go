package cloud

import (
	"time"

	"github.com/postern-io/postern/protocol/otep"
)

// InterceptionView reads the present of interceptions.
type InterceptionView interface {
	Interception(BusinessID, InterceptionID) (Interception, error)
}

// InterceptionChanges are the changes of interceptions.
type InterceptionChanges struct {
	Interceptions []Interception
}

func (s *InterceptionChanges) preview(e *effectList) {
	previewEach(e, "Interceptions", s.Interceptions, func(x Interception) {
		old, err := e.view.Interception(x.BusinessID, x.ID)
		showChanged(e, "interception", x.ID, "", x, old, err, Interception.members)
	})
}

// members are those that a preview shows.
func (x Interception) members() map[string]any { return map[string]any{"status": x.Status} }

// Interception is a request to stop an order on its way. At most one of an
// order is open.
type Interception struct {
	ID         InterceptionID `json:"ID"`
	BusinessID BusinessID     `json:"BusinessID"`
	OrderID    OrderID        `json:"OrderID"`
	Status     string         `json:"Status"`
	Requested  string         `json:"Requested"` // outcome that was asked for
	Outcome    string         `json:"Outcome"`   // that was executed
	NewAddress *Address       `json:"NewAddress"`
	NewDate    string         `json:"NewDate"`
	Reason     string         `json:"Reason"`
	By         Operator       `json:"By"`
	Before     OrderStatus    `json:"Before"`     // of the order when it was stopped, or when it was asked for
	BeforeCode otep.Code      `json:"BeforeCode"` // current in the timeline when it was stopped
	After      OrderStatus    `json:"After"`      // 0 while the order is not stopped
	Operation  int            `json:"Operation"`  // type of the latest operation

	RejectReason  string    `json:"RejectReason"`
	FailureReason string    `json:"FailureReason"`
	CreatedAt     time.Time `json:"CreatedAt"`
	InForceAt     time.Time `json:"InForceAt"`
	HeldAt        time.Time `json:"HeldAt"`
	ExecutedAt    time.Time `json:"ExecutedAt"`
	EndedAt       time.Time `json:"EndedAt"`
}

// States of an interception.
const (
	InterceptionRequested = "requested"
	InterceptionInForce   = "in_force"
	InterceptionHeld      = "held"
	InterceptionExecuted  = "executed"
	InterceptionWithdrawn = "withdrawn"
	InterceptionRejected  = "rejected"
	InterceptionFailed    = "failed"
)

// Open reports whether the interception has no end yet.
func (i Interception) Open() bool {
	return i.Status == InterceptionRequested || i.InForce()
}

// InForce reports whether the interception keeps its order stopped.
func (i Interception) InForce() bool {
	return i.Status == InterceptionInForce || i.Status == InterceptionHeld
}
