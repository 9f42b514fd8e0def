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
	return s.changeStatus(ctx, c, in, func(d *Decision) error {
		b, err := d.View.Business(d.Order.BusinessID)
		if err != nil {
			return err
		}
		until := check.Moment(in.Until, b.Location())
		if !until.IsZero() && !until.After(d.Now) {
			f := newFields()
			f.Say("until", check.MessageFuture)
			return f.Err()
		}
		if err := d.Move(cloud.OrderHold, Hold, actHold.Operation(c), "", in.Reason); err != nil {
			return err
		}
		if !until.IsZero() {
			last := &d.Changes.OrderOperations[len(d.Changes.OrderOperations)-1]
			last.Changes = map[string]cloud.FieldChange{"hold_until": {To: cloud.Stamp(until, b.Location())}}
		}
		return nil
	})
}

// Release ends a hold; the order is new again. Staff may. Errors:
// ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Release(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	return s.changeStatus(ctx, c, in, func(d *Decision) error {
		return d.Move(cloud.OrderNew, Release, actRelease.Operation(c), "", in.Reason)
	})
}

// Ready marks the goods of a new order as ready to be fetched. Staff may.
// Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Ready(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	return s.changeStatus(ctx, c, in, func(d *Decision) error {
		return d.Move(cloud.OrderReady, MarkReady, actEdit.Operation(c), "", in.Reason)
	})
}

// changeStatus is an act of staff.
func (s *Service) changeStatus(ctx context.Context, c cloud.Caller, in ReasonInput, fn func(d *Decision) error) (OrderOutput, error) {
	if err := RequireStaff(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, fn)
}

// cancellable are the statuses in which a customer may cancel.
var cancellable = statuses{cloud.OrderNew, cloud.OrderUnpaid, cloud.OrderHold, cloud.OrderReady, cloud.OrderRoutePlanned, cloud.OrderDriverAssigned,
	cloud.OrderDriverAccepted, cloud.OrderHandedOver}

// Cancel ends an order that is not delivered: staff any, customers their own
// before it is on its way. Errors: ORDER_NOT_FOUND, ORDER_NOT_CANCELLABLE,
// VALIDATION_FAILED.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in ReasonInput) (OrderOutput, error) {
	if err := RequireOwners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		err := cancelOrder(d, actCancel.Operation(c), in.Reason)
		var refusal *cloud.Error
		if errors.As(err, &refusal) && refusal.Code == codeNotCancellable {
			d.refuseCancellation(refusal)
			return nil
		}
		return err
	})
}

func cancelOrder(d *Decision, operation int, note string) error {
	customer := d.Caller.Account.Type == cloud.Customer
	if d.Order.Status.State().Terminal || customer && !slices.Contains(cancellable, d.Order.Status) {
		return &cloud.Error{Kind: cloud.Conflict, Code: codeNotCancellable, Details: map[string]any{"order_status_id": d.Order.Status, "order_status": d.Order.Status.String()}}
	}
	reason := ""
	if customer {
		reason = "customer_cancelled"
	}
	d.Order.CancelReason = note
	return d.Move(cloud.OrderCancelled, Cancel, operation, reason, note)
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
	if err := RequireOwners(c); err != nil {
		return RerouteOutput{}, err
	}
	var out RerouteOutput
	_, err := s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		next, err := rerouteOrder(d, in)
		if err != nil {
			return err
		}
		out = RerouteOutput{Result: true, Cancelled: d.Order.ID}
		out.NewOrder, err = s.shower(d.View, c).order(next.Order, next)
		// The old order is written first: it gives up the reference.
		if err := errors.Join(err, d.finish(), next.finish()); err != nil {
			return err
		}
		d.Changes.Join(&next.Changes)
		d.Changes.Answer = out
		return nil
	})
	return out, err
}

