package locker

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// blockReasons are those of compartments that a courier had blocked at the cabinet.
var blockReasons = []string{wire.BlockOccupied, wire.BlockDirty, wire.BlockBroken}

// compartmentBlocked takes that a courier has had a compartment blocked at the cabinet, once for
// each door of an opening: it is out of use until staff unblock it. Packages that were to come
// there are given another compartment. One that the cloud knows another delivery's parcel in
// stays its own, and the comparison with the cabinet's status lifts the block there.
func (w reports) compartmentBlocked(r Occurrence, b wire.CompartmentBlocked) (string, error) {
	if b.BlockID == "" || len(b.BlockID) > 40 || !slices.Contains(blockReasons, b.Reason) {
		return badBody, nil
	}
	o, d, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	at := slices.IndexFunc(o.Doors, func(x cloud.OpeningDoor) bool { return x.Door == b.Door })
	c, err := w.cell(b.Door)
	if err != nil || c == nil || at < 0 || d == nil {
		return foreign, err
	}
	if o.Doors[at].BlockID != "" {
		return "", nil // applied, under an earlier epoch
	}
	o.Doors[at].BlockID, o.Doors[at].Error = b.BlockID, b.Reason
	w.touch(o)
	detail, err := json.Marshal(map[string]string{"reason": b.Reason, "opening_id": o.ID, "block_id": b.BlockID, "by": b.Who})
	if err != nil {
		return "", err
	}
	w.audit(r, "compartment_blocked", strconv.FormatInt(int64(c.GridID), 10), string(detail))
	if c.State == cloud.GridBlocked || c.State == cloud.GridOccupied && c.DeliveryID != d.ID {
		return "", nil
	}
	return "", w.blockUnusable(r, d, c, b.Reason)
}

// blockUnusable takes a compartment out of use in which a delivery's courier could leave nothing.
func (w reports) blockUnusable(r Occurrence, d *cloud.Delivery, c *cloud.Compartment, reason string) error {
	other := cloud.DeliveryID(0)
	if c.DeliveryID != d.ID {
		other = c.DeliveryID
	}
	inside, err := comparison(w).inside(d, c)
	if err != nil {
		return err
	}
	c.State, c.BlockReason = cloud.GridBlocked, reason
	if !inside { // else it is known again by its packages once it is unblocked
		c.DeliveryID = 0
	}
	w.touch(c)
	if d.Status == cloud.DeliveryCreated || d.Status == cloud.DeliveryDoorsOpened {
		if err := w.moveAway(d, c); err != nil {
			return err
		}
	}
	if other != 0 {
		if err := w.displace(other, c); err != nil {
			return err
		}
	}
	if err := w.keepBlocked(r.OccurredAt); err != nil {
		return err
	}
	return w.overtakeUnblock(c)
}

// overtakeUnblock blocks a compartment at the cabinet too while an order to unblock it is on its
// way there: it was given without knowledge of this block, and the newer order counts.
func (w reports) overtakeUnblock(c *cloud.Compartment) error {
	orders, err := w.v.OpenCommands(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range orders {
		x, err := read(w.commands, row.ID, func() (cloud.Command, error) { return row, nil })
		if err != nil {
			return err
		}
		if x.Kind != wire.CmdUnblock || x.Versions[c.Door] == 0 || x.State.Ended() || x.Expired(w.received) {
			continue
		}
		_, err = w.send("", wire.CmdBlock, wire.DoorReason{Door: c.Door, Reason: c.BlockReason}, []uint{c.Door}, longCommandLife)
		return err
	}
	return nil
}

// keepBlocked keeps the device's exception with all compartments that couriers had blocked, and
// closes it with the last of them.
func (w *handling) keepBlocked(at time.Time) error {
	return keepDoors(w, cloud.DevCompartmentBlocked, at, func(c *cloud.Compartment) string {
		if c.State != cloud.GridBlocked || !slices.Contains(blockReasons, c.BlockReason) {
			return ""
		}
		return cloud.BlockedDoor(c.Name(), c.BlockReason)
	})
}

// newestFault is the device's exception of a type as this decision has left it, the zero one
// where none is known. Its detail holds what those before it were about.
func newestFault(w *handling, typ string) (cloud.DeviceException, error) {
	known, err := w.v.DeviceExceptions(w.device.ID)
	if err != nil {
		return cloud.DeviceException{}, err
	}
	for _, list := range [][]cloud.DeviceException{w.ch.DeviceFaults, known} {
		for _, x := range slices.Backward(list) {
			if x.Type == typ {
				return x, nil
			}
		}
	}
	return cloud.DeviceException{}, nil
}

// keepDoors keeps a device's exception of a type with what is said of each of its doors, "" for
// nothing, and closes it where nothing is said of any.
func keepDoors(w *handling, typ string, at time.Time, say func(*cloud.Compartment) string) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	f := cloud.DeviceException{DeviceID: w.device.ID, Type: typ, ClosedAt: at}
	var doors []string
	for _, c := range cells {
		if text := say(c); text != "" {
			doors = append(doors, text)
		}
	}
	if len(doors) > 0 {
		f.Detail, f.OpenedAt, f.SeenAt, f.ClosedAt = wire.CleanText(strings.Join(doors, "; ")), at, at, time.Time{}
	}
	w.ch.DeviceFaults = append(w.ch.DeviceFaults, f)
	return nil
}
