package order

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// Outcomes of an interception.
const (
	outcomeReturn    = "return_to_sender"
	outcomeRedeliver = "redeliver"
	outcomeHold      = "hold_at_warehouse"
	outcomeDispose   = "dispose"
)

const (
	codeStopMissing = "INTERCEPTION_NOT_FOUND"
	codeStopOpen    = "INTERCEPTION_OPEN"
	codeStopStatus  = "INTERCEPTION_STATUS_CONFLICT"

	heldAtWarehouse = 4006
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
	Result       bool             `json:"result"`
	Interception InterceptionBody `json:"interception"`
}

// InterceptionsOutput lists an order's interceptions, oldest first.
type InterceptionsOutput struct {
	Result        bool               `json:"result"`
	OrderID       cloud.OrderID      `json:"order_id"`
	Interceptions []InterceptionBody `json:"interceptions"`
}

// InterceptionBody is an interception as answers show it (interface 4.6).
type InterceptionBody struct {
	ID            cloud.InterceptionID `json:"interception_id"`
	OrderID       cloud.OrderID        `json:"order_id"`
	Status        string               `json:"status"`
	Requested     string               `json:"requested_outcome"`
	Outcome       *string              `json:"outcome"`
	NewAddress    *AddressBody         `json:"new_address"`
	NewDate       *string              `json:"new_scheduled_date"`
	Reason        *string              `json:"reason"`
	RequestedBy   cloud.Operator       `json:"requested_by"`
	Before        cloud.OrderStatus    `json:"before_status"`
	After         *cloud.OrderStatus   `json:"after_status"`
	OperationType int                  `json:"operation_type"`
	RejectReason  *string              `json:"reject_reason"`
	FailureReason *string              `json:"failure_reason"`
	CreatedAt     *string              `json:"created_at"`
	InForceAt     *string              `json:"in_force_at"`
	HeldAt        *string              `json:"held_at"`
	ExecutedAt    *string              `json:"executed_at"`
	EndedAt       *string              `json:"ended_at"`
}

func interceptionBody(i cloud.Interception, zone *time.Location) InterceptionBody {
	return InterceptionBody{ID: i.ID, OrderID: i.OrderID, Status: i.Status, Requested: i.Requested, Outcome: cloud.OrNull(i.Outcome), NewAddress: addressBody(i.NewAddress),
		NewDate: cloud.OrNull(i.NewDate), Reason: cloud.OrNull(i.Reason), RequestedBy: i.By, Before: i.Before, After: cloud.OrNull(i.After), OperationType: i.Operation,
		RejectReason: cloud.OrNull(i.RejectReason), FailureReason: cloud.OrNull(i.FailureReason), CreatedAt: cloud.Stamp(i.CreatedAt, zone),
		InForceAt: cloud.Stamp(i.InForceAt, zone), HeldAt: cloud.Stamp(i.HeldAt, zone), ExecutedAt: cloud.Stamp(i.ExecutedAt, zone), EndedAt: cloud.Stamp(i.EndedAt, zone)}
}

// Intercept asks to stop an order on its way. It is in force at once, unless it
// is a customer's and the business reviews those. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, INTERCEPTION_OPEN, VALIDATION_FAILED.
func (s *Service) Intercept(ctx context.Context, c cloud.Caller, in InterceptInput) (InterceptionOutput, error) {
	if err := owners(c); err != nil {
		return InterceptionOutput{}, err
	}
	var out InterceptionOutput
	_, err := s.decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		if err := d.intercept(in); err != nil {
			return err
		}
		err := s.showStop(d, &out)
		d.Changes.Answer = out
		return err
	})
	return out, err
}

func (s *Service) showStop(d *Decision, out *InterceptionOutput) error {
	zone, err := s.shower(d.View, d.Caller).zone(d.Order.BusinessID)
	if err == nil {
		*out = InterceptionOutput{Result: true, Interception: interceptionBody(*d.interception, zone)}
	}
	return err
}

