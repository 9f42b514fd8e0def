package webhook

import (
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
)

// FanOutToProvider returns the outbox writes that deliver an event to the
// endpoints of its provider that subscribe to it. Without a subscriber there are none, but
// for events of locker deliveries, which their provider lists.
func (s accountHooks) FanOutToProvider(v cloud.View, e cloud.ProviderEvent) ([]cloud.OutboxWrite, error) {
	w, err := providerWrite(v, e)
	if err != nil {
		return nil, fmt.Errorf("fan out %[2]s to provider %[1]d: %[3]w", e.ProviderID, e.Event, err)
	}
	if len(w.Deliveries) == 0 && !w.Kept {
		return nil, nil
	}
	return []cloud.OutboxWrite{w}, nil
}

func providerWrite(v cloud.View, e cloud.ProviderEvent) (w cloud.OutboxWrite, err error) {
	endpoints, err := v.Endpoints(e.ProviderID)
	if err != nil {
		return w, err
	}
	var to []cloud.Endpoint
	for _, x := range endpoints {
		if x.Channel() == e.Channel && x.Wants(e.Event) {
			to = append(to, x)
		}
	}
	if w.Kept = e.Channel == cloud.ChannelLocker; len(to) == 0 && !w.Kept {
		return w, nil
	}
	number, err := v.NewID(cloud.EventIDs)
	if err != nil {
		return w, err
	}
	now := time.Now().UTC()
	w.Event = cloud.OutboxEvent{EventID: fmt.Sprint(e.Prefix, number), Event: e.Event, BusinessID: e.BusinessID, ProviderID: e.ProviderID, Channel: e.Channel,
		ReferenceType: e.ReferenceType, ReferenceID: e.ReferenceID, OccurredAt: e.OccurredAt, CreatedAt: now, Test: e.Test, Trace: e.Trace}
	if e.Test {
		w.Event.EventID = fmt.Sprint(e.Prefix, cloud.MockPrefix, number)
	}
	if w.Event.Sequence, err = v.NextSequence(w.Event.Reference()); err != nil {
		return w, err
	}
	b, err := v.Business(e.BusinessID)
	if err != nil {
		return w, err
	}
	body, err := e.Body(w.Event.Head(b.Location()))
	if err != nil {
		return w, err
	}
	if w.Event.Body, err = marshalJSON(body); err != nil {
		return w, err
	}
	for i, x := range to {
		id, err := v.NewID(cloud.OutboxIDs)
		if err != nil {
			return w, err
		}
		d := cloud.OutboxDelivery{ID: cloud.OutboxID(id), EventID: w.Event.EventID, EndpointID: x.ID, BusinessID: e.BusinessID, WebhookID: w.Event.EventID, State: cloud.OutboxPending,
			MaxAttempts: cloud.ProviderAttempts, NextAt: now, CreatedAt: now}
		if len(to) > 1 {
			d.WebhookID = fmt.Sprintf("%s-%d", w.Event.EventID, i+1)
		}
		w.Deliveries = append(w.Deliveries, d)
	}
	return w, nil
}
