// Package interception stops orders on their way: a request, its review where the
// business reviews those of customers, and its outcome (interface 4.6). What
// becomes of an interception when its order moves by another way is the order's
// own rule. Every operation is one decision of package order. Safe for concurrent
// use.
package interception

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
)

// Outcomes of an interception.
const (
	outcomeReturn    = "return_to_sender"
	outcomeRedeliver = "redeliver"
	outcomeHold      = "hold_at_warehouse"
	outcomeDispose   = "dispose"
)

const (
	codeMissing = "INTERCEPTION_NOT_FOUND"
	codeOpen    = "INTERCEPTION_OPEN"
	codeStatus  = "INTERCEPTION_STATUS_CONFLICT"
)

// Service is the feature.
type Service struct{ orders *order.Service }

// New builds the service; it starts nothing.
func New(orders *order.Service) *Service { return &Service{orders: orders} }

// Channels of the operations.
var (
	actionIntercept = order.Action{Office: 3043, Customer: 5004, API: 6012}
	actionExecute   = order.Action{Office: 3044, API: 6013}
	actionWithdraw  = order.Action{Office: 3045, Customer: 5005, API: 6014}
)

// InterceptInput asks to stop an order.
type InterceptInput struct {
	OrderID    cloud.OrderID  `path:"order_id" json:"-"`
	Outcome    string         `json:"outcome" required:"true" enum:"return_to_sender,redeliver,hold_at_warehouse,dispose"`
	Reason     string         `json:"reason" max:"255"`
	NewAddress *cloud.Address `json:"new_address"`
	NewDate    string         `json:"new_scheduled_date" format:"date"`
}

// InterceptionOutput is the answer that shows an interception.
type InterceptionOutput struct {
	Result       bool                   `json:"result"`
	Interception order.InterceptionBody `json:"interception"`
}

// Intercept asks to stop an order on its way. It is in force at once, unless it
// is a customer's and the business reviews those. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, INTERCEPTION_OPEN, VALIDATION_FAILED.
func (s *Service) Intercept(ctx context.Context, c cloud.Caller, in InterceptInput) (InterceptionOutput, error) {
	if err := order.RequireOwners(c); err != nil {
		return InterceptionOutput{}, err
	}
	var out InterceptionOutput
	_, err := s.orders.Decide(ctx, c, order.Key{OrderID: in.OrderID}, func(d *order.Decision) error {
		i, err := request(d, in)
		if err == nil {
			out, err = show(d, *i)
		}
		d.Changes.Answer = out
		return err
	})
	return out, err
}

// show is the answer that shows an interception.
func show(d *order.Decision, i cloud.Interception) (InterceptionOutput, error) {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return InterceptionOutput{}, err
	}
	return InterceptionOutput{Result: true, Interception: order.ShowInterception(i, b.Location())}, nil
}

// request makes an interception of the order, in force unless it waits for review.
func request(d *order.Decision, in InterceptInput) (*cloud.Interception, error) {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return nil, err
	}
	f := check.Fields{}
	in.NewAddress = order.CloneAddress(in.NewAddress)
	f.Ahead("new_scheduled_date", in.NewDate, d.Now.In(b.Location()))
	if err := f.Err(); err != nil {
		return nil, err
	}
	old, err := d.Interception()
	if err != nil {
		return nil, err
	}
	if old != nil && old.Open() {
		return nil, &cloud.Error{Kind: cloud.Conflict, Code: codeOpen, Details: map[string]any{"interception_id": old.ID}}
	}
	if !d.CanMove(cloud.OrderIntercepted, order.Intercept) {
		return nil, order.StatusConflict(d.Order)
	}
	id, err := d.View.NewID(cloud.InterceptionIDs)
	if err != nil {
		return nil, err
	}
	operation := actionIntercept.Operation(d.Caller)
	i := &cloud.Interception{ID: cloud.InterceptionID(id), BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, Status: cloud.InterceptionRequested,
		Requested: in.Outcome, NewAddress: in.NewAddress, NewDate: in.NewDate, Reason: in.Reason, By: order.OperatorOf(d.Caller), Before: d.Order.Status, Operation: operation, CreatedAt: d.Now}
	if d.Caller.Account.Type == cloud.Customer {
		i.By.Type = "customer"
	}
	d.AddInterception(i)
	if b.Settings.InterceptionReview && d.Caller.Account.Type == cloud.Customer {
		d.LogOperation(operation, d.Order.Status, in.Reason, nil)
		return i, nil
	}
	return i, putInForce(d, i, operation)
}

