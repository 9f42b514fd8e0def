package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/order"
)

var (
	forOperations = []string{catalog.OperationsServer}
	forDevelopers = []string{catalog.DeveloperServer}
	forBoth       = []string{catalog.OperationsServer, catalog.DeveloperServer}
)

// Arguments that several tools take.
const (
	oneOrder = `
		order_id integer · one identifier is needed
		order_ref text
		tracking_number text`
	pages = `
		page integer 1.. · default 1
		per_page integer 1..200 · default 20`
	repeatSafe = `idempotency_key text 1..128 · repeat-safe key`
	address    = `Postal address: name*, company, phone, email, address_line1*, address_line2, city*, province*, postal_code*, country*, latitude, longitude, buzz_code, address_type`
	parcel     = `One parcel: package_ref, barcode, description, quantity, weight*, weight_unit, length, width, height, dimension_unit, declared_value`
	quotePlace = `Address for quotes: postal_code*, country*`
	orderInput = `
		type! D|P|P2P · D delivery, P pickup, P2P both
		order_ref text 0..64 · unique own reference
		customer_id integer · business tokens only
		scheduled_date date · default next service day
		time_window_start time · with time_window_end
		time_window_end time
		sender object · needed for P and P2P. ` + address + `
		recipient object · needed for D and P2P. ` + address + `
		packages! list object 1..200 · ` + parcel + `
		delivery_instruction text 0..500
		note text 0..1000 · internal
		service_minutes integer · default 5
		priority integer 0..9
		required_skills list text · skill codes
		signature_required boolean
		photo_required boolean
		age_verification 0|18|19|21
		cod_amount number
		declared_value number
		rate_id text · from quote_delivery
		hold boolean · create on hold
		external_order_id text
		metadata object`
	orderRows = `Local delivery order: type*, order_ref, customer_id, scheduled_date, time_window_start, time_window_end, sender, recipient, packages*, delivery_instruction, note, service_minutes, priority, required_skills, signature_required, photo_required, age_verification, cod_amount, declared_value, rate_id, hold, external_order_id, metadata`
)

var anyName = [][]string{{"order_id"}, {"order_ref"}, {"tracking_number"}}

