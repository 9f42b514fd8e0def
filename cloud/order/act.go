package order

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// message is an error in the caller's language.
func message(c cloud.Caller, e *cloud.Error) string {
	return locale.Error(c.Language, e.Code, e.Args...)
}

// ReasonInput is why something is done to an order. Until is a date-time that
// is kept with the operation of a hold, for people to see; nothing happens then.
type ReasonInput struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
	Reason  string        `json:"reason" max:"255"`
	Until   string        `json:"until" format:"moment"`
}

// Hold keeps an order from being planned. Staff may. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Hold(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	return s.act(ctx, c, in, func(w *work) error {
		b, err := w.v.Business(w.o.BusinessID)
		if err != nil {
			return err
		}
		until := check.Moment(in.Until, b.Location())
		if err := w.move(cloud.OrderHold, Hold, actHold.by(c), "", in.Reason); err != nil {
			return err
		}
		if !until.IsZero() {
			last := &w.ch.OrderOperations[len(w.ch.OrderOperations)-1]
			last.Changes = map[string]cloud.FieldChange{"hold_until": {To: cloud.Stamp(until, b.Location())}}
		}
		return nil
	})
}

// Release ends a hold; the order is new again. Staff may. Errors:
// ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Release(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	return s.act(ctx, c, in, func(w *work) error { return w.move(cloud.OrderNew, Release, actRelease.by(c), "", in.Reason) })
}

// Ready marks the goods of a new order as ready to be fetched. Staff may.
// Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Ready(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	return s.act(ctx, c, in, func(w *work) error { return w.move(cloud.OrderReady, MarkReady, actEdit.by(c), "", in.Reason) })
}

// act is an act of staff.
func (s *Service) act(ctx context.Context, c cloud.Caller, in ReasonInput, fn func(w *work) error) (OrderOutput, error) {
	if err := staff(c); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, fn)
}

// cancellable are the statuses in which a customer may cancel.
var cancellable = statuses{cloud.OrderNew, cloud.OrderUnpaid, cloud.OrderHold, cloud.OrderReady, cloud.OrderRoutePlanned, cloud.OrderDriverAssigned,
	cloud.OrderDriverAccepted, cloud.OrderHandedOver}

// Cancel ends an order that is not delivered: staff any, customers their own
// before it is on its way. Errors: ORDER_NOT_FOUND, ORDER_NOT_CANCELLABLE,
// VALIDATION_FAILED.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	if err := owners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error {
		err := w.cancel(actCancel.by(c), in.Reason)
		var refusal *cloud.Error
		if errors.As(err, &refusal) && refusal.Code == codeNotCancellable {
			w.refuse(refusal)
			return nil
		}
		return err
	})
}

func (w *work) cancel(operation int, note string) error {
	customer := w.c.Account.Type == cloud.Customer
	if w.o.Status.State().Terminal || customer && !slices.Contains(cancellable, w.o.Status) {
		return &cloud.Error{Kind: cloud.Conflict, Code: codeNotCancellable, Details: map[string]any{"order_status_id": w.o.Status, "order_status": w.o.Status.String()}}
	}
	reason := ""
	if customer {
		reason = "customer_cancelled"
	}
	w.o.CancelReason = note
	return w.move(cloud.OrderCancelled, Cancel, operation, reason, note)
}

// RerouteInput sends an order somewhere else.
type RerouteInput struct {
	OrderID       cloud.OrderID  `path:"order_id" json:"-"`
	NewAddress    *cloud.Address `json:"new_address" required:"true"`
	Reason        string         `json:"reason" max:"255"`
	ScheduledDate string         `json:"scheduled_date" format:"date"`
}

// RerouteOutput names the order that was cancelled and shows the one in its
// place.
type RerouteOutput struct {
	Result    bool          `json:"result"`
	Cancelled cloud.OrderID `json:"cancelled_order_id"`
	NewOrder  OrderBody     `json:"new_order"`
}

