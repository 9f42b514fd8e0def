package otep

// Universal status codes, valid in every profile.
const (
	InformationSubmitted Code = "information_submitted"
	BookingConfirmed     Code = "booking_confirmed"
	AwaitingPickup       Code = "awaiting_pickup"
	OutForPickup         Code = "out_for_pickup"
	PickedUp             Code = "picked_up"
	PickupFailed         Code = "pickup_failed"
	PickupRescheduled    Code = "pickup_rescheduled"
	Received             Code = "received"
	ArrivalScan          Code = "arrival_scan"
	InTransit            Code = "in_transit"
	PackageOutbound      Code = "package_outbound"
	RemovedFromRoute     Code = "removed_from_route"
	RouteCancelled       Code = "route_cancelled"
	OutForDelivery       Code = "out_for_delivery"
	Delivered            Code = "delivered"
	DeliveryFailed       Code = "delivery_failed"
	DeliveryRescheduled  Code = "delivery_rescheduled"
	ReturnToSender       Code = "return_to_sender"
	RejectedByRecipient  Code = "rejected_by_recipient"
	Cancelled            Code = "cancelled"
)

// Codes of the locker profile.
const (
	AvailableForPickup Code = "x-available_for_pickup"
	PickupOverdue      Code = "x-pickup_overdue"
	RemovedFromDevice  Code = "x-removed_from_device"
)

// Phases. The first six are ordered; the last three stand beside them.
const (
	PhasePreShipment    = "pre_shipment"
	PhasePickup         = "pickup"
	PhaseInbound        = "inbound"
	PhaseTransit        = "transit"
	PhaseOutForDelivery = "out_for_delivery"
	PhaseDelivered      = "delivered"
	PhaseException      = "exception"
	PhaseReturn         = "return"
	PhaseCancelled      = "cancelled"
)

// Spec is one row of the vocabulary.
type Spec struct {
	Code     Code
	Phase    string
	Profile  string // the code's own; "" for a universal code
	Parent   Code   // of a profile's code
	Terminal bool
	PoD      bool // may carry a proof of delivery
	Rank     int  // breaks ties between events of one instant
}

var vocabulary = []Spec{
	{Code: InformationSubmitted, Phase: PhasePreShipment, Rank: 10},
	{Code: BookingConfirmed, Phase: PhasePreShipment, Rank: 20},
	{Code: AwaitingPickup, Phase: PhasePreShipment, Rank: 30},
	{Code: OutForPickup, Phase: PhasePickup, Rank: 40},
	{Code: PickedUp, Phase: PhasePickup, PoD: true, Rank: 50},
	{Code: PickupFailed, Phase: PhaseException, Rank: 45},
	{Code: PickupRescheduled, Phase: PhaseException, Rank: 45},
	{Code: Received, Phase: PhaseInbound, Rank: 60},
	{Code: ArrivalScan, Phase: PhaseInbound, Rank: 60},
	{Code: InTransit, Phase: PhaseTransit, Rank: 70},
	{Code: PackageOutbound, Phase: PhaseTransit, Rank: 70},
	{Code: RemovedFromRoute, Phase: PhaseException, Rank: 65},
	{Code: RouteCancelled, Phase: PhaseException, Rank: 65},
	{Code: OutForDelivery, Phase: PhaseOutForDelivery, Rank: 80},
	{Code: Delivered, Phase: PhaseDelivered, Terminal: true, PoD: true, Rank: 90},
	{Code: DeliveryFailed, Phase: PhaseException, Rank: 85},
	{Code: DeliveryRescheduled, Phase: PhaseException, Rank: 85},
	{Code: ReturnToSender, Phase: PhaseReturn, Terminal: true, Rank: 95},
	{Code: RejectedByRecipient, Phase: PhaseReturn, Terminal: true, Rank: 94},
	{Code: Cancelled, Phase: PhaseCancelled, Terminal: true, Rank: 96},
	{Code: AvailableForPickup, Phase: PhaseOutForDelivery, Profile: "locker", Parent: OutForDelivery, Rank: 80},
	{Code: PickupOverdue, Phase: PhaseException, Profile: "locker", Parent: DeliveryFailed, Rank: 85},
	{Code: RemovedFromDevice, Phase: PhaseException, Profile: "locker", Parent: RemovedFromRoute, Rank: 65},
}

var byCode = func() map[Code]Spec {
	m := make(map[Code]Spec, len(vocabulary))
	for _, s := range vocabulary {
		m[s.Code] = s
	}
	return m
}()

// Vocabulary lists every registered code.
func Vocabulary() []Spec { return append([]Spec(nil), vocabulary...) }

// Lookup finds a code's row. ok is false for a code that is not registered.
func Lookup(c Code) (s Spec, ok bool) {
	s, ok = byCode[c]
	return s, ok
}

// URI is the address of a code in a timeline of the given profile: a profile's
// own code keeps its profile.
func (s Spec) URI(profile string) string {
	if s.Profile != "" {
		profile = s.Profile
	}
	return "otep:" + profile + ":" + string(s.Code)
}
