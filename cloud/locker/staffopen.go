package locker

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// StaffOpenInput opens doors of a cabinet for the staff who look after it.
type StaffOpenInput struct {
	Device      cloud.DeviceID `path:"id" json:"-"`
	Grids       []cloud.GridID `json:"grid_ids" required:"true" max:"24" doc:"Compartments of this cabinet, 1 to 24"`
	Reason      string         `json:"reason" required:"true" max:"255" doc:"Why; the door history keeps it with your name"`
	Attended    *bool          `json:"attended" required:"true" doc:"true confirms that a person whom you trust stands at the cabinet. Doors are not opened without it: an open door cannot be closed from afar."`
	WaitSeconds *int           `json:"wait_seconds" min:"0" max:"20" doc:"How long to wait for the cabinet's answer; 10 when absent"`
}

// StaffContents is what the cloud believes lies behind a door that staff open.
type StaffContents struct {
	GridID     cloud.GridID      `json:"grid_id"`
	GridCode   string            `json:"grid_code"`
	State      string            `json:"state"`
	DeliveryID *cloud.DeliveryID `json:"current_delivery_id"`
}

// StaffOpenOutput shows an opening by staff. Pending is set while the outcome is
// not known.
type StaffOpenOutput struct {
	Result     bool            `json:"result"`
	Opening    *OpeningBody    `json:"opening"`
	Contents   []StaffContents `json:"contents" doc:"What lay behind the doors when they were asked for. Deliveries stay as they are: put back what is not yours to take, and close the door."`
	Reversible bool            `json:"reversible" doc:"Always false: an opened door stays open until a person at the cabinet closes it"`
	Pending    bool            `json:"-"`
}

// OpenGrids opens compartments of a cabinet of the caller's business, whatever lies
// inside, and waits for what the cabinet says. A parcel inside counts as inside
// until a record or staff say otherwise. Errors: DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS,
// GRID_NOT_FOUND, VALIDATION_FAILED, DEVICE_DISABLED, DEVICE_OFFLINE, DELIVERY_STATE_CONFLICT (no
// door could be opened), DEVICE_TIMEOUT.
func (s staff) OpenGrids(ctx context.Context, c cloud.Caller, in StaffOpenInput) (out StaffOpenOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	wait := defaultWait
	if in.WaitSeconds != nil {
		wait = *in.WaitSeconds
	}
	var cmd cloud.Command
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := withDoors(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		if cmd, out, err = w.openForStaff(c, in); err != nil {
			return nil, err
		}
		w.ch.Answer, w.ch.Unfinished = out, true
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	if err != nil || cloud.PreviewOf(ctx) != nil {
		return out, err
	}
	got, err := s.await(ctx, cmd, time.Duration(wait)*time.Second)
	if err != nil {
		return StaffOpenOutput{}, err
	}
	out.Opening, out.Pending = got.Opening, got.Pending
	return out, nil
}

func (in StaffOpenInput) check() error {
	f := newFields()
	if len(in.Grids) == 0 {
		f.Say("grid_ids", check.MessageRequired)
	}
	f.Agreed("attended", in.Attended)
	return f.Err()
}

func (w requests) openForStaff(c cloud.Caller, in StaffOpenInput) (cmd cloud.Command, out StaffOpenOutput, err error) {
	o, out, err := beginForStaff(w, c, in)
	if err != nil {
		return cmd, out, err
	}
	body := wire.OpenDoors{OpeningID: o.ID, Kind: o.Kind, Doors: doorsOf(*o), SessionSeconds: uint(w.s.cfg.Session / time.Second)}
	cmd, err = w.send(o.ID, wire.CmdOpenDoors, body, doorsOf(*o), commandLife)
	return cmd, out, err
}

// beginForStaff makes the opening that a command by staff begins.
func beginForStaff(w requests, c cloud.Caller, in StaffOpenInput) (o *cloud.Opening, out StaffOpenOutput, err error) {
	if w.device.Disabled {
		return nil, out, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	cells, err := w.allCells()
	if err != nil {
		return nil, out, err
	}
	o = w.newOpening(wire.OpenStaff, 0, employee(c), in.Reason)
	shown := map[uint]cloud.Compartment{}
	slices.Sort(in.Grids)
	for _, id := range slices.Compact(in.Grids) {
		at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridID == id })
		if at < 0 {
			return nil, out, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		cell := cells[at]
		o.Doors = append(o.Doors, cloud.OpeningDoor{Door: cell.Door, GridID: cell.GridID, Status: "unknown"})
		out.Contents = append(out.Contents, StaffContents{cell.GridID, cell.GridCode, cell.State, cloud.OrNull(cell.DeliveryID)})
		shown[cell.Door] = *cell
	}
	if err := w.online(); err != nil {
		return nil, out, err
	}
	biz, err := w.v.Business(w.device.BusinessID)
	if err != nil {
		return nil, out, err
	}
	w.openings[o.ID] = o
	w.touch(o)
	err = w.auditStaff(c, "doors_opened", w.device.Code, struct {
		OpeningID string         `json:"opening_id"`
		Grids     []cloud.GridID `json:"grid_ids"`
		Reason    string         `json:"reason"`
	}{o.ID, in.Grids, in.Reason})
	out.Result, out.Opening, out.Pending = true, openingBody(*o, shown, biz.Location()), true
	return o, out, err
}

// auditStaff keeps what a member of the staff did.
func (w *rows) auditStaff(c cloud.Caller, action, target string, detail any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return err
	}
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: w.device.BusinessID, At: w.received, Actor: actor(c), Action: action, Target: target, Detail: string(text)})
	return nil
}

