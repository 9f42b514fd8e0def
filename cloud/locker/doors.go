package locker

import (
	"context"
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// DoorsOutput shows an opening's doors.
type DoorsOutput struct {
	Result  bool         `json:"result"`
	Opening *OpeningBody `json:"opening"`
	Session doorsSession `json:"session"`
	Doors   []doorState  `json:"doors"`
	Online  bool         `json:"online"`
}

type doorsSession struct {
	State  string  `json:"state"` // open, closed, timed_out
	EndsAt *string `json:"ends_at"`
}

type doorState struct {
	GridID     cloud.GridID `json:"grid_id"`
	Door       uint         `json:"compartment_number"`
	DoorStatus string       `json:"door_status"`
	Occupied   *bool        `json:"occupied"`
	ErrorCode  *string      `json:"error_code"`
}

// Doors shows the doors of a delivery's last opening as they are now. While
// the device is offline a session stays open with its end passed.
func (s partners) Doors(ctx context.Context, c cloud.Caller, key DeliveryKey) (out DoorsOutput, err error) {
	err = s.lookAt(ctx, c, key, func(v cloud.View, d cloud.Delivery, biz cloud.Business) error {
		row, err := v.Session(d.DeviceID)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			return err
		}
		out = DoorsOutput{Result: true, Online: row.Online, Session: doorsSession{State: "closed"}, Doors: []doorState{}}
		o, err := lastOpening(v, d)
		if err != nil || o == nil {
			return err
		}
		cells, err := cellsOf(v, d.DeviceID, *o)
		if err != nil {
			return err
		}
		out.Opening = openingBody(*o, cells, biz.Location())
		out.Session.EndsAt = cloud.Stamp(o.EndsAt, biz.Location())
		if !o.Ended() {
			out.Session.State = "open"
			if row.Online && time.Now().After(o.EndsAt) {
				out.Session.State = "timed_out"
			}
		}
		for i, od := range o.Doors {
			cell := cells[od.Door]
			out.Opening.Compartments[i].DoorStatus = cell.DoorStatus
			out.Doors = append(out.Doors, doorState{GridID: od.GridID, Door: od.Door, DoorStatus: cell.DoorStatus, Occupied: cell.Occupied, ErrorCode: cloud.OrNull(od.Error)})
		}
		return nil
	})
	return out, err
}
