package locker

import (
	"context"
	"errors"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// GapHardware is the reason of a gap for records that the former hardware of a
// cabinet may hold and will never send.
const GapHardware = "hardware_gone"

// ReplaceInput replaces the hardware of a cabinet.
type ReplaceInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Reason string         `json:"reason" required:"true" max:"255" doc:"Why, such as what is broken"`
}

// ReplaceHardware cuts off the hardware of a cabinet of the caller's business and
// waits for other hardware, which enrols with a token that is made from now on. What
// lies inside, deliveries on their way and their codes stay: the new hardware is
// given them, as after any loss of memory. The records that the old one had not sent are a gap.
// Errors: DEVICE_NOT_FOUND, DEVICE_DISABLED (retired, or reported as stolen).
func (s staff) ReplaceHardware(ctx context.Context, c cloud.Caller, in ReplaceInput) (DeviceOutput, error) {
	return s.changeDevice(ctx, c, in.Device, func(w *Work) error {
		if w.device.Disabled && (w.device.IsCutOff() || !w.device.RetiredAt.IsZero()) {
			return outOfService(w.device)
		}
		if err := w.auditStaff(c, "hardware_replaced", w.device.Code, map[string]string{"reason": in.Reason}); err != nil {
			return err
		}
		if err := w.cutOff("hardware_replaced"); err != nil {
			return err
		}
		if err := w.renewStaffCodes(); err != nil {
			return err
		}
		return w.closeEpoch()
	})
}

// RetireInput takes a cabinet out of use for good.
type RetireInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Reason string         `json:"reason" required:"true" max:"255"`
	Full   bool           `json:"leave_contents" doc:"true retires it although parcels lie inside: each becomes an exception, and its code opens nothing. Without it such a cabinet is refused."`
}

// Retire takes a cabinet of the caller's business out of use for good: its secret and
// key, session, commands and codes end, and no hardware enrols for it again.
// Deliveries that were on their way to it fail. Errors: DEVICE_NOT_FOUND,
// DEVICE_DISABLED (it is retired), CABINET_NOT_EMPTY.
func (s staff) Retire(ctx context.Context, c cloud.Caller, in RetireInput) (DeviceOutput, error) {
	return s.changeDevice(ctx, c, in.Device, func(w *Work) error {
		if !w.device.RetiredAt.IsZero() {
			return outOfService(w.device)
		}
		if !in.Full {
			if err := w.refuseFull(); err != nil {
				return err
			}
		}
		detail := map[string]any{"reason": in.Reason, "leave_contents": in.Full}
		if err := w.auditStaff(c, "cabinet_retired", w.device.Code, detail); err != nil {
			return err
		}
		w.device.Disabled, w.device.RetiredAt = true, w.received
		if err := w.cutOff("retired"); err != nil {
			return err
		}
		if err := w.renewStaffCodes(); err != nil {
			return err
		}
		if err := w.closeEpoch(); err != nil {
			return err
		}
		if err := w.loseDeliveries("the cabinet was retired with it inside"); err != nil {
			return err
		}
		for _, fault := range []string{cloud.DevReportedStolen, cloud.DevConfigRefused} {
			w.ch.DeviceFaults = append(w.ch.DeviceFaults, cloud.DeviceException{DeviceID: w.device.ID, Type: fault, ClosedAt: w.received})
		}
		return nil
	})
}

// refuseFull refuses a cabinet in which something lies, or may.
func (w requests) refuseFull() error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	busy, err := w.runningDoors("")
	if err != nil {
		return err
	}
	var used []InUse
	for _, cell := range cells {
		reason := ""
		if cell.State != cloud.GridReserved {
			reason = useOf(*cell)
		}
		if reason == "" && busy[cell.Door] != "" {
			reason = "an opening runs on it"
		}
		if reason != "" {
			used = append(used, InUse{cell.GridCode, cell.Name(), cell.Door, reason})
		}
	}
	if len(used) > 0 {
		return &cloud.Error{Kind: cloud.Conflict, Code: "CABINET_NOT_EMPTY", Details: check.Listed("grids", used)}
	}
	return nil
}

// closeEpoch closes the store of hardware that is gone. What it may hold beyond what
// was stored is a gap in each lane, of as many records as its newest status names.
func (w requests) closeEpoch() error {
	epoch, err := w.v.CurrentEpoch(w.device.ID)
	if errors.Is(err, cloud.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	epoch.Current, epoch.ClosedAt = false, w.received
	w.ch.Epochs = append(w.ch.Epochs, epoch)
	for l := range wire.Lanes {
		lane, err := w.v.Lane(w.device.ID, epoch.Epoch, wire.Lane(l))
		if errors.Is(err, cloud.ErrNotFound) {
			lane.Next, err = 1, nil
		}
		if err != nil {
			return err
		}
		gap := cloud.GapRange{DeviceID: w.device.ID, Epoch: epoch.Epoch, Lane: wire.Lane(l), First: lane.Next, Reason: GapHardware}
		if last := w.device.StatusEnds[l]; w.device.StatusEpoch == epoch.Epoch && last >= lane.Next {
			gap.Missing = last - lane.Next + 1
		}
		w.ch.Gaps = append(w.ch.Gaps, gap)
	}
	return nil
}