// putInForce stops the order.
func putInForce(d *order.Decision, i *cloud.Interception, operation int) error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	i.Before, i.BeforeCode = d.Order.Status, l.Current()
	if err := d.Move(cloud.OrderIntercepted, order.Intercept, operation, "", i.Reason); err != nil {
		return err
	}
	i.Status, i.InForceAt, i.After, i.Operation = cloud.InterceptionInForce, d.Now, d.Order.Status, operation
	return nil
}

// StopInput names an interception.
type StopInput struct {
	ID     cloud.InterceptionID `path:"id" json:"-"`
	Reason string               `json:"reason" max:"255"`
}

// rule is what an operation does to an interception and its order.
type rule func(d *order.Decision, i *cloud.Interception) error

// decide runs one decision about an interception of the caller's orders.
func (s *Service) decide(ctx context.Context, c cloud.Caller, in StopInput, fn rule) (InterceptionOutput, error) {
	missing := cloud.E(cloud.NotFound, codeMissing)
	var i cloud.Interception
	err := s.orders.Store().Look(ctx, func(v cloud.View) (err error) {
		i, err = v.Interception(c.Account.BusinessID, in.ID)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return InterceptionOutput{}, missing
	}
	if err != nil {
		return InterceptionOutput{}, err
	}
	var out InterceptionOutput
	_, err = s.orders.Decide(ctx, c, order.Key{OrderID: i.OrderID}, func(d *order.Decision) error {
		latest, err := d.Interception()
		if err != nil {
			return err
		}
		if latest == nil || latest.ID != in.ID {
			return ended(i) // a newer one is there
		}
		if err := fn(d, latest); err != nil {
			return err
		}
		out, err = show(d, *latest)
		return err
	})
	var e *cloud.Error
	if errors.As(err, &e) && e.Code == order.CodeNotFound {
		err = missing
	}
	return out, err
}

// ended says that an interception has come too far.
func ended(i cloud.Interception) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeStatus, Details: map[string]any{"status": i.Status}}
}

// Withdraw takes an open interception back; an order that it stopped goes on as
// before. Errors: INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT,
// VALIDATION_FAILED, FORBIDDEN to a customer that did not ask for it.
func (s *Service) Withdraw(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	if err := order.RequireOwners(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.decide(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		operation := actionWithdraw.Operation(c)
		switch {
		case c.Account.Type == cloud.Customer && i.By.ID != c.Account.ID:
			return cloud.E(cloud.Forbidden, "FORBIDDEN") // staff asked for it
		case !i.Open():
			return ended(*i)
		case i.InForce():
			if err := d.Move(i.Before, order.Withdraw, operation, "", in.Reason); err != nil {
				return err
			}
		default:
			d.LogOperation(operation, d.Order.Status, in.Reason, nil)
		}
		i.Status, i.EndedAt, i.After, i.Operation = cloud.InterceptionWithdrawn, d.Now, d.Order.Status, operation
		return nil
	})
}

// Approve puts a request that waits for review into force. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT, ORDER_STATUS_CONFLICT.
func (s *Service) Approve(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.decideRequested(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		return putInForce(d, i, actionIntercept.Operation(c))
	})
}

// Reject refuses a request that waits for review. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reject(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.decideRequested(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		i.Status, i.RejectReason, i.EndedAt, i.Operation = cloud.InterceptionRejected, in.Reason, d.Now, actionWithdraw.Operation(c)
		d.LogOperation(i.Operation, d.Order.Status, in.Reason, nil)
		return nil
	})
}

