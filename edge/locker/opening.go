package locker

import (
	"cmp"
	"slices"

	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// pass lets time pass: it is the end of every step.
func (d step) pass() {
	d.becomeReady()
	d.countOpen()
	d.openWaits()
	seeStaff(d.draft)
	for _, n := range sorted(d.Doors) {
		if !d.Doors[n].isAsked(d.now) {
			endWait(d.draft, n)
		}
	}
	for _, id := range sorted(d.Openings) {
		d.outcomes(id)
		d.progress(id)
	}
	d.seeOpen()
	d.watchOpen()
	d.tellAgain()
	d.sound()
	d.dateLoss()
	d.keepAwake()
	d.forget()
}

// Next is when, after a step made at now, time alone changes something, as mono
// of this boot; 0 when nothing is due.
func (s State) Next(now Now) int64 {
	var next int64
	at := func(t int64) {
		if t > now.Mono && (next == 0 || t < next) {
			next = t
		}
	}
	t := s.Config.Times.WithDefaults()
	for _, d := range s.Doors {
		if d.StaffAt != 0 {
			at(d.StaffAt + removalFor + 1)
		}
		if d.settling() && d.proven(t) {
			at(countsAt(d, t))
		}
		at(s.soundDue(d))
		at(s.watchDue(d))
	}
	for _, o := range s.Openings {
		if now.Mono < o.Ends.Mono {
			at(o.Ends.Mono)
		}
		at(s.darkEnd(o))
		for _, od := range o.Doors {
			if door := s.Doors[od.Door]; door.Known && door.Open && door.Counted {
				at(seenAgain(od, now))
			}
			if od.Phase == Pulsed && !od.Waiting && !(s.Doors[od.Door].Known && s.Doors[od.Door].Open) {
				at(od.Deadline)
			}
			if pulsed := s.Doors[od.Door].PulseAt; od.Phase == OpenFailed && pulsed != 0 {
				at(pulsed + forcedGrace + 1)
			}
			if od.Phase == Closed && od.ClosedAt.Boot == now.Boot {
				at(od.ClosedAt.Mono + ms(t.SettleMS))
			}
		}
	}
	at(s.awakeDue(now))
	for _, e := range s.Exceptions {
		if e.Type == wire.ExDoorLeftOpen && e.Written <= len(leftOpenAgain) {
			at(e.WrittenAt + leftOpenAgain[e.Written-1])
		}
	}
	return next
}

// begin starts an opening: intent first, pulses once it is durable.
func (d openings) begin(o Opening, by edge.Authority) {
	o.Last = d.now.instant(d.now.Mono)
	d.urgent = false // a new session
	for i := range o.Doors {
		n := o.Doors[i].Door
		door := d.Doors[n]
		door.Opening = o.ID
		d.setDoor(door)
		if !o.Doors[i].Phase.outcome() { // one of the opening that this one continues has its outcome
			d.aim(&o, &o.Doors[i], door, by)
		}
	}
	if o.Kind == wire.OpenCorrection {
		if dl, ok := d.Deliveries[o.DeliveryRef]; ok {
			dl.Suspended = true
			d.setDelivery(dl)
		}
	}
	d.setOpening(o)
	started := wire.OpeningStarted{OpeningID: o.ID, Kind: o.Kind, Doors: uints(o.numbers()), CommandID: o.CommandID, Who: o.Who, DeliveryRef: o.DeliveryRef, EndsAt: o.Ends.Wall, CodeNumber: o.CodeNumber}
	if o.PassID != nil {
		started.How, started.PassID = o.How, o.PassID
	}
	if o.Kind == wire.OpenReassign && o.CommandID == wire.LocalCommand {
		started.Packages = map[uint][]string{}
		for _, od := range o.Doors {
			if len(od.Packages) > 0 {
				started.Packages[uint(od.Door)] = od.Packages
			}
		}
	}
	d.record(wire.KindOpeningStarted, d.now.Mono, started)
	d.present = true
}

// aim points an opening's door at being opened: a pulse, unless it is open
// already, which counts as opened, or a pulse of an earlier act still waits,
// which may open it as well.
func (d openings) aim(o *Opening, od *OpeningDoor, door Door, by edge.Authority) {
	by.Until = min(by.Mono+pulseLife+int64(d.waiting(*o))*queueLife, o.Ends.Mono)
	od.By, od.Pulses, od.Error, od.Unwatched, od.Withheld = by, 0, "", false, false
	od.Asked = od.Asked || door.Known && door.Open
	switch {
	case od.Waiting:
	case door.Known && door.Open && door.Counted:
		od.Phase, od.OpenedAt, od.ClosedAt, od.LastOpen, od.Unseen = Opened, door.OpenedAt, Instant{}, door.OpenedAt, false
	case door.Known && door.Open:
		od.Phase, od.Waiting, od.Deadline = Pulsed, false, 0
	default:
		d.pulse(o, od, door)
	}
}

// again pulses the closed doors of a running opening for a new act; its end
// stays. It returns why not, "" when it does.
func (d openings) again(o Opening, doors []edge.DoorNumber, command string, by edge.Authority) string {
	if o.Cancelled || o.Confirm != "" || d.now.Mono >= o.Ends.Mono {
		return wire.ReasonNoOpening
	}
	for _, n := range doors {
		if !d.Ready || !d.Doors[n].Known {
			return wire.ReasonBoard
		}
	}
	o.Doors, o.Done = slices.Clone(o.Doors), false
	for i := range o.Doors {
		od := &o.Doors[i]
		door := d.Doors[od.Door]
		switch {
		case !slices.Contains(doors, od.Door):
		case door.Known && door.Open:
			od.Asked = true
		default:
			d.aim(&o, od, door, by)
		}
	}
	if command != "" {
		o.Runs = append(slices.Clone(o.Runs), Run{CommandID: command, Doors: doors})
	}
	d.setOpening(o)
	return ""
}

// outcomes answers commands whose doors all have an outcome.
func (d openings) outcomes(id string) {
	o := d.Openings[id]
	if len(o.Runs) == 0 {
		return
	}
	var left []Run
	for _, r := range o.Runs {
		var opened, failed, unseen int
		codes := map[uint]string{}
		for _, n := range r.Doors {
			od := o.door(n)
			switch {
			case od.Phase.opened() && od.Error == "":
				opened++
				continue
			case od.Phase == OpenFailed, od.Phase.opened() && od.Error != wire.DoorNotSeen:
				failed++
			case od.Phase == NotSeen, od.Phase.opened():
				unseen++
			default:
				continue
			}
			codes[uint(n)] = od.Error
		}
		if opened+failed+unseen < len(r.Doors) {
			left = append(left, r)
			continue
		}
		out := wire.CommandOutcome{CommandID: r.CommandID, Doors: codes, Outcome: wire.OutcomeDone}
		switch {
		case opened == len(r.Doors):
			out.Doors = nil
		case opened > 0:
			out.Outcome = wire.OutcomePartial
		case unseen > 0:
			out.Outcome = wire.OutcomeInterrupted
		default:
			out.Outcome = wire.OutcomeFailed
		}
		d.record(wire.KindCommandOutcome, d.now.Mono, out)
	}
	if len(left) != len(o.Runs) {
		o.Runs = left
		d.setOpening(o)
	}
}

// tally is what an opening's doors amount to.
type tally struct {
	pending, opened, failed, unseen int   // a pulse on its way is pending, whatever the door did meanwhile
	open, unknown                   bool  // a door is open, or its reading is unknown
	counted                         bool  // one has been open for the minimum time
	lastClosed                      int64 // mono
}

func (d openings) tally(o Opening) tally {
	var t tally
	for _, od := range o.Doors {
		door := d.Doors[od.Door]
		if door.Opening == o.ID { // else another opening has taken the door over
			t.open = t.open || door.Known && door.Open
			t.counted = t.counted || door.Known && door.Open && !door.settling()
			t.unknown = t.unknown || !door.Known
		}
		if od.Waiting && od.Phase.outcome() {
			t.pending++
		}
		switch od.Phase {
		case Queued, Pulsed:
			t.pending++
		case Opened, Closed:
			t.opened++
			if od.ClosedAt.Boot == d.now.Boot { // one of an earlier boot is long over
				t.lastClosed = max(t.lastClosed, od.ClosedAt.Mono)
			}
		case OpenFailed:
			t.failed++
		case NotSeen:
			t.unseen++
		}
	}
	return t
}

// maySwing reports whether a door of an opening may still open for its pulse, or
// has just begun to.
func (d openings) maySwing(o Opening) bool {
	return slices.ContainsFunc(o.Doors, func(od OpeningDoor) bool {
		door := d.Doors[od.Door]
		return door.PulseAt != 0 && (d.now.Mono <= door.PulseAt+forcedGrace || door.settling() && door.Since <= door.PulseAt+forcedGrace)
	})
}

// progress ends an opening when its time has come.
func (d openings) progress(id string) {
	o := d.Openings[id]
	t := d.tally(o)
	over := d.now.Mono >= o.Ends.Mono
	if t.unknown && !t.open && d.now.Mono >= d.darkEnd(o) {
		d.endDark(o)
		return
	}
	if t.pending > 0 {
		return
	}
	if t.opened == 0 && t.unseen == 0 {
		// Every door failed; state unknown or not, none was opened. One that swings a
		// little late is still this opening's, also of one that is cancelled meanwhile.
		if !over && d.maySwing(o) {
			return
		}
		if !o.Cancelled {
			d.end(o, wire.EndOpenFailed)
			return
		}
	}
	if t.open {
		if over && t.counted { // else it shows in a moment whether the door is open at all
			d.leftOpen(o)
		}
		return
	}
	if t.unknown {
		return // the first reliable read decides
	}
	closedFor := d.now.Mono >= t.lastClosed+ms(d.times().SettleMS)
	switch {
	case o.Cancelled:
		d.endCancelled(o)
	case t.unseen > 0 && !over && o.Confirm == "":
		// Unseen doors may still report until the session is over.
	case o.Kind == wire.OpenStaff && (closedFor || t.opened == 0):
		d.end(o, wire.EndDone)
	case o.Kind == wire.OpenPickup && t.opened == 0:
		d.end(o, wire.EndNotCollected)
	case o.Kind == wire.OpenPickup && (closedFor || over):
		d.collected(o, false)
	case !o.Kind.IsDeposit():
	case o.Confirm != "":
		d.settle(o, wire.ConfirmedBy(o.Confirm))
	case t.opened == 0:
		d.unverified(o)
	case o.Done:
		d.settle(o, wire.ByCourierTerminal)
	case t.unseen > 0:
		d.settle(o, wire.ByTimeoutDoorClosed)
	case closedFor && o.Missed && (o.Unsure || t.lastClosed >= o.Ends.Mono):
		d.settle(o, wire.ByTimeoutDoorClosed)
	case closedFor:
		d.settle(o, wire.ByDoorClose)
	}
}

// leftOpen is the end of a session with a door open: a deposit waits, however
// long; a parcel to be collected counts as taken.
func (d openings) leftOpen(o Opening) {
	if !o.LeftOpen {
		o.LeftOpen = true
		d.setOpening(o)
		recordTest(d, o)
		for _, n := range o.numbers() {
			if door := d.Doors[n]; door.Known && door.Open && !door.settling() {
				d.tellLeftOpen(n, "open at the end of the session")
			}
		}
	}
	if o.Kind == wire.OpenPickup && !o.Cancelled {
		d.collected(o, true)
	}
}

// end closes an opening that settles nothing.
func (d openings) end(o Opening, reason string) {
	d.record(wire.KindOpeningEnded, d.now.Mono, wire.OpeningEnded{OpeningID: o.ID, Reason: reason})
	d.drop(o, false)
}

// drop forgets a running opening, remembers its end and lets its doors go.
func (d openings) drop(o Opening, settled bool) {
	d.withdraw(o)
	recordTest(d, o)
	for _, n := range o.numbers() {
		if door := d.Doors[n]; door.Opening == o.ID {
			door.Opening = ""
			d.setDoor(door)
		}
	}
	if dl, ok := d.Deliveries[o.DeliveryRef]; ok && o.Kind == wire.OpenCorrection && dl.Suspended {
		dl.Suspended = false
		d.setDelivery(dl)
	}
	delete(d.Openings, o.ID)
	d.touch(keyOpening + o.ID)
	packages := map[edge.DoorNumber][]string{}
	for _, od := range o.Doors {
		packages[od.Door] = od.Packages
	}
	list := d.Meta.CodeList
	if o.PassID != nil && o.Generation == d.Meta.Generation {
		list = max(list, o.CodeNumber) // the pass stood for an entry that has not come yet
	}
	d.Ended[o.ID] = EndedOpening{ID: o.ID, Kind: o.Kind, Settled: settled, At: d.now.instant(d.now.Mono), Ends: o.Ends,
		Delivery: o.DeliveryRef, Doors: o.numbers(), Packages: packages,
		List: list, Generation: d.Meta.Generation}
	d.touch(keyEnded + o.ID)
	d.present = true
}

// markUsed remembers that an ended opening has used the codes of its delivery.
func (d openings) markUsed(id string) {
	e := d.Ended[id]
	e.Used = true
	d.Ended[id] = e
}

// endCancelled frees the compartments of a cancelled opening once its doors
// are closed; where something lies inside they stay assigned.
func (d openings) endCancelled(o Opening) {
	for _, od := range o.Doors {
		if door := d.Doors[od.Door]; door.Blocked == wire.BlockOccupied {
			continue // what lies there is not the courier's
		} else if door.Item == wire.ItemPresent && od.Phase.opened() {
			door.Delivery = o.DeliveryRef
			d.setDoor(door)
			d.raise(wire.ExDepositUnverified, wire.SeverityMedium, od.Door, "cancelled with something inside")
		} else if od.Phase.opened() && o.DeliveryRef != "" && door.Delivery == o.DeliveryRef && d.IsUnconfirmed(od.Door) {
			d.freeDoor(od.Door) // the courier has seen what lies there
		}
	}
	d.end(o, wire.EndCancelled)
}

// unverified ends a deposit of which no door report came at all. All of its
// compartments are kept: the end names no doors, and the cloud keeps them too.
func (d openings) unverified(o Opening) {
	for _, od := range o.Doors {
		evidence := "no door report"
		if od.Phase == OpenFailed {
			evidence = "the door was not opened"
		}
		d.assign(od.Door, o.DeliveryRef)
		d.raise(wire.ExDepositUnverified, wire.SeverityMedium, od.Door, evidence)
	}
	d.end(o, wire.EndDepositUnverified)
}

// assign keeps a compartment for a delivery.
func (d *draft) assign(n edge.DoorNumber, ref string) {
	door := d.Doors[n]
	door.Delivery, door.Unverified, door.StaffAt = ref, false, 0
	door.Seen = door.Known && !door.Open && door.Item == wire.ItemPresent
	d.setDoor(door)
}

// settle confirms a deposit, once.
func (d openings) settle(o Opening, by wire.ConfirmedBy) {
	code := d.pickupCode(o)
	body := wire.OpeningSettled{OpeningID: o.ID, ConfirmedBy: by}
	dl, ok := d.Deliveries[o.DeliveryRef]
	if !ok {
		dl = Delivery{Ref: o.DeliveryRef}
	}
	dl.Suspended, dl.Purpose = false, d.Purpose(o.DeliveryRef)
	doors := map[edge.DoorNumber][]string{}
	for n, refs := range dl.Doors {
		doors[n] = refs
	}
	var gone []edge.DoorNumber
	for _, od := range o.Doors {
		body.Doors = append(body.Doors, d.settledDoor(od))
		outcome, failure := d.packageOutcome(o, od, by)
		inside, out := o.behind(od)
		switch {
		case outcome == wire.Deposited && (o.Confirmed == nil || len(inside) > 0):
			doors[od.Door] = inside
			d.assign(od.Door, o.DeliveryRef)
			d.closeException(wire.ExDepositUnverified, od.Door, "deposit_confirmed", d.now.Mono)
		case outcome == wire.Deposited && d.Doors[od.Door].Item == wire.ItemPresent:
			d.assign(od.Door, o.DeliveryRef)
			d.raise(wire.ExDepositUnverified, wire.SeverityMedium, od.Door, "something seen where nothing was confirmed")
		case outcome == wire.Deposited, outcome == wire.Failed && failure == notDeposited:
			gone = append(gone, od.Door)
		case outcome == wire.Unverified:
			delete(doors, od.Door)
			d.assign(od.Door, o.DeliveryRef)
			d.raise(wire.ExDepositUnverified, wire.SeverityMedium, od.Door, "nothing seen inside")
		}
		for _, ref := range inside {
			p := wire.SettledPackage{Ref: ref, Door: uint(od.Door), Outcome: outcome, FailureCode: failure}
			if outcome == wire.Deposited {
				p.CodeNumber = code
			}
			body.Packages = append(body.Packages, p)
		}
		for _, ref := range out {
			body.Packages = append(body.Packages, wire.SettledPackage{Ref: ref, Door: uint(od.Door), Outcome: wire.Failed, FailureCode: notDeposited})
		}
	}
	dl.Doors = doors
	if o.DeliveryRef != "" {
		d.setDelivery(dl)
	}
	d.record(wire.KindOpeningSettled, d.now.Mono, body)
	d.drop(o, true)
	if slices.ContainsFunc(body.Packages, func(p wire.SettledPackage) bool { return p.Outcome == wire.Deposited }) {
		d.markUsed(o.ID)
	}
	for _, n := range gone {
		if o.DeliveryRef != "" && d.Doors[n].Delivery == o.DeliveryRef {
			d.freeDoor(n)
		}
	}
	d.freeUnverified(o.DeliveryRef)
}

// notDeposited is the failure of a package that is not behind its door.
const notDeposited = "NOT_DEPOSITED"

// behind are the packages that lie behind a door when its deposit is confirmed,
// and those that were to lie there and that the confirmation leaves out.
func (o Opening) behind(od OpeningDoor) (inside, out []string) {
	if o.Confirmed == nil {
		return od.Packages, nil
	}
	for _, ref := range od.Packages {
		named := false
		for _, refs := range o.Confirmed {
			named = named || slices.Contains(refs, ref)
		}
		if !named {
			out = append(out, ref)
		}
	}
	return o.Confirmed[od.Door], out
}

// packageOutcome is what became of the packages behind one door. A confirmation by a
// person stands in for an unseen door, never for a sensor. In a
// correction packages lie inside already: a door that did not open keeps them,
// and one that is closed over nothing had them taken out.
func (d openings) packageOutcome(o Opening, od OpeningDoor, by wire.ConfirmedBy) (outcome, failure string) {
	stated := by.IsStated()
	correction := o.Kind == wire.OpenCorrection
	switch {
	case od.Phase == OpenFailed && !correction:
		return wire.Failed, "DOOR_NOT_OPENED"
	case od.Phase == OpenFailed:
		return wire.Deposited, ""
	case od.Phase == NotSeen && !stated:
		return wire.Unverified, ""
	case od.Phase.opened() && !od.Asked && !stated && !correction:
		return wire.Unverified, ""
	case od.Item == wire.ItemAbsent && !stated && correction:
		return wire.Failed, notDeposited
	case od.Item == wire.ItemAbsent && !stated:
		return wire.Unverified, ""
	}
	return wire.Deposited, ""
}

// pickupCode is the number of the code entry that a settlement activates. An
// entry that came with the opening, ahead of the list, joins it; one that the
// list has passed and does not hold was revoked meanwhile, and so it may have
// been when numbers were given anew.
func (d openings) pickupCode(o Opening) uint64 {
	if o.Code != nil && o.Code.Number > d.Meta.CodeList && o.Generation == d.Meta.Generation {
		d.setCode(*o.Code)
	}
	if o.Code != nil {
		if _, ok := d.Codes[o.Code.Number]; ok {
			return o.Code.Number
		}
	}
	for _, n := range sorted(d.Codes) {
		if c := d.Codes[n]; locates(c.Kind) && c.DeliveryRef == o.DeliveryRef {
			return n
		}
	}
	return 0
}

// collected completes a pickup. Doors that did not open, and those with
// something still inside, keep their packages and the code.
func (d openings) collected(o Opening, stillOpen bool) {
	var taken, left []edge.DoorNumber
	for _, od := range o.Doors {
		if !od.Phase.opened() || !od.Asked || od.Phase == Closed && d.Doors[od.Door].Item == wire.ItemPresent {
			left = append(left, od.Door)
			continue
		}
		taken = append(taken, od.Door)
	}
	if len(taken) == 0 {
		d.end(o, wire.EndNotCollected)
		return
	}
	d.record(wire.KindPickupCompleted, d.now.Mono, wire.PickupCompleted{DeliveryRef: o.DeliveryRef, OpeningID: o.ID, Doors: uints(taken),
		StillOpen: stillOpen, How: o.How, CodeNumber: o.CodeNumber, ListNumber: o.ListNumber, Left: uints(left)})
	d.drop(o, true)
	d.markUsed(o.ID)
	for _, n := range taken {
		d.freeDoor(n)
	}
}

// freeDoor takes a delivery out of a compartment; a delivery with no
// compartment left is gone, and its codes with it.
func (d *draft) freeDoor(n edge.DoorNumber) {
	door := d.Doors[n]
	ref := door.Delivery
	door.Delivery, door.Unverified, door.Seen, door.StaffAt = "", false, false, 0
	d.setDoor(door)
	d.letGo(n)
	dl, ok := d.Deliveries[ref]
	if !ok {
		return
	}
	doors := map[edge.DoorNumber][]string{}
	for k, v := range dl.Doors {
		if k != n {
			doors[k] = v
		}
	}
	dl.Doors = doors
	if len(doors) > 0 {
		d.setDelivery(dl)
		return
	}
	d.dropDelivery(ref)
	for _, num := range sorted(d.Codes) {
		if d.Codes[num].DeliveryRef == ref {
			d.dropCode(num)
		}
	}
}

// letGo forgets what was reported of a delivery that has left a compartment, for which
// the next fault there would count as a repeat. Whether it is settled is for staff.
func (d *draft) letGo(n edge.DoorNumber) {
	for _, id := range sorted(d.Exceptions) {
		if e := d.Exceptions[id]; e.Door == uint(n) && (e.Type == wire.ExItemMissing || e.Type == wire.ExDepositUnverified) {
			d.dropException(id)
		}
	}
}

// pressedDone is the courier's "done" at the cabinet: it settles once all
// doors are closed.
func (d openings) pressedDone(in PressedDone) {
	o, ok := d.Openings[in.OpeningID]
	if !ok {
		d.out.Answer.Outcome = wire.ReasonNoOpening
		return
	}
	o.Done = true
	d.withdraw(o)
	d.setOpening(o)
	d.out.Answer = Answer{Outcome: wire.CodeOK, OpeningID: o.ID, Doors: o.numbers()}
}

// forget drops what is remembered only for a while.
func (d openings) forget() {
	d.forgetCommands()
	for id, e := range d.Ended {
		if d.now.passed(e.At) > keepEnded {
			delete(d.Ended, id)
			d.touch(keyEnded + id)
		}
	}
	for len(d.Ended) > maxEnded {
		first := ""
		for id, e := range d.Ended {
			if was := d.Ended[first].At; first == "" || e.At.Boot < was.Boot || e.At.Boot == was.Boot && (e.At.Mono < was.Mono || e.At.Mono == was.Mono && id < first) {
				first = id
			}
		}
		delete(d.Ended, first)
		d.touch(keyEnded + first)
	}
}

// forgetCommands drops the ids of commands that expired long ago, the oldest first, and
// never the newest ones: neither the machine's own clock nor a time of the cloud that
// turns out to have been wrong lets a repeat of them through.
func (d *draft) forgetCommands() {
	if d.now.Clock != wire.ClockSynced || len(d.Commands) <= minCommands {
		return
	}
	var old []string
	for id, expiry := range d.Commands {
		if d.now.Wall(d.now.Mono)-ms(d.now.ErrMS) > expiry+keepCommands {
			old = append(old, id)
		}
	}
	slices.SortFunc(old, func(a, b string) int { return cmp.Or(cmp.Compare(d.Commands[a], d.Commands[b]), cmp.Compare(a, b)) })
	for _, id := range old[:min(len(old), len(d.Commands)-minCommands)] {
		delete(d.Commands, id)
		d.touch(keyCommand + id)
	}
}
