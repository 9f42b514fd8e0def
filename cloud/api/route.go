package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/route"
)

var (
	// planners make routes: staff all of their business's, contractors their own.
	planners = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker}
	// withRoutes see routes: drivers their own besides.
	withRoutes = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount}
	drivers    = []cloud.AccountType{cloud.DriverAccount}
)

func (c Config) routes() []catalog.Operation {
	r := c.Routes
	const one, order = "/api/v1/routes/{route_id}", "/api/v1/driver/orders/{order_id}"
	row := func(name, summary, tag, method, path string, types []cloud.AccountType, errs ...string) catalog.Operation {
		area := "routes"
		if tag == "DriverInfo" {
			area = "drivers"
		}
		o := catalog.Operation{Name: name, Summary: summary, Tag: tag, Method: method, Path: path, Types: types, Scopes: []string{area + ":read"}, Errors: errs}
		if method != http.MethodGet {
			o.Scopes, o.Risk = []string{area + ":write"}, catalog.RiskMedium
		}
		return o
	}
	with := func(o catalog.Operation, change func(*catalog.Operation)) catalog.Operation {
		change(&o)
		return o
	}
	example := func(o catalog.Operation, in any) catalog.Operation {
		o.Example = in
		return o
	}
	graph := func(o catalog.Operation, g catalog.GraphQL) catalog.Operation {
		o.GraphQL = &g
		return o
	}
	// act is what a driver does to one order.
	act := func(verb, summary string, errs ...string) catalog.Operation {
		return row("driver.orders."+verb, summary, "Driver", "POST", order+"/"+strings.ReplaceAll(verb, "_", "-"), drivers, append([]string{missing, status}, errs...)...)
	}
	return []catalog.Operation{
		catalog.Define(with(row("routes.create", "Create a route", "Client", "POST", "/api/v1/routes", planners, "DRIVER_NOT_FOUND", "DRIVER_NOT_AVAILABLE"), func(o *catalog.Operation) {
			o.Status, o.Idempotent, o.Example = http.StatusCreated, true, exampleRoute
		}), r.Create, nil),
		catalog.Define(graph(tools(row("routes.list", "List routes, newest first", "Client", "GET", "/api/v1/routes", withRoutes), "get_routes"), catalog.GraphQL{Field: "routes", Type: "RouteList"}), r.List, nil),
		catalog.Define(graph(tools(row("routes.find", "Get a route with its stops", "Client", "GET", one, withRoutes, noRoute), "get_route_detail"), catalog.GraphQL{Field: "route", Pick: "route", Nullable: true}), r.Find, nil),
		catalog.Define(example(row("routes.update", "Update a route or its driver", "Client", "PATCH", one, planners, noRoute, routeStatus, "DRIVER_NOT_FOUND", "DRIVER_NOT_AVAILABLE"),
			route.EditInput{RouteID: 11, RouteInput: route.RouteInput{DriverID: ptr(cloud.AccountID(7))}}), r.Edit, nil),
		catalog.Define(example(row("routes.add", "Add orders to a route", "Client", "POST", one+"/orders", planners, noRoute, routeStatus), route.OrdersInput{RouteID: 11, OrderIDs: []cloud.OrderID{501, 502}}), r.Add, nil),
		catalog.Define(example(row("routes.remove", "Remove orders from a route", "Client", "POST", one+"/orders/remove", planners, noRoute, routeStatus), route.OrdersInput{RouteID: 11, OrderIDs: []cloud.OrderID{502}}), r.Remove, nil),
		catalog.Define(row("routes.dispatch", "Dispatch a route to its driver", "Client", "POST", one+"/dispatch", planners, noRoute, routeStatus, "DRIVER_REQUIRED"), r.Dispatch, nil),
		catalog.Define(with(row("routes.cancel", "Cancel a route that has not started", "Client", "POST", one+"/cancel", planners, noRoute, routeStatus), func(o *catalog.Operation) { o.Risk = catalog.RiskHigh }), r.Cancel, nil),
		catalog.Define(example(row("orders.driver", "Assign or unassign the driver of an order", "Client", "POST", "/api/v1/orders/{order_id}/driver", planners, missing, status, "DRIVER_NOT_FOUND", "DRIVER_NOT_AVAILABLE",
			"HELD_BY_CONTRACTOR", "NOT_HELD_BY_CONTRACTOR", "HELD_BY_THIRD_PARTY", "ALREADY_ON_ROUTE", "STATUS_NOT_PLANNABLE"), route.AssignInput{OrderID: 501, DriverID: ptr(cloud.AccountID(7))}), r.Assign, nil),

		catalog.Define(tools(row("drivers.list", "List drivers", "DriverInfo", "GET", "/api/v1/drivers", planners), "get_drivers"), r.Drivers, nil),
		catalog.Define(row("drivers.find", "Get a driver", "DriverInfo", "GET", "/api/v1/drivers/{driver_id}", planners, "DRIVER_NOT_FOUND"), r.Driver, nil),
		catalog.Define(example(row("drivers.update", "Update a driver, enabled or not", "DriverInfo", "PATCH", "/api/v1/drivers/{driver_id}", staff, "DRIVER_NOT_FOUND"),
			route.EditDriverInput{DriverID: 7, Status: ptr(cloud.DriverActive), Skills: &[]string{"fragile"}, Shift: &route.Shift{Start: "08:00", End: "16:30"}}), r.EditDriver, nil),
		catalog.Define(with(tools(row("drivers.routes", "List the routes of a driver", "DriverInfo", "GET", "/api/v1/drivers/{driver_id}/routes", planners, "DRIVER_NOT_FOUND"), "get_driver_routes_today"), func(o *catalog.Operation) {
			o.Scopes = []string{"routes:read", "drivers:read"}
		}), r.DriverRoutes, nil),

		catalog.Define(catalog.Operation{Name: "driver.register", Summary: "Register as a driver of a business", Tag: "Driver", Method: "POST", Path: "/api/v1/driver/register", NoToken: true,
			Risk: catalog.RiskMedium, Status: http.StatusCreated, Errors: []string{"CLIENT_NOT_FOUND"}, Example: exampleDriver},
			func(ctx context.Context, _ cloud.Caller, in account.RegisterInput) (account.RegisterOutput, error) {
				return c.Accounts.Register(ctx, in)
			}, nil),
		catalog.Define(row("driver.routes", "List the calling driver's routes", "Driver", "GET", "/api/v1/driver/routes", drivers), r.Mine, nil),
		catalog.Define(example(row("driver.duty", "Start or end duty", "Driver", "POST", "/api/v1/driver/duty", drivers), route.DutyInput{OnDuty: ptr(true)}), r.Duty, nil),
		catalog.Define(example(row("driver.location", "Report the calling driver's location", "Driver", "POST", "/api/v1/driver/location", drivers),
			route.LocateInput{Points: []route.Point{{Latitude: ptr(43.6512), Longitude: ptr(-79.3832), Speed: ptr(31.5), RecordedAt: "2026-11-20T18:11:58-05:00"}}}), r.Locate, nil),
		catalog.Define(act("accept", "Accept an order"), r.Accept, nil),
		catalog.Define(example(act("decline", "Decline an order"), route.DeclineInput{OrderID: 501, Reason: "Too heavy for my bike"}), r.Decline, nil),
		catalog.Define(act("start_pickup", "Start driving to the sender", routeStatus), r.StartPickup, nil),
		catalog.Define(example(act("pickup", "Report the outcome of a pickup stop"), route.PickupInput{OrderID: 501, Result: "failed", FailureCode: "not_ready", FollowUp: "reschedule", Date: "2026-12-02"}), r.Pickup, nil),
		catalog.Define(act("start_delivery", "Start driving to the recipient", routeStatus), r.StartDelivery, nil),
		catalog.Define(example(act("deliver", "Report the outcome of a delivery stop", "PROOF_REQUIRED"), route.ResultInput{OrderID: 501, Result: "failed", FailureCode: "recipient_unavailable", FollowUp: "redelivery"}), r.Deliver, nil),
		catalog.Define(act("ready", "Mark an order as ready for pickup, as its driver", "FORBIDDEN"), r.Ready, nil),
	}
}

// Codes of several rows.
const (
	missing, status      = "ORDER_NOT_FOUND", "ORDER_STATUS_CONFLICT"
	noRoute, routeStatus = "ROUTE_NOT_FOUND", "ROUTE_STATUS_CONFLICT"
)

func ptr[T any](v T) *T { return &v }

var (
	exampleRoute = route.CreateInput{RouteInput: route.RouteInput{Name: ptr("Downtown, morning"), Date: ptr("2026-12-01"), DriverID: ptr(cloud.AccountID(7)), VehicleName: ptr("Van 3"),
		StartAt: ptr("2026-12-01T08:00:00-05:00"), EndAt: ptr("2026-12-01T13:00:00-05:00")}}
	exampleDriver = account.RegisterInput{ClientCode: "acme", Name: "Sam Okafor", Phone: "+14165550177", Email: "sam@example.com", Password: "correct horse battery", VehicleType: "van", Licence: "O1234-56789"}
)
