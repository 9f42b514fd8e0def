package locker

import (
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// After a loss of memory a whole list also names deliveries that were not settled
// for all that the cloud knows. The courier may have put the parcel in all the
// same: the opening was lost with the store. The compartment is kept for the
// delivery, unverified, and nothing is settled by that:
//
//	its own delivery opens it    what is seen then counts
//	a person confirms            the pickup code works
//	its parcel is settled        behind another door: it is free
//	the item sensor sees         nothing: it is free; something: deposit_unverified
//	staff have looked (clear)    it is free

// mayHold keeps compartments that an entry which locates parcels names and does not open: those of
// one that is not active yet, and those that a deposit left unverified.
func (d codeList) mayHold(e wire.CodeEntry, doors []edge.DoorNumber) {
	if !locates(e.Kind) {
		return
	}
	if _, known := d.Deliveries[e.DeliveryRef]; known {
		return
	}
	for _, end := range d.Ended {
		if end.Used && end.Delivery == e.DeliveryRef {
			return
		}
	}
	for _, n := range doors {
		if door, ok := d.Doors[n]; ok && door.Delivery == "" && door.Opening == "" {
			door.Delivery, door.Unverified = e.DeliveryRef, true
			d.setDoor(door)
			d.sense(n)
		}
	}
}

// IsUnconfirmed reports whether a compartment is kept for a delivery without
// knowing that its packages lie there: its pickup code does not open it.
func (s *State) IsUnconfirmed(n edge.DoorNumber) bool {
	door := s.Doors[n]
	_, confirmed := s.Deliveries[door.Delivery].Doors[n]
	return door.Delivery != "" && !confirmed
}

// sense lets the item sensor decide about an unverified compartment whose door
// is closed.
func (d *draft) sense(n edge.DoorNumber) {
	door := d.Doors[n]
	if !door.Unverified || !door.Known || door.Open || door.Opening != "" {
		return
	}
	unconfirmed := d.IsUnconfirmed(n)
	switch door.Item {
	case wire.ItemPresent:
		door.Unverified = false
		d.setDoor(door)
		if unconfirmed {
			d.raise(wire.ExDepositUnverified, wire.SeverityMedium, n, "something seen inside after a loss of memory")
		}
	case wire.ItemAbsent:
		if unconfirmed {
			d.freeDoor(n)
		}
	}
}

// freeUnverified lets the unverified compartments of a delivery go once all of its
// packages lie elsewhere.
func (d *draft) freeUnverified(ref string) {
	var inside []string
	for _, refs := range d.Deliveries[ref].Doors {
		inside = append(inside, refs...)
	}
	for _, n := range sorted(d.Codes) {
		e := d.Codes[n]
		if !locates(e.Kind) || e.DeliveryRef != ref {
			continue
		}
		for _, refs := range e.Packages {
			if slices.ContainsFunc(refs, func(p string) bool { return !slices.Contains(inside, p) }) {
				return
			}
		}
	}
	for _, n := range sorted(d.Doors) {
		if door := d.Doors[n]; door.Delivery == ref && door.Unverified && d.IsUnconfirmed(n) {
			d.freeDoor(n)
		}
	}
}

// lostDeposit stands in for the end of a deposit that was lost with the store:
// the compartments that are kept for the delivery, unverified.
func (d *draft) lostDeposit(ref string) (e EndedOpening, ok bool) {
	e = EndedOpening{Kind: wire.OpenDeposit, Delivery: ref, Packages: map[edge.DoorNumber][]string{}}
	for _, n := range sorted(d.Doors) {
		if door := d.Doors[n]; ref != "" && door.Delivery == ref && door.Opening == "" && d.IsUnconfirmed(n) {
			e.Doors = append(e.Doors, n)
		}
	}
	for _, n := range sorted(d.Codes) {
		if c := d.Codes[n]; locates(c.Kind) && c.DeliveryRef == ref {
			for door, refs := range c.Packages {
				e.Packages[edge.DoorNumber(door)] = refs
			}
		}
	}
	return e, len(e.Doors) > 0
}
