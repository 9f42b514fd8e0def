package cloud

import "github.com/postern-io/postern/protocol/otep"

// OrderStatus is the number of an order's state.
type OrderStatus int

// Order states (interface 4.3).
const (
	OrderNew                 OrderStatus = 1
	OrderUnpaid              OrderStatus = 2
	OrderHold                OrderStatus = 3
	OrderReady               OrderStatus = 4
	OrderRoutePlanned        OrderStatus = 10
	OrderDriverAssigned      OrderStatus = 11
	OrderDriverAccepted      OrderStatus = 12
	OrderHandedOver          OrderStatus = 13
	OrderOutForPickup        OrderStatus = 20
	OrderPickedUp            OrderStatus = 21
	OrderPickupFailed        OrderStatus = 22
	OrderPickupRescheduled   OrderStatus = 23
	OrderReceived            OrderStatus = 30
	OrderArrivalScan         OrderStatus = 31
	OrderInTransit           OrderStatus = 32
	OrderOutbound            OrderStatus = 33
	OrderOutForDelivery      OrderStatus = 40
	OrderDelivered           OrderStatus = 41
	OrderPartlyDelivered     OrderStatus = 42
	OrderDeliveryFailed      OrderStatus = 43
	OrderDeliveryRescheduled OrderStatus = 44
	OrderRejected            OrderStatus = 45
	OrderInLocker            OrderStatus = 46
	OrderReturned            OrderStatus = 47
	OrderIntercepted         OrderStatus = 48
	OrderCancelled           OrderStatus = 50
)

// OrderState is what the status dictionary says about a status.
type OrderState struct {
	ID         OrderStatus
	Name       string // NEW_ORDER
	Label      string // English
	Group      string
	Terminal   bool
	Holdable   bool // may be put on hold
	Assignable bool // may be given to a contractor
	// Code is what a move into the status writes into the timeline, and Reason
	// the incident reason that goes with it.
	Code   otep.Code
	Reason string
}

// orderStates is the dictionary, by number.
var orderStates = []OrderState{
	{ID: OrderNew, Name: "NEW_ORDER", Label: "New order", Group: "created", Holdable: true, Assignable: true, Code: otep.InformationSubmitted},
	{ID: OrderUnpaid, Name: "PENDING_PAYMENT", Label: "Waiting for payment", Group: "created", Code: otep.InformationSubmitted},
	{ID: OrderHold, Name: "HOLD", Label: "On hold", Group: "created", Code: otep.InformationSubmitted},
	{ID: OrderReady, Name: "READY_FOR_PICKUP", Label: "Goods ready", Group: "created", Holdable: true, Assignable: true, Code: otep.AwaitingPickup},
	{ID: OrderRoutePlanned, Name: "ROUTE_PLANNED", Label: "On a route", Group: "planned", Code: otep.BookingConfirmed},
	{ID: OrderDriverAssigned, Name: "DRIVER_ASSIGNED", Label: "Driver assigned", Group: "planned", Code: otep.BookingConfirmed},
	{ID: OrderDriverAccepted, Name: "DRIVER_ACCEPTED", Label: "Driver accepted", Group: "planned", Code: otep.BookingConfirmed},
	{ID: OrderHandedOver, Name: "HANDED_TO_CARRIER", Label: "With a third-party carrier", Group: "external", Code: otep.PickedUp},
	{ID: OrderOutForPickup, Name: "OUT_FOR_PICKUP", Label: "Driver going to pick up", Group: "pickup", Code: otep.OutForPickup},
	{ID: OrderPickedUp, Name: "PICKED_UP", Label: "Picked up", Group: "pickup", Code: otep.PickedUp},
	{ID: OrderPickupFailed, Name: "PICKUP_FAILED", Label: "Pickup failed", Group: "pickup", Holdable: true, Assignable: true, Code: otep.PickupFailed},
	{ID: OrderPickupRescheduled, Name: "PICKUP_RESCHEDULED", Label: "Pickup rescheduled", Group: "pickup", Holdable: true, Assignable: true, Code: otep.PickupRescheduled},
	{ID: OrderReceived, Name: "RECEIVED", Label: "At warehouse", Group: "inbound", Assignable: true, Code: otep.Received},
	{ID: OrderArrivalScan, Name: "ARRIVAL_SCAN", Label: "Arrived at facility", Group: "inbound", Assignable: true, Code: otep.ArrivalScan},
	{ID: OrderInTransit, Name: "IN_TRANSIT", Label: "Line haul", Group: "transit", Code: otep.InTransit},
	{ID: OrderOutbound, Name: "PACKAGE_OUTBOUND", Label: "Left facility", Group: "transit", Code: otep.PackageOutbound},
	{ID: OrderOutForDelivery, Name: "OUT_FOR_DELIVERY", Label: "Out for delivery", Group: "delivery", Code: otep.OutForDelivery},
	{ID: OrderDelivered, Name: "DELIVERED", Label: "Delivered", Group: "done", Terminal: true, Code: otep.Delivered},
	{ID: OrderPartlyDelivered, Name: "PARTIALLY_DELIVERED", Label: "Some packages delivered", Group: "delivery", Code: otep.DeliveryFailed, Reason: "x-partial_delivery"},
	{ID: OrderDeliveryFailed, Name: "DELIVERY_FAILED", Label: "Delivery failed", Group: "delivery", Assignable: true, Code: otep.DeliveryFailed},
	{ID: OrderDeliveryRescheduled, Name: "DELIVERY_RESCHEDULED", Label: "Redelivery planned", Group: "delivery", Assignable: true, Code: otep.DeliveryRescheduled},
	{ID: OrderRejected, Name: "REJECTED_BY_RECIPIENT", Label: "Refused", Group: "done", Terminal: true, Code: otep.RejectedByRecipient},
	{ID: OrderInLocker, Name: "IN_LOCKER", Label: "Waiting in a locker", Group: "delivery", Code: otep.AvailableForPickup},
	{ID: OrderReturned, Name: "RETURN_TO_SENDER", Label: "Returned", Group: "done", Terminal: true, Code: otep.ReturnToSender},
	{ID: OrderIntercepted, Name: "INTERCEPTED", Label: "Intercepted", Group: "exception", Code: otep.Intercepted},
	{ID: OrderCancelled, Name: "CANCELLED", Label: "Cancelled", Group: "done", Terminal: true, Code: otep.Cancelled},
}

// OrderStates lists the status dictionary by number.
func OrderStates() []OrderState { return append([]OrderState(nil), orderStates...) }

// State is what the dictionary says about s; its zero value when s is none.
func (s OrderStatus) State() OrderState {
	for i := range orderStates {
		if orderStates[i].ID == s {
			return orderStates[i]
		}
	}
	return OrderState{}
}

func (s OrderStatus) String() string { return s.State().Name }
