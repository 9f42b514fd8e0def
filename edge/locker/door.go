package locker

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Waits that are not configuration.
const (
	forcedGrace   = int64(3 * time.Second) // an open this soon after a pulse belongs to it
	shutReport    = int64(3 * time.Second) // after the time to open, for the report that a door stayed shut
	repeatMuted   = int64(time.Minute)     // repeats of exceptions and tampering are counted, not written
	outOfService  = 3                      // open_failed in a row
	maxPulses     = 2                      // per act and door, the one for a door that did not swing included
	keepCommands  = int64(24 * time.Hour)  // beyond their expiry
	minCommands   = 200                    // ids that are kept whatever the time
	keepEnded     = int64(7 * 24 * time.Hour)
	maxEnded      = 500 // ends that are remembered, the newest, where no signed time tells how old they are
	tickingEvents = 2   // repeats of door_left_open after the first
	soundEvery    = int64(time.Minute)
)

// leftOpenAgain are the times after the first at which an open door is reported
// again.
var leftOpenAgain = [tickingEvents]int64{int64(15 * time.Minute), int64(time.Hour)}

// start is the first step of a boot: the boards have not been read yet.
func (d doors) start(in Started) {
	d.Ready = false
	for _, id := range sorted(d.Openings) {
		o := d.Openings[id]
		o.Ends, o.Unsure = d.carry(o.Ends, o.Last)
		o.Last = d.now.instant(d.now.Mono)
		for _, od := range o.Doors {
			o = o.with(od.Door, func(x *OpeningDoor) {
				x.Waiting, x.Deadline = false, 0
				if x.Phase == OpenFailed && x.Asked && d.Doors[x.Door].Opening == o.ID { // it may have let go while the agent was away
					x.Phase, x.Error = Pulsed, ""
				}
			})
		}
		d.setOpening(o)
	}
	for id, e := range d.Exceptions {
		e.WrittenAt = d.now.Mono
		d.Exceptions[id] = e
	}
	d.found(in)
	d.startTries()
	d.present = true
}

// carry moves an end into this boot: by the wall clock when both boots have
// one, otherwise by what was left at last. More than that is never left: a clock
// that was set back meanwhile does not prolong a session.
func (d doors) carry(ends, last Instant) (out Instant, unsure bool) {
	left := ends.Mono - last.Mono
	if ends.Clock > wire.ClockUnset && d.now.Clock > wire.ClockUnset {
		left = min(left, ends.Wall-d.now.Wall(d.now.Mono))
	} else {
		unsure = true
	}
	return d.now.instant(d.now.Mono + left), unsure
}

func (d doors) reading(in Reading) {
	door, ok := d.Doors[in.Door]
	if !ok {
		return
	}
	if door.Known && door.Open && !door.Counted && !door.Suspect && !in.Open && in.Mono >= door.Since+ms(d.times().MinOpenMS) {
		last := door
		last.OpenFor = in.OpenFor
		// It was open long enough, though no step fell in between. A lock that was just
		// pulsed needs no proof by polls, unless a board may have reset meanwhile.
		if last.proven(d.times()) || door.expected() && !in.Interrupted {
			d.opened(door)
			door = d.Doors[in.Door]
		}
	}
	was := door
	door.OpenFor = in.OpenFor
	door.Found = in.Open && (was.Found || d.Fresh && !was.Met)
	door.Known, door.Open, door.Item, door.Suspect, door.Read, door.Met = true, in.Open, in.Item, in.Suspect, true, true
	if !was.Known || was.Open != in.Open {
		door.Since, door.ShutAt = in.Mono, 0
		if in.Open && was.Known {
			door.ShutAt = cmp.Or(in.LastShut, in.Mono)
		}
	}
	d.Doors[in.Door] = door
	d.present = d.present || door != was
	d.sense(in.Door)
	switch {
	case in.Open:
		// It counts once the minimum time is over. So does one that was open before a
		// silence: that the same opening goes on is known only then, as boards show
		// open doors for a moment when they get their power back.
	case door.Counted:
		d.closed(door, in.Mono)
	case was.Known && was.Open:
		d.relatched(door, in.Mono-cmp.Or(was.ShutAt, was.Since))
	default:
		d.foundClosed(door)
	}
	switch door := d.Doors[in.Door]; {
	case in.Open:
	case in.Item == wire.ItemAbsent:
		d.itemGone(in.Door, was)
	case in.Item == wire.ItemPresent && door.Delivery != "" && !door.Seen:
		door.Seen = true
		d.setDoor(door)
	}
}

