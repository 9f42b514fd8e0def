package locker

import (
	"time"

	"github.com/postern-io/postern/protocol/wire"
)

// How long an opening waits for a board that is silent, as the first reading decides what
// happened: after its session, and since the board fell silent or the agent started.
const (
	darkFor   = int64(24 * time.Hour)
	darkLeast = int64(10 * time.Minute)
)

// darkEnd is when an opening ends that has a door whose board is silent, as mono: by an
// order at the end of its session, else after darkFor. 0 when there is no such door.
func (s *State) darkEnd(o Opening) int64 {
	least := int64(0)
	for _, od := range o.Doors {
		if door := s.Doors[od.Door]; door.Opening == o.ID && !door.Known {
			least = max(least, door.DarkAt+darkLeast)
		}
	}
	if least == 0 {
		return 0
	}
	end := o.Ends.Mono
	if !o.Cancelled && o.Confirm == "" {
		end += darkFor
	}
	return max(end, least)
}

// endDark ends an opening of which a door's board has been silent for too long. What was
// not seen settles nothing: a deposit is kept, unverified, and a person's word about it
// counts as one that comes late; a parcel whose door was open counts as taken, as one of a door that stays open.
func (d openings) endDark(o Opening) {
	for _, n := range o.numbers() {
		door := d.Doors[n]
		if !o.door(n).Phase.outcome() {
			d.notOpened(o, door, NotSeen, wire.DoorNotSeen)
			o = d.Openings[o.ID]
		}
		if od := o.door(n); door.Opening == o.ID && !door.Known && od.Asked && !od.Phase.opened() {
			door.Found = true // what was pulsed may stand open when the board comes back
			d.setDoor(door)
		}
	}
	d.outcomes(o.ID)
	o = d.Openings[o.ID]
	switch {
	case o.Cancelled:
		d.endCancelled(o)
	case o.Kind == wire.OpenPickup:
		d.collected(o, true)
	case !o.Kind.IsDeposit():
		d.end(o, wire.EndDone)
	default:
		d.unverified(o)
		if o.Confirm != "" {
			d.confirmLate(d.Ended[o.ID], o.Confirmed)
		}
	}
}