// agentTools are what agents may call. What a tool asks for is that of its
// operation.
func agentTools() []catalog.Tool {
	args := catalog.Arguments
	return []catalog.Tool{
		{Name: "track_package", Title: "Track package", Servers: forBoth, Category: "tracking", Operation: "tracking.public",
			Description: "Public tracking of one number: status, last events and expected delivery, with personal data masked. Use find_order for orders of the business.",
			Arguments: args(`
				tracking_number! text 3..64 · order, package or carrier number
				verify text 4..4 · last 4 digits of the recipient phone, unmasks`)},
		{Name: "otep_tracking", Title: "OTEP tracking", Servers: forOperations, Category: "tracking", Operation: "otep.tracking", Run: timelineOrEvents,
			Description: "Unified OTEP timeline of one number, whole or only its events, in the native format or a standard one. Personal data is masked unless the parcel is the caller's.",
			Arguments: args(`
				tracking_number! text 3..64
				format text · otep (default), epcis, onerecord, uncefact, otlp, sensorthings or another known value
				events_only boolean · default false`)},

		{Name: "get_orders", Title: "Get orders", Servers: forOperations, Category: "orders", Operation: "orders.list", Run: listed("orders.list"),
			Description: "List orders with filters, newest first, 20 a page unless per_page says otherwise. Use find_order when only a number, name or phone is known.",
			Arguments: args(`
				status_ids list integer · order status ids
				type D|P|P2P
				scheduled_date_from date
				scheduled_date_to date
				created_from date-time
				created_to date-time
				customer_id integer
				driver_id integer
				route_id integer
				broker_id integer
				warehouse_id integer
				keyword text
				sort text · field or -field`, pages)},
		{Name: "get_order_detail", Title: "Get order detail", Servers: forOperations, Category: "orders", Operation: "orders.find", OneOf: anyName,
			Description: "One order in full, with further blocks on request. Use order_snapshot for what is going on with it right now.",
			Arguments:   args(oneOrder, `include list packages|tracking|proof|price|operation_events|interception · extra blocks`),
			Run: func(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
				return a.Do(ctx, "orders.detail", given, "")
			}},
		{Name: "find_order", Title: "Find order", Servers: forOperations, Category: "orders", Operation: "orders.search",
			Description: "Fuzzy search over tracking number, external tracking, ref, recipient name, phone. Gives matches with a score, the best first; use it before tools that need an order_id.",
			Arguments: args(`
				query! text 3..100
				fields list tracking_number|external_tracking_number|order_ref|recipient_name|phone · default all
				limit integer 1..50 · default 10`)},
		{Name: "get_operation_events", Title: "Get operation events", Servers: forBoth, Category: "orders", Operation: "orders.operations", OneOf: anyName, Run: listed("orders.operations"),
			Description: "Audit trail of an order: what was done to it, by whom, through which channel and when, oldest first. For where the parcel is, use otep_client_tracking.",
			Arguments:   args(oneOrder, `from date-time`, `to date-time`, `operation_types list integer`, pages)},
		{Name: "order_snapshot", Title: "Order snapshot", Servers: forOperations, Category: "orders", Scopes: []string{"orders:read"}, Types: withOrders, OneOf: anyName, Run: snapshot,
			Description: "Order, latest tracking, driver, ETA, proof and last operations in one answer. The first call for a question about one order.",
			Arguments:   args(oneOrder, `events_limit integer 1..50 · default 10`)},
		{Name: "list_exceptions", Title: "List exceptions", Servers: forOperations, Category: "orders", Operation: "orders.exceptions", Run: listed("orders.exceptions"),
			Description: "Orders that need attention, the most urgent first, each with its reason and tools that may help.",
			Arguments: args(`
				types list delivery_failed|pickup_failed|overdue|unassigned|address_invalid|intercepted|on_hold|label_purchase_failed|cancel_failed · default all
				date_from date · default today - 7
				date_to date
				customer_id integer`, pages)},
		{Name: "quote_delivery", Title: "Quote delivery", Servers: forOperations, Category: "orders", Operation: "orders.rate",
			Description: "Price and feasibility of a local delivery. Gives rates with a rate_id, which create_order takes to keep the price.",
			Arguments: args(`
				type! D|P|P2P
				origin object · needed for P and P2P. ` + quotePlace + `
				destination object · needed for D and P2P. ` + quotePlace + `
				packages! list object 1..200 · ` + parcel + `
				scheduled_date date
				time_window_start time
				time_window_end time
				customer_id integer
				options object · signature, cod_amount, declared_value, residential`)},
		{Name: "get_async_batch_result", Title: "Get async batch result", Servers: forOperations, Category: "orders", Operation: "orders.job", Run: batchResult,
			Description: "State and rows of an async batch: call again until status is completed or failed.",
			Arguments:   args(`async_id! text · asyncId of the batch`, `include_results boolean · default true`, pages)},
		{Name: "otep_client_tracking", Title: "OTEP client tracking", Servers: forOperations, Category: "tracking", Scopes: []string{"orders:read"}, Types: withOrders, OneOf: anyName, Run: ownTimeline,
			Description: "OTEP timeline of an own order, unmasked. Use otep_tracking for numbers of others.",
			Arguments:   args(oneOrder, `format text · default otep`)},
		{Name: "otep_client_locker_storage", Title: "OTEP client locker storage", Servers: forOperations, Category: "tracking", Scopes: []string{"orders:read"}, Types: withOrders,
			OneOf: [][]string{{"order_id"}, {"tracking_number"}}, Run: lockerPart,
			Description: "Locker part of an own order's OTEP timeline: when it was put in, taken out or failed, and at which cabinet.",
			Arguments:   args(`order_id integer`, `tracking_number text`)},

		{Name: "create_order", Title: "Create order", Servers: forBoth, Category: "orders", Operation: "orders.create", Effect: catalog.Creates,
			Description: "Create one local order (D, P, P2P). Gives order_id and tracking number; give idempotency_key so that a repeat makes no second order.",
			Arguments:   args(orderInput, repeatSafe)},
		{Name: "update_delivery_instruction", Title: "Update delivery instruction", Servers: forOperations, Category: "orders", Operation: "orders.update", Effect: catalog.Overwrites, Named: true, OneOf: anyName,
			Description: "Replace the delivery instruction that drivers see at the stop. For notes among staff use update_order_note.",
			Arguments:   args(oneOrder, `delivery_instruction! text 0..500 · empty clears`)},
		{Name: "update_order_note", Title: "Update order note", Servers: forOperations, Category: "orders", Operation: "orders.update", Effect: catalog.Overwrites, OneOf: anyName, Run: updateNote,
			Description: "Set or append the internal note, which customers and drivers do not see. For drivers use update_delivery_instruction.",
			Arguments:   args(oneOrder, `note! text 0..1000`, `mode replace|append · default replace`)},
		{Name: "update_time_window_by_refs", Title: "Update time window by refs", Servers: forOperations, Category: "orders", Operation: "orders.time_windows", Effect: catalog.Overwrites,
			Description: "New time window for several orders by reference. Gives what was updated and what was skipped, with the reason.",
			Arguments:   args(`order_refs! list text 1..100`, `scheduled_date date`, `time_window_start! time`, `time_window_end! time`)},
		{Name: "cancel_order", Title: "Cancel order", Servers: forOperations, Category: "orders", Operation: "orders.cancel", Named: true, OneOf: anyName,
			Description: "Cancel an order that is not delivered. It cannot be undone; to stop an order for a while use hold_order.",
			Arguments:   args(oneOrder, `reason text 0..255`)},
		{Name: "bulk_create_orders", Title: "Bulk create orders", Servers: forOperations, Category: "orders", Rows: "orders", Scopes: []string{"orders:write"}, Types: makers, Risk: catalog.RiskHigh, Confirm: true, Run: createRows,
			Description: "Create up to 100 orders now, each on its own. Gives what became of each row; for more rows use bulk_create_orders_async.",
			Arguments:   args(`orders! list object 1..100 · `+orderRows, `stop_on_error boolean · default false`, repeatSafe)},
		{Name: "bulk_create_orders_async", Title: "Bulk create orders async", Servers: forOperations, Category: "orders", Rows: "orders", Operation: "orders.batch_async",
			Description: "Queue a large batch, returns asyncId at once. Ask get_async_batch_result what became of the rows.",
			Arguments:   args(`orders! list object 1..2000 · `+orderRows, `postback_url text · https`, `stop_on_error boolean`, repeatSafe)},
		{Name: "reroute_to_address", Title: "Reroute to address", Servers: forOperations, Category: "orders", Operation: "orders.reroute", Named: true, OneOf: anyName,
			Description: "Before pickup: cancel and recreate with a new address. Gives the cancelled id and the new order, which has a new tracking number.",
			Arguments:   args(oneOrder, `new_address! object · `+address, `scheduled_date date`, `reason text 0..255`)},
		{Name: "hold_order", Title: "Hold order", Servers: forOperations, Category: "orders", Operation: "orders.hold", Named: true, OneOf: anyName,
			Description: "Put an order on HOLD, so that it is not planned. Ends by release_order, or by itself on the day of until.",
			Arguments:   args(oneOrder, `reason text 0..255`, `until date · automatic release date`)},
		{Name: "release_order", Title: "Release order", Servers: forOperations, Category: "orders", Operation: "orders.release", Named: true, OneOf: anyName,
			Description: "Release a held order to NEW_ORDER, so that it is planned again.",
			Arguments:   args(oneOrder, `reason text 0..255`)},

		{Name: "list_pending_approvals", Title: "List pending approvals", Servers: forOperations, Category: "approvals", Operation: "approvals.list", Run: listed("approvals.list"),
			Description: "List approvals: writes of agents that wait for a person, or had one decide.",
			Arguments:   args(`status pending|executed|rejected|failed|expired|all · default pending`, `tool text`, `requested_by integer`, pages)},
		{Name: "reject_pending_write", Title: "Reject pending write", Servers: forOperations, Category: "approvals", Operation: "approvals.reject", Effect: catalog.Overwrites,
			Description: "Reject without running. It stays in the list with the reason.",
			Arguments:   args(`approval_id! text`, `reason text 0..500`)},
		{Name: "approve_pending_write", Title: "Approve pending write", Servers: forOperations, Category: "approvals", Operation: "approvals.approve",
			Description: "Approve and run; the reviewer needs the tool's own scopes and must not be the requester. Gives the approval with its result.",
			Arguments:   args(`approval_id! text`, `note text 0..500`)},

		{Name: "get_routes", Title: "Get routes", Servers: forOperations, Category: "routes", Operation: "routes.list", Run: listed("routes.list"),
			Description: "List routes, newest first, with their driver, status and counts of stops.",
			Arguments: args(`
				date date
				date_from date
				date_to date
				status draft|planned|dispatched|in_progress|completed|cancelled
				driver_id integer`, pages)},
		{Name: "get_route_detail", Title: "Get route detail", Servers: forOperations, Category: "routes", Operation: "routes.find",
			Description: "One route with stops in their order and what came of each.",
			Arguments:   args(`route_id! integer`)},
		{Name: "get_drivers", Title: "Get drivers", Servers: forOperations, Category: "routes", Operation: "drivers.list", Run: listed("drivers.list"),
			Description: "List drivers with status, duty, skills and vehicle.",
			Arguments: args(`
				status active|inactive|pending_review
				on_duty boolean
				skill text
				broker_id integer
				keyword text`, pages)},
		{Name: "get_driver_routes_today", Title: "Get driver routes today", Servers: forOperations, Category: "routes", Operation: "drivers.routes",
			Description: "Routes and progress of a driver for a day, today unless date says otherwise.",
			Arguments:   args(`driver_id! integer`, `date date · default today`),
			Run: func(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
				values := given.Without()
				if given.Text("date") == "" {
					values["date"] = a.Today(ctx)
				}
				return a.Do(ctx, "drivers.routes", values, "")
			}},

		{Name: "get_otep_tracking", Title: "Get OTEP tracking", Servers: forDevelopers, Category: "tracking", Operation: "otep.tracking", Run: timelineOrEvents,
			Description: "OTEP timeline of one number as the interface gives it, for comparing with what your code reads.",
			Arguments:   args(`tracking_number! text 3..64`, `format text`, `events_only boolean`)},
		{Name: "validate_otep_payload", Title: "Validate OTEP payload", Servers: forDevelopers, Category: "developer", Operation: "otep.validate",
			Description: "Conformance check of a timeline: errors, warnings and what to do about each. Nothing is stored.",
			Arguments:   args(`payload! object · OTEP timeline`),
			Run: func(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
				raw, err := json.Marshal(given["payload"])
				if err != nil {
					return nil, fmt.Errorf("encode payload: %w", err)
				}
				return a.Do(ctx, "otep.validate", map[string]any{"body": json.RawMessage(raw)}, "")
			}},
		{Name: "get_webhook_settings", Title: "Get webhook settings", Servers: forDevelopers, Category: "webhooks", Operation: "webhook_settings.find",
			Description: "Webhook settings: addresses by event family, and whether secrets are set.",
			Arguments:   args(`customer_id integer`)},
		{Name: "update_webhook_settings", Title: "Update webhook settings", Servers: forDevelopers, Category: "webhooks", Operation: "webhook_settings.save", Effect: catalog.Overwrites,
			Description: "Partial update of the webhook settings: what is missing stays, an empty text clears. The first address brings a signing secret that tools are not shown: secret_page is where a person makes another one.",
			Arguments:   args(`settings! object · fields of the webhook settings`, `customer_id integer`)},
		{Name: "get_order_audit_timeline", Title: "Get order audit timeline", Servers: forDevelopers, Category: "developer", Scopes: []string{"orders:read"}, Types: withOrders, OneOf: anyName, Run: auditTimeline,
			Description: "Operation events, tracking events and webhook deliveries of an order on one time line, oldest first.",
			Arguments:   args(oneOrder, `include list operations|tracking|webhooks · default all`, `limit integer 1..500 · default 200`)},
		{Name: "get_webhook_delivery_logs", Title: "Get webhook delivery logs", Servers: forDevelopers, Category: "webhooks", Operation: "webhook_logs.list", Run: listed("webhook_logs.list"),
			Description: "Delivery log: what was sent to whom, how often it was tried and what came back.",
			Arguments: args(`
				event text
				channel account|locker_provider|third_party|ohp|callback
				reference_type text · order, driver, device_order, …
				reference_id text
				status pending|delivering|success|retrying|failed|dead|paused
				from date-time
				to date-time`, pages)},
		{Name: "replay_webhook_delivery", Title: "Replay webhook delivery", Servers: forDevelopers, Category: "webhooks", Operation: "webhook_logs.replay", Effect: catalog.Creates, Outside: true,
			Description: "Sends a logged delivery again: the same bytes and ids.", Run: renamed("webhook_logs.replay", "log_id", "id"),
			Arguments: args(`log_id! integer · delivery-log id`, `url text · another target`)},
		{Name: "test_webhook_delivery", Title: "Test webhook delivery", Servers: forDevelopers, Category: "webhooks", Operation: "webhook_settings.test", Effect: catalog.Creates, Outside: true,
			Description: "Sends the sample of an event to an address, really and signed, and says what it answered. Use it while you write a receiver; the send is marked as a test and logged.",
			Arguments: args(`
				url! text · https
				event text · default order.created
				scheme account|provider|ohp · default account
				secret text 16..128 · default the account secret
				format native|ce_binary|ce_structured · default that of the address`)},
	}
}

