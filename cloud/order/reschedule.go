package order

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// reschedulable are the statuses in which an order can get another day: it has not
// begun, or its stop failed.
var reschedulable = append(slices.Clone(beforePickup), cloud.OrderReceived, cloud.OrderArrivalScan, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed,
	cloud.OrderDeliveryRescheduled)

// RescheduleInput gives an order another day. A window that is missing stays; both of
// its ends are given or none.
type RescheduleInput struct {
	OrderID       cloud.OrderID `path:"order_id" json:"-"`
	ScheduledDate string        `json:"scheduled_date" required:"true" format:"date"`
	WindowStart   *string       `json:"time_window_start" format:"time"`
	WindowEnd     *string       `json:"time_window_end" format:"time"`
	Reason        string        `json:"reason" max:"255"`
}

// Reschedule gives an order another day, and plans it again when its stop failed.
// Staff may, and customers with their own. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT, VALIDATION_FAILED.
func (s *Service) Reschedule(ctx context.Context, c cloud.Caller, in RescheduleInput) (OrderOutput, error) {
	if err := RequireOwners(c); err != nil {
		return OrderOutput{}, err
	}
	return s.Decide(ctx, c, Key{OrderID: in.OrderID}, func(d *Decision) error {
		b, err := d.View.Business(d.Order.BusinessID)
		if err != nil {
			return err
		}
		change := UpdateInput{ScheduledDate: &in.ScheduledDate, WindowStart: in.WindowStart, WindowEnd: in.WindowEnd}
		if err := change.check(d.Order, d.Now.In(b.Location())); err != nil {
			return err
		}
		if !slices.Contains(reschedulable, d.Order.Status) {
			return StatusConflict(d.Order)
		}
		changes := map[string]cloud.FieldChange{}
		set(changes, "scheduled_date", &d.Order.ScheduledDate, change.ScheduledDate)
		set(changes, "time_window_start", &d.Order.WindowStart, change.WindowStart)
		set(changes, "time_window_end", &d.Order.WindowEnd, change.WindowEnd)
		moved, err := rescheduleOrder(d, in.Reason)
		switch {
		case err != nil:
			return err
		case moved:
			d.Changes.OrderOperations[len(d.Changes.OrderOperations)-1].Changes = changes
		case len(changes) > 0:
			d.LogOperation(actWindow.Operation(c), d.Order.Status, in.Reason, changes)
		}
		return nil
	})
}
