package order

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
)

// Webhooks are the webhook subscriptions to events of orders.
type Webhooks interface {
	// FanOut returns the outbox writes for the subscribers of events.
	FanOut(v cloud.View, events ...cloud.AccountEvent) ([]cloud.OutboxWrite, error)
	// FanOutToProvider returns the outbox writes for a provider's endpoints.
	FanOutToProvider(v cloud.View, e cloud.ProviderEvent) ([]cloud.OutboxWrite, error)
	// CheckURL refuses an address that may not receive webhooks, saying why.
	CheckURL(ctx context.Context, url string) error
	// Postback is the receiver of one batch; one that is new is to be written.
	Postback(v cloud.View, b cloud.BusinessID, customer cloud.AccountID, url string) (cloud.Endpoint, error)
}

// noWebhooks has no subscription and takes no address.
type noWebhooks struct{}

func (noWebhooks) FanOut(cloud.View, ...cloud.AccountEvent) ([]cloud.OutboxWrite, error) {
	return nil, nil
}
func (noWebhooks) FanOutToProvider(cloud.View, cloud.ProviderEvent) ([]cloud.OutboxWrite, error) {
	return nil, nil
}
func (noWebhooks) CheckURL(context.Context, string) error { return nil }
func (noWebhooks) Postback(cloud.View, cloud.BusinessID, cloud.AccountID, string) (cloud.Endpoint, error) {
	f := newFields()
	f.Add("postback_url", "This address cannot be used: it must be a public https address that our guard accepts.")
	return cloud.Endpoint{}, f.Err()
}

// step is one operation of a decision, for the events that report it.
type step struct {
	operation     int
	before, after cloud.OrderStatus // before 0: the order was made
	trigger       Trigger           // "" when the table did not move it
	reason        string            // OTEP incident reason
	note          string
}

// AddEvent adds an event about the order. fill makes its data from the order as it
// is at the end of the decision.
func (d *Decision) AddEvent(event, id string, fill func(t *eventWriter) (any, error)) {
	d.events = append(d.events, pending{event: event, id: id, fill: fill})
}

// pending is an event that the end of the decision makes.
type pending struct {
	event, id string
	fill      func(t *eventWriter) (any, error)
	tracked   *cloud.TrackedEvent // of an event of the timeline
}

// collectEvents puts the events of the decision into its changes, in the order in
// which they happened: what was made, how it moved, what became of its
// interception, what the timeline says.
func (d *Decision) collectEvents() error {
	addCreated(d)
	for _, s := range d.steps {
		addStatusChange(d, s)
	}
	addDriverChange(d)
	addInterception(d)
	if d.timeline != nil && !d.isDeleted() {
		for _, e := range d.timeline.withdrawn {
			if !e.Event.Reported && !d.timeline.isFresh(e.EventRef) && !timeline.HasRef(d.timeline.unsent, e.EventRef) {
				addWithdrawn(d, e)
			}
		}
		for _, e := range slices.Concat(d.timeline.fresh, d.timeline.due) {
			if !e.Event.Reported && !e.Event.Withdrawn && !timeline.IsPending(e, d.Now) {
				addTracking(d, e)
			}
		}
	}
	events := make([]cloud.AccountEvent, len(d.events))
	for i, p := range d.events {
		events[i] = cloud.AccountEvent{BusinessID: d.Order.BusinessID, CustomerID: d.Order.CustomerID, Settings: settingsOf(p.event), Event: p.event, ID: p.id,
			ReferenceType: "order", ReferenceID: fmt.Sprint(d.Order.ID), OccurredAt: d.Now, Tracked: p.tracked,
			Data: func(number int64, customer bool) (any, error) {
				t := eventWriter{d: d, number: number, customer: customer}
				if err := t.load(); err != nil {
					return nil, err
				}
				return p.fill(&t)
			}}
		if p.event == eventCreated {
			events[i].Unless = d.batch
		}
	}
	if len(events) > 0 {
		out, err := d.service.webhooks.FanOut(d.View, events...)
		if err != nil {
			return err
		}
		d.Changes.Outbox = append(d.Changes.Outbox, out...)
	}
	err := addThirdPartyEvents(d)
	d.Changes.Follow(d.trace)
	return err
}

func (d *Decision) isDeleted() bool { return len(d.Changes.DroppedOrders) > 0 }

// Events of orders.
const (
	eventCreated   = "order.created"
	eventStatus    = "order.status_change"
	eventDeleted   = "order.deleted"
	eventRefused   = "order.cancel_failed"
	eventBatch     = "order.batch_processed"
	eventTracking  = cloud.EventTracking
	eventWithdrawn = cloud.HookEventWithdrawn
	eventDisputed  = cloud.HookEventDisputed
	eventProof     = cloud.EventProof
	eventStop      = "order_intercept."
	eventLifecycle = "order."

	eventRenumbered = "order.tracking_number_changed"
)

// addCreated tells of an order that this decision made.
func addCreated(d *Decision) {
	if len(d.steps) > 0 && d.steps[0].before == 0 {
		d.AddEvent(eventCreated, fmt.Sprint("OCR-", d.Order.ID), (*eventWriter).created)
	}
}

// addStatusChange tells of a change of status, and of what it means in the life of an
// order.
func addStatusChange(d *Decision, s step) {
	if s.before == 0 || s.before == s.after {
		return
	}
	d.AddEvent(eventStatus, "OSC-", func(t *eventWriter) (any, error) { return t.statusChange(s) })
	for _, name := range lifecycle(s) {
		addLifecycle(d, name, s)
	}
}