// Reroute cancels an order that was not picked up and makes the same one with
// another address: of a pickup its sender's, otherwise the recipient's. The
// reference goes over; the old order keeps it with -R1, -R2, … Errors:
// ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reroute(ctx context.Context, c cloud.Caller, in RerouteInput) (RerouteOutput, error) {
	if err := owners(c); err != nil {
		return RerouteOutput{}, err
	}
	var out RerouteOutput
	_, err := s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error {
		next, err := w.reroute(in)
		if err != nil {
			return err
		}
		out = RerouteOutput{Result: true, Cancelled: w.o.ID}
		out.NewOrder, err = s.shower(w.v, c).order(next.o, next)
		// The old order is written first: it gives up the reference.
		if err := errors.Join(err, w.finish(), next.finish()); err != nil {
			return err
		}
		w.ch.Join(&next.ch)
		w.ch.Answer = out
		return nil
	})
	return out, err
}

// reroute cancels the order and makes the one in its place.
func (w *work) reroute(in RerouteInput) (*work, error) {
	b, err := w.v.Business(w.o.BusinessID)
	if err != nil {
		return nil, err
	}
	in.NewAddress = own(in.NewAddress)
	f := newFields()
	f.ahead("scheduled_date", in.ScheduledDate, w.now.In(b.Location()))
	if err := f.Err(); err != nil {
		return nil, err
	}
	if w.o.Collected || !slices.Contains(beforePickup, w.o.Status) {
		return nil, conflict(w.o)
	}
	if w.o.ThirdPartyOpen { // its numbers are none of the new order's
		if _, err := w.thirdParty(); err != nil {
			return nil, err
		}
		if err := w.callOff(cloud.ThirdPartyCalledOff, in.Reason); err != nil {
			return nil, err
		}
	}
	next := w.o
	if w.o.Ref != "" {
		if err := w.renameRef(); err != nil {
			return nil, err
		}
		next.Reroutes = w.o.Reroutes
	}
	if err := w.cancel(actReroute.by(w.c), in.Reason); err != nil {
		return nil, err
	}
	if next.Type == cloud.PickupOrder {
		next.Sender = in.NewAddress
	} else {
		next.Recipient = in.NewAddress
	}
	if in.ScheduledDate != "" {
		next.ScheduledDate = in.ScheduledDate
	}
	fresh(&next, w.now)
	n := &work{s: w.s, v: w.v, c: w.c, now: w.now}
	ref := next.Ref
	next.Ref = "" // it is not free before the old order is written
	if err := n.insert(next); err != nil {
		return nil, err
	}
	n.o.Ref = ref
	n.ch.OrderTerms = nil
	n.index()
	w.index()
	n.did(actReroute.by(w.c), 0, fmt.Sprintf("in place of order %d", w.o.ID), nil)
	return n, nil
}

// renameRef gives the order the first free -R suffix of its reference.
func (w *work) renameRef() error {
	base := w.o.Ref
	for {
		w.o.Reroutes++
		ref := fmt.Sprintf("%s-R%d", base, w.o.Reroutes)
		taken, err := w.v.OrdersByRef(w.o.BusinessID, ref)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(taken, func(o cloud.Order) bool { return o.CustomerID == w.o.CustomerID }) {
			w.o.Ref = ref
			return nil
		}
	}
}

// fresh makes a copy of an order a new one.
func fresh(o *cloud.Order, now time.Time) {
	waits := o.Status == cloud.OrderHold || o.Status == cloud.OrderUnpaid
	status := o.Status
	o.Status, o.Before, o.Collected, o.RouteID, o.Stop, o.DriverID, o.DriverName, o.BrokerID, o.AssignmentID = cloud.OrderNew, 0, false, 0, 0, 0, "", 0, 0
	o.SecondStop, o.Past, o.Paused, o.Drove = 0, nil, nil, nil
	o.ETA, o.InterceptionID, o.Attempts, o.ExternalNumber, o.ThirdPartyID, o.ThirdPartyOpen = time.Time{}, 0, 0, "", 0, false
	o.StatusAt, o.Files = now, nil
	o.CreatedAt, o.UpdatedAt, o.DeliveredAt, o.CancelledAt, o.CancelReason = now, now, time.Time{}, time.Time{}, ""
	if waits {
		o.Status = status
	}
	o.Packages = slices.Clone(o.Packages)
	for i := range o.Packages {
		o.Packages[i].Status = cloud.OrderPackageCreated
	}
}

