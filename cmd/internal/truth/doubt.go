package truth

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// How far from the door's movement a doubt about it may be recorded: an act comes
// shortly before the door opens, and the end of its session, with what is reported
// then, at most a session after it closed.
const (
	doubtBefore = time.Minute
	doubtAfter  = 15 * time.Minute
)

// around are the stretches during which a door stood open for an item of these
// names to come or go the last time, with what may be recorded about them. For
// an item that never did, they are all.
func (b *Cabinet) around(door uint, kind board.FactKind, names []string) (out []Span) {
	var last time.Time
	for _, f := range b.Facts {
		if f.Door == door && f.Kind == kind && slices.Contains(names, f.Item) {
			last = f.At
		}
	}
	for _, s := range b.openStretches(door) {
		span := Span{At: s.from.Add(-doubtBefore), Until: s.until}
		if !last.IsZero() && (last.Before(s.from) || !s.until.IsZero() && last.After(s.until)) {
			continue
		}
		if !span.Until.IsZero() {
			span.Until = b.awake(span.Until, doubtAfter)
		}
		out = append(out, span)
	}
	return out
}

// awake is when an agent has run for so long since a moment.
func (b *Cabinet) awake(from time.Time, d time.Duration) time.Time {
	for _, x := range b.Boots {
		if !x.End.IsZero() && !x.End.After(from) {
			continue
		}
		if from.Before(x.Start) {
			from = x.Start
		}
		if x.End.IsZero() || !from.Add(d).After(x.End) {
			break
		}
		d -= x.End.Sub(from)
		from = x.End
	}
	return from.Add(d)
}

// doubted reports whether something on record leaves it open what happened at a
// door in one of the stretches: an exception, an opening that ended without the
// door being seen, a lost memory, a door that was forced.
func (j *judge) doubted(b *Cabinet, d Device, door uint, stretches []Span) bool {
	in := func(at time.Time) bool {
		return slices.ContainsFunc(stretches, func(s Span) bool { return s.touches(at, at) })
	}
	for _, t := range b.Trouble {
		if t.What == force && t.Door == door && in(t.At) && b.blind(t.At) {
			return true // nothing looked
		}
		if t.What == forgot && (t.Door == 0 || t.Door == door) && slices.ContainsFunc(stretches, func(s Span) bool { return t.touches(s.At, s.Until) }) {
			return true
		}
	}
	for _, r := range d.Records {
		if in(b.at(r)) && j.doubts(r, door) {
			return true
		}
	}
	grid := d.Cells[door].GridCode
	about := func(e cloud.Exception) bool { // the door, or an opening of several that has it
		return e.GridCode == grid || j.inOpening(d, e, grid)
	}
	for _, e := range d.Exceptions {
		if about(e) && e.Type != wire.ExDoorLeftOpen && e.Type != "overdue" && in(e.OpenedAt) {
			return true
		}
	}
	return false
}

// doubts reports whether a record leaves it open what lies behind a door.
func (j *judge) doubts(r wire.Record, door uint) bool {
	switch r.Kind {
	case wire.KindExceptionOpened:
		var e wire.Exception
		return wire.Decode(r.Body, &e) == nil && e.Door == door && (e.Type != wire.ExDoorLeftOpen || e.Evidence == forcedEvidence)
	case wire.KindOpeningEnded:
		var e wire.OpeningEnded
		return wire.Decode(r.Body, &e) == nil && e.Reason != wire.EndOpenFailed && e.Reason != wire.EndDone && slices.Contains(j.Cloud.Audit.Openings[e.OpeningID].Doors, door)
	case wire.KindCommandOutcome:
		var e wire.CommandOutcome
		return wire.Decode(r.Body, &e) == nil && e.Doors[door] == wire.DoorNotSeen
	case wire.KindPickupCompleted:
		var e wire.PickupCompleted
		return wire.Decode(r.Body, &e) == nil && (e.StillOpen && slices.Contains(e.Doors, door) || slices.Contains(e.Left, door))
	case wire.KindOpeningSettled:
		var e wire.OpeningSettled
		return wire.Decode(r.Body, &e) == nil && slices.ContainsFunc(e.Packages, func(p wire.SettledPackage) bool { return p.Door == door && p.Outcome == wire.Unverified })
	}
	return false
}
