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
	GridID       cloud.GridID `json:"grid_id"`
	GridCode     string       `json:"grid_code"`
	DoorName     string       `json:"door_name" doc:"As on the door: pickup_locker_code, or grid_code where there is none"`
	ShelfCode    string       `json:"shelf_code"`
	Door         uint         `json:"compartment_number"`
	PickupNumber *int         `json:"pickup_locker_number"`
	PickupLabel  *string      `json:"pickup_locker_code"`
	Column       int          `json:"column"`
	Row          int          `json:"row"`
	Size         string       `json:"size"`
	Inner        *cloud.Inner `json:"inner" doc:"Measures inside; null while they are not known"`
	// PickupEnabled is false for a screen, a battery or a door for staff only.
	PickupEnabled bool              `json:"pickup_enabled"`
	DoorStatus    string            `json:"door_status"`
	Occupied      *bool             `json:"occupied"`
	State         string            `json:"state"`
	BlockReason   *string           `json:"block_reason"`
	DeliveryID    *cloud.DeliveryID `json:"current_delivery_id"`
	// Mismatch is set while cabinet and cloud disagree about what lies inside.
	Mismatch *MismatchBody `json:"contents_mismatch"`
}

// MismatchBody is how the views of a compartment differ, each a delivery number,
// null for nothing inside. OutOfUse ends when staff put the compartment back into
// use.
type MismatchBody struct {
	Cabinet  *string `json:"cabinet"`
	Cloud    *string `json:"cloud"`
	OutOfUse bool    `json:"out_of_use"`
}

// DeviceExceptionBody is an open fault of a device's link or behaviour.
type DeviceExceptionBody struct {
	Type     string  `json:"type"`
	Detail   string  `json:"detail"`
	Count    int64   `json:"count"`
	OpenedAt *string `json:"opened_at"`
	SeenAt   *string `json:"seen_at"`
}

// GridOutput shows one compartment.
type GridOutput struct {
	Result bool     `json:"result"`
	Grid   GridBody `json:"grid"`
}

func gridBody(c cloud.Compartment) GridBody {
	var m *MismatchBody
	if c.Dispute != nil {
		m = &MismatchBody{Cabinet: cloud.OrNull(c.Dispute.Cabinet), Cloud: cloud.OrNull(c.Dispute.Cloud), OutOfUse: c.OutOfUse()}
	}
	return GridBody{Mismatch: m, GridID: c.GridID, GridCode: c.GridCode, DoorName: c.Name(), ShelfCode: c.ShelfCode, Door: c.Door, PickupNumber: cloud.OrNull(c.PickupNumber), PickupLabel: cloud.OrNull(c.Label),
		Column: c.Column, Row: c.Row, Size: c.Size, Inner: cloud.OrNull(c.Inner), PickupEnabled: c.PickupEnabled, DoorStatus: c.DoorStatus, Occupied: c.Occupied, State: c.State, BlockReason: cloud.OrNull(c.BlockReason), DeliveryID: cloud.OrNull(c.DeliveryID)}
}

// owned finds a device of the caller's business that its staff look after: mock cabinets
// are their providers'.
func owned(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	d, err := ours(v, c, id)
	if err == nil && d.Protocol == cloud.ProtocolMock {
		return d, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
	}
	return d, err
}

// withDoors is owned, for operations about doors: a warehouse post has none. Errors:
// DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS.
func withDoors(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	d, err := owned(v, c, id)
	if err == nil && d.IsPost() {
		return d, errNoDoors()
	}
	return d, err
}

// errNoDoors refuses an operation about doors of a warehouse post.
func errNoDoors() error { return cloud.E(cloud.Conflict, "DEVICE_HAS_NO_DOORS") }

// ours finds a device of the caller's business.
func ours(v cloud.View, c cloud.Caller, id cloud.DeviceID) (cloud.Device, error) {
	d, err := v.Device(id)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && d.BusinessID != c.Account.BusinessID {
		return d, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
	}
	return d, err
}

// UnblockInput puts a compartment back into use.
type UnblockInput struct {
	Device cloud.DeviceID `path:"id" json:"-"`
	Grid   cloud.GridID   `path:"grid_id" json:"-"`
	Reason string         `json:"reason" max:"255"`
}

