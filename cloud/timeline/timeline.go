// Package timeline derives the timelines of an order and of its packages from one list of
// stored events.
//
// An event is about the whole order, or about one of its packages. An event of the whole belongs
// to every package that has not come to its end; when none is left, to all of them. The order
// is where the package is that is least far: its timeline has the events of the whole, and one
// for each change of that. An event that a move of the order itself has made says where the order is.
//
// The order in which events arrive makes no difference. All functions are safe for concurrent use, and
// pure but for those that take a View.
package timeline

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Partial is the incident reason of an order some of whose packages were delivered, and the
// others came to another end.
const Partial = "x-partial_delivery"

// IsSplit reports whether any event is about one package alone, so that the packages of an order
// may stand in different places.
func IsSplit(events []cloud.TimelineEvent) bool {
	return slices.ContainsFunc(events, func(e cloud.TimelineEvent) bool { return e.Package != 0 })
}

// OfOrder is the timeline of an order with some packages, in the order of otep.Compare: events
// of the whole, and those that changed where the order is as it is at now. Withdrawn
// events are in it while no event is about one package, and are marked; reports always. The zero time is the end of all times.
func OfOrder(events []cloud.TimelineEvent, packages []cloud.PackageID, now time.Time) []otep.Event {
	if !IsSplit(events) {
		return plainEvents(events)
	}
	s := newStand(packages)
	var out []otep.Event
	last := s.derived() // where the events of out say that the order is
	list := sorted(events)
	var by *cloud.TimelineEvent // the latest of a moment that counts
	for i, e := range list {
		if e.Package == 0 || e.Event.Reported {
			out = append(out, e.Event)
		}
		s.takeEvent(e, now)
		if e.Event.CountsAt(now) {
			by = e
			if e.Package == 0 {
				if last = s.derived(); last.code != e.Event.StatusCode && !isOwn(e.Event) {
					last = placeOf(e.Event)
				}
			}
		}
		if by == nil || i+1 < len(list) && list[i+1].Event.OccurredAt.Sub(e.Event.OccurredAt.Time) <= Moment {
			continue
		}
		place := s.derived()
		switch {
		case place == last:
		case by.Package == 0:
			out = append(out, place.event(by.Event))
		case place == placeOf(by.Event):
			out = append(bridged(out, place.code, by.Event), by.Event)
		default:
			out = append(bridged(out, place.code, by.Event), place.event(by.Event))
		}
		last, by = place, nil
	}
	return out
}

// Moment is how long after another event one that is made of it happens: events within it are
// taken together, and what they lead to comes after all of them.
const Moment = time.Microsecond

// OfPackage is the timeline of one package of an order as it is at now, in the order of
// otep.Compare, with the marks of OfOrder.
func OfPackage(events []cloud.TimelineEvent, packages []cloud.PackageID, id cloud.PackageID, now time.Time) []otep.Event {
	if !IsSplit(events) {
		return plainEvents(events)
	}
	s := newStand(packages)
	var out []otep.Event
	for _, e := range sorted(events) {
		if s.isOf(e, id) {
			out = append(out, e.Event)
		}
		s.takeEvent(e, now)
	}
	return out
}

// Codes are where the packages of an order are at now: the code of each, "" before its first event.
func Codes(events []cloud.TimelineEvent, packages []cloud.PackageID, now time.Time) map[cloud.PackageID]otep.Code {
	s := newStand(packages)
	for _, e := range sorted(events) {
		s.takeEvent(e, now)
	}
	out := make(map[cloud.PackageID]otep.Code, len(packages))
	for i, id := range packages {
		out[id] = s.at[i].code
	}
	return out
}

// bridged are the events of an order before it came to a code by an event about one package. Where the code
// cannot follow, since the package that was least far has gone several steps at once, the order was out for
// delivery in between.
func bridged(events []otep.Event, code otep.Code, by otep.Event) []otep.Event {
	for _, e := range slices.Backward(events) {
		s, ok := otep.Lookup(e.StatusCode)
		if !e.CountsAt(time.Time{}) || !ok || !s.Universal() {
			continue
		}
		if !otep.Transition(e.StatusCode, code) && otep.Transition(e.StatusCode, otep.OutForDelivery) && otep.Transition(otep.OutForDelivery, code) {
			made := place{code: otep.OutForDelivery}.event(by)
			made.OccurredAt = by.OccurredAt
			events = append(events, made)
		}
		break
	}
	return events
}

