package webhook

import (
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// kinds are the endpoints of providers.
var kinds = []struct {
	kind   string
	events []string // that it can subscribe to
}{
	{cloud.LockerEndpoint, []string{"locker_delivery.doors_opened", "locker_delivery.delivered", "locker_delivery.picked_up", "locker_delivery.delivery_failed",
		"locker_delivery.expired", "locker_delivery.cancelled", "locker_delivery.correction_reopened", "locker_delivery.pickup_code_changed"}},
	{cloud.ThirdPartyEndpoint, []string{"third_party_delivery.created", "third_party_delivery.packages_handed_over", "third_party_delivery.cancelled",
		"third_party_delivery.partial_delivery"}},
}

// kindOf is the kind of endpoint that a provider names, or that of its first
// service. The caller may fill lockers; an endpoint for orders is for those
// who carry any. Error: VALIDATION_FAILED.
func kindOf(c cloud.Caller, named string) (string, error) {
	p := problems{}
	has := func(service string) bool { return slices.Contains(c.Provider.Services, service) }
	switch third := has(cloud.ServiceThirdParty); {
	case named == cloud.LockerEndpoint, named == "" && (!third || has(cloud.ServiceLocker)):
		return cloud.LockerEndpoint, nil
	case third && (named == "" || named == cloud.ThirdPartyEndpoint):
		return cloud.ThirdPartyEndpoint, nil
	case named == cloud.ThirdPartyEndpoint:
		p.add("kind", "This provider carries no orders: the business must add third_party to the provider's services.")
	default:
		p.add("kind", fmt.Sprintf(check.MessageEnum, "kind", cloud.LockerEndpoint+", "+cloud.ThirdPartyEndpoint))
	}
	return "", p.err()
}

// eventsOf are those that an endpoint of a kind can subscribe to.
func eventsOf(kind string) []string {
	for _, k := range kinds {
		if k.kind == kind {
			return k.events
		}
	}
	return nil
}

// kindFor is the kind of endpoint that an event goes to; "" when there is none.
func kindFor(event string) string {
	for _, k := range kinds {
		if slices.Contains(k.events, event) {
			return k.kind
		}
	}
	return ""
}