// lost forgets the present of doors whose board fell silent.
func (d doors) lost(in Lost) {
	for _, n := range in.Doors {
		door, ok := d.Doors[n]
		if !ok {
			continue
		}
		if !door.Read { // its board was asked often enough to be given up
			door.Read = true
			d.Doors[n] = door
		}
		if !door.Known {
			continue
		}
		door.Known, door.DarkAt = false, d.now.Mono
		door.MissedClosed = door.MissedClosed || door.Counted
		d.Doors[n] = door
		d.present = true
		o, ok := d.Openings[door.Opening]
		if !ok {
			continue
		}
		if at, open := in.LastOpen[n]; open && door.Counted {
			o = o.with(n, func(x *OpeningDoor) { x.LastOpen = later(x.LastOpen, d.now.instant(at)) })
			d.setOpening(o)
		}
		if od := o.door(n); od.Phase == Pulsed || od.Phase == Queued && !od.Waiting {
			d.notOpened(o, door, NotSeen, wire.DoorNotSeen)
		}
	}
}

// countOpen turns doors that stayed open for the minimum time into opened
// ones.
func (d doors) countOpen() {
	for _, n := range sorted(d.Doors) {
		door := d.Doors[n]
		if !door.settling() || !door.proven(d.times()) || d.now.Mono < countsAt(door, d.times()) {
			continue
		}
		if door.Counted {
			door.MissedClosed = false
			d.Doors[n] = door
			continue
		}
		d.opened(door)
	}
}

// settling reports whether a door reads open and has to do so for the minimum time
// before that is believed.
func (d Door) settling() bool {
	return d.Known && d.Open && !d.Suspect && (!d.Counted || d.MissedClosed)
}

// proven reports whether polls have read the door open for the minimum time: a
// board that resets shows zeros for a moment, and a line that stands still does not
// say when they ended.
func (d Door) proven(t wire.Times) bool {
	return d.OpenFor == 0 || d.OpenFor >= int64(edge.ProvenOpen(time.Duration(ms(t.MinOpenMS))))
}

// expected reports whether the door opened so soon after a pulse that it belongs to
// it.
func (d Door) expected() bool { return d.PulseAt != 0 && d.Since <= d.PulseAt+forcedGrace }

// opensByPulse reports whether the door may have opened so soon after a pulse that it
// belongs to it: it was not read shut after that time.
func (d Door) opensByPulse() bool {
	return d.PulseAt != 0 && cmp.Or(d.ShutAt, d.Since) <= d.PulseAt+forcedGrace
}

// countsAt is when a door that is open counts as opened, as mono: a close before
// the minimum time would have been reported by then.
func countsAt(d Door, t wire.Times) int64 {
	return d.Since + ms(t.MinOpenMS) + ms(t.DebounceMS) + int64(edge.PollGap)
}

