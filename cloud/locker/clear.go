package locker

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// ClearInput declares a compartment empty.
type ClearInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Grid   cloud.GridID   `path:"grid_id" json:"-"`
	Reason string         `json:"reason" required:"true" max:"120" doc:"Why, such as what a person who looked inside found; the audit trail keeps it with your name"`
	// Seen, where it is given, is the delivery that the grid showed as the caller decided:
	// another parcel that came meanwhile is not cleared.
	Seen *cloud.DeliveryID `json:"seen_delivery_id" min:"0" doc:"delivery_id of the grid as it was looked at, 0 for none. A grid that holds another by now is refused and left as it is"`
}

// ClearedPackage is a package that counted as inside a compartment until staff
// cleared it.
type ClearedPackage struct {
	DeliveryID      cloud.DeliveryID `json:"delivery_id"`
	DeliveryNumber  string           `json:"delivery_number"`
	ReferenceNumber string           `json:"reference_number"`
	TrackingNumber  string           `json:"tracking_number"`
	Deposited       bool             `json:"deposited" doc:"true when its deposit was confirmed; false when that was never verified"`
	DeliveryEnds    bool             `json:"delivery_ends" doc:"true when nothing of its delivery is left: the delivery has failed and its codes are dead"`
}

// ClearOutput shows a compartment that was cleared.
type ClearOutput struct {
	Result  bool             `json:"result"`
	Grid    GridBody         `json:"grid"`
	Cleared []ClearedPackage `json:"cleared" doc:"Packages that counted as inside and are given up; a dry run names them beforehand. Empty when the cloud knew of none."`
}

const (
	// removedByStaff is the failure of a deposited package that staff declared gone.
	removedByStaff = "OTHER"
	// noDelivery is a delivery reference that no delivery has: a cabinet that holds
	// one behind the door keeps it.
	noDelivery = "-"
)

// Clear declares a compartment empty that cabinet or cloud believes to hold a
// parcel. Packages inside are removed with the reason anomaly, a delivery of which
// nothing is left fails and its codes die, the cabinet is sent a command that names
// the delivery which it is to forget, and doubts about the contents are resolved. A
// reservation stays, and a blocked compartment stays blocked. One that counts as
// empty on both sides sends no command. A deposit made before the clear, but
// reported later, raises item_missing. The command waits 24 hours for a cabinet
// that is offline. Errors: DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND,
// DEVICE_DISABLED, DELIVERY_STATE_CONFLICT (an opening runs on the door, or it holds another delivery than
// the caller saw). Source: lockers-devices 8, 9.
func (s staff) Clear(ctx context.Context, c cloud.Caller, in ClearInput) (out ClearOutput, err error) {
	err = s.atCompartment(ctx, c, in.Device, in.Grid, func(w *Work, cell *cloud.Compartment) error {
		if now := cell.DeliveryID; in.Seen != nil && *in.Seen != now {
			return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"delivery_id": now}}
		}
		cleared, err := clearing{w.requests, foundEmpty}.clear(cell, in.Reason)
		if err != nil {
			return err
		}
		detail := map[string]any{"reason": in.Reason, "packages": cleared}
		if err := w.auditStaff(c, "grid_cleared", strconv.FormatInt(int64(in.Grid), 10), detail); err != nil {
			return err
		}
		out = ClearOutput{Result: true, Grid: gridBody(*cell), Cleared: cleared}
		w.ch.Answer = out
		return nil
	})
	return out, err
}

// clearing is the work of taking packages out of a compartment by word of staff.
type clearing struct {
	requests
	removal
}

// removal says what becomes of packages that are taken out.
type removal struct {
	reason string   // of the registry
	only   []string // tracking numbers of those that are taken out; nil for all that lie there
	// doubt is the exception that the removal resolves as resolution; other doubts about the
	// compartment are resolved by what they are about.
	doubt      cloud.ExceptionID
	resolution string
	// seen is the cabinet's record of the removal; nil: it is stated now.
	seen *Occurrence
}

// foundEmpty removes all that counts as inside a compartment in which a person found nothing.
var foundEmpty = removal{reason: "anomaly"}

