package route

import (
	"context"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/notice"
	"github.com/postern-io/postern/cloud/order"
)

// RouteInput makes or changes a route. Members that are absent stay as they
// are.
type RouteInput struct {
	Name        *string          `json:"name" max:"100" line:"true"`
	Date        *string          `json:"date" format:"date" doc:"Required of a new one; in the business's time zone"`
	DriverID    *cloud.AccountID `json:"driver_id" doc:"0 takes the driver off"`
	VehicleID   *int64           `json:"vehicle_id" min:"0"`
	VehicleName *string          `json:"vehicle_name" max:"100" line:"true"`
	StartAt     *string          `json:"start_at" format:"date-time" doc:"Empty: not planned"`
	EndAt       *string          `json:"end_at" format:"date-time" doc:"Empty: not planned"`
}

// CreateInput makes a route.
type CreateInput struct {
	RouteInput
	BrokerID *cloud.AccountID `json:"broker_id" doc:"The contractor whose route it is; contractors make their own"`
}

// put checks an input and puts it into a route, but for the driver.
func (in RouteInput) put(r *cloud.Route, zone *time.Location) error {
	f := check.Fields{}
	set(&r.Name, in.Name)
	set(&r.VehicleName, in.VehicleName)
	set(&r.Date, in.Date)
	set(&r.VehicleID, in.VehicleID)
	if r.Date == "" {
		f.Say("date", check.MessageRequired)
	}
	if in.StartAt != nil {
		r.StartAt = check.Moment(*in.StartAt, zone).Truncate(time.Millisecond)
	}
	if in.EndAt != nil {
		r.EndAt = check.Moment(*in.EndAt, zone).Truncate(time.Millisecond)
	}
	if !r.StartAt.IsZero() && !r.EndAt.IsZero() && !r.EndAt.After(r.StartAt) {
		f.Add("end_at", "The end must be after the start.")
	}
	return f.Err()
}

// set sets what was given.
func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// Create makes a route without orders. Staff and contractors may. Errors:
// VALIDATION_FAILED, DRIVER_NOT_FOUND, DRIVER_NOT_AVAILABLE.
func (s *Service) Create(ctx context.Context, c cloud.Caller, in CreateInput) (out RouteOutput, err error) {
	r, err := planner(c)
	if err != nil {
		return out, err
	}
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(r.business)
		if err != nil {
			return nil, err
		}
		x := cloud.Route{BusinessID: b.ID, BrokerID: r.broker, CreatedAt: now, UpdatedAt: now}
		if err := in.put(&x, b.Location()); err != nil {
			return nil, err
		}
		if in.BrokerID != nil && *in.BrokerID != 0 && *in.BrokerID != r.broker {
			if err := r.contractor(v, *in.BrokerID); err != nil {
				return nil, err
			}
			x.BrokerID = *in.BrokerID
		}
		if in.DriverID != nil && *in.DriverID != 0 {
			d, err := r.fit(v, *in.DriverID, x.BrokerID)
			if err != nil {
				return nil, err
			}
			x.DriverID, x.DriverName = d.Account.ID, d.Account.Name
		}
		if x.ID, err = v.NewID(cloud.RouteIDs); err != nil {
			return nil, err
		}
		out = RouteOutput{Result: true, Route: show(x, nil, b.Location())}
		return &cloud.Changes{RouteChanges: cloud.RouteChanges{Routes: []cloud.Route{x}}, AuditChanges: cloud.AuditChanges{Audits: audit(c, now, "route_made", "route", x.ID, "{}")}, Answer: out}, nil
	})
	return out, err
}

// contractor checks that an account is a contractor of the business whom the
// caller may name.
func (r reach) contractor(v cloud.View, id cloud.AccountID) error {
	a, err := v.Account(id)
	if err != nil || a.BusinessID != r.business || a.Type != cloud.Broker || r.broker != 0 && id != r.broker {
		f := check.Fields{}
		f.Add("broker_id", "This is no contractor of the business.")
		return f.Err()
	}
	return nil
}

// fit finds a driver who can be given what a contractor (0: the business)
// plans.
func (r reach) fit(v cloud.View, id, broker cloud.AccountID) (cloud.Driver, error) {
	d, err := r.person(v, id)
	if err == nil && (d.Status() != cloud.DriverActive || d.BrokerID != broker) {
		err = cloud.E(cloud.Conflict, codeNotAvailable)
	}
	return d, err
}

// change runs one decision about a route that the caller may see, stores the
// route and what fn adds, and shows what it is then. fn may run more than once.
func (s *Service) change(ctx context.Context, c cloud.Caller, id cloud.RouteID, action string, fn func(x *cloud.Route, t *task) error) (RouteOutput, error) {
	r, err := planner(c)
	if err != nil {
		return RouteOutput{}, err
	}
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := r.route(v, id)
		if err != nil {
			return nil, err
		}
		t := &task{s: s, v: v, c: c, r: r, now: now, ch: &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: audit(c, now, action, "route", id, "{}")}}}
		if err := fn(&x, t); err != nil {
			return nil, err
		}
		x.UpdatedAt = now
		t.ch.Routes = append(t.ch.Routes, x)
		return t.ch, nil
	})
	if err != nil {
		return RouteOutput{}, err
	}
	return s.Find(ctx, c, ByRoute{id})
}

