package timeline

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Version is that of the rules by which a checkpoint is made. A stored one of another version is not
// read: raise it when events are folded in another way.
const Version = 1

// Checkpoint is one of a timeline.
type Checkpoint = cloud.TimelineCheckpoint

// MakeCheckpoint makes a checkpoint that leaves at least some of the latest events behind it. There
// is none where the events that would be kept lead to anything else than all of them.
func MakeCheckpoint(events []cloud.TimelineEvent, packages []cloud.PackageID, leave int, now time.Time) (c Checkpoint, ok bool) {
	list := slices.Clone(events)
	slices.SortStableFunc(list, func(a, b cloud.TimelineEvent) int { return otep.Compare(&a.Event, &b.Event) })
	cut := len(list) - leave
	for cut > 0 && !isGap(list, cut, now) {
		cut--
	}
	if cut <= 0 {
		return c, false
	}
	kept := keptOf(list[:cut], packages)
	if len(kept) >= cut || !isSame(list, append(slices.Clone(kept), list[cut:]...), cut, packages, now) {
		return c, false
	}
	c = Checkpoint{Upto: time.UnixMilli(list[cut-1].Event.OccurredAt.UnixMilli()), Events: cut}
	for _, e := range kept {
		c.Kept = append(c.Kept, e.Ref().Key())
	}
	return c, true
}

// IsRight reports whether a checkpoint is one of a timeline: it counts the events before it, keeps those of them that
// it has to, and these lead to the same as all.
func IsRight(c Checkpoint, events []cloud.TimelineEvent, packages []cloud.PackageID, now time.Time) bool {
	list := slices.Clone(events)
	slices.SortStableFunc(list, func(a, b cloud.TimelineEvent) int { return otep.Compare(&a.Event, &b.Event) })
	cut := 0
	for cut < len(list) && list[cut].Event.OccurredAt.UnixMilli() <= c.Upto.UnixMilli() {
		cut++
	}
	if cut == 0 || cut != c.Events {
		return false
	}
	kept := keptOf(list[:cut], packages)
	keys := make([]string, len(kept))
	for i, e := range kept {
		keys[i] = e.Ref().Key()
	}
	slices.Sort(keys)
	return slices.Equal(keys, slices.Sorted(slices.Values(c.Kept))) && isSame(list, append(kept, list[cut:]...), cut, packages, now)
}

// isGap reports whether a checkpoint can stand before an event of a list: the events before it are of earlier
// milliseconds, also with what follows from them a moment later, and have come.
func isGap(list []cloud.TimelineEvent, cut int, now time.Time) bool {
	if cut >= len(list) {
		return false
	}
	last, next := list[cut-1].Event.OccurredAt, list[cut].Event.OccurredAt
	return last.Add(2*Moment).UnixMilli() == last.UnixMilli() && last.UnixMilli() < next.UnixMilli() && last.Before(now.Add(-time.Minute))
}

// Kinds of events of which a checkpoint keeps the latest.
var keptKinds = []func(e *otep.Event) bool{
	func(*otep.Event) bool { return true },
	func(e *otep.Event) bool { return !e.Withdrawn },
	func(e *otep.Event) bool { return !e.Reported && e.TimeType == "" },
	func(e *otep.Event) bool { return e.CountsAt(time.Time{}) },
	func(e *otep.Event) bool { return e.CountsAt(time.Time{}) && isUniversal(e) },
	func(e *otep.Event) bool { return e.CountsAt(time.Time{}) && e.TimeType == "" && isUniversal(e) },
	func(e *otep.Event) bool { return e.CountsAt(time.Time{}) && e.StatusCode.IsTerminal() },
	func(e *otep.Event) bool { return e.CountsAt(time.Time{}) && !e.StatusCode.IsTerminal() },
	func(e *otep.Event) bool { return e.IsCollected() },
	func(e *otep.Event) bool { return e.IsCollected() && isUniversal(e) },
	func(e *otep.Event) bool { return !e.Withdrawn && e.StatusCode == otep.OutForDelivery },
	func(e *otep.Event) bool { return !e.Reported && e.StatusCode != otep.InformationSubmitted },
}

func isUniversal(e *otep.Event) bool {
	s, ok := otep.Lookup(e.StatusCode)
	return ok && s.Universal()
}

// keptOf are the latest events of each kind that are about the whole, about each package, and where
// each package is, in their order.
func keptOf(past []cloud.TimelineEvent, packages []cloud.PackageID) []cloud.TimelineEvent {
	keep := make([]bool, len(past))
	things := append([]cloud.PackageID{0}, packages...)
	for _, e := range past {
		if !slices.Contains(things, e.Package) {
			things = append(things, e.Package)
		}
	}
	for _, id := range things {
		for _, exact := range []bool{true, false} {
			for _, isKind := range keptKinds {
				for i, e := range slices.Backward(past) {
					if related := e.Package == id || !exact && (id == 0 || e.Package == 0); related && isKind(&e.Event) {
						keep[i] = true
						break
					}
				}
			}
		}
	}
	var out []cloud.TimelineEvent
	for i, e := range past {
		if keep[i] {
			out = append(out, e)
		}
	}
	return out
}

// isSame reports whether what is behind the first events of a list looks the same when only some of these
// are kept, on the order and on every package, and so does where they are.
func isSame(list, some []cloud.TimelineEvent, cut int, packages []cloud.PackageID, now time.Time) bool {
	upto := list[cut-1].Event.OccurredAt
	before := len(some) - (len(list) - cut)
	if len(packages) > 0 && !slices.Equal(standOf(list[:cut], packages).at, standOf(some[:before], packages).at) {
		return false
	}
	for _, id := range append([]cloud.PackageID{0}, packages...) {
		one, other := viewOf(list, packages, id, now), viewOf(some, packages, id, now)
		if !slices.Equal(tailOf(one, upto.Time), tailOf(other, upto.Time)) {
			return false
		}
	}
	return true
}

func standOf(events []cloud.TimelineEvent, packages []cloud.PackageID) *stand {
	s := newStand(packages)
	for _, e := range sorted(events) {
		s.takeEvent(e, time.Time{})
	}
	return s
}

func viewOf(events []cloud.TimelineEvent, packages []cloud.PackageID, id cloud.PackageID, now time.Time) []otep.Event {
	if id == 0 {
		return OfOrder(events, packages, now)
	}
	return OfPackage(events, packages, id, now)
}

// tailOf are the events of a timeline that are after a moment, and before these the latest that counts, and the latest that
// moves are judged by.
func tailOf(events []otep.Event, after time.Time) []string {
	var out []string
	counted, universal := "", ""
	for i := range events {
		e := &events[i]
		id := e.EventID + " " + string(e.StatusCode)
		switch {
		case e.OccurredAt.After(after.Add(2 * Moment)):
			out = append(out, id)
		case e.CountsAt(time.Time{}):
			counted = id
			if isUniversal(e) {
				universal = id
			}
		}
	}
	return append(out, counted, universal)
}