// opened is the moment a door counts as open; it opened at door.Since. One that was
// given up for its act and read shut after the time of its pulses is forced when it opens later:
// a lock that is shut needs another pulse.
func (d doors) opened(door Door) {
	door.Counted, door.OpenedAt, door.Failures, door.MissedClosed, door.Unverified = true, d.now.instant(door.Since), 0, false, false
	if door.Blocked == wire.ReasonSuspect { // the lock works
		door.Blocked = ""
	}
	o, ok := d.Openings[door.Opening]
	if od := o.door(door.Number); ok && od.Pulses > 0 && !od.Phase.outcome() && door.expected() {
		door.Wear = door.Wear.acted(od.Pulses, max(0, time.Duration(door.Since-door.PulseAt)))
	}
	d.setDoor(door)
	d.present = true
	var pulses uint
	asked := false
	if ok {
		od := o.door(door.Number)
		pulses = uint(od.Pulses)
		asked = od.Asked && !(door.ShutAt != 0 && !door.opensByPulse() && (od.Phase == NotSeen || od.Phase == OpenFailed))
		d.setOpening(o.with(door.Number, func(x *OpeningDoor) {
			x.Phase, x.OpenedAt, x.ClosedAt, x.LastOpen, x.Unseen = Opened, door.OpenedAt, Instant{}, door.OpenedAt, false
			x.Deadline, x.Error, x.Asked = 0, "", asked
		}))
	}
	d.record(wire.KindDoorOpened, door.Since, wire.DoorOpened{OpeningID: door.Opening, Door: uint(door.Number), Pulses: pulses})
	if ok {
		d.addAction(Show{What: "open", Door: door.Number})
	}
	if asked || door.Found || door.opensByPulse() {
		return
	}
	d.forced(door)
}

// forced raises a door that opened without a pulse, and without a session that asked
// for it.
func (d doors) forced(door Door) {
	d.raise(wire.ExDoorLeftOpen, wire.SeverityHigh, door.Number, "forced")
	if door.Delivery != "" && door.Item == wire.ItemUnknown { // its close will not say whether the parcel is still there
		d.raise(wire.ExDepositUnverified, wire.SeverityHigh, door.Number, "forced open, and no sensor sees what lies inside")
	}
	if door.TamperAt != 0 && door.Since < door.TamperAt+repeatMuted {
		door.TamperCount++
		d.setDoor(door)
		return
	}
	d.record(wire.KindTamper, door.Since, wire.Tamper{What: wire.TamperDoorForced, Door: uint(door.Number), Count: door.TamperCount})
	door.TamperAt, door.TamperCount = door.Since, 0
	d.setDoor(door)
}

// closed is a counted opening's end.
func (d doors) closed(door Door, mono int64) {
	openMS := int64(-1) // unknown across a boot
	if door.OpenedAt.Boot == d.now.Boot {
		openMS = (mono - door.OpenedAt.Mono) / int64(time.Millisecond)
	} else if door.OpenedAt.Clock > wire.ClockUnset && d.now.Clock > wire.ClockUnset {
		openMS = max(0, (d.now.Wall(mono)-door.OpenedAt.Wall)/int64(time.Millisecond))
	}
	missed := door.MissedClosed
	door.Counted, door.MissedClosed = false, false
	switch o := d.Openings[door.Opening]; {
	case o.Kind == wire.OpenStaff: // staff state what they have taken out
		door.StaffAt = mono
	case door.Opening != "":
		door.Seen = door.Seen && door.Item == wire.ItemPresent
	}
	d.setDoor(door)
	d.record(wire.KindDoorClosed, mono, wire.DoorClosed{OpeningID: door.Opening, Door: uint(door.Number), OpenMS: openMS, Item: door.Item})
	d.present = true
	if o, ok := d.Openings[door.Opening]; ok {
		o.Missed = o.Missed || missed
		d.setOpening(o.with(door.Number, func(x *OpeningDoor) {
			x.Phase, x.ClosedAt, x.Unseen, x.Item = Closed, d.now.instant(mono), missed, door.Item
		}))
	}
	d.closeException(wire.ExDoorLeftOpen, door.Number, "door_closed_on_site", mono)
}

// relatched is a door whose hook popped and fell back before the minimum time:
// the door did not swing. It gets one more pulse. atMost is how long it may have been
// open, from the last poll that read it shut before.
func (d doors) relatched(door Door, atMost int64) {
	o, ok := d.Openings[door.Opening]
	if !ok {
		return
	}
	od := o.door(door.Number)
	if od.Phase.outcome() || od.Waiting {
		return
	}
	if atMost >= ms(d.times().MinOpenMS) {
		o = o.unwatched(door.Number)
	}
	if d.pulseAgain(o, door) {
		d.addAction(Show{What: "pull", Door: door.Number})
	}
}

