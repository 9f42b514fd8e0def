package locker

import (
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// receiptLife is how long after its end an opening has a receipt at the screen.
const receiptLife = 5 * time.Minute

// Receipt is what a person who has brought or collected parcels may keep of that. It has no
// code and nothing of a person.
type Receipt struct {
	Kind     wire.OpeningKind
	Doors    []edge.DoorNumber // behind which parcels were left, or from which they were taken
	Packages []string          // tracking numbers, as far as the cabinet knows them
	At       time.Time         // zero: the clock is not set
}

// Receipt gives the receipt of a deposit or pickup that has just ended; false where it left or
// took nothing, or ended more than five minutes ago.
func (s *State) Receipt(id string, now Now) (r Receipt, ok bool) {
	e, ended := s.Ended[id]
	if !ended || !e.Settled || e.Delivery == "" || now.passed(e.At) > int64(receiptLife) || !e.Kind.IsDeposit() && e.Kind != wire.OpenPickup {
		return r, false
	}
	r.Kind = e.Kind
	inside := s.Deliveries[e.Delivery].Doors
	for _, n := range e.Doors {
		refs, lies := inside[n]
		if lies != e.Kind.IsDeposit() {
			continue
		}
		r.Doors = append(r.Doors, n)
		if !lies {
			refs = e.Packages[n]
		}
		r.Packages = append(r.Packages, refs...)
	}
	slices.Sort(r.Doors)
	if now.Clock > wire.ClockUnset {
		r.At = time.Unix(0, now.date(e.At)).UTC()
	}
	return r, len(r.Doors) > 0
}
