package locker

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// GridBody is a compartment as staff see it.
type GridBody struct {
	GridID       cloud.GridID      `json:"grid_id"`
	GridCode     string            `json:"grid_code"`
	ShelfCode    string            `json:"shelf_code"`
	Door         uint              `json:"compartment_number"`
	PickupNumber *int              `json:"pickup_locker_number"`
	PickupLabel  *string           `json:"pickup_locker_code"`
	Column       int               `json:"column"`
	Row          int               `json:"row"`
	Size         string            `json:"size"`
	DoorStatus   string            `json:"door_status"`
	Occupied     *bool             `json:"occupied"`
	State        string            `json:"state"`
	BlockReason  *string           `json:"block_reason"`
	DeliveryID   *cloud.DeliveryID `json:"current_delivery_id"`
}

// DeviceBody is a device as staff see it.
type DeviceBody struct {
	DeviceID   cloud.DeviceID `json:"device_id"`
	DeviceCode string         `json:"device_code"`
	DeviceName string         `json:"device_name"`
	DeviceType string         `json:"device_type"`
	Status     string         `json:"status"` // online, offline, disabled
	LastSeenAt *string        `json:"last_seen_at"`
	Firmware   string         `json:"firmware"`
	Grids      []GridBody     `json:"grids"`
}

// DeviceOutput shows a device with its compartments.
type DeviceOutput struct {
	Result bool       `json:"result"`
	Device DeviceBody `json:"device"`
}

// GridOutput shows one compartment.
type GridOutput struct {
	Result bool     `json:"result"`
	Grid   GridBody `json:"grid"`
}

func gridBody(c cloud.Compartment) GridBody {
	return GridBody{GridID: c.GridID, GridCode: c.GridCode, ShelfCode: c.ShelfCode, Door: c.Door, PickupNumber: cloud.OrNull(c.PickupNumber), PickupLabel: cloud.OrNull(c.Label),
		Column: c.Column, Row: c.Row, Size: c.Size, DoorStatus: c.DoorStatus, Occupied: c.Occupied, State: c.State, BlockReason: cloud.OrNull(c.BlockReason), DeliveryID: cloud.OrNull(c.DeliveryID)}
}

// ours finds a device of the caller's business.
func ours(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	d, err := v.Device(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && d.BusinessID != c.Account.BusinessID {
		return d, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
	}
	return d, err
}

// FindDevice shows a device of the caller's business with its compartments.
// Error: DEVICE_NOT_FOUND.
func (s *Service) FindDevice(ctx context.Context, c cloud.Caller, id cloud.DeviceID) (out DeviceOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := ours(v, c, id)
		if err != nil {
			return err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return err
		}
		row, err := v.Session(id)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		cells, err := v.Compartments(id)
		if err != nil {
			return err
		}
		out = DeviceOutput{Result: true, Device: DeviceBody{DeviceID: d.ID, DeviceCode: d.Code, DeviceName: d.Name, DeviceType: d.Type, Status: "offline",
			LastSeenAt: cloud.Stamp(d.LastSeenAt, biz.Location()), Firmware: d.Firmware, Grids: []GridBody{}}}
		switch {
		case d.Disabled:
			out.Device.Status = "disabled"
		case row.Online:
			out.Device.Status = "online"
		}
		for _, cell := range cells {
			out.Device.Grids = append(out.Device.Grids, gridBody(cell))
		}
		return nil
	})
	return out, err
}

// UnblockInput puts a compartment back into use.
type UnblockInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Grid   cloud.GridID   `path:"grid_id" json:"-"`
	Reason string         `json:"reason"`
}

// Unblock puts a blocked compartment back into use, in the cloud at once and at
// the cabinet with a command. One that is not blocked stays as it is. Errors:
// DEVICE_NOT_FOUND, GRID_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Unblock(ctx context.Context, c cloud.Caller, in UnblockInput) (out GridOutput, err error) {
	if len(in.Reason) > 255 {
		f := newFields()
		f.add("reason", "The reason has at most 255 characters.")
		return out, f.Err()
	}
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, in.Device, func(v cloud.View) (*cloud.Changes, error) {
		device, err := ours(v, c, in.Device)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		cells, err := w.allCells()
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridID == in.Grid })
		if at < 0 {
			return nil, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		if err := w.unblock(c, cells[at], in.Reason); err != nil {
			return nil, err
		}
		out = GridOutput{Result: true, Grid: gridBody(*cells[at])}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
	return out, err
}

func (w *Work) unblock(c cloud.Caller, cell *cloud.Compartment, reason string) error {
	if cell.State != cloud.GridBlocked {
		return nil
	}
	cell.State, cell.BlockReason = cloud.GridFree, ""
	if cell.DeliveryID != 0 {
		cell.State = cloud.GridOccupied
	}
	w.touch(cell)
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: c.Account.BusinessID, At: w.received, Actor: "account:" + strconv.FormatInt(int64(c.Account.ID), 10),
		Action: "grid_unblocked", Target: strconv.FormatInt(int64(cell.GridID), 10)})
	_, err := w.send("", wire.CmdUnblock, wire.DoorReason{Door: cell.Door, Reason: reason}, nil, longCommandLife)
	return err
}
