package route

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/cloud/notice"
	"github.com/postern-io/postern/cloud/order"
)

// OrdersInput names orders for a route.
type OrdersInput struct {
	RouteID  cloud.RouteID   `path:"route_id" json:"-"`
	OrderIDs []cloud.OrderID `json:"order_ids" required:"true" min:"1" max:"500"`
}

// OrderError says why an order was left as it was.
type OrderError struct {
	OrderID cloud.OrderID `json:"order_id"`
	Code    string        `json:"code"`
	Message string        `json:"message"` // in the caller's language
}

// Outcome is what became of several orders.
type Outcome struct {
	Result  bool         `json:"result" doc:"Something was done, or nothing was wrong"`
	Skipped int          `json:"skipped" doc:"There was nothing to do for them"`
	Errors  []OrderError `json:"errors"`
}

// AddOutput is the answer to Add.
type AddOutput struct {
	Outcome
	Added int `json:"added"`
}

// RemoveOutput is the answer to Remove.
type RemoveOutput struct {
	Outcome
	Removed int `json:"removed"`
}

// Add puts orders on a route, after what is there, each in a transaction of its
// own; its driver has them with that. One that is on the route already is
// skipped. Errors: ROUTE_NOT_FOUND, ROUTE_STATUS_CONFLICT, VALIDATION_FAILED.
// Of single orders: ORDER_NOT_FOUND, HELD_BY_THIRD_PARTY, HELD_BY_CONTRACTOR,
// NOT_HELD_BY_CONTRACTOR, ALREADY_ON_ROUTE, STATUS_NOT_PLANNABLE.
func (s *Service) Add(ctx context.Context, c cloud.Caller, in OrdersInput) (AddOutput, error) {
	o, n, err := s.each(ctx, c, in, func(t *task, x *cloud.Route, id cloud.OrderID) (bool, error) {
		if x.Phase() == cloud.RouteInProgress { // or completed: its orders say
			orders, err := t.v.RouteOrders(x.BusinessID, x.ID)
			if err != nil {
				return false, err
			}
			if now := x.Status(stopsOf(x.ID, orders)); now == cloud.RouteCompleted {
				return false, routeConflict(now)
			}
		}
		o, err := t.r.order(t.v, id)
		if err != nil || o.RouteID == x.ID {
			return false, err
		}
		if err := addable(o, *x); err != nil {
			return false, err
		}
		return true, t.move(quiet(join(o, x))...)
	})
	return AddOutput{o, n}, err
}

// addable says why an order may not go on a route.
func addable(o cloud.Order, x cloud.Route) error {
	code := ""
	switch {
	case o.HeldByThirdParty() || !o.SelfDelivery:
		code = codeThirdParty
	case o.BrokerID != x.BrokerID && o.BrokerID != 0:
		code = codeContractor
	case o.BrokerID != x.BrokerID:
		code = codeNotHeld
	case o.RouteID != 0 && !slices.Contains(failed, o.Status):
		code = codeOnRoute
	case !slices.Contains(plannable, o.Status) && !slices.Contains(planned, o.Status):
		code = codeNotPlannable
	default:
		return nil
	}
	return cloud.E(cloud.Conflict, code)
}

// Remove takes orders off a route: those that no driver has set out for, and those
// that failed there. One that was there and has gone is skipped. Errors:
// ROUTE_NOT_FOUND, ROUTE_STATUS_CONFLICT, VALIDATION_FAILED. Of single orders:
// ORDER_NOT_FOUND, NOT_ON_ROUTE, ORDER_STATUS_CONFLICT.
func (s *Service) Remove(ctx context.Context, c cloud.Caller, in OrdersInput) (RemoveOutput, error) {
	o, n, err := s.each(ctx, c, in, func(t *task, x *cloud.Route, id cloud.OrderID) (bool, error) {
		o, err := t.r.order(t.v, id)
		if err != nil {
			return false, err
		}
		moves := free(o, *x)
		switch was := slices.ContainsFunc(o.Past, func(s cloud.RouteStop) bool { return s.RouteID == x.ID }); {
		case moves != nil:
			return true, t.move(quiet(moves)...)
		case o.RouteID == x.ID:
			return false, orderConflict(o)
		case was:
			return false, nil
		}
		return false, cloud.E(cloud.Conflict, codeNotOnRoute)
	})
	return RemoveOutput{o, n}, err
}

// each does something to orders of a route one after the other, and says of how
// many it was done. Errors of the route end it. The driver gets one push, with
// the last of them.
func (s *Service) each(ctx context.Context, c cloud.Caller, in OrdersInput, fn func(t *task, x *cloud.Route, id cloud.OrderID) (bool, error)) (Outcome, int, error) {
	out := Outcome{Errors: []OrderError{}}
	r, err := planner(c)
	if err != nil {
		return out, 0, err
	}
	if err := s.store.Look(ctx, func(v cloud.View) error { _, err := r.open(v, in.RouteID); return err }); err != nil {
		return out, 0, err
	}
	ids := unique(in.OrderIDs)
	n, told := 0, false
	for i, id := range ids {
		last := i == len(ids)-1
		done, err := s.once(ctx, c, r, in.RouteID, id, last, fn)
		var e *cloud.Error
		switch {
		case errors.As(err, &e) && e.Code != codeRoute && e.Code != codeRouteStatus:
			out.Errors = append(out.Errors, OrderError{OrderID: id, Code: e.Code, Message: locale.Error(c.Language, e.Code, e.Args...)})
		case err != nil:
			return out, n, err
		case done:
			n++
			told = last
		default:
			out.Skipped++
		}
	}
	out.Result = n > 0 || len(out.Errors) == 0
	if n > 0 && !told { // nothing came of the last one
		_, err := s.once(ctx, c, r, in.RouteID, 0, false, func(t *task, x *cloud.Route, _ cloud.OrderID) (bool, error) {
			err := t.push(notice.RouteUpdated, *x)
			return len(t.ch.Pushes) > 0, err
		})
		if e := (*cloud.Error)(nil); err != nil && !errors.As(err, &e) { // the end of a route that has ended meanwhile has reached its driver
			return out, n, err
		}
	}
	return out, n, nil
}