// Delete removes an order and all that is kept about it, but for the word that
// it was deleted. A client admin may, while nothing has happened to it or when
// it is cancelled. Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT.
func (s *Service) Delete(ctx context.Context, c cloud.Caller, in OrderRef) (Done, error) {
	if c.Account.Type != cloud.ClientAdmin {
		if err := staff(c); err != nil {
			return Done{}, err
		}
		return Done{}, cloud.E(cloud.Forbidden, codeType)
	}
	_, err := s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error {
		if !slices.Contains(statuses{cloud.OrderNew, cloud.OrderHold, cloud.OrderCancelled}, w.o.Status) {
			return conflict(w.o)
		}
		if w.o.ThirdPartyOpen {
			return cloud.E(cloud.Conflict, codeThirdParty)
		}
		if err := w.unassign(cloud.AssignmentRevoked, "order_deleted"); err != nil {
			return err
		}
		w.did(actDelete.by(c), w.o.Status, "", nil)
		w.ch.DroppedOrders = []cloud.OrderKey{{BusinessID: w.o.BusinessID, ID: w.o.ID}}
		w.tell(eventDeleted, fmt.Sprint("ODE-", w.o.ID), (*telling).deleted)
		return nil
	})
	return Done{Result: err == nil}, err
}

// OrderRef names an order in a path.
type OrderRef struct {
	OrderID cloud.OrderID `path:"order_id" json:"-"`
}

// Done is the answer that has nothing to show.
type Done struct {
	Result bool `json:"result"`
}

// OverrideInput sets an order's status by hand.
type OverrideInput struct {
	OrderID cloud.OrderID     `path:"order_id" json:"-"`
	Status  cloud.OrderStatus `json:"order_status_id" required:"true"`
	Reason  string            `json:"reason" required:"true" max:"255"`
}

const overridden = 3020

// overridable are the numbers of the statuses that are set by hand.
func overridable() (out []string) {
	for _, s := range cloud.OrderStates() {
		if s.ID != cloud.OrderIntercepted {
			out = append(out, strconv.Itoa(int(s.ID)))
		}
	}
	return out
}

// Override sets any status but INTERCEPTED, past the table of moves. An order
// that is delivered, returned or cancelled stays so; one that was refused comes
// back to where goods are. Staff may. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Override(ctx context.Context, c cloud.Caller, in OverrideInput) (OrderOutput, error) {
	if err := staff(c); err != nil {
		return OrderOutput{}, err
	}
	f := newFields()
	if in.Status.String() == "" || in.Status == cloud.OrderIntercepted {
		f.Say("order_status_id", check.MessageEnum, strings.Join(overridable(), ", "))
	}
	if err := f.Err(); err != nil {
		return OrderOutput{}, err
	}
	return s.decide(ctx, c, Key{OrderID: in.OrderID}, func(w *work) error { return w.override(in) })
}

func (w *work) override(in OverrideInput) error {
	if slices.Contains(statuses{cloud.OrderDelivered, cloud.OrderReturned, cloud.OrderCancelled}, w.o.Status) || in.Status == w.o.Status {
		return conflict(w.o)
	}
	if _, err := w.interception(); err != nil {
		return err
	}
	l, err := w.timeline()
	if err != nil {
		return err
	}
	from := w.o.Status
	// A status that comes earlier, or that the goods cannot have come to by
	// what is told already, is not told.
	if code := in.Status.State().Code; in.Status > from && l.mayFollow(code) {
		l.add(code, otep.System, in.Status.State().Reason, w.now, w.now)
	}
	w.enter(in.Status, overridden, in.Reason)
	if in.Status == cloud.OrderCancelled {
		w.o.CancelReason = in.Reason
	}
	origins := plannable
	if in.Status == cloud.OrderHandedOver {
		origins = resting
	}
	if w.o.Before != 0 && !slices.Contains(origins, w.o.Before) {
		w.o.Before = cloud.OrderNew
		if w.o.Collected {
			w.o.Before = cloud.OrderReceived
		}
	}
	w.unstop("override")
	return nil
}
