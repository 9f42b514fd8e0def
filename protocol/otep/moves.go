package otep

import "slices"

// moves are the codes that may follow a code. Besides, any code may open a
// timeline and repeat itself.
var moves = map[Code][]Code{
	InformationSubmitted: {
		BookingConfirmed, AwaitingPickup, OutForPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit,
		PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	BookingConfirmed: {
		AwaitingPickup, OutForPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound,
		RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	AwaitingPickup: {
		OutForPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute,
		RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	OutForPickup: {
		AwaitingPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute,
		RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	PickedUp: {
		Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryFailed,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	PickupFailed: {
		AwaitingPickup, OutForPickup, PickedUp, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute,
		RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	PickupRescheduled: {
		AwaitingPickup, OutForPickup, PickedUp, PickupFailed, Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute,
		RouteCancelled, OutForDelivery, Delivered, DeliveryRescheduled, Cancelled,
	},
	Received: {
		ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryFailed,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	ArrivalScan: {
		Received, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryFailed,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	InTransit: {
		Received, ArrivalScan, PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryFailed,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	PackageOutbound: {
		Received, ArrivalScan, InTransit, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered, DeliveryFailed, DeliveryRescheduled,
		ReturnToSender, RejectedByRecipient, Cancelled,
	},
	RemovedFromRoute: {
		AwaitingPickup, OutForPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound,
		RouteCancelled, OutForDelivery, Delivered, DeliveryFailed, DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	RouteCancelled: {
		AwaitingPickup, OutForPickup, PickedUp, PickupFailed, PickupRescheduled, Received, ArrivalScan, InTransit, PackageOutbound,
		RemovedFromRoute, OutForDelivery, Delivered, DeliveryFailed, DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	OutForDelivery: {
		Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled, Delivered, DeliveryFailed,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	Delivered: {ReturnToSender},
	DeliveryFailed: {
		Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled, OutForDelivery, Delivered,
		DeliveryRescheduled, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	DeliveryRescheduled: {
		AwaitingPickup, OutForPickup, PickedUp, Received, ArrivalScan, InTransit, PackageOutbound, RemovedFromRoute, RouteCancelled,
		OutForDelivery, Delivered, DeliveryFailed, ReturnToSender, RejectedByRecipient, Cancelled,
	},
	ReturnToSender:      {},
	RejectedByRecipient: {ReturnToSender},
	Cancelled:           {},
}

// allowed is moves as it is asked.
var allowed = func() map[[2]Code]bool {
	m := make(map[[2]Code]bool)
	for from, next := range moves {
		for _, to := range next {
			m[[2]Code{from, to}] = true
		}
	}
	return m
}()

// Transition reports whether to may directly follow from. Both are universal
// codes; others are transparent: they are left out and their neighbours
// compared, so that any move from or to one is valid here.
func Transition(from, to Code) bool {
	if from == to || !isUniversal(from) || !isUniversal(to) {
		return true
	}
	return allowed[[2]Code{from, to}]
}

// Next lists the codes that may follow a universal code besides itself.
func Next(c Code) []Code { return slices.Clone(moves[c]) }

// Move is an event that must not follow the one before it.
type Move struct {
	Index    int // of the later event in what was given
	From, To Code
	Ended    bool // From is terminal
}

// BadMoves lists the invalid moves of events that stand in the order of
// Compare. Withdrawn events, those that are not actual and those with codes
// that are not universal do not take part.
func BadMoves(events []Event) []Move {
	var bad []Move
	var last Code
	for i := range events {
		e := &events[i]
		if !e.counts() || !isUniversal(e.StatusCode) {
			continue
		}
		if last != "" && !Transition(last, e.StatusCode) {
			bad = append(bad, Move{Index: i, From: last, To: e.StatusCode, Ended: byCode[last].Terminal})
		}
		last = e.StatusCode
	}
	return bad
}

func isUniversal(c Code) bool {
	s, ok := byCode[c]
	return ok && s.Universal()
}
