package order

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/protocol/otep"
)

// Timeline is the timeline of an order and of its packages inside a decision. Events of sources
// whose time has not come are no part of it: what is added now happens before them.
type Timeline struct {
	Shipment  cloud.Shipment
	packages  []cloud.OrderPackage
	now       time.Time
	rows      []cloud.TimelineEvent // that have come, those of fresh, too
	ahead     []cloud.TimelineEvent // those whose time has not come
	fresh     []cloud.TimelineEvent
	withdrawn []cloud.WithdrawnEvent
	due       []cloud.TimelineEvent // stored ones that come to count
	judged    []cloud.JudgedEvent
	unsent    []cloud.EventRef // withdrawn ones that never came to count
	Changed   bool             // the shipment is written although nothing is new
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
	recent, err := d.View.RecentTimeline(s.ID)
	if err == nil && (len(d.news.Withdrawn) > 0 || slices.ContainsFunc(d.news.Events, func(e cloud.TimelineEvent) bool { return !recent.IsBehind(e.Event.OccurredAt.Time) })) {
		recent.Events, err = d.View.Timeline(s.ID)
	}
	if err != nil {
		return nil, err
	}
	d.timeline = &Timeline{Shipment: s, packages: d.Order.Packages, now: d.Now}
	for _, r := range recent.Events {
		d.timeline.takeRow(r)
	}
	return d.timeline, nil
}

// newTimeline is the empty timeline of a new order.
func newTimeline(o cloud.Order, id cloud.ShipmentID, now time.Time) *Timeline {
	return &Timeline{Shipment: cloud.Shipment{ID: id, BusinessID: o.BusinessID, Number: o.Number, External: o.ExternalNumber, OrderID: o.ID, CustomerID: o.CustomerID, CreatedAt: now},
		packages: o.Packages, now: now}
}

// takeRow makes an event a part of the timeline, once its time has come.
func (l *Timeline) takeRow(r cloud.TimelineEvent) {
	list := &l.rows
	if r.Event.TimeType == "" && r.Event.IsAhead(l.now) {
		list = &l.ahead
	}
	*list = append(*list, r)
}

// subject is the order as its timeline names it, or with an id one of its packages.
func (l *Timeline) subject(id cloud.PackageID) otep.Subject {
	if i := slices.IndexFunc(l.packages, func(p cloud.OrderPackage) bool { return p.ID == id }); id != 0 && i >= 0 {
		p := l.packages[i]
		return l.Shipment.PackageSubject(p.ID, p.Number, p.ExternalNumber)
	}
	return l.Shipment.Subject()
}

// events are those of the order's timeline, or with an id of that of one of its packages.
func (l *Timeline) events(id cloud.PackageID) []otep.Event {
	if id == 0 {
		return timeline.OfOrder(l.rows, cloud.IDsOfPackages(l.packages), time.Time{})
	}
	return timeline.OfPackage(l.rows, cloud.IDsOfPackages(l.packages), id, time.Time{})
}

func (l *Timeline) fold(id cloud.PackageID) otep.Timeline {
	return otep.Fold(l.Shipment.Profile, l.subject(id), l.events(id))
}

// codes are where the packages are.
func (l *Timeline) codes() map[cloud.PackageID]otep.Code {
	return timeline.Codes(l.rows, cloud.IDsOfPackages(l.packages), time.Time{})
}

// Current is the code of the order's latest event, "" when there is none.
func (l *Timeline) Current() otep.Code { return l.latest().StatusCode }

// latest is the order's latest event that counts, zero when there is none.
func (l *Timeline) latest() otep.Event {
	for _, e := range slices.Backward(l.fold(0).Events) {
		if e.CountsAt(time.Time{}) {
			return e
		}
	}
	return otep.Event{}
}

// storedTime is when an event happened, as the time of a shipment's latest event is stored.
func storedTime(e otep.Event) time.Time { return e.OccurredAt.UTC().Truncate(time.Millisecond) }

