package locker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// Compare compares what a cabinet says lies in its compartments with what is
// known of them. The status is the cabinet's complete present and every record
// that led to it is stored, so a difference is one of memory and not of time. A
// difference changes no delivery: the compartment is out of use for new ones and
// the device exception contents_mismatch names both views, until
//
//	the views agree                      it ends by itself
//	the cabinet's is provably old        a clear command brings it up to date
//	staff have looked (Unblock)          it is in use as long as the views stay
//
// Doors on which anything runs, or that a command on its way names, are compared
// another time.
func (w comparison) Compare(st *wire.Status, at time.Time) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	busy, err := w.busyDoors()
	if err != nil {
		return err
	}
	present := make(map[uint]wire.DoorStatus, len(st.Doors))
	for _, d := range st.Doors {
		present[d.Door] = d
	}
	seen, ended := false, false
	for _, c := range cells {
		d, ok := present[c.Door]
		if ok && d.OpeningID == "" && d.Version <= c.Version && !busy[c.Door] {
			differs, over, err := w.compareDoor(c, st.Contents[c.Door], d)
			if err != nil {
				return err
			}
			seen, ended = seen || differs, ended || over
			if !differs && st.Snapshot >= wire.SnapshotOfUse {
				if err := w.repeatUse(c, st.Blocked[c.Door], slices.Contains(st.Unconfirmed, c.Door), busy); err != nil {
					return err
				}
			}
		}
	}
	w.keepMismatch(cells, seen, ended, at)
	return nil
}

// DoorsFreed ends the fault of doors that had stayed shut and that stand open by a status of the
// cabinet, of which no record may say so.
func (w comparison) DoorsFreed(st *wire.Status, at time.Time) error {
	opened := map[uint]bool{}
	for _, d := range st.Doors {
		opened[d.Door] = d.State == wire.DoorOpen
	}
	return keepJammed(w.handling, at, opened)
}

// repeatUse tells the cabinet again what a command told it that never arrived: that a
// compartment is out of use or in use again, and that a deposit which it could not settle
// was confirmed.
func (w comparison) repeatUse(c *cloud.Compartment, blocked string, unconfirmed bool, busy map[uint]bool) error {
	// What the cloud alone keeps out of use is not told.
	ours := c.BlockReason == cloud.BlockRemoved || c.BlockReason == cloud.BlockWaits || c.BlockReason == wire.DoorOpenFailed
	var kind wire.CommandKind
	switch is := c.State == cloud.GridBlocked; {
	case is && blocked == "" && !ours:
		kind = wire.CmdBlock
	case !is && blocked != "":
		kind = wire.CmdUnblock
	case unconfirmed && c.DeliveryID != 0:
		return w.repeatConfirmation(c, busy)
	default:
		return nil
	}
	last, again, err := w.repeats(func(x cloud.Command) bool { return x.Kind == kind && x.Versions[c.Door] > 0 })
	if err != nil || !again {
		return err
	}
	// A lock that the cabinet gave up by its own rule is left to it, unless staff have put
	// it back into use and the cabinet has not obeyed.
	if blocked == wire.ReasonSuspect && (last == nil || last.State == cloud.CommandDone) {
		return nil
	}
	_, err = w.send("", kind, wire.DoorReason{Door: c.Door, Reason: c.BlockReason}, []uint{c.Door}, longCommandLife)
	return err
}

// answeredFor is how long an order that the cabinet has answered is not repeated, though its
// view stays another: what made it refuse, such as a full disk, takes a while to mend.
const answeredFor = time.Hour

