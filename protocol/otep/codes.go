package otep

// Rows of the coarse platforms, which know fulfilment only.
var (
	lineNew       = Coarse{Walmart: "Created", BigCommerceID: 11, BigCommerce: "Awaiting Fulfillment", MagentoState: "new", MagentoStatus: "pending", WooCommerce: "processing", Etsy: "paid", EtsyShipped: false}
	lineAccepted  = Coarse{Walmart: "Acknowledged", BigCommerceID: 11, BigCommerce: "Awaiting Fulfillment", MagentoState: "processing", MagentoStatus: "processing", WooCommerce: "processing", Etsy: "paid", EtsyShipped: false}
	lineWaiting   = Coarse{Walmart: "Acknowledged", BigCommerceID: 9, BigCommerce: "Awaiting Shipment", MagentoState: "processing", MagentoStatus: "processing", WooCommerce: "processing", Etsy: "paid", EtsyShipped: false}
	lineShipped   = Coarse{Walmart: "Shipped", BigCommerceID: 2, BigCommerce: "Shipped", MagentoState: "processing", MagentoStatus: "processing", WooCommerce: "processing", Etsy: "completed", EtsyShipped: true}
	lineDelivered = Coarse{Walmart: "Delivered", BigCommerceID: 10, BigCommerce: "Completed", MagentoState: "complete", MagentoStatus: "complete", WooCommerce: "completed", Etsy: "completed", EtsyShipped: true}
	lineHeld      = Coarse{Walmart: "Shipped", BigCommerceID: 12, BigCommerce: "Manual Verification Required", MagentoState: "holded", MagentoStatus: "holded", WooCommerce: "on-hold", Etsy: "completed", EtsyShipped: true}
	lineCancelled = Coarse{Walmart: "Cancelled", BigCommerceID: 5, BigCommerce: "Cancelled", MagentoState: "canceled", MagentoStatus: "canceled", WooCommerce: "cancelled", Etsy: "canceled", EtsyShipped: false}
)

