package order

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
)

// AssignInput hands orders to a contractor.
type AssignInput struct {
	OrderIDs []cloud.OrderID `json:"order_ids" required:"true" max:"500" item_min:"1" doc:"An id that comes twice counts once"`
	BrokerID cloud.AccountID `json:"broker_id" required:"true" min:"1" doc:"A contractor's account"`
	Note     string          `json:"note" max:"500"`
}

// AssignOutput says what became of it.
type AssignOutput struct {
	Result   bool         `json:"result"` // at least one order was assigned
	Assigned int          `json:"assigned"`
	Skipped  int          `json:"skipped"`
	Errors   []OrderError `json:"errors" graphql:"!"` // one for each order that stays as it was
}

// OrderError is why an order of several stays as it was.
type OrderError struct {
	OrderID cloud.OrderID `json:"order_id"`
	Code    string        `json:"code"`
	Message string        `json:"message"` // in the caller's language
}

// GraphQLName is the name of the type in GraphQL.
func (OrderError) GraphQLName() string { return "OrderError" }

// Why an order is not assigned, or not taken back.
const (
	CodeOnRoute         = "ORDER_ON_ROUTE"
	codeNotSelfDelivery = "NOT_SELF_DELIVERY"
	codeNotAssignable   = "STATUS_NOT_ASSIGNABLE"
	CodeThirdParty      = "HELD_BY_THIRD_PARTY"
	codeAlreadyAssigned = "ALREADY_ASSIGNED"
	codeNotAssigned     = "NOT_ASSIGNED"
)

