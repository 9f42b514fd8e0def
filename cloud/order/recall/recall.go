// Package recall takes started orders back from their drivers, so that another driver
// can take them. Safe for concurrent use.
package recall

import (
	"context"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/order"
)

// operationRemoved is the operation type of an order that comes off its route
// (interface 4.5).
const operationRemoved = 3011

// Service is the feature.
type Service struct{ orders *order.Service }

// New builds the service; it starts nothing.
func New(orders *order.Service) *Service { return &Service{orders: orders} }

// TakeBackInput takes a started order back from its driver.
type TakeBackInput struct {
	OrderID       cloud.OrderID `path:"order_id" json:"-"`
	ScheduledDate string        `json:"scheduled_date" format:"date" doc:"Empty: the day stays"`
	Reason        string        `json:"reason" required:"true" max:"255"`
}

// TakeBack takes an order whose driver has started back from that driver: it comes
// off its route and waits to be planned again. No attempt is counted. Staff may.
// Errors: ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT for an order that has not started
// or whose stop is over, VALIDATION_FAILED.
func (s *Service) TakeBack(ctx context.Context, c cloud.Caller, in TakeBackInput) (order.OrderOutput, error) {
	if err := order.RequireStaff(c); err != nil {
		return order.OrderOutput{}, err
	}
	return s.orders.Decide(ctx, c, order.Key{OrderID: in.OrderID}, func(d *order.Decision) error {
		b, err := d.View.Business(d.Order.BusinessID)
		if err != nil {
			return err
		}
		f := check.Fields{}
		f.Ahead("scheduled_date", in.ScheduledDate, d.Now.In(b.Location()))
		if err := f.Err(); err != nil {
			return err
		}
		to := cloud.OrderPickupRescheduled
		if d.Order.Status == cloud.OrderOutForDelivery {
			to = cloud.OrderDeliveryRescheduled
		}
		if err := d.Move(to, order.TakeBack, operationRemoved, "", in.Reason); err != nil {
			return err
		}
		if was := d.Order.ScheduledDate; in.ScheduledDate != "" && in.ScheduledDate != was {
			d.Order.ScheduledDate = in.ScheduledDate
			last := &d.Changes.OrderOperations[len(d.Changes.OrderOperations)-1]
			last.Changes = map[string]cloud.FieldChange{"scheduled_date": {From: was, To: in.ScheduledDate}}
		}
		return nil
	})
}
