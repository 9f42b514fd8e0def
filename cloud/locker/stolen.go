package locker

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// StolenInput reports a cabinet as stolen.
type StolenInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Reason string         `json:"reason" required:"true" max:"255" doc:"What happened, such as the number of the police report"`
}

// ReportStolen cuts off a cabinet of the caller's business: its secret and public
// key are dead, its session counts for nothing any more, and its commands and codes
// have ended. Deliveries that were on their way to it fail; parcels inside are
// exceptions of the type item_missing. Errors: DEVICE_NOT_FOUND, DEVICE_DISABLED.
func (s staff) ReportStolen(ctx context.Context, c cloud.Caller, in StolenInput) (DeviceOutput, error) {
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := owned(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		if device.Disabled {
			return nil, cloud.E(cloud.Conflict, "DEVICE_DISABLED")
		}
		w := s.Begin(v, device, now)
		if err := w.stolen(c, in.Reason); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	if err != nil {
		return DeviceOutput{}, err
	}
	return s.FindDevice(ctx, c, in.Device)
}

func (w *Work) stolen(c cloud.Caller, reason string) error {
	w.device.Disabled = true
	if err := w.auditStaff(c, "cabinet_stolen", w.device.Code, map[string]string{"reason": reason}); err != nil {
		return err
	}
	w.ch.DeviceFaults = append(w.ch.DeviceFaults, cloud.DeviceException{DeviceID: w.device.ID, Type: cloud.DevReportedStolen, Detail: reason, OpenedAt: w.received, SeenAt: w.received})
	if err := w.cutOff(cloud.DevReportedStolen); err != nil {
		return err
	}
	if err := w.renewStaffCodes(); err != nil {
		return err
	}
	return w.loseDeliveries("the cabinet was reported stolen")
}

// cutOff ends every way in of the hardware: its secret and public key, its session,
// and its commands, for a reason. Openings that run there end unverified.
func (w *Work) cutOff(reason string) error {
	w.device.CutOffAt = w.received
	w.device.SecretMAC, w.device.UpKey, w.listed = nil, nil, true
	if err := w.endSession(); err != nil {
		return err
	}
	if err := w.endCommands(reason); err != nil {
		return err
	}
	return w.StoreLost(w.received)
}

// loseDeliveries ends what the cabinet has of every delivery.
func (w *Work) loseDeliveries(why string) error {
	deliveries, err := w.listedDeliveries()
	if err != nil {
		return err
	}
	for _, d := range deliveries {
		if err := w.loseDelivery(d, why); err != nil {
			return err
		}
	}
	return nil
}

// endCommands ends the commands that the cabinet has not taken, and openings that
// waited for them.
func (w requests) endCommands(reason string) error {
	commands, err := w.v.OpenCommands(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range commands {
		cmd, err := read(w.commands, row.ID, func() (cloud.Command, error) { return row, nil })
		if err != nil {
			return err
		}
		cmd.State, cmd.Reason, cmd.EndedAt = cloud.CommandInterrupted, reason, w.received
		w.touch(cmd)
	}
	openings, err := w.v.RunningOpenings(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range openings {
		o, err := read(w.openings, row.ID, func() (cloud.Opening, error) { return row, nil })
		if err != nil {
			return err
		}
		if o.State == cloud.OpeningRequested {
			o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, wire.EndCancelled, w.received
			w.touch(o)
		}
	}
	return nil
}

// listedDeliveries are those with a code on the cabinet's list, or a compartment,
// each once.
func (w requests) listedDeliveries() (out []*cloud.Delivery, err error) {
	rows, err := w.v.CodeRows(w.device.ID, 0, maxLiveCodes)
	if err != nil {
		return nil, err
	}
	cells, err := w.allCells()
	if err != nil {
		return nil, err
	}
	seen := map[cloud.DeliveryID]bool{0: true}
	add := func(id cloud.DeliveryID) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		d, err := w.delivery(id)
		if d != nil {
			out = append(out, d)
		}
		return err
	}
	for _, r := range rows {
		if err := add(r.DeliveryID); err != nil {
			return nil, err
		}
	}
	for _, c := range cells {
		if err := add(c.DeliveryID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loseDelivery ends what a cabinet that is gone has of a delivery: its codes die, one
// that was to come fails, and staff look for parcels inside.
func (w requests) loseDelivery(d *cloud.Delivery, why string) error {
	r := w.stated(wire.KindOpeningEnded)
	if d.Status == cloud.DeliveryCreated {
		if err := w.releaseCells(d); err != nil {
			return err
		}
		d.FailureCode = "DEVICE_OFFLINE"
		return w.fail(r, nil, d)
	}
	if err := w.revoke(d, deliveryKinds...); err != nil {
		return err
	}
	d.PickupCodeActive = false
	w.touch(d)
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	for _, cell := range cells {
		if cell.DeliveryID != d.ID {
			continue
		}
		if err := w.raise(r, "stolen:"+d.Number+":"+cell.GridCode, wire.ExItemMissing, wire.SeverityHigh, d, cell.Door, why); err != nil {
			return err
		}
	}
	return nil
}
