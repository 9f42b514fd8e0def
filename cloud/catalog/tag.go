package catalog

import "slices"

// tag is an interface area.
type tag struct{ name, about string }

// tags are the interface areas, whether an operation stands in them or not.
var tags = []tag{
	{"Broker Order Assignments", "Which contractor delivers which orders"},
	{"User", "Signing in, people and their keys"},
	{"Driver", "What drivers do on their way"},
	{"Client", "A business's orders, routes, customers, partners and settings"},
	{"Shipping", "Labels and shipments of carriers"},
	{"AddressBook", "Addresses that are used again"},
	{"DriverInfo", "Drivers as their business keeps them"},
	{"Skills", "What drivers are able to carry"},
	{"ReturnReasons", "Why goods come back"},
	{"LabelService", "Making and printing labels"},
	{"OCR", "Reading labels from pictures"},
	{"POI", "Places of interest"},
	{"Dataset", "Sets of data for evaluation"},
	{"Alliance", "Businesses that deliver for each other"},
	{"Tracking", "Where an order is, and what was done to it"},
	{"Customer", "What a business's customers do"},
	{"ThirdPartyDelivery", "Deliveries of partners into lockers, and orders that delivery companies carry"},
	{"Warehouse Transfer", "Goods between warehouses"},
	{"InstantRider", "Riders on demand"},
	{"OTEP", "Timelines in the open tracking protocol and its projections"},
	{"Custom Maps", "Maps of a business's own"},
	{"Loading Planner", "What is loaded where"},
	{"Packing Plans", "What is packed in what"},
	{"Smart Locker", "Cabinets and their compartments"},
	{"Webhooks", "Where events are sent, and what became of them"},
	{"Warehouse Mobile", "Handhelds in the warehouse"},
	{"Platform Apps", "Settings of the apps"},
	{"Dispatch", "Who is sent where"},
	{"Device Operations", "Devices and how they are kept running"},
	{"Reservations", "Compartments that are kept free"},
	{"Driver Route Board", "Routes that drivers choose from"},
	{"Locker Resale", "Goods sold from lockers"},
	{"Luggage Relay", "Luggage from locker to locker"},
	{"Locker Storage", "Keeping things in lockers"},
	{"Consolidation", "Several parcels as one"},
	{"Order Chat", "Talk about an order"},
	{"Operations AI Agent", "Agents that run operations"},
	{"SMS Marketing", "Text messages to recipients"},
	{"Device Orders", "Orders that are placed at a device"},
	{"Documents", "Papers that go with goods"},
	{"Fleets", "Vehicles"},
	{"Locker Shop", "Shops in lockers"},
	{"Pick Batching", "Orders that are picked together"},
	// Ours, where operations fit none of those.
	{"Features", "What is switched on for whom"},
}

// Tags lists the names of the interface areas.
func Tags() []string {
	names := make([]string, len(tags))
	for i, t := range tags {
		names[i] = t.name
	}
	return names
}

func knownTag(name string) bool { return slices.Contains(Tags(), name) }