func (d *Decision) intercept(in InterceptInput) error {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return err
	}
	f := newFields()
	in.NewAddress = own(in.NewAddress)
	f.ahead("new_scheduled_date", in.NewDate, d.Now.In(b.Location()))
	if err := f.Err(); err != nil {
		return err
	}
	old, err := d.Interception()
	if err != nil {
		return err
	}
	if old != nil && old.Open() {
		return &cloud.Error{Kind: cloud.Conflict, Code: codeStopOpen, Details: map[string]any{"interception_id": old.ID}}
	}
	if rowOf(d.Order, cloud.OrderIntercepted, Intercept, 0) == nil {
		return conflict(d.Order)
	}
	id, err := d.View.NewID(cloud.InterceptionIDs)
	if err != nil {
		return err
	}
	operation := actIntercept.operation(d.Caller)
	d.interceptionWas, d.interception = "", &cloud.Interception{ID: cloud.InterceptionID(id), BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, Status: cloud.InterceptionRequested,
		Requested: in.Outcome, NewAddress: in.NewAddress, NewDate: in.NewDate, Reason: in.Reason, By: operator(d.Caller), Before: d.Order.Status, Operation: operation, CreatedAt: d.Now}
	if d.Caller.Account.Type == cloud.Customer {
		d.interception.By.Type = "customer"
	}
	d.Order.InterceptionID = d.interception.ID
	if b.Settings.InterceptionReview && d.Caller.Account.Type == cloud.Customer {
		d.LogOperation(operation, d.Order.Status, in.Reason, nil)
		return nil
	}
	return d.force(operation)
}

