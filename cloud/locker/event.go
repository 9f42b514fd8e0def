package locker

import (
	_ "embed"
	"encoding/json"

	"github.com/postern-io/postern/cloud"
)

//go:embed samples.json
var samples []byte

// Events are those that providers, and accounts with cabinets, may receive.
func Events() []cloud.HookEvent {
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(samples, &bodies); err != nil {
		panic("locker: embedded samples: " + err.Error())
	}
	var out []cloud.HookEvent
	for _, e := range []struct{ name, about string }{
		{EventDoorsOpened, "The doors for a deposit have opened."},
		{EventDelivered, "All packages of a delivery lie in the cabinet; the pickup code works."},
		{EventPickedUp, "A delivery was collected."},
		{EventDeliveryFailed, "A deposit failed; failure_code says why."},
		{EventExpired, "A delivery was not brought, or not collected, in time; expired_kind says which."},
		{EventCancelled, "A delivery was cancelled before its deposit."},
		{EventCorrectionReopened, "Doors were opened once more to correct a deposit."},
		{EventPickupCodeChanged, "A code of a delivery was replaced; rotation says which and why."},
	} {
		out = append(out, cloud.HookEvent{Name: e.name, About: e.about, Family: "locker_provider", Channel: cloud.ChannelLocker, ReferenceType: "locker_delivery", Prefix: eventPrefix, Data: eventData{}, Envelope: eventBody{},
			Sample: bodies[e.name]})
	}
	for _, e := range []struct{ name, about string }{
		{EventStored, "A package was stored in a device."},
		{EventCollected, "A package in a device was collected by whom it waited for."},
		{EventRemoved, "A package was taken out of a device by another person than the recipient; removal_reason says why."},
		{EventOverdue, "A package in a device was not collected in time; it stays, and its code works."},
		{EventExceptionOpened, "Something at a compartment needs to be looked at."},
		{EventExceptionClosed, "An exception is settled; resolution_action says how."},
	} {
		out = append(out, cloud.HookEvent{Name: e.name, About: e.about, Family: "device_orders", Settings: []string{cloud.HookDeviceOrder}, ReferenceType: "device_order", Prefix: "DOE-",
			Data: RegistryData{}, Sample: bodies[e.name]})
	}
	return out
}
