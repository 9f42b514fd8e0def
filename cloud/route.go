package cloud

import (
	"slices"
	"time"
)

// Route is one run of a driver. Its stops are kept in the orders: an order
// names its route and its places there, and remembers those of routes that it
// has left. How far the route has come follows from its orders (Status).
type Route struct {
	ID          RouteID    `json:"ID"`
	BusinessID  BusinessID `json:"BusinessID"`
	BrokerID    AccountID  `json:"BrokerID"` // the contractor whose route it is; 0: the business's
	Name        string     `json:"Name"`
	Date        string     `json:"Date"` // YYYY-MM-DD in the business's time zone
	DriverID    AccountID  `json:"DriverID"`
	DriverName  string     `json:"DriverName"`
	VehicleID   int64      `json:"VehicleID"`
	VehicleName string     `json:"VehicleName"`
	StartAt     time.Time  `json:"StartAt"`  // planned
	EndAt       time.Time  `json:"EndAt"`    // planned
	LastStop    int        `json:"LastStop"` // the highest number that a stop of it was given

	CreatedAt    time.Time `json:"CreatedAt"`
	UpdatedAt    time.Time `json:"UpdatedAt"`
	DispatchedAt time.Time `json:"DispatchedAt"`
	StartedAt    time.Time `json:"StartedAt"`
	CancelledAt  time.Time `json:"CancelledAt"`
}

// RouteStatus is how far a route has come.
type RouteStatus string

// Statuses of a route.
const (
	RouteDraft      RouteStatus = "draft"       // nothing on it yet
	RoutePlanned    RouteStatus = "planned"     // with stops
	RouteDispatched RouteStatus = "dispatched"  // its driver has it
	RouteInProgress RouteStatus = "in_progress" // its driver has started
	RouteCompleted  RouteStatus = "completed"   // every stop has ended
	RouteCancelled  RouteStatus = "cancelled"
)

// RouteStatuses are all of them, in the order in which a route goes through
// them.
var RouteStatuses = []RouteStatus{RouteDraft, RoutePlanned, RouteDispatched, RouteInProgress, RouteCompleted, RouteCancelled}

// Phase is the part of the status that the route itself decides: planned (or
// draft), dispatched, in_progress (or completed), cancelled.
func (r Route) Phase() RouteStatus {
	switch {
	case !r.CancelledAt.IsZero():
		return RouteCancelled
	case !r.StartedAt.IsZero():
		return RouteInProgress
	case !r.DispatchedAt.IsZero():
		return RouteDispatched
	}
	return RoutePlanned
}

// Status is the route's status with these stops.
func (r Route) Status(stops []RouteStop) RouteStatus {
	phase := r.Phase()
	switch {
	case phase == RoutePlanned && len(stops) == 0:
		return RouteDraft
	case phase == RouteInProgress && !slices.ContainsFunc(stops, func(s RouteStop) bool { return s.State == StopPending }):
		return RouteCompleted
	}
	return phase
}

// RouteStop is one place of an order on a route.
type RouteStop struct {
	RouteID  RouteID   `json:"RouteID"`
	Sequence int       `json:"Sequence"` // from 1
	Kind     StopKind  `json:"Kind"`
	State    StopState `json:"State"`
}

// StopKind is what is done at a stop.
type StopKind string

// Kinds of stops.
const (
	PickupStop   StopKind = "pickup"
	DeliveryStop StopKind = "delivery"
)

// StopState is what has come of a stop.
type StopState string

// States of stops.
const (
	StopPending StopState = "pending"
	StopDone    StopState = "done"
	StopFailed  StopState = "failed"
	StopSkipped StopState = "skipped" // the order went another way
)

// PausedRoute is the place on a route, and the driver, that an order comes back
// to when it is intercepted no more.
type PausedRoute struct {
	RouteID    RouteID   `json:"RouteID"`
	Stop       int       `json:"Stop"`
	SecondStop int       `json:"SecondStop"`
	DriverID   AccountID `json:"DriverID"`
	DriverName string    `json:"DriverName"`
}

