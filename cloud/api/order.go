package api

import (
	"context"
	"net/http"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/order/contractor"
	"github.com/postern-io/postern/cloud/order/interception"
)

var (
	ordersRead  = []string{"orders:read"}
	ordersWrite = []string{"orders:write"}

	// withOrders see orders: staff all of their business's, customers their own,
	// contractors those that they hold.
	withOrders = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.Customer}
	// readers see one order or a list: drivers those that they were given besides.
	readers = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.Customer, cloud.DriverAccount}
	// makers may make orders and stop them.
	makers = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Customer}
)

type byOrder struct {
	ID      cloud.OrderID `path:"order_id"`
	Include []string      `query:"include" doc:"Blocks beside the order, with commas between them: tracking, operation_events, interception. packages, proof and price are in the order itself"`
}

type orderDetail struct {
	ID     cloud.OrderID `query:"order_id"`
	Ref    string        `query:"order_ref" doc:"The caller's own reference"`
	Number string        `query:"tracking_number"`

	Include []string `query:"include" graphql:"-" doc:"As at the address of one order"`
}

func (c Config) orders() []catalog.Operation {
	o, stops := c.Orders, interception.New(c.Orders)
	const one, area = "/api/v1/orders/{order_id}", "Client"
	row := func(name, summary, method, path string, types []cloud.AccountType, errs ...string) catalog.Operation {
		r := catalog.Operation{Name: name, Summary: summary, Tag: area, Method: method, Path: path, Types: types, Scopes: ordersRead, Errors: errs, Family: cloud.LocalDelivery}
		if method != http.MethodGet {
			r.Scopes, r.Risk = ordersWrite, catalog.RiskMedium
		}
		return r
	}
	with := func(r catalog.Operation, change func(*catalog.Operation)) catalog.Operation {
		change(&r)
		return r
	}
	graph := func(r catalog.Operation, g catalog.GraphQL) catalog.Operation {
		r.GraphQL = &g
		return r
	}
	pick := func(field string) catalog.GraphQL {
		return catalog.GraphQL{Field: field, Pick: "order", Mutation: true}
	}
	const unknown = missing
	return []catalog.Operation{
		catalog.Define(graph(with(tools(row("orders.create", "Create an order", "POST", "/api/v1/client/orderCreate", makers, "DUPLICATE_ORDER_REF", "ADDRESS_NOT_GEOCODED", "OUT_OF_SERVICE_AREA", "RATE_EXPIRED", "RATE_MISMATCH"), "create_order"), func(r *catalog.Operation) {
			r.Status, r.Idempotent, r.Example = http.StatusCreated, true, exampleOrder
		}), catalog.GraphQL{Field: "clientOrderCreate", Type: "OrderCreateResult", Input: true, Mutation: true}), o.Create, nil),
		catalog.Define(with(tools(row("orders.rate", "Rate an order", "POST", "/api/v1/orders/rate", makers), "quote_delivery"), func(r *catalog.Operation) {
			r.Scopes, r.Risk, r.Group = ordersRead, "", catalog.Quotes
			r.Example = order.RateInput{Type: cloud.DeliveryOrder, Destination: &order.RateAddress{PostalCode: "M5H 2N2", Country: "CA"}, Packages: exampleOrder.Packages}
		}), o.Rate, nil),
		catalog.Define(graph(tools(row("orders.list", "List orders, newest first", "GET", "/api/v1/orders", readers), "get_orders"), catalog.GraphQL{Field: "orders", Type: "OrderList", Filter: "OrderFilter"}), o.List, nil),
		catalog.Define(tools(row("orders.exceptions", "List orders with exceptions", "GET", "/api/v1/orders/exceptions", withOrders), "list_exceptions"), o.Exceptions, nil),
		catalog.Define(tools(row("orders.search", "Search orders by number, name or telephone number", "GET", "/api/v1/orders/search", withOrders), "find_order"), o.Search, nil),
		catalog.Define(graph(row("orders.detail", "Get an order by id, reference or tracking number", "GET", "/api/v1/orders/detail", readers, unknown, "AMBIGUOUS_ORDER_REF"),
			catalog.GraphQL{Field: "order", Pick: "order", Nullable: true}), func(ctx context.Context, caller cloud.Caller, in orderDetail) (order.DetailOutput, error) {
			return o.Detail(ctx, caller, order.DetailInput{Key: order.Key{OrderID: in.ID, Ref: in.Ref, Number: in.Number}, Include: in.Include})
		}, nil),
		catalog.Define(tools(row("orders.find", "Get an order", "GET", one, readers, unknown), "get_order_detail"), func(ctx context.Context, caller cloud.Caller, in byOrder) (order.DetailOutput, error) {
			return o.Detail(ctx, caller, order.DetailInput{Key: order.Key{OrderID: in.ID}, Include: in.Include})
		}, nil),
		catalog.Define(with(tools(row("orders.update", "Update an order", "PATCH", one, makers, unknown, status), "update_delivery_instruction", "update_order_note"), func(r *catalog.Operation) {
			r.Fixed = catalog.BodyNames(order.CreateInput{}, order.OrderBody{})
		}), o.Update, nil),
		catalog.Define(with(row("orders.delete", "Delete an order", "DELETE", one, admins, unknown, status), func(r *catalog.Operation) { r.Risk = catalog.RiskHigh }), o.Delete, nil),
		catalog.Define(tools(row("orders.time_windows", "Update the time windows of orders", "POST", "/api/v1/orders/time-windows", staff), "update_time_window_by_refs"), o.SetWindows, nil),
		catalog.Define(graph(asked(row("orders.cancel", "Cancel an order", "POST", one+"/cancel", makers, unknown, "ORDER_NOT_CANCELLABLE"), "cancel_order"), pick("orderCancel")), o.Cancel, nil),
		catalog.Define(graph(asked(row("orders.hold", "Hold an order", "POST", one+"/hold", staff, unknown, status), "hold_order"), pick("orderHold")), o.Hold, nil),
		catalog.Define(graph(asked(row("orders.release", "Release an order from hold", "POST", one+"/release", staff, unknown, status), "release_order"), pick("orderRelease")), o.Release, nil),
		catalog.Define(with(row("orders.tracking_number", "Replace the tracking number and recipient link of an order", "POST", one+"/tracking-number", makers, unknown, "HELD_BY_THIRD_PARTY"), func(r *catalog.Operation) {
			r.Idempotent = true
		}), o.ReplaceNumber, nil),
		catalog.Define(row("orders.ready", "Mark an order as ready for pickup", "POST", one+"/ready", staff, unknown, status), o.Ready, nil),
		catalog.Define(with(asked(row("orders.reroute", "Reroute an order to another address", "POST", one+"/reroute", makers, unknown, status), "reroute_to_address"), func(r *catalog.Operation) {
			r.Idempotent = true
		}), o.Reroute, nil),
		catalog.Define(with(asked(row("orders.batch_async", "Create up to 2,000 orders in the background", "POST", "/api/v1/client/batchOrderCreateAsync", makers, "BLOCKED_URL"), "bulk_create_orders_async"), func(r *catalog.Operation) {
			r.Group, r.Idempotent, r.Status = catalog.Batch, true, http.StatusAccepted
		}), o.BatchAsync, nil),
		catalog.Define(tools(row("orders.job", "Get the progress of an order batch", "GET", "/api/v1/client/async/{id}", makers, "ASYNC_JOB_NOT_FOUND"), "get_async_batch_result"), o.Job, nil),
		catalog.Define(graph(with(tools(row("orders.operations", "List the operations on orders", "POST", "/api/v1/tracking/operationevents", withOrders, unknown, "AMBIGUOUS_ORDER_REF"), "get_operation_events"), func(r *catalog.Operation) {
			r.Tag, r.Scopes, r.Risk = "Tracking", ordersRead, ""
		}), catalog.GraphQL{Field: "trackingOperationevents", Type: "OperationEventList"}), o.Operations, nil),
		catalog.Define(with(row("orders.intercept", "Intercept an order in transit", "POST", one+"/interceptions", makers, unknown, status, "INTERCEPTION_OPEN"), func(r *catalog.Operation) {
			r.Status, r.Risk, r.Idempotent = http.StatusCreated, catalog.RiskHigh, true
		}), stops.Intercept, nil),
		catalog.Define(row("orders.interceptions", "List the interceptions of an order", "GET", one+"/interceptions", withOrders, unknown), o.Interceptions, nil),
		catalog.Define(row("interceptions.withdraw", "Withdraw an interception", "POST", "/api/v1/interceptions/{id}/withdraw", makers, "INTERCEPTION_NOT_FOUND", "INTERCEPTION_STATUS_CONFLICT"), stops.Withdraw, nil),
		catalog.Define(row("interceptions.execute", "Execute an interception", "POST", "/api/v1/interceptions/{id}/execute", staff, "INTERCEPTION_NOT_FOUND", "INTERCEPTION_STATUS_CONFLICT"), stops.Execute, nil),
		catalog.Define(row("interceptions.reject", "Reject an interception", "POST", "/api/v1/interceptions/{id}/reject", staff, "INTERCEPTION_NOT_FOUND", "INTERCEPTION_STATUS_CONFLICT"), stops.Reject, nil),
		catalog.Define(row("interceptions.approve", "Approve an interception", "POST", "/api/v1/interceptions/{id}/approve", staff, "INTERCEPTION_NOT_FOUND", "INTERCEPTION_STATUS_CONFLICT", status), stops.Approve, nil),
	}
}

