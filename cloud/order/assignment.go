package order

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Why an order is not assigned.
const (
	CodeOnRoute    = "ORDER_ON_ROUTE"
	CodeThirdParty = "HELD_BY_THIRD_PARTY"
)

// OnRoute reports whether an order is on a route, or with a driver.
func OnRoute(o cloud.Order) bool {
	for _, s := range planned {
		if o.Status == s {
			return true
		}
	}
	return o.RouteID != 0
}

// assignment is the order's active one, nil when there is none.
func (d *Decision) assignment() (*cloud.Assignment, error) {
	if d.Order.AssignmentID == 0 {
		return nil, nil
	}
	for _, a := range d.Changes.Assignments {
		if a.ID == d.Order.AssignmentID {
			return &a, nil
		}
	}
	a, err := d.View.Assignment(d.Order.BusinessID, d.Order.AssignmentID)
	return &a, err
}

// EndAssignment ends the order's active assignment, if it has one. The order is
// everybody's again.
func (d *Decision) EndAssignment(to cloud.AssignmentStatus, reason string) error {
	a, err := d.assignment()
	if a == nil || err != nil {
		return err
	}
	a.Status, a.EndedBy, a.EndedAt, a.EndReason = to, d.Caller.Account.ID, d.Now, reason
	d.Changes.Assignments = append(d.Changes.Assignments, *a)
	d.Order.AssignmentID, d.Order.BrokerID = 0, 0
	return nil
}

// endAssignments ends the assignments of an order that has come to its end. The
// contractor that completed it goes on seeing it.
func (d *Decision) endAssignments() error {
	if err := d.endThirdParty(); err != nil || !d.Order.Status.State().Terminal {
		return err
	}
	if d.Order.Status == cloud.OrderCancelled {
		return d.EndAssignment(cloud.AssignmentRevoked, "order_cancelled")
	}
	broker := d.Order.BrokerID
	err := d.EndAssignment(cloud.AssignmentReleased, "order_completed")
	d.Order.BrokerID = broker
	return err
}

// AssignmentsInput asks for a page of assignments. Fields that are not given do
// not filter.
type AssignmentsInput struct {
	BrokerID cloud.AccountID        `query:"broker_id" json:"broker_id" doc:"Without meaning for contractors, who see their own"`
	Status   cloud.AssignmentStatus `query:"status" json:"status"`
	OrderID  cloud.OrderID          `query:"order_id" json:"order_id"`
	check.LongKeyset
}

// AssignmentsOutput is a page of assignments, newest first. Total counts all
// pages to the last one.
type AssignmentsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Assignments []AssignmentBody `json:"assignments" graphql:"!"`
}

// AssignmentBody is an assignment with what its order is now; null where that
// is deleted (interface document 2.1).
type AssignmentBody struct {
	ID            cloud.AssignmentID     `json:"id"`
	OrderID       cloud.OrderID          `json:"order_id"`
	Ref           *string                `json:"order_ref"`
	StatusID      *cloud.OrderStatus     `json:"order_status_id"`
	ScheduledDate *string                `json:"scheduled_date" graphql:"Date"`
	RouteID       *int64                 `json:"route_id"`
	BrokerID      cloud.AccountID        `json:"broker_id"`
	BrokerName    *string                `json:"broker_name"`
	Status        cloud.AssignmentStatus `json:"status"`
	Note          *string                `json:"note"`
	AssignedBy    *cloud.AccountID       `json:"assigned_by"`
	AssignedAt    *string                `json:"assigned_at" graphql:"DateTime"`
	EndedBy       *cloud.AccountID       `json:"ended_by"`
	EndedAt       *string                `json:"ended_at" graphql:"DateTime"`
	EndReason     *string                `json:"end_reason"`
}

// GraphQLName is the name of the type in GraphQL.
func (AssignmentBody) GraphQLName() string { return "BrokerAssignment" }

// Assignments lists who holds, or held, which order: a contractor sees its own.
// Error: VALIDATION_FAILED.
func (s *Service) Assignments(ctx context.Context, c cloud.Caller, in AssignmentsInput) (AssignmentsOutput, error) {
	if c.Account.Type == cloud.Broker {
		in.BrokerID = c.Account.ID
	}
	page, err := in.Part(in, "-id")
	if err != nil {
		return AssignmentsOutput{}, err
	}
	listed, found, err := s.store.ListAssignments(ctx, cloud.AssignmentQuery{BusinessID: c.Account.BusinessID, BrokerID: in.BrokerID, OrderID: in.OrderID,
		Status: in.Status, Page: page})
	if err != nil {
		return AssignmentsOutput{}, err
	}
	out := AssignmentsOutput{Result: true, PageOutput: in.Output(in, listed), Assignments: []AssignmentBody{}}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		show := s.shower(v, c)
		for _, a := range found {
			b, err := show.assignment(a)
			if err != nil {
				return err
			}
			out.Assignments = append(out.Assignments, b)
		}
		return nil
	})
}

func (s *shower) assignment(a cloud.Assignment) (AssignmentBody, error) {
	o, err := s.v.Order(a.BusinessID, a.OrderID)
	if err != nil && !errors.Is(err, cloud.ErrNotFound) {
		return AssignmentBody{}, err
	}
	return s.held(a, o)
}

// held shows an assignment with its order; the zero order is one that is gone.
func (s *shower) held(a cloud.Assignment, o cloud.Order) (AssignmentBody, error) {
	zone, err := s.zone(a.BusinessID)
	if err != nil {
		return AssignmentBody{}, err
	}
	name, err := s.name(a.BrokerID)
	return AssignmentBody{ID: a.ID, OrderID: a.OrderID, BrokerID: a.BrokerID, BrokerName: cloud.OrNull(name), Status: a.Status, Note: cloud.OrNull(a.Note),
		AssignedBy: cloud.OrNull(a.AssignedBy), AssignedAt: cloud.Stamp(a.AssignedAt, zone), EndedBy: cloud.OrNull(a.EndedBy), EndedAt: cloud.Stamp(a.EndedAt, zone),
		EndReason: cloud.OrNull(a.EndReason), Ref: cloud.OrNull(o.Ref), StatusID: cloud.OrNull(o.Status), ScheduledDate: cloud.OrNull(o.ScheduledDate),
		RouteID: cloud.OrNull(o.RouteID)}, err
}