// foundClosed is a door read closed that was not known open. One that an earlier
// boot was to open was not seen; it may still open for that boot's pulse, as soon as
// after a pulse of this moment.
func (d doors) foundClosed(door Door) {
	// One that was left open, and cleared while its board was silent, is not open any more.
	d.closeException(wire.ExDoorLeftOpen, door.Number, "door_closed_on_site", d.now.Mono)
	o, ok := d.Openings[door.Opening]
	if !ok {
		return
	}
	if od := o.door(door.Number); !od.Phase.outcome() && od.By.Boot != d.now.Boot {
		if od.Asked {
			door.PulseAt = d.now.Mono
			d.Doors[door.Number] = door
		}
		d.notOpened(o, door, NotSeen, wire.DoorNotSeen)
	}
}

// pulsed is the result of a pulse.
func (d doors) pulsed(in Pulsing) {
	door, ok := d.Doors[in.Door]
	if !ok {
		return
	}
	if in.Outcome == edge.PulseConfirmed || in.Outcome == edge.PulseUnanswered || in.Outcome == edge.PulseDenied { // the coil may have fired
		door.PulseAt = in.Mono
		d.Doors[in.Door] = door
	}
	id := in.By.OpeningID
	if id == "" {
		id = door.Opening
	}
	o, ok := d.Openings[id]
	if !ok {
		return
	}
	od := o.door(in.Door)
	if !od.Waiting {
		return
	}
	od.Waiting = false
	if in.Outcome == edge.PulseRefused || in.Outcome == edge.PulseNotSent {
		od.Asked = od.AskedBefore
	}
	if od.Phase.outcome() { // it opened before its pulse was through
		d.setOpening(o.with(in.Door, func(x *OpeningDoor) { x.Waiting, x.Asked = false, od.Asked }))
		return
	}
	switch in.Outcome {
	case edge.PulseConfirmed, edge.PulseUnanswered:
		// No answer is not failure: only the door itself tells.
		od.Phase, od.Deadline, od.Watched = Pulsed, in.Mono+ms(d.times().OpenWaitMS), in.Watched
		if od.Watched {
			od.Deadline += shutReport
		}
	case edge.PulseRefused, edge.PulseDenied, edge.PulseNotSent:
		od.Phase, od.Deadline, od.Watched, od.Withheld = Pulsed, in.Mono, false, in.Outcome == edge.PulseRefused
	}
	o = o.with(in.Door, func(x *OpeningDoor) { *x = od })
	d.setOpening(o)
	switch {
	case in.Outcome == edge.PulseNotSent:
		d.notOpened(o, door, OpenFailed, wire.ReasonBoard)
	case !door.Known:
		d.notOpened(o, door, NotSeen, wire.DoorNotSeen)
	}
}

// openWaits pulses again, or gives up, where a door was not seen open in time. A
// door of an earlier boot waits for its first read alone.
func (d openings) openWaits() {
	for _, id := range sorted(d.Openings) {
		for _, n := range d.Openings[id].numbers() {
			o := d.Openings[id]
			od, door := o.door(n), d.Doors[n]
			due := od.Phase == Pulsed && !od.Waiting && d.now.Mono >= od.Deadline
			if due && od.By.Boot == d.now.Boot && !(door.Open && door.Known) {
				if od.Watched {
					o = o.unwatched(n)
				}
				d.pulseAgain(o, door)
			}
		}
	}
}

// itemGone is a shut door behind which the sensor sees nothing: an item that left it with no
// session, through a forced door, or while nothing looked, is missing. was is the door as it was
// read before.
func (d doors) itemGone(n edge.DoorNumber, was Door) {
	door := d.Doors[n]
	if _, running := d.Openings[door.Opening]; running || door.Delivery == "" || door.isAsked(d.now) {
		return
	}
	evidence := ""
	switch {
	case was.Known && !was.Open && was.Item == wire.ItemPresent:
		evidence = "item sensor cleared while the door was locked"
	case !door.Seen:
		return
	case was.Known && was.Open:
		evidence = "item gone while the door was open without a session"
	default:
		evidence = "item gone while nothing looked"
	}
	door.Seen = false // said once
	d.setDoor(door)
	d.raise(wire.ExItemMissing, wire.SeverityHigh, n, evidence)
}

