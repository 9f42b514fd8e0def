package order

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Timeline is an order's timeline inside a decision. Events of sources whose time has
// not come are no part of it: what is added now happens before them.
type Timeline struct {
	Shipment cloud.Shipment
	events   []otep.Event
	fresh    []otep.Event
	Changed  bool // the shipment is written although nothing is new
}

// Timeline reads the order's timeline.
func (d *Decision) Timeline() (*Timeline, error) {
	if d.timeline != nil {
		return d.timeline, nil
	}
	s, err := d.View.OrderShipment(d.Order.BusinessID, d.Order.ID)
	if err != nil {
		return nil, err
	}
	rows, err := d.View.Timeline(s.ID)
	if err != nil {
		return nil, err
	}
	d.timeline = &Timeline{Shipment: s}
	for _, r := range rows {
		if r.Event.TimeType != "" || !r.Event.IsAhead(d.Now) {
			d.timeline.events = append(d.timeline.events, r.Event)
		}
	}
	return d.timeline, nil
}

// newTimeline is the empty timeline of a new order.
func newTimeline(o cloud.Order, id cloud.ShipmentID, now time.Time) *Timeline {
	return &Timeline{Shipment: cloud.Shipment{ID: id, BusinessID: o.BusinessID, Number: o.Number, External: o.ExternalNumber, OrderID: o.ID, CustomerID: o.CustomerID, CreatedAt: now}}
}

func (l *Timeline) subject() otep.Subject {
	return otep.Subject{TrackingNumber: l.Shipment.Number, OrderID: int64(l.Shipment.OrderID), ExternalTrackingNumber: l.Shipment.External,
		SSCC: l.Shipment.SSCC, PieceID: l.Shipment.PieceID}
}

func (l *Timeline) fold() otep.Timeline { return otep.Fold(l.Shipment.Profile, l.subject(), l.events) }

// Current is the code of the latest event, "" when there is none.
func (l *Timeline) Current() otep.Code {
	if c := l.fold().Current; c != nil {
		return *c
	}
	return ""
}

// universal is the code of the latest event that moves are judged by.
func (l *Timeline) universal() otep.Code {
	t := l.fold()
	for i := len(t.Events) - 1; i >= 0; i-- {
		e := t.Events[i]
		if s, ok := otep.Lookup(e.StatusCode); ok && s.Universal() && (e.TimeType == "" || e.TimeType == otep.Actual) {
			return e.StatusCode
		}
	}
	return ""
}

// Append adds an event, after every other, unless the code may not follow those
// that are there: a timeline of ours has no invalid move. When the goods must
// have been on the way in between, it says so first. A source may have reported
// already what we are about to add.
func (l *Timeline) Append(code otep.Code, source, reason string, at, now time.Time) {
	next := code
	if code == otep.AvailableForPickup {
		next = otep.DeliveryFailed // it was brought, and whatever comes of it may follow
	}
	switch {
	case !l.mayFollow(next) && l.mayFollow(otep.OutForDelivery) && otep.Transition(otep.OutForDelivery, next):
		l.insert(otep.OutForDelivery, source, "", at, now)
	case !l.mayFollow(code):
		return
	}
	l.insert(code, source, reason, at, now)
}

// Bookable reports whether a booking may be confirmed: once, and after nothing
// but the order itself.
func (l *Timeline) Bookable() bool {
	return !slices.ContainsFunc(l.events, func(e otep.Event) bool { return e.StatusCode != otep.InformationSubmitted })
}

// mayFollow reports whether a code may come next.
func (l *Timeline) mayFollow(code otep.Code) bool {
	last := l.universal()
	s, ok := otep.Lookup(code)
	return ok && (!s.Universal() || last == "" || last == code || otep.Transition(last, code))
}

// insert adds an event that happened at a time, or right after the events that are there
// already. Two events of a moment would be put in the order of their ranks, so
// each has a moment of its own.
func (l *Timeline) insert(code otep.Code, source, reason string, at, now time.Time) {
	for _, e := range l.events {
		if e.TimeType == "" && !at.After(e.OccurredAt.Time) {
			at = e.OccurredAt.UTC().Truncate(time.Millisecond).Add(time.Millisecond)
		}
	}
	e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: now}, StatusCode: code, IncidentReason: reason,
		Source: &otep.Source{Type: source}}.Fill(l.Shipment.Profile)
	e.EventID = otep.ID(l.subject(), e)
	l.events, l.fresh = append(l.events, e), append(l.fresh, e)
}

// setProof puts into the last event what was seen of it: who took the goods,
// where, and how surely when.
func (l *Timeline) setProof(in MoveInput) {
	e := l.fresh[len(l.fresh)-1]
	if in.Recipient != "" {
		e.PoD = &otep.Proof{Recipient: in.Recipient}
	}
	e.Extensions = cloud.Moment{Approximate: in.Approximate, Earliest: in.Earliest, Latest: in.Latest}.Extensions()
	e.Location = in.Place
	l.fresh[len(l.fresh)-1], l.events[len(l.events)-1] = e, e
}

// finish puts the new events and the shipment into changes.
func (l *Timeline) finish(ch *cloud.Changes) {
	if len(l.fresh) == 0 && !l.Changed {
		return
	}
	if t := l.fold(); t.Current != nil {
		l.Shipment.Current, l.Shipment.LastAt = *t.Current, t.LastEventAt.UTC().Truncate(time.Millisecond)
	}
	ch.Shipments = append(ch.Shipments, l.Shipment)
	for _, e := range l.fresh {
		ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: l.Shipment.ID, BusinessID: l.Shipment.BusinessID, Event: e})
	}
}