// isOwn reports whether an event was made by a move of the order itself, which says where the order is.
func isOwn(e otep.Event) bool { return e.Source == nil || e.Source.Provider == "" }

func plainEvents(events []cloud.TimelineEvent) []otep.Event {
	out := make([]otep.Event, len(events))
	for i := range events {
		out[i] = events[i].Event
	}
	return out
}

// sorted are the events that were not taken back.
func sorted(events []cloud.TimelineEvent) []*cloud.TimelineEvent {
	out := make([]*cloud.TimelineEvent, 0, len(events))
	for i := range events {
		if !events[i].Event.Withdrawn {
			out = append(out, &events[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *cloud.TimelineEvent) int { return otep.Compare(&a.Event, &b.Event) })
	return out
}

// stand is where packages are at one moment of their history.
type stand struct {
	place map[cloud.PackageID]int // in at
	at    []standing
}

// standing is what counts of the latest event of a package.
type standing struct {
	code  otep.Code
	rank  int
	ended bool
}

func newStand(packages []cloud.PackageID) *stand {
	s := &stand{make(map[cloud.PackageID]int, len(packages)), make([]standing, len(packages))}
	for i, id := range packages {
		s.place[id] = i
	}
	return s
}

// takeEvent goes on by an event. One that does not count changes no place.
func (s *stand) takeEvent(e *cloud.TimelineEvent, now time.Time) {
	if !e.Event.CountsAt(now) {
		return
	}
	next := standing{e.Event.StatusCode, e.Event.Rank(), e.Event.StatusCode.IsTerminal()}
	if e.Package != 0 {
		if i, ok := s.place[e.Package]; ok {
			s.at[i] = next
		}
		return
	}
	all := s.ended()
	for i := range s.at {
		if all || !s.at[i].ended {
			s.at[i] = next
		}
	}
}

// isOf reports whether an event that comes now is about a package.
func (s *stand) isOf(e *cloud.TimelineEvent, id cloud.PackageID) bool {
	return e.Package == id || e.Package == 0 && (!s.at[s.place[id]].ended || s.ended())
}

// ended reports whether all packages have come to their end.
func (s *stand) ended() bool {
	return !slices.ContainsFunc(s.at, func(x standing) bool { return !x.ended })
}

// place is where an order is.
type place struct {
	code   otep.Code
	reason string
}

// placeOf is the place that an event names.
func placeOf(e otep.Event) place { return place{code: e.StatusCode} }

// derived is where the order is: at the code of least rank among packages that have not come to
// their end. When all have: delivered when all were, delivery_failed with the reason Partial when some
// were, else at the code of highest rank.
func (s *stand) derived() (out place) {
	open, delivered := false, 0
	least, most := 0, -1
	var end otep.Code
	for i := range s.at {
		e := &s.at[i]
		switch {
		case !e.ended:
			if !open || e.rank < least {
				out.code, least = e.code, e.rank
			}
			open = true
		case e.code == otep.Delivered:
			delivered++
			fallthrough
		default:
			if e.rank > most {
				end, most = e.code, e.rank
			}
		}
	}
	switch {
	case open:
		return out
	case delivered > 0 && delivered < len(s.at):
		return place{otep.DeliveryFailed, Partial}
	}
	return place{code: end}
}

// event is the event of an order that came to a place by an event about something else: a moment
// after it, so that it is the later one of both.
func (p place) event(by otep.Event) otep.Event {
	sum := sha256.Sum256([]byte("order\n" + by.EventID + "\n" + by.OccurredAt.UTC().Format(time.RFC3339Nano) + "\n" + string(p.code)))
	source := &otep.Source{Type: otep.System, Synthesized: true}
	if by.Source != nil {
		source.Type, source.Provider, source.ProviderName = by.Source.Type, by.Source.Provider, by.Source.ProviderName
	}
	out := otep.Event{EventID: "evt_" + hex.EncodeToString(sum[:10]), OccurredAt: by.OccurredAt, RecordedAt: by.RecordedAt, StatusCode: p.code, IncidentReason: p.reason, Source: source}
	out.OccurredAt.Time = out.OccurredAt.Add(Moment)
	if out.RecordedAt.Before(out.OccurredAt.Time) {
		out.RecordedAt = out.OccurredAt
	}
	return out
}
