package order

import (
	"slices"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Trigger is why an order moves.
type Trigger string

// Triggers (interface 4.4).
const (
	PaymentReceived    Trigger = "payment_received"
	Cancel             Trigger = "cancel"
	Hold               Trigger = "hold"
	Release            Trigger = "release"
	MarkReady          Trigger = "mark_ready"
	PutOnRoute         Trigger = "put_on_route"
	TakeOffRoute       Trigger = "take_off_route" // also: the driver is lost
	AssignDriver       Trigger = "assign_driver"
	DriverAccepts      Trigger = "driver_accepts"
	DriverDeclines     Trigger = "driver_declines"
	HandOver           Trigger = "hand_over"
	FallBack           Trigger = "fall_back" // a third party gave the order back
	ThirdPartyTracking Trigger = "third_party_tracking"
	TakeOver           Trigger = "take_over" // a carrier's event says that it has the goods
	Track              Trigger = "track"     // the timeline came to another code
	StartPickup        Trigger = "start_pickup"
	PickupResult       Trigger = "pickup_result"
	Reschedule         Trigger = "reschedule"
	TakeBack           Trigger = "take_back" // a started order, before its stop
	ReceiveScan        Trigger = "receive_scan"
	Complete           Trigger = "complete" // a pickup order that reached its warehouse
	RunDirect          Trigger = "run_direct"
	OutboundScan       Trigger = "outbound_scan"
	ArriveScan         Trigger = "arrive_scan"
	StartDelivery      Trigger = "start_delivery"
	DeliveryResult     Trigger = "delivery_result"
	Deposit            Trigger = "deposit"
	Collect            Trigger = "collect"
	Overdue            Trigger = "overdue" // not collected in time
	RemoveFromLocker   Trigger = "remove_from_locker"
	Intercept          Trigger = "intercept"
	Withdraw           Trigger = "withdraw"
	ExecuteOutcome     Trigger = "execute_outcome"
	InterceptionFailed Trigger = "interception_failed"
)

// Places in the table that are not one status.
const (
	back       cloud.OrderStatus = -1 // the status before planning or before the third party
	remembered cloud.OrderStatus = -2 // the status before the interception
)

type statuses = []cloud.OrderStatus

// move is one row of the table: from any of these to any of those.
type move struct {
	from    statuses
	to      statuses
	trigger Trigger
	source  string // OTEP source type of the events that it writes
	// code is what the move writes in place of the code of the status that it
	// leads to; "-" writes nothing.
	code otep.Code
}

const silent otep.Code = "-"

var (
	planned   = statuses{cloud.OrderRoutePlanned, cloud.OrderDriverAssigned, cloud.OrderDriverAccepted}
	resting   = statuses{cloud.OrderNew, cloud.OrderReady, cloud.OrderReceived, cloud.OrderDeliveryRescheduled} // from where a third party takes over
	carried   = statuses{cloud.OrderHandedOver, cloud.OrderInTransit, cloud.OrderOutForDelivery, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed, cloud.OrderDeliveryRescheduled}
	plannable = statuses{cloud.OrderNew, cloud.OrderReady, cloud.OrderPickupFailed, cloud.OrderPickupRescheduled, cloud.OrderReceived, cloud.OrderArrivalScan,
		cloud.OrderDeliveryFailed, cloud.OrderDeliveryRescheduled}
	deletable = statuses{cloud.OrderNew, cloud.OrderHold, cloud.OrderCancelled}
	final     = statuses{cloud.OrderDelivered, cloud.OrderReturned, cloud.OrderCancelled} // no override leads out of them
	living    = among(func(s cloud.OrderState) bool { return !s.Terminal })
	holdable  = among(func(s cloud.OrderState) bool { return s.Holdable })
	// stoppable orders may be intercepted.
	stoppable = among(func(s cloud.OrderState) bool {
		return !s.Terminal && s.ID != cloud.OrderUnpaid && s.ID != cloud.OrderHold && s.ID != cloud.OrderIntercepted
	})
)

// Resting reports whether goods of an order in a status rest with the business or
// its customer, so that a third party can take over.
func Resting(s cloud.OrderStatus) bool { return slices.Contains(resting, s) }

func among(keep func(cloud.OrderState) bool) (out statuses) {
	for _, s := range cloud.OrderStates() {
		if keep(s) {
			out = append(out, s.ID)
		}
	}
	return out
}

// moves is the table of interface 4.4. A back-office override is beside it.
var moves = []move{
	{from: statuses{cloud.OrderUnpaid}, to: statuses{cloud.OrderNew}, trigger: PaymentReceived, code: silent},
	{from: holdable, to: statuses{cloud.OrderHold}, trigger: Hold, code: silent},
	{from: statuses{cloud.OrderHold}, to: statuses{cloud.OrderNew}, trigger: Release, code: silent},
	{from: statuses{cloud.OrderNew}, to: statuses{cloud.OrderReady}, trigger: MarkReady, source: otep.System},
	{from: plannable, to: statuses{cloud.OrderRoutePlanned}, trigger: PutOnRoute, code: silent},
	{from: planned, to: statuses{back}, trigger: TakeOffRoute, source: otep.SelfDelivery, code: otep.RemovedFromRoute},
	{from: statuses{cloud.OrderNew, cloud.OrderReady, cloud.OrderRoutePlanned, cloud.OrderPickupRescheduled, cloud.OrderReceived, cloud.OrderDeliveryRescheduled},
		to: statuses{cloud.OrderDriverAssigned}, trigger: AssignDriver, code: silent},
	{from: statuses{cloud.OrderDriverAssigned}, to: statuses{cloud.OrderDriverAccepted}, trigger: DriverAccepts, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderDriverAccepted}, to: statuses{cloud.OrderDriverAssigned}, trigger: DriverDeclines, code: silent},
	{from: statuses{cloud.OrderDriverAssigned, cloud.OrderDriverAccepted}, to: statuses{back}, trigger: DriverDeclines, source: otep.SelfDelivery, code: otep.RemovedFromRoute},
	{from: resting, to: statuses{cloud.OrderHandedOver}, trigger: HandOver, source: otep.ThirdParty},
	{from: statuses{cloud.OrderHandedOver}, to: statuses{back}, trigger: FallBack, source: otep.ThirdParty, code: otep.RouteCancelled},
	{from: statuses{cloud.OrderHandedOver}, to: statuses{cloud.OrderInTransit, cloud.OrderOutForDelivery, cloud.OrderDelivered, cloud.OrderPartlyDelivered,
		cloud.OrderDeliveryFailed, cloud.OrderRejected, cloud.OrderReturned}, trigger: ThirdPartyTracking, source: otep.ThirdParty},
	{from: statuses{cloud.OrderPartlyDelivered}, to: statuses{cloud.OrderDelivered}, trigger: ThirdPartyTracking, source: otep.ThirdParty},
	{from: resting, to: statuses{cloud.OrderHandedOver}, trigger: TakeOver, source: otep.ThirdParty, code: silent},
	{from: carried, to: statuses{cloud.OrderInTransit, cloud.OrderOutForDelivery, cloud.OrderDelivered, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed,
		cloud.OrderDeliveryRescheduled, cloud.OrderRejected, cloud.OrderReturned}, trigger: Track, source: otep.ThirdParty, code: silent},
	{from: planned, to: statuses{cloud.OrderOutForPickup}, trigger: StartPickup, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderOutForPickup}, to: statuses{cloud.OrderPickedUp, cloud.OrderPickupFailed}, trigger: PickupResult, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderPickupFailed}, to: statuses{cloud.OrderPickupRescheduled}, trigger: Reschedule, source: otep.System},
	{from: statuses{cloud.OrderPickedUp}, to: statuses{cloud.OrderReceived}, trigger: ReceiveScan, source: otep.Warehouse},
	{from: statuses{cloud.OrderReceived}, to: statuses{cloud.OrderDelivered}, trigger: Complete, source: otep.Warehouse},
	{from: statuses{cloud.OrderPickedUp}, to: statuses{cloud.OrderOutForDelivery, cloud.OrderDelivered}, trigger: RunDirect, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderReceived, cloud.OrderArrivalScan}, to: statuses{cloud.OrderInTransit, cloud.OrderOutbound}, trigger: OutboundScan, source: otep.Warehouse},
	{from: statuses{cloud.OrderInTransit, cloud.OrderOutbound}, to: statuses{cloud.OrderArrivalScan, cloud.OrderReceived}, trigger: ArriveScan, source: otep.Warehouse},
	{from: planned, to: statuses{cloud.OrderOutForDelivery}, trigger: StartDelivery, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderInTransit, cloud.OrderOutbound, cloud.OrderDeliveryFailed, cloud.OrderDeliveryRescheduled}, to: statuses{cloud.OrderOutForDelivery},
		trigger: StartDelivery, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderOutForDelivery}, to: statuses{cloud.OrderDelivered, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed, cloud.OrderRejected},
		trigger: DeliveryResult, source: otep.SelfDelivery},
	{from: living, to: statuses{cloud.OrderInLocker}, trigger: Deposit, source: otep.Locker},
	{from: statuses{cloud.OrderInLocker}, to: statuses{cloud.OrderDelivered, cloud.OrderPartlyDelivered}, trigger: Collect, source: otep.Locker},
	{from: statuses{cloud.OrderInLocker}, to: statuses{cloud.OrderInLocker}, trigger: Overdue, source: otep.Locker, code: otep.PickupOverdue},
	{from: statuses{cloud.OrderInLocker}, to: statuses{cloud.OrderDeliveryFailed, cloud.OrderReceived}, trigger: RemoveFromLocker, source: otep.Locker, code: otep.RemovedFromDevice},
	{from: statuses{cloud.OrderPartlyDelivered}, to: statuses{cloud.OrderDelivered, cloud.OrderDeliveryFailed, cloud.OrderDeliveryRescheduled, cloud.OrderReturned},
		trigger: DeliveryResult, source: otep.SelfDelivery},
	{from: statuses{cloud.OrderDeliveryFailed}, to: statuses{cloud.OrderDeliveryRescheduled}, trigger: Reschedule, source: otep.System},
	{from: statuses{cloud.OrderOutForPickup}, to: statuses{cloud.OrderPickupRescheduled}, trigger: TakeBack, source: otep.System},
	{from: statuses{cloud.OrderOutForDelivery}, to: statuses{cloud.OrderDeliveryRescheduled}, trigger: TakeBack, source: otep.System},
	{from: statuses{cloud.OrderDeliveryFailed}, to: statuses{cloud.OrderReceived}, trigger: ReceiveScan, source: otep.Warehouse},
	{from: statuses{cloud.OrderDeliveryFailed}, to: statuses{cloud.OrderReturned}, trigger: DeliveryResult, source: otep.SelfDelivery},
	{from: stoppable, to: statuses{cloud.OrderIntercepted}, trigger: Intercept, source: otep.System},
	{from: statuses{cloud.OrderIntercepted}, to: statuses{remembered}, trigger: Withdraw, source: otep.System},
	{from: statuses{cloud.OrderIntercepted}, to: statuses{cloud.OrderReturned, cloud.OrderDeliveryRescheduled, cloud.OrderReceived, cloud.OrderCancelled},
		trigger: ExecuteOutcome, source: otep.System},
	{from: statuses{cloud.OrderIntercepted}, to: statuses{cloud.OrderDelivered, remembered}, trigger: InterceptionFailed, source: otep.System},
	{from: living, to: statuses{cloud.OrderCancelled}, trigger: Cancel, source: otep.System},
}

