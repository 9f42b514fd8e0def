package locker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// ConfirmInput is a partner's or a staff member's statement that a deposit is
// made: of the packages it names, or of all when it names none. A grid_id says
// that a package lies in another compartment of the opening than planned. Staff
// name the delivery by its id.
type ConfirmInput struct {
	Delivery DeliveryKey      `path:"id" json:"-"`
	Packages []ConfirmPackage `json:"packages"`
	Photos   []string         `json:"photos" max:"10" item_max:"1000" doc:"Addresses or names of pictures of it, kept as evidence in the audit"`
}

// ConfirmPackage names one package that was deposited.
type ConfirmPackage struct {
	TrackingNumber string       `json:"tracking_number"`
	GridID         cloud.GridID `json:"grid_id"`
}

// notDeposited is the failure of a package that a confirmation left out.
const notDeposited = "NOT_DEPOSITED"

// Confirm settles a deposit by the statement of the partner or of the business's
// staff, at once in the cloud, and orders the cabinet to close the session, which
// activates the code for what was confirmed. Packages that the input leaves out
// have failed. Whichever came first is kept as confirmed_by (partner_api,
// console); a later one is evidence. Staff see no codes in the answer. Errors: DELIVERY_NOT_FOUND,
// PACKAGE_NOT_IN_DELIVERY, GRID_NOT_FOUND, DELIVERY_STATE_CONFLICT (also while a
// door of the opening is known to be open).
func (s partners) Confirm(ctx context.Context, c cloud.Caller, in ConfirmInput) (out DeliveryOutput, err error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return w.confirm(c, d, in) })
	if err != nil {
		return out, err
	}
	if out, err = s.show(ctx, id); c.Account.Type.IsStaff() {
		out = out.withoutCodes()
	}
	return out, err
}

func (w requests) confirm(c cloud.Caller, d *cloud.Delivery, in ConfirmInput) error {
	named := in.Packages
	for _, p := range named {
		if findPackage(d, p.TrackingNumber) == nil {
			return cloud.E(cloud.Conflict, "PACKAGE_NOT_IN_DELIVERY")
		}
	}
	o, err := w.newestOpening(d, func(o cloud.Opening) bool { return o.Kind.IsDeposit() })
	if err != nil {
		return err
	}
	if o == nil {
		return conflict(*d)
	}
	if w.device.IsCutOff() {
		return cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	by := settledBy(c)
	detail, err := json.Marshal(struct {
		By     wire.ConfirmedBy `json:"confirmed_by"`
		Photos []string         `json:"photos,omitempty"`
	}{by, in.Photos})
	if err != nil {
		return err
	}
	audit := cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c), Target: o.ID, Detail: string(detail)}
	rest, err := w.unverifiedOf(d, o)
	if err != nil {
		return err
	}
	delivered := d.Status == cloud.DeliveryDelivered
	if delivered && (len(rest) == 0 || o.State != cloud.OpeningSettled) { // evidence
		audit.Action = "deposit_evidence"
		w.ch.Audits = append(w.ch.Audits, audit)
		return nil
	}
	doubtful := o.EndReason == wire.EndDepositUnverified || o.State == cloud.OpeningSettled && len(rest) > 0
	if !delivered && d.Status != cloud.DeliveryDoorsOpened && d.Status != cloud.DeliveryCorrecting || o.Ended() && !doubtful {
		return conflict(*d)
	}
	if delivered { // what is inside stays so, whatever the statement names
		named = slices.Clone(named)
		for _, p := range d.Packages {
			known := slices.ContainsFunc(named, func(n ConfirmPackage) bool { return n.TrackingNumber == p.TrackingNumber })
			if !known && holds(o, p.TrackingNumber) && (p.Status == cloud.PackageInCompartment || len(in.Packages) == 0 && slices.Contains(rest, p.TrackingNumber)) {
				named = append(named, ConfirmPackage{TrackingNumber: p.TrackingNumber, GridID: p.GridID})
			}
		}
	}
	if err := areShut(w.rows, d, o.Doors); err != nil {
		return err
	}
	body, err := confirmation(d, o, named, by)
	if err != nil {
		return err
	}
	if delivered { // what has left stays as it is
		body.Packages = slices.DeleteFunc(body.Packages, func(sp wire.SettledPackage) bool {
			return sp.Outcome == wire.Failed && !slices.Contains(rest, sp.Ref)
		})
	}
	// Its events are made from the confirmation, not from a record: the opening
	// stands in for the record's identity.
	r := w.stated(wire.KindOpeningSettled)
	first := d.ConfirmedBy
	if o.State != cloud.OpeningSettled {
		o.State, o.ConfirmedBy, o.EndedAt = cloud.OpeningSettled, by, w.received
	}
	w.touch(o)
	if c.Account.Type.IsStaff() || len(in.Photos) > 0 {
		audit.Action = "deposit_confirmed"
		w.ch.Audits = append(w.ch.Audits, audit)
	}
	doubts, err := w.openExceptions() // before the statement raises any
	if err != nil {
		return err
	}
	if err := w.deposit(r, o, d, body, r); err != nil {
		return err
	}
	if delivered {
		d.ConfirmedBy = first
	}
	if err := w.closeDoubts(d, doubts, body, closer(c)); err != nil {
		return err
	}
	order := wire.CloseSession{OpeningID: o.ID, How: wire.CloseSettle, ConfirmedBy: by, DeliveryRef: d.Number}
	if len(named) > 0 { // with what lies inside already: what the order leaves out was not brought
		order.Packages = map[uint][]string{}
		for _, p := range body.Packages {
			if p.Outcome == wire.Deposited {
				order.Packages[p.Door] = append(order.Packages[p.Door], p.Ref)
			}
		}
	}
	_, err = w.send(o.ID, wire.CmdCloseSession, order, nil, longCommandLife)
	return err
}