// raise opens an exception for a door unless one of its type is open.
func (d *draft) raise(typ, severity string, n edge.DoorNumber, evidence string) {
	for _, id := range sorted(d.Exceptions) {
		e := d.Exceptions[id]
		if e.Type == typ && e.Door == uint(n) {
			return
		}
	}
	e := Exception{Exception: wire.Exception{ID: d.newID("ex_"), Type: typ, Severity: severity, Door: uint(n), Evidence: evidence},
		At: d.now.instant(d.now.Mono), Written: 1, WrittenAt: d.now.Mono}
	d.setException(e)
	d.record(wire.KindExceptionOpened, d.now.Mono, e.Exception)
	d.present = true
}

// closeException closes what a door itself has put right.
func (d *draft) closeException(typ string, n edge.DoorNumber, how string, mono int64) {
	for _, id := range sorted(d.Exceptions) {
		e := d.Exceptions[id]
		if e.Type != typ || e.Door != uint(n) {
			continue
		}
		body := e.Exception
		body.Evidence = how
		d.record(wire.KindExceptionClosed, mono, body)
		d.dropException(id)
	}
}

// watchDue is when a door that is open, and that no opening watches, counts as left open, as
// mono; 0 when it does not.
func (s *State) watchDue(door Door) int64 {
	_, watched := s.Openings[door.Opening]
	if watched || door.Blocked != "" || !door.Known || !door.Open || door.settling() || s.isLeftOpen(door.Number) {
		return 0
	}
	return door.Since + sec(s.Config.Times.WithDefaults().SessionS)
}

// watchOpen tells of doors that have been open as long as a session may last, and belong to no
// opening: one that ended before its door was seen to swing, or whose board was silent.
func (d *draft) watchOpen() {
	for _, n := range sorted(d.Doors) {
		if due := d.watchDue(d.Doors[n]); due != 0 && d.now.Mono >= due {
			d.tellLeftOpen(n, "open after its opening")
		}
	}
}

// tellLeftOpen raises that a door was left open, and has the screen show it.
func (d *draft) tellLeftOpen(n edge.DoorNumber, evidence string) {
	d.raise(wire.ExDoorLeftOpen, wire.SeverityMedium, n, evidence)
	d.addAction(Show{What: "left_open", Door: n})
}

// soundDue is when a sound about an open door is due, as mono; 0 when none is.
func (s *State) soundDue(door Door) int64 {
	if !door.Known || !door.Open || !door.Counted {
		return 0
	}
	return max(door.Since+sec(s.Config.Times.WithDefaults().LeftOpenSoundS), door.SoundAt+soundEvery)
}

// sound reminds of doors that have been open for long, until they are closed.
func (d *draft) sound() {
	for _, n := range sorted(d.Doors) {
		door := d.Doors[n]
		if due := d.soundDue(door); due != 0 && d.now.Mono >= due {
			door.SoundAt = d.now.Mono
			d.Doors[n] = door
			d.addAction(Show{What: "sound", Door: n})
		}
	}
}

// tellAgain repeats the exception of a door that stays open.
func (d *draft) tellAgain() {
	for _, id := range sorted(d.Exceptions) {
		e := d.Exceptions[id]
		if e.Type != wire.ExDoorLeftOpen || e.Written > len(leftOpenAgain) || d.now.Mono < e.WrittenAt+leftOpenAgain[e.Written-1] {
			continue
		}
		e.Written++
		body := e.Exception
		body.Evidence = "still open"
		d.setException(e)
		d.record(wire.KindExceptionOpened, d.now.Mono, body)
	}
}
