package cloud

import (
	"github.com/postern-io/postern/protocol/otep"
	"time"
)

// InterceptionView reads the present of interceptions.
type InterceptionView interface {
	Interception(BusinessID, InterceptionID) (Interception, error)
}

// InterceptionChanges are the changes of interceptions.
type InterceptionChanges struct {
	Interceptions []Interception
}

// Interception is a request to stop an order on its way. At most one of an
// order is open.
type Interception struct {
	ID         InterceptionID
	BusinessID BusinessID
	OrderID    OrderID
	Status     string
	Requested  string // outcome that was asked for
	Outcome    string // that was executed
	NewAddress *Address
	NewDate    string
	Reason     string
	By         Operator
	Before     OrderStatus // of the order when it was stopped, or when it was asked for
	BeforeCode otep.Code   // current in the timeline when it was stopped
	After      OrderStatus // 0 while the order is not stopped
	Operation  int         // type of the latest operation

	RejectReason, FailureReason                       string
	CreatedAt, InForceAt, HeldAt, ExecutedAt, EndedAt time.Time
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
