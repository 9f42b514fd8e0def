package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// DeviceOrderView is a device order as staff see it. No code is in it.
type DeviceOrderView struct {
	DeviceOrderBody
	DoorName       string            `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	DeliveryID     *cloud.DeliveryID `json:"delivery_id"`
	TrackingNumber string            `json:"tracking_number"`
}

// DeviceOrderEvent is a moment of a device order.
type DeviceOrderEvent struct {
	Type       string  `json:"type" doc:"stored, overdue, picked_up, removed, exception_opened or exception_closed: the event of webhooks without its family"`
	OccurredAt *string `json:"occurred_at"`
}

// DeviceOrderDetail is a device order with its moments and exceptions.
type DeviceOrderDetail struct {
	DeviceOrderView
	Events     []DeviceOrderEvent     `json:"events" doc:"Its moments, oldest first"`
	Exceptions []CabinetExceptionBody `json:"exceptions" doc:"Oldest first"`
}

// DeviceOrdersInput asks for a part of the registry.
type DeviceOrdersInput struct {
	check.Keyset
	Status    string         `query:"status" enum:"unverified,stored,overdue,picked_up,removed"`
	Kind      string         `query:"kind" enum:"locker_delivery,customer_dropoff,return_dropoff" doc:"customer_dropoff and return_dropoff: brought by its sender for a courier to collect"`
	DeviceID  cloud.DeviceID `query:"device_id" min:"1"`
	Overdue   *bool          `query:"overdue" doc:"true: those that were not collected in time and are still inside"`
	Reference string         `query:"reference_number" max:"64" doc:"Of the delivery, as its partner gave it"`
}

// DeviceOrdersOutput lists device orders.
type DeviceOrdersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	DeviceOrders []DeviceOrderView `json:"device_orders"`
}

// ListDeviceOrders lists what rests, and rested, in the cabinets of the caller's business,
// newest first.
func (s registry) ListDeviceOrders(ctx context.Context, c cloud.Caller, in DeviceOrdersInput) (out DeviceOrdersOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	f := cloud.DeviceOrderFilter{BusinessID: c.Account.BusinessID, DeviceID: in.DeviceID, Status: in.Status, Kind: in.Kind, Reference: in.Reference, Live: true, Page: page}
	if in.Overdue != nil && *in.Overdue {
		if f.Status = "overdue"; in.Status != "" && in.Status != f.Status {
			f.Status = "-" // none is both
		}
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		biz, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return err
		}
		list, listed, err := v.Registry(f)
		if err != nil {
			return err
		}
		out = DeviceOrdersOutput{Result: true, PageOutput: in.Output(in, listed), DeviceOrders: []DeviceOrderView{}}
		v = newMemo(v, cloud.Device{})
		for _, o := range list {
			shown, err := deviceOrderView(v, o, biz.Location())
			if err != nil {
				return err
			}
			out.DeviceOrders = append(out.DeviceOrders, shown)
		}
		return nil
	})
	return out, err
}

// deviceOrderView shows a device order with its cabinet, door and order as they are now.
func deviceOrderView(v cloud.View, o cloud.DeviceOrder, l *time.Location) (out DeviceOrderView, err error) {
	device, err := v.Device(o.DeviceID)
	if err != nil {
		return out, err
	}
	door, err := doorName(v, o.DeviceID, o.GridCode)
	if err != nil {
		return out, err
	}
	var d cloud.Delivery
	var parcel cloud.Order
	if o.DeliveryID != 0 {
		d, err = v.Delivery(o.DeliveryID)
		if err == nil && d.OrderID() != 0 {
			parcel, err = v.Order(d.BusinessID, d.OrderID())
		}
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return out, err
		}
	}
	n := registryNews{order: &o}
	if d.DepositedAt.Equal(o.StoredAt) {
		n.earliest, n.latest = d.DepositedEarliest, d.DepositedLatest
	}
	return DeviceOrderView{*deviceOrderBody(device, n, parcel, l), door, cloud.OrNull(o.DeliveryID), o.Tracking}, nil
}

// doorName is the name of a compartment, its grid code where there is none of that any more.
func doorName(v cloud.View, d cloud.DeviceID, grid string) (string, error) {
	cells, err := v.Compartments(d)
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(cells, func(c cloud.Compartment) bool { return c.GridCode == grid }); i >= 0 {
		return cells[i].Name(), nil
	}
	return grid, nil
}

// ByDeviceOrder names a device order.
type ByDeviceOrder struct {
	ID cloud.DeviceOrderID `path:"id"`
}

// DeviceOrderOutput shows a device order.
type DeviceOrderOutput struct {
	Result      bool              `json:"result"`
	DeviceOrder DeviceOrderDetail `json:"device_order"`
}

// FindDeviceOrder shows a device order of the caller's business with what became of it. Error:
// DEVICE_ORDER_NOT_FOUND.
func (s registry) FindDeviceOrder(ctx context.Context, c cloud.Caller, in ByDeviceOrder) (out DeviceOrderOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		o, err := deviceOrder(v, c, in.ID)
		if err != nil {
			return err
		}
		out, err = deviceOrderOutput(v, o)
		return err
	})
	return out, err
}

func deviceOrderOutput(v cloud.View, o cloud.DeviceOrder) (out DeviceOrderOutput, err error) {
	biz, err := v.Business(o.BusinessID)
	if err != nil {
		return out, err
	}
	l := biz.Location()
	out.Result, out.DeviceOrder.Events, out.DeviceOrder.Exceptions = true, []DeviceOrderEvent{}, []CabinetExceptionBody{}
	if out.DeviceOrder.DeviceOrderView, err = deviceOrderView(v, o, l); err != nil {
		return out, err
	}
	list, err := v.DeliveryExceptions(o.DeliveryID)
	if err != nil {
		return out, err
	}
	type moment struct {
		event string
		at    time.Time
	}
	ended := EventRemoved
	if o.Status == "picked_up" {
		ended = EventCollected
	}
	moments := []moment{{EventStored, o.StoredAt}, {EventOverdue, o.OverdueAt}, {ended, o.EndedAt}}
	for _, e := range list {
		if e.DeviceOrderID != o.ID && e.Type != exOverdue { // that one is about all of the delivery
			continue
		}
		shown, err := exceptionBody(v, e, l)
		if err != nil {
			return out, err
		}
		out.DeviceOrder.Exceptions = append(out.DeviceOrder.Exceptions, shown)
		moments = append(moments, moment{EventExceptionOpened, e.OpenedAt}, moment{EventExceptionClosed, e.ClosedAt})
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range moments {
		if !m.at.IsZero() {
			out.DeviceOrder.Events = append(out.DeviceOrder.Events, DeviceOrderEvent{strings.TrimPrefix(m.event, "device_order."), cloud.Stamp(m.at, l)})
		}
	}
	return out, nil
}

// deviceOrder finds a device order of the caller's business in a cabinet that is its own.
// Error: DEVICE_ORDER_NOT_FOUND.
func deviceOrder(v cloud.View, c cloud.Caller, id cloud.DeviceOrderID) (cloud.DeviceOrder, error) {
	o, err := v.DeviceOrder(c.Account.BusinessID, id)
	return o, atOwnCabinet(v, o.DeviceID, err, "DEVICE_ORDER_NOT_FOUND")
}

// atOwnCabinet passes on what was found at a cabinet of the caller's business. What was not
// found, or stands at a mock cabinet, is missing.
func atOwnCabinet(v cloud.View, id cloud.DeviceID, err error, missing string) error {
	var device cloud.Device
	if err == nil {
		device, err = v.Device(id)
	}
	if errors.Is(err, cloud.ErrNotFound) || err == nil && device.Protocol == cloud.ProtocolMock {
		return cloud.E(cloud.NotFound, missing)
	}
	return err
}

// change runs one decision about a device order of the caller's business and its delivery.
// fn gets the row as the decision changes it. Errors: DEVICE_ORDER_NOT_FOUND and those of fn.
func (s registry) change(ctx context.Context, c cloud.Caller, id cloud.DeviceOrderID, fn func(w *Work, o *cloud.DeviceOrder, d *cloud.Delivery) error) (out ChangedOrderOutput, err error) {
	var o cloud.DeviceOrder
	err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		o, err = deviceOrder(v, c, id)
		return err
	})
	if err != nil {
		return out, err
	}
	err = s.decideOn(ctx, o.DeviceID, o.DeliveryID, time.Now().UTC(), func(w *Work, d *cloud.Delivery) error {
		rows, err := w.deviceOrders(d.ID)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(rows, func(x *cloud.DeviceOrder) bool { return x.ID == id })
		if at < 0 {
			return cloud.E(cloud.NotFound, "DEVICE_ORDER_NOT_FOUND")
		}
		if err := fn(w, rows[at], d); err != nil {
			return err
		}
		biz, err := w.v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		shown, err := deviceOrderView(w.v, *rows[at], biz.Location())
		out = ChangedOrderOutput{Result: err == nil, DeviceOrder: shown}
		if w.ch.Answer == nil {
			w.ch.Answer = out
		}
		return err
	})
	return out, err
}

// ChangedOrderOutput shows a device order after a change.
type ChangedOrderOutput struct {
	Result      bool            `json:"result"`
	DeviceOrder DeviceOrderView `json:"device_order"`
}

// RemoveInput says why staff have taken a package out of its compartment.
type RemoveInput struct {
	ID     cloud.DeviceOrderID `path:"id" json:"-"`
	Reason string              `json:"removal_reason" required:"true" enum:"overdue_return,handover,relay,anomaly,recovery,pending_area,deleted,destroyed" doc:"overdue_return: returned after the time to collect; handover: given to its recipient by hand; relay: moved to another cabinet; anomaly: cleared after an exception; recovery: the record was repaired; pending_area: moved to a waiting shelf; deleted: the record was deleted; destroyed: disposed of"`
	Note   string              `json:"note" max:"255" doc:"The audit trail keeps it with your name"`
}

// RemoveDeviceOrder ends a device order whose package staff have taken out. Given to its
// recipient or returned, its delivery is picked up by staff once nothing is left of it; with
// any other reason it has failed. Codes of a delivery of which nothing is left die, and the
// cabinet is ordered to forget what a compartment held that is empty by now. Errors:
// DEVICE_ORDER_NOT_FOUND, DEVICE_ORDER_STATE_CONFLICT (it has ended, nothing verifies that it
// was ever inside and the reason is another than anomaly, recovery and deleted, or a sensor sees
// something inside), DOOR_OPEN, DELIVERY_STATE_CONFLICT (an opening runs on the door),
// DEVICE_DISABLED. Source: lockers-devices 8.
func (s registry) RemoveDeviceOrder(ctx context.Context, c cloud.Caller, in RemoveInput) (ChangedOrderOutput, error) {
	return s.change(ctx, c, in.ID, func(w *Work, o *cloud.DeviceOrder, d *cloud.Delivery) error {
		if err := (clearing{w.requests, removal{reason: in.Reason}}).remove(o, d, cmp.Or(in.Note, in.Reason)); err != nil {
			return err
		}
		return w.auditStaff(c, "device_order_removed", fmt.Sprint("device_order:", o.ID), map[string]string{"removal_reason": in.Reason, "note": in.Note})
	})
}

// stays is the refusal of a change of a device order as it is.
func stays(o *cloud.DeviceOrder, more map[string]any) error {
	details := map[string]any{"status": o.Status}
	for k, v := range more {
		details[k] = v
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DEVICE_ORDER_STATE_CONFLICT", Details: details}
}

// remove takes the package of a device order out. What else lies in its compartment stays.
func (w clearing) remove(o *cloud.DeviceOrder, d *cloud.Delivery, note string) error {
	if !o.EndedAt.IsZero() {
		return stays(o, nil)
	}
	if o.IsUnverified() && !slices.Contains(ofUnverified, w.reason) {
		return stays(o, map[string]any{"removal_reasons": ofUnverified})
	}
	cell, err := w.cellAt(o.GridCode)
	if err != nil {
		return err
	}
	if err := w.mayTakeOut(cell); err != nil {
		return err
	}
	return w.removeRows([]*cloud.DeviceOrder{o}, d, cell, note)
}

// ofUnverified are the reasons with which a package is removed that was never verified.
var ofUnverified = []string{"anomaly", "recovery", "deleted"}

// mayTakeOut refuses what staff cannot have done: nothing is taken out while an opening runs on
// the door, or a connected cabinet reports it as open. Errors: DEVICE_DISABLED,
// DELIVERY_STATE_CONFLICT, DOOR_OPEN.
func (w clearing) mayTakeOut(cell *cloud.Compartment) error {
	if err := isShut(w.requests, cell); err != nil {
		return err
	}
	return w.mayClear(cell)
}

// isShut refuses a compartment whose door a connected cabinet reports as open. Error: DOOR_OPEN.
func isShut(w requests, cell *cloud.Compartment) error {
	if cell.DoorStatus != "open" || w.online() != nil {
		return nil
	}
	return &cloud.Error{Kind: cloud.Conflict, Code: "DOOR_OPEN", Args: []any{cell.Name()}, Details: map[string]any{"grid_code": cell.GridCode, "door_name": cell.Name()}}
}

// removeRows takes packages of a delivery out of one compartment, in the cloud at once. Where
// nothing else is believed to lie there, the cabinet is ordered to forget what did, and doubts
// about the compartment are resolved; else those that were about these packages alone. Error:
// DEVICE_ORDER_STATE_CONFLICT (a sensor sees something where nothing would be left).
func (w clearing) removeRows(rows []*cloud.DeviceOrder, d *cloud.Delivery, cell *cloud.Compartment, note string) error {
	w.only = []string{}
	for _, o := range rows {
		w.only = append(w.only, o.Tracking)
	}
	doubts, err := w.doubtsAt(cell)
	if err != nil {
		return err
	}
	others, err := w.othersIn(cell, rows, doubts)
	if err != nil {
		return err
	}
	if len(others) == 0 && cell.Occupied != nil && *cell.Occupied {
		return stays(rows[0], map[string]any{"occupied": true})
	}
	unverified := slices.ContainsFunc(rows, (*cloud.DeviceOrder).IsUnverified)
	if _, err := w.takeOut(d, cell); err != nil {
		return err
	}
	if len(others) == 0 {
		w.only = nil
		_, err = w.clear(cell, note)
		return err
	}
	var over []*cloud.Exception
	for _, e := range doubts {
		about := slices.ContainsFunc(rows, func(o *cloud.DeviceOrder) bool { return o.ID == e.DeviceOrderID })
		if e.Type == wire.ExDepositUnverified {
			about = unverified && !slices.ContainsFunc(others, (*cloud.DeviceOrder).IsUnverified)
		}
		if e.DeliveryID == d.ID && about || e.ID == w.doubt {
			over = append(over, e)
		}
	}
	w.resolveDoubts(over)
	return nil
}

// othersIn are the packages besides some rows that are believed to lie in a compartment.
func (w clearing) othersIn(cell *cloud.Compartment, but []*cloud.DeviceOrder, doubts []*cloud.Exception) (out []*cloud.DeviceOrder, err error) {
	believed, err := w.believedIn(cell, doubts)
	if err != nil {
		return nil, err
	}
	for _, d := range believed {
		rows, err := w.deviceOrders(d.ID)
		if err != nil {
			return nil, err
		}
		for _, x := range rows {
			if x.GridCode == cell.GridCode && x.EndedAt.IsZero() && !slices.Contains(but, x) {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// ExtendDeviceOrderInput gives the recipient more time.
type ExtendDeviceOrderInput struct {
	ID    cloud.DeviceOrderID `path:"id" json:"-"`
	Hours int                 `json:"hours" required:"true" min:"1" max:"168" doc:"From the time that was set, or from now when that has passed"`
}

// ExtendDeviceOrder moves the due time of a device order, and with it of all that belongs to
// its delivery. Errors: DEVICE_ORDER_NOT_FOUND, DEVICE_ORDER_STATE_CONFLICT (it does not wait to
// be collected).
func (s registry) ExtendDeviceOrder(ctx context.Context, c cloud.Caller, in ExtendDeviceOrderInput) (ChangedOrderOutput, error) {
	return s.change(ctx, c, in.ID, func(w *Work, o *cloud.DeviceOrder, d *cloud.Delivery) error {
		if !waits(*d) || o.IsUnverified() || o.StoredAt.IsZero() || !o.EndedAt.IsZero() {
			return stays(o, nil)
		}
		return w.extend(c, d, time.Duration(in.Hours)*time.Hour)
	})
}

// ResendDeviceOrderCodeInput asks for the pickup code of a device order to be sent again.
type ResendDeviceOrderCodeInput struct {
	ID      cloud.DeviceOrderID       `path:"id" json:"-"`
	Channel cloud.NotificationChannel `json:"channel" enum:"sms,email" doc:"By mail where the person who collects has an address, else by SMS, when absent"`
}

// ResendDeviceOrderCode sends the pickup code of a device order to the person who collects it
// once more. The answer has no code. Errors: DEVICE_ORDER_NOT_FOUND, DEVICE_ORDER_STATE_CONFLICT
// (no code opens its compartment), CHANNEL_NOT_CONFIGURED.
func (s registry) ResendDeviceOrderCode(ctx context.Context, c cloud.Caller, in ResendDeviceOrderCodeInput) (out ResendOutput, err error) {
	_, err = s.change(ctx, c, in.ID, func(w *Work, o *cloud.DeviceOrder, d *cloud.Delivery) error {
		if !waits(*d) || !d.PickupCodeActive || o.IsUnverified() || o.StoredAt.IsZero() || !o.EndedAt.IsZero() {
			return stays(o, nil)
		}
		channels := []cloud.NotificationChannel{cloud.ByEmail, cloud.BySMS}
		if in.Channel != "" {
			channels = []cloud.NotificationChannel{in.Channel}
		}
		var missed *cloud.Error
		for _, by := range channels {
			to, err := w.sendCode(d, cloud.NotifyParcelCode, by)
			if err != nil {
				return err
			}
			if to != "" {
				out = ResendOutput{Result: true, SentTo: maskAddress(to)}
				w.ch.Answer = out
				return w.auditStaff(c, "pickup_code_resent", d.Number, map[string]any{"channel": by})
			}
			if missed == nil || s.reaches(*d, by) { // what the person lacks, before what the deployment does
				missed = s.unreached(*d, by)
			}
		}
		return missed
	})
	return out, err
}
