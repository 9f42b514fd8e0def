package truth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Simple is the share of a device that runs no agent: the cloud runs its rules, and it carries
// out signed orders. Its rules have the names of a cabinet's; two are its own:
//
//	order       a lock without an order, twice for one order, or after the order's end
//	once        a code that let a person in after what it was for had ended, a parcel that was
//	            put in or taken out once and counts as that another number of times
type Simple struct {
	Code    string
	Facts   []board.Fact // in order of time: coils, doors, items
	Unlocks []Unlock     // what the device's program had its locks do, in order of time
	Trouble []Span       // doors that were forced, and what the cloud was not told by people
}

// Unlock is a lock that the device's program pulsed for an order.
type Unlock struct {
	At      time.Time
	Door    uint
	Command string    // id of the order
	Opening string    // that it names
	Ends    time.Time // of the order
}

// Limits of a device that speaks HTTP (lockers-devices 10.4).
const simpleWait = 90 * time.Second // from the end of an act to its last pulse: the act's life and the order's

// judgeSimple judges a device that runs no agent.
func judgeSimple(j *judge, x *Simple) {
	b, d := &Cabinet{Code: x.Code, Facts: x.Facts, Trouble: x.Trouble}, j.Cloud.Devices[x.Code]
	s := simpleJudge{judge: j, x: x, b: b, d: d}
	s.orders()
	s.hands(b)
	s.codes()
	if j.Final {
		j.ends(b)
		judgeOutgoing(j, b, d)
		s.places()
	}
}

type simpleJudge struct {
	*judge
	x *Simple
	b *Cabinet
	d Device
}

// orders asks of each lock which order and which person allowed it.
func (s simpleJudge) orders() {
	used, pulses := map[string]bool{}, map[string]int{}
	acts := map[string]int{} // of openings, to the script's
	coils := slices.DeleteFunc(slices.Clone(s.x.Facts), func(f board.Fact) bool { return f.Kind != board.CoilFired })
	s.Coils += len(coils)
	if len(coils) != len(s.x.Unlocks) {
		s.find("order", s.b, 0, time.Time{}, "%d coils fired, and the program asked for %d", len(coils), len(s.x.Unlocks))
	}
	for _, u := range s.x.Unlocks {
		k := fmt.Sprint(u.Opening, u.Door)
		pulses[k]++
		switch {
		case used[u.Command]:
			s.find("order", s.b, u.Door, u.At, "the order %s was carried out twice", u.Command)
		case u.At.After(u.Ends.Add(time.Second)):
			s.find("order", s.b, u.Door, u.At, "the order %s had ended at %s", u.Command, clockTime(u.Ends))
		case pulses[k] > coilsPerAct*max(1, s.actsFor(u)):
			s.find("order", s.b, u.Door, u.At, "pulse %d of the opening %s", pulses[k], u.Opening)
		default:
			if why := s.refusesUnlock(u, acts); why != "" {
				s.find("authority", s.b, u.Door, u.At, "%s: %s", u.Opening, why)
				continue
			}
			s.Authorised++
		}
		used[u.Command] = true
	}
}

// actsFor counts the acts of the script that had asked for an opening by the time of a pulse: a
// further one, while it runs, joins it with pulses of its own.
func (s simpleJudge) actsFor(u Unlock) (n int) {
	o := s.d.Openings[u.Opening]
	first := slices.IndexFunc(s.x.Unlocks, func(x Unlock) bool { return x.Opening == u.Opening })
	for _, a := range s.Acts {
		if a.Cabinet == s.x.Code && a.Delivery == s.deliveryOf(o) && a.opens(o.Kind) && within(a.At, s.x.Unlocks[first].At.Add(-simpleWait), u.At) {
			n++
		}
	}
	return n
}

// deliveryOf is the number of an opening's delivery, "" when it has none.
func (s simpleJudge) deliveryOf(o cloud.Opening) string {
	for _, x := range s.d.Deliveries {
		if x.ID == o.DeliveryID {
			return x.Number
		}
	}
	return ""
}

// refusesUnlock says why no person of the script had a door opened, "" when one did. An act
// stands for one opening.
func (s simpleJudge) refusesUnlock(u Unlock, acts map[string]int) string {
	o, ok := s.d.Openings[u.Opening]
	switch {
	case !ok:
		return "the cloud has no such opening"
	case !slices.ContainsFunc(o.Doors, func(d cloud.OpeningDoor) bool { return d.Door == u.Door }):
		return "the opening has another door"
	}
	number := s.deliveryOf(o)
	i, known := acts[u.Opening]
	if !known {
		used := slices.Collect(maps.Values(acts))
		for i = range s.Acts {
			a := s.Acts[i]
			if known = !slices.Contains(used, i) && a.Cabinet == s.x.Code && a.Delivery == number && a.opens(o.Kind) && within(u.At, a.At, s.until(a).Add(simpleWait)); known {
				break
			}
		}
		if !known {
			return fmt.Sprintf("no person of the script asked for a %s of %q", o.Kind, number)
		}
		acts[u.Opening] = i
	}
	if a := s.Acts[i]; a.OK && len(a.Doors) > 0 && !slices.Contains(a.Doors, u.Door) {
		return fmt.Sprintf("the person was let in to %v", a.Doors)
	}
	return ""
}

