package order

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// ExceptionsInput asks for orders that need attention. Days are those of the
// business; of what stopped the day when it did, of the rest the scheduled one.
type ExceptionsInput struct {
	Types      []string        `query:"types" json:"types" item_enum:"delivery_failed,pickup_failed,overdue,unassigned,intercepted,on_hold" doc:"All when absent"`
	DateFrom   string          `query:"date_from" json:"date_from" format:"date" doc:"Seven days ago when absent"`
	DateTo     string          `query:"date_to" json:"date_to" format:"date" doc:"Included; today when absent"`
	CustomerID cloud.AccountID `query:"customer_id" json:"customer_id"`
	check.Keyset
}

// ExceptionsOutput is a page of orders that need attention: first those that
// stopped, then those whose day is over, then those of today without a driver;
// the newest first.
type ExceptionsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Exceptions []ExceptionBody `json:"exceptions"`
}

// ExceptionBody is why one order needs attention. An order has one.
type ExceptionBody struct {
	Type     string            `json:"type"`
	OrderID  cloud.OrderID     `json:"order_id"`
	Ref      *string           `json:"order_ref"`
	Number   string            `json:"tracking_number"`
	StatusID cloud.OrderStatus `json:"order_status_id"`
	Since    *string           `json:"since"`
	Reason   *string           `json:"reason" doc:"An incident reason of OTEP, or what people wrote about a hold or an interception"`
	Actions  []string          `json:"suggested_actions" doc:"Names of agent tools"`
}

// Types of exceptions.
const (
	deliveryFailed = "delivery_failed"
	pickupFailed   = "pickup_failed"
	overdue        = "overdue"
	unassigned     = "unassigned"
	intercepted    = "intercepted"
	onHold         = "on_hold"
)

var exceptionTypes = []string{deliveryFailed, pickupFailed, overdue, unassigned, intercepted, onHold}

// stoppedBy is the exception of a status that an order stopped in.
var stoppedBy = map[cloud.OrderStatus]string{cloud.OrderHold: onHold, cloud.OrderPickupFailed: pickupFailed, cloud.OrderPartlyDelivered: deliveryFailed,
	cloud.OrderDeliveryFailed: deliveryFailed, cloud.OrderRejected: deliveryFailed, cloud.OrderIntercepted: intercepted}

// suggested are tools that help staff with an exception.
var suggested = map[string][]string{
	deliveryFailed: {"get_operation_events", "update_time_window_by_refs", "cancel_order"},
	pickupFailed:   {"get_operation_events", "update_time_window_by_refs", "reroute_to_address", "cancel_order"},
	overdue:        {"get_order_detail", "update_time_window_by_refs"},
	unassigned:     {"get_drivers", "get_routes"},
	intercepted:    {"get_order_detail", "get_operation_events"},
	onHold:         {"release_order", "cancel_order"},
}

// look is what every caller can do about an order, and staff about one that has
// ended.
var look = []string{"get_order_detail"}

// query checks the input and makes the query of it.
func (in *ExceptionsInput) query(r reach, now time.Time) (cloud.ConcernQuery, error) {
	f := newFields()
	if len(in.Types) == 0 {
		in.Types = exceptionTypes
	}
	today := now.Format(time.DateOnly)
	from, to := day(in.DateFrom, now.AddDate(0, 0, -7)), day(in.DateTo, now)
	if from.After(to) {
		f.Add("date_to", "The last day must not be before the first.")
	}
	first, last := from.Format(time.DateOnly), to.Format(time.DateOnly)
	q := cloud.ConcernQuery{BusinessID: r.business, CustomerID: in.CustomerID, BrokerID: r.broker, From: from, To: to.AddDate(0, 0, 1)}
	if r.customer != 0 {
		q.CustomerID = r.customer
	}
	for _, s := range cloud.StoppedStatuses {
		if slices.Contains(in.Types, stoppedBy[s]) {
			q.Stopped = append(q.Stopped, s)
		}
	}
	if due := min(last, now.AddDate(0, 0, -1).Format(time.DateOnly)); slices.Contains(in.Types, overdue) && first <= due {
		q.DueFrom, q.DueTo = first, due
	}
	if slices.Contains(in.Types, unassigned) && first <= today && today <= last {
		q.UnassignedOn = today
	}
	if err := f.Err(); err != nil {
		return q, err
	}
	var err error
	q.Page, err = in.Part(*in, "")
	return q, err
}