func addLifecycle(d *Decision, name string, s step) {
	d.AddEvent(eventLifecycle+name, "OLE-", func(t *eventWriter) (any, error) { return t.lifecycle(name, s) })
}

// Lifecycle events, behind "order.".
const (
	liveAssigned   = "driver_assigned"
	liveUnassigned = "driver_unassigned"
	liveAccepted   = "driver_accepted"
	liveDeclined   = "driver_declined"
	liveFailed     = "delivery_failed"
	liveCancelled  = "cancelled"
)

// entered are the lifecycle events of statuses that an order gets into.
var entered = map[cloud.OrderStatus]string{cloud.OrderReady: "ready_for_pickup", cloud.OrderDriverAssigned: liveAssigned, cloud.OrderDriverAccepted: liveAccepted,
	cloud.OrderOutForPickup: "pickup_started", cloud.OrderPickedUp: "picked_up", cloud.OrderOutForDelivery: "out_for_delivery", cloud.OrderDelivered: "delivered",
	cloud.OrderPartlyDelivered: liveFailed, cloud.OrderDeliveryFailed: liveFailed, cloud.OrderRejected: liveFailed, cloud.OrderCancelled: liveCancelled}

// lifecycle are the events of a change of status. One that only goes back to
// where the order was before is none of the status that it comes back to.
func lifecycle(s step) []string {
	driven := s.before == cloud.OrderDriverAssigned || s.before == cloud.OrderDriverAccepted
	switch {
	case s.trigger == DriverDeclines && s.after == cloud.OrderDriverAssigned:
		return []string{liveDeclined}
	case s.trigger == DriverDeclines:
		return []string{liveDeclined, liveUnassigned}
	case s.trigger == TakeOffRoute && driven, s.trigger == TakeBack:
		return []string{liveUnassigned}
	case s.trigger == TakeOffRoute || s.trigger == FallBack || s.trigger == Withdraw:
		return nil
	case s.trigger == InterceptionFailed && s.after != cloud.OrderDelivered:
		return nil
	case entered[s.after] == "":
		return nil
	}
	return []string{entered[s.after]}
}

// addDriverChange tells of a driver that came or went without a change of status
// that says so.
func addDriverChange(d *Decision) {
	if d.Was.ID == 0 || d.Was.DriverID == d.Order.DriverID {
		return
	}
	said := func(name string) bool {
		return slices.ContainsFunc(d.events, func(p pending) bool { return p.event == eventLifecycle+name })
	}
	s := step{before: d.Order.Status, after: d.Order.Status}
	if d.Was.DriverID != 0 && !said(liveUnassigned) && !said(liveCancelled) {
		addLifecycle(d, liveUnassigned, s)
	}
	if d.Order.DriverID != 0 && !said(liveAssigned) {
		addLifecycle(d, liveAssigned, s)
	}
}

// addInterception tells of what became of the order's interception.
func addInterception(d *Decision) {
	if d.interception == nil || d.interception.Status == d.interceptionWas {
		return
	}
	say := func(status string, i cloud.Interception) {
		was := d.interceptionWas
		d.AddEvent(eventStop+status, "OIE-", func(t *eventWriter) (any, error) { return t.interception(status, was, i) })
	}
	if d.interceptionWas == "" { // asked for in this decision
		asked := *d.interception
		asked.After = 0
		say(cloud.InterceptionRequested, asked)
	}
	if d.interception.Status != cloud.InterceptionRequested {
		say(d.interception.Status, *d.interception)
	}
}

// addTracking tells of an event of the timeline.
func addTracking(d *Decision, e cloud.TimelineEvent) {
	addTracked(d, eventTracking, "TRE-", e, func(t *eventWriter) (any, error) { return t.tracking(e), nil })
}

// addWithdrawn tells of an event that was taken back from the timeline.
func addWithdrawn(d *Decision, e cloud.WithdrawnEvent) {
	row := cloud.TimelineEvent{Package: e.Package, Event: e.Event}
	addTracked(d, eventWithdrawn, "TRC-", row, func(t *eventWriter) (any, error) { return t.withdrawn(e) })
}

// addTracked adds an event about one of the timeline, also for subscribers of the parcel. A
// provider among them sees of the order what its timeline says.
func addTracked(d *Decision, event, id string, row cloud.TimelineEvent, fill func(t *eventWriter) (any, error)) {
	d.events = append(d.events, pending{event, id, fill, &cloud.TrackedEvent{Shipment: d.timeline.Shipment, Package: row.Package, Code: row.Event.StatusCode,
		Data: func(number int64) (any, error) {
			t := eventWriter{d: d, number: number, customer: true}
			if err := t.load(); err != nil {
				return nil, err
			}
			data, err := fill(&t)
			return hideOrder(data), err
		}}})
}

// addProofEvent tells of a proof file that was added, updated or removed.
func (d *Decision) addProofEvent(action string, f cloud.ProofFile) {
	d.AddEvent(eventProof, "PFU-", func(t *eventWriter) (any, error) { return t.proof(action, f) })
}

// refuseCancellation tells that a cancellation was refused, and gives the refusal.
func (d *Decision) refuseCancellation(err *cloud.Error) {
	d.refusal = err
	d.AddEvent(eventRefused, "OCF-", (*eventWriter).refused)
}

// cancelRefusal is why an order cannot be cancelled.
func cancelRefusal(s cloud.OrderStatus) string {
	return cmp.Or(map[cloud.OrderStatus]string{cloud.OrderOutForDelivery: "ALREADY_OUT_FOR_DELIVERY", cloud.OrderDelivered: "ALREADY_DELIVERED",
		cloud.OrderCancelled: "ALREADY_CANCELLED"}[s], "NOT_CANCELLABLE_FOR_ACCOUNT")
}