// force puts the requested interception into force.
func (d *Decision) force(operation int) error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	i := d.interception
	i.Before, i.BeforeCode = d.Order.Status, l.Current()
	if err := d.Move(cloud.OrderIntercepted, Intercept, operation, "", i.Reason); err != nil {
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

// stopping runs one decision about an interception of the caller's orders.
func (s *Service) stopping(ctx context.Context, c cloud.Caller, in StopInput, fn func(d *Decision) error) (InterceptionOutput, error) {
	missing := cloud.E(cloud.NotFound, codeStopMissing)
	var i cloud.Interception
	err := s.store.Look(ctx, func(v cloud.View) (err error) {
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
	_, err = s.decide(ctx, c, Key{OrderID: i.OrderID}, func(d *Decision) error {
		stop, err := d.Interception()
		if err != nil {
			return err
		}
		if stop == nil || stop.ID != in.ID {
			return ended(i) // a newer one is there
		}
		if err := fn(d); err != nil {
			return err
		}
		return s.showStop(d, &out)
	})
	var e *cloud.Error
	if errors.As(err, &e) && e.Code == codeNotFound {
		err = missing
	}
	return out, err
}

// ended says that an interception has come too far.
func ended(i cloud.Interception) error {
	return &cloud.Error{Kind: cloud.Conflict, Code: codeStopStatus, Details: map[string]any{"status": i.Status}}
}

// Withdraw takes an open interception back; an order that it stopped goes on as
// before. Errors: INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT,
// VALIDATION_FAILED, FORBIDDEN to a customer that did not ask for it.
func (s *Service) Withdraw(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	if err := owners(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.stopping(ctx, c, in, func(d *Decision) error {
		i, operation := d.interception, actWithdraw.operation(c)
		switch {
		case c.Account.Type == cloud.Customer && i.By.ID != c.Account.ID:
			return cloud.E(cloud.Forbidden, "FORBIDDEN") // staff asked for it
		case !i.Open():
			return ended(*i)
		case i.InForce():
			if err := d.Move(i.Before, Withdraw, operation, "", in.Reason); err != nil {
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
	return s.reviewing(ctx, c, in, func(d *Decision) error { return d.force(actIntercept.operation(c)) })
}

// Reject refuses a request that waits for review. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reject(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.reviewing(ctx, c, in, func(d *Decision) error {
		i := d.interception
		i.Status, i.RejectReason, i.EndedAt, i.Operation = cloud.InterceptionRejected, in.Reason, d.Now, actWithdraw.operation(c)
		d.LogOperation(i.Operation, d.Order.Status, in.Reason, nil)
		return nil
	})
}

func (s *Service) reviewing(ctx context.Context, c cloud.Caller, in StopInput, fn func(d *Decision) error) (InterceptionOutput, error) {
	if err := staff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.stopping(ctx, c, in, func(d *Decision) error {
		if d.interception.Status != cloud.InterceptionRequested {
			return ended(*d.interception)
		}
		return fn(d)
	})
}

// Held notes that a stopped order's goods are at a warehouse. Staff may.
// Errors: INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Held(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.stopped(ctx, c, in, func(d *Decision) error {
		if d.interception.Status == cloud.InterceptionHeld {
			return ended(*d.interception)
		}
		d.LogOperation(heldAtWarehouse, d.Order.Status, in.Reason, nil)
		d.interception.Status, d.interception.HeldAt, d.interception.Operation = cloud.InterceptionHeld, d.Now, heldAtWarehouse
		return nil
	})
}

// Execute carries out the outcome that was asked for. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Execute(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.stopped(ctx, c, in, func(d *Decision) error {
		i, operation := d.interception, actExecute.operation(c)
		if err := d.Move(outcomeStatus(d.Order, *i), ExecuteOutcome, operation, "", in.Reason); err != nil {
			return err
		}
		if i.Requested == outcomeRedeliver {
			d.redirect(*i)
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
func (d *Decision) redirect(i cloud.Interception) {
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
	Reason    string               `json:"reason"`
	Delivered bool                 `json:"delivered"` // else the stop could not be reached
}

// Fail ends an interception that did not come in time: the order was delivered,
// or goes on as before. Staff may. Errors: INTERCEPTION_NOT_FOUND,
// INTERCEPTION_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Fail(ctx context.Context, c cloud.Caller, in FailInput) (InterceptionOutput, error) {
	return s.stopped(ctx, c, StopInput{ID: in.ID, Reason: in.Reason}, func(d *Decision) error {
		i, to := d.interception, d.interception.Before
		if in.Delivered {
			to = cloud.OrderDelivered
		}
		if err := d.Move(to, InterceptionFailed, actWithdraw.operation(c), "", in.Reason); err != nil {
			return err
		}
		i.Status, i.FailureReason, i.EndedAt, i.After, i.Operation = cloud.InterceptionFailed, in.Reason, d.Now, d.Order.Status, actWithdraw.operation(c)
		return nil
	})
}

// stopped is what staff do to an interception in force.
func (s *Service) stopped(ctx context.Context, c cloud.Caller, in StopInput, fn func(d *Decision) error) (InterceptionOutput, error) {
	if err := staff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.stopping(ctx, c, in, func(d *Decision) error {
		if !d.interception.InForce() {
			return ended(*d.interception)
		}
		return fn(d)
	})
}

// Interceptions lists those of an order. Error: ORDER_NOT_FOUND.
func (s *Service) Interceptions(ctx context.Context, c cloud.Caller, in OrderRef) (InterceptionsOutput, error) {
	found, err := s.Find(ctx, c, Key{OrderID: in.OrderID})
	if err != nil {
		return InterceptionsOutput{}, err
	}
	list, err := s.store.ListInterceptions(ctx, c.Account.BusinessID, in.OrderID)
	if err != nil {
		return InterceptionsOutput{}, err
	}
	out := InterceptionsOutput{Result: true, OrderID: found.Order.OrderID, Interceptions: []InterceptionBody{}}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		zone, err := s.shower(v, c).zone(found.Order.BusinessID)
		for _, i := range list {
			out.Interceptions = append(out.Interceptions, interceptionBody(i, zone))
		}
		return err
	})
}