// isHandedOver reports whether the package went from staff to a person who was to have it:
// its recipient, or the partner that brought it.
func (r removal) isHandedOver() bool { return r.reason == handedOver || r.reason == overdueReturn }

// mayClear refuses to touch what lies in a compartment while an opening runs on its door.
// Errors: DEVICE_DISABLED, DELIVERY_STATE_CONFLICT.
func (w clearing) mayClear(cell *cloud.Compartment) error {
	if w.device.Disabled {
		return cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	running, err := w.runningDoors("")
	if err != nil {
		return err
	}
	if id := running[cell.Door]; id != "" {
		return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"opening_id": id}}
	}
	return nil
}

// clear takes out what counts as inside a compartment, in the cloud at once and at
// the cabinet by a command.
func (w clearing) clear(cell *cloud.Compartment, reason string) (out []ClearedPackage, err error) {
	out = []ClearedPackage{}
	if err := w.mayClear(cell); err != nil {
		return nil, err
	}
	doubts, err := w.doubtsAt(cell)
	if err != nil {
		return nil, err
	}
	believed, err := w.believedIn(cell, doubts)
	if err != nil {
		return nil, err
	}
	holds := cell.DeliveryID != 0 && cell.State != cloud.GridReserved
	if cell.Dispute != nil && cell.Dispute.Cabinet != "" {
		holds = true
	}
	ref := noDelivery
	for _, d := range believed {
		taken, err := w.takeOut(d, cell)
		if err != nil {
			return nil, err
		}
		out = append(out, taken...)
		if d.ID == cell.DeliveryID && cell.State != cloud.GridReserved || len(taken) > 0 && ref == noDelivery {
			ref = d.Number
		}
	}
	cell.ClearedAt = w.received
	w.touch(cell)
	if !holds && len(out) == 0 && len(doubts) == 0 {
		return out, nil
	}
	if cell.Dispute != nil && cell.Dispute.Cabinet != "" {
		ref = cell.Dispute.Cabinet
	}
	if cell.DeliveryID != 0 && cell.State != cloud.GridReserved {
		cell.DeliveryID = 0
		if cell.State == cloud.GridOccupied {
			cell.State = cloud.GridFree
		}
	}
	w.resolveDoubts(doubts)
	cmd, err := w.send("", wire.CmdClear, wire.DoorReason{Door: cell.Door, Reason: reason, DeliveryRef: ref}, []uint{cell.Door}, longCommandLife)
	if err != nil {
		return nil, err
	}
	return out, w.clearDispute(cell, cmd.ID)
}

// clearDispute ends a difference about a compartment that the cloud alone held
// something in. Where the cabinet does, it stays until the cabinet has obeyed.
func (w clearing) clearDispute(cell *cloud.Compartment, command string) error {
	if cell.Dispute == nil {
		return nil
	}
	if cell.Dispute.Cabinet == "" {
		cell.Dispute = nil
	} else {
		cell.Dispute = &cloud.Dispute{Cabinet: cell.Dispute.Cabinet, Accepted: cell.Dispute.Accepted, CommandID: command}
	}
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	w.keepMismatch(cells, cell.OutOfUse(), true, w.received)
	return nil
}

// doubtsAt are the open exceptions about what lies in a compartment, those of this decision
// too.
func (w clearing) doubtsAt(cell *cloud.Compartment) (out []*cloud.Exception, err error) {
	open, err := w.openExceptions()
	for _, e := range open {
		if e.GridCode == cell.GridCode && (e.Type == wire.ExItemMissing || e.Type == wire.ExDepositUnverified) {
			out = append(out, e)
		}
	}
	return out, err
}

func (w clearing) resolveDoubts(doubts []*cloud.Exception) {
	for _, e := range doubts {
		e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", packageLost, w.received, "staff"
		switch {
		case e.ID == w.doubt:
			e.Resolution = w.resolution
		case w.reason == overdueReturn:
			e.Resolution = packageReturned
		case w.reason == handedOver && e.Type == wire.ExDepositUnverified:
			e.Resolution = depositConfirmed
		case w.reason == handedOver:
			e.Resolution = packageFound
		case e.Type == wire.ExDepositUnverified:
			e.Resolution = depositCancelled
		}
		w.touch(e)
	}
}