// listed is an operation that gives a page of a list, 20 rows unless the call
// says otherwise.
func listed(operation string) func(context.Context, catalog.Agent, catalog.Given) (any, error) {
	return func(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
		values := given.Without()
		values["per_page"] = given.Int("per_page", 20)
		return a.Do(ctx, operation, values, "")
	}
}

// renamed is an operation that calls one of the arguments otherwise.
func renamed(operation, from, to string) func(context.Context, catalog.Agent, catalog.Given) (any, error) {
	return func(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
		values := given.Without(from)
		values[to] = given[from]
		return a.Do(ctx, operation, values, "")
	}
}

func timelineOrEvents(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	operation := "otep.tracking"
	if given.Bool("events_only", false) {
		operation = "otep.events"
	}
	return a.Do(ctx, operation, given.Without("events_only"), "")
}

func batchResult(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	values := given.Without("async_id", "include_results")
	values["id"], values["per_page"] = given["async_id"], given.Int("per_page", 20)
	out, err := a.Do(ctx, "orders.job", values, "")
	if err != nil || given.Bool("include_results", true) {
		return out, err
	}
	return members(out, "results")
}

// members are those of an answer, less some.
func members(out any, less ...string) (map[string]any, error) {
	v, ok := catalog.Pick(out)
	all, isObject := v.(map[string]any)
	if !ok || !isObject {
		return nil, fmt.Errorf("an answer of %T has no members", out)
	}
	for _, name := range less {
		delete(all, name)
	}
	return all, nil
}

