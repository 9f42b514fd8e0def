package locker

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// This file has what stands in, at the mock cabinet of a provider, for people and for time
// that a rehearsal does not have.

// withoutAudit drops the audit lines behind the first n: the business's trail is about its own
// cabinets.
func (w *Work) withoutAudit(n int) { w.ch.Audits = w.ch.Audits[:n] }

// CancelMock ends the openings of which a mock cabinet has not taken the order, and has it cancel
// those that run there.
func CancelMock(w *Work) error {
	orders, err := w.v.OpenCommands(w.device.ID)
	if err != nil {
		return err
	}
	for _, x := range orders {
		if x.Kind != wire.CmdOpenDoors || x.State == cloud.CommandAccepted {
			continue
		}
		c, err := w.command(x.ID)
		if err != nil {
			return err
		}
		o, err := w.opening(c.OpeningID)
		if err != nil {
			return err
		}
		c.State, c.EndedAt = cloud.CommandExpired, w.received
		w.touch(c)
		if o != nil && o.State == cloud.OpeningRequested {
			o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, string(cloud.CommandExpired), w.received
			w.touch(o)
		}
	}
	running, err := w.runningDoors("")
	if err != nil {
		return err
	}
	for _, id := range slices.Compact(slices.Sorted(maps.Values(running))) {
		if _, err := w.send(id, wire.CmdCloseSession, wire.CloseSession{OpeningID: id, How: wire.CloseCancel}, nil, commandLife); err != nil {
			return err
		}
	}
	return nil
}

// ResetMock empties a mock cabinet at which no opening runs: what counts as inside is taken
// out, as by staff that found nothing, deliveries that were not deposited are cancelled, as by
// their partner, and every compartment is in service.
func ResetMock(w *Work) error {
	const reason = "The mock locker was cleared"
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	defer w.withoutAudit(len(w.ch.Audits))
	for _, cell := range cells {
		if _, err := (clearing{w.requests, foundEmpty}).clear(cell, reason); err != nil {
			return err
		}
		if err := w.unblock(cloud.Caller{}, cell, reason); err != nil {
			return err
		}
		p := w.present(cell.Door)
		p.DoorStatus, p.Occupied, p.OpeningID = "closed", nil, ""
	}
	if err := keepJammed(w.handling, w.received, nil); err != nil {
		return err
	}
	return w.eachAtMock(func(d *cloud.Delivery) error {
		_, err := w.giveUp(d, func(_ *handling, d *cloud.Delivery) error {
			d.CancelReason, d.CancelledBy, d.FailureCode = reason, "partner_api", ""
			return nil
		})
		return err
	}, cloud.DeliveryCreated, cloud.DeliveryDoorsOpened)
}

// ConfirmMock confirms the deposit of the delivery that a compartment of a mock cabinet holds,
// as the operator's staff would at the console. Errors: GRID_NOT_FOUND, and those of Confirm.
func ConfirmMock(w *Work, g cloud.GridID) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	defer w.withoutAudit(len(w.ch.Audits))
	for _, cell := range cells {
		if cell.GridID != g {
			continue
		}
		d, err := w.delivery(cell.DeliveryID)
		if err == nil && d == nil || errors.Is(err, cloud.ErrNotFound) {
			return &cloud.Error{Kind: cloud.Conflict, Code: "DELIVERY_STATE_CONFLICT", Details: map[string]any{"grid_id": g}}
		}
		if err != nil {
			return err
		}
		return w.confirm(cloud.Caller{Account: cloud.Account{Type: cloud.ClientEmployee}}, d, ConfirmInput{})
	}
	return cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
}

// DisableMock puts a mock cabinet out of service, or back into it, as its operator would.
func DisableMock(w *Work, disabled bool) {
	if w.device.Disabled != disabled {
		w.device.Disabled, w.listed = disabled, true
	}
}

// MissDoor says that a mock cabinet does not know how a door stands.
func MissDoor(w *Work, door uint) { w.present(door).DoorStatus = "unknown" }

