package locker

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// A doubt about a deposit, deposit_unverified, asks whether a package lies behind a door. It is
// answered once the package has left as one that was there.

// answerDoubts ends the doubts that the packages which have left by now answer. It is the last
// part of a decision, so that the order in which the doubt and its answer came makes no
// difference.
func (w *Work) answerDoubts() error {
	if !w.mayAnswer() {
		return nil
	}
	open, err := w.openExceptions()
	if err != nil {
		return err
	}
	for _, e := range open {
		if e.Type != wire.ExDepositUnverified || e.DeliveryID == 0 {
			continue
		}
		orders, err := w.deviceOrders(e.DeliveryID)
		if err != nil {
			return err
		}
		o := departed(orders, e.GridCode)
		if o == nil {
			continue
		}
		cell, err := w.cellAt(e.GridCode)
		if err != nil || cell.DeliveryID == e.DeliveryID {
			continue // the delivery has the compartment again, or it is there no more
		}
		d, err := w.delivery(e.DeliveryID)
		if err != nil || d == nil {
			return err
		}
		w.answerDoubt(e, answerBy(o), closerBy(o, d))
	}
	return nil
}

// mayAnswer reports whether a package has left a compartment by this decision, or a doubt is new.
func (w *Work) mayAnswer() bool {
	for _, list := range w.orders {
		if slices.ContainsFunc(list, func(o *cloud.DeviceOrder) bool { return w.changed[o] && !o.EndedAt.IsZero() }) {
			return true
		}
	}
	for _, e := range w.exceptions {
		if e != nil && w.changed[e] && e.Status == "open" && e.Type == wire.ExDepositUnverified {
			return true
		}
	}
	return false
}

// departed is the last package of a delivery that has left a compartment in which it was known to
// lie; nil while another one counts as inside, and where none ever did.
func departed(orders []*cloud.DeviceOrder, grid string) (out *cloud.DeviceOrder) {
	for _, o := range orders {
		switch {
		case o.GridCode != grid:
		case o.EndedAt.IsZero():
			return nil
		case o.Status != "picked_up" && o.StoredAt.IsZero():
		case out == nil || !o.EndedAt.Before(out.EndedAt):
			out = o
		}
	}
	return out
}

// answerBy is the resolution of a doubt about a package that has left.
func answerBy(o *cloud.DeviceOrder) string {
	switch {
	case o.Status == "picked_up", o.RemovalReason == handedOver:
		return depositConfirmed
	case o.RemovalReason == overdueReturn:
		return packageReturned
	}
	return depositCancelled
}

// closerBy is who let a package leave: the device, its partner or staff.
func closerBy(o *cloud.DeviceOrder, d *cloud.Delivery) string {
	switch {
	case o.Status == "picked_up" && (d.PickedUpBy != byCourier || d.PickedUpMethod != "remote"):
		return "device"
	case d.PickedUpBy == byStaff, d.Status == cloud.DeliveryFailed:
		return "staff"
	}
	return "partner"
}

// answerDoubt resolves a doubt, with what answers it in its note.
func (w *handling) answerDoubt(e *cloud.Exception, resolution, by string) {
	evidence := "the package was collected"
	if by != "device" {
		evidence = "the package was taken out"
	}
	e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", resolution, w.received, by
	e.Note = joinNotes(e.Note, evidence)
	w.touch(e)
}

// answerOpened ends the doubts about a delivery behind a door that was opened to collect all of
// it: also about packages that counted as not brought, of which nothing is known but that nothing
// is left there.
func (w *handling) answerOpened(d *cloud.Delivery, c *cloud.Compartment) error {
	open, err := w.openExceptions()
	for _, e := range open {
		if e.Type != wire.ExDepositUnverified || e.DeliveryID != d.ID || e.GridCode != c.GridCode {
			continue
		}
		resolution := noAction
		if slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.GridID == c.GridID && p.Status == cloud.PackagePickedUp }) {
			resolution = depositConfirmed
		}
		w.answerDoubt(e, resolution, "device")
	}
	return err
}

// possibleResolutions are the actions that resolve an exception about a delivery with these
// packages. Where the package of a doubt was collected, none that says otherwise is possible.
func possibleResolutions(e cloud.Exception, orders []*cloud.DeviceOrder) []string {
	if e.Type == wire.ExDepositUnverified {
		if o := departed(orders, e.GridCode); o != nil && answerBy(o) == depositConfirmed {
			return []string{depositConfirmed, noAction}
		}
	}
	return resolutions[e.Type]
}