// unique leaves of ids that come several times the first.
func unique(ids []cloud.OrderID) (out []cloud.OrderID) {
	seen := map[cloud.OrderID]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id], out = true, append(out, id)
		}
	}
	return out
}

// open finds a route that is not cancelled.
func (r reach) open(v cloud.View, id cloud.RouteID) (cloud.Route, error) {
	x, err := r.route(v, id)
	if err == nil && x.Phase() == cloud.RouteCancelled {
		err = routeConflict(cloud.RouteCancelled)
	}
	return x, err
}

func (s *Service) once(ctx context.Context, c cloud.Caller, r reach, route cloud.RouteID, id cloud.OrderID, last bool,
	fn func(t *task, x *cloud.Route, id cloud.OrderID) (bool, error)) (done bool, err error) {
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		x, err := r.open(v, route)
		if err != nil {
			return nil, err
		}
		t := &task{s: s, v: v, c: c, r: r, now: now, ch: &cloud.Changes{}}
		if done, err = fn(t, &x, id); err != nil || !done {
			return nil, err
		}
		if last {
			if err := t.push(notice.RouteUpdated, x); err != nil {
				return nil, err
			}
		}
		x.UpdatedAt = now
		t.ch.Routes = append(t.ch.Routes, x)
		return t.ch, nil
	})
	return done, err
}

// AssignInput gives an order to a driver.
type AssignInput struct {
	OrderID  cloud.OrderID    `path:"order_id" json:"-"`
	DriverID *cloud.AccountID `json:"driver_id" doc:"null takes the order away from its driver, and off its route"`
}

// OrderOutput says how an order stands.
type OrderOutput struct {
	Result   bool              `json:"result"`
	OrderID  cloud.OrderID     `json:"order_id"`
	StatusID cloud.OrderStatus `json:"order_status_id"`
	Status   string            `json:"order_status"`
	RouteID  *cloud.RouteID    `json:"route_id"`
	DriverID *cloud.AccountID  `json:"driver_id"`
}

func output(o cloud.Order) OrderOutput {
	return OrderOutput{Result: true, OrderID: o.ID, StatusID: o.Status, Status: o.Status.String(), RouteID: cloud.OrNull(o.RouteID), DriverID: cloud.OrNull(o.DriverID)}
}

// Assign gives an order that is on no route to a driver, or takes a planned
// order away from its driver. The driver of an order on a route is the route's.
// Staff and contractors may. Errors: ORDER_NOT_FOUND, DRIVER_NOT_FOUND,
// DRIVER_NOT_AVAILABLE, ORDER_STATUS_CONFLICT, VALIDATION_FAILED for an order without a
// driver that is given none, and those of single orders of Add.
func (s *Service) Assign(ctx context.Context, c cloud.Caller, in AssignInput) (OrderOutput, error) {
	r, err := planner(c)
	if err != nil {
		return OrderOutput{}, err
	}
	return s.order(ctx, c, r, in.OrderID, func(t *task, o cloud.Order) ([]order.MoveInput, error) {
		if in.DriverID == nil {
			switch {
			case o.DriverID == 0: // there is none to take it from: it lacks its choice
				f := check.Fields{}
				f.Say("driver_id", check.MessageRequired)
				return nil, f.Err()
			case !slices.Contains(planned, o.Status):
				return nil, orderConflict(o)
			}
			return []order.MoveInput{step(o, o.Before, order.TakeOffRoute, opUnassigned, "", nil)}, nil
		}
		d, err := t.r.person(t.v, *in.DriverID)
		if err != nil {
			return nil, err
		}
		if o.DriverID == d.Account.ID && slices.Contains(planned, o.Status) {
			return nil, nil // as it is
		}
		if err := addable(o, cloud.Route{BrokerID: d.BrokerID}); err != nil {
			return nil, err
		}
		if d.Status() != cloud.DriverActive {
			return nil, cloud.E(cloud.Conflict, codeNotAvailable)
		}
		if slices.Contains(planned, o.Status) {
			return driverMoves(o, d.Account.ID, d.Account.Name, opAssigned, "", nil), nil
		}
		return []order.MoveInput{step(o, cloud.OrderDriverAssigned, order.AssignDriver, opAssigned, "", func(o *cloud.Order) {
			o.DriverID, o.DriverName = d.Account.ID, d.Account.Name
		})}, nil
	})
}

// order runs one decision about an order in the caller's reach and says how it
// stands then. fn may run more than once.
func (s *Service) order(ctx context.Context, c cloud.Caller, r reach, id cloud.OrderID, fn func(t *task, o cloud.Order) ([]order.MoveInput, error)) (out OrderOutput, err error) {
	now := s.time()
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		o, err := r.order(v, id)
		if err != nil {
			return nil, err
		}
		t := &task{s: s, v: v, c: c, r: r, now: now, ch: &cloud.Changes{}}
		moves, err := fn(t, o)
		if err != nil {
			return nil, err
		}
		if err := t.move(moves...); err != nil {
			return nil, err
		}
		if n := len(t.ch.Orders); n > 0 {
			o = t.ch.Orders[n-1]
		}
		out = output(o)
		return t.ch, nil
	})
	return out, err
}
