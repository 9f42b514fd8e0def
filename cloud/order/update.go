package order

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// UpdateInput changes an order. A member that is null or missing stays; an empty text
// clears. A window has both ends.
type UpdateInput struct {
	OrderID       cloud.OrderID  `path:"order_id" json:"-"`
	Instruction   *string        `json:"delivery_instruction" max:"500"`
	Note          *string        `json:"note" max:"1000"`
	ScheduledDate *string        `json:"scheduled_date" format:"date"`
	WindowStart   *string        `json:"time_window_start" format:"time"`
	WindowEnd     *string        `json:"time_window_end" format:"time"`
	Recipient     *cloud.Address `json:"recipient"`
	Priority      *int           `json:"priority" min:"0" max:"9"`
}

// beforePickup are the statuses in which addresses may still change.
var beforePickup = statuses{cloud.OrderNew, cloud.OrderUnpaid, cloud.OrderHold, cloud.OrderReady, cloud.OrderRoutePlanned, cloud.OrderDriverAssigned,
	cloud.OrderDriverAccepted, cloud.OrderPickupFailed, cloud.OrderPickupRescheduled}

// Update changes what may still change: of an order that has ended the note, of
// one that was picked up not its address. The note is for staff only. A new date for a failed stop plans
// it again. Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Update(ctx context.Context, c cloud.Caller, in UpdateInput) (OrderOutput, error) {
	if err := RequireOwners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error { return updateOrder(d, in) })
}

func updateOrder(d *Decision, in UpdateInput) error {
	if in.Note != nil && d.Caller.Account.Type == cloud.Customer { // who cannot see what it would be written over
		f := newFields()
		f.Add("note", "Notes are kept by staff. Use delivery_instruction for what the driver has to know.")
		return f.Err()
	}
	b, err := d.View.Business(d.Order.BusinessID)
	if err != nil {
		return err
	}
	if err := in.check(d.Order, d.Now.In(b.Location())); err != nil {
		return err
	}
	more := in.Instruction != nil || in.ScheduledDate != nil || in.WindowStart != nil || in.WindowEnd != nil || in.Priority != nil
	if more && d.Order.Status.State().Terminal || in.Recipient != nil && (d.Order.Collected || !slices.Contains(beforePickup, d.Order.Status)) {
		return StatusConflict(d.Order)
	}
	changes := map[string]cloud.FieldChange{}
	set(changes, "delivery_instruction", &d.Order.Instruction, in.Instruction)
	set(changes, "note", &d.Order.Note, in.Note)
	set(changes, "priority", &d.Order.Priority, in.Priority)
	set(changes, "time_window_start", &d.Order.WindowStart, in.WindowStart)
	set(changes, "time_window_end", &d.Order.WindowEnd, in.WindowEnd)
	set(changes, "scheduled_date", &d.Order.ScheduledDate, in.ScheduledDate)
	if in.Recipient != nil && !reflect.DeepEqual(in.Recipient, d.Order.Recipient) {
		changes["recipient"] = cloud.FieldChange{From: d.Order.Recipient, To: in.Recipient}
		d.Order.Recipient = in.Recipient
		d.Index()
	}
	if len(changes) == 0 {
		return nil
	}
	d.LogOperation(actionOf(changes).Operation(d.Caller), d.Order.Status, "", changes)
	if _, dated := changes["scheduled_date"]; dated && d.Order.ScheduledDate != "" {
		_, err = rescheduleOrder(d, "")
		return err
	}
	return nil
}

// set replaces a member that is given and notes what became of it.
func set[T comparable](changes map[string]cloud.FieldChange, name string, old *T, to *T) {
	if to != nil && *to != *old {
		changes[name] = cloud.FieldChange{From: *old, To: *to}
		*old = *to
	}
}

