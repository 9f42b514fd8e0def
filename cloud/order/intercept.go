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
	_, err := s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error {
		if err := w.intercept(in); err != nil {
			return err
		}
		err := s.showStop(w, &out)
		w.ch.Answer = out
		return err
	})
	return out, err
}

func (s *Service) showStop(w *work, out *InterceptionOutput) error {
	zone, err := s.shower(w.v, w.c).zone(w.o.BusinessID)
	if err == nil {
		*out = InterceptionOutput{Result: true, Interception: interceptionBody(*w.stop, zone)}
	}
	return err
}

func (w *work) intercept(in InterceptInput) error {
	b, err := w.v.Business(w.o.BusinessID)
	if err != nil {
		return err
	}
	f := newFields()
	in.NewAddress = own(in.NewAddress)
	f.ahead("new_scheduled_date", in.NewDate, w.now.In(b.Location()))
	if err := f.Err(); err != nil {
		return err
	}
	old, err := w.interception()
	if err != nil {
		return err
	}
	if old != nil && old.Open() {
		return &cloud.Error{Kind: cloud.Conflict, Code: codeStopOpen, Details: map[string]any{"interception_id": old.ID}}
	}
	if rowOf(w.o, cloud.OrderIntercepted, Intercept, 0) == nil {
		return conflict(w.o)
	}
	id, err := w.v.NewID(cloud.InterceptionIDs)
	if err != nil {
		return err
	}
	operation := actIntercept.by(w.c)
	w.stopWas, w.stop = "", &cloud.Interception{ID: cloud.InterceptionID(id), BusinessID: w.o.BusinessID, OrderID: w.o.ID, Status: cloud.InterceptionRequested,
		Requested: in.Outcome, NewAddress: in.NewAddress, NewDate: in.NewDate, Reason: in.Reason, By: operator(w.c), Before: w.o.Status, Operation: operation, CreatedAt: w.now}
	if w.c.Account.Type == cloud.Customer {
		w.stop.By.Type = "customer"
	}
	w.o.InterceptionID = w.stop.ID
	if b.Settings.InterceptionReview && w.c.Account.Type == cloud.Customer {
		w.did(operation, w.o.Status, in.Reason, nil)
		return nil
	}
	return w.force(operation)
}

// force puts the requested interception into force.
func (w *work) force(operation int) error {
	l, err := w.timeline()
	if err != nil {
		return err
	}
	i := w.stop
	i.Before, i.BeforeCode = w.o.Status, l.current()
	if err := w.move(cloud.OrderIntercepted, Intercept, operation, "", i.Reason); err != nil {
		return err
	}
	i.Status, i.InForceAt, i.After, i.Operation = cloud.InterceptionInForce, w.now, w.o.Status, operation
	return nil
}

// StopInput names an interception.
type StopInput struct {
	ID     cloud.InterceptionID `path:"id" json:"-"`
	Reason string               `json:"reason" max:"255"`
}

// stopping runs one decision about an interception of the caller's orders.
func (s *Service) stopping(ctx context.Context, c cloud.Caller, in StopInput, fn func(w *work) error) (InterceptionOutput, error) {
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
	_, err = s.decide(ctx, c, Key{OrderID: i.OrderID}, func(w *work) error {
		stop, err := w.interception()
		if err != nil {
			return err
		}
		if stop == nil || stop.ID != in.ID {
			return ended(i) // a newer one is there
		}
		if err := fn(w); err != nil {
			return err
		}
		return s.showStop(w, &out)
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
	return s.stopping(ctx, c, in, func(w *work) error {
		i, operation := w.stop, actWithdraw.by(c)
		switch {
		case c.Account.Type == cloud.Customer && i.By.ID != c.Account.ID:
			return cloud.E(cloud.Forbidden, "FORBIDDEN") // staff asked for it
		case !i.Open():
			return ended(*i)
		case i.InForce():
			if err := w.move(i.Before, Withdraw, operation, "", in.Reason); err != nil {
				return err
			}
		default:
			w.did(operation, w.o.Status, in.Reason, nil)
		}
		i.Status, i.EndedAt, i.After, i.Operation = cloud.InterceptionWithdrawn, w.now, w.o.Status, operation
		return nil
	})
}

// Approve puts a request that waits for review into force. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT, ORDER_STATUS_CONFLICT.
func (s *Service) Approve(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.reviewing(ctx, c, in, func(w *work) error { return w.force(actIntercept.by(c)) })
}

// Reject refuses a request that waits for review. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reject(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.reviewing(ctx, c, in, func(w *work) error {
		i := w.stop
		i.Status, i.RejectReason, i.EndedAt, i.Operation = cloud.InterceptionRejected, in.Reason, w.now, actWithdraw.by(c)
		w.did(i.Operation, w.o.Status, in.Reason, nil)
		return nil
	})
}

