package locker

import (
	_ "embed"
	"encoding/json"

	"github.com/postern-io/postern/cloud"
)

// examples are bodies of events, which tests hold against those that are sent.
//
//go:embed events.json
var examples []byte

// Events are those that a provider may be told of, in the order in which a
// delivery comes by them.
func Events() []cloud.HookEvent {
	var bodies map[string]json.RawMessage
	if err := json.Unmarshal(examples, &bodies); err != nil {
		panic("locker: embedded events: " + err.Error())
	}
	var out []cloud.HookEvent
	for _, name := range []string{EventDoorsOpened, EventDelivered, EventPickedUp, EventDeliveryFailed, EventExpired, EventCancelled, EventCorrectionReopened, EventPickupCodeChanged} {
		out = append(out, cloud.HookEvent{Name: name, Sample: bodies[name]})
	}
	return out
}
