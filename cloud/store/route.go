package store

import (
	"github.com/postern-io/postern/cloud"
)

const (
	sqlRoute       = `SELECT body FROM route WHERE business_id = $1 AND id = $2`
	sqlRouteOrders = `SELECT body FROM orders WHERE business_id = $1 AND id IN (SELECT order_id FROM route_stop WHERE business_id = $1 AND route_id = $2) ORDER BY id`
	sqlSaveRoute   = `INSERT INTO route (id, business_id, broker_id, driver_id, date, name, phase, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO UPDATE SET broker_id = excluded.broker_id, driver_id = excluded.driver_id, date = excluded.date, name = excluded.name,
  phase = excluded.phase, body = excluded.body
WHERE route.business_id = excluded.business_id`

	sqlDropStops = `DELETE FROM route_stop WHERE order_id = $1`
	sqlAddStop   = `INSERT INTO route_stop (order_id, n, business_id, route_id, pending) VALUES ($1, $2, $3, $4, $5)`

	driverColumns     = accountColumns + `, (SELECT body FROM driver WHERE account_id = account.id)`
	sqlPendingDrivers = `SELECT ` + driverColumns + ` FROM driver AS waits JOIN account ON account.id = waits.account_id WHERE waits.business = $1 AND waits.waits_since <> 0 ORDER BY waits.waits_since, waits.account_id LIMIT $2`
	sqlDriver         = `SELECT ` + driverColumns + ` FROM account WHERE business_id = $1 AND id = $2 AND type = 'driver'`
	sqlSaveDriver     = `INSERT INTO driver (account_id, business, broker_id, body, waits_since) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (account_id) DO UPDATE SET broker_id = excluded.broker_id, body = excluded.body, waits_since = excluded.waits_since WHERE driver.business = excluded.business`
)

func scanRoute(r rows, x *cloud.Route) error { return r.Scan(parsed(x)) }

func (v routeView) Route(b cloud.BusinessID, id cloud.RouteID) (cloud.Route, error) {
	return one(v.ctx, v.q, v.locked(sqlRoute), scanRoute, int64(b), id)
}

func (v routeView) RouteOrders(b cloud.BusinessID, id cloud.RouteID) ([]cloud.Order, error) {
	return list(v.ctx, v.q, sqlRouteOrders, scanOrder, int64(b), id)
}

// ofRoute are the stops on a route, in a query for routes.
const ofRoute = `EXISTS (SELECT 1 FROM route_stop WHERE route_stop.business_id = route.business_id AND route_stop.route_id = route.id`

var routeSorts = sortable{"id": {}, "date": {name: "date", text: true}, "name": {name: "name", text: true}}

// Routes lists a part of a business's routes.
func (v routeView) Routes(f cloud.RouteFilter) ([]cloud.Route, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	if f.BrokerID != 0 {
		c.and("broker_id = $%d AND broker_id <> 0", int64(f.BrokerID))
	}
	if f.DriverID != 0 {
		c.and("driver_id = $%d AND driver_id <> 0", int64(f.DriverID))
	}
	if f.DateFrom != "" {
		c.and("date >= $%d", f.DateFrom)
	}
	if f.DateTo != "" {
		c.and("date <= $%d", f.DateTo)
	}
	phase := f.Status
	switch f.Status {
	case "":
	case cloud.RouteDraft:
		phase = cloud.RoutePlanned
		c.and("NOT " + ofRoute + ")")
	case cloud.RoutePlanned:
		c.and(ofRoute + ")")
	case cloud.RouteInProgress:
		c.and(ofRoute+" AND pending = $%d)", true)
	case cloud.RouteCompleted:
		phase = cloud.RouteInProgress
		c.and("NOT "+ofRoute+" AND pending = $%d)", true)
	}
	if phase != "" {
		c.and("phase = $%d", string(phase))
	}
	return part(v.snapshot, keyList{from: "route", columns: "body", where: c, page: f.Page}, routeSorts, scanRoute)
}

func scanDriver(r rows, d *cloud.Driver) error {
	return r.Scan(append(accountFields(&d.Account), parsed(d))...)
}

func (v routeView) Driver(b cloud.BusinessID, id cloud.AccountID) (cloud.Driver, error) {
	return one(v.ctx, v.q, sqlDriver, scanDriver, int64(b), int64(id))
}

// Drivers lists a part of a business's drivers.
func (v routeView) Drivers(f cloud.DriverFilter) ([]cloud.Driver, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d AND type = 'driver'", int64(f.BusinessID))
	if f.BrokerID != 0 {
		c.and("id IN (SELECT account_id FROM driver WHERE business = $%d AND broker_id = $%d AND broker_id <> 0)", int64(f.BusinessID), int64(f.BrokerID))
	}
	return part(v.snapshot, keyList{from: "account", columns: driverColumns, where: c, page: f.Page}, accountSorts, scanDriver)
}

// PendingDrivers lists registrations that wait for a review.
func (v routeView) PendingDrivers(b cloud.BusinessID, limit int) ([]cloud.Driver, error) {
	return list(v.ctx, v.q, sqlPendingDrivers, scanDriver, int64(b), limit)
}

func (w *writer) routes(c *cloud.Changes) {
	for _, r := range c.Routes {
		w.add(mustExist, sqlSaveRoute, r.ID, int64(r.BusinessID), int64(r.BrokerID), int64(r.DriverID), r.Date, r.Name, string(r.Phase()), text(r))
	}
	for _, d := range c.Drivers {
		w.add(mustExist, sqlSaveDriver, int64(d.Account.ID), int64(d.Account.BusinessID), int64(d.BrokerID), text(d), waitsSince(d))
	}
}

// waitsSince is the time of a registration that waits for a review; 0 for none.
func waitsSince(d cloud.Driver) int64 {
	if !d.Pending {
		return 0
	}
	return max(1, d.Account.CreatedAt.UnixMilli())
}

// stops replaces the rows of an order's stops.
func (w *writer) stops(o cloud.Order) {
	w.add(anything, sqlDropStops, int64(o.ID))
	for n, s := range o.Stops() {
		w.add(anything, sqlAddStop, int64(o.ID), n, int64(o.BusinessID), s.RouteID, s.State == cloud.StopPending)
	}
}