// universal is the code of the latest event of a timeline that moves are judged by.
func (l *Timeline) universal(id cloud.PackageID) otep.Code {
	t := l.fold(id)
	for i := len(t.Events) - 1; i >= 0; i-- {
		e := t.Events[i]
		if s, ok := otep.Lookup(e.StatusCode); ok && s.Universal() && (e.TimeType == "" || e.TimeType == otep.Actual) {
			return e.StatusCode
		}
	}
	return ""
}

// Append adds an event of the whole order, after every other, unless the code may not follow those
// that are there: a timeline of ours has no invalid move. When the goods must
// have been on the way in between, it says so first. A source may have reported
// already what we are about to add.
func (l *Timeline) Append(code otep.Code, source, reason string, at, now time.Time) {
	l.appendTo(0, code, source, reason, at, now)
}

// appendTo is Append for one package, or with 0 for the whole order.
func (l *Timeline) appendTo(id cloud.PackageID, code otep.Code, source, reason string, at, now time.Time) {
	if len(l.packages) < 2 {
		id = 0
	}
	next := code
	if code == otep.AvailableForPickup {
		next = otep.DeliveryFailed // it was brought, and whatever comes of it may follow
	}
	switch {
	case !l.mayFollow(id, next) && l.mayFollow(id, otep.OutForDelivery) && otep.Transition(otep.OutForDelivery, next):
		l.insert(id, otep.OutForDelivery, source, "", at, now)
	case !l.mayFollow(id, code):
		return
	}
	l.insert(id, code, source, reason, at, now)
}

// Bookable reports whether a booking may be confirmed: once, and after nothing
// but the order itself.
func (l *Timeline) Bookable() bool {
	return !slices.ContainsFunc(l.rows, func(e cloud.TimelineEvent) bool {
		return !e.Event.Reported && e.Event.StatusCode != otep.InformationSubmitted
	})
}

// mayFollow reports whether a code may come next in a timeline; in that of the order, whether it may in
// those of all packages that it would belong to, too.
func (l *Timeline) mayFollow(id cloud.PackageID, code otep.Code) bool {
	s, ok := otep.Lookup(code)
	if !ok {
		return false
	}
	follows := func(id cloud.PackageID) bool {
		last := l.universal(id)
		return !s.Universal() || last == "" || last == code || otep.Transition(last, code)
	}
	if !follows(id) || id != 0 || !timeline.IsSplit(l.rows) {
		return follows(id)
	}
	codes := l.codes()
	open := func(p cloud.OrderPackage) bool { return !codes[p.ID].IsTerminal() }
	return !slices.ContainsFunc(l.packages, func(p cloud.OrderPackage) bool {
		return (open(p) || !slices.ContainsFunc(l.packages, open)) && !follows(p.ID)
	})
}

// insert adds an event that happened at a time, or right after the events that are there
// already. Two events of a moment would be put in the order of their ranks, so
// each has a moment of its own.
func (l *Timeline) insert(id cloud.PackageID, code otep.Code, source, reason string, at, now time.Time) {
	for _, e := range l.rows {
		if related := id == 0 || e.Package == 0 || e.Package == id; related && !e.Event.Reported && e.Event.TimeType == "" && !at.After(e.Event.OccurredAt.Add(timeline.Moment)) {
			at = e.Event.OccurredAt.Add(timeline.Moment).UTC().Truncate(time.Millisecond).Add(time.Millisecond)
		}
	}
	e := otep.Event{OccurredAt: otep.Time{Time: at}, RecordedAt: otep.Time{Time: now}, StatusCode: code, IncidentReason: reason,
		Source: &otep.Source{Type: source}}.Fill(l.Shipment.Profile)
	e.EventID = otep.ID(l.subject(id), e)
	l.add(cloud.TimelineEvent{Package: id, Event: e})
}