// universal are the codes that every profile has, in the order of their numbers.
var universal = []Spec{
	{
		Code: InformationSubmitted, Phase: PhasePreShipment, Rank: 10, Meaning: "shipment data received",
		BizStep: "commissioning", Disposition: "active", OneRecord: "BKD", Transport: "order_received", Rec24: "321",
		AfterShipTag: "InfoReceived", AfterShipSubtag: "InfoReceived_001", Shopify: "confirmed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineNew,
	},
	{
		Code: BookingConfirmed, Phase: PhasePreShipment, Rank: 20, Meaning: "transport accepted by the operator",
		BizStep: "commissioning", Disposition: "active", OneRecord: "BKD", Transport: "booked", Rec24: "6",
		AfterShipTag: "InfoReceived", AfterShipSubtag: "InfoReceived_001", Shopify: "confirmed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineAccepted,
	},
	{
		Code: AwaitingPickup, Phase: PhasePreShipment, Rank: 30, Meaning: "ready at the origin",
		BizStep: "staging_outbound", Disposition: "in_progress", OneRecord: "FOH", Transport: "ready_for_pickup", Rec24: "64",
		AfterShipTag: "InfoReceived", AfterShipSubtag: "InfoReceived_001", Shopify: "confirmed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineWaiting,
	},
	{
		Code: OutForPickup, Phase: PhasePickup, Rank: 40, Meaning: "collector on the way",
		BizStep: "departing", Disposition: "in_progress", OneRecord: "FOH", Transport: "pickup_en_route", Rec24: "64",
		AfterShipTag: "InfoReceived", AfterShipSubtag: "InfoReceived_001", Shopify: "confirmed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineWaiting,
	},
	{
		Code: PickedUp, Phase: PhasePickup, PoD: true, Rank: 50, Meaning: "goods collected",
		BizStep: "receiving", Disposition: "in_progress", OneRecord: "RCS", Transport: "picked_up", Rec24: "13",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_002", Shopify: "carrier_picked_up",
		Amazon: "PickupDone", AmazonSummary: "InTransit", Coarse: lineShipped,
	},
	{
		Code: PickupFailed, Phase: PhaseException, Rank: 45, Meaning: "collection attempt failed",
		BizStep: "receiving", Disposition: "in_progress", OneRecord: "DIS", Transport: "pickup_failed", Rec24: "53",
		AfterShipTag: "Exception", AfterShipSubtag: "Exception_001", Shopify: "delayed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineWaiting,
	},
	{
		Code: PickupRescheduled, Phase: PhaseException, Rank: 45, Meaning: "new collection time",
		BizStep: "staging_outbound", Disposition: "in_progress", OneRecord: "FOH", Transport: "pickup_rescheduled", Rec24: "339",
		AfterShipTag: "InfoReceived", AfterShipSubtag: "InfoReceived_001", Shopify: "delayed",
		Amazon: "ReadyForReceive", AmazonSummary: "PreTransit", Coarse: lineWaiting,
	},
	{
		Code: Received, Phase: PhaseInbound, Rank: 60, Meaning: "taken in at a facility",
		BizStep: "receiving", Disposition: "in_progress", OneRecord: "RCF", Transport: "received_at_facility", Rec24: "74",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_002", Shopify: "in_transit",
		Amazon: "ArrivedAtCarrierFacility", AmazonSummary: "InTransit", Coarse: lineShipped,
	},
	{
		Code: ArrivalScan, Phase: PhaseInbound, Rank: 60, Meaning: "scanned on arrival at a node",
		BizStep: "arriving", Disposition: "in_transit", OneRecord: "ARR", Transport: "arrived_at_facility", Rec24: "1",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_003", Shopify: "in_transit",
		Amazon: "ArrivedAtCarrierFacility", AmazonSummary: "InTransit", Coarse: lineShipped,
	},
	{
		Code: InTransit, Phase: PhaseTransit, Rank: 70, Meaning: "moving between nodes",
		BizStep: "departing", Disposition: "in_transit", OneRecord: "DEP", Transport: "in_transit", Rec24: "31",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_001", Shopify: "in_transit",
		Amazon: "Departed", AmazonSummary: "InTransit", Coarse: lineShipped,
	},
	{
		Code: PackageOutbound, Phase: PhaseTransit, Rank: 70, Meaning: "left a node",
		BizStep: "staging_outbound", Disposition: "in_transit", OneRecord: "DEP", Transport: "departed", Rec24: "127",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_007", Shopify: "in_transit",
		Amazon: "Departed", AmazonSummary: "InTransit", Coarse: lineShipped,
	},
	{
		Code: RemovedFromRoute, Phase: PhaseException, Rank: 65, Meaning: "taken off its planned route",
		BizStep: "holding", Disposition: "in_progress", OneRecord: "DIS", Transport: "in_transit", Rec24: "76",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_001", Shopify: "delayed",
		Amazon: "ArrivedAtCarrierFacility", AmazonSummary: "InTransit", Coarse: lineShipped, Uncollected: lineWaiting,
	},
	{
		Code: RouteCancelled, Phase: PhaseException, Rank: 65, Meaning: "its route was cancelled",
		BizStep: "holding", Disposition: "in_progress", OneRecord: "DIS", Transport: "in_transit", Rec24: "76",
		AfterShipTag: "InTransit", AfterShipSubtag: "InTransit_001", Shopify: "delayed",
		Amazon: "ArrivedAtCarrierFacility", AmazonSummary: "InTransit", Coarse: lineShipped, Uncollected: lineWaiting,
	},
	{
		Code: OutForDelivery, Phase: PhaseOutForDelivery, Rank: 80, Meaning: "on the delivery vehicle",
		BizStep: "departing", Disposition: "in_transit", OneRecord: "NFD", Transport: "out_for_delivery", Rec24: "113",
		AfterShipTag: "OutForDelivery", AfterShipSubtag: "OutForDelivery_001", Shopify: "out_for_delivery",
		Amazon: "OutForDelivery", AmazonSummary: "OutForDelivery", Coarse: lineShipped,
	},
	{
		Code: Delivered, Phase: PhaseDelivered, Terminal: true, PoD: true, Rank: 90, Meaning: "handed to the recipient",
		BizStep: "receiving", Disposition: "received", OneRecord: "DLV", Transport: "delivered", Rec24: "21",
		AfterShipTag: "Delivered", AfterShipSubtag: "Delivered_001", AfterShipSigned: "Delivered_003", Shopify: "delivered",
		Amazon: "Delivered", AmazonSummary: "Delivered", Coarse: lineDelivered,
	},
	{
		Code: DeliveryFailed, Phase: PhaseException, Rank: 85, Meaning: "delivery attempt failed",
		BizStep: "holding", Disposition: "in_progress", OneRecord: "AWD", Transport: "delivery_failed", Rec24: "23",
		AfterShipTag: "AttemptFail", AfterShipSubtag: "AttemptFail_001", Shopify: "attempted_delivery",
		Amazon: "DeliveryAttempted", AmazonSummary: "DeliveryAttempted", Coarse: lineHeld,
	},
	{
		Code: DeliveryRescheduled, Phase: PhaseException, Rank: 85, Meaning: "new delivery time",
		BizStep: "holding", Disposition: "in_progress", OneRecord: "AWD", Transport: "delivery_rescheduled", Rec24: "105",
		AfterShipTag: "Exception", AfterShipSubtag: "Exception_005", Shopify: "delayed",
		Amazon: "RecipientRequestedAlternateDeliveryTiming", AmazonSummary: "InTransit", Coarse: lineShipped, Uncollected: lineWaiting,
	},
	{
		Code: ReturnToSender, Phase: PhaseReturn, Terminal: true, Rank: 95, Meaning: "going or gone back to the sender",
		BizStep: "shipping", Disposition: "returned", OneRecord: "RTS", Transport: "returned", Rec24: "82",
		AfterShipTag: "Exception", AfterShipSubtag: "Exception_011", Shopify: "failure",
		Amazon: "ReturnInitiated", AmazonSummary: "Undeliverable", Coarse: lineHeld,
	},
	{
		Code: RejectedByRecipient, Phase: PhaseReturn, Terminal: true, Rank: 94, Meaning: "recipient refused",
		BizStep: "holding", Disposition: "returned", OneRecord: "RTS", Transport: "rejected", Rec24: "325",
		AfterShipTag: "Exception", AfterShipSubtag: "Exception_003", Shopify: "failure",
		Amazon: "Rejected", AmazonSummary: "Rejected", Coarse: lineHeld,
	},
	{
		Code: Cancelled, Phase: PhaseCancelled, Terminal: true, Rank: 96, Meaning: "shipment cancelled",
		BizStep: "void_shipping", Disposition: "inactive", OneRecord: "CAN", Transport: "cancelled", Rec24: "324",
		AfterShipTag: "Exception", AfterShipSubtag: "Exception_001", Shopify: "failure",
		Amazon: "PickupCancelled", AmazonSummary: "PickupCancelled", Coarse: lineCancelled,
	},
}

