package route

import (
	"cmp"
	"context"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// ListInput asks for a page of routes. Fields that are not given do not filter.
type ListInput struct {
	Date     string            `query:"date" json:"date" format:"date" graphql:"Date"`
	DateFrom string            `query:"date_from" json:"date_from" format:"date" graphql:"Date"`
	DateTo   string            `query:"date_to" json:"date_to" format:"date" graphql:"Date" doc:"Included"`
	Status   cloud.RouteStatus `query:"status" json:"status" enum:"draft,planned,dispatched,in_progress,completed,cancelled"`
	DriverID cloud.AccountID   `query:"driver_id" json:"driver_id"`
	BrokerID cloud.AccountID   `query:"broker_id" json:"broker_id"`
	RoutePage
}

// ListOutput is a page of routes.
type ListOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Routes []RouteBody `json:"routes" graphql:"!"`
}

func (in *ListInput) filter(r reach) (q cloud.RouteFilter, err error) {
	q = cloud.RouteFilter{BusinessID: r.business, BrokerID: in.BrokerID, DriverID: in.DriverID, DateFrom: in.DateFrom, DateTo: in.DateTo, Status: in.Status}
	if in.Date != "" {
		q.DateFrom, q.DateTo = max(in.Date, in.DateFrom), in.Date
		if in.DateTo != "" {
			q.DateTo = min(in.Date, in.DateTo)
		}
	}
	q.Page, err = in.Part(*in, cmp.Or(in.Sort, "-id"))
	return q, err
}

// List shows a page of the routes that the caller may see. Error:
// VALIDATION_FAILED.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	r, err := reachOf(c)
	if err != nil {
		return ListOutput{}, err
	}
	q, err := in.filter(r)
	if err != nil {
		return ListOutput{}, err
	}
	out := ListOutput{Result: true, PageOutput: in.Output(in, cloud.Listed{}), Routes: []RouteBody{}}
	if r.broker != 0 && q.BrokerID != 0 && q.BrokerID != r.broker || r.driver != 0 && q.DriverID != 0 && q.DriverID != r.driver {
		return out, nil
	}
	if r.broker != 0 {
		q.BrokerID = r.broker
	}
	if r.driver != 0 {
		q.DriverID = r.driver
	}
	return out, s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(q.BusinessID)
		if err != nil {
			return err
		}
		found, listed, err := v.Routes(q)
		if err != nil {
			return err
		}
		out.PageOutput = in.Output(in, listed)
		for _, x := range found {
			orders, err := v.RouteOrders(q.BusinessID, x.ID)
			if err != nil {
				return err
			}
			out.Routes = append(out.Routes, show(x, orders, b.Location()))
		}
		return nil
	})
}

// ByRoute names a route.
type ByRoute struct {
	RouteID cloud.RouteID `path:"route_id" json:"-"`
}

// RouteOutput shows a route.
type RouteOutput struct {
	Result bool      `json:"result"`
	Route  RouteBody `json:"route"`
}

// Find shows a route. Error: ROUTE_NOT_FOUND.
func (s *Service) Find(ctx context.Context, c cloud.Caller, in ByRoute) (out RouteOutput, err error) {
	r, err := reachOf(c)
	if err != nil {
		return out, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		x, err := r.route(v, in.RouteID)
		if err != nil {
			return err
		}
		out.Result = true
		out.Route, err = showRoute(v, x)
		return err
	})
	return out, err
}

// showRoute is a route as it is stored, or as a decision leaves it whose orders are
// as they were.
func showRoute(v cloud.View, x cloud.Route) (RouteBody, error) {
	b, err := v.Business(x.BusinessID)
	if err != nil {
		return RouteBody{}, err
	}
	orders, err := v.RouteOrders(x.BusinessID, x.ID)
	return show(x, orders, b.Location()), err
}

// DriverRoutesInput asks for the routes of one driver.
type DriverRoutesInput struct {
	DriverID cloud.AccountID `path:"driver_id" json:"-"`
	Date     string          `query:"date" json:"date" format:"date"`
	RoutePage
}

// DriverRoutes shows a driver's routes. Errors: DRIVER_NOT_FOUND,
// VALIDATION_FAILED.
func (s *Service) DriverRoutes(ctx context.Context, c cloud.Caller, in DriverRoutesInput) (ListOutput, error) {
	r, err := planner(c)
	if err != nil {
		return ListOutput{}, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error { _, err := r.person(v, in.DriverID); return err })
	if err != nil {
		return ListOutput{}, err
	}
	return s.List(ctx, c, ListInput{Date: in.Date, DriverID: in.DriverID, RoutePage: in.RoutePage})
}

// MineInput asks for the caller's routes.
type MineInput struct {
	Date string `query:"date" json:"date" format:"date"`
	RoutePage
}

// Mine shows the routes of the driver who calls. Error: VALIDATION_FAILED.
func (s *Service) Mine(ctx context.Context, c cloud.Caller, in MineInput) (ListOutput, error) {
	if _, err := driver(c); err != nil {
		return ListOutput{}, err
	}
	return s.List(ctx, c, ListInput{Date: in.Date, RoutePage: in.RoutePage})
}
