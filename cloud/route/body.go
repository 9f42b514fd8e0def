package route

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// RouteBody is a route as answers show it (interface 7.1).
type RouteBody struct {
	RouteID     cloud.RouteID     `json:"route_id"`
	Name        *string           `json:"name"`
	Date        string            `json:"date" format:"date" graphql:"Date"`
	Status      cloud.RouteStatus `json:"status" doc:"draft, planned, dispatched, in_progress, completed or cancelled"`
	DriverID    *cloud.AccountID  `json:"driver_id"`
	DriverName  *string           `json:"driver_name"`
	BrokerID    *cloud.AccountID  `json:"broker_id"`
	VehicleID   *int64            `json:"vehicle_id"`
	VehicleName *string           `json:"vehicle_name"`
	StartAt     *string           `json:"start_at"`
	EndAt       *string           `json:"end_at"`
	// Members of a route that was computed; null for one that people made.
	Depot          *Address `json:"depot"`
	PlannedKM      *float64 `json:"planned_distance_km"`
	PlannedMinutes *int     `json:"planned_minutes"`
	ActualKM       *float64 `json:"actual_distance_km"`
	Geometry       *string  `json:"geometry" doc:"Encoded polyline"`

	StopCount  int        `json:"stop_count"`
	OrderCount int        `json:"order_count"`
	Completed  int        `json:"completed_count" doc:"Stops that are done"`
	Failed     int        `json:"failed_count" doc:"Stops that failed"`
	Load       Load       `json:"load" graphql:"JSON"`
	Stops      []StopBody `json:"stops" graphql:"[JSON!]"`
	CreatedAt  *string    `json:"created_at"`
}

// Load is what the orders on a route have altogether.
type Load struct {
	Weight   float64 `json:"weight" doc:"kg"`
	Volume   float64 `json:"volume" doc:"m³ of the packages whose sizes are known"`
	Packages int     `json:"packages"`
}

// StopBody is one stop of a route.
type StopBody struct {
	Sequence int             `json:"sequence"`
	Kind     cloud.StopKind  `json:"kind" doc:"pickup or delivery"`
	OrderIDs []cloud.OrderID `json:"order_ids"`
	Address  *Address        `json:"address" doc:"null of a stop that the order has left"`
	Arrival  *string         `json:"planned_arrival"`
	Status   cloud.StopState `json:"status" doc:"pending, done, failed or skipped"`
	Service  int             `json:"service_minutes"`
}

// Address is where a stop is.
type Address struct {
	Name       string   `json:"name"`
	Company    *string  `json:"company"`
	Phone      *string  `json:"phone"`
	Line1      string   `json:"address_line1"`
	Line2      *string  `json:"address_line2"`
	City       string   `json:"city"`
	Province   string   `json:"province"`
	PostalCode string   `json:"postal_code"`
	Country    string   `json:"country"`
	Latitude   *float64 `json:"latitude"`
	Longitude  *float64 `json:"longitude"`
	BuzzCode   *string  `json:"buzz_code"`
}

// GraphQLName is the name of the type there.
func (RouteBody) GraphQLName() string { return "Route" }

// stopsOf are a route's stops in their order.
func stopsOf(id cloud.RouteID, orders []cloud.Order) []cloud.RouteStop {
	var out []cloud.RouteStop
	for _, o := range orders {
		for _, s := range o.Stops() {
			if s.RouteID == id {
				out = append(out, s)
			}
		}
	}
	return out
}

// show shows a route with the orders that have stops on it.
func show(r cloud.Route, orders []cloud.Order, zone *time.Location) RouteBody {
	b := RouteBody{RouteID: r.ID, Name: cloud.OrNull(r.Name), Date: r.Date, Status: r.Status(stopsOf(r.ID, orders)), DriverID: cloud.OrNull(r.DriverID),
		DriverName: cloud.OrNull(r.DriverName), BrokerID: cloud.OrNull(r.BrokerID), VehicleID: cloud.OrNull(r.VehicleID), VehicleName: cloud.OrNull(r.VehicleName),
		StartAt: cloud.Stamp(r.StartAt, zone), EndAt: cloud.Stamp(r.EndAt, zone), OrderCount: len(orders), Stops: []StopBody{}, CreatedAt: cloud.Stamp(r.CreatedAt, zone)}
	for _, o := range orders {
		for _, s := range o.Stops() {
			if s.RouteID != r.ID {
				continue
			}
			stop := StopBody{Sequence: s.Sequence, Kind: s.Kind, OrderIDs: []cloud.OrderID{o.ID}, Status: s.State, Service: o.Service}
			if o.RouteID == r.ID && (s.Sequence == o.Stop || s.Sequence == o.SecondStop) {
				stop.Address, stop.Arrival = place(o, s.Kind), cloud.Stamp(o.ETA, zone)
			}
			b.Stops = append(b.Stops, stop)
			switch s.State {
			case cloud.StopDone:
				b.Completed++
			case cloud.StopFailed:
				b.Failed++
			}
		}
		if o.RouteID == r.ID {
			b.Load.add(o.Packages)
		}
	}
	b.Load.Weight, b.Load.Volume = math.Round(b.Load.Weight*1000)/1000, math.Round(b.Load.Volume*1e6)/1e6
	slices.SortFunc(b.Stops, func(x, y StopBody) int { return cmp.Or(x.Sequence-y.Sequence, int(x.OrderIDs[0]-y.OrderIDs[0])) })
	b.StopCount = len(b.Stops)
	return b
}

// kilograms and metres are the units of packages.
var (
	kilograms = map[string]float64{"kg": 1, "g": 0.001, "lb": 0.45359237, "oz": 0.028349523125}
	metres    = map[string]float64{"cm": 0.01, "in": 0.0254, "mm": 0.001}
)

func (l *Load) add(list []cloud.OrderPackage) {
	for _, p := range list {
		l.Weight += p.Weight * kilograms[p.WeightUnit]
		l.Volume += p.Length * p.Width * p.Height * math.Pow(metres[p.DimensionUnit], 3)
	}
	l.Packages += len(list)
}

// place is where an order's stop is: a pickup at the sender, a delivery at the
// recipient.
func place(o cloud.Order, kind cloud.StopKind) *Address {
	a := o.Recipient
	if kind == cloud.PickupStop {
		a = o.Sender
	}
	if a == nil {
		return nil
	}
	return &Address{Name: a.Name, Company: cloud.OrNull(a.Company), Phone: cloud.OrNull(a.Phone), Line1: a.Line1, Line2: cloud.OrNull(a.Line2), City: a.City,
		Province: a.Province, PostalCode: a.PostalCode, Country: a.Country, Latitude: a.Latitude, Longitude: a.Longitude, BuzzCode: cloud.OrNull(a.BuzzCode)}
}
