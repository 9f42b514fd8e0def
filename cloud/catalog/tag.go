package catalog

import "slices"

// tags are the interface areas, whether an operation stands in them or not.
var tags = []string{"Broker Order Assignments", "User", "Driver", "Client", "Shipping", "AddressBook", "DriverInfo", "Skills", "ReturnReasons", "LabelService",
	"OCR", "POI", "Dataset", "Alliance", "Tracking", "Customer", "ThirdPartyDelivery", "Warehouse Transfer", "InstantRider", "OTEP", "Custom Maps",
	"Loading Planner", "Packing Plans", "Smart Locker", "Webhooks", "Warehouse Mobile", "Platform Apps", "Dispatch", "Device Operations", "Reservations",
	"Driver Route Board", "Locker Resale", "Luggage Relay", "Locker Storage", "Consolidation", "Order Chat", "Operations AI Agent", "SMS Marketing",
	"Device Orders", "Documents", "Fleets", "Locker Shop", "Pick Batching",
	// Ours, where operations fit none of those.
	"Features"}

// Tags lists the interface areas.
func Tags() []string { return slices.Clone(tags) }