// decideRequested is a decision of staff about a request that waits for review.
func (s *Service) decideRequested(ctx context.Context, c cloud.Caller, in StopInput, fn rule) (InterceptionOutput, error) {
	if err := order.RequireStaff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.decide(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		if i.Status != cloud.InterceptionRequested {
			return ended(*i)
		}
		return fn(d, i)
	})
}

// Held notes that a stopped order's goods are at a warehouse. Staff may.
// Errors: INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Held(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.decideInForce(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		if i.Status == cloud.InterceptionHeld {
			return ended(*i)
		}
		_, err := order.HoldIntercepted(d, in.Reason)
		return err
	})
}

// Execute carries out the outcome that was asked for. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Execute(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.decideInForce(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		operation := actionExecute.Operation(c)
		if err := d.Move(outcomeStatus(d.Order, *i), order.ExecuteOutcome, operation, "", in.Reason); err != nil {
			return err
		}
		if i.Requested == outcomeRedeliver {
			redirect(d, *i)
		}
		if d.Order.Status == cloud.OrderCancelled {
			d.Order.CancelReason = i.Reason
		}
		i.Status, i.Outcome, i.ExecutedAt, i.EndedAt, i.After, i.Operation = cloud.InterceptionExecuted, i.Requested, d.Now, d.Now, d.Order.Status, operation
		return nil
	})
}

// outcomeStatus is where the outcome leads the order.
func outcomeStatus(o cloud.Order, i cloud.Interception) cloud.OrderStatus {
	switch i.Requested {
	case outcomeRedeliver:
		return cloud.OrderDeliveryRescheduled
	case outcomeHold:
		return cloud.OrderReceived
	case outcomeReturn:
		if o.Collected || i.Before == cloud.OrderHandedOver {
			return cloud.OrderReturned
		}
	}
	return cloud.OrderCancelled
}

// redirect gives the order the new address and date.
func redirect(d *order.Decision, i cloud.Interception) {
	if i.NewDate != "" {
		d.Order.ScheduledDate = i.NewDate
	}
	if i.NewAddress != nil {
		d.Order.Recipient = i.NewAddress
		d.Index()
	}
}

// FailInput says why an interception did not come in time.
type FailInput struct {
	ID        cloud.InterceptionID `path:"id" json:"-"`
	Reason    string               `json:"reason" max:"255"`
	Delivered bool                 `json:"delivered" doc:"The order was delivered; else its stop could not be reached and it goes on as before"`
}

// Fail ends an interception that did not come in time: the order was delivered,
// or goes on as before. Staff may. Errors: INTERCEPTION_NOT_FOUND,
// INTERCEPTION_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Fail(ctx context.Context, c cloud.Caller, in FailInput) (InterceptionOutput, error) {
	return s.decideInForce(ctx, c, StopInput{ID: in.ID, Reason: in.Reason}, func(d *order.Decision, i *cloud.Interception) error {
		to := i.Before
		if in.Delivered {
			to = cloud.OrderDelivered
		}
		if err := d.Move(to, order.InterceptionFailed, actionWithdraw.Operation(c), "", in.Reason); err != nil {
			return err
		}
		i.Status, i.FailureReason, i.EndedAt, i.After, i.Operation = cloud.InterceptionFailed, in.Reason, d.Now, d.Order.Status, actionWithdraw.Operation(c)
		return nil
	})
}

// decideInForce is a decision of staff about an interception in force.
func (s *Service) decideInForce(ctx context.Context, c cloud.Caller, in StopInput, fn rule) (InterceptionOutput, error) {
	if err := order.RequireStaff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.decide(ctx, c, in, func(d *order.Decision, i *cloud.Interception) error {
		if !i.InForce() {
			return ended(*i)
		}
		return fn(d, i)
	})
}