// pickupStates and deliveryStates say what has come of a stop of an order that
// is on a route, by the order's status. In any other status an order is on no
// route.
var (
	pickupStates = map[OrderStatus]StopState{
		OrderRoutePlanned: StopPending, OrderDriverAssigned: StopPending, OrderDriverAccepted: StopPending, OrderOutForPickup: StopPending,
		OrderPickupFailed: StopFailed, OrderPickedUp: StopDone, OrderOutForDelivery: StopDone, OrderPartlyDelivered: StopDone, OrderDeliveryFailed: StopDone,
		OrderDelivered: StopDone, OrderRejected: StopDone,
	}
	deliveryStates = map[OrderStatus]StopState{
		OrderRoutePlanned: StopPending, OrderDriverAssigned: StopPending, OrderDriverAccepted: StopPending, OrderOutForPickup: StopPending,
		OrderPickupFailed: StopSkipped, OrderPickedUp: StopPending, OrderOutForDelivery: StopPending, OrderPartlyDelivered: StopFailed, OrderDeliveryFailed: StopFailed,
		OrderDelivered: StopDone, OrderRejected: StopFailed,
	}
)

// Rides reports whether an order in this status may be on a route or with a
// driver.
func (s OrderStatus) Rides() bool { return pickupStates[s] != "" }

// Stops are the order's places on routes: first what was kept of those that it
// has left, then those on the one that it is on.
func (o Order) Stops() []RouteStop {
	return append(slices.Clone(o.Past), o.present(o.Status)...)
}

// present are the stops on the order's route as of a status.
func (o Order) present(s OrderStatus) []RouteStop {
	switch {
	case o.RouteID == 0:
		return nil
	case o.SecondStop != 0:
		return []RouteStop{{o.RouteID, o.Stop, PickupStop, pickupStates[s]}, {o.RouteID, o.SecondStop, DeliveryStop, deliveryStates[s]}}
	case o.Type == PickupOrder:
		return []RouteStop{{o.RouteID, o.Stop, PickupStop, pickupStates[s]}}
	}
	return []RouteStop{{o.RouteID, o.Stop, DeliveryStop, deliveryStates[s]}}
}

// TakeOff takes the order off its route and away from its driver, as if it had
// never been there.
func (o *Order) TakeOff() {
	o.RouteID, o.Stop, o.SecondStop, o.DriverID, o.DriverName, o.ETA = 0, 0, 0, 0, "", time.Time{}
}

// Leave takes the order off its route and away from its driver, in whose hands
// it was in status s. The results of its stops are kept; open stops become
// rest.
func (o *Order) Leave(s OrderStatus, rest StopState) {
	for _, stop := range o.present(s) {
		if stop.State == StopPending || stop.State == "" {
			stop.State = rest
		}
		o.Past = append(slices.Clip(o.Past), stop)
	}
	o.TakeOff()
}

// Pause is Leave with the way back kept.
func (o *Order) Pause(s OrderStatus) {
	p := &PausedRoute{o.RouteID, o.Stop, o.SecondStop, o.DriverID, o.DriverName}
	o.Leave(s, StopSkipped)
	o.Paused = p
}

// Resume undoes Pause.
func (o *Order) Resume() {
	p := o.Paused
	if p == nil {
		return
	}
	o.Past = slices.DeleteFunc(slices.Clone(o.Past), func(s RouteStop) bool {
		return s.RouteID == p.RouteID && (s.Sequence == p.Stop || s.Sequence == p.SecondStop)
	})
	o.RouteID, o.Stop, o.SecondStop, o.DriverID, o.DriverName, o.Paused = p.RouteID, p.Stop, p.SecondStop, p.DriverID, p.DriverName, nil
}

// RouteFilter chooses routes of a business. Zero fields choose all.
type RouteFilter struct {
	BusinessID       BusinessID // required
	BrokerID         AccountID
	DriverID         AccountID
	DateFrom, DateTo string // YYYY-MM-DD, both included
	Status           RouteStatus
	Page             Page // sorted by id, date or name
}