// atCompartment changes one compartment of a cabinet of the caller's business, by an action
// that may be called again. Errors: DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND, and
// those of the action.
func (s staff) atCompartment(ctx context.Context, c cloud.Caller, cabinet cloud.DeviceID, grid cloud.GridID, change func(*Work, *cloud.Compartment) error) error {
	now := time.Now().UTC()
	return s.cfg.Store.Decide(ctx, cabinet, func(v cloud.View) (*cloud.Changes, error) {
		device, err := withDoors(v, c, cabinet)
		if err != nil {
			return nil, err
		}
		w := s.Begin(v, device, now)
		cells, err := w.allCells()
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridID == grid })
		if at < 0 {
			return nil, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
		}
		if err := change(w, cells[at]); err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		return ch, w.Finish(ch)
	})
}

// Unblock puts a blocked compartment back into use, in the cloud at once and at
// the cabinet with a command. One that is out of use because of a difference
// about its contents is in use again for as long as the views stay; where only
// the cabinet holds a delivery there, a command clears it. Any other stays as it
// is. Errors:
// DEVICE_NOT_FOUND, DEVICE_HAS_NO_DOORS, GRID_NOT_FOUND, VALIDATION_FAILED.
func (s staff) Unblock(ctx context.Context, c cloud.Caller, in UnblockInput) (out GridOutput, err error) {
	err = s.atCompartment(ctx, c, in.Device, in.Grid, func(w *Work, cell *cloud.Compartment) error {
		if err := w.unblock(c, cell, in.Reason); err != nil {
			return err
		}
		out = GridOutput{Result: true, Grid: gridBody(*cell)}
		return nil
	})
	return out, err
}

func (w requests) unblock(c cloud.Caller, cell *cloud.Compartment, reason string) error {
	blocked, disputed := cell.State == cloud.GridBlocked, cell.OutOfUse()
	if !blocked && !disputed {
		return nil
	}
	w.touch(cell)
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: c.Account.BusinessID, At: w.received, Actor: actor(c),
		Action: "grid_unblocked", Target: strconv.FormatInt(int64(cell.GridID), 10)})
	if disputed {
		if err := w.acceptViews(cell, reason); err != nil {
			return err
		}
	}
	if !blocked {
		return nil
	}
	courier := slices.Contains(blockReasons, cell.BlockReason)
	cell.BlockReason = ""
	var err error
	if cell.State, err = w.use(cell); err != nil {
		return err
	}
	if cell.State == cloud.GridFree {
		cell.DeliveryID = 0
	}
	if courier {
		if err := w.keepBlocked(w.received); err != nil {
			return err
		}
	}
	_, err = w.send("", wire.CmdUnblock, wire.DoorReason{Door: cell.Door, Reason: reason}, []uint{cell.Door}, longCommandLife)
	return err
}

// use is the state of a compartment that is not blocked, by the packages of its
// delivery: one that waits there fills it, one that is to come there reserves it.
func (w requests) use(cell *cloud.Compartment) (state string, err error) {
	if cell.DeliveryID == 0 {
		return cloud.GridFree, nil
	}
	d, err := w.delivery(cell.DeliveryID)
	if err != nil {
		return "", err
	}
	state = cloud.GridFree
	for _, p := range d.Packages {
		switch {
		case p.GridID != cell.GridID || p.Status == cloud.PackageFailed || p.Status == cloud.PackagePickedUp:
		case p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting:
			return cloud.GridOccupied, nil
		default:
			state = cloud.GridReserved
		}
	}
	return state, nil
}

// acceptViews ends a difference about a compartment's contents by staff's word.
func (w requests) acceptViews(cell *cloud.Compartment, reason string) error {
	seen := *cell.Dispute
	seen.Accepted = true
	if seen.Cabinet != "" && seen.Cloud == "" {
		cmd, err := w.send("", wire.CmdClear, wire.DoorReason{Door: cell.Door, Reason: reason, DeliveryRef: seen.Cabinet}, []uint{cell.Door}, longCommandLife)
		if err != nil {
			return err
		}
		seen.CommandID = cmd.ID
	}
	cell.Dispute = &seen
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	w.keepMismatch(cells, false, true, w.received)
	return nil
}
