package cloud

import "time"

// AssignmentView reads the present of assignments to contractors.
type AssignmentView interface {
	Assignment(BusinessID, AssignmentID) (Assignment, error)
}

// AssignmentChanges are the changes of assignments to contractors.
type AssignmentChanges struct {
	Assignments []Assignment // those that end before those that begin
}

func (s *AssignmentChanges) preview(e *effectList) {
	previewEach(e, "Assignments", s.Assignments, func(x Assignment) {
		old, err := e.view.Assignment(x.BusinessID, x.ID)
		showChanged(e, "assignment", x.ID, "", x, old, err, Assignment.members)
	})
}

// members are those that a preview shows.
func (a Assignment) members() map[string]any { return map[string]any{"status": a.Status} }

// Assignment is an order handed to one contractor alone. Of the assignments of
// an order at most one is active.
type Assignment struct {
	ID         AssignmentID     `json:"ID"`
	BusinessID BusinessID       `json:"BusinessID"`
	OrderID    OrderID          `json:"OrderID"`
	BrokerID   AccountID        `json:"BrokerID"`
	Status     AssignmentStatus `json:"Status"`
	Note       string           `json:"Note"`
	AssignedBy AccountID        `json:"AssignedBy"`
	AssignedAt time.Time        `json:"AssignedAt"`
	EndedBy    AccountID        `json:"EndedBy"` // 0: no account, or not ended
	EndedAt    time.Time        `json:"EndedAt"`
	EndReason  string           `json:"EndReason"`
}

// AssignmentStatus is where an assignment stands.
type AssignmentStatus string

// States of an assignment.
const (
	AssignmentActive   AssignmentStatus = "active"
	AssignmentRevoked  AssignmentStatus = "revoked"  // by the business
	AssignmentReleased AssignmentStatus = "released" // by the contractor, or because the order is done
)

// GraphQLName is the name of the type in GraphQL.
func (AssignmentStatus) GraphQLName() string { return "BrokerAssignmentStatus" }

// Values are all of them.
func (AssignmentStatus) Values() []string {
	return []string{string(AssignmentActive), string(AssignmentRevoked), string(AssignmentReleased)}
}

// AssignmentQuery asks for a page of assignments, newest first. Zero fields do
// not filter.
type AssignmentQuery struct {
	BusinessID BusinessID // required
	BrokerID   AccountID
	OrderID    OrderID
	Status     AssignmentStatus
	Page       // its sort is the list's own
}