// areShut refuses while doors are known to be open. Error: DELIVERY_STATE_CONFLICT with them.
func areShut(w *rows, d *cloud.Delivery, doors []cloud.OpeningDoor) error {
	var open []map[string]any
	var names []string
	for _, od := range doors {
		cell, err := w.cell(od.Door)
		if err != nil {
			return err
		}
		if cell != nil && cell.DoorStatus == "open" {
			open, names = append(open, map[string]any{"grid_code": cell.GridCode, "door_name": cell.Name()}), append(names, cell.Name())
		}
	}
	if len(open) == 0 {
		return nil
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Args: []any{strings.Join(names, ", ")}, Details: map[string]any{"status": d.Status, "open_doors": open}}
}

// unverifiedOf are the packages of an opening of a delivery of which nothing verifies that they
// lie inside: no door was seen, or a sensor saw nothing behind one that had closed.
func (w *rows) unverifiedOf(d *cloud.Delivery, o *cloud.Opening) (out []string, err error) {
	rows, err := w.deviceOrders(d.ID)
	for _, x := range rows {
		if x.IsUnverified() && holds(o, x.Tracking) {
			out = append(out, x.Tracking)
		}
	}
	return out, err
}

// closeDoubts closes the doubts about a deposit that a statement has settled, each by what
// became of the packages in its compartment.
func (w *handling) closeDoubts(d *cloud.Delivery, doubts []*cloud.Exception, b wire.OpeningSettled, by string) error {
	for _, e := range doubts {
		if e.DeliveryID != d.ID || e.Type != wire.ExDepositUnverified {
			continue
		}
		resolution := ""
		for _, sp := range b.Packages {
			cell, err := w.cell(sp.Door)
			if err != nil {
				return err
			}
			switch {
			case cell == nil || cell.GridCode != e.GridCode:
			case sp.Outcome == wire.Deposited:
				resolution = depositConfirmed
			case resolution == "":
				resolution = depositCancelled
			}
		}
		if resolution == "" {
			continue
		}
		e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", resolution, w.received, by
		w.touch(e)
	}
	return nil
}

// confirmation is the settlement that a statement amounts to.
func confirmation(d *cloud.Delivery, o *cloud.Opening, named []ConfirmPackage, by wire.ConfirmedBy) (body wire.OpeningSettled, err error) {
	body = wire.OpeningSettled{OpeningID: o.ID, ConfirmedBy: by}
	for _, p := range named {
		if !holds(o, p.TrackingNumber) {
			return body, conflict(*d)
		}
		if p.GridID != 0 && !slices.ContainsFunc(o.Doors, func(od cloud.OpeningDoor) bool { return od.GridID == p.GridID }) {
			return body, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
	}
	deposited := false
	for _, od := range o.Doors {
		for _, ref := range od.Packages {
			sp := wire.SettledPackage{Ref: ref, Door: od.Door, Outcome: wire.Deposited}
			i := slices.IndexFunc(named, func(p ConfirmPackage) bool { return p.TrackingNumber == ref })
			door := od
			if i >= 0 && named[i].GridID != 0 {
				door = o.Doors[slices.IndexFunc(o.Doors, func(x cloud.OpeningDoor) bool { return x.GridID == named[i].GridID })]
				sp.Door = door.Door
			}
			shut := door.Error == wire.DoorOpenFailed && door.OpenedAt.IsZero() // it may have swung later
			switch {
			case shut && i >= 0:
				return body, conflict(*d) // nothing can lie behind it
			case shut:
				sp.Outcome, sp.FailureCode = wire.Failed, doorNotOpened
			case len(named) > 0 && i < 0:
				sp.Outcome, sp.FailureCode = wire.Failed, notDeposited
			}
			if i >= 0 {
				if p := findPackage(d, ref); p.Status == cloud.PackageFailed {
					p.Status = cloud.PackageAwaitingDeposit // in after all
				}
			}
			deposited = deposited || sp.Outcome == wire.Deposited
			body.Packages = append(body.Packages, sp)
		}
	}
	if !deposited {
		return body, conflict(*d)
	}
	return body, nil
}