// actionOf is what a change of these members is called.
func actionOf(changes map[string]cloud.FieldChange) Action {
	only := func(names ...string) bool {
		for name := range changes {
			if !slices.Contains(names, name) {
				return false
			}
		}
		return true
	}
	switch {
	case only("note"):
		return actNote
	case only("delivery_instruction"):
		return actInstruct
	case only("scheduled_date", "time_window_start", "time_window_end"):
		return actWindow
	}
	return actEdit
}

// rescheduleOrder plans a failed stop again. moved is false for other orders.
func rescheduleOrder(d *Decision, note string) (moved bool, err error) {
	operation := actWindow.Operation(d.Caller)
	switch d.Order.Status {
	case cloud.OrderPickupFailed:
		return true, d.Move(cloud.OrderPickupRescheduled, Reschedule, operation, "", note)
	case cloud.OrderDeliveryFailed:
		return true, d.Move(cloud.OrderDeliveryRescheduled, Reschedule, operation, "", note)
	case cloud.OrderPartlyDelivered:
		return true, d.Move(cloud.OrderDeliveryRescheduled, DeliveryResult, operation, "", note)
	}
	return false, nil
}

// check checks what is to change in an order.
func (in *UpdateInput) check(o cloud.Order, now time.Time) error {
	f := newFields()
	if in.ScheduledDate != nil && *in.ScheduledDate != o.ScheduledDate {
		f.Ahead("scheduled_date", *in.ScheduledDate, now)
	}
	start, end := o.WindowStart, o.WindowEnd
	if in.WindowStart != nil {
		start = *in.WindowStart
	}
	if in.WindowEnd != nil {
		end = *in.WindowEnd
	}
	f.window(start, end)
	in.Recipient = CloneAddress(in.Recipient)
	return f.Err()
}

// WindowsInput gives several orders a new time window.
type WindowsInput struct {
	Refs          []string `json:"order_refs" required:"true" max:"100" item_max:"64"`
	ScheduledDate *string  `json:"scheduled_date" format:"date"`
	WindowStart   string   `json:"time_window_start" required:"true" format:"time"`
	WindowEnd     string   `json:"time_window_end" required:"true" format:"time"`
}

// WindowsOutput says how many orders have it.
type WindowsOutput struct {
	Result  bool       `json:"result"`
	Updated int        `json:"updated"`
	Skipped int        `json:"skipped"`
	Errors  []RefError `json:"errors"`
}

// RefError says why an order was left as it was.
type RefError struct {
	Ref     string `json:"order_ref"`
	Message string `json:"message"` // in the caller's language
	Code    string `json:"code"`
}

// SetWindows gives orders a new time window, each in a transaction of its own.
// Error: VALIDATION_FAILED, of which nothing is changed.
func (s *Service) SetWindows(ctx context.Context, c cloud.Caller, in WindowsInput) (WindowsOutput, error) {
	if err := RequireOwners(c); err != nil {
		return WindowsOutput{}, err
	}
	f := newFields()
	f.window(in.WindowStart, in.WindowEnd)
	if err := f.Err(); err != nil {
		return WindowsOutput{}, err
	}
	out := WindowsOutput{Result: true, Errors: []RefError{}}
	seen := map[string]bool{}
	for _, ref := range in.Refs {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		changed := false
		_, err := s.Decide(ctx, c, Key{Ref: ref}, func(d *Decision) error {
			err := updateOrder(d, UpdateInput{ScheduledDate: in.ScheduledDate, WindowStart: &in.WindowStart, WindowEnd: &in.WindowEnd})
			changed = len(d.Changes.OrderOperations) > 0
			return err
		})
		switch e := (*cloud.Error)(nil); {
		case errors.As(err, &e) && e.Code == "VALIDATION_FAILED":
			return WindowsOutput{}, err // the same for all of them
		case errors.As(err, &e):
			out.Skipped++
			out.Errors = append(out.Errors, RefError{Ref: ref, Code: e.Code, Message: message(c, e)})
		case err != nil:
			return WindowsOutput{}, err
		case changed:
			out.Updated++
		default:
			out.Skipped++
		}
	}
	return out, nil
}