// task is one decision.
type task struct {
	s   *Service
	v   cloud.View
	c   cloud.Caller
	r   reach
	now time.Time
	ch  *cloud.Changes
}

// move moves orders.
func (t *task) move(list ...order.MoveInput) error {
	ch, err := t.s.orders.Steps(t.v, t.c, list...)
	if err == nil {
		t.ch.Join(ch)
	}
	return err
}

// EditInput changes a route.
type EditInput struct {
	RouteID cloud.RouteID `path:"route_id" json:"-"`
	RouteInput
}

// Edit changes a route that has not started; of one that has, its name and what
// is known of the vehicle. Another driver takes over what is planned. Errors:
// ROUTE_NOT_FOUND, ROUTE_STATUS_CONFLICT, DRIVER_NOT_FOUND,
// DRIVER_NOT_AVAILABLE, VALIDATION_FAILED.
func (s *Service) Edit(ctx context.Context, c cloud.Caller, in EditInput) (RouteOutput, error) {
	return s.change(ctx, c, in.RouteID, "route_changed", func(x *cloud.Route, t *task) error {
		b, err := t.v.Business(x.BusinessID)
		if err != nil {
			return err
		}
		if err := in.put(x, b.Location()); err != nil {
			return err
		}
		driver := in.DriverID != nil && *in.DriverID != x.DriverID
		phase := x.Phase()
		if phase == cloud.RouteCancelled || phase == cloud.RouteInProgress && (driver || in.Date != nil || in.StartAt != nil) ||
			phase == cloud.RouteDispatched && driver && *in.DriverID == 0 {
			return routeConflict(phase)
		}
		if !driver {
			return t.push(notice.RouteUpdated, *x)
		}
		return t.hand(x, *in.DriverID)
	})
}

// hand gives a route and what is planned on it to another driver, 0 to none.
func (t *task) hand(x *cloud.Route, to cloud.AccountID) error {
	if err := t.push(notice.RouteCancelled, *x); err != nil {
		return err
	}
	x.DriverID, x.DriverName = 0, ""
	if to != 0 {
		d, err := t.r.fit(t.v, to, x.BrokerID)
		if err != nil {
			return err
		}
		x.DriverID, x.DriverName = d.Account.ID, d.Account.Name
	}
	orders, err := t.v.RouteOrders(x.BusinessID, x.ID)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := t.move(quiet(pass(o, *x))...); err != nil {
			return err
		}
	}
	return t.push(notice.RouteAssigned, *x)
}

// push tells the driver of a route, if there is one who got a push about it before
// or gets one now.
func (t *task) push(kind string, x cloud.Route) error {
	if x.DriverID == 0 || x.DriverID == t.c.Account.ID || x.DispatchedAt.IsZero() {
		return nil
	}
	list, err := notice.OfRoute(t.v, t.now, kind, x.DriverID, x)
	t.ch.Pushes = append(t.ch.Pushes, list...)
	return err
}

// Dispatch tells the driver of a route. Errors: ROUTE_NOT_FOUND,
// ROUTE_STATUS_CONFLICT of one that has no orders or was dispatched,
// DRIVER_REQUIRED.
func (s *Service) Dispatch(ctx context.Context, c cloud.Caller, in ByRoute) (RouteOutput, error) {
	return s.change(ctx, c, in.RouteID, "route_dispatched", func(x *cloud.Route, t *task) error {
		orders, err := t.v.RouteOrders(x.BusinessID, x.ID)
		if err != nil {
			return err
		}
		if now := x.Status(stopsOf(x.ID, orders)); now != cloud.RoutePlanned {
			return routeConflict(now)
		}
		if x.DriverID == 0 {
			return cloud.E(cloud.Conflict, codeNeedsDriver)
		}
		x.DispatchedAt = t.now
		return t.push(notice.RouteAssigned, *x)
	})
}

// Cancel ends a route that has not started; its orders can be planned again.
// Errors: ROUTE_NOT_FOUND, ROUTE_STATUS_CONFLICT.
func (s *Service) Cancel(ctx context.Context, c cloud.Caller, in ByRoute) (RouteOutput, error) {
	return s.change(ctx, c, in.RouteID, "route_cancelled", func(x *cloud.Route, t *task) error {
		orders, err := t.v.RouteOrders(x.BusinessID, x.ID)
		if err != nil {
			return err
		}
		if phase := x.Phase(); phase == cloud.RouteInProgress || phase == cloud.RouteCancelled {
			return routeConflict(x.Status(stopsOf(x.ID, orders)))
		}
		for _, o := range orders {
			if err := t.move(quiet(free(o, *x))...); err != nil {
				return err
			}
		}
		x.CancelledAt = t.now
		return t.push(notice.RouteCancelled, *x)
	})
}

func note(x cloud.Route) string { return fmt.Sprintf("route %d", x.ID) }