// BlockInput takes a compartment out of use.
type BlockInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Grid   cloud.GridID   `path:"grid_id" json:"-"`
	Reason string         `json:"reason" required:"true" max:"120" doc:"What is wrong with it; shown to staff until it is unblocked"`
}

// Block takes an empty compartment out of use, in the cloud at once and at the
// cabinet with a command. One that is blocked already takes the new reason. One
// with a delivery inside, or on its way to it, is refused: its recipient could not
// collect. Errors: DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND, GRID_NOT_FREE.
func (s staff) Block(ctx context.Context, c cloud.Caller, in BlockInput) (out GridOutput, err error) {
	err = s.atCompartment(ctx, c, in.Device, in.Grid, func(w *Work, cell *cloud.Compartment) error {
		if err := w.block(c, cell, in.Reason); err != nil {
			return err
		}
		out = GridOutput{Result: true, Grid: gridBody(*cell)}
		return nil
	})
	return out, err
}

func (w requests) block(c cloud.Caller, cell *cloud.Compartment, reason string) error {
	if cell.DeliveryID != 0 && cell.State != cloud.GridBlocked || cell.State == cloud.GridReserved || cell.State == cloud.GridOccupied {
		return &cloud.Error{Kind: cloud.Conflict, Code: "GRID_NOT_FREE", Details: map[string]any{"state": cell.State}}
	}
	courier := slices.Contains(blockReasons, cell.BlockReason)
	cell.State, cell.BlockReason = cloud.GridBlocked, reason
	w.touch(cell)
	if courier {
		if err := w.keepBlocked(w.received); err != nil {
			return err
		}
	}
	err := w.auditStaff(c, "grid_blocked", strconv.FormatInt(int64(cell.GridID), 10), map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	_, err = w.send("", wire.CmdBlock, wire.DoorReason{Door: cell.Door, Reason: reason}, []uint{cell.Door}, longCommandLife)
	return err
}

// EndInput ends a delivery by word of staff.
type EndInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Reason   string      `json:"reason" required:"true" max:"255"`
}

// CancelDelivery ends a delivery before its deposit, as its partner would; with
// doors opened the cabinet has to answer first. Errors: DELIVERY_NOT_FOUND,
// DELIVERY_STATE_CONFLICT, DEVICE_OFFLINE, DEVICE_TIMEOUT.
func (s *Service) CancelDelivery(ctx context.Context, c cloud.Caller, in EndInput) (DeliveryOutput, error) {
	out, err := s.giveUp(ctx, c, in.Delivery, func(w *handling, d *cloud.Delivery) error {
		d.CancelReason, d.CancelledBy, d.FailureCode = in.Reason, string(wire.ByConsole), ""
		return w.auditStaff(c, "delivery_cancelled", d.Number, map[string]string{"reason": in.Reason})
	})
	return out.withoutCodes(), err
}

// ExpireDelivery moves a delivery's deadline to now: one that was not brought ends,
// one that waits for its recipient is overdue; the parcel stays and its code works.
// Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT (also while an opening runs).
func (s *Service) ExpireDelivery(ctx context.Context, c cloud.Caller, in EndInput) (out DeliveryOutput, err error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error {
		last, err := w.lastOpening(d)
		if err != nil {
			return err
		}
		switch {
		case last != nil && !last.Ended():
			return conflict(*d)
		case d.Status == cloud.DeliveryCreated:
			d.DeliverBefore = w.received
		case d.Status == cloud.DeliveryDelivered:
			d.DueAt = w.received
		default:
			return conflict(*d)
		}
		if err := w.auditStaff(c, "delivery_expired", d.Number, map[string]string{"reason": in.Reason}); err != nil {
			return err
		}
		return w.expireDelivery(d)
	})
	if err != nil {
		return out, err
	}
	out, err = s.show(ctx, id)
	return out.withoutCodes(), err
}

// withoutCodes is the answer as staff see it.
func (out DeliveryOutput) withoutCodes() DeliveryOutput {
	out.Delivery.DeliveryCode, out.Delivery.PickupCode = nil, nil
	return out
}