// StatusesBefore lists the statuses, by number, from which a trigger moves some orders.
func StatusesBefore(triggers ...Trigger) []string {
	return numbers(func(s cloud.OrderState) bool {
		return slices.ContainsFunc(moves, func(m move) bool { return slices.Contains(triggers, m.trigger) && slices.Contains(m.from, s.ID) })
	})
}

func numbersOf(list statuses) []string {
	return numbers(func(s cloud.OrderState) bool { return slices.Contains(list, s.ID) })
}

func numbers(keep func(cloud.OrderState) bool) (out []string) {
	for _, s := range among(keep) {
		out = append(out, strconv.Itoa(int(s)))
	}
	return out
}

// Reroutable, Reschedulable, Deletable, Overridable and Lendable are the statuses, by
// number, in which an order may be rerouted, given another day, deleted, set to another
// status and given to a contractor.
func Reroutable() []string    { return numbersOf(beforePickup) }
func Reschedulable() []string { return numbersOf(reschedulable) }
func Deletable() []string     { return numbersOf(deletable) }
func Overridable() []string {
	return numbers(func(s cloud.OrderState) bool { return !slices.Contains(final, s.ID) })
}
func Lendable() []string { return numbers(func(s cloud.OrderState) bool { return s.Assignable }) }

// rowOf is the row by which an order may move, nil when there is none. before is
// the status that its interception remembers.
func rowOf(o cloud.Order, to cloud.OrderStatus, t Trigger, before cloud.OrderStatus) *move {
	for i := range moves {
		m := &moves[i]
		if m.trigger == t && slices.Contains(m.from, o.Status) && m.leads(o, to, before) && possible(o, to, t) {
			return m
		}
	}
	return nil
}

// leads reports whether the row leads an order to a status.
func (m *move) leads(o cloud.Order, to, before cloud.OrderStatus) bool {
	return slices.ContainsFunc(m.to, func(s cloud.OrderStatus) bool {
		switch s {
		case back:
			return o.Before != 0 && to == o.Before
		case remembered:
			return before != 0 && to == before
		}
		return s == to
	})
}

// possible holds the table's conditions about the order itself.
func possible(o cloud.Order, to cloud.OrderStatus, t Trigger) bool {
	switch t {
	case StartPickup:
		return o.Type != cloud.DeliveryOrder && !o.Collected
	case StartDelivery:
		return o.Type == cloud.DeliveryOrder || o.Collected
	case RunDirect:
		return o.Type == cloud.PointToPoint
	case Complete:
		return o.Type == cloud.PickupOrder
	case Deposit:
		return o.Status != cloud.OrderInLocker
	}
	return true
}
