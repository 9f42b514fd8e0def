package locker

import (
	"fmt"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// removals are what staff state at cabinets of what they took out.
type removals struct{ reports }

// removed: staff have stated at the cabinet what became of the packages behind a door that
// they had opened. It stands whatever was decided meanwhile, once:
//
//	taken       the packages end as by RemoveDeviceOrder, those that were to be collected as
//	            overdue_return or, where their sender brought them for a courier, as handed over
//	not_found   they end with the reason anomaly, and item_missing has people look for them
//	refused     they stay, and the history has it
//
// Where nothing of the delivery is left there by word of staff or its partner, the history has
// it too; where its recipient has it, or it lay nowhere there, item_missing is opened. The cabinet
// has let go of what was taken: it is sent no command.
func (w removals) removed(r Occurrence, b wire.Removal) (string, error) {
	if b.ID == "" || len(b.ID) > 40 || b.OpeningID == "" || len(b.OpeningID) > 40 || !wire.IsRemoval(b.Outcome, b.Reason) {
		return badBody, nil
	}
	d, err := w.deliveryByNumber(b.DeliveryRef)
	if err != nil {
		return "", err
	}
	cell, err := w.cell(b.Door)
	if err != nil {
		return "", err
	}
	if d == nil || d.DeviceID != w.device.ID || cell == nil {
		return foreign, nil
	}
	o, problem, err := w.removalOpening(r, b)
	if problem != "" || err != nil {
		return problem, err
	}
	at := slices.IndexFunc(o.Doors, func(od cloud.OpeningDoor) bool { return od.Door == b.Door })
	if at < 0 {
		return badBody, nil
	}
	if slices.ContainsFunc(o.Doors[at].Removals, func(x cloud.Removal) bool { return x.ID == b.ID }) {
		return "", nil // known, under an earlier epoch
	}
	o.Doors[at].Removals = append(slices.Clone(o.Doors[at].Removals), cloud.Removal{ID: b.ID, DeliveryID: d.ID, Outcome: b.Outcome, Reason: b.Reason, At: r.OccurredAt})
	w.touch(o)
	w.audit(r, "parcel_"+b.Outcome, d.Number, fmt.Sprintf(`{"door":%d,"removal_reason":%q,"opening_id":%q,"requested_by_id":%q}`, b.Door, b.Reason, o.ID, o.Requester.ID))
	if b.Outcome == wire.RemovalRefused {
		return "", nil
	}
	return "", w.takeOutBy(r, b, d, cell)
}

// removalOpening is the staff opening of a removal. One whose start is not known is one that
// has ended.
func (w removals) removalOpening(r Occurrence, b wire.Removal) (o *cloud.Opening, problem string, err error) {
	o, err = w.opening(b.OpeningID)
	switch {
	case err != nil:
		return nil, "", err
	case o != nil && o.DeviceID != w.device.ID:
		return nil, foreign, nil
	case o != nil && o.Kind != wire.OpenStaff:
		return nil, badBody, nil
	case o != nil:
		return o, "", nil
	}
	o, problem, err = w.localOpening(r, wire.OpeningStarted{OpeningID: b.OpeningID, Kind: wire.OpenStaff, Doors: []uint{b.Door}, CommandID: wire.LocalCommand, Who: byStaff, CodeNumber: b.CodeNumber})
	if problem == "" && err == nil {
		o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, wire.EndDone, r.OccurredAt
	}
	return o, problem, err
}

// takeOutBy ends the packages of a delivery in a compartment by a removal.
func (w removals) takeOutBy(r Occurrence, b wire.Removal, d *cloud.Delivery, cell *cloud.Compartment) error {
	if !d.DepositedAt.IsZero() && (r.Approximate || d.ConfirmedBy.IsStated() || !r.OccurredAt.After(d.DepositedAt)) {
		r = r.notBefore(d.DepositedAt.Add(1e6)) // as of a collection
	}
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	var unverified, stored []string
	for _, o := range orders {
		switch {
		case o.GridCode != cell.GridCode || !o.EndedAt.IsZero():
		case o.IsUnverified():
			unverified = append(unverified, o.Tracking)
		default:
			stored = append(stored, o.Tracking)
		}
	}
	by := clearing{requests(w.reports), removal{reason: b.Reason, seen: &r}}
	if b.Reason == wire.RemovalCollected {
		by.reason = collectedReason(d)
	}
	if b.Outcome == wire.RemovalNotFound {
		by.reason = foundEmpty.reason
	}
	if len(unverified)+len(stored) == 0 {
		return w.doubtTakenOut(r, b, d, cell)
	}
	if b.Outcome == wire.RemovalNotFound {
		if err := w.doubtMissing(r, b, d, cell); err != nil {
			return err
		}
	}
	// What nothing verified first, so that the delivery ends as the rest of it does.
	for reason, numbers := range [][]string{unverified, stored} {
		if len(numbers) == 0 {
			continue
		}
		one := by
		if one.only = numbers; reason == 0 {
			one.reason = foundEmpty.reason
		}
		if _, err := one.takeOut(d, cell); err != nil {
			return err
		}
	}
	w.leave(d, cell)
	doubts, err := by.doubtsAt(cell)
	if err != nil {
		return err
	}
	by.resolveDoubts(slices.DeleteFunc(doubts, func(e *cloud.Exception) bool {
		return e.DeliveryID != d.ID || b.Outcome == wire.RemovalNotFound && e.Type == wire.ExItemMissing
	}))
	return nil
}

// leave frees a compartment of a delivery of which nothing is left there.
func (w *handling) leave(d *cloud.Delivery, cell *cloud.Compartment) {
	if cell.DeliveryID != d.ID || cell.State == cloud.GridReserved {
		return
	}
	cell.DeliveryID = 0
	if cell.State == cloud.GridOccupied {
		cell.State = cloud.GridFree
	}
	w.touch(cell)
}

// collectedReason is the reason with which what was to be collected leaves the registry.
func collectedReason(d *cloud.Delivery) string {
	if d.IsOutgoing() {
		return handedOver
	}
	return overdueReturn
}

// doubtMissing opens item_missing for packages that staff did not find, or adds to the one that
// is open.
func (w removals) doubtMissing(r Occurrence, b wire.Removal, d *cloud.Delivery, cell *cloud.Compartment) error {
	open, err := w.openExceptions()
	if err != nil {
		return err
	}
	for _, e := range open {
		if e.Type == wire.ExItemMissing && e.DeliveryID == d.ID && e.GridCode == cell.GridCode {
			e.Note = joinNotes(e.Note, notFoundNote)
			w.touch(e)
			return nil
		}
	}
	return w.raise(r, "removal:"+b.ID, wire.ExItemMissing, wire.SeverityHigh, d, cell.Door, notFoundNote)
}

const notFoundNote = "staff opened the compartment at the cabinet and did not find it"

// doubtTakenOut is about packages that staff took out where nothing was left of their delivery.
func (w removals) doubtTakenOut(r Occurrence, b wire.Removal, d *cloud.Delivery, cell *cloud.Compartment) error {
	w.leave(d, cell) // also where a courier has reported all packages as taken out
	if b.Outcome != wire.RemovalTaken {
		return nil
	}
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	note := "staff took it out of a compartment in which it was not known to lie"
	for _, o := range orders {
		switch {
		case o.GridCode != cell.GridCode:
		case o.Status == "removed":
			return nil // by word of staff or its partner, and here is the same word again
		default:
			note = "staff took it out after it had been collected"
		}
	}
	return w.raise(r, "removal:"+b.ID, wire.ExItemMissing, wire.SeverityHigh, d, cell.Door, note)
}
