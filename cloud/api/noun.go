package api

import (
	"slices"

	"github.com/postern-io/postern/cloud/catalog"
)

// nouns are the records of the console in the order of its navigation. What a
// deployment does not serve is left out of their verbs.
func nouns(table *catalog.Catalog) []catalog.Noun {
	list := []catalog.Noun{
		{
			Name: "cabinet", Path: "cabinets", Area: "lockers", Icon: "cabinet", Key: "c",
			ID: "device_id", Refs: []string{"device_id"}, Named: true, Title: []string{"device_name", "device_code"}, State: "status", States: "device",
			List: "smart_lockers.devices.list", Find: "smart_lockers.devices.find", Create: "smart_lockers.devices.create",
			Columns: []string{"device_name", "status", "grid_counts", "address", "device_code", "last_seen_at"},
			Verbs: []string{"smart_lockers.devices.open", "smart_lockers.devices.command", "smart_lockers.devices.edit", "smart_lockers.devices.renew_token",
				"smart_lockers.devices.replace_hardware", "smart_lockers.devices.report_stolen", "smart_lockers.devices.retire", "smart_lockers.grids.block", "smart_lockers.grids.unblock", "smart_lockers.grids.clear"},
			Related: []catalog.Relation{{Noun: "delivery", By: "device_id"}, {Noun: "cabinet_exception", By: "device_id"}, {Noun: "door_report", By: "id"}},
			Parts:   []catalog.Part{{Input: "grid_ids", Of: "grids", ID: "grid_id", Title: "grid_code"}, {Input: "grid_id", Of: "grids", ID: "grid_id", Title: "grid_code"}},
		},
		{
			Name: "delivery", Path: "parcels", Area: "lockers", Icon: "parcel", Key: "p",
			ID: "delivery_id", Refs: []string{"delivery_id", "current_delivery_id"}, Title: []string{"delivery_number"}, State: "status", States: "delivery",
			List: "smart_lockers.deliveries.list", Find: "smart_lockers.deliveries.find",
			Columns: []string{"delivery_number", "status", "recipient_name", "device_id", "reference_number", "due_at", "created_at"},
			Verbs:   []string{"smart_lockers.deliveries.confirm", "smart_lockers.deliveries.expire", "smart_lockers.deliveries.cancel"},
			Story: []catalog.Strand{
				{Operation: "otep.events", Fills: map[string]string{"tracking_number": "{packages.0.tracking_number}", "format": "otep"}, Rows: "data", Icon: "parcel", At: "occurred_at", What: "status_code", Words: "otep", More: []string{"location.name", "incident_reason"}},
			},
		},
		{
			Name: "cabinet_exception", Path: "exceptions", Area: "lockers", Icon: "warning",
			ID: "exception_id", Title: []string{"type"}, State: "status", States: "exception_status",
			List:    "smart_lockers.exceptions.list",
			Columns: []string{"type", "severity", "status", "device_id", "grid_code", "opened_at", "closed_at"},
		},
		{
			Name: "work_item", Path: "work", Icon: "inbox",
			ID: "item_id", Refs: []string{"item_id"}, Title: []string{"title", "device_name", "item_id"}, State: "severity", States: "severity",
			List: "work_items.list", Find: "work_items.find",
			Columns: []string{"kind", "severity", "device_name", "title", "owner_name", "since"},
			Verbs:   []string{"work_items.take", "work_items.snooze", "work_items.note", "work_items.close", "work_items.release"},
		},
		{
			Name: "door_report", Path: "door-reports",
			Title: []string{"kind"}, State: "state", States: "opening",
			List:    "smart_lockers.devices.door_reports",
			Columns: []string{"requested_at", "kind", "requested_by_name", "state", "reason", "ended_at"},
		},
		{
			Name: "order", Path: "orders", Area: "delivery", Icon: "receipt", Key: "o",
			ID: "order_id", Refs: []string{"order_id"}, Title: []string{"tracking_number", "order_ref"}, State: "order_status_id", States: "order",
			List: "orders.list", Find: "orders.find", Create: "orders.create",
			Columns: []string{"tracking_number", "order_status_id", "recipient.name", "scheduled_date", "type", "order_ref", "package_count"},
			Verbs: []string{"orders.driver", "orders.hold", "orders.cancel", "orders.update", "orders.release", "orders.reroute", "orders.reschedule", "orders.intercept",
				"orders.ready", "orders.take_back", "orders.override", "broker_order_assignments.assign", "third_party.assignments.create", "orders.delete"},
			Related: []catalog.Relation{{Noun: "interception", By: "order_id"}, {Noun: "broker_assignment", By: "order_id"}, {Noun: "third_party_assignment", By: "order_id"}, {Noun: "operation", By: "order_id"}},
			Story: []catalog.Strand{
				{Operation: "orders.find", Fills: map[string]string{"order_id": "{order_id}", "include": "tracking"}, Rows: "tracking.events", Icon: "parcel", At: "occurred_at", What: "status_code", Words: "otep", More: []string{"location.name", "incident_reason", "message"}},
				{Operation: "orders.find", Fills: map[string]string{"order_id": "{order_id}", "include": "operation_events"}, Rows: "operation_events", Icon: "receipt", At: "created_at", What: "operation_name", Words: "operation", More: []string{"operator.name", "note"}},
				{Operation: "order_chat.messages", Fills: map[string]string{"order_id": "{order_id}"}, Rows: "messages", Icon: "chat", At: "created_at", What: "text", More: []string{"sender.name"}},
				{Operation: "webhook_logs.list", Fills: map[string]string{"reference_type": "order", "reference_id": "{order_id}", "per_page": "50"}, Rows: "logs", Icon: "webhook", At: "created_at", What: "event", More: []string{"url", "error"}, State: "status", States: "outbox", Noun: "webhook_log"},
				{Operation: "audit.list", Fills: map[string]string{"target": "order:{order_id}", "per_page": "50"}, Rows: "lines", Icon: "eye", At: "at", What: "action", More: []string{"actor_name", "surface"}},
			},
			Parts: []catalog.Part{{Input: "package_tracking_numbers", Of: "packages", ID: "tracking_number", Title: "tracking_number"}},
		},
		{
			Name: "operation", Path: "operations",
			Title: []string{"operation_name"}, State: "after_status", States: "order",
			List:    "orders.operations",
			Columns: []string{"created_at", "operation_name", "operator.name", "after_status", "note"},
		},
		{
			Name: "interception", Path: "interceptions",
			ID: "interception_id", Title: []string{"requested_outcome"}, State: "status", States: "interception",
			List:    "orders.interceptions",
			Columns: []string{"requested_outcome", "status", "reason", "created_at", "ended_at"},
			Verbs:   []string{"interceptions.approve", "interceptions.reject", "interceptions.hold", "interceptions.execute", "interceptions.fail", "interceptions.withdraw"},
		},
		{
			Name: "route", Path: "routes", Area: "delivery", Icon: "route", Key: "r",
			ID: "route_id", Refs: []string{"route_id"}, Title: []string{"name", "date"}, State: "status", States: "route",
			List: "routes.list", Find: "routes.find", Create: "routes.create",
			Columns: []string{"name", "status", "date", "driver_name", "stop_count", "completed_count", "failed_count"},
			Verbs:   []string{"routes.dispatch", "routes.add", "routes.remove", "routes.update", "routes.cancel"},
			Related: []catalog.Relation{{Noun: "order", By: "route_id"}},
		},
		{
			Name: "driver", Path: "drivers", Area: "delivery", Icon: "person", Key: "d",
			ID: "driver_id", Refs: []string{"driver_id"}, Named: true, Title: []string{"name"}, State: "status", States: "driver",
			List: "drivers.list", Find: "drivers.find",
			Columns: []string{"name", "status", "on_duty", "phone", "vehicle.plate", "today.stops_done", "today.stops_total"},
			Verbs:   []string{"drivers.update"},
			Related: []catalog.Relation{{Noun: "route", By: "driver_id"}, {Noun: "order", By: "driver_id"}},
		},
		{
			Name: "broker_assignment", Path: "contractor-assignments", Area: "delivery", Icon: "handshake",
			ID: "id", Title: []string{"order_ref", "id"}, State: "status", States: "assignment",
			List:    "broker_order_assignments.list",
			Columns: []string{"order_ref", "status", "broker_name", "scheduled_date", "assigned_at", "ended_at"},
		},
		{
			Name: "third_party_assignment", Path: "carrier-assignments", Area: "delivery", Icon: "truck",
			ID: "assignment_number", Title: []string{"assignment_number"}, State: "status", States: "third_party",
			List: "third_party.assignments.list", Find: "third_party.assignments.find",
			Columns: []string{"assignment_number", "status", "provider.name", "order.tracking_number", "created_at", "ended_at"},
			Verbs:   []string{"third_party.assignments.cancel"},
		},
		{
			Name: "webhook_url", Path: "webhook-urls", Area: "connections", Icon: "webhook", Key: "h",
			ID: "url_id", Refs: []string{"url_id"}, Title: []string{"url"}, State: "status", States: "endpoint",
			List:    "webhook_urls.list",
			Columns: []string{"url", "status", "waiting", "failure_rate_24h", "last_success_at", "last_failure_at"},
			Verbs:   []string{"webhook_urls.check_up", "webhook_urls.pause", "webhook_urls.resume"},
			Related: []catalog.Relation{{Noun: "webhook_log", By: "url_id"}},
		},
		{
			Name: "webhook_log", Path: "webhook-log", Area: "connections", Icon: "list",
			ID: "id", Title: []string{"event"}, State: "status", States: "outbox",
			List: "webhook_logs.list", Find: "webhook_logs.find",
			Columns: []string{"event", "status", "reference_id", "url", "attempt", "http_status", "created_at"},
			Verbs:   []string{"webhook_logs.replay"},
		},
		{
			Name: "webhook_setting", Path: "webhook-settings", Area: "connections", Icon: "sliders",
			Find: "webhook_settings.find", Verbs: []string{"webhook_settings.save", "webhook_settings.test"},
		},
		{
			Name: "provider", Path: "providers", Area: "connections", Icon: "building",
			ID: "id", Refs: []string{"provider_id"}, Named: true, Title: []string{"name"},
			List: "providers.list", Find: "providers.find", Create: "providers.create",
			Columns: []string{"name", "code", "services", "source_type", "livemode_allowed", "created_at"},
			Verbs:   []string{"providers.edit", "providers.tokens.create"},
			Related: []catalog.Relation{{Noun: "provider_token", By: "id"}},
		},
		{
			Name: "provider_token", Path: "provider-tokens",
			Title:   []string{"name"},
			List:    "providers.tokens.list",
			Columns: []string{"name", "created_at", "expires_at"},
		},
		{
			Name: "api_key", Path: "api-keys", Area: "connections", Icon: "key",
			ID: "id", Title: []string{"name"},
			List: "user.api_keys.list", Find: "user.api_keys.find", Create: "user.api_keys.create",
			Columns: []string{"name", "profile", "scopes", "require_approval", "created_at", "expires_at"},
			Verbs:   []string{"user.api_keys.revoke"},
		},
		{
			Name: "program", Path: "programs", Area: "connections", Icon: "robot",
			ID: "id", Title: []string{"name"},
			List:    "user.agents.list",
			Columns: []string{"name", "profile", "redirect_host", "last_used_at", "expires_at"},
			Verbs:   []string{"user.agents.end"},
		},
		{
			Name: "user", Path: "people", Area: "business", Icon: "people",
			ID: "id", Refs: []string{"user_id"}, Named: true, Title: []string{"name", "email"},
			List: "users.list", Find: "users.find", Create: "users.create",
			Columns: []string{"name", "email", "account_type", "enabled", "permissions", "created_at"},
			Verbs:   []string{"users.edit", "users.password_reset", "users.second_factor.reset", "users.sessions.end"},
			Related: []catalog.Relation{{Noun: "session", By: "id"}},
		},
		{
			Name: "session", Path: "sessions",
			Title: []string{"name"}, List: "users.sessions.list",
			Columns: []string{"name", "created_at", "expires_at"},
		},
		{
			Name: "invitation", Path: "invitations", Area: "business", Icon: "mail",
			ID: "invitation_id", Title: []string{"name", "email"}, State: "status", States: "invitation",
			List: "invitations.list", Create: "invitations.create",
			Columns: []string{"name", "email", "status", "account_type", "created_at", "expires_at"},
			Verbs:   []string{"invitations.withdraw"},
		},
		{
			Name: "customer", Path: "customers", Area: "business", Icon: "customer",
			ID: "id", Refs: []string{"customer_id"}, Named: true, Title: []string{"name", "email"},
			List: "customers.list", Find: "customers.find", Create: "customers.create",
			Columns: []string{"name", "email", "enabled", "created_at"},
			Verbs:   []string{"customers.edit"},
			Related: []catalog.Relation{{Noun: "order", By: "customer_id"}},
		},
		{
			Name: "job", Path: "jobs", Area: "business", Icon: "list",
			ID: "job_id", Refs: []string{"job_id"}, Title: []string{"file_name", "operation", "job_id"}, State: "status", States: "job",
			List: "jobs.list", Find: "jobs.find",
			Columns: []string{"created_at", "operation", "status", "noun", "file_name", "total", "succeeded", "failed", "created_by"},
			Page:    "/console/jobs/{id}", // with the verbs that its state allows
		},
		{
			Name: "audit_line", Path: "audit", Area: "business", Icon: "eye", Key: "a",
			Title: []string{"action"}, State: "outcome", States: "outcome",
			List:    "audit.list",
			Columns: []string{"at", "actor_name", "action", "target", "outcome", "surface", "ip"},
		},
		{
			Name: "operator_pass", Path: "operator-passes", Area: "business", Icon: "badge",
			ID: "pass_id", Title: []string{"reason"}, State: "status", States: "pass",
			List:    "operator_passes.list",
			Columns: []string{"operator", "status", "reason", "created_at", "expires_at", "ended_at"},
			Verbs:   []string{"operator_passes.end"},
		},
		{
			Name: "feature", Path: "features", Area: "business", Icon: "switch",
			ID: "family", Title: []string{"family"},
			List: "features.list", Columns: []string{"family", "enabled", "state"},
			Verbs: []string{"features.switch"},
		},
		{
			Name: "app", Path: "apps", Area: "business", Icon: "phone",
			ID: "code", Title: []string{"name", "code"},
			List: "apps.list", Find: "apps.find", Columns: []string{"code", "name", "enabled", "support_url"},
			Verbs: []string{"apps.save"},
		},
		{
			Name: "setting", Path: "settings", Area: "business", Icon: "sliders", Key: "s",
			Find: "settings.find", Verbs: []string{"settings.save"},
		},
		{
			Name: "price_list", Path: "prices", Area: "business", Icon: "coins",
			Find: "settings.prices.find", Verbs: []string{"settings.prices.save"},
		},
		{
			Name: "chat_setting", Path: "chat-settings", Area: "business", Icon: "chat",
			Find: "order_chat.settings.find", Verbs: []string{"order_chat.settings.save"},
		},
		{
			Name: "business", Path: "businesses", Area: "platform", Icon: "building",
			ID: "business_id", Refs: []string{"business_id"}, Named: true, Title: []string{"name", "code"}, State: "status", States: "business",
			List: "platform.businesses.list", Find: "platform.businesses.find", Create: "platform.businesses.create",
			Columns: []string{"name", "status", "code", "timezone", "limits.cabinets", "suspended_at"},
			Verbs:   []string{"platform.businesses.edit", "platform.businesses.suspend", "platform.businesses.resume", "platform.passes.open", "platform.exports.begin"},
			Related: []catalog.Relation{{Noun: "platform_pass", By: "business_id"}},
		},
		{
			Name: "platform_pass", Path: "platform-passes",
			ID: "pass_id", Title: []string{"reason"}, State: "status", States: "pass",
			List:    "platform.passes.list",
			Columns: []string{"operator", "status", "reason", "created_at", "expires_at"},
			Verbs:   []string{"platform.passes.end"},
		},
		{
			Name: "health", Path: "health", Area: "platform", Icon: "pulse",
			Title:   []string{"business_id"},
			List:    "platform.health.list",
			Columns: []string{"business_id", "cabinets", "cabinets_online", "webhook_endpoints", "webhook_endpoints_failing", "webhook_backlog", "counted_at"},
		},
		{
			Name: "platform_audit_line", Path: "platform-audit", Area: "platform", Icon: "eye",
			Title: []string{"action"}, State: "outcome", States: "outcome",
			List:    "platform.audit.list",
			Columns: []string{"at", "actor_name", "action", "target", "outcome", "ip"},
		},
	}
	for i := range list {
		n := &list[i]
		n.Verbs = slices.DeleteFunc(n.Verbs, func(name string) bool { return table.Find(name) == nil })
		if table.Find(n.Create) == nil {
			n.Create = ""
		}
	}
	return list
}
