package order

import (
	_ "embed"
	"encoding/json"
	"slices"

	"github.com/postern-io/postern/cloud"
)

// hookEvents are the events of orders: what they are about and whom they are for.
var hookEvents = []cloud.HookEvent{
	{Name: eventCreated, Family: "orders", Settings: []string{cloud.HookOrderCreate}, Prefix: "OCR-", Data: hookCreated{},
		About: "A delivery order was made, in any way. For rows of a batch it is not sent to endpoints that get the event of the whole batch."},
	{Name: eventStatus, Family: "orders", Settings: []string{cloud.HookStatusChange}, Prefix: "OSC-", Data: hookStatus{}, About: "The status of an order changed; one event for each change."},
	{Name: eventDeleted, Family: "orders", Settings: []string{cloud.HookOrderDeleted}, Prefix: "ODE-", Data: hookDeleted{}, About: "An order was deleted for good."},
	{Name: eventRefused, Family: "orders", Settings: []string{cloud.HookCancelFailed}, Prefix: "OCF-", Data: hookRefused{}, About: "A cancellation of an order was refused; code says why."},
	{Name: eventBatch, Family: "orders", Settings: []string{cloud.HookPostback}, ReferenceType: "batch", Prefix: "OBP-", Data: hookBatch{},
		About: "A batch of orders was worked through; the address may also be given with the batch."},
	{Name: eventTracking, Family: "tracking", Settings: []string{cloud.HookTrackingEvent}, Prefix: "TRE-", Data: hookTracking{},
		About: "The timeline of an order has a new event; those of pickup and delivery carry what proves them."},
	{Name: eventWithdrawn, Family: "tracking", Settings: []string{cloud.HookTrackingEvent}, Prefix: "TRC-", Data: hookWithdrawn{},
		About: "An event of a timeline was taken back by its source: withdrawn says when and why, and what took its place. It is sent where tracking_events names it."},
	{Name: eventDisputed, Family: "tracking", Settings: []string{cloud.HookTrackingEvent}, Prefix: "TRC-", Data: hookDisputed{},
		About: "An event of a timeline is said to be wrong by the recipient or by an owner of the parcel: dispute says why. The event stays until staff decide. It is sent where tracking_events names it."},
	{Name: eventProof, Family: "tracking", Settings: []string{cloud.HookProofFiles, cloud.HookTrackingEvent}, Prefix: "PFU-", Data: hookProof{},
		About: "A photo or signature was added, replaced or removed; one event for each file."},
	stop(cloud.InterceptionRequested, "An interception of an order was requested."),
	stop(cloud.InterceptionInForce, "An order is intercepted now."),
	stop(cloud.InterceptionHeld, "The packages of an intercepted order are at a warehouse."),
	stop(cloud.InterceptionExecuted, "What was asked for with an interception was done."),
	stop(cloud.InterceptionWithdrawn, "An interception was taken back; the order goes on."),
	stop(cloud.InterceptionRejected, "An interception was refused; the order stays as it is."),
	stop(cloud.InterceptionFailed, "An interception could not be carried out."),
	live(liveAssigned, "An order got a driver."),
	live(liveUnassigned, "An order lost its driver."),
	live(liveAccepted, "A driver accepted an order."),
	live(liveDeclined, "A driver declined an order."),
	live("pickup_started", "A driver is on the way to pick up an order."),
	live("picked_up", "An order was picked up."),
	live("out_for_delivery", "An order is on the way to its recipient."),
	live("delivered", "An order was delivered."),
	live(liveFailed, "A delivery was tried and failed; follow_up says what comes next."),
	live(liveCancelled, "An order was cancelled."),
	live("ready_for_pickup", "An order is ready to be picked up."),
	{Name: eventRenumbered, Family: "lifecycle", Settings: []string{cloud.HookOrderLifecycle}, Prefix: "OLE-", Data: hookNumber{},
		About: "An order got a new tracking number, or its recipient a new link: the old ones work no more. Give the recipient the recipient_link of the order."},
	third(EventThirdPartyCreated, "A delivery was given to a third party."),
	third(EventThirdPartyHandedOver, "Packages were handed over to the third party."),
	third(eventThirdPartyCancelled, "The delivery was taken back from the third party; reason says why."),
	third(eventThirdPartyPartial, "Some of the packages were delivered and some were not."),
}

func stop(status, about string) cloud.HookEvent {
	return cloud.HookEvent{Name: eventStop + status, Family: "interception", Settings: []string{cloud.HookIntercept}, Prefix: "OIE-", Data: hookStop{}, About: about}
}

func live(name, about string) cloud.HookEvent {
	return cloud.HookEvent{Name: eventLifecycle + name, Family: "lifecycle", Settings: []string{cloud.HookOrderLifecycle}, Prefix: "OLE-", Data: hookLife{}, About: about}
}

func third(name, about string) cloud.HookEvent {
	return cloud.HookEvent{Name: name, Family: "third_party", Channel: cloud.ChannelThirdParty, ReferenceType: "third_party_assignment", Prefix: thirdPartyPrefix, Data: ThirdData{}, Envelope: thirdPartyEvent{}, About: about}
}

// settingsOf are the settings that name the endpoints of an event.
func settingsOf(event string) []string {
	i := slices.IndexFunc(hookEvents, func(e cloud.HookEvent) bool { return e.Name == event })
	if i < 0 {
		panic("order: " + event + " is no event") // the names are our own
	}
	return hookEvents[i].Settings
}

//go:embed samples.json
var samples []byte

// Events are those that businesses and customers may receive.
func Events() []cloud.HookEvent {
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(samples, &bodies); err != nil {
		panic("order: embedded samples: " + err.Error())
	}
	out := slices.Clone(hookEvents)
	for i := range out {
		if out[i].ReferenceType == "" {
			out[i].ReferenceType = "order"
		}
		out[i].Sample = bodies[out[i].Name]
		if out[i].Channel == cloud.ChannelThirdParty {
			out[i].TestData = thirdPartyTest(out[i].Sample)
		}
	}
	return out
}