// rerouteOrder cancels the order and makes the one in its place.
func rerouteOrder(d *Decision, in RerouteInput) (*Decision, error) {
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return nil, err
	}
	in.NewAddress = CloneAddress(in.NewAddress)
	f := newFields()
	f.Ahead("scheduled_date", in.ScheduledDate, d.Now.In(b.Location()))
	if err := f.Err(); err != nil {
		return nil, err
	}
	if d.Order.Collected || !slices.Contains(beforePickup, d.Order.Status) {
		return nil, StatusConflict(d.Order)
	}
	if d.Order.ThirdPartyOpen { // its numbers are none of the new order's
		if _, err := d.ThirdParty(); err != nil {
			return nil, err
		}
		if err := d.CancelThirdParty(cloud.ThirdPartyCalledOff, in.Reason); err != nil {
			return nil, err
		}
	}
	next := d.Order
	if d.Order.Ref != "" {
		if err := renameRef(d); err != nil {
			return nil, err
		}
		next.Reroutes = d.Order.Reroutes
	}
	if err := cancelOrder(d, actReroute.Operation(d.Caller), in.Reason); err != nil {
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
	fresh(&next, d.Now)
	n := &Decision{service: d.service, View: d.View, Caller: d.Caller, Now: d.Now}
	ref := next.Ref
	next.Ref = "" // it is not free before the old order is written
	if err := insertOrder(n, next); err != nil {
		return nil, err
	}
	n.Order.Ref = ref
	n.Changes.OrderTerms = nil
	n.Index()
	d.Index()
	n.LogOperation(actReroute.Operation(d.Caller), 0, fmt.Sprintf("in place of order %d", d.Order.ID), nil)
	return n, nil
}

// renameRef gives the order the first free -R suffix of its reference.
func renameRef(d *Decision) error {
	base := d.Order.Ref
	for {
		d.Order.Reroutes++
		ref := fmt.Sprintf("%s-R%d", base, d.Order.Reroutes)
		taken, err := d.View.OrdersByRef(d.Order.BusinessID, ref)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(taken, func(o cloud.Order) bool { return o.CustomerID == d.Order.CustomerID }) {
			d.Order.Ref = ref
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
		if err := RequireStaff(c); err != nil {
			return Done{}, err
		}
		return Done{}, cloud.E(cloud.Forbidden, CodeType)
	}
	_, err := s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		if !slices.Contains(deletable, d.Order.Status) {
			return StatusConflict(d.Order)
		}
		if d.Order.ThirdPartyOpen {
			return cloud.E(cloud.Conflict, CodeThirdParty)
		}
		if err := d.EndAssignment(cloud.AssignmentRevoked, "order_deleted"); err != nil {
			return err
		}
		d.LogOperation(actDelete.Operation(c), d.Order.Status, "", nil)
		d.Changes.DroppedOrders = []cloud.OrderKey{{BusinessID: d.Order.BusinessID, ID: d.Order.ID}}
		d.AddEvent(eventDeleted, fmt.Sprint("ODE-", d.Order.ID), (*eventWriter).deleted)
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
	Status  cloud.OrderStatus `json:"order_status_id" required:"true" min:"1"`
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
	if err := RequireStaff(c); err != nil {
		return OrderOutput{}, err
	}
	f := newFields()
	if in.Status.String() == "" || in.Status == cloud.OrderIntercepted {
		f.Say("order_status_id", check.MessageEnum, strings.Join(overridable(), ", "))
	}
	if err := f.Err(); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error { return overrideStatus(d, in) })
}

func overrideStatus(d *Decision, in OverrideInput) error {
	if slices.Contains(final, d.Order.Status) || in.Status == d.Order.Status {
		return StatusConflict(d.Order)
	}
	if _, err := d.Interception(); err != nil {
		return err
	}
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	from := d.Order.Status
	// A status that comes earlier, or that the goods cannot have come to by
	// what the timeline says already, is not added to it.
	if code := in.Status.State().Code; in.Status > from && l.mayFollow(0, code) {
		l.insert(0, code, otep.System, in.Status.State().Reason, d.Now, d.Now)
	}
	d.enterStatus(in.Status, overridden, in.Reason)
	if d.Order.SelfDelivery || !slices.Contains(carried, in.Status) && !in.Status.State().Terminal {
		giveBack(d, l)
	}
	if in.Status == cloud.OrderCancelled {
		d.Order.CancelReason = in.Reason
	}
	origins := plannable
	if in.Status == cloud.OrderHandedOver {
		origins = resting
	}
	if d.Order.Before != 0 && !slices.Contains(origins, d.Order.Before) {
		d.Order.Before = cloud.OrderNew
		if d.Order.Collected {
			d.Order.Before = cloud.OrderReceived
		}
	}
	d.failInterception("override")
	return nil
}
