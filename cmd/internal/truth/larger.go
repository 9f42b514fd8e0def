package truth

import (
	"fmt"
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// refusesLarger says why a courier was not to be given a larger compartment, "" when
// they were: it is for the delivery whose code they had used.
func refusesLarger(j *judge, b *Cabinet, p Pulse, a Act) string {
	e := j.entry(b, p.CodeNumber)
	switch {
	case e == nil && isForgotten(j.Forgotten, p.At):
		return ""
	case e == nil:
		return fmt.Sprintf("the cloud never listed entry %d", p.CodeNumber)
	case e.Entry.Kind != wire.CodeDelivery || e.Entry.DeliveryRef != a.Delivery:
		return fmt.Sprintf("entry %d is a %s code of %s, the courier brought %s", p.CodeNumber, e.Entry.Kind, e.Entry.DeliveryRef, a.Delivery)
	}
	return ""
}

// refusesGuestLarger: a larger compartment is opened in what is left of the session that
// a courier's code began at another door.
func (b *Cabinet) refusesGuestLarger(p Pulse) string {
	if slices.ContainsFunc(b.Pulses, func(x Pulse) bool {
		return slices.Contains([]string{edge.ByCode, edge.ByPass, edge.ByLarger}, x.Kind) && x.CodeNumber == p.CodeNumber && x.Door != p.Door && x.At.Before(p.At) && p.At.Sub(x.At) <= longOpen
	}) {
		return ""
	}
	return fmt.Sprintf("no code had opened another door in the %s before", longOpen)
}
