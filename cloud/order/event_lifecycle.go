package order

import (
	"cmp"

	"github.com/postern-io/postern/cloud"
)

// hookStatus is the data of order.status_change.
type hookStatus struct {
	Order      hookOrder         `json:"order"`
	Before     cloud.OrderStatus `json:"before_status"`
	After      cloud.OrderStatus `json:"after_status"`
	BeforeName string            `json:"before_status_name"`
	AfterName  string            `json:"after_status_name"`
	Operation  int               `json:"operation_type"`
	Operator   OperatorBody      `json:"operator"`
	Reason     *string           `json:"reason"`
	RouteID    *int64            `json:"route_id"`
	Driver     *HookDriver       `json:"driver"`
	ChangedAt  *string           `json:"changed_at"`
}

func (t *eventWriter) statusChange(s step) (any, error) {
	driver, err := t.driver()
	return hookStatus{Order: t.order(), Before: s.before, After: s.after, BeforeName: s.before.String(), AfterName: s.after.String(), Operation: s.operation,
		Operator: t.actor(), Reason: cloud.OrNull(cmp.Or(s.reason, t.note(s.note))), RouteID: cloud.OrNull(t.d.Order.RouteID), Driver: driver, ChangedAt: t.stamp(t.d.Now)}, err
}

// hookLife is the data of the lifecycle events. Members behind Location are of
// some of them.
type hookLife struct {
	Order    hookOrder         `json:"order"`
	StatusID cloud.OrderStatus `json:"order_status_id"`
	Status   string            `json:"order_status"`
	Driver   *HookDriver       `json:"driver"`
	Previous *cloud.AccountID  `json:"previous_driver_id"`
	Source   string            `json:"source"` // manual, route, driver_app, staff, system
	Reason   *string           `json:"reason"`
	RouteID  *int64            `json:"route_id"`
	Location *struct{}         `json:"location"` // is not kept

	ETA       **string    `json:"eta,omitempty"` // there, and perhaps null
	Recipient **string    `json:"recipient_name,omitempty"`
	FollowUp  string      `json:"follow_up,omitempty"` // redelivery, reschedule, refused
	Proof     *[]hookFile `json:"proof_files_detail,omitempty"`
}

func (t *eventWriter) lifecycle(name string, s step) (any, error) {
	driver, err := t.driver()
	if err != nil {
		return nil, err
	}
	l := hookLife{Order: t.order(), StatusID: s.after, Status: s.after.String(), Driver: driver, Source: t.source(name), RouteID: cloud.OrNull(t.d.Order.RouteID)}
	if t.d.Was.DriverID != t.d.Order.DriverID {
		l.Previous = cloud.OrNull(t.d.Was.DriverID)
	}
	switch name {
	case liveDeclined: // whichever account declined
		if t.d.Was.DriverID != 0 {
			if l.Driver, err = t.driverOf(t.d.Was); err != nil {
				return nil, err
			}
			l.Previous = nil
		}
		l.Reason = cloud.OrNull(t.note(s.note))
	case liveUnassigned:
		l.Reason = cloud.OrNull(t.unassignReason(s))
	case liveFailed:
		l.Reason, l.FollowUp = cloud.OrNull(s.reason), t.followUp(s)
	case liveCancelled:
		l.Reason = cloud.OrNull(cmp.Or(t.d.Order.CancelReason, s.reason))
	default:
		l.Reason = cloud.OrNull(t.note(s.note))
	}
	switch name {
	case "out_for_delivery":
		eta := t.stamp(t.d.Order.ETA)
		l.ETA = &eta
	case "delivered":
		l.Recipient = new(*string) // is not kept
	}
	if code := s.after.State().Code; name == "picked_up" || name == "delivered" || name == liveFailed {
		files := t.files(func(f cloud.ProofFile) bool { return f.Event == code })
		l.Proof = &files
	}
	return l, nil
}

// unassignReason is why a driver no longer has the order.
func (t *eventWriter) unassignReason(s step) string {
	switch {
	case s.trigger == DriverDeclines:
		return "declined"
	case s.trigger == "" && t.d.Order.DriverID != 0:
		return "handover"
	}
	return "revoked"
}

// followUp is what comes after a delivery that failed: the driver comes again,
// someone has to plan it, or nothing.
func (t *eventWriter) followUp(s step) string {
	switch {
	case s.after == cloud.OrderRejected:
		return "refused"
	case s.trigger == DeliveryResult && t.d.Order.Status != cloud.OrderDeliveryRescheduled: // a driver who sets another day does so in the same decision
		return "redelivery"
	}
	return "reschedule"
}

// source is by whom or what an event of an order's life came about.
func (t *eventWriter) source(name string) string {
	c := t.d.Caller
	switch {
	case name == liveAssigned && t.d.Order.RouteID != 0:
		return "route"
	case c.Anonymous():
		return "system"
	case c.Account.Type == cloud.DriverAccount:
		return "driver_app"
	case name == liveAssigned || c.Account.Type == cloud.Customer || c.Account.Type == cloud.Broker:
		return "manual"
	}
	return "staff"
}