// day is the beginning of a day in the zone of usual, which is its value when s
// is empty.
func day(s string, usual time.Time) time.Time {
	if s == "" {
		s = usual.Format(time.DateOnly)
	}
	return check.Moment(s, usual.Location()).In(usual.Location())
}

// Exceptions shows a page of the orders that need attention, as far as the caller
// may see them. Error: VALIDATION_FAILED.
func (s *Service) Exceptions(ctx context.Context, c cloud.Caller, in ExceptionsInput) (ExceptionsOutput, error) {
	r, err := reachOf(c)
	if err != nil {
		return ExceptionsOutput{}, err
	}
	if r.driver != 0 {
		return ExceptionsOutput{}, cloud.E(cloud.Forbidden, CodeType)
	}
	var q cloud.ConcernQuery
	var now time.Time
	err = s.store.Look(ctx, func(v cloud.View) error {
		zone, err := s.shower(v, c).zone(r.business)
		if err != nil {
			return err
		}
		now = s.time().In(zone)
		q, err = in.query(r, now)
		return err
	})
	if err != nil {
		return ExceptionsOutput{}, err
	}
	out := ExceptionsOutput{Result: true, PageOutput: in.Output(in, cloud.Listed{}), Exceptions: []ExceptionBody{}}
	if r.nothing || r.customer != 0 && in.CustomerID != 0 && in.CustomerID != r.customer {
		return out, nil
	}
	listed, found, err := s.store.ListConcerns(ctx, q)
	if err != nil {
		return ExceptionsOutput{}, err
	}
	out.PageOutput = in.Output(in, listed)
	for _, o := range found {
		b, err := (exceptionReader{s}).exception(ctx, c, o, now)
		if err != nil {
			return ExceptionsOutput{}, err
		}
		out.Exceptions = append(out.Exceptions, b)
	}
	return out, nil
}

// exceptionReader finds out why orders need attention.
type exceptionReader struct{ *Service }

// exception says why an order needs attention.
func (s exceptionReader) exception(ctx context.Context, c cloud.Caller, o cloud.Order, now time.Time) (b ExceptionBody, err error) {
	b = ExceptionBody{Type: stoppedBy[o.Status], OrderID: o.ID, Ref: cloud.OrNull(o.Ref), Number: o.Number, StatusID: o.Status, Actions: look}
	switch day, _ := time.ParseInLocation(time.DateOnly, o.ScheduledDate, now.Location()); {
	case b.Type != "":
		b.Since = cloud.Stamp(o.Since(), now.Location())
		reason, err := s.reason(ctx, c, o)
		if err != nil {
			return b, err
		}
		b.Reason = cloud.OrNull(reason)
	case o.ScheduledDate < now.Format(time.DateOnly):
		b.Type, b.Since = overdue, cloud.Stamp(day.AddDate(0, 0, 1), now.Location())
	default:
		b.Type, b.Since = unassigned, cloud.Stamp(day, now.Location())
	}
	if RequireStaff(c) == nil && !o.Status.State().Terminal {
		b.Actions = suggested[b.Type]
	}
	return b, nil
}

// reason is why an order stopped, "" when no reason was given. Only staff are shown what
// people wrote.
func (s exceptionReader) reason(ctx context.Context, c cloud.Caller, o cloud.Order) (reason string, err error) {
	if o.Status == cloud.OrderHold || o.Status == cloud.OrderIntercepted {
		if RequireStaff(c) != nil {
			return "", nil
		}
		if o.Status == cloud.OrderHold {
			return s.holdNote(ctx, o)
		}
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		d := s.begin(v, c, s.time(), o)
		if o.Status == cloud.OrderIntercepted {
			stop, err := d.Interception()
			if err == nil && stop != nil {
				reason = stop.Reason
			}
			return err
		}
		l, err := d.Timeline()
		if err != nil {
			return err
		}
		if events := l.fold(0).Events; len(events) > 0 {
			reason = events[len(events)-1].IncidentReason
		}
		return nil
	})
	return reason, err
}

// holdNote is what was written when the order was put on hold.
func (s exceptionReader) holdNote(ctx context.Context, o cloud.Order) (string, error) {
	all, err := s.store.ListOrderOperations(ctx, o.BusinessID, o.ID)
	if err != nil {
		return "", err
	}
	for _, x := range slices.Backward(all) {
		if x.After == cloud.OrderHold && x.Before != cloud.OrderHold {
			return strings.TrimSpace(x.Note), nil
		}
	}
	return "", nil
}
