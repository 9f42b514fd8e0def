package cloud

import (
	"strings"
	"time"
)

// WorkMarkID names a mark.
type WorkMarkID int64

// WorkMarkIDs is their sequence.
const WorkMarkIDs IDKind = "work_item"

// Kinds of work items, and what the subject of each is.
const (
	WorkException = "exception" // at a compartment: an ExceptionID
	WorkOverdue   = "overdue"   // a parcel that was not collected in time: an ExceptionID
	WorkFault     = "fault"     // of a cabinet as a device: its number
	WorkSilent    = "silent"    // a cabinet without a connection: a DeviceID
	WorkEndpoint  = "endpoint"  // that webhooks do not reach: an EndpointID
	WorkApproval  = "approval"  // a write of an agent that waits: an ApprovalID
)

// WorkKinds are the kinds in the order of lists.
var WorkKinds = []string{WorkException, WorkOverdue, WorkFault, WorkSilent, WorkEndpoint, WorkApproval}

// SilentAfter is how long a cabinet is without a connection before it is a work item.
const SilentAfter = 10 * time.Minute

// WorkMark is what people say about a work item: who sees to it, a note, and until when
// it is out of the list. It stays when the item ends, and counts again should the same
// thing come back.
type WorkMark struct {
	Kept[WorkMarkID]
	Kind        string `row:",fixed"`
	Subject     string `row:",fixed"`
	OwnerID     AccountID
	Note        string
	SnoozeUntil time.Time
}

// RowKind implements Row.
func (WorkMark) RowKind() IDKind { return WorkMarkIDs }

// WorkItem is something that waits for a person, read from the rows that it is about.
type WorkItem struct {
	Kind, Subject  string
	Type           string // of an exception or fault; of an endpoint its status; of an approval its risk
	Severity       string // high, medium, low
	Since          time.Time
	DeviceID       DeviceID // 0 when it is about none
	Device         string   // name of the cabinet
	GridID         GridID
	GridCode       string
	Door           string // name of it; of a fault about several doors their names
	DeliveryID     DeliveryID
	DeliveryStatus DeliveryStatus
	OpenDoor       string // name of the door that keeps it from being closed while it is open; "" for none
	Title          string // number of the parcel, address of the endpoint, summary of the approval
	Parcels        int    // inside of a silent cabinet

	AskedBy AccountID // of an approval, whose agent asks; 0 of others

	OwnerID     AccountID // 0: it is free
	Owner       string
	Note        string
	SnoozeUntil time.Time
}

// ID names the item: its kind, a hyphen and its subject.
func (w WorkItem) ID() string { return w.Kind + "-" + w.Subject }

// ParseWorkID takes an item's name apart; ok is false for what names none.
func ParseWorkID(id string) (kind, subject string, ok bool) {
	kind, subject, ok = strings.Cut(id, "-")
	return kind, subject, ok && subject != "" && len(subject) <= 64
}

// WorkFilter chooses work items of a business. Zero members choose all that are not
// put off.
type WorkFilter struct {
	BusinessID BusinessID
	Kinds      []string
	Subject    string // of the only kind: that item, put off or not
	Severity   string
	Owner      AccountID // whose they are
	Snoozed    bool      // those that are put off, in place of the others
	Now        time.Time
	Limit      int // of each kind and severity
}

// WorkView reads what waits for people.
type WorkView interface {
	// WorkItems lists items of each kind, by severity and time. cut says that there are
	// more of some kind than the limit.
	WorkItems(WorkFilter) (items []WorkItem, cut bool, err error)
}