// repeats gives the newest order of a kind, and whether it may be given again: at once where
// it expired or none is known, an hour after it was given where the cabinet has answered.
func (w comparison) repeats(is func(cloud.Command) bool) (last *cloud.Command, again bool, err error) {
	orders, err := w.v.RecentOrders(w.device.ID)
	if err != nil {
		return nil, false, err
	}
	at := slices.IndexFunc(orders, is)
	if at < 0 {
		return nil, true, nil
	}
	last, err = w.command(orders[at].ID)
	if err != nil || last == nil {
		return nil, false, err
	}
	return last, last.Expired(w.received) || last.State.Ended() && w.received.Sub(last.IssuedAt) >= answeredFor, nil
}

// repeatConfirmation tells the cabinet again of a delivery's packages that were confirmed by
// the partner or by staff: of all of them, as what such an order leaves out was not brought.
// Its doors are busy from then on.
func (w comparison) repeatConfirmation(c *cloud.Compartment, busy map[uint]bool) error {
	d, err := w.delivery(c.DeliveryID)
	if err != nil || d == nil || !d.ConfirmedBy.IsStated() {
		return err
	}
	// Doors may have been opened for other reasons since, or not have opened.
	o, err := w.newestOpening(d, func(o cloud.Opening) bool { return o.Kind.IsDeposit() && o.State == cloud.OpeningSettled })
	if err != nil || o == nil {
		return err
	}
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	inside, doors := map[uint][]string{}, doorsByGrid(cells)
	for _, p := range d.Packages {
		if door, ok := doors[p.GridID]; ok && p.Status == cloud.PackageInCompartment {
			inside[door] = append(inside[door], p.TrackingNumber)
		}
	}
	if len(inside[c.Door]) == 0 {
		return nil
	}
	_, again, err := w.repeats(func(x cloud.Command) bool { return x.Kind == wire.CmdCloseSession && x.OpeningID == o.ID })
	if err != nil || !again {
		return err
	}
	for door := range inside {
		busy[door] = true
	}
	_, err = w.send(o.ID, wire.CmdCloseSession, wire.CloseSession{OpeningID: o.ID, How: wire.CloseSettle, ConfirmedBy: d.ConfirmedBy, DeliveryRef: d.Number, Packages: inside},
		[]uint{c.Door}, longCommandLife)
	return err
}

// busyDoors are those on which an opening runs, or that a command on its way is about.
func (w comparison) busyDoors() (map[uint]bool, error) {
	out := map[uint]bool{}
	running, err := w.runningDoors("")
	if err != nil {
		return nil, err
	}
	for door := range running {
		out[door] = true
	}
	commands, err := w.v.OpenCommands(w.device.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range commands {
		if c.Expired(w.received) {
			continue
		}
		for door := range c.Versions {
			out[door] = true
		}
		if c.Kind != wire.CmdCloseSession || c.OpeningID == "" {
			continue
		}
		o, err := w.opening(c.OpeningID)
		if err != nil {
			return nil, err
		}
		for _, d := range o.Doors {
			out[d.Door] = true
		}
	}
	return out, nil
}

// compareDoor compares one compartment. It reports whether the views differ, and
// whether a dispute has ended.
func (w comparison) compareDoor(c *cloud.Compartment, cabinet string, door wire.DoorStatus) (differs, over bool, err error) {
	ours, agree, err := w.agreed(c, cabinet)
	if err != nil {
		return false, false, err
	}
	if agree {
		if c.Dispute == nil {
			return false, false, nil
		}
		c.Dispute = nil
		w.touch(c)
		return false, true, nil
	}
	if c.Dispute == nil || c.Dispute.Cabinet != cabinet || c.Dispute.Cloud != ours {
		c.Dispute = &cloud.Dispute{Cabinet: cabinet, Cloud: ours}
		w.touch(c)
	}
	if c.Dispute.Accepted {
		return false, false, nil
	}
	return true, false, w.heal(c, door)
}

// agreed gives the cloud's view of a compartment, and whether the cabinet's is
// the same. A compartment that is reserved and empty is no difference, whichever
// side says so.
func (w comparison) agreed(c *cloud.Compartment, cabinet string) (ours string, agree bool, err error) {
	if c.DeliveryID == 0 {
		return "", cabinet == "", nil
	}
	d, err := w.delivery(c.DeliveryID)
	if err != nil || d == nil {
		return "", cabinet == "", err
	}
	inside, err := w.inside(d, c)
	if err != nil {
		return "", false, err
	}
	switch {
	case cabinet == d.Number:
		return d.Number, true, nil
	case inside || c.State == cloud.GridOccupied: // kept for it until staff have looked
		return d.Number, false, nil
	}
	return "", cabinet == "", nil
}

// inside reports whether a package of the delivery lies in the compartment, for
// all that is known: deposited, or left there without a confirmation.
func (w comparison) inside(d *cloud.Delivery, c *cloud.Compartment) (bool, error) {
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return false, err
	}
	for _, p := range d.Packages {
		// The next try of an unverified package may be planned for another compartment.
		unverified := slices.ContainsFunc(rows, func(o *cloud.DeviceOrder) bool {
			return o.Tracking == p.TrackingNumber && o.GridCode == c.GridCode && o.IsUnverified()
		})
		stored := p.GridID == c.GridID && (p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting)
		if stored || unverified {
			return true, nil
		}
	}
	return false, nil
}

