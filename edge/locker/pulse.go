package locker

import (
	"cmp"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// How long an act allows pulses: pulseLife, and queueLife more for each door
// whose pulse waited before when the act came.
const (
	pulseLife = int64(60 * time.Second)
	queueLife = int64(4 * time.Second)
)

// authority is an act of this moment that allows pulses for an opening. id is
// the command's; without one it is drawn here.
func (d openings) authority(kind, id, opening string, code uint64) edge.Authority {
	if id == "" {
		id = d.newID("act_")
	}
	return edge.Authority{Boot: d.now.Boot, OpeningID: opening, Act: id, Kind: kind, CodeNumber: code, Mono: d.now.Mono}
}

// waiting counts the pulses that wait, those of o as it is now included.
func (d openings) waiting(o Opening) (n int) {
	count := func(o Opening) {
		for _, od := range o.Doors {
			if od.Waiting {
				n++
			}
		}
	}
	for id, other := range d.Openings {
		if id != o.ID {
			count(other)
		}
	}
	count(o)
	return n
}

// pulse asks for one pulse of a door's lock, or refuses. It is the only place
// that does: a pulse belongs to the last act for the door, made in this boot, in
// a running session, and not too long ago. Every board has been read by then,
// and the door is known to be closed.
func (d openings) pulse(o *Opening, od *OpeningDoor, door Door) bool {
	allowed := od.By.Boot == d.now.Boot && od.By.OpeningID == o.ID && od.Pulses < maxPulses && d.now.Mono <= od.By.Until
	running := !o.Cancelled && !o.Done && o.Confirm == "" && d.now.Mono < o.Ends.Mono
	if !allowed || !running || !d.Ready || !door.Known || door.Open || od.Waiting {
		return false
	}
	od.Pulses++
	od.Asked, od.AskedBefore = true, od.Asked
	od.Waiting, od.Phase, od.Deadline = true, Queued, 0
	d.addAction(Pulse{Door: door.Number, By: od.By})
	return true
}

// pulseAgain spends an act's further pulse on a door that did not open, or gives
// the door up.
func (d openings) pulseAgain(o Opening, door Door) bool {
	pulsed := false
	next := o.with(door.Number, func(x *OpeningDoor) { pulsed = !x.Unwatched && !x.Withheld && d.pulse(&o, x, door) })
	if pulsed {
		d.setOpening(next)
		return true
	}
	switch od := o.door(door.Number); {
	case !door.Known || od.By.Boot != d.now.Boot || od.Unwatched: // it may have been opened, used and shut: a further pulse would open it behind a person who has left
		d.notOpened(o, door, NotSeen, wire.DoorNotSeen)
	case od.Pulses >= maxPulses && !od.Withheld:
		d.openFailed(o, door)
	default: // the act does not allow another one, or one did not go out: the lock is not to blame
		d.notOpened(o, door, OpenFailed, wire.DoorOpenFailed)
	}
	return false
}

// stayedShut is a pulsed door that no poll read open in time. Where it may have been
// open for the minimum time between two polls, it is not known that it was not.
func stayedShut(d openings, in Shut) {
	door := d.Doors[in.Door]
	id := cmp.Or(in.By.OpeningID, door.Opening)
	o, ok := d.Openings[id]
	od := o.door(in.Door)
	if !ok || od.Phase != Pulsed || od.Waiting || !od.Watched || in.By.Act != "" && in.By.Act != od.By.Act || door.Known && door.Open {
		return
	}
	if in.Gap >= ms(d.times().MinOpenMS) {
		o = o.unwatched(in.Door)
	}
	d.pulseAgain(o, door)
}

// unwatched is the opening with a door that may have opened without a poll that saw it.
func (o Opening) unwatched(n edge.DoorNumber) Opening {
	return o.with(n, func(x *OpeningDoor) { x.Unwatched = true })
}

// openFailed is a door that stayed closed after every pulse of its act. The
// third one in a row takes it out of service.
func (d openings) openFailed(o Opening, door Door) {
	door.Failures++
	door.Wear = door.Wear.acted(o.door(door.Number).Pulses, -1)
	if door.Failures >= outOfService && door.Blocked == "" {
		door.Blocked = wire.ReasonSuspect
	}
	d.setDoor(door)
	d.notOpened(o, door, OpenFailed, wire.DoorOpenFailed)
}

// notOpened is the outcome of a door that did not open for its act. One that had
// been open and closed before stays so: what was put in or taken out then counts.
func (d openings) notOpened(o Opening, door Door, phase Phase, code string) {
	d.setOpening(o.with(door.Number, func(x *OpeningDoor) {
		if x.ClosedAt != (Instant{}) {
			phase = Closed
		}
		x.Phase, x.Error, x.Deadline = phase, code, 0
	}))
	d.present = true
}

// withdraw takes back the pulses of an opening that still wait.
func (d openings) withdraw(o Opening) {
	for _, od := range o.Doors {
		if od.Waiting {
			d.addAction(Withdraw{OpeningID: o.ID})
			return
		}
	}
}

// becomeReady notes that every board was read, or given up as silent, since the
// start.
func (d doors) becomeReady() {
	if d.Ready {
		return
	}
	for _, l := range d.Config.Layout {
		if !d.Doors[edge.DoorNumber(l.Door)].Read {
			return
		}
	}
	d.Ready = len(d.Config.Layout) > 0
}