// order is the order that a call is about, in full, with blocks beside it.
func orderOf(ctx context.Context, a catalog.Agent, given catalog.Given, include ...any) (map[string]any, error) {
	values := given.Only("order_id", "order_ref", "tracking_number")
	if len(include) > 0 {
		values["include"] = include
	}
	out, err := a.Do(ctx, "orders.detail", values, "")
	if err != nil {
		return nil, err
	}
	return members(out)
}

func snapshot(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	all, err := orderOf(ctx, a, given, "tracking", "operation_events", "interception")
	if err != nil {
		return nil, err
	}
	order, _ := all["order"].(map[string]any)
	limit := int(given.Int("events_limit", 10))
	tracking := map[string]any{"current": nil, "last_event": nil}
	if t, ok := all["tracking"].(map[string]any); ok {
		tracking["current"] = t["current_status"]
		if events, _ := t["events"].([]any); len(events) > 0 {
			tracking["last_event"] = events[len(events)-1]
		}
	}
	driver := any(nil)
	if order["driver_id"] != nil {
		driver = map[string]any{"driver_id": order["driver_id"], "name": order["driver_name"], "route_id": order["route_id"], "stop_sequence": order["stop_sequence"]}
	}
	operations, _ := all["operation_events"].([]any)
	return map[string]any{"result": true, "order": order, "tracking": tracking, "driver": driver, "eta": order["eta"], "proof_files_detail": order["proof_files_detail"],
		"locker": order["locker"], "third_party": order["third_party"], "interception": order["interception"], "operation_events": operations[max(0, len(operations)-limit):]}, nil
}

