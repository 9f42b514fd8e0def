package locker

import (
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// sizes of compartments for parcels, in growing order.
var sizes = wire.Sizes()

// Larger gives the compartment that a courier gets whose parcel does not fit: the
// smallest free one that is larger than the one they have open, 0 for none. That is for
// a deposit of one compartment that a code or a signed QR code has begun, as long as its
// door is open and its session runs.
func (s *State) Larger(id string, now Now) edge.DoorNumber {
	o := s.Openings[id]
	if o.CommandID != wire.LocalCommand || o.Kind != wire.OpenDeposit && o.Kind != wire.OpenReassign || o.DeliveryRef == "" || len(o.Doors) != 1 ||
		o.Cancelled || o.Done || o.Confirm != "" || now.Mono >= o.Ends.Mono || s.Meta.Lost {
		return 0
	}
	had := o.Doors[0]
	if door := s.Doors[had.Door]; had.Phase != Opened || !door.Known || !door.Open {
		return 0
	}
	d := openings{&draft{State: *s, now: now}} // it is only asked
	hadSize, best, bestSize := slices.Index(sizes, s.SizeOf(had.Door)), edge.DoorNumber(0), 0
	for _, l := range s.Config.Layout {
		n, size := edge.DoorNumber(l.Door), slices.Index(sizes, l.Size)
		if hadSize < 0 || size <= hadSize || best != 0 && size >= bestSize {
			continue
		}
		if !s.isReserved(n, o.DeliveryRef, now) && d.free([]edge.DoorNumber{n}, wire.OpenReassign, o.DeliveryRef, "") == "" {
			best, bestSize = n, size
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

// takeLarger opens a larger compartment in place of the one that a courier has open, in
// what is left of the session. The former opening ends when its door is closed.
func (d openings) takeLarger(in TakeLarger) {
	n := d.Larger(in.OpeningID, d.now)
	if n == 0 {
		d.out.Answer.Outcome = wire.ReasonOccupied
		if _, running := d.Openings[in.OpeningID]; !running {
			d.out.Answer.Outcome = wire.ReasonNoOpening
		}
		return
	}
	old := d.Openings[in.OpeningID]
	packages := old.Doors[0].Packages
	d.replace(old, nil)
	d.out.Answer.Outcome = d.local(Opening{Kind: wire.OpenReassign, Who: old.Who, DeliveryRef: old.DeliveryRef, Code: old.Code, Generation: old.Generation,
		CodeNumber: old.CodeNumber, Ends: old.Ends}, edge.ByLarger, []edge.DoorNumber{n}, map[edge.DoorNumber][]string{n: packages})
}