// special are the codes of single profiles, all of them experimental. An
// external value that is empty here is that of the parent.
var special = []Spec{
	{Code: AvailableForPickup, Profile: "locker", Phase: PhaseOutForDelivery, Parent: OutForDelivery, BizStep: "storing", Rec24: "112", AfterShipTag: "AvailableForPickup", AfterShipSubtag: "AvailableForPickup_001", Shopify: "ready_for_pickup", Amazon: "AvailableForPickup", AmazonSummary: "AwaitingCustomerPickup"},
	{Code: PickupOverdue, Profile: "locker", Phase: PhaseException, Parent: DeliveryFailed, Reason: "pickup_expired"},
	{Code: RemovedFromDevice, Profile: "locker", Phase: PhaseException, Parent: RemovedFromRoute},
	{Code: Stored, Profile: "storage", Phase: PhaseInbound, Parent: Received, BizStep: "storing", Rec24: "91"},
	{Code: ShipoutRequested, Profile: "storage", Phase: PhasePreShipment, Parent: BookingConfirmed},
	{Code: ShipoutReleased, Profile: "storage", Phase: PhaseTransit, Parent: PackageOutbound},
	{Code: Loading, Profile: "moving", Phase: PhasePickup, Parent: PickedUp, BizStep: "loading", Rec24: "132"},
	{Code: Unloading, Profile: "moving", Phase: PhaseOutForDelivery, Parent: OutForDelivery, BizStep: "unloading", Rec24: "135"},
	{Code: Preparing, Profile: "food", Phase: PhasePreShipment, Parent: BookingConfirmed},
	{Code: Ready, Profile: "food", Phase: PhasePreShipment, Parent: AwaitingPickup},
	{Code: Intercepted, Profile: "parcel", Phase: PhaseException, Parent: RemovedFromRoute, Rec24: "90"},
	{Code: CustomsHold, Profile: "parcel", Phase: PhaseException, Parent: RemovedFromRoute, Rec24: "128", AfterShipTag: "Exception", AfterShipSubtag: "Exception_004"},
}