// Driver is what is kept of a driver beside the account.
type Driver struct {
	Account  Account   `json:"-"`        // read with it, written by itself
	BrokerID AccountID `json:"BrokerID"` // the contractor whose driver it is; 0: the business's
	Phone    string    `json:"Phone"`
	Licence  string    `json:"Licence"`
	// Pending says that the driver's registration was not reviewed yet.
	Pending    bool      `json:"Pending"`
	OnDuty     bool      `json:"OnDuty"`
	DutySince  time.Time `json:"DutySince"` // when OnDuty last became true
	Skills     []string  `json:"Skills"`
	Vehicle    Vehicle   `json:"Vehicle"`
	ShiftStart string    `json:"ShiftStart"` // HH:MM, "" when there is no shift
	ShiftEnd   string    `json:"ShiftEnd"`
}

// DriverStatus says whether a driver can be given work.
type DriverStatus string

// Statuses of a driver.
const (
	DriverActive   DriverStatus = "active"
	DriverInactive DriverStatus = "inactive"
	DriverPending  DriverStatus = "pending_review"
)

// Status is the driver's, by its account: one that is switched off is inactive.
func (d Driver) Status() DriverStatus {
	switch {
	case d.Account.Enabled:
		return DriverActive
	case d.Pending:
		return DriverPending
	}
	return DriverInactive
}

// Vehicle is what a driver drives. 0 and "" are not known.
type Vehicle struct {
	ID               int64   `json:"id" min:"0" max:"1000000000"`
	Type             string  `json:"type" max:"32" line:"true"`
	Plate            string  `json:"plate" max:"16" line:"true"`
	CapacityWeight   float64 `json:"capacity_weight" min:"0" max:"1000000000" doc:"kg"`
	CapacityVolume   float64 `json:"capacity_volume" min:"0" max:"1000000000" doc:"m³"`
	CapacityPackages int     `json:"capacity_packages" min:"0" max:"1000000000"`
}

// DriverFilter chooses drivers of a business. Zero fields choose all.
type DriverFilter struct {
	BusinessID BusinessID // required
	BrokerID   AccountID  // only this contractor's
	Page       Page       // sorted by id, name, email or created_at
}

// StopsBefore is how many open stops a route has before the last open one of an
// order; orders are all that have a stop on it. ok is false when the order has
// no open stop there.
func StopsBefore(o Order, orders []Order) (n int, ok bool) {
	last := 0
	for _, s := range o.Stops() {
		if s.RouteID == o.RouteID && o.RouteID != 0 && s.State == StopPending {
			last = max(last, s.Sequence)
		}
	}
	if last == 0 {
		return 0, false
	}
	for _, x := range orders {
		for _, s := range x.Stops() {
			if s.RouteID == o.RouteID && s.State == StopPending && s.Sequence < last {
				n++
			}
		}
	}
	return n, true
}

// RouteView reads the present of routes and drivers.
type RouteView interface {
	// Route, in a decision on PostgreSQL, waits for others that decide about the
	// same route. A change of a route's stops writes the route too.
	Route(BusinessID, RouteID) (Route, error)
	// Routes lists a part of what a business has, and says how much there is.
	Routes(RouteFilter) ([]Route, Listed, error)
	// RouteOrders lists the orders that have a stop on a route, by id.
	RouteOrders(BusinessID, RouteID) ([]Order, error)
	// Driver finds a driver of a business, whether anything is kept beside the
	// account or not.
	Driver(BusinessID, AccountID) (Driver, error)
	Drivers(DriverFilter) ([]Driver, Listed, error)
	// PendingDrivers lists up to limit registrations of a business that wait for a
	// review, oldest first.
	PendingDrivers(b BusinessID, limit int) ([]Driver, error)
}

// RouteChanges are the changes of routes and drivers.
type RouteChanges struct {
	Routes  []Route
	Drivers []Driver // without the account
}

func (s *RouteChanges) preview(e *effectList) {
	previewEach(e, "Routes", s.Routes, func(x Route) {
		old, err := e.view.Route(x.BusinessID, x.ID)
		showChanged(e, "route", x.ID, x.Name, x, old, err, Route.members)
	})
}

// members are those of a route that a preview shows.
func (r Route) members() map[string]any {
	return map[string]any{"name": OrNull(r.Name), "date": OrNull(r.Date), "driver_id": OrNull(r.DriverID), "vehicle_name": OrNull(r.VehicleName), "start_at": Stamp(r.StartAt, time.UTC), "end_at": Stamp(r.EndAt, time.UTC),
		"status": r.Phase()}
}
