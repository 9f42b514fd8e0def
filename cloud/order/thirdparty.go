package order

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Operation type of an assignment to a third party that ends (interface 4.5).
const thirdCancelled = 8003

// SetCarrier says in the order's timeline whether it is the carrier's to add to.
func (d *Decision) SetCarrier(on bool) error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	switch mine := l.Shipment.ProviderID == d.thirdParty.ProviderID; {
	case on && !mine:
		l.Shipment.ProviderID, l.Changed = d.thirdParty.ProviderID, true
	case !on && mine:
		l.Shipment.ProviderID, l.Changed = 0, true
	}
	return nil
}

// CancelThirdParty takes the order back from the third party.
func (d *Decision) CancelThirdParty(reason, note string) error {
	switch stopped := d.Order.Status == cloud.OrderIntercepted; {
	case stopped && d.thirdParty.Status == cloud.ThirdPartyHandedOver: // it would come back to a carrier that has it no more
		return StatusConflict(d.Order)
	case stopped:
		d.LogOperation(thirdCancelled, d.Order.Status, note, nil)
	case d.Order.Status == cloud.OrderHandedOver:
		if err := d.Move(d.Order.Before, FallBack, thirdCancelled, "", note); err != nil {
			return err
		}
	default:
		l, err := d.Timeline()
		if err != nil {
			return err
		}
		l.Append(otep.RouteCancelled, otep.ThirdParty, "", d.Now, d.Now)
		d.LogOperation(thirdCancelled, d.Order.Status, note, nil)
	}
	d.thirdParty.Reason, d.thirdParty.EndNote = reason, note
	if err := d.CloseThirdParty(cloud.ThirdPartyCancelled); err != nil {
		return err
	}
	return d.SetThirdPartyNumbers()
}

// CloseThirdParty ends the assignment. The remainder is the business's own to deliver
// again, and the company has no part in it.
func (d *Decision) CloseThirdParty(to cloud.ThirdPartyStatus) error {
	a := d.thirdParty
	a.Status, a.EndedAt, d.thirdPartyChanged = to, d.Now, true
	if to == cloud.ThirdPartyCancelled {
		for i := range a.Packages {
			if p := &a.Packages[i]; !p.Outcome.Final() {
				p.Outcome, p.OccurredAt = cloud.OutcomeCancelled, d.Now
			}
		}
		d.thirdPartyEvents = append(d.thirdPartyEvents, eventThirdPartyCancelled)
	} else {
		a.CompletedAt = d.Now
	}
	if to == cloud.ThirdPartyPartly {
		d.thirdPartyEvents = append(d.thirdPartyEvents, eventThirdPartyPartial)
	}
	d.Order.ThirdPartyOpen = false
	over := d.Order.Status.State().Terminal
	d.Order.SelfDelivery = d.Order.SelfDelivery || !over
	if over && to != cloud.ThirdPartyCancelled {
		return nil
	}
	return d.SetCarrier(false)
}

// endThirdParty ends the assignment of an order that has come to its end by
// another way: what was delivered, from a locker for one, the carrier brought;
// anything else is called off, and so is what an interception has brought back.
func (d *Decision) endThirdParty() error {
	back := d.Was.Status == cloud.OrderIntercepted && Resting(d.Order.Status)
	if !d.Order.ThirdPartyOpen || !back && !d.Order.Status.State().Terminal {
		return nil
	}
	a, err := d.ThirdParty()
	switch {
	case err != nil:
		return err
	case d.Order.Status == cloud.OrderDelivered:
		d.MarkThirdPartyDelivered()
		return d.CloseThirdParty(a.Conclusion())
	case back && a.Status != cloud.ThirdPartyHandedOver: // it was here all the time
		return nil
	}
	a.Reason = cloud.ThirdPartyCalledOff
	if err := d.CloseThirdParty(cloud.ThirdPartyCancelled); err != nil || !back {
		return err
	}
	return d.SetThirdPartyNumbers()
}

// MarkThirdPartyDelivered notes in the assignment what was delivered by another way, from a
// locker for one.
func (d *Decision) MarkThirdPartyDelivered() {
	for i := range d.thirdParty.Packages {
		p := &d.thirdParty.Packages[i]
		there := func(x cloud.OrderPackage) bool { return x.ID == p.ID && x.Status == cloud.OrderPackageDelivered }
		if !p.Outcome.Final() && (d.Order.Status == cloud.OrderDelivered || slices.ContainsFunc(d.Order.Packages, there)) {
			p.Outcome, p.OccurredAt = cloud.OutcomeDelivered, d.Now
		}
	}
}

// ThirdParty is the order's latest assignment to a third party, nil when there
// was none.
func (d *Decision) ThirdParty() (*cloud.ThirdPartyAssignment, error) {
	if d.thirdParty != nil || d.Order.ThirdPartyID == 0 {
		return d.thirdParty, nil
	}
	a, err := d.View.ThirdParty(d.Order.BusinessID, d.Order.ThirdPartyID)
	if err == nil {
		d.thirdParty = &a
	}
	return d.thirdParty, err
}

// SetThirdPartyNumbers gives the order and its packages the tracking numbers that the company
// has for them, and their own where it has none, or has them no more.
func (d *Decision) SetThirdPartyNumbers() error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	a, whole := d.thirdParty, ""
	d.Order.Packages = slices.Clone(d.Order.Packages)
	for i := range d.Order.Packages {
		x, external := &d.Order.Packages[i], ""
		for _, p := range a.Packages {
			if p.ID != x.ID {
				continue
			}
			if a.Open() {
				external = p.External
			}
			x.ExternalNumber = cmp.Or(external, p.Own)
		}
		switch {
		case i == 0:
			whole = external
		case external != whole:
			whole = "" // it is not one parcel there
		}
	}
	d.Order.ExternalNumber = cmp.Or(whole, a.Own)
	l.Shipment.External, l.Changed = d.Order.ExternalNumber, true
	d.Index()
	return nil
}

// AddThirdParty assigns the order to a third party.
func (d *Decision) AddThirdParty(a *cloud.ThirdPartyAssignment) {
	d.thirdParty, d.Order.ThirdPartyID, d.Order.ThirdPartyOpen = a, a.ID, true
	d.SaveThirdParty(EventThirdPartyCreated)
}

// SaveThirdParty writes the order's assignment at the end of the decision, and sends
// its company events about it.
func (d *Decision) SaveThirdParty(events ...string) {
	d.thirdPartyChanged, d.thirdPartyEvents = true, append(d.thirdPartyEvents, events...)
}

// NoteThirdParty writes an assignment that changed without an operation on the
// order, and an audit line that says what it was.
func (d *Decision) NoteThirdParty(what string) {
	d.SaveThirdParty()
	d.touched = true
	d.Changes.Audits = append(d.Changes.Audits, cloud.Audit{BusinessID: d.Order.BusinessID, At: d.Now, Actor: d.Caller.Account.ID.Actor(), Action: "third_party_" + what,
		Target: fmt.Sprint("order:", d.Order.ID), Detail: fmt.Sprintf(`{"assignment_number":%q}`, d.thirdParty.Number)})
}
