package order

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// line is an order's timeline inside a decision. Events of sources whose time has
// not come are no part of it: what is added now happens before them.
type line struct {
	shipment cloud.Shipment
	events   []otep.Event
	fresh    []otep.Event
	changed  bool // the shipment is written although nothing is new
}

// timeline reads the order's timeline.
func (w *work) timeline() (*line, error) {
	if w.line != nil {
		return w.line, nil
	}
	s, err := w.v.OrderShipment(w.o.BusinessID, w.o.ID)
	if err != nil {
		return nil, err
	}
	rows, err := w.v.Timeline(s.ID)
	if err != nil {
		return nil, err
	}
	w.line = &line{shipment: s}
	for _, r := range rows {
		if r.Event.TimeType != "" || !r.Event.IsAhead(w.now) {
			w.line.events = append(w.line.events, r.Event)
		}
	}
	return w.line, nil
}

// newLine is the empty timeline of a new order.
func newLine(o cloud.Order, id cloud.ShipmentID, now time.Time) *line {
	return &line{shipment: cloud.Shipment{ID: id, BusinessID: o.BusinessID, Number: o.Number, External: o.ExternalNumber, OrderID: o.ID, CustomerID: o.CustomerID, CreatedAt: now}}
}

func (l *line) subject() otep.Subject {
	return otep.Subject{TrackingNumber: l.shipment.Number, OrderID: int64(l.shipment.OrderID), ExternalTrackingNumber: l.shipment.External,
		SSCC: l.shipment.SSCC, PieceID: l.shipment.PieceID}
}

func (l *line) fold() otep.Timeline { return otep.Fold(l.shipment.Profile, l.subject(), l.events) }

// current is the code of the latest event, "" when there is none.
func (l *line) current() otep.Code {
	if c := l.fold().Current; c != nil {
		return *c
	}
	return ""
}

// universal is the code of the latest event that moves are judged by.
func (l *line) universal() otep.Code {
	t := l.fold()
	for i := len(t.Events) - 1; i >= 0; i-- {
		e := t.Events[i]
		if s, ok := otep.Lookup(e.StatusCode); ok && s.Universal() && (e.TimeType == "" || e.TimeType == otep.Actual) {
			return e.StatusCode
		}
	}
	return ""
}

// tell adds an event, after every other, unless the code may not follow those
// that are there: a timeline of ours has no invalid move. When the goods must
// have been on the way in between, it says so first. A source may have told
// already what we are about to.
func (l *line) tell(code otep.Code, source, reason string, at, now time.Time) {
	next := code
	if code == otep.AvailableForPickup {
		next = otep.DeliveryFailed // it was brought, and whatever comes of it may follow
	}
	switch {
	case !l.mayFollow(next) && l.mayFollow(otep.OutForDelivery) && otep.Transition(otep.OutForDelivery, next):
		l.add(otep.OutForDelivery, source, "", at, now)
	case !l.mayFollow(code):
		return
	}
	l.add(code, source, reason, at, now)
}

// bookable reports whether a booking may be confirmed: once, and after nothing
// but the order itself.
func (l *line) bookable() bool {
	return !slices.ContainsFunc(l.events, func(e otep.Event) bool { return e.StatusCode != otep.InformationSubmitted })
}

// mayFollow reports whether a code may come next.
func (l *line) mayFollow(code otep.Code) bool {
	last := l.universal()
	s, ok := otep.Lookup(code)
	return ok && (!s.Universal() || last == "" || last == code || otep.Transition(last, code))
}

// add adds an event that happened at a time, or right after what is told
// already. Two events of a moment would be put in the order of their ranks, so
// each has a moment of its own.
func (l *line) add(code otep.Code, source, reason string, at, now time.Time) {
	for _, e := range l.events {
		if e.TimeType == "" && !at.After(e.OccurredAt.Time) {
			at = e.OccurredAt.UTC().Truncate(time.Millisecond).Add(time.Millisecond)
		}
	}
	e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: now}, StatusCode: code, IncidentReason: reason,
		Source: &otep.Source{Type: source}}.Fill(l.shipment.Profile)
	e.EventID = otep.ID(l.subject(), e)
	l.events, l.fresh = append(l.events, e), append(l.fresh, e)
}

// witness puts into the last event what was seen of it: who took the goods,
// where, and how surely when.
func (l *line) witness(in MoveInput) {
	e := l.fresh[len(l.fresh)-1]
	if in.Recipient != "" {
		e.PoD = &otep.Proof{Recipient: in.Recipient}
	}
	e.Extensions = cloud.Moment{Approximate: in.Approximate, Earliest: in.Earliest, Latest: in.Latest}.Extensions()
	e.Location = in.Place
	l.fresh[len(l.fresh)-1], l.events[len(l.events)-1] = e, e
}

// finish puts the new events and the shipment into changes.
func (l *line) finish(ch *cloud.Changes) {
	if len(l.fresh) == 0 && !l.changed {
		return
	}
	if t := l.fold(); t.Current != nil {
		l.shipment.Current, l.shipment.LastAt = *t.Current, t.LastEventAt.UTC().Truncate(time.Millisecond)
	}
	ch.Shipments = append(ch.Shipments, l.shipment)
	for _, e := range l.fresh {
		ch.Events = append(ch.Events, cloud.TimelineEvent{ShipmentID: l.shipment.ID, BusinessID: l.shipment.BusinessID, Event: e})
	}
}
