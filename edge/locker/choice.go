package locker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// Outcomes of a courier's code that begin no opening.
const (
	ChooseSize = "choose_size" // it was right, and the courier chooses the size of the compartment
	OtherLabel = "other_label" // it was right, and is for another delivery than the label that was scanned
)

// choiceLife is how long a courier has to choose.
const choiceLife = int64(2 * time.Minute)

// Choice is a courier's right code whose compartment is not chosen yet. It lives in this boot
// alone, and opens one compartment.
type Choice struct {
	Entry uint64 // of the code list
	Until int64  // mono
}

// FreeSize is how many compartments of a size are free.
type FreeSize struct {
	Size string
	Free int
}

// Labelled is the delivery that is to be brought and has a package of this label, "" for none.
// Upper and lower case are one.
func (s *State) Labelled(label string) string {
	for _, n := range sorted(s.Codes) {
		if e := s.Codes[n]; names(e, label) && len(s.Deliveries[e.DeliveryRef].Doors) == 0 {
			return e.DeliveryRef
		}
	}
	return ""
}

// names reports whether an entry of a courier's code has a package of a label.
func names(e wire.CodeEntry, label string) bool {
	label = strings.TrimSpace(label)
	if label == "" || e.Kind != wire.CodeDelivery {
		return false
	}
	for _, refs := range e.Packages {
		if slices.ContainsFunc(refs, func(ref string) bool { return strings.EqualFold(ref, label) }) {
			return true
		}
	}
	return false
}

// isOther reports whether a label was scanned that is not of a delivery.
func (s *State) isOther(label, ref string) bool {
	if strings.TrimSpace(label) == "" {
		return false
	}
	for _, e := range s.Codes {
		if e.DeliveryRef == ref && names(e, label) {
			return false
		}
	}
	return true
}

// offerSizes asks the courier of an entry which size of compartment they want. Where only the
// size that the entry names is free there is nothing to choose.
func (d keypad) offerSizes(e wire.CodeEntry) (offered bool) {
	var free []FreeSize
	for _, size := range sizes {
		n := 0
		for _, l := range d.Config.Layout {
			if l.Size == size && isFor(d.openings, edge.DoorNumber(l.Door), e.DeliveryRef) {
				n++
			}
		}
		if n > 0 {
			free = append(free, FreeSize{size, n})
		}
	}
	if len(free) == 0 || len(free) == 1 && free[0].Size == e.Sizes[0] {
		return false
	}
	maps.DeleteFunc(d.choices, func(_ string, c Choice) bool { return c.Entry == e.Number || d.now.Mono >= c.Until })
	if d.choices == nil { // of a state that was read
		d.choices = map[string]Choice{}
	}
	id := d.newID("ch_")
	d.choices[id] = Choice{Entry: e.Number, Until: d.now.Mono + choiceLife}
	d.out.Answer.Choice, d.out.Answer.Size, d.out.Answer.Free = id, e.Sizes[0], free
	return true
}

// isFor reports whether a free compartment may be given to a delivery.
func isFor(d openings, n edge.DoorNumber, ref string) bool {
	return !d.isReserved(n, ref, d.now) && d.free([]edge.DoorNumber{n}, wire.OpenDeposit, "", "") == ""
}

// pickSize opens a compartment of the size that a courier has chosen. One whose size is taken
// meanwhile may choose again.
func (d keypad) pickSize(in PickSize) {
	c, ok := d.choices[in.Choice]
	e, listed := d.Codes[c.Entry]
	switch {
	case !ok || d.now.Mono >= c.Until || !listed || e.Kind != wire.CodeDelivery:
		d.out.Answer.Outcome = wire.ReasonNoOpening
	case e.NotAfter != 0 && d.now.certain() > e.NotAfter:
		d.out.Answer.Outcome = wire.CodeExpired
	case !slices.Contains(sizes, in.Size):
		d.out.Answer.Outcome = wire.ReasonOccupied
	default:
		d.out.Answer.Outcome = d.dropOff(e, CodeTried{}, in.Size)
	}
	if d.out.Answer.Outcome != wire.ReasonOccupied {
		delete(d.choices, in.Choice)
	}
}
