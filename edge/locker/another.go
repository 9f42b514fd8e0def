package locker

import (
	"cmp"
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// sizes of compartments for parcels, in growing order.
var sizes = wire.Sizes()

// TooSmall is the reason of a courier whose parcel does not fit; the other reasons for which
// they take another compartment are those of a block (wire.BlockOccupied and so on).
const TooSmall = "too_small"

// NoOther is the answer to a courier whose compartment was blocked while no other one is free
// for the parcel.
const NoOther = "no_other"

// TooManyBlocked is the answer to a courier who has had as many compartments blocked as one
// delivery may.
const TooManyBlocked = "too_many_blocked"

// Compartments that one delivery's courier, and one delivery's sender, may have blocked at a time:
// nothing but their word speaks for it.
const maxBlocked, maxBlockedBySender = 2, 1

// mayBlock reports whether a delivery's code may have one more compartment blocked.
func (s *State) mayBlock(ref string) bool {
	most, n := maxBlocked, 0
	if s.Purpose(ref) != "" {
		most = maxBlockedBySender
	}
	for _, d := range s.Doors {
		if d.Blocked != "" && d.BlockedFor == ref {
			n++
		}
	}
	return n < most
}

// CanLeave reports whether a courier may leave a compartment for another one: that of an open
// door, in a deposit that a code or a signed QR code has begun, as long as its session runs and
// no other door of it waits to be opened.
func (s *State) CanLeave(id string, n edge.DoorNumber, now Now) bool {
	o := s.Openings[id]
	if o.CommandID != wire.LocalCommand || o.Kind != wire.OpenDeposit && o.Kind != wire.OpenReassign || o.DeliveryRef == "" ||
		o.Cancelled || o.Done || o.Confirm != "" || now.Mono >= o.Ends.Mono {
		return false
	}
	if slices.ContainsFunc(o.Doors, func(od OpeningDoor) bool { return od.Door != n && (od.Waiting || !od.Phase.outcome()) }) {
		return false // a pulse belongs to the opening that asked for it
	}
	door := s.Doors[n]
	return o.door(n).Phase == Opened && door.Known && door.Open
}

// Another gives the compartment that a courier gets in place of one that CanLeave allows them to
// leave: the smallest free one, which is larger where the parcel is TooSmall's, and not smaller
// otherwise; 0 for none.
func (s *State) Another(id string, n edge.DoorNumber, reason string, now Now) edge.DoorNumber {
	had := slices.Index(sizes, s.SizeOf(n))
	if !s.CanLeave(id, n, now) || s.Meta.Lost || had < 0 {
		return 0
	}
	least := had
	if reason == TooSmall {
		least++
	}
	ref := s.Openings[id].DeliveryRef
	d := openings{&draft{State: *s, now: now}} // it is only asked
	best, bestSize := edge.DoorNumber(0), 0
	for _, l := range s.Config.Layout {
		m, size := edge.DoorNumber(l.Door), slices.Index(sizes, l.Size)
		if m == n || size < least || best != 0 && size >= bestSize {
			continue
		}
		if !s.isReserved(m, ref, now) && d.free([]edge.DoorNumber{m}, wire.OpenReassign, ref, "") == "" {
			best, bestSize = m, size
		}
	}
	return best
}

// SizeOf is the size of a compartment, "" when it has none.
func (s *State) SizeOf(n edge.DoorNumber) string {
	for _, l := range s.Config.Layout {
		if l.Door == uint(n) {
			return l.Size
		}
	}
	return ""
}

// isReserved reports whether the code list keeps a door for another delivery that may still
// come: not for one whose courier's code has certainly expired.
func (s *State) isReserved(n edge.DoorNumber, ref string, now Now) bool {
	for _, e := range s.Codes {
		_, named := e.Packages[uint(n)]
		if e.DeliveryRef != "" && e.DeliveryRef != ref && (named || slices.Contains(e.Doors, uint(n))) && !s.isOverdue(e.DeliveryRef, now) {
			return true
		}
	}
	return false
}

// isOverdue reports whether the courier's code of a delivery has certainly expired.
func (s *State) isOverdue(ref string, now Now) bool {
	for _, e := range s.Codes {
		if e.DeliveryRef == ref && e.Kind == wire.CodeDelivery && e.NotAfter != 0 && now.certain() > e.NotAfter {
			return true
		}
	}
	return false
}

// takeAnother opens another compartment in place of one that a courier has open, in what is
// left of the session; for any reason but TooSmall the former one is blocked. Its opening ends
// when its door is closed, and the deposit's other doors go on as those of the new opening.
func (d openings) takeAnother(in TakeAnother) {
	old, running := d.Openings[in.OpeningID]
	n, blocks := d.Another(in.OpeningID, in.Door, in.Reason, d.now), in.Reason != TooSmall
	switch {
	case !running:
		d.out.Answer.Outcome = wire.ReasonNoOpening
		return
	case !d.CanLeave(in.OpeningID, in.Door, d.now), n == 0 && !blocks, blocks && !isBlockReason(in.Reason):
		d.out.Answer.Outcome = wire.ReasonOccupied
		return
	case blocks && !d.mayBlock(old.DeliveryRef):
		d.out.Answer.Outcome = TooManyBlocked
		return
	}
	next := Opening{Kind: wire.OpenReassign, Who: old.Who, DeliveryRef: old.DeliveryRef, Code: old.Code, Generation: old.Generation,
		CodeNumber: old.CodeNumber, Ends: old.Ends, Missed: old.Missed, Unsure: old.Unsure}
	left := old.door(in.Door)
	for _, od := range old.Doors {
		if od.Door != in.Door {
			next.Doors = append(next.Doors, od)
		}
	}
	old.Doors = []OpeningDoor{left}
	d.replace(old, nil)
	doors, packages := []edge.DoorNumber{}, map[edge.DoorNumber][]string{}
	if n != 0 {
		doors, packages[n] = append(doors, n), left.Packages
	}
	d.out.Answer.Outcome = wire.CodeOK
	if len(next.Doors)+len(doors) > 0 {
		d.out.Answer.Outcome = d.local(next, edge.ByLarger, doors, packages)
	}
	if blocks {
		blockDoor(d, old, in.Door, in.Reason)
	}
	if n == 0 {
		d.out.Answer = Answer{Outcome: NoOther, OpeningID: cmp.Or(d.out.Answer.OpeningID, old.ID), Doors: []edge.DoorNumber{in.Door}}
	}
}

func isBlockReason(reason string) bool {
	return reason == wire.BlockOccupied || reason == wire.BlockDirty || reason == wire.BlockBroken
}

// blockDoor takes a compartment out of use by word of a courier who has its door open, until
// the cloud lifts that.
func blockDoor(d openings, o Opening, n edge.DoorNumber, reason string) {
	door := d.Doors[n]
	if door.Blocked != "" {
		return
	}
	door.Blocked, door.BlockedFor = reason, o.DeliveryRef
	d.setDoor(door)
	d.record(wire.KindCompartmentBlocked, d.now.Mono, wire.CompartmentBlocked{BlockID: d.newID("blk_"), Door: uint(n), Reason: reason, OpeningID: o.ID, Who: o.Who})
	d.present = true
}