// Assign hands orders to a contractor, each in a transaction of its own. One
// that another contractor holds moves in one step. The business's
// administrators may. Error: VALIDATION_FAILED, of which nothing is changed.
func (s *Service) Assign(ctx context.Context, c cloud.Caller, in AssignInput) (AssignOutput, error) {
	f := newFields()
	err := s.store.Look(ctx, func(v cloud.View) error {
		a, err := v.Account(in.BrokerID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		if err != nil || !contractor(a, c.Account.BusinessID) {
			f.Add("broker_id", "This is no contractor of yours.")
		}
		return f.Err()
	})
	if err != nil {
		return AssignOutput{}, err
	}
	out := AssignOutput{}
	out.Assigned, out.Errors, err = s.each(ctx, c, in.OrderIDs, func(d *Decision) error { return d.assign(in.BrokerID, in.Note) })
	out.Result, out.Skipped = out.Assigned > 0, len(out.Errors)
	return out, err
}

// contractor reports whether an account is a contractor of a business that can
// work.
func contractor(a cloud.Account, b cloud.BusinessID) bool {
	return a.Type == cloud.Broker && a.BusinessID == b && a.Enabled
}

// each runs a decision for every order once and collects why some stayed as
// they were.
func (s *Service) each(ctx context.Context, c cloud.Caller, list []cloud.OrderID, fn func(d *Decision) error) (done int, why []OrderError, err error) {
	why = []OrderError{}
	seen := map[cloud.OrderID]bool{}
	for _, id := range list {
		if seen[id] {
			continue
		}
		seen[id] = true
		_, err := s.Decide(ctx, c, Key{OrderID: id}, fn)
		switch e := (*cloud.Error)(nil); {
		case errors.As(err, &e):
			why = append(why, OrderError{OrderID: id, Code: e.Code, Message: message(c, e)})
		case err != nil:
			return done, why, err
		default:
			done++
		}
	}
	return done, why, nil
}

// whyNotAssignable is why an order cannot be handed to a contractor, nil when it can.
func whyNotAssignable(o cloud.Order) error {
	code := ""
	switch {
	case OnRoute(o):
		code = CodeOnRoute
	case o.HeldByThirdParty():
		code = CodeThirdParty
	case !o.SelfDelivery:
		code = codeNotSelfDelivery
	case !o.Status.State().Assignable:
		code = codeNotAssignable
	default:
		return nil
	}
	return cloud.E(cloud.Conflict, code)
}

// OnRoute reports whether an order is on a route, or with a driver.
func OnRoute(o cloud.Order) bool {
	for _, s := range planned {
		if o.Status == s {
			return true
		}
	}
	return o.RouteID != 0
}

func (d *Decision) assign(broker cloud.AccountID, note string) error {
	if err := whyNotAssignable(d.Order); err != nil {
		return err
	}
	a, err := d.View.Account(broker) // it may have gone since the list was checked
	if err != nil {
		return err
	}
	if d.Order.AssignmentID != 0 && d.Order.BrokerID == broker {
		return cloud.E(cloud.Conflict, codeAlreadyAssigned)
	}
	if !contractor(a, d.Order.BusinessID) {
		return &cloud.Error{Kind: cloud.Invalid, Code: "VALIDATION_FAILED", Fields: map[string][]string{"broker_id": {"This is no contractor of yours."}}}
	}
	before := cloud.OrNull(d.Order.BrokerID)
	if err := d.EndAssignment(cloud.AssignmentRevoked, "reassigned"); err != nil {
		return err
	}
	id, err := d.View.NewID(cloud.AssignmentIDs)
	if err != nil {
		return err
	}
	x := cloud.Assignment{ID: cloud.AssignmentID(id), BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, BrokerID: broker, Status: cloud.AssignmentActive, Note: note,
		AssignedBy: d.Caller.Account.ID, AssignedAt: d.Now}
	d.Changes.Assignments = append(d.Changes.Assignments, x)
	d.Order.AssignmentID, d.Order.BrokerID = x.ID, broker
	d.LogOperation(actAssign.Operation(d.Caller), d.Order.Status, note, map[string]cloud.FieldChange{"broker_id": {From: before, To: broker}})
	return nil
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

// RevokeInput takes orders back from their contractors.
type RevokeInput struct {
	OrderIDs []cloud.OrderID `json:"order_ids" required:"true" max:"500" item_min:"1" doc:"An id that comes twice counts once"`
	Reason   string          `json:"reason" max:"255"`
}

// RevokeOutput says what became of it.
type RevokeOutput struct {
	Result  bool         `json:"result"` // at least one order was taken back
	Revoked int          `json:"revoked"`
	Skipped int          `json:"skipped"`
	Errors  []OrderError `json:"errors" graphql:"!"` // one for each order that stays as it was
}

// Revoke takes orders back from their contractors, each in a transaction of its
// own. The business's administrators may. Error: VALIDATION_FAILED, of which
// nothing is changed.
func (s *Service) Revoke(ctx context.Context, c cloud.Caller, in RevokeInput) (RevokeOutput, error) {
	out := RevokeOutput{}
	var err error
	out.Revoked, out.Errors, err = s.each(ctx, c, in.OrderIDs, func(d *Decision) error {
		return d.giveBack(cloud.Conflict, cloud.AssignmentRevoked, actRevoke.Operation(c), in.Reason)
	})
	out.Result, out.Skipped = out.Revoked > 0, len(out.Errors)
	return out, err
}

// ReleaseOrderInput gives an order back.
type ReleaseOrderInput struct {
	OrderID cloud.OrderID `json:"order_id" required:"true" min:"1"`
	Reason  string        `json:"reason" max:"255"`
}

// ReleaseOrderOutput says that it was given back.
type ReleaseOrderOutput struct {
	Result  bool   `json:"result"`
	Message string `json:"message"` // in the caller's language
}

// GiveBack ends the calling contractor's own assignment of an order. Errors:
// NOT_ASSIGNED, for orders that there are not as well, ORDER_ON_ROUTE,
// VALIDATION_FAILED.
func (s *Service) GiveBack(ctx context.Context, c cloud.Caller, in ReleaseOrderInput) (ReleaseOrderOutput, error) {
	none := cloud.E(cloud.Malformed, codeNotAssigned)
	err := s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(c.Account.BusinessID, in.OrderID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (o.AssignmentID == 0 || o.BrokerID != c.Account.ID) {
			return nil, none
		}
		if err != nil {
			return nil, err
		}
		d := s.begin(v, c, s.time(), o)
		if err := d.giveBack(cloud.Malformed, cloud.AssignmentReleased, actGiveBack.Operation(c), in.Reason); err != nil {
			return nil, err
		}
		return &d.Changes, d.finish()
	})
	if err != nil {
		return ReleaseOrderOutput{}, err
	}
	return ReleaseOrderOutput{Result: true, Message: locale.Word(c.Language, "assignment_released")}, nil
}

// giveBack ends an assignment before the order is done.
func (d *Decision) giveBack(kind cloud.Kind, to cloud.AssignmentStatus, operation int, reason string) error {
	switch {
	case d.Order.AssignmentID == 0:
		return cloud.E(kind, codeNotAssigned)
	case OnRoute(d.Order):
		return cloud.E(kind, CodeOnRoute)
	}
	broker := d.Order.BrokerID
	if err := d.EndAssignment(to, reason); err != nil {
		return err
	}
	d.LogOperation(operation, d.Order.Status, reason, map[string]cloud.FieldChange{"broker_id": {From: broker}})
	return nil
}

// AssignmentsInput asks for a page of assignments. Fields that are not given do
// not filter.
type AssignmentsInput struct {
	BrokerID cloud.AccountID        `query:"broker_id" json:"broker_id" doc:"Without meaning for contractors, who see their own"`
	Status   cloud.AssignmentStatus `query:"status" json:"status"`
	OrderID  cloud.OrderID          `query:"order_id" json:"order_id"`
	check.LongPaging
}

// AssignmentsOutput is a page of assignments, newest first. Total counts all
// pages.
type AssignmentsOutput struct {
	Result      bool             `json:"result"`
	Total       int              `json:"total"`
	Page        int              `json:"page"`
	PerPage     int              `json:"per_page"`
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
	page, perPage, offset := in.Window()
	total, found, err := s.store.ListAssignments(ctx, cloud.AssignmentQuery{BusinessID: c.Account.BusinessID, BrokerID: in.BrokerID, OrderID: in.OrderID,
		Status: in.Status, Offset: offset, Limit: perPage})
	if err != nil {
		return AssignmentsOutput{}, err
	}
	out := AssignmentsOutput{Result: true, Total: total, Page: page, PerPage: perPage, Assignments: []AssignmentBody{}}
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
