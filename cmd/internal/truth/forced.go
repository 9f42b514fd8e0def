package truth

import (
	"slices"
	"time"

	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// A door that opens without an act is reported as forced (locker-hardware 5).
const (
	forcedEvidence = "forced"
	forcedIn       = 8 * time.Second         // from the door to its record: an idle poll, debounce, the minimum time
	openLong       = 3 * time.Second         // certainly longer than the minimum time
	startedFor     = 30 * time.Second        // an agent has read its boards by then
	pulseGrace     = 1950 * time.Millisecond // 3 s from a pulse to the reading, less an idle poll
	mutedFor       = time.Minute
)

// forced judges doors that were forced both ways: one that was, while an agent
// looked, is reported in time, and one that is reported was.
func (j *judge) forced(b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	told := map[uint][]time.Time{}
	for _, r := range d.Records {
		var t wire.Tamper
		var e wire.Exception
		at := b.at(r)
		switch {
		case r.Kind == wire.KindTamper && wire.Decode(r.Body, &t) == nil && t.What == wire.TamperDoorForced:
			told[t.Door] = append(told[t.Door], at)
			j.forcedCause(b, t.Door, at)
		case r.Kind == wire.KindExceptionOpened && wire.Decode(r.Body, &e) == nil && e.Type == wire.ExDoorLeftOpen && e.Evidence == forcedEvidence:
			j.forcedCause(b, e.Door, at)
		}
	}
	sessions := sessionsOf(b, d.Records)
	for door := range d.Cells {
		for _, s := range b.openStretches(door) {
			by := b.coilBefore(door, s.from)
			long := s.until.IsZero() || s.until.Sub(s.from) >= openLong
			if !long || s.from.Sub(by) <= relatchSlack+lineLatency || !b.watched(door, s.from.Add(-startedFor), s.from.Add(forcedIn)) {
				continue
			}
			if slices.ContainsFunc(sessions[door], func(x Span) bool { return x.touches(s.from.Add(-lineLatency), s.from.Add(openLong)) }) {
				continue
			}
			from := b.readAgain(door, s.from, d.Records)
			if from.After(s.from) && !s.until.IsZero() && s.until.Sub(from) < openLong || from.After(s.from) && !b.watched(door, from.Add(-startedFor), from.Add(forcedIn)) {
				continue
			}
			if !slices.ContainsFunc(told[door], func(t time.Time) bool { return within(t, s.from.Add(-mutedFor), from.Add(forcedIn)) }) {
				j.find("silent", b, door, s.from, "forced open, and nothing tells of it")
			}
		}
	}
}

// readAgain is from when on a door that opened at a moment is read: at once, or once
// the cabinet has applied the layout that puts its compartment back. What no layout
// names is not read.
func (b *Cabinet) readAgain(door uint, at time.Time, records []wire.Record) time.Time {
	applied := func(since time.Time) (first time.Time) {
		for _, r := range records {
			var c wire.ConfigApplied
			t := b.at(r)
			if r.Kind == wire.KindConfigApplied && wire.Decode(r.Body, &c) == nil && c.Result == wire.ResultOK &&
				!t.Before(since.Add(-100*time.Millisecond)) && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
		return first
	}
	for _, x := range b.Removed {
		if x.Door != door || x.Until.IsZero() {
			continue
		}
		if out, in := applied(x.At), applied(x.Until); !out.IsZero() && within(at, out, in) {
			return in
		}
	}
	return at
}

// forcedCause: the door's hook was out, and no pulse had let it go a moment
// before. A door that an agent finds open after it could not look may have had any cause.
func (j *judge) forcedCause(b *Cabinet, door uint, at time.Time) {
	if !b.hookOut(door, at.Add(-closeSlack), at.Add(time.Second)) {
		if !b.troubled(door, at.Add(-closeSlack), at) {
			j.find("cause", b, door, at, "reported as forced, and its latch was in")
		}
		return
	}
	out := time.Time{}
	for _, f := range b.Facts {
		if f.Door == door && f.Kind == board.HookOut && !f.At.After(at.Add(time.Second)) {
			out = f.At
		}
	}
	if coil := b.coilBefore(door, out); out.Sub(coil) <= pulseGrace && !b.troubled(door, coil, at) {
		j.find("cause", b, door, at, "reported as forced, and a pulse had opened it at %s", clockTime(coil))
	}
}

// coilBefore is when a door's coil fired last before a moment; zero: never.
func (b *Cabinet) coilBefore(door uint, at time.Time) (last time.Time) {
	for _, f := range b.Facts {
		if f.Kind == board.CoilFired && f.Door == door && !f.At.After(at) {
			last = f.At
		}
	}
	return last
}

// watched reports whether one agent could see a door from one moment to another,
// and did not lose what it wrote. A new or damaged store has no doors before the
// agent has talked to the cloud, which gives it its configuration.
func (b *Cabinet) watched(door uint, from, to time.Time) bool {
	if b.troubled(door, from, to) {
		return false
	}
	var blank time.Time // since when the agent's store was new
	for i, x := range b.Boots {
		if x.Lost && !x.Start.After(from) {
			blank = x.Start
		}
		if !blank.IsZero() && !slices.ContainsFunc(b.Held, func(h Held) bool { return within(h.At, blank, from) }) {
			continue
		}
		if !x.Start.After(from) && (x.End.IsZero() || !x.End.Before(to)) {
			return b.sent(i)
		}
	}
	return false
}

// sent reports whether what a start wrote has reached the cloud, or is still there:
// it had all gone at the end of this start, or of a later one, before a store was
// lost.
func (b *Cabinet) sent(start int) bool {
	for i := start; i+1 < len(b.Boots) && b.Boots[i].Unsent > 0; i++ {
		if b.Boots[i+1].Lost {
			return false
		}
	}
	return true
}

// sessionsOf are the stretches during which an opening ran on a door, by the
// records of its start and its end.
func sessionsOf(b *Cabinet, records []wire.Record) map[uint][]Span {
	type session struct {
		doors []uint
		span  Span
	}
	all := map[string]*session{}
	end := func(id string, at time.Time) {
		if s := all[id]; s != nil && s.span.Until.IsZero() {
			s.span.Until = at
		}
	}
	for _, r := range records {
		var started wire.OpeningStarted
		var settled wire.OpeningSettled
		var ended wire.OpeningEnded
		var collected wire.PickupCompleted
		switch at := b.at(r); {
		case r.Kind == wire.KindOpeningStarted && wire.Decode(r.Body, &started) == nil:
			if all[started.OpeningID] == nil {
				all[started.OpeningID] = &session{doors: started.Doors, span: Span{At: at}}
			}
		case r.Kind == wire.KindOpeningSettled && wire.Decode(r.Body, &settled) == nil:
			end(settled.OpeningID, at)
		case r.Kind == wire.KindOpeningEnded && wire.Decode(r.Body, &ended) == nil:
			end(ended.OpeningID, at)
		case r.Kind == wire.KindPickupCompleted && wire.Decode(r.Body, &collected) == nil:
			end(collected.OpeningID, at)
		}
	}
	out := map[uint][]Span{}
	for _, s := range all {
		for _, n := range s.doors {
			out[n] = append(out[n], s.span)
		}
	}
	return out
}