// AdvanceMock brings what the deliveries in a mock cabinet wait for nearer: it lies as much
// earlier as the cabinet's time runs ahead. What is over by that ends at once.
func AdvanceMock(w *Work, by time.Duration) error {
	running, err := w.runningDoors("")
	if err != nil {
		return err
	}
	err = w.eachAtMock(func(d *cloud.Delivery) error { return bringNearer(w.requests, d, by) },
		cloud.DeliveryCreated, cloud.DeliveryDoorsOpened, cloud.DeliveryDelivered, cloud.DeliveryCorrecting, cloud.DeliveryFailed)
	if err != nil {
		return err
	}
	for _, id := range running {
		o, err := w.opening(id)
		if err != nil {
			return err
		}
		o.EndsAt = o.EndsAt.Add(-by)
		w.touch(o)
	}
	return nil
}

// newestAtMock bounds the deliveries of each status that acts at a mock cabinet look at.
const newestAtMock = 1000

// eachAtMock calls f with the newest deliveries of a mock cabinet in each of some statuses.
func (w *Work) eachAtMock(f func(*cloud.Delivery) error, statuses ...cloud.DeliveryStatus) error {
	for _, status := range statuses {
		list, _, err := w.v.Deliveries(cloud.DeliveryFilter{BusinessID: w.device.BusinessID, DeviceID: w.device.ID, Status: status, Page: cloud.Page{Sort: "id", Down: true, Limit: newestAtMock}})
		if err != nil {
			return err
		}
		for _, x := range list {
			d, err := w.delivery(x.ID)
			if err != nil {
				return err
			}
			if d.Status != status { // this step has changed it
				continue
			}
			if err := f(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringNearer moves the time limits of a delivery, and ends what is over by them.
func bringNearer(w requests, d *cloud.Delivery, by time.Duration) error {
	if d.DeliverBefore.After(w.received) {
		d.DeliverBefore = d.DeliverBefore.Add(-by)
		w.touch(d)
	}
	if d.DepositedAt.IsZero() {
		return moveCodes(w, d)
	}
	d.DepositedAt, d.DueAt = d.DepositedAt.Add(-by), d.DueAt.Add(-by)
	w.touch(d)
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	for _, row := range orders {
		if row.EndedAt.IsZero() && !row.StoredAt.IsZero() {
			row.StoredAt, row.DueAt = row.StoredAt.Add(-by), row.DueAt.Add(-by)
			w.touch(row)
		}
	}
	return moveCodes(w, d)
}

// moveCodes lists the codes of a delivery whose time limits were moved, or ends it by them.
func moveCodes(w requests, d *cloud.Delivery) error {
	if err := w.expireDelivery(d); err != nil {
		return err
	}
	switch d.Status {
	case cloud.DeliveryCreated, cloud.DeliveryDoorsOpened:
		return w.place(d)
	case cloud.DeliveryDelivered:
		return w.activateInside(d)
	}
	return nil
}

// Rehearsed is what a rehearsal at a mock cabinet has led to besides its deliveries: what staff
// see of a real one.
type Rehearsed struct {
	Exceptions   []CabinetExceptionBody `json:"exceptions" doc:"The newest 20, open and closed, newest first"`
	DeviceOrders []DeviceOrderView      `json:"device_orders" doc:"The newest 20, newest first: what rests, and rested, in the locker"`
}

const rehearsedRows = 20

// FindRehearsed finds what a rehearsal at a mock cabinet has led to.
func FindRehearsed(v cloud.View, d cloud.Device) (Rehearsed, error) {
	out := Rehearsed{Exceptions: []CabinetExceptionBody{}, DeviceOrders: []DeviceOrderView{}}
	b, err := v.Business(d.BusinessID)
	if err != nil {
		return out, err
	}
	newest := cloud.Page{Sort: "id", Down: true, Limit: rehearsedRows}
	v = newMemo(v, cloud.Device{})
	exceptions, _, err := v.Exceptions(cloud.ExceptionFilter{BusinessID: d.BusinessID, DeviceID: d.ID, Page: newest})
	if err != nil {
		return out, err
	}
	for _, e := range exceptions {
		shown, err := exceptionBody(v, e, b.Location())
		if err != nil {
			return out, err
		}
		out.Exceptions = append(out.Exceptions, shown)
	}
	orders, _, err := v.Registry(cloud.DeviceOrderFilter{BusinessID: d.BusinessID, DeviceID: d.ID, Page: newest})
	if err != nil {
		return out, err
	}
	for _, o := range orders {
		shown, err := deviceOrderView(v, o, b.Location())
		if err != nil {
			return out, err
		}
		out.DeviceOrders = append(out.DeviceOrders, shown)
	}
	return out, nil
}
