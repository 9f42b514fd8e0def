package order

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
)

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

// ShowInterception is an interception as answers show it, with times of a zone.
func ShowInterception(i cloud.Interception, zone *time.Location) InterceptionBody {
	return InterceptionBody{ID: i.ID, OrderID: i.OrderID, Status: i.Status, Requested: i.Requested, Outcome: cloud.OrNull(i.Outcome), NewAddress: addressBody(i.NewAddress),
		NewDate: cloud.OrNull(i.NewDate), Reason: cloud.OrNull(i.Reason), RequestedBy: i.By, Before: i.Before, After: cloud.OrNull(i.After), OperationType: i.Operation,
		RejectReason: cloud.OrNull(i.RejectReason), FailureReason: cloud.OrNull(i.FailureReason), CreatedAt: cloud.Stamp(i.CreatedAt, zone),
		InForceAt: cloud.Stamp(i.InForceAt, zone), HeldAt: cloud.Stamp(i.HeldAt, zone), ExecutedAt: cloud.Stamp(i.ExecutedAt, zone), EndedAt: cloud.Stamp(i.EndedAt, zone)}
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
			out.Interceptions = append(out.Interceptions, ShowInterception(i, zone))
		}
		return err
	})
}