// opens reports whether an act at a simple device may lead to an opening of a kind. One that was
// refused leads to none.
func (a Act) opens(kind wire.OpeningKind) bool {
	if !a.Until.IsZero() && !a.OK {
		return false
	}
	return map[string]wire.OpeningKind{wire.CodeDelivery: wire.OpenDeposit, wire.CodePickup: wire.OpenPickup}[a.Code] == kind || a.Code == string(kind)
}

// codes: a code lets no person in after what it was for has ended, nor after another one took
// its place.
func (s simpleJudge) codes() {
	for _, a := range s.Acts {
		if a.Cabinet != s.x.Code || !a.OK || a.Kind != edge.ByCode {
			continue
		}
		x := s.d.Deliveries[a.Delivery]
		switch {
		case a.Replaced != 0:
			s.find("dead_code", s.b, 0, a.At, "a %s code of %s that was replaced has let a person in", a.Code, a.Delivery)
		case a.Code == wire.CodePickup && x.IsOutgoing():
			s.find("outgoing", s.b, 0, a.At, "a pickup code has opened %s, which a courier collects", a.Delivery)
		case a.Code == wire.CodePickup && !x.PickedUpAt.IsZero() && x.PickedUpAt.Before(a.At):
			s.find("once", s.b, 0, a.At, "%s was collected at %s, and its code has let a person in again", a.Delivery, clockTime(x.PickedUpAt))
		case a.Code == wire.CodeDelivery && !x.DepositedAt.IsZero() && x.DepositedAt.Before(a.At):
			s.find("once", s.b, 0, a.At, "%s was deposited at %s, and its code has let a person in again", a.Delivery, clockTime(x.DepositedAt))
		case a.Code != wire.CodePickup && a.Code != wire.CodeDelivery:
			s.find("authority", s.b, 0, a.At, "a %s code has let a person in", a.Code)
		}
	}
}

// doubts reports whether it is on record that it is open what happened at a door, as of one that
// was forced, or the script left it open.
func (s simpleJudge) doubts(door uint) bool {
	for _, o := range s.d.Openings {
		for _, d := range o.Doors {
			if d.Door == door && (d.Error == wire.DoorNotSeen || o.EndReason == wire.EndNotCollected || o.EndReason == wire.EndDepositUnverified) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.x.Trouble, func(t Span) bool { return t.What == forgot && t.Door == door }) ||
		slices.ContainsFunc(s.d.Exceptions, func(e cloud.Exception) bool {
			wasForced := slices.ContainsFunc(s.x.Trouble, func(t Span) bool { return t.What == force && t.Door == door })
			return e.GridCode == s.d.Cells[door].GridCode && e.Type != "overdue" && (e.Type != wire.ExDoorLeftOpen || wasForced && e.Note == forcedEvidence)
		})
}

// places compares what lies behind each door with what the cloud believes, and counts what has
// come and gone.
func (s simpleJudge) places() {
	inside := s.b.items()
	for door, items := range inside {
		s.Items += len(items)
		for _, item := range items {
			if p, ok := s.pack(item); (!ok || p.Status != cloud.PackageInCompartment || p.GridID != s.d.Cells[door].GridID) && !s.doubts(door) {
				s.find("place", s.b, door, time.Time{}, "%s lies there, and counts as %q in compartment %d", item, p.Status, s.d.cell(p.GridID).Door)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(s.d.Deliveries)) {
		for _, p := range s.d.Deliveries[number].Packages {
			door := s.d.cell(p.GridID).Door
			if p.Status == cloud.PackageInCompartment && !slices.Contains(inside[door], p.TrackingNumber) && !s.doubts(door) {
				s.find("place", s.b, door, time.Time{}, "counts as holding %s, and holds %v", p.TrackingNumber, inside[door])
			}
			s.parcel(s.b, s.d, s.d.Deliveries[number], p, inside)
			s.counts(p)
		}
	}
}

// pack finds a package by its tracking number.
func (s simpleJudge) pack(number string) (cloud.Package, bool) {
	for _, x := range s.d.Deliveries {
		for _, p := range x.Packages {
			if p.TrackingNumber == number {
				return p, true
			}
		}
	}
	return cloud.Package{}, false
}

// counts compares how often a parcel came and left with its timeline.
func (s simpleJudge) counts(p cloud.Package) {
	var came, left, doubted int
	for _, f := range s.x.Facts {
		switch {
		case f.Item != p.TrackingNumber:
			continue
		case f.Kind == board.ItemIn:
			s.Settled, came = s.Settled+1, came+1
		case f.Kind == board.ItemOut:
			s.Collected, left = s.Collected+1, left+1
		}
		if s.doubts(f.Door) {
			doubted++
		}
	}
	var waits, ends int
	steps := s.Cloud.Timelines[p.TrackingNumber]
	for i, step := range steps {
		switch {
		case step.Code == waiting[0] || slices.Contains(waitingOut, step.Code):
			waits++
		case slices.Contains(slices.Concat(gone, goneOut), step.Code) && (i == 0 || !slices.Contains(removed, steps[i-1].Code)), slices.Contains(removed, step.Code):
			ends++
		}
	}
	if doubted == 0 && (waits != came || ends != left) {
		s.find("once", s.b, 0, time.Time{}, "%s was put in %d times and taken out %d times, and its timeline is %s", p.TrackingNumber, came, left, strings.TrimSpace(fmt.Sprint(steps)))
	}
}