func (l *Timeline) add(e cloud.TimelineEvent) {
	e.ShipmentID, e.BusinessID = l.Shipment.ID, l.Shipment.BusinessID
	if e.Event.Via != 0 { // it may come back
		isOld := func(x cloud.TimelineEvent) bool { return x.Ref().Key() == e.Ref().Key() }
		l.rows, l.ahead = slices.DeleteFunc(l.rows, isOld), slices.DeleteFunc(l.ahead, isOld)
		l.withdrawn = slices.DeleteFunc(l.withdrawn, func(x cloud.WithdrawnEvent) bool { return x.Key() == e.Ref().Key() })
	}
	l.takeRow(e)
	l.fresh = append(l.fresh, e)
}

// takeOut takes a stored event out of the timeline, a report or one that counts, until readd puts it back.
func (l *Timeline) takeOut(ref cloud.EventRef, reported bool) (e cloud.TimelineEvent, ok bool) {
	i := slices.IndexFunc(l.rows, func(x cloud.TimelineEvent) bool { return x.Ref().Key() == ref.Key() })
	if i < 0 || l.rows[i].Event.Withdrawn || l.rows[i].Event.Reported != reported {
		return e, false
	}
	e = l.rows[i]
	l.rows = slices.Delete(l.rows, i, i+1)
	return e, true
}

// readd puts an event back that was taken out: it counts from now, or is a report.
func (l *Timeline) readd(e cloud.TimelineEvent) {
	l.takeRow(e)
	l.due = append(l.due, e)
	l.judged = append(l.judged, cloud.JudgedEvent{EventRef: e.Ref(), OccurredAt: e.Event.OccurredAt.Time, Reported: e.Event.Reported})
}

// isFresh reports whether an event came in this decision.
func (l *Timeline) isFresh(ref cloud.EventRef) bool {
	return slices.ContainsFunc(l.fresh, func(e cloud.TimelineEvent) bool { return e.Ref().Key() == ref.Key() })
}

// takeBack withdraws an event.
func (l *Timeline) takeBack(ref cloud.EventRef) {
	taken := cloud.WithdrawnEvent{EventRef: ref}
	for _, list := range [][]cloud.TimelineEvent{l.rows, l.ahead} {
		for i := range list {
			if e := &list[i]; e.Package == ref.Package && e.Event.EventID == ref.EventID {
				e.Event.Withdrawn = true
				taken.Event = e.Event
			}
		}
	}
	l.withdrawn = append(l.withdrawn, taken)
}

// setProof puts into events from place n on what was seen of them: who took the goods,
// where, and how surely when.
func (l *Timeline) setProof(in MoveInput, n int) {
	for i := n; i < len(l.fresh); i++ {
		e := l.fresh[i]
		if in.Recipient != "" {
			e.Event.PoD = &otep.Proof{Recipient: in.Recipient}
		}
		e.Event.Extensions = cloud.Moment{Approximate: in.Approximate, Earliest: in.Earliest, Latest: in.Latest}.Extensions()
		e.Event.Location = in.Place
		l.fresh[i] = e
		for k := range l.rows {
			if l.rows[k].Ref() == e.Ref() {
				l.rows[k] = e
			}
		}
	}
}

// keepDue keeps events whose time has not come, and forgets those that are taken back before.
func (l *Timeline) keepDue(v cloud.View, ch *cloud.Changes, by cloud.ProviderID) (err error) {
	if err = timeline.AddDue(v, ch, by, l.fresh, l.now); err != nil {
		return err
	}
	var taken []cloud.EventRef
	for _, w := range l.withdrawn {
		taken = append(taken, w.EventRef)
	}
	l.unsent, err = timeline.DropDue(v, ch, l.Shipment, taken)
	return err
}

// finish puts what is new of the timeline and the shipment into changes.
func (l *Timeline) finish(ch *cloud.Changes) {
	if len(l.fresh)+len(l.withdrawn)+len(l.due) == 0 && !l.Changed {
		return
	}
	last := l.latest()
	l.Shipment.Current, l.Shipment.LastAt = last.StatusCode, storedTime(last)
	ch.Shipments = append(ch.Shipments, l.Shipment)
	ch.Events = append(ch.Events, l.fresh...)
	ch.Judged = append(ch.Judged, l.judged...)
	for _, w := range l.withdrawn {
		ch.Withdrawn = append(ch.Withdrawn, w.EventRef)
	}
}
