package receiver

import (
	"slices"

	"github.com/postern-io/postern/cloud"
)

// kinds are the endpoints that a provider has by its services, the one first
// that is meant where none is named.
var kinds = []struct {
	service, kind string
	events        []string // that it can subscribe to
}{
	{cloud.ServiceLocker, cloud.LockerEndpoint, []string{"locker_delivery.doors_opened", "locker_delivery.delivered", "locker_delivery.picked_up", "locker_delivery.delivery_failed",
		"locker_delivery.expired", "locker_delivery.cancelled", "locker_delivery.correction_reopened", "locker_delivery.pickup_code_changed"}},
	{cloud.ServiceThirdParty, cloud.ThirdPartyEndpoint, []string{"third_party_delivery.created", "third_party_delivery.packages_handed_over", "third_party_delivery.cancelled",
		"third_party_delivery.partial_delivery"}},
}

// kindOf is the kind of endpoint that a provider names, or that of its first
// service. Error: VALIDATION_FAILED.
func kindOf(c cloud.Caller, named string) (string, error) {
	p := problems{}
	known := false
	for _, k := range kinds {
		has := slices.Contains(c.Provider.Services, k.service)
		if has && (named == "" || named == k.kind) {
			return k.kind, nil
		}
		known = known || named == k.kind
	}
	switch {
	case known:
		p.add("kind", "This provider does not have the service that this endpoint is for: the business must add it to the provider's services.")
	case named == "":
		p.add("kind", "This provider has no service with an endpoint: the business must add locker or third_party to the provider's services.")
	default:
		p.add("kind", notAllowed)
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