// believedIn are the deliveries that may lie in a compartment: the cloud's, the
// cabinet's, and those that exceptions there are about, each once.
func (w clearing) believedIn(cell *cloud.Compartment, doubts []*cloud.Exception) (out []*cloud.Delivery, err error) {
	add := func(d *cloud.Delivery, err error) error {
		if d != nil && d.DeviceID == w.device.ID && !slices.Contains(out, d) {
			out = append(out, d)
		}
		return err
	}
	if cell.DeliveryID != 0 {
		if err := add(w.delivery(cell.DeliveryID)); err != nil {
			return nil, err
		}
	}
	if cell.Dispute != nil && cell.Dispute.Cabinet != "" {
		if err := add(w.deliveryByNumber(cell.Dispute.Cabinet)); err != nil {
			return nil, err
		}
	}
	for _, e := range doubts {
		if e.DeliveryID == 0 {
			continue
		}
		if err := add(w.delivery(e.DeliveryID)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// takeOut ends what lies in a compartment of a delivery: deposited packages were
// removed, unverified ones never deposited. A delivery of which nothing is left
// fails; the rest of another waits with its code.
func (w clearing) takeOut(d *cloud.Delivery, cell *cloud.Compartment) (out []ClearedPackage, err error) {
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return nil, err
	}
	r := w.stated(wire.KindOpeningEnded)
	if w.seen != nil {
		r = *w.seen
	}
	failed := false
	for i := range d.Packages {
		p := &d.Packages[i]
		if w.only != nil && !slices.Contains(w.only, p.TrackingNumber) {
			continue
		}
		at := slices.IndexFunc(orders, func(o *cloud.DeviceOrder) bool {
			return o.Tracking == p.TrackingNumber && o.GridCode == cell.GridCode && o.EndedAt.IsZero()
		})
		deposited := p.GridID == cell.GridID && (p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting)
		if !deposited && (at < 0 || !orders[at].IsUnverified()) {
			continue
		}
		if at >= 0 {
			o := orders[at]
			o.Status, o.NextActor, o.RemovalReason, o.EndedAt = "removed", "", w.reason, r.OccurredAt
			if deposited && w.isCollected(d) {
				o.Status, o.RemovalReason = "picked_up", ""
			}
			w.touch(o)
		}
		out = append(out, ClearedPackage{DeliveryID: d.ID, DeliveryNumber: d.Number, ReferenceNumber: d.Reference, TrackingNumber: p.TrackingNumber, Deposited: deposited})
		awaited := p.GridID == cell.GridID && (p.Status == cloud.PackageAwaitingDeposit || p.Status == cloud.PackageCreated)
		if !deposited && (!awaited || cell.State == cloud.GridReserved) {
			continue // given up already, or planned anew
		}
		failed = true
		grid := p.GridID
		p.Status, p.FailureCode, p.GridID = cloud.PackageFailed, notDeposited, 0
		switch {
		case deposited && w.isHandedOver():
			p.Status, p.FailureCode, p.GridID = cloud.PackagePickedUp, "", grid
			code := otep.RemovedFromDevice
			if w.reason == handedOver {
				code = collectedCode(*d) // its recipient, or a courier, has it
			}
			err = w.addPackageEvent(r, d, p, code)
		case deposited:
			p.FailureCode = removedByStaff
			err = w.addPackageEvent(r, d, p, otep.RemovedFromDevice)
		case p.OrderID == 0:
			err = w.trackFailure(r, d, p.TrackingNumber, p.FailureCode)
		}
		if err != nil {
			return nil, err
		}
	}
	if !failed {
		if len(out) > 0 && (d.PickupCodeActive || d.IsOutgoing() && waits(*d)) {
			err = w.activate(d) // a cabinet that is new does not keep the compartment any more
		}
		return out, err
	}
	ends := !slices.ContainsFunc(d.Packages, func(p cloud.Package) bool {
		return p.Status != cloud.PackageFailed && p.Status != cloud.PackagePickedUp && p.Status != cloud.PackageCancelled
	})
	for i := range out {
		out[i].DeliveryEnds = ends
	}
	w.touch(d)
	if w.isHandedOver() {
		switch {
		case ends && w.isCollected(d):
			return out, w.endTakenBack(r.OccurredAt, d, nil, byCourier, w.reason)
		case ends:
			return out, w.endTakenBack(r.OccurredAt, d, nil, byStaff, w.reason)
		}
		return out, w.activateRest(d)
	}
	if ends {
		err = w.endCleared(r.OccurredAt, d, findPackage(d, out[0].TrackingNumber).FailureCode)
	} else if d.Status == cloud.DeliveryDelivered || d.Status == cloud.DeliveryExpired {
		err = w.activateRest(d)
	}
	if err != nil {
		return nil, err
	}
	return out, w.s.addDeliveryEvent(w.v, &w.ch, EventDeliveryFailed, r.OccurredAt, *d, nil, nil)
}

// isCollected reports whether what staff take out of a delivery goes to the courier for whom
// it was brought.
func (w clearing) isCollected(d *cloud.Delivery) bool {
	return d.IsOutgoing() && w.reason == handedOver
}

// activateRest leaves the code of a delivery that waits to what is left of it. Where only
// unverified packages are, it opens nothing.
func (w clearing) activateRest(d *cloud.Delivery) error {
	if !waits(*d) {
		return nil
	}
	d.PickupCodeActive = d.PickupCodeActive && slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment })
	return w.activate(d)
}

