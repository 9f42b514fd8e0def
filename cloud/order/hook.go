package order

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
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

// step is one operation of a decision, for those who are told of it.
type step struct {
	operation     int
	before, after cloud.OrderStatus // before 0: the order was made
	trigger       Trigger           // "" when the table did not move it
	reason        string            // OTEP incident reason
	note          string
}

// tell adds an event about the order. fill makes its data from the order as it
// is at the end of the decision.
func (w *work) tell(event, id string, fill func(t *telling) (any, error)) {
	w.tells = append(w.tells, pending{event, id, fill})
}

// pending is an event that the end of the decision makes.
type pending struct {
	event, id string
	fill      func(t *telling) (any, error)
}

// told puts what is told of the decision into its changes, in the order in
// which it happened: what was made, how it moved, what became of its
// interception, what the timeline says.
func (w *work) told() error {
	w.tellMade()
	for _, s := range w.steps {
		w.tellStep(s)
	}
	w.tellDriver()
	w.tellStop()
	if w.line != nil && !w.dropped() {
		for _, e := range w.line.fresh {
			w.tellTracking(e)
		}
	}
	events := make([]cloud.AccountEvent, len(w.tells))
	for i, p := range w.tells {
		events[i] = cloud.AccountEvent{BusinessID: w.o.BusinessID, CustomerID: w.o.CustomerID, Settings: settingsOf(p.event), Event: p.event, ID: p.id,
			ReferenceType: "order", ReferenceID: fmt.Sprint(w.o.ID), OccurredAt: w.now,
			Data: func(number int64, customer bool) (any, error) {
				t := telling{w: w, number: number, customer: customer}
				if err := t.begin(); err != nil {
					return nil, err
				}
				return p.fill(&t)
			}}
		if p.event == eventCreated {
			events[i].Unless = w.batch
		}
	}
	if len(events) > 0 {
		out, err := w.s.webhooks.FanOut(w.v, events...)
		if err != nil {
			return err
		}
		w.ch.Outbox = append(w.ch.Outbox, out...)
	}
	return w.tellThird()
}

func (w *work) dropped() bool { return len(w.ch.DroppedOrders) > 0 }

// Events of orders.
const (
	eventCreated   = "order.created"
	eventStatus    = "order.status_change"
	eventDeleted   = "order.deleted"
	eventRefused   = "order.cancel_failed"
	eventBatch     = "order.batch_processed"
	eventTracking  = "tracking.event"
	eventProof     = "pod.files_updated"
	eventStop      = "order_intercept."
	eventLifecycle = "order."

	eventRenumbered = "order.tracking_number_changed"
)

// tellMade tells of an order that this decision made.
func (w *work) tellMade() {
	if len(w.steps) > 0 && w.steps[0].before == 0 {
		w.tell(eventCreated, fmt.Sprint("OCR-", w.o.ID), (*telling).created)
	}
}

// tellStep tells of a change of status, and of what it means in the life of an
// order.
func (w *work) tellStep(s step) {
	if s.before == 0 || s.before == s.after {
		return
	}
	w.tell(eventStatus, "OSC-", func(t *telling) (any, error) { return t.statusChange(s) })
	for _, name := range lifecycle(s) {
		w.live(name, s)
	}
}

func (w *work) live(name string, s step) {
	w.tell(eventLifecycle+name, "OLE-", func(t *telling) (any, error) { return t.lifecycle(name, s) })
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
	case s.trigger == TakeOffRoute && driven:
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

// tellDriver tells of a driver that came or went without a change of status
// that says so.
func (w *work) tellDriver() {
	if w.was.ID == 0 || w.was.DriverID == w.o.DriverID {
		return
	}
	said := func(name string) bool {
		return slices.ContainsFunc(w.tells, func(p pending) bool { return p.event == eventLifecycle+name })
	}
	s := step{before: w.o.Status, after: w.o.Status}
	if w.was.DriverID != 0 && !said(liveUnassigned) && !said(liveCancelled) {
		w.live(liveUnassigned, s)
	}
	if w.o.DriverID != 0 && !said(liveAssigned) {
		w.live(liveAssigned, s)
	}
}

// tellStop tells of what became of the order's interception.
func (w *work) tellStop() {
	if w.stop == nil || w.stop.Status == w.stopWas {
		return
	}
	say := func(status string, i cloud.Interception) {
		was := w.stopWas
		w.tell(eventStop+status, "OIE-", func(t *telling) (any, error) { return t.interception(status, was, i) })
	}
	if w.stopWas == "" { // asked for in this decision
		asked := *w.stop
		asked.After = 0
		say(cloud.InterceptionRequested, asked)
	}
	if w.stop.Status != cloud.InterceptionRequested {
		say(w.stop.Status, *w.stop)
	}
}

// tellTracking tells of an event of the timeline.
func (w *work) tellTracking(e otep.Event) {
	w.tell(eventTracking, "TRE-", func(t *telling) (any, error) { return t.tracking(e) })
}

// tellProof tells of a proof file that was added, updated or removed.
func (w *work) tellProof(action string, f cloud.ProofFile) {
	w.tell(eventProof, "PFU-", func(t *telling) (any, error) { return t.proof(action, f) })
}

// refuse tells that a cancellation was refused, and gives the refusal.
func (w *work) refuse(err *cloud.Error) {
	w.refusal = err
	w.tell(eventRefused, "OCF-", (*telling).refused)
}

// whyNot is why an order cannot be cancelled.
func whyNot(s cloud.OrderStatus) string {
	return cmp.Or(map[cloud.OrderStatus]string{cloud.OrderOutForDelivery: "ALREADY_OUT_FOR_DELIVERY", cloud.OrderDelivered: "ALREADY_DELIVERED",
		cloud.OrderCancelled: "ALREADY_CANCELLED"}[s], "NOT_CANCELLABLE_FOR_ACCOUNT")
}
