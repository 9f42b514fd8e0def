package locker

import (
	"slices"
	"time"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// maxClockError is the clock error above which no command is obeyed.
const maxClockErrMS = 5000

// obeys reports whether the clock is good enough for commands to be judged.
func (d *draft) obeys() bool { return d.now.Clock == wire.ClockSynced && d.now.ErrMS <= maxClockErrMS }

// order carries out a command, in the order: seen, clock, expiry, memory, version,
// door, act. A repeated one writes nothing: its outcome is a record already.
func (d commands) order(in Ordered) {
	c := in.Command
	if _, seen := d.Commands[c.CommandID]; seen || c.CommandID == "" {
		return
	}
	d.Commands[c.CommandID] = max(c.ExpiresAt, d.now.Wall(d.now.Mono)) // one that expired long ago may be replayed as well
	d.touch(keyCommand + c.CommandID)
	answer := func(outcome, reason string) {
		d.record(wire.KindCommandOutcome, d.now.Mono, wire.CommandOutcome{CommandID: c.CommandID, Outcome: outcome, Reason: reason})
	}
	if !d.obeys() {
		answer(wire.OutcomeRefused, wire.ReasonClock)
		return
	}
	if d.now.Wall(d.now.Mono)+ms(d.now.ErrMS) > c.ExpiresAt {
		answer(wire.OutcomeExpired, "")
		return
	}
	if d.dateLoss(); c.IssuedAt < d.Meta.CommandsFrom {
		answer(wire.OutcomeRefused, wire.ReasonMemory)
		return
	}
	for n, v := range c.Versions {
		if door, ok := d.Doors[edge.DoorNumber(n)]; ok && door.Version >= v {
			answer(wire.OutcomeRefused, wire.ReasonOvertaken)
			return
		}
	}
	reason := d.execute(in)
	switch {
	case reason == waiting:
	case reason == "":
		answer(wire.OutcomeDone, "")
	default:
		answer(wire.OutcomeRefused, reason)
	}
	if reason == "" || reason == waiting {
		for n, v := range c.Versions {
			if door, ok := d.Doors[edge.DoorNumber(n)]; ok {
				door.Version = v
				d.setDoor(door)
			}
		}
	}
}

// refuse answers a command that could not be looked at. The little room that
// takes is taken from what is kept for open sessions.
func (d commands) refuse(in Refuse) {
	if _, seen := d.Commands[in.Command.CommandID]; seen {
		return
	}
	d.Commands[in.Command.CommandID] = in.Command.ExpiresAt
	d.touch(keyCommand + in.Command.CommandID)
	d.urgent = true
	d.record(wire.KindCommandOutcome, d.now.Mono, wire.CommandOutcome{CommandID: in.Command.CommandID, Outcome: wire.OutcomeRefused, Reason: in.Reason})
}

// waiting stands for a command whose outcome comes later.
const waiting = "…"

// execute does what a command asks; it returns the reason of a refusal.
func (d commands) execute(in Ordered) string {
	c := in.Command
	switch c.Kind {
	case wire.CmdOpenDoors:
		var b wire.OpenDoors
		if wire.Decode(c.Body, &b) != nil {
			return wire.ReasonUnsupported
		}
		return d.openDoors(c, b)
	case wire.CmdCloseSession:
		var b wire.CloseSession
		if wire.Decode(c.Body, &b) != nil {
			return wire.ReasonUnsupported
		}
		return d.closeSession(b)
	case wire.CmdSyncConfig:
		d.present = true // the status that follows brings what is newer
		return ""
	case wire.CmdBeep:
		d.addAction(Show{What: "sound"})
		return ""
	case wire.CmdReboot:
		d.addAction(Show{What: "reboot"})
		return ""
	case wire.CmdUpdate:
		return d.update(in)
	case wire.CmdChannelTest, wire.CmdSupportBundle, wire.CmdBoardView:
		return d.diagnose(in)
	}
	var b wire.DoorReason
	if len(c.Body) > 0 && wire.Decode(c.Body, &b) != nil {
		return wire.ReasonUnsupported
	}
	if c.Kind == wire.CmdResetTries {
		d.resetTries()
		return ""
	}
	if c.Kind == wire.CmdShowMessage {
		d.addAction(Show{What: "message", Text: b.Reason})
		return ""
	}
	door, ok := d.Doors[edge.DoorNumber(b.Door)]
	if !ok {
		return wire.ReasonUnknownDoor
	}
	switch c.Kind {
	case wire.CmdBlock:
		door.Blocked = b.Reason
		if door.Blocked == "" {
			door.Blocked = "blocked"
		}
		door.BlockedFor = ""
		d.setDoor(door)
	case wire.CmdUnblock:
		door.Blocked, door.BlockedFor, door.Failures = "", "", 0
		d.setDoor(door)
	case wire.CmdClear:
		if door.Opening != "" {
			return wire.ReasonBusy
		}
		if b.DeliveryRef != "" && door.Delivery != "" && door.Delivery != b.DeliveryRef {
			return wire.ReasonOccupied // a late one must not take what was brought since
		}
		d.closeException(wire.ExItemMissing, door.Number, "cleared", d.now.Mono)
		d.closeException(wire.ExDepositUnverified, door.Number, "cleared", d.now.Mono)
		d.freeDoor(door.Number)
		if door = d.Doors[door.Number]; !door.Known && door.Counted {
			door.Counted, door.MissedClosed, door.Found = false, false, true // a person saw it, its board is silent
			d.setDoor(door)
		}
	default:
		return wire.ReasonUnsupported
	}
	return ""
}

// update keeps what is wanted. It is fetched and installed outside of the rules, also after
// another start.
func (d commands) update(in Ordered) string {
	switch {
	case in.Problem != "":
		return in.Problem
	case in.Update == nil:
		return wire.ReasonUnsupported
	case d.Meta.Update != nil:
		return wire.ReasonUpdating
	}
	m := d.Meta
	m.Update = &Update{CommandID: in.Command.CommandID, ExpiresAt: in.Command.ExpiresAt, Want: *in.Update}
	d.setMeta(m)
	d.addAction(UpdateWanted{})
	return waiting
}

// updated ends the update that is wanted, once.
func (d commands) updated(in Updated) {
	if u := d.Meta.Update; u == nil || u.CommandID != in.CommandID {
		return
	}
	m := d.Meta
	m.Update = nil
	d.setMeta(m)
	d.record(wire.KindCommandOutcome, d.now.Mono, wire.CommandOutcome{CommandID: in.CommandID, Outcome: in.Outcome, Reason: in.Reason})
}

func (d commands) openDoors(c wire.Command, b wire.OpenDoors) string {
	if len(b.Doors) == 0 || len(b.Doors) > wire.MaxDoors || b.OpeningID == "" || len(b.OpeningID) > 40 {
		return wire.ReasonUnsupported
	}
	doors := numbers(b.Doors)
	if o, running := d.Openings[b.OpeningID]; running {
		for _, n := range doors {
			if o.door(n).Door == 0 {
				return wire.ReasonUnknownDoor
			}
		}
		if reason := d.again(o, doors, c.CommandID, d.authority(edge.ByCommand, c.CommandID, o.ID, 0)); reason != "" {
			return reason
		}
		return waiting
	}
	if _, ended := d.Ended[b.OpeningID]; ended {
		return wire.ReasonNoOpening
	}
	if id := d.depositOf(b.DeliveryRef); id != "" && id != b.Replaces && b.Kind.IsDeposit() {
		// It runs by a code, and the cloud does not know of it yet.
		if b.Kind != wire.OpenReassign {
			return wire.ReasonBusy
		}
		b.Replaces = id
	}
	if reason := d.free(doors, b.Kind, b.DeliveryRef, b.Replaces); reason != "" {
		return reason
	}
	if b.Kind == wire.OpenPickup && !d.collectable(b.DeliveryRef, doors) {
		return wire.ReasonNotInside
	}
	if old, ok := d.Openings[b.Replaces]; ok {
		d.replace(old, doors)
	}
	who := "remote"
	session := int64(b.SessionSeconds) * int64(time.Second)
	if session == 0 {
		session = sec(d.times().SessionS)
	}
	o := Opening{ID: b.OpeningID, Kind: b.Kind, CommandID: c.CommandID, Who: who, How: "remote", DeliveryRef: b.DeliveryRef, Code: b.Code, Generation: d.Meta.Generation,
		Runs: []Run{{CommandID: c.CommandID, Doors: doors}}, Ends: d.now.instant(d.now.Mono + session), ListNumber: d.Meta.CodeList}
	for _, n := range doors {
		o.Doors = append(o.Doors, OpeningDoor{Door: n, Packages: b.Packages[uint(n)]})
	}
	d.begin(o, d.authority(edge.ByCommand, c.CommandID, o.ID, 0))
	return waiting
}

// collectable reports whether doors are those of a delivery that waits for its recipient:
// deposited, and neither collected nor under correction. After a loss of memory the cloud
// alone knows.
func (d openings) collectable(ref string, doors []edge.DoorNumber) bool {
	dl, known := d.Deliveries[ref]
	if !known && d.Meta.Lost {
		return true
	}
	return !dl.Suspended && !slices.ContainsFunc(doors, func(n edge.DoorNumber) bool { _, inside := dl.Doors[n]; return !inside })
}

// depositOf is the running deposit of a delivery, "" when there is none.
func (d openings) depositOf(ref string) string {
	for _, id := range sorted(d.Openings) {
		if o := d.Openings[id]; ref != "" && o.DeliveryRef == ref && o.Kind.IsDeposit() && !o.Cancelled {
			return id
		}
	}
	return ""
}

// isLeftOpen reports whether a door was left open, or forced, and has not been
// closed since: staff alone may open a session on it.
func (s *State) isLeftOpen(n edge.DoorNumber) bool {
	for _, e := range s.Exceptions {
		if e.Type == wire.ExDoorLeftOpen && e.Door == uint(n) {
			return true
		}
	}
	return false
}

// replace cancels an opening for another one, which takes over those of its
// doors that it opens itself.
func (d openings) replace(old Opening, doors []edge.DoorNumber) {
	d.withdraw(old)
	old.Cancelled = true
	for _, n := range doors {
		old = old.with(n, func(x *OpeningDoor) {
			x.Phase, x.Waiting, x.Deadline, x.Error = OpenFailed, false, 0, wire.ReasonOvertaken
		})
	}
	d.setOpening(old)
}

// free says why doors cannot be opened, "" when they can.
func (d openings) free(doors []edge.DoorNumber, kind wire.OpeningKind, ref, replaces string) string {
	for _, n := range doors {
		door, ok := d.Doors[n]
		switch {
		case !ok:
			return wire.ReasonUnknownDoor
		case !door.Known || !d.Ready:
			return wire.ReasonBoard
		case door.Opening != "" && door.Opening != replaces:
			return wire.ReasonBusy
		case kind == wire.OpenStaff:
		case door.Opening == "" && d.isLeftOpen(n):
			return wire.ReasonBusy
		case door.Blocked != "":
			return wire.ReasonSuspect
		case door.Delivery != "" && door.Delivery != ref:
			return wire.ReasonOccupied
		case kind == wire.OpenCorrection && door.Delivery == "":
			return wire.ReasonNotInside // collected before the order for it came
		}
	}
	return ""
}

// closeSession ends a running opening by word of the cloud. One that has ended
// keeps its end, and the command is done.
func (d commands) closeSession(b wire.CloseSession) string {
	o, ok := d.Openings[b.OpeningID]
	if !ok {
		e, ended := d.Ended[b.OpeningID]
		if !ended && b.How == wire.CloseSettle {
			e, ended = d.lostDeposit(b.DeliveryRef)
		}
		if !ended {
			return wire.ReasonNoOpening
		}
		if b.How == wire.CloseSettle {
			d.confirmLate(e, confirmed(b))
		}
		return ""
	}
	switch b.How {
	case wire.CloseCancel:
		o.Cancelled = true
		d.withdraw(o)
	case wire.CloseSettle:
		if d.tally(o).open {
			return wire.ReasonBusy
		}
		o.Confirm, o.Confirmed = string(b.ConfirmedBy), confirmed(b)
		d.withdraw(o)
	default:
		return wire.ReasonUnsupported
	}
	d.setOpening(o)
	return ""
}

// confirmed is what a confirmation names, by door; nil when it is about all.
func confirmed(b wire.CloseSession) map[edge.DoorNumber][]string {
	if len(b.Packages) == 0 {
		return nil
	}
	out := make(map[edge.DoorNumber][]string, len(b.Packages))
	for n, refs := range b.Packages {
		out[edge.DoorNumber(n)] = refs
	}
	return out
}

// confirmLate takes a person's word for compartments that an ended deposit left
// unverified: the pickup code opens those it names from now on, and the others
// are free unless something is seen inside.
func (d openings) confirmLate(e EndedOpening, named map[edge.DoorNumber][]string) {
	if !e.Kind.IsDeposit() || e.Delivery == "" {
		return
	}
	dl := d.Deliveries[e.Delivery]
	doors := map[edge.DoorNumber][]string{}
	for n, refs := range dl.Doors {
		doors[n] = refs
	}
	// A door that is named and not the opening's own holds the delivery by a whole list.
	all := append(sorted(named), e.Doors...)
	slices.Sort(all)
	for _, n := range slices.Compact(all) {
		door := d.Doors[n]
		if _, has := doors[n]; has || door.Delivery != e.Delivery {
			continue
		}
		refs, in := named[n]
		switch {
		case named == nil:
			doors[n] = e.Packages[n]
		case in:
			doors[n] = refs
		case door.Item == wire.ItemPresent:
			continue
		default:
			d.assign(n, "")
			d.closeException(wire.ExDepositUnverified, n, "deposit_cancelled", d.now.Mono)
			continue
		}
		d.closeException(wire.ExDepositUnverified, n, "deposit_confirmed", d.now.Mono)
	}
	if len(doors) > len(dl.Doors) {
		d.setDelivery(Delivery{Ref: e.Delivery, Doors: doors, Suspended: dl.Suspended, Purpose: d.Purpose(e.Delivery)})
	}
}

// config applies a configuration: version first, then whether the cabinet as
// it stands allows the new layout.
func (d commands) config(in ConfigCame) {
	c := in.Config
	if c.Version <= d.Config.Version {
		return
	}
	result := in.Problem
	if result == "" {
		check := c.Check
		if in.Post {
			check = c.CheckPost
		}
		if err := check(); err != nil {
			result = err.Error()
		}
	}
	if result == "" {
		result = d.layoutProblem(c.Layout)
	}
	if result == "" {
		result = wire.ResultOK
		d.moveDoors(c.Layout)
		d.Config = c
		d.touch(keyConfig)
		for _, l := range c.Layout {
			n := edge.DoorNumber(l.Door)
			if _, ok := d.Doors[n]; !ok {
				d.setDoor(Door{Number: n})
			}
		}
	}
	d.record(wire.KindConfigApplied, d.now.Mono, wire.ConfigApplied{Version: c.Version, Result: result})
	d.present = true
}

// moveDoors forgets what was read of doors that are wired otherwise from now on.
func (d commands) moveDoors(next []wire.LayoutDoor) {
	for _, l := range d.Config.Layout {
		if slices.ContainsFunc(next, func(n wire.LayoutDoor) bool { return n.Door == l.Door && samePlace(n, l) }) {
			continue
		}
		if door, ok := d.Doors[edge.DoorNumber(l.Door)]; ok {
			door.Known = false
			d.Doors[door.Number] = door
		}
	}
}

func samePlace(a, b wire.LayoutDoor) bool {
	return a.Board == b.Board && a.Channel == b.Channel && a.Inverted == b.Inverted
}

// layoutProblem refuses to move a compartment that is occupied or open, or was so
// when it was last seen: its door stays on its lock, and keeps the label by which
// people find it.
func (d commands) layoutProblem(next []wire.LayoutDoor) string {
	places := map[uint]wire.LayoutDoor{}
	for _, l := range next {
		places[l.Door] = l
	}
	for _, l := range d.Config.Layout {
		door := d.Doors[edge.DoorNumber(l.Door)]
		if door.Delivery == "" && door.Opening == "" && !door.Counted && !(door.Known && door.Open) && door.Item != wire.ItemPresent {
			continue
		}
		n, ok := places[l.Door]
		if onlyInverts := ok && n.Board == l.Board && n.Channel == l.Channel && n.Label == l.Label; onlyInverts && door.Delivery == "" && door.Opening == "" && door.Item != wire.ItemPresent {
			continue // that it reads open is what is put right
		}
		if !ok || !samePlace(n, l) || n.Label != l.Label {
			return "door " + num(door.Number) + " is occupied or open and cannot be moved"
		}
	}
	return ""
}