// endCleared ends a delivery of which nothing is left: its codes die.
func (w clearing) endCleared(at time.Time, d *cloud.Delivery, failure string) error {
	resolution := noAction
	if slices.Contains(resolutions[exOverdue], w.resolution) {
		resolution = w.resolution
	}
	if err := w.closeOverdue(d, resolution, "staff"); err != nil {
		return err
	}
	d.Status, d.FailedAt, d.FailureCode, d.PickupCodeActive = cloud.DeliveryFailed, at, failure, false
	if err := w.releaseCells(d); err != nil {
		return err
	}
	return w.revoke(d, deliveryKinds...)
}

// emptied names the exception about a deposit in a compartment which staff declared
// empty after it was made and before it was reported.
func emptied(d *cloud.Delivery, grid string) string { return "emptied:" + d.Number + ":" + grid }

// doubtCleared raises item_missing for a deposit that may have been made before staff
// declared its compartment empty, as of that clear.
func (w *handling) doubtCleared(deposited Occurrence, d *cloud.Delivery, c *cloud.Compartment) error {
	if c.ClearedAt.IsZero() || !deposited.lower().Before(c.ClearedAt) {
		return nil
	}
	deposited.OccurredAt = c.ClearedAt
	return w.raise(deposited, emptied(d, c.GridCode), wire.ExItemMissing, wire.SeverityHigh, d, c.Door, "deposited before the compartment was cleared, and reported after it")
}

// acceptCollected closes the exception of doubtCleared once a collection before the
// clear is known.
func (w *handling) acceptCollected(r Occurrence, d *cloud.Delivery, c *cloud.Compartment) error {
	if c.ClearedAt.IsZero() || r.upper().IsZero() || r.upper().After(c.ClearedAt) {
		return nil
	}
	e, err := w.exception(emptied(d, c.GridCode))
	if err != nil || e == nil || e.Status != "open" {
		return err
	}
	e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", "no_action", w.received, "device"
	w.touch(e)
	return nil
}

// isRemoved reports whether a delivery has failed after all that was deposited of it
// was taken out.
func (w *handling) isRemoved(d *cloud.Delivery) (bool, error) {
	if d.Status != cloud.DeliveryFailed {
		return false, nil
	}
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return false, err
	}
	removed := false
	for _, o := range orders {
		if o.EndedAt.IsZero() {
			return false, nil
		}
		removed = removed || o.Status == "removed" && !o.StoredAt.IsZero()
	}
	return removed, nil
}