// ownTimeline is the timeline of the caller's own order.
func ownTimeline(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	all, err := orderOf(ctx, a, given)
	if err != nil {
		return nil, err
	}
	order, _ := all["order"].(map[string]any)
	values := given.Only("format")
	values["tracking_number"] = order["tracking_number"]
	return a.Do(ctx, "otep.tracking", values, "")
}

func lockerPart(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	all, err := orderOf(ctx, a, given, "tracking")
	if err != nil {
		return nil, err
	}
	timeline, _ := all["tracking"].(map[string]any)
	if timeline == nil {
		return nil, cloud.E(cloud.NotFound, "OTEP_TRACKING_NOT_FOUND")
	}
	part := []any{}
	events, _ := timeline["events"].([]any)
	for _, e := range events {
		if kind, _ := catalog.Pick(e, "source", "type"); kind == "locker" {
			part = append(part, e)
		}
	}
	timeline["events"] = part
	return map[string]any{"result": true, "format": "otep", "data": timeline}, nil
}

func updateNote(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	all, err := orderOf(ctx, a, given)
	if err != nil {
		return nil, err
	}
	order, _ := all["order"].(map[string]any)
	note := given.Text("note")
	if old, _ := order["note"].(string); old != "" && given.Text("mode") == "append" {
		note = old + "\n" + note
	}
	return a.Do(ctx, "orders.update", map[string]any{"order_id": order["order_id"], "note": note}, "")
}

