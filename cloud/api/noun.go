package api

// navigation are the nouns of the console in the order of its navigation. A noun of
// another family comes after those of its area.
var navigation = []string{
	"cabinet", "delivery", "device_order", "cabinet_exception", "rollout", "cabinet_profile", "site", "announced_package", "work_item", "door_report", "notification", "sandbox_message",
	"order", "operation", "interception", "route", "driver", "broker_assignment", "third_party_assignment",
	"webhook_url", "webhook_log", "webhook_setting", "provider", "provider_token", "api_key", "program",
	"user", "session", "identity", "invitation", "customer", "job", "audit_line", "operator_pass", "feature", "app", "setting", "price_list", "chat_setting",
	"business", "platform_pass", "health", "platform_audit_line",
}