func (s *Service) reviewing(ctx context.Context, c cloud.Caller, in StopInput, fn func(w *work) error) (InterceptionOutput, error) {
	if err := staff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.stopping(ctx, c, in, func(w *work) error {
		if w.stop.Status != cloud.InterceptionRequested {
			return ended(*w.stop)
		}
		return fn(w)
	})
}

// Held notes that a stopped order's goods are at a warehouse. Staff may.
// Errors: INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Held(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.stopped(ctx, c, in, func(w *work) error {
		if w.stop.Status == cloud.InterceptionHeld {
			return ended(*w.stop)
		}
		w.did(heldAtWarehouse, w.o.Status, in.Reason, nil)
		w.stop.Status, w.stop.HeldAt, w.stop.Operation = cloud.InterceptionHeld, w.now, heldAtWarehouse
		return nil
	})
}

// Execute carries out the outcome that was asked for. Staff may. Errors:
// INTERCEPTION_NOT_FOUND, INTERCEPTION_STATUS_CONFLICT.
func (s *Service) Execute(ctx context.Context, c cloud.Caller, in StopInput) (InterceptionOutput, error) {
	return s.stopped(ctx, c, in, func(w *work) error {
		i, operation := w.stop, actExecute.by(c)
		if err := w.move(outcomeStatus(w.o, *i), ExecuteOutcome, operation, "", in.Reason); err != nil {
			return err
		}
		if i.Requested == outcomeRedeliver {
			w.redirect(*i)
		}
		if w.o.Status == cloud.OrderCancelled {
			w.o.CancelReason = i.Reason
		}
		i.Status, i.Outcome, i.ExecutedAt, i.EndedAt, i.After, i.Operation = cloud.InterceptionExecuted, i.Requested, w.now, w.now, w.o.Status, operation
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
func (w *work) redirect(i cloud.Interception) {
	if i.NewDate != "" {
		w.o.ScheduledDate = i.NewDate
	}
	if i.NewAddress != nil {
		w.o.Recipient = i.NewAddress
		w.index()
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
	return s.stopped(ctx, c, StopInput{ID: in.ID, Reason: in.Reason}, func(w *work) error {
		i, to := w.stop, w.stop.Before
		if in.Delivered {
			to = cloud.OrderDelivered
		}
		if err := w.move(to, InterceptionFailed, actWithdraw.by(c), "", in.Reason); err != nil {
			return err
		}
		i.Status, i.FailureReason, i.EndedAt, i.After, i.Operation = cloud.InterceptionFailed, in.Reason, w.now, w.o.Status, actWithdraw.by(c)
		return nil
	})
}

// stopped is what staff do to an interception in force.
func (s *Service) stopped(ctx context.Context, c cloud.Caller, in StopInput, fn func(w *work) error) (InterceptionOutput, error) {
	if err := staff(c); err != nil {
		return InterceptionOutput{}, err
	}
	return s.stopping(ctx, c, in, func(w *work) error {
		if !w.stop.InForce() {
			return ended(*w.stop)
		}
		return fn(w)
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
