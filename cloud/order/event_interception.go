package order

import (
	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// hookDeleted is the data of order.deleted.
type hookDeleted struct {
	Order     hookOrder         `json:"order"`
	Status    cloud.OrderStatus `json:"last_status"`
	Name      string            `json:"last_status_name"`
	Operation int               `json:"operation_type"`
	Operator  OperatorBody      `json:"operator"`
	DeletedAt *string           `json:"deleted_at"`
}

func (t *eventWriter) deleted() (any, error) {
	return hookDeleted{Order: t.order(), Status: t.d.Order.Status, Name: t.d.Order.Status.String(), Operation: t.d.steps[len(t.d.steps)-1].operation, Operator: t.actor(),
		DeletedAt: t.stamp(t.d.Now)}, nil
}

// hookRefused is the data of order.cancel_failed.
type hookRefused struct {
	Order       hookOrder         `json:"order"`
	StatusID    cloud.OrderStatus `json:"order_status_id"`
	Status      string            `json:"order_status"`
	Code        string            `json:"code"`
	Message     string            `json:"message"` // in the business's language
	RequestedBy OperatorBody      `json:"requested_by"`
	AttemptedAt *string           `json:"attempted_at"`
}

func (t *eventWriter) refused() (any, error) {
	code := cancelRefusal(t.d.Order.Status)
	return hookRefused{Order: t.order(), StatusID: t.d.Order.Status, Status: t.d.Order.Status.String(), Code: code,
		Message: locale.Error(t.business.Settings.Locale(), code), RequestedBy: t.actor(), AttemptedAt: t.stamp(t.d.Now)}, nil
}

// hookStop is the data of the events of an interception. Each has the moment
// that it is about.
type hookStop struct {
	ID            cloud.InterceptionID `json:"interception_id"`
	Order         hookOrder            `json:"order"`
	Status        string               `json:"status"`
	Requested     string               `json:"requested_outcome"`
	Outcome       *string              `json:"outcome"`
	Before        cloud.OrderStatus    `json:"before_status"`
	After         *cloud.OrderStatus   `json:"after_status"`
	Operation     int                  `json:"operation_type"`
	Reason        *string              `json:"reason"`
	NewAddress    *AddressBody         `json:"new_address"`
	NewDate       *string              `json:"new_scheduled_date"`
	RequestedBy   cloud.Operator       `json:"requested_by"`
	RejectReason  *string              `json:"reject_reason"`
	FailureReason *string              `json:"failure_reason"`
	WarehouseID   *int64               `json:"warehouse_id"`
	CreatedAt     *string              `json:"created_at"`
	InForceAt     *string              `json:"in_force_at,omitempty"`
	HeldAt        *string              `json:"held_at,omitempty"`
	ExecutedAt    *string              `json:"executed_at,omitempty"`
	EndedAt       *string              `json:"ended_at,omitempty"`
}

// interception tells of one that came to a status and had another before.
func (t *eventWriter) interception(status, was string, i cloud.Interception) (any, error) {
	h := hookStop{ID: i.ID, Order: t.order(), Status: status, Requested: i.Requested, Outcome: cloud.OrNull(i.Outcome), Before: i.Before, After: cloud.OrNull(i.After),
		Operation: i.Operation, Reason: cloud.OrNull(i.Reason), NewAddress: addressBody(i.NewAddress), NewDate: cloud.OrNull(i.NewDate), RequestedBy: i.By,
		RejectReason: cloud.OrNull(i.RejectReason), FailureReason: cloud.OrNull(i.FailureReason), CreatedAt: t.stamp(i.CreatedAt)}
	if !i.HeldAt.IsZero() {
		h.WarehouseID = cloud.OrNull(t.d.Order.WarehouseID)
	}
	switch status {
	case cloud.InterceptionInForce:
		h.InForceAt = t.stamp(i.InForceAt)
	case cloud.InterceptionHeld:
		h.HeldAt = t.stamp(i.HeldAt)
	case cloud.InterceptionExecuted:
		h.ExecutedAt = t.stamp(i.ExecutedAt)
	case cloud.InterceptionWithdrawn, cloud.InterceptionRejected, cloud.InterceptionFailed:
		h.EndedAt = t.stamp(i.EndedAt)
	}
	ended := status == cloud.InterceptionExecuted || status == cloud.InterceptionWithdrawn || status == cloud.InterceptionFailed
	if ended && (was == cloud.InterceptionInForce || was == cloud.InterceptionHeld) {
		h.Before = cloud.OrderIntercepted
	}
	return h, nil
}