// assignments are those of interface document 4.1.
func (c Config) assignments() []catalog.Operation {
	o, contractors := c.Orders, contractor.New(c.Orders)
	const path = "/api/v1/broker-order-assignments"
	row := func(name, summary, method, path string, types []cloud.AccountType, g catalog.GraphQL) catalog.Operation {
		r := catalog.Operation{Name: "broker_order_assignments." + name, Summary: summary, Tag: "Broker Order Assignments", Method: method, Path: path, Types: types,
			Scopes: ordersRead, Gate: "contractor_assignment", Errors: []string{"MODULE_DISABLED", "MODULE_UNAVAILABLE"}, GraphQL: &g}
		if method != http.MethodGet {
			r.Scopes, r.Risk, g.Mutation = ordersWrite, catalog.RiskMedium, true
		}
		return r
	}
	like := func(r catalog.Operation, example any, errs ...string) catalog.Operation {
		r.Example, r.Errors = example, append(r.Errors, errs...)
		return r
	}
	return []catalog.Operation{
		catalog.Define(row("list", "List contractor assignments", "GET", path, []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker},
			catalog.GraphQL{Field: "brokerOrderAssignments", Type: "BrokerAssignmentList"}), o.Assignments, nil),
		catalog.Define(like(row("assign", "Assign orders to a contractor", "POST", path, admins, catalog.GraphQL{Field: "assignOrdersToBroker", Type: "AssignResult"}),
			contractor.AssignInput{OrderIDs: []cloud.OrderID{120045, 120046}, BrokerID: 31, Note: "Before noon"}), contractors.Assign, nil),
		catalog.Define(like(row("revoke", "Revoke contractor assignments", "POST", path+"/revoke", admins, catalog.GraphQL{Field: "revokeBrokerOrderAssignments", Type: "RevokeResult"}),
			contractor.RevokeInput{OrderIDs: []cloud.OrderID{120045}, Reason: "No van today"}), contractors.Revoke, nil),
		catalog.Define(like(row("release", "Release an order back to the business", "POST", path+"/release", []cloud.AccountType{cloud.Broker},
			catalog.GraphQL{Field: "releaseBrokerOrderAssignment", Type: "ReleaseResult"}), contractor.ReleaseOrderInput{OrderID: 120045, Reason: "No van today"}, "NOT_ASSIGNED", "ORDER_ON_ROUTE"), contractors.GiveBack, nil),
	}
}

var exampleOrder = order.CreateInput{Type: cloud.DeliveryOrder, Ref: "SO-10042", ScheduledDate: "2026-12-01", WindowStart: "09:00", WindowEnd: "12:00",
	Recipient: &cloud.Address{Name: "Ada Moreau", Phone: "+14165550123", Line1: "100 Queen St W", City: "Toronto", Province: "ON", PostalCode: "M5H 2N2", Country: "CA", Kind: "residential"},
	Packages:  []order.PackageInput{{Ref: "SO-10042-1", Weight: 2.5, WeightUnit: "kg", DimensionUnit: "cm", Description: "Books"}}, Instruction: "Leave with the concierge",
	Metadata: map[string]string{"channel": "shop"}}
