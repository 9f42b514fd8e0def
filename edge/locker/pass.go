package locker

import (
	"encoding/hex"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// A pass, the payload of a signed QR code, opens doors once and without a network.
// It is looked at in this order, and a refusal uses nothing up:
//
//	its signature            verified before; a bad one costs no try
//	the cabinet              that it names
//	the clock                set by the cloud in this boot: nothing else knows when a pass ends
//	its time                 certainly begun, and certainly not over
//	its id                   not used, nor perhaps used before a loss of memory
//	its delivery             neither revoked by the list, nor here already
//	its doors                free, as for every opening of the kind
//
// The id is kept with those of commands, in the transaction of the intent, and longer
// than the pass lasts.

// showPass decides on a pass.
func (d keypad) showPass(in PassShown) {
	outcome := d.usePass(in)
	d.out.Answer.Outcome = outcome
	kept := wire.CodeNotActive
	switch outcome {
	case wire.CodeOK:
		kept = wire.CodeOK
	case wire.CodeExpired, wire.PassUsed, wire.PassRevoked:
		kept = wire.CodeExpired
	}
	d.record(wire.KindCodeAttempt, d.now.Mono, wire.CodeAttempt{Outcome: kept, Input: wire.PassInput})
}

func (d keypad) usePass(in PassShown) string {
	p := in.Pass
	if p.Check() != nil {
		return wire.PassForged
	}
	if p.DeviceCode != in.Device {
		return wire.PassOtherCabinet
	}
	if d.dateLoss(); d.now.Clock != wire.ClockSynced || d.Meta.CommandsLost {
		return wire.ReasonClock
	}
	wall, err := d.now.Wall(d.now.Mono), ms(d.now.ErrMS)
	id := passKey(p)
	_, used := d.Commands[id]
	switch {
	case wall-err < p.NotBefore:
		return wire.CodeNotActive
	case wall+err > p.NotAfter:
		return wire.CodeExpired
	case used:
		return wire.PassUsed
	case p.NotBefore < d.Meta.CommandsFrom:
		return wire.ReasonMemory
	case p.Kind == wire.OpenDeposit && d.isOther(in.Label, p.DeliveryRef):
		return OtherLabel
	}
	outcome := d.openByPass(p)
	if outcome == wire.CodeOK {
		d.Commands[id] = p.NotAfter
		d.touch(keyCommand + id)
		if p.Kind == wire.OpenStaff {
			joinStaff(d.draft, 0, d.out.Answer.OpeningID)
		}
	}
	return outcome
}

// passKey is what a used pass is remembered by, which is no command's id.
func passKey(p wire.Pass) string { return "pass-" + hex.EncodeToString(p.ID) }

// openByPass begins the opening of a pass. One that runs already is left to what has
// begun it, so that every id that is used up is reported with an opening of its own.
func (d keypad) openByPass(p wire.Pass) string {
	o := Opening{Kind: p.Kind, Who: "staff", How: wire.PassInput, DeliveryRef: p.DeliveryRef, CodeNumber: p.CodeNumber, Generation: p.Generation, PassID: p.ID}
	packages := make(map[edge.DoorNumber][]string, len(p.Packages))
	for n, refs := range p.Packages {
		packages[edge.DoorNumber(n)] = refs
	}
	if p.Kind == wire.OpenDeposit {
		o.Who = "courier"
		if reason := d.depositProblem(p); reason != "" {
			return reason
		}
	}
	return d.local(o, edge.ByPass, numbers(p.Doors), packages)
}

// depositProblem says why a delivery is not to be brought by a pass, "" when it is.
func (d keypad) depositProblem(p wire.Pass) string {
	switch {
	case d.Meta.Lost:
		return wire.ReasonMemory // what lies where is not known
	case d.isRevoked(p):
		return wire.PassRevoked
	case len(d.Deliveries[p.DeliveryRef].Doors) > 0 || d.isDelivered(p):
		return wire.CodeExpired
	case d.depositOf(p.DeliveryRef) != "":
		return wire.ReasonBusy
	}
	return ""
}

// isRevoked reports whether the list that is held has withdrawn the entry that a pass
// stands for: it has come as far as the entry and does not hold it.
func (d *draft) isRevoked(p wire.Pass) bool {
	if p.Generation != d.Meta.Generation {
		return p.Generation < d.Meta.Generation // of a former list; one to come is not known here
	}
	e, held := d.Codes[p.CodeNumber]
	return p.CodeNumber <= d.Meta.CodeList && !(held && e.Kind == wire.CodeDelivery && e.DeliveryRef == p.DeliveryRef)
}

// isDelivered reports whether the delivery of a pass was deposited or collected here
// since the pass's entry was listed.
func (d *draft) isDelivered(p wire.Pass) bool {
	for _, end := range d.Ended {
		if end.Used && end.Delivery == p.DeliveryRef && (end.Generation != p.Generation || p.CodeNumber <= end.List) {
			return true
		}
	}
	return false
}
