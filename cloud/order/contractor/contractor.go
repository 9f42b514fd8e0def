// Package contractor hands orders to contractors and takes them back, each order in
// a decision of its own (interface document 2.1). What ends an assignment when its
// order ends is the order's own rule. Administrators assign and revoke, a contractor
// releases its own. Safe for concurrent use.
package contractor

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/order"
)

// Service is the feature.
type Service struct{ orders *order.Service }

// New builds the service; it starts nothing.
func New(orders *order.Service) *Service { return &Service{orders: orders} }

// Channels of the operations.
var (
	actionAssign   = order.Action{Office: 3030, API: 6020}
	actionRevoke   = order.Action{Office: 3031, API: 6021}
	actionGiveBack = order.Action{Office: 3032, API: 6022}
)

// Why an order is not assigned, or not taken back.
const (
	codeNotSelfDelivery = "NOT_SELF_DELIVERY"
	codeNotAssignable   = "STATUS_NOT_ASSIGNABLE"
	codeAlreadyAssigned = "ALREADY_ASSIGNED"
	codeNotAssigned     = "NOT_ASSIGNED"
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

// Assign hands orders to a contractor, each in a transaction of its own. One
// that another contractor holds moves in one step. The business's
// administrators may. Error: VALIDATION_FAILED, of which nothing is changed.
func (s *Service) Assign(ctx context.Context, c cloud.Caller, in AssignInput) (AssignOutput, error) {
	f := check.Fields{}
	err := s.orders.Store().Look(ctx, func(v cloud.View) error {
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
	out.Assigned, out.Errors, err = s.each(ctx, c, in.OrderIDs, func(d *order.Decision) error { return assign(d, in.BrokerID, in.Note) })
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
func (s *Service) each(ctx context.Context, c cloud.Caller, list []cloud.OrderID, fn func(d *order.Decision) error) (done int, why []OrderError, err error) {
	why = []OrderError{}
	seen := map[cloud.OrderID]bool{}
	for _, id := range list {
		if seen[id] {
			continue
		}
		seen[id] = true
		_, err := s.orders.Decide(ctx, c, order.Key{OrderID: id}, fn)
		switch e := (*cloud.Error)(nil); {
		case errors.As(err, &e):
			why = append(why, OrderError{OrderID: id, Code: e.Code, Message: locale.Error(c.Language, e.Code, e.Args...)})
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
	case order.OnRoute(o):
		code = order.CodeOnRoute
	case o.HeldByThirdParty():
		code = order.CodeThirdParty
	case !o.SelfDelivery:
		code = codeNotSelfDelivery
	case !o.Status.State().Assignable:
		code = codeNotAssignable
	default:
		return nil
	}
	return cloud.E(cloud.Conflict, code)
}

// assign makes the order's assignment.
func assign(d *order.Decision, broker cloud.AccountID, note string) error {
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
	d.LogOperation(actionAssign.Operation(d.Caller), d.Order.Status, note, map[string]cloud.FieldChange{"broker_id": {From: before, To: broker}})
	return nil
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
	out.Revoked, out.Errors, err = s.each(ctx, c, in.OrderIDs, func(d *order.Decision) error {
		return giveBack(d, cloud.Conflict, cloud.AssignmentRevoked, actionRevoke.Operation(c), in.Reason)
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
	err := s.orders.Store().Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := v.Order(c.Account.BusinessID, in.OrderID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (o.AssignmentID == 0 || o.BrokerID != c.Account.ID) {
			return nil, none
		}
		if err != nil {
			return nil, err
		}
		return s.orders.DecideIn(v, c, o, func(d *order.Decision) error {
			return giveBack(d, cloud.Malformed, cloud.AssignmentReleased, actionGiveBack.Operation(c), in.Reason)
		})
	})
	if err != nil {
		return ReleaseOrderOutput{}, err
	}
	return ReleaseOrderOutput{Result: true, Message: locale.Word(c.Language, "assignment_released")}, nil
}

// giveBack ends an assignment before the order is done.
func giveBack(d *order.Decision, kind cloud.Kind, to cloud.AssignmentStatus, operation int, reason string) error {
	switch {
	case d.Order.AssignmentID == 0:
		return cloud.E(kind, codeNotAssigned)
	case order.OnRoute(d.Order):
		return cloud.E(kind, order.CodeOnRoute)
	}
	broker := d.Order.BrokerID
	if err := d.EndAssignment(to, reason); err != nil {
		return err
	}
	d.LogOperation(operation, d.Order.Status, reason, map[string]cloud.FieldChange{"broker_id": {From: broker}})
	return nil
}