// createRows makes orders one by one; each row has a key of its own, so that a
// repeat of the call makes those that are missing.
func createRows(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	rows, _ := given["orders"].([]any)
	results, succeeded, failed := []any{}, 0, 0
	for i, x := range rows {
		values, _ := x.(map[string]any)
		key := given.Text("idempotency_key")
		if key != "" {
			key = fmt.Sprintf("%.120s/%d", key, i+1)
		}
		row := map[string]any{"row": i + 1, "order_ref": saneRef(values["order_ref"]), "result": true, "order_id": nil, "tracking_number": nil, "order_status_id": nil, "code": nil, "message": nil, "errors": nil}
		out, err := a.Do(ctx, "orders.create", values, key)
		if err == nil {
			succeeded++
			if made, err := members(out); err == nil {
				for _, name := range []string{"order_id", "tracking_number", "order_status_id"} {
					row[name] = made[name]
				}
			}
		} else if shown := a.Shown(err); shown == nil {
			return nil, err
		} else {
			failed++
			row["result"], row["code"], row["message"] = false, shown.Code, shown.Message
			if len(shown.Fields) > 0 {
				row["errors"] = shown.Fields
			}
			a.Warn(fmt.Sprintf("%d: %s", i+1, shown.Message))
		}
		results = append(results, row)
		if failed > 0 && given.Bool("stop_on_error", false) {
			break
		}
	}
	return map[string]any{"result": succeeded > 0, "total": len(rows), "succeeded": succeeded, "failed": failed, "results": results}, nil
}

// saneRef is a reference as a row shows it; nil for one that no order can have.
func saneRef(v any) any {
	if s, ok := v.(string); ok && !order.IsSane(s) {
		return nil
	}
	return v
}

// auditTimeline puts all that happened to an order on one line.
func auditTimeline(ctx context.Context, a catalog.Agent, given catalog.Given) (any, error) {
	all, err := orderOf(ctx, a, given, "tracking", "operation_events")
	if err != nil {
		return nil, err
	}
	order, _ := all["order"].(map[string]any)
	want := map[string]bool{}
	kinds, _ := given["include"].([]any)
	for _, k := range kinds {
		want[k.(string)] = true
	}
	line := &timeLine{}
	if len(want) == 0 || want["operations"] {
		line.add(all["operation_events"], "operation", "created_at", "operation_name")
	}
	if len(want) == 0 || want["tracking"] {
		events, _ := catalog.Pick(all["tracking"], "events")
		line.add(events, "tracking", "occurred_at", "status_code")
	}
	if len(want) == 0 || want["webhooks"] {
		logs, err := a.Do(ctx, "webhook_logs.list", map[string]any{"reference_type": "order", "reference_id": fmt.Sprint(order["order_id"]), "per_page": 200}, "")
		if shown := a.Shown(err); shown != nil && (shown.Kind == cloud.Forbidden) {
			line.left = append(line.left, "webhooks")
		} else if err != nil {
			return nil, err
		} else {
			list, _ := catalog.Pick(logs, "logs")
			line.add(list, "webhook", "created_at", "event")
		}
	}
	entries, cut := line.sorted(int(given.Int("limit", 200)))
	out := map[string]any{"result": true, "order_id": order["order_id"], "tracking_number": order["tracking_number"], "entries": entries, "truncated": cut}
	if len(line.left) > 0 {
		out["left_out"] = line.left
	}
	return out, nil
}
