package route

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/order"
)

// Operation types (interface 4.5).
const (
	opAccepted, opDeclined                      = 2001, 2002
	opPickupStarted, opPickupDone, opPickupFail = 2003, 2004, 2005
	opStarted, opDelivered, opFailed            = 2006, 2007, 2008
	opReady                                     = 2009
	opDutyOn, opDutyOff                         = 2011, 2012
	opAdded, opRemoved                          = 3010, 3011
	opAssigned, opUnassigned                    = 3012, 3013
)

type statuses = []cloud.OrderStatus

var (
	planned = statuses{cloud.OrderRoutePlanned, cloud.OrderDriverAssigned, cloud.OrderDriverAccepted}
	// plannable orders may be put on a route.
	plannable = statuses{cloud.OrderNew, cloud.OrderReady, cloud.OrderPickupFailed, cloud.OrderPickupRescheduled, cloud.OrderReceived, cloud.OrderArrivalScan,
		cloud.OrderDeliveryFailed, cloud.OrderDeliveryRescheduled}
	// failed orders stay on their route until they are planned again.
	failed = statuses{cloud.OrderPickupFailed, cloud.OrderDeliveryFailed}
)

// step is a move of an order.
func step(o cloud.Order, to cloud.OrderStatus, by order.Trigger, operation int, note string, set func(*cloud.Order)) order.MoveInput {
	return order.MoveInput{BusinessID: o.BusinessID, OrderID: o.ID, To: to, Trigger: by, Operation: operation, Note: note, Set: set}
}

// quiet are moves that the driver gets with the whole route.
func quiet(list []order.MoveInput) []order.MoveInput {
	for i := range list {
		list[i].Quiet = true
	}
	return list
}

// driverMoves are the moves by which a planned order comes to a driver, or with 0 away
// from the one that it has. set is what is put into it besides.
func driverMoves(o cloud.Order, driver cloud.AccountID, name string, operation int, note string, set func(*cloud.Order)) []order.MoveInput {
	all := func(o *cloud.Order) {
		if set != nil {
			set(o)
		}
		o.DriverID, o.DriverName = driver, name
	}
	switch {
	case driver == o.DriverID || driver != 0 && o.Status == cloud.OrderDriverAssigned:
		return []order.MoveInput{step(o, 0, "", operation, note, all)}
	case driver == 0 && o.Status == cloud.OrderRoutePlanned:
		return []order.MoveInput{step(o, 0, "", operation, note, all)}
	case driver == 0: // the table knows no way back but out of planning
		return []order.MoveInput{step(o, o.Before, order.TakeOffRoute, operation, note, nil), step(o, cloud.OrderRoutePlanned, order.PutOnRoute, opAdded, note, all)}
	case o.Status == cloud.OrderDriverAccepted:
		return []order.MoveInput{step(o, cloud.OrderDriverAssigned, order.DriverDeclines, operation, note, all)}
	}
	return []order.MoveInput{step(o, cloud.OrderDriverAssigned, order.AssignDriver, operation, note, all)}
}

// assignStop is what puts an order onto a route at its next stops.
func assignStop(x *cloud.Route, o cloud.Order) func(*cloud.Order) {
	stop, second := x.LastStop+1, 0
	x.LastStop++
	if o.Type == cloud.PointToPoint && !o.Collected {
		second = stop + 1
		x.LastStop++
	}
	id := x.ID
	return func(o *cloud.Order) { o.RouteID, o.Stop, o.SecondStop = id, stop, second }
}

// join are the moves that put an order on a route and give it to its driver.
func join(o cloud.Order, x *cloud.Route) []order.MoveInput {
	set := assignStop(x, o)
	if slices.Contains(planned, o.Status) { // planned, but on no route
		return driverMoves(o, x.DriverID, x.DriverName, opAdded, note(*x), set)
	}
	moves := []order.MoveInput{step(o, cloud.OrderRoutePlanned, order.PutOnRoute, opAdded, note(*x), set)}
	if x.DriverID != 0 {
		o.Status, o.DriverID = cloud.OrderRoutePlanned, 0
		moves = append(moves, driverMoves(o, x.DriverID, x.DriverName, opAssigned, note(*x), nil)...)
	}
	return moves
}

// pass are the moves that give what is planned on a route to its present driver.
// An order that is stopped comes back to that one too.
func pass(o cloud.Order, x cloud.Route) []order.MoveInput {
	op := opAssigned
	if x.DriverID == 0 {
		op = opUnassigned
	}
	if p := o.Paused; p != nil && p.RouteID == x.ID {
		return []order.MoveInput{step(o, 0, "", op, note(x), func(o *cloud.Order) {
			p := *o.Paused
			p.DriverID, p.DriverName = x.DriverID, x.DriverName
			o.Paused = &p
		})}
	}
	if o.RouteID != x.ID || !slices.Contains(planned, o.Status) || o.DriverID == x.DriverID {
		return nil
	}
	stop, second := o.Stop, o.SecondStop
	return driverMoves(o, x.DriverID, x.DriverName, op, note(x), func(o *cloud.Order) { o.RouteID, o.Stop, o.SecondStop = x.ID, stop, second })
}

// free are the moves that take an order off a route, none when it is not there
// or cannot leave.
func free(o cloud.Order, x cloud.Route) []order.MoveInput {
	switch {
	case o.Paused != nil && o.Paused.RouteID == x.ID:
		return []order.MoveInput{step(o, 0, "", opRemoved, note(x), func(o *cloud.Order) { o.Paused = nil })}
	case o.RouteID != x.ID:
	case slices.Contains(planned, o.Status):
		return []order.MoveInput{step(o, o.Before, order.TakeOffRoute, opRemoved, note(x), nil)}
	case slices.Contains(failed, o.Status):
		return []order.MoveInput{step(o, 0, "", opRemoved, note(x), func(o *cloud.Order) { o.Leave(o.Status, cloud.StopSkipped) })}
	}
	return nil
}
