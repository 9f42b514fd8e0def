package locker

import (
	"maps"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Staff state at the screen what became of the packages behind a door that they have opened.
// It is taken in this order, and a refusal changes nothing:
//
//	the session        the one that has opened the door, seen open within removalFor
//	a repeat           of what was stated: it counts once
//	the delivery       still the one that lay there as the door was opened
//	the door           known and shut, and no other opening runs on it
//	the item sensor    sees nothing, unless the packages stay
//
// Record and contents change in one transaction, so that a power cut leaves both or neither.

// removalFor is how long after a door was last open a removal behind it is taken.
const removalFor = int64(10 * time.Minute)

// Refusals of a removal, beside wire's reasons.
const (
	RemovalDoorOpen = "door_open"    // the door stands open
	RemovalSeen     = "still_inside" // the item sensor sees something
	RemovalNotDue   = "not_due"      // nothing was to be collected there
)

// remove takes what staff state of the packages behind a door.
func remove(d openings, in Remove) {
	d.out.Answer = Answer{OpeningID: in.OpeningID, Doors: []edge.DoorNumber{in.Door}}
	seen := d.Staff.Seen[in.Door]
	if d.out.Answer.Outcome = removalProblem(d, in, seen); d.out.Answer.Outcome != "" {
		return
	}
	d.out.Answer.Outcome = wire.CodeOK
	if seen.Answer == in.Outcome {
		return
	}
	d.urgent = true // it belongs to the session that has opened the door
	id, ref := d.newID("rm_"), seen.Delivery
	d.record(wire.KindRemoval, d.now.Mono, wire.Removal{ID: id, DeliveryRef: ref, OpeningID: in.OpeningID, Door: uint(in.Door), Outcome: in.Outcome, Reason: in.Reason,
		CodeNumber: d.Staff.Code, Item: d.Doors[in.Door].Item})
	seen.Answer = in.Outcome
	d.Staff.Seen = maps.Clone(d.Staff.Seen)
	d.Staff.Seen[in.Door] = seen
	if in.Outcome == wire.RemovalRefused {
		return
	}
	d.freeDoor(in.Door)
	d.present = true
	if _, left := d.Deliveries[ref]; !left { // its codes are used, and no list brings it back
		d.Ended[id] = EndedOpening{ID: id, Kind: wire.OpenStaff, Settled: true, At: d.now.instant(d.now.Mono), Ends: d.now.instant(d.now.Mono), Delivery: ref,
			Doors: []edge.DoorNumber{in.Door}, Used: true, List: d.Meta.CodeList, Generation: d.Meta.Generation}
		d.touch(keyEnded + id)
	}
}

// removalProblem says why a removal is not taken, "" when it is.
func removalProblem(d openings, in Remove, seen SeenDoor) string {
	door := d.Doors[in.Door]
	switch {
	case !wire.IsRemoval(in.Outcome, in.Reason):
		return wire.ReasonUnsupported
	case in.Session == "" || in.Session != d.Staff.ID || seen.OpeningID == "" || seen.OpeningID != in.OpeningID || d.now.Mono > seen.At+removalFor:
		return wire.ReasonNoOpening
	case in.Reason == wire.RemovalCollected && seen.Due == "":
		return RemovalNotDue
	case seen.Answer == in.Outcome:
		return ""
	case seen.Delivery == "" || door.Delivery != seen.Delivery:
		return wire.ReasonNotInside
	case !door.Known:
		return wire.ReasonBoard
	case door.Open:
		return RemovalDoorOpen
	case door.Opening != "" && door.Opening != in.OpeningID:
		return wire.ReasonBusy
	case in.Outcome != wire.RemovalRefused && door.Item == wire.ItemPresent:
		return RemovalSeen
	}
	return ""
}