// heal brings the cabinet's view up to date where it is provably old: the
// delivery that it holds has left this compartment by a record of the cabinet or
// a removal, nothing else lies there, and no sensor sees anything. The command is
// sent once, and again when it expired; any other outcome is for staff.
func (w comparison) heal(c *cloud.Compartment, door wire.DoorStatus) error {
	if c.Dispute.Cabinet == "" || c.Dispute.Cloud != "" || door.Item == wire.ItemPresent {
		return nil
	}
	if id := c.Dispute.CommandID; id != "" {
		last, err := w.command(id)
		if err != nil || last != nil && last.State != cloud.CommandExpired {
			return err
		}
	}
	left, err := w.left(c)
	if err != nil || !left {
		return err
	}
	cmd, err := w.send("", wire.CmdClear, wire.DoorReason{Door: c.Door, Reason: cloud.DevContentsMismatch, DeliveryRef: c.Dispute.Cabinet}, []uint{c.Door}, longCommandLife)
	if err != nil {
		return err
	}
	next := *c.Dispute
	next.CommandID = cmd.ID
	c.Dispute = &next
	return nil
}

// left reports whether the delivery that the cabinet holds in a compartment was
// there and has left it.
func (w comparison) left(c *cloud.Compartment) (bool, error) {
	d, err := w.deliveryByNumber(c.Dispute.Cabinet)
	if err != nil || d == nil || d.DeviceID != w.device.ID {
		return false, err
	}
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return false, err
	}
	was := false
	for _, o := range rows {
		if o.GridCode != c.GridCode {
			continue
		}
		if o.EndedAt.IsZero() {
			return false, nil
		}
		was = true
	}
	return was, nil
}

// keepMismatch keeps the device's exception with all differences of the moment,
// and closes it with the last of them.
func (w *handling) keepMismatch(cells []*cloud.Compartment, seen, ended bool, at time.Time) {
	var views []string
	for _, c := range cells {
		if c.OutOfUse() {
			views = append(views, fmt.Sprintf("door %d: cabinet %s, cloud %s", c.Door, orNothing(c.Dispute.Cabinet), orNothing(c.Dispute.Cloud)))
		}
	}
	f := cloud.DeviceException{DeviceID: w.device.ID, Type: cloud.DevContentsMismatch}
	switch {
	case seen:
		f.Detail, f.OpenedAt, f.SeenAt = cloud.DetailText(strings.Join(views, "; ")), at, at
	case ended && len(views) == 0:
		f.ClosedAt = at
	default:
		return
	}
	w.ch.DeviceFaults = append(w.ch.DeviceFaults, f)
}

func orNothing(ref string) string {
	if ref == "" {
		return "empty"
	}
	return ref
}
