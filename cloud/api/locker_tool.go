package api

import "github.com/postern-io/postern/cloud/catalog"

// lockerTools are the tools of the server for staff of cabinets: one line
// each, over an operation of the table, with its members as arguments. What a tool
// asks for is that of its operation; its writes have a person's word besides.
func lockerTools(c *catalog.Catalog) []catalog.Tool {
	var out []catalog.Tool
	for _, w := range []catalog.Whole{
		{Name: "list_cabinets", Operation: "smart_lockers.devices.list", Category: "cabinets"},
		{Name: "get_cabinet", Operation: "smart_lockers.devices.find", Category: "cabinets", ID: "device_id"},
		{Name: "list_cabinet_door_reports", Operation: "smart_lockers.devices.door_reports", Category: "cabinets", ID: "device_id"},
		{Name: "get_cabinet_health", Operation: "smart_lockers.devices.health", Category: "cabinets", ID: "device_id"},
		{Name: "edit_cabinet", Operation: "smart_lockers.devices.edit", Category: "cabinets", ID: "device_id"},
		{Name: "set_cabinet_layout", Operation: "smart_lockers.devices.set_layout", Category: "cabinets", ID: "device_id"},
		{Name: "replace_cabinet_hardware", Operation: "smart_lockers.devices.replace_hardware", Category: "cabinets", ID: "device_id"},
		{Name: "retire_cabinet", Operation: "smart_lockers.devices.retire", Category: "cabinets", ID: "device_id"},
		{Name: "list_device_orders", Operation: "device_orders.list", Category: "cabinets"},
		{Name: "get_device_order", Operation: "device_orders.find", Category: "cabinets", ID: "device_order_id"},
		{Name: "remove_device_order", Operation: "device_orders.remove", Category: "cabinets", ID: "device_order_id"},
		{Name: "extend_device_order", Operation: "device_orders.extend", Category: "cabinets", ID: "device_order_id", Effect: catalog.Creates},
		{Name: "resend_device_order_code", Operation: "device_orders.resend_code", Category: "cabinets", ID: "device_order_id", Effect: catalog.Creates},
		{Name: "list_cabinet_exceptions", Operation: "device_order_exceptions.list", Category: "cabinets"},
		{Name: "explain_cabinet_exception", Operation: "device_order_exceptions.find", Category: "cabinets", ID: "exception_id"},
		{Name: "resolve_cabinet_exception", Operation: "device_order_exceptions.resolve", Category: "cabinets", ID: "exception_id"},
		{Name: "dismiss_cabinet_exception", Operation: "device_order_exceptions.dismiss", Category: "cabinets", ID: "exception_id"},
		{Name: "open_cabinet_doors", Operation: "smart_lockers.devices.open", Category: "cabinets", ID: "device_id"},
		{Name: "block_compartment", Operation: "smart_lockers.grids.block", Category: "cabinets", ID: "device_id"},
		{Name: "unblock_compartment", Operation: "smart_lockers.grids.unblock", Category: "cabinets", ID: "device_id"},
		{Name: "clear_compartment", Operation: "smart_lockers.grids.clear", Category: "cabinets", ID: "device_id"},
		{Name: "send_cabinet_command", Operation: "smart_lockers.devices.command", Category: "cabinets", ID: "device_id", Effect: catalog.Creates},
		{Name: "report_cabinet_stolen", Operation: "smart_lockers.devices.report_stolen", Category: "cabinets", ID: "device_id"},

		{Name: "list_locker_deliveries", Operation: "smart_lockers.deliveries.list", Category: "deliveries"},
		{Name: "get_locker_delivery", Operation: "smart_lockers.deliveries.find", Category: "deliveries", ID: "delivery_id"},
		{Name: "confirm_locker_deposit", Operation: "smart_lockers.deliveries.confirm", Category: "deliveries", ID: "delivery_id"},
		{Name: "cancel_locker_delivery", Operation: "smart_lockers.deliveries.cancel", Category: "deliveries", ID: "delivery_id"},
		{Name: "expire_locker_delivery", Operation: "smart_lockers.deliveries.expire", Category: "deliveries", ID: "delivery_id"},

		{Name: "list_contractor_assignments", Operation: "broker_order_assignments.list", Category: "contractors"},
		{Name: "list_delivery_companies", Operation: "third_party.assignments.list", Category: "contractors"},
		{Name: "get_delivery_company_assignment", Operation: "third_party.assignments.find", Category: "contractors"},

		{Name: "list_conversations", Operation: "order_chat.conversations", Category: "chats"},
		{Name: "get_conversation", Operation: "order_chat.find", Category: "chats"},
		{Name: "list_conversation_messages", Operation: "order_chat.messages", Category: "chats"},
		{Name: "list_conversation_participants", Operation: "order_chat.participants.list", Category: "chats"},
		{Name: "close_conversation", Operation: "order_chat.close", Category: "chats", Effect: catalog.Overwrites},
		{Name: "reopen_conversation", Operation: "order_chat.reopen", Category: "chats", Effect: catalog.Overwrites},
	} {
		out = append(out, c.ToolOf(catalog.LockersServer, w))
	}
	return out
}
