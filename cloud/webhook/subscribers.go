package webhook

import (
	"errors"

	"github.com/postern-io/postern/cloud"
)

// subscribers are the endpoints of subscriptions that receive an event, each once. Whose parcel it is
// counts as it is now: a customer or a provider that it is not any more receives nothing.
func (t *fanout) subscribers(e cloud.AccountEvent) ([]target, error) {
	if e.Tracked == nil {
		return nil, nil
	}
	s := e.Tracked.Shipment
	if t.about != s.ID {
		found, err := t.v.SubscriptionsTo(s.BusinessID, s.ID)
		if err != nil {
			return nil, err
		}
		t.subscribed, t.about = found, s.ID
	}
	var out []target
	seen := map[cloud.EndpointID]bool{}
	for _, x := range t.subscribed {
		if seen[x.EndpointID] || !x.Wants(e.Event, e.Tracked.Package, e.Tracked.Code, t.now) {
			continue
		}
		seen[x.EndpointID] = true
		mine, err := t.isOwn(x.Subscription, s)
		if err != nil {
			return nil, err
		}
		if mine {
			out = append(out, target{endpoint: x.EndpointID, setting: cloud.HookSubscription, customer: x.CustomerID, provider: x.ProviderID})
		}
	}
	return out, nil
}

// isOwn reports whether a shipment is of the level of a subscription. Nothing is of a customer that was
// switched off.
func (t *fanout) isOwn(x cloud.Subscription, s cloud.Shipment) (bool, error) {
	switch {
	case x.Level == cloud.BusinessLevel:
		return x.BusinessID == s.BusinessID, nil
	case x.Level == cloud.CustomerLevel && x.CustomerID == s.CustomerID:
		a, err := t.v.Account(x.CustomerID)
		if errors.Is(err, cloud.ErrNotFound) {
			return false, nil
		}
		return a.Enabled, err
	case x.Level == cloud.ProviderLevel:
		p, err := t.v.Provider(x.ProviderID)
		if errors.Is(err, cloud.ErrNotFound) {
			return false, nil
		}
		return s.OfProvider(p), err
	}
	return false, nil
}
