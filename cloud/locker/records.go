package locker

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// own finds an opening that a record speaks of, and its delivery (nil for
// staff openings). An opening or delivery of another device is foreign.
func (w *rows) own(id string) (o *cloud.Opening, d *cloud.Delivery, problem string, err error) {
	o, err = w.opening(id)
	if err != nil || o == nil {
		return nil, nil, foreign, err
	}
	if o.DeviceID != w.device.ID {
		return nil, nil, foreign, nil
	}
	if o.DeliveryID != 0 {
		d, err = w.delivery(o.DeliveryID)
	}
	return o, d, "", err
}

// started: the intent is durable at the cabinet.
func (w reports) started(r Occurrence, b wire.OpeningStarted) (string, error) {
	if b.OpeningID == "" || len(b.OpeningID) > 40 || len(b.Doors) == 0 || len(b.Doors) > wire.MaxDoors {
		return badBody, nil
	}
	o, err := w.opening(b.OpeningID)
	if err != nil {
		return "", err
	}
	if o != nil && o.DeviceID != w.device.ID {
		return foreign, nil
	}
	if o == nil {
		var problem string
		if o, problem, err = w.localOpening(r, b); problem != "" || err != nil {
			return problem, err
		}
	}
	if o.State == cloud.OpeningRequested || o.EndReason == string(cloud.CommandExpired) {
		o.State, o.EndReason, o.EndedAt = cloud.OpeningRunning, "", time.Time{} // the cabinet took it after all
	}
	if o.Ended() {
		return "", nil // known, under an earlier epoch
	}
	if b.EndsAt != 0 {
		o.EndsAt = r.OccurredAt.Add(time.Duration(b.EndsAt - r.At))
	}
	w.touch(o)
	if r.Present {
		for _, d := range o.Doors {
			w.present(d.Door).OpeningID = o.ID
		}
	}
	if b.CommandID == wire.LocalCommand {
		return "", nil
	}
	c, err := w.command(b.CommandID)
	if err != nil || c == nil || c.DeviceID != w.device.ID || c.State.Ended() && c.State != cloud.CommandExpired {
		return "", err
	}
	c.State, c.Reason, c.EndedAt = cloud.CommandAccepted, "", time.Time{}
	w.touch(c)
	return "", nil
}

// localOpening is an opening that the cabinet authorised itself.
func (w reports) localOpening(r Occurrence, b wire.OpeningStarted) (*cloud.Opening, string, error) {
	o := &cloud.Opening{ID: b.OpeningID, BusinessID: w.device.BusinessID, DeviceID: w.device.ID, Kind: b.Kind,
		Requester: cloud.Requester{Type: b.Who}, State: cloud.OpeningRunning, RequestedAt: r.OccurredAt}
	if b.Kind == wire.OpenStaff {
		member, err := w.staffOf(b.CodeNumber)
		if err != nil {
			return nil, "", err
		}
		if member.ID != 0 {
			o.Requester.ID, o.Requester.Name = strconv.FormatInt(int64(member.ID), 10), member.Name
		}
	}
	var d *cloud.Delivery
	if b.DeliveryRef != "" {
		var err error
		if d, err = w.deliveryByNumber(b.DeliveryRef); err != nil {
			return nil, "", err
		}
		if d == nil || d.DeviceID != w.device.ID {
			return nil, foreign, nil
		}
		o.DeliveryID = d.ID
		if d.IsOutgoing() && o.Requester.Type == byCourier && b.Kind.IsDeposit() { // whose code it is
			o.Requester.Type = bySender
		}
	}
	for _, n := range b.Doors {
		c, err := w.cell(n)
		if err != nil {
			return nil, "", err
		}
		if c == nil {
			return nil, foreign, nil
		}
		if b.Kind == wire.OpenReassign && d != nil {
			refs := b.Packages[n]
			if len(b.Packages) > 0 && refs == nil {
				refs = []string{}
			}
			if err := w.takeOver(d, c, refs); err != nil {
				return nil, "", err
			}
		}
		od := cloud.OpeningDoor{Door: n, GridID: c.GridID, Status: "unknown"}
		if d != nil {
			od.Packages = packagesIn(d, c.GridID)
		}
		o.Doors = append(o.Doors, od)
	}
	w.openings[o.ID] = o
	return o, "", w.useQRCode(r, o, b.PassID)
}

// packagesIn are the packages that lie in a compartment or are to go there.
func packagesIn(d *cloud.Delivery, g cloud.GridID) []string {
	return packagesOf(d, g, func(p cloud.Package) bool {
		return p.Status != cloud.PackageFailed && p.Status != cloud.PackagePickedUp
	})
}

// lying are the numbers of a delivery's packages that were deposited in a compartment and
// have not left it.
func lying(d *cloud.Delivery, g cloud.GridID) []string {
	return packagesOf(d, g, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment })
}

// packagesOf are the numbers of a compartment's packages of a kind.
func packagesOf(d *cloud.Delivery, g cloud.GridID, is func(cloud.Package) bool) []string {
	var out []string
	for _, p := range d.Packages {
		if p.GridID == g && is(p) {
			out = append(out, p.TrackingNumber)
		}
	}
	return out
}

func (w reports) doorOpened(r Occurrence, b wire.DoorOpened) (string, error) {
	if c, err := w.cell(b.Door); err != nil || c == nil {
		return foreign, err
	}
	if r.Present {
		if err := setDoor(w, r, b.Door, "open"); err != nil {
			return "", err
		}
	}
	if b.OpeningID == "" {
		return "", nil
	}
	o, d, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	return "", w.opened(o, d, []uint{b.Door}, r.OccurredAt)
}

func (w reports) doorClosed(r Occurrence, b wire.DoorClosed) (string, error) {
	if c, err := w.cell(b.Door); err != nil || c == nil {
		return foreign, err
	}
	if r.Present {
		if err := setDoor(w, r, b.Door, "closed"); err != nil {
			return "", err
		}
		p := w.present(b.Door)
		if b.Item != wire.ItemUnknown {
			v := b.Item == wire.ItemPresent
			p.Occupied = &v
		}
	}
	if b.OpeningID == "" {
		return "", nil
	}
	o, _, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	for i := range o.Doors {
		if od := &o.Doors[i]; od.Door == b.Door && r.OccurredAt.After(od.ClosedAt) {
			od.Status, od.ClosedAt = "closed", r.OccurredAt
			w.touch(o)
		}
	}
	return "", nil
}

// opened: doors of an opening were seen open. State and event follow, once
// per opening.
func (w reports) opened(o *cloud.Opening, d *cloud.Delivery, doors []uint, at time.Time) error {
	if d != nil && at.Before(announced(d)) {
		at = announced(d) // by a clock that was never set
	}
	for i := range o.Doors {
		od := &o.Doors[i]
		if slices.Contains(doors, od.Door) && (od.OpenedAt.IsZero() || at.Before(od.OpenedAt)) {
			od.OpenedAt = at
			if od.ClosedAt.IsZero() {
				od.Status = "open"
			}
			w.touch(o)
		}
	}
	if o.OpenedAt.IsZero() || at.Before(o.OpenedAt) {
		o.OpenedAt = at
		w.touch(o)
	}
	if o.OpenedSent || d == nil || !o.Kind.IsDeposit() {
		return nil
	}
	o.OpenedSent = true
	w.touch(o)
	if o.Kind == wire.OpenCorrection {
		if d.Status == cloud.DeliveryDelivered {
			d.Status, d.PickupCodeActive = cloud.DeliveryCorrecting, false
			d.Corrections++
			for i := range d.Packages {
				if p := &d.Packages[i]; holds(o, p.TrackingNumber) && p.Status == cloud.PackageInCompartment {
					p.Status = cloud.PackageCorrecting
				}
			}
			w.touch(d)
			return w.s.addDeliveryEvent(w.v, &w.ch, EventCorrectionReopened, at, *d, o, nil)
		}
		return nil
	}
	// Another try after a failure was reported, which begins with its opening: a door may be
	// seen open later than that. A courier whose cabinet did not know
	// of it yet may bring any of the packages: they have no compartments any more.
	again := d.Status == cloud.DeliveryFailed && !o.RequestedAt.Before(d.FailedAt) && !at.Before(d.FailedAt)
	free := again && !slices.ContainsFunc(o.Doors, func(od cloud.OpeningDoor) bool { return len(od.Packages) > 0 })
	if d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened && !again {
		return nil // decided otherwise meanwhile; a settlement would still stand
	}
	d.Status, d.PickupAssigned, d.FailedAt = cloud.DeliveryDoorsOpened, true, time.Time{}
	// A report of a failure or a cancellation that waits for the cabinet's answer
	// stays: the doors opened before it.
	pending := !again && (d.FailureCode != "" || d.CancelledBy != "")
	if !pending {
		d.FailureCode = ""
	}
	if d.DoorsOpenedAt.IsZero() {
		d.DoorsOpenedAt = at
	}
	for i := range d.Packages {
		if p := &d.Packages[i]; free || holds(o, p.TrackingNumber) {
			p.Status = cloud.PackageAwaitingDeposit
			if !pending {
				p.FailureCode = ""
			}
			w.toOrder(cloud.LockerOpened, d, p, cloud.Moment{At: at})
		}
	}
	w.touch(d)
	return w.s.addDeliveryEvent(w.v, &w.ch, EventDoorsOpened, at, *d, o, nil)
}

// settled: the cabinet confirmed a deposit. Its word is fact.
func (w reports) settled(r Occurrence, b wire.OpeningSettled) (string, error) {
	o, d, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	if d == nil {
		return badBody, nil
	}
	overAt(w.rows, r, o)
	closed, openedAt := settleTimes(r, b)
	if o.Ended() {
		return "", w.settledAgain(r, o, d, b)
	}
	var seen []uint
	for _, sd := range b.Doors {
		if sd.OpenedAt != 0 {
			seen = append(seen, sd.Door)
		}
	}
	if len(seen) > 0 {
		if err := w.opened(o, d, seen, openedAt); err != nil {
			return "", err
		}
	}
	// A record without a clock is placed as early as it can be: its close, a little
	// earlier still, came after the announcement and the opening all the same.
	if r.Approximate {
		closed = closed.notBefore(announced(d)).notBefore(o.OpenedAt)
	}
	closedAt := closed.OccurredAt
	for i := range o.Doors {
		o.Doors[i].Status = "closed"
		if o.Doors[i].ClosedAt.IsZero() && slices.Contains(seen, o.Doors[i].Door) {
			o.Doors[i].ClosedAt = closedAt
		}
		if p := w.present(o.Doors[i].Door); r.Present && (p.DoorStatus != cloud.DoorJammed || slices.Contains(seen, o.Doors[i].Door)) {
			if err := setDoor(w, r, o.Doors[i].Door, "closed"); err != nil {
				return "", err
			}
		}
	}
	o.State, o.ConfirmedBy, o.EndedAt = cloud.OpeningSettled, b.ConfirmedBy, r.OccurredAt
	w.touch(o)
	return "", w.deposit(r, o, d, b, closed)
}

// settleTimes are the last closing of a settlement, as an occurrence of its own,
// and the first opening, moved from the device's clock to the placed one. A close
// that was not seen lies between its bounds, so the last of all lies between the
// latest of the lower ones and the latest of the upper ones.
func settleTimes(r Occurrence, b wire.OpeningSettled) (closed Occurrence, openedAt time.Time) {
	closed, openedAt = r, r.OccurredAt
	var last, after, before, first int64
	for _, d := range b.Doors {
		last = max(last, d.ClosedAt)
		lower, upper := d.ClosedAt, d.ClosedAt
		if d.ClosedAfter != 0 && d.ClosedBefore != 0 && d.ClosedAfter <= d.ClosedBefore {
			lower, upper = d.ClosedAfter, d.ClosedBefore
		}
		after, before = max(after, lower), max(before, upper)
		if d.OpenedAt != 0 && (first == 0 || d.OpenedAt < first) {
			first = d.OpenedAt
		}
	}
	if last != 0 && last <= r.At {
		closed = r.at(last)
		if after < before && before <= r.At {
			closed.Earliest, closed.Latest = r.at(after).lower(), r.at(before).upper()
		}
	}
	if first != 0 && first <= r.At {
		openedAt = r.OccurredAt.Add(-time.Duration(r.At - first))
	}
	return closed, openedAt
}

// at is the occurrence moved to an earlier moment of the device's clock.
func (r Occurrence) at(clock int64) Occurrence {
	back := -time.Duration(r.At - clock)
	r.OccurredAt = r.OccurredAt.Add(back)
	if !r.Earliest.IsZero() {
		r.Earliest = r.Earliest.Add(back)
	}
	if !r.Latest.IsZero() {
		r.Latest = r.Latest.Add(back)
	}
	return r
}

// announced is the first moment after a delivery was announced, in the resolution
// of the store: nothing happened to it at a cabinet before.
func announced(d *cloud.Delivery) time.Time {
	return d.CreatedAt.Truncate(time.Millisecond).Add(time.Millisecond)
}

// notBefore is the occurrence, or one at t when that is later.
func (r Occurrence) notBefore(t time.Time) Occurrence {
	if r.OccurredAt.Before(t) {
		r.OccurredAt = t
	}
	if r.Earliest.Before(t) {
		r.Earliest = t
	}
	if !r.Latest.IsZero() && r.Latest.Before(t) {
		r.Latest = t
	}
	return r
}

// lower and upper bound an occurrence's moment; one that was seen is both, and
// zero is a bound that is not known.
func (r Occurrence) lower() time.Time {
	if r.Approximate {
		return r.Earliest
	}
	return r.OccurredAt
}

func (r Occurrence) upper() time.Time {
	if r.Approximate {
		return r.Latest
	}
	return r.OccurredAt
}

// settledAgain: the opening has its end already. A confirmation by partner or
// staff keeps the cabinet's record as evidence; where the record says
// otherwise, staff look.
func (w reports) settledAgain(r Occurrence, o *cloud.Opening, d *cloud.Delivery, b wire.OpeningSettled) error {
	doubtful, door := o.State != cloud.OpeningSettled, o.Doors[0].Door
	for _, sp := range b.Packages {
		if sp.Outcome != wire.Deposited {
			doubtful, door = true, sp.Door
		}
		p := findPackage(d, sp.Ref)
		if p == nil || p.Status != cloud.PackageFailed || sp.Outcome != wire.Deposited {
			continue
		}
		// Left out of the confirmation, and the cabinet holds it for deposited.
		doubtful, door = true, sp.Door
		c, err := w.cell(sp.Door)
		if err != nil {
			return err
		}
		if c == nil || c.DeliveryID != 0 || c.State != cloud.GridFree && c.State != cloud.GridBlocked {
			continue
		}
		c.DeliveryID = d.ID
		if c.State == cloud.GridFree { // one that is blocked stays so
			c.State = cloud.GridOccupied
		}
		w.touch(c)
	}
	w.audit(r, "deposit_evidence", o.ID, fmt.Sprintf(`{"confirmed_by":%q,"kept":%q}`, b.ConfirmedBy, o.ConfirmedBy))
	if !doubtful {
		return nil
	}
	return w.raise(r, "evidence:"+o.ID, wire.ExDepositUnverified, wire.SeverityMedium, d, door, "the cabinet settled it differently afterwards")
}

// deposit applies a settlement's packages. closed is its last closing.
func (w *handling) deposit(r Occurrence, o *cloud.Opening, d *cloud.Delivery, b wire.OpeningSettled, closed Occurrence) error {
	at := closed.OccurredAt
	first := d.DepositedAt.IsZero()
	failedAt := d.FailedAt
	gaveUp := d.Status == cloud.DeliveryCancelled || d.Status == cloud.DeliveryExpired && first || d.Status == cloud.DeliveryFailed
	taken := d.Status == cloud.DeliveryPickedUp
	reported := !gaveUp && d.FailureCode != "" // as failed, and the cabinet did not answer yet
	unopened := false                          // a door that swung after its opening had been reported as failed
	var deposited, failed []*cloud.Package
	lay := map[*cloud.Package]bool{} // those that had been settled before
	for _, sp := range b.Packages {
		p := findPackage(d, sp.Ref)
		c, err := w.cell(sp.Door)
		if err != nil {
			return err
		}
		if p == nil || c == nil {
			continue // a package the partner took back meanwhile
		}
		w.touch(c)
		switch {
		case sp.Outcome == wire.Deposited && p.Status == cloud.PackageFailed && !gaveUp:
			// Reported as failed while the doors were open: a door tells nothing of
			// single packages.
			c.State, c.DeliveryID = cloud.GridOccupied, d.ID
			p.GridID = 0
			failed = append(failed, p)
			if err := w.notIn(r, d, p); err != nil {
				return err
			}
		case sp.Outcome == wire.Deposited:
			lay[p] = p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting
			p.Status, p.GridID, p.FailureCode = cloud.PackageInCompartment, c.GridID, ""
			deposited = append(deposited, p)
			unopened = unopened || slices.ContainsFunc(o.Doors, func(od cloud.OpeningDoor) bool { return od.Door == sp.Door && od.Error == wire.DoorOpenFailed })
			c.State, c.DeliveryID = cloud.GridOccupied, d.ID
			if err := w.order(r, d, p, c, "stored", at); err != nil {
				return err
			}
			if err := w.doubtCleared(closed, d, c); err != nil {
				return err
			}
		case sp.Outcome == wire.Unverified:
			c.State, c.DeliveryID = cloud.GridOccupied, d.ID
			p.GridID = c.GridID
			if err := w.order(r, d, p, c, "unverified", time.Time{}); err != nil {
				return err
			}
		default:
			p.Status, p.FailureCode, p.GridID = cloud.PackageFailed, sp.FailureCode, 0
			failed = append(failed, p)
			if err := w.notIn(r, d, p); err != nil {
				return err
			}
		}
	}
	if err := w.leaveDoors(d, b); err != nil {
		return err
	}
	w.touch(d)
	// What lies in compartments that a correction left closed stays deposited.
	inside := d.Status == cloud.DeliveryCorrecting && len(failed) > 0 &&
		slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.Status == cloud.PackageInCompartment })
	if len(deposited) == 0 && !inside {
		if d.Status == cloud.DeliveryCorrecting && len(failed) > 0 {
			return w.takenOut(r, o, d)
		}
		return nil // stays as it is; the cabinet's exception tells the rest
	}
	if !taken {
		d.Status, d.PickupCodeActive, d.ConfirmedBy = cloud.DeliveryDelivered, !d.IsOutgoing(), b.ConfirmedBy
		d.CancelledAt, d.FailedAt, d.ExpiredAt, d.FailureCode, d.CancelReason, d.CancelledBy, d.ExpiredKind = time.Time{}, time.Time{}, time.Time{}, "", "", "", ""
	}
	d.PickupAssigned = true
	if first {
		d.DepositedAt, d.DueAt = at, at.Add(d.CollectWithin)
		d.DepositedEarliest, d.DepositedLatest = closed.Earliest, closed.Latest
	}
	if !taken {
		if err := w.activate(d); err != nil {
			return err
		}
	}
	for _, p := range deposited {
		if p.OrderID == 0 && !first && lay[p] {
			continue // in the timeline already; an order knows by itself
		}
		if err := w.takeBackFailure(p, failedAt, at); err != nil {
			return err
		}
		if err := w.addPackageEvent(closed, d, p, depositedCode(*d)); err != nil {
			return err
		}
	}
	if err := w.s.addDeliveryEvent(w.v, &w.ch, EventDelivered, at, *d, o, nil); err != nil {
		return err
	}
	if first && !taken && !d.IsOutgoing() {
		if err := w.remindLater(d); err != nil {
			return err
		}
		if err := w.notifyRecipient(d, cloud.NotifyParcelWaiting); err != nil {
			return err
		}
	}
	if gaveUp || reported || unopened {
		detail := "deposited after the delivery had been given up"
		switch {
		case reported:
			detail = "deposited after the delivery had been reported as failed"
		case !gaveUp:
			detail = "deposited behind a door that had been reported as not opened"
		}
		if err := w.raise(r, "late:"+o.ID, wire.ExDepositUnverified, wire.SeverityLow, d, o.Doors[0].Door, detail); err != nil {
			return err
		}
	}
	if len(failed) == 0 {
		return nil
	}
	for _, p := range failed {
		if err := w.trackLoss(r, o, d, p); err != nil {
			return err
		}
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventDeliveryFailed, r.OccurredAt, *d, o, nil)
}

// leaveDoors lets go of the compartments of a settlement in which none of its
// packages was left: blocked where the door did not open, free otherwise, but
// for one where a sensor sees something.
func (w *handling) leaveDoors(d *cloud.Delivery, b wire.OpeningSettled) error {
	for _, sp := range b.Packages {
		c, err := w.cell(sp.Door)
		if err != nil {
			return err
		}
		if sp.Outcome != wire.Failed || c == nil {
			continue
		}
		if sp.FailureCode == doorNotOpened {
			w.blockCell(c, d.ID)
			continue
		}
		if c.DeliveryID != d.ID || slices.ContainsFunc(b.Packages, func(x wire.SettledPackage) bool { return x.Door == sp.Door && x.Outcome != wire.Failed }) {
			continue
		}
		if c.Occupied != nil && *c.Occupied {
			c.State = cloud.GridOccupied // the cabinet's exception tells
			continue
		}
		c.State, c.DeliveryID = cloud.GridFree, 0
	}
	return w.releaseSpare(d)
}

func findPackage(d *cloud.Delivery, number string) *cloud.Package {
	for i := range d.Packages {
		if d.Packages[i].TrackingNumber == number {
			return &d.Packages[i]
		}
	}
	return nil
}

// blockCell takes a compartment whose door did not open out of use.
func (w *handling) blockCell(c *cloud.Compartment, d cloud.DeliveryID) {
	if c.DeliveryID == d {
		c.DeliveryID = 0
	}
	c.State, c.BlockReason = cloud.GridBlocked, wire.DoorOpenFailed
	w.touch(c)
}

// order keeps the registry row of a package that rests in the device.
func (w *handling) order(r Occurrence, d *cloud.Delivery, p *cloud.Package, c *cloud.Compartment, status string, storedAt time.Time) error {
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	var row *cloud.DeviceOrder
	for _, o := range rows {
		if o.Tracking == p.TrackingNumber && o.EndedAt.IsZero() {
			row = o
		}
	}
	if row == nil {
		id, err := w.v.NewID(cloud.DeviceOrderIDs)
		if err != nil {
			return err
		}
		row = &cloud.DeviceOrder{ID: cloud.DeviceOrderID(id), BusinessID: d.BusinessID, DeviceID: d.DeviceID, Kind: orderKinds[d.Purpose], DeliveryID: d.ID,
			Tracking: p.TrackingNumber, Reference: d.Reference}
		w.orders[d.ID] = append(rows, row)
	}
	row.Status, row.GridCode, row.NextActor = status, c.GridCode, "operator"
	if status == "unverified" { // the cabinet tells of the doubt first
		if err := w.linkDoubts(row); err != nil {
			return err
		}
	}
	if status == "stored" {
		row.NextActor = nextActor(*d)
		if row.StoredAt.IsZero() {
			row.StoredAt, row.DueAt = storedAt, storedAt.Add(d.CollectWithin)
		}
	}
	w.touch(row)
	return nil
}

// linkDoubts links open exceptions about the delivery of a row, at its compartment, to it.
func (w *handling) linkDoubts(row *cloud.DeviceOrder) error {
	open, err := w.openExceptions()
	for _, e := range open {
		if e.DeviceOrderID == 0 && e.DeliveryID == row.DeliveryID && e.GridCode == row.GridCode {
			e.DeviceOrderID = row.ID
			w.touch(e)
		}
	}
	return err
}

// ended: an opening that settled nothing.
func (w reports) ended(r Occurrence, b wire.OpeningEnded) (string, error) {
	o, d, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	overAt(w.rows, r, o)
	if o.Ended() {
		if o.State == cloud.OpeningSettled && d != nil {
			return "", w.raise(r, "evidence:"+o.ID, wire.ExDepositUnverified, wire.SeverityMedium, d, o.Doors[0].Door, "the cabinet ended it as "+b.Reason)
		}
		return "", nil
	}
	o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, b.Reason, r.OccurredAt
	w.touch(o)
	if b.Reason == wire.EndOpenFailed {
		if err := stayedShut(w, r, o); err != nil {
			return "", err
		}
	}
	if d == nil || !o.Kind.IsDeposit() {
		return "", nil
	}
	if o.Kind == wire.OpenCorrection {
		return "", w.notCorrected(r, o, d)
	}
	switch b.Reason {
	case wire.EndOpenFailed:
		return "", w.openFailed(r, o, d)
	case wire.EndDepositUnverified:
		return "", w.unverified(r, o, d)
	case wire.EndCancelled:
		return "", w.freeCells(o, d)
	}
	return "", nil
}

// setDoor sets the status of a door that was open, whatever was said of it before.
func setDoor(w reports, r Occurrence, door uint, status string) error {
	p := w.present(door)
	was := p.DoorStatus
	if p.DoorStatus = status; was != cloud.DoorJammed {
		return nil
	}
	return keepJammed(w.handling, r.OccurredAt, nil)
}

// stayedShut: no door of an opening opened, whomever it was for. Staff are asked to look at the
// locks until the doors have opened again.
func stayedShut(w reports, r Occurrence, o *cloud.Opening) error {
	for i := range o.Doors {
		o.Doors[i].Status, o.Doors[i].Error = "closed", wire.DoorOpenFailed
		if r.Present {
			w.present(o.Doors[i].Door).DoorStatus = cloud.DoorJammed
		}
	}
	if !r.Present {
		return nil
	}
	return keepJammed(w.handling, r.OccurredAt, nil)
}

// keepJammed keeps the device's exception with all doors that stayed shut when they were last to
// open, each with the time since when, and closes it with the last of them. opened are doors that
// are known to have opened since.
func keepJammed(w *handling, at time.Time, opened map[uint]bool) error {
	before, err := newestFault(w, cloud.DevDoorShut)
	if err != nil {
		return err
	}
	since := map[string]time.Time{}
	for _, d := range cloud.ShutDoors(before.Detail) {
		since[d.Name] = d.Since
	}
	return keepDoors(w, cloud.DevDoorShut, at, func(c *cloud.Compartment) string {
		status := c.DoorStatus
		if p := w.presents[c.Door]; p != nil {
			status = p.DoorStatus
		}
		if status != cloud.DoorJammed || opened[c.Door] {
			return ""
		}
		d := cloud.ShutDoor{Name: c.Name(), Since: since[c.Name()]}
		if d.Since.IsZero() {
			d.Since = at
		}
		return d.String()
	})
}

// openFailed: no door opened. The compartments are blocked, and packages that were
// meant for them are moved; the delivery fails only when no others fit.
func (w reports) openFailed(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	var failed []cloud.GridID // but for those that may hold a parcel since an earlier opening: the cabinet keeps them too
	for i := range o.Doors {
		c, err := w.cell(o.Doors[i].Door)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if c.State == cloud.GridOccupied && c.DeliveryID == d.ID {
			continue
		}
		failed = append(failed, c.GridID)
		w.blockCell(c, d.ID)
	}
	var moved []move
	for i := range d.Packages {
		p := &d.Packages[i]
		if !holds(o, p.TrackingNumber) || p.GridID != 0 && !slices.Contains(failed, p.GridID) { // reassigned meanwhile
			continue
		}
		c := pick(cells, *p, func(c *cloud.Compartment) bool {
			return !slices.ContainsFunc(moved, func(m move) bool { return m.cell == c })
		})
		if c == nil {
			return w.failed(r, o, d)
		}
		moved = append(moved, move{p, c})
	}
	for _, m := range moved {
		m.pkg.GridID, m.pkg.Status = m.cell.GridID, cloud.PackageCreated
		m.cell.State, m.cell.DeliveryID = cloud.GridReserved, d.ID
		w.touch(m.cell)
	}
	w.touch(d)
	return w.place(d)
}

type move struct {
	pkg  *cloud.Package
	cell *cloud.Compartment
}

// failed ends a delivery that the device cannot take.
func (w *handling) failed(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	if d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened {
		return nil
	}
	d.FailureCode, d.CancelledBy, d.CancelReason = doorNotOpened, "", ""
	for i := range d.Packages {
		d.Packages[i].FailureCode = ""
	}
	if err := w.releaseCells(d); err != nil {
		return err
	}
	return w.fail(r, o, d)
}

// cellAt is the compartment with a grid code. Error: GRID_NOT_FOUND.
func (w *rows) cellAt(grid string) (*cloud.Compartment, error) {
	cells, err := w.allCells()
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(cells, func(x *cloud.Compartment) bool { return x.GridCode == grid }); at >= 0 {
		return cells[at], nil
	}
	return nil, cloud.E(cloud.NotFound, "GRID_NOT_FOUND")
}

// allCells are the device's compartments, as this decision has them.
func (w *rows) allCells() ([]*cloud.Compartment, error) {
	rows, err := w.v.Compartments(w.device.ID)
	if err != nil {
		return nil, err
	}
	out := make([]*cloud.Compartment, 0, len(rows))
	for _, row := range rows {
		c, err := read(w.cells, row.Door, func() (cloud.Compartment, error) { return row, nil })
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// freeCells lets go of the compartments of a cancelled opening, but for those
// where something lies inside.
func (w *handling) freeCells(o *cloud.Opening, d *cloud.Delivery) error {
	kept, err := w.takenOver(o, d)
	if err != nil {
		return err
	}
	for _, od := range o.Doors {
		c, err := w.cell(od.Door)
		if err != nil {
			return err
		}
		if c != nil && c.DeliveryID == d.ID && c.State != cloud.GridBlocked && !kept[od.Door] && od.Error != doorKept && (c.Occupied == nil || !*c.Occupied) {
			c.State, c.DeliveryID = cloud.GridFree, 0
			w.touch(c)
		}
	}
	return nil
}

// takenOver are the doors of an ended opening of which another one of its delivery says what
// lies there: one that took them over, and runs, has settled or may have left its parcel there.
func (w *handling) takenOver(o *cloud.Opening, d *cloud.Delivery) (map[uint]bool, error) {
	rows, err := w.v.DeliveryOpenings(d.ID)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if _, err := w.opening(row.ID); err != nil {
			return nil, err
		}
	}
	out := map[uint]bool{}
	for _, x := range w.openings {
		if x == nil || x.ID == o.ID || x.DeliveryID != d.ID || !x.Kind.IsDeposit() || x.RequestedAt.Before(o.RequestedAt) || x.Ended() && x.State != cloud.OpeningSettled && x.EndReason != wire.EndDepositUnverified {
			continue
		}
		for _, od := range x.Doors {
			out[od.Door] = true
		}
	}
	return out, nil
}

// releaseCells lets go of everything that is reserved for a delivery. A
// compartment where something may lie stays its own.
func (w *handling) releaseCells(d *cloud.Delivery) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	for _, c := range cells {
		if c.DeliveryID == d.ID && c.State == cloud.GridReserved {
			c.State, c.DeliveryID = cloud.GridFree, 0
			w.touch(c)
		}
	}
	return nil
}

// unverified: no record says whether anything was left inside. A package that was
// collected since then did lie there, and is gone.
func (w *handling) unverified(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	taken := func(number string) bool {
		p := findPackage(d, number)
		return p != nil && p.Status == cloud.PackagePickedUp
	}
	for _, od := range o.Doors {
		c, err := w.cell(od.Door)
		if err != nil {
			return err
		}
		if c == nil || len(od.Packages) > 0 && !slices.ContainsFunc(od.Packages, func(n string) bool { return !taken(n) }) {
			continue
		}
		c.State, c.DeliveryID = cloud.GridOccupied, d.ID
		w.touch(c)
		for _, n := range od.Packages {
			if p := findPackage(d, n); p != nil && !taken(n) {
				if p.GridID != c.GridID && (p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting) {
					continue // another opening has settled it elsewhere
				}
				p.GridID = c.GridID
				w.touch(d)
				if err := w.order(r, d, p, c, "unverified", time.Time{}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pickedUp: the parcels left. Doors are physical: it stands whatever was
// decided meanwhile.
func (w reports) pickedUp(r Occurrence, b wire.PickupCompleted) (string, error) {
	d, err := w.deliveryByNumber(b.DeliveryRef)
	if err != nil {
		return "", err
	}
	if d == nil || d.DeviceID != w.device.ID {
		return foreign, nil
	}
	o, err := w.opening(b.OpeningID)
	if err != nil {
		return "", err
	}
	if o != nil && (o.DeviceID != w.device.ID || o.DeliveryID != d.ID) {
		return foreign, nil
	}
	if o != nil {
		overAt(w.rows, r, o)
		// One that ended with its store alone (StoreLost) went on at a cabinet whose memory
		// outlived the store.
		if o.Ended() && (o.State != cloud.OpeningEnded || o.EndReason != wire.EndDepositUnverified) {
			return "", nil // applied already, under an earlier epoch
		}
		o.State, o.EndReason, o.EndedAt = cloud.OpeningSettled, "", r.OccurredAt
		for i := range o.Doors {
			if !b.StillOpen {
				o.Doors[i].Status = "closed"
			}
		}
		w.touch(o)
	}
	if d.Status == cloud.DeliveryPickedUp {
		return "", w.raise(r, "pickup:"+b.OpeningID, wire.ExItemMissing, wire.SeverityHigh, d, first(b.Doors), "collected once more, by another opening")
	}
	removed, err := w.isRemoved(d)
	if err != nil {
		return "", err
	}
	if removed {
		return "", w.raise(r, "pickup:"+b.OpeningID, wire.ExItemMissing, wire.SeverityHigh, d, first(b.Doors), "collected after it had been removed")
	}
	return "", w.collect(r, o, d, b)
}

func first(doors []uint) uint {
	if len(doors) == 0 {
		return 0
	}
	return doors[0]
}

func (w reports) collect(r Occurrence, o *cloud.Opening, d *cloud.Delivery, b wire.PickupCompleted) error {
	// A record without a clock is placed as early as it can be, a deposit by a person's word
	// as late as that, and a clock may have stepped back between the two: the collection came
	// after the deposit all the same.
	if !d.DepositedAt.IsZero() && (r.Approximate || d.ConfirmedBy.IsStated() || !r.OccurredAt.After(d.DepositedAt)) {
		r = r.notBefore(d.DepositedAt.Add(time.Millisecond))
	}
	for _, n := range b.Doors {
		c, err := w.cell(n)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if err := w.acceptCollected(r, d, c); err != nil {
			return err
		}
		if c.DeliveryID == d.ID { // also where a courier has reported all packages as taken out: no door tells of that
			c.State, c.DeliveryID = cloud.GridFree, 0
			w.touch(c)
		} else if err := w.doubtRemoved(r, d, c, b.OpeningID); err != nil {
			return err
		}
		for i := range d.Packages {
			p := &d.Packages[i]
			if p.GridID != c.GridID || p.Status == cloud.PackageFailed || p.Status == cloud.PackagePickedUp {
				continue // taken back by a courier, it may be
			}
			p.Status = cloud.PackagePickedUp
			if err := w.addPackageEvent(r, d, p, collectedCode(*d)); err != nil {
				return err
			}
			if err := w.endRow(r, d, p, "picked_up", ""); err != nil {
				return err
			}
		}
		if err := w.answerOpened(d, c); err != nil {
			return err
		}
	}
	w.touch(d)
	if len(b.Left) > 0 {
		return w.activate(d) // the rest waits, with its code
	}
	if err := w.closeOverdue(d, "no_action", "device"); err != nil {
		return err
	}
	d.Status, d.PickupCodeActive, d.PickedUpAt = cloud.DeliveryPickedUp, false, r.OccurredAt
	d.PickedUpBy, d.PickedUpMethod = "recipient", "code"
	if b.How == "remote" {
		d.PickedUpMethod = "remote"
	} else if b.How == "qr" {
		d.PickedUpMethod = "qr"
	}
	if d.IsOutgoing() {
		d.PickedUpBy = byCourier
		if err := w.notifySender(d, cloud.NotifyParcelCollected); err != nil {
			return err
		}
	}
	codes, err := w.dropCodes(d, b.ListNumber)
	if err != nil {
		return err
	}
	for _, c := range codes {
		if c.Entry.Op == wire.CodeRevoke && c.Entry.Kind != wire.CodeDelivery && b.CodeNumber != 0 && b.CodeNumber < c.Entry.Number {
			w.audit(r, "pickup_with_former_code", d.Number, fmt.Sprintf(`{"code_number":%d,"list_held":%d}`, b.CodeNumber, b.ListNumber))
		}
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventPickedUp, r.OccurredAt, *d, o, nil)
}

// doubtRemoved raises item_missing for a collection from a compartment in which nothing of the
// delivery was left, since all of it had been removed.
func (w *handling) doubtRemoved(r Occurrence, d *cloud.Delivery, c *cloud.Compartment, opening string) error {
	rows, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	removed := false
	for _, o := range rows {
		if o.GridCode != c.GridCode {
			continue
		}
		if o.EndedAt.IsZero() {
			return nil
		}
		removed = removed || o.Status == "removed" && !o.StoredAt.IsZero()
	}
	if !removed {
		return nil
	}
	return w.raise(r, "pickup:"+opening+":"+c.GridCode, wire.ExItemMissing, wire.SeverityHigh, d, c.Door, "collected after it had been removed")
}

// outcome: what became of a command.
func (w reports) outcome(r Occurrence, b wire.CommandOutcome) (string, error) {
	c, err := w.command(b.CommandID)
	if err != nil {
		return "", err
	}
	if c == nil || c.DeviceID != w.device.ID {
		return foreign, nil
	}
	switch b.Outcome {
	case wire.OutcomeDone, wire.OutcomePartial, wire.OutcomeFailed, wire.OutcomeRefused, wire.OutcomeExpired, wire.OutcomeInterrupted:
	default:
		return badBody, nil
	}
	if c.State.Ended() && c.State != cloud.CommandExpired {
		return "", nil
	}
	c.State, c.Reason, c.Doors, c.EndedAt = cloud.CommandState(b.Outcome), b.Reason, b.Doors, r.OccurredAt
	w.touch(c)
	if c.Kind.IsDiagnosis() {
		if err := w.diagnosed(r, c, b.Digest); err != nil {
			return "", err
		}
	}
	if c.OpeningID == "" {
		return "", nil
	}
	o, d, problem, err := w.own(c.OpeningID)
	if problem != "" || err != nil {
		return problem, err
	}
	if c.Kind == wire.CmdCloseSession {
		return "", w.closedByOrder(r, c, d)
	}
	return "", w.openOutcome(r, c, o, d)
}

func (w reports) openOutcome(r Occurrence, c *cloud.Command, o *cloud.Opening, d *cloud.Delivery) error {
	var body wire.OpenDoors
	if err := wire.Decode(c.Body, &body); err != nil {
		return fmt.Errorf("command %s: %w", c.ID, err)
	}
	var seen []uint
	stuck := false
	for i := range o.Doors {
		od := &o.Doors[i]
		if !slices.Contains(body.Doors, od.Door) {
			continue
		}
		code, bad := c.Doors[od.Door]
		if bad {
			od.Error = code
			w.touch(o)
			if c.State == cloud.CommandPartial && code == wire.DoorOpenFailed && r.Present { // others opened, and the opening goes on
				w.present(od.Door).DoorStatus, stuck = cloud.DoorJammed, true
			}
		} else if c.Kind != wire.CmdChannelTest && (c.State == cloud.CommandDone || c.State == cloud.CommandPartial) {
			seen = append(seen, od.Door)
		}
	}
	if stuck {
		if err := keepJammed(w.handling, r.OccurredAt, nil); err != nil {
			return err
		}
	}
	if len(seen) > 0 {
		return w.opened(o, d, seen, r.OccurredAt)
	}
	if (c.State == cloud.CommandRefused || c.State == cloud.CommandExpired) && o.State == cloud.OpeningRequested {
		o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, string(c.State), r.OccurredAt
		w.touch(o)
	}
	return nil
}

// closedByOrder: the cabinet has answered close_session.
func (w reports) closedByOrder(r Occurrence, c *cloud.Command, d *cloud.Delivery) error {
	var body wire.CloseSession
	if err := wire.Decode(c.Body, &body); err != nil {
		return fmt.Errorf("command %s: %w", c.ID, err)
	}
	if body.How != wire.CloseCancel || c.State != cloud.CommandDone || d == nil || d.CancelledBy == "" && d.FailureCode == "" {
		return nil
	}
	if d.Status != cloud.DeliveryDoorsOpened && d.Status != cloud.DeliveryCreated {
		return nil // the deposit came first
	}
	return w.givenUp(r, d)
}

// raise opens an exception once per source.
func (w *handling) raise(r Occurrence, source, typ, severity string, d *cloud.Delivery, door uint, note string) error {
	e, err := w.exception(source)
	if err != nil || e != nil {
		return err
	}
	id, err := w.v.NewID(cloud.ExceptionIDs)
	if err != nil {
		return err
	}
	e = &cloud.Exception{ID: cloud.ExceptionID(id), BusinessID: w.device.BusinessID, DeviceID: w.device.ID, Source: source, Type: typ, Severity: severity,
		Status: "open", Note: note, OpenedAt: r.OccurredAt}
	c, err := w.cell(door)
	if err != nil {
		return err
	}
	if c != nil {
		e.GridCode = c.GridCode
		if d == nil && c.DeliveryID != 0 {
			if d, err = w.delivery(c.DeliveryID); err != nil {
				return err
			}
		}
	}
	if d != nil {
		e.DeliveryID = d.ID
		orders, err := w.deviceOrders(d.ID)
		if err != nil {
			return err
		}
		for _, o := range orders {
			if o.GridCode == e.GridCode {
				e.DeviceOrderID = o.ID
			}
		}
	}
	w.exceptions[source] = e
	w.touch(e)
	return nil
}

func (w reports) exceptionOpened(r Occurrence, b wire.Exception) (string, error) {
	switch b.Type {
	case wire.ExDoorLeftOpen, wire.ExDepositUnverified, wire.ExItemMissing:
	default:
		return badBody, nil
	}
	if b.ID == "" || len(b.ID) > 64 {
		return badBody, nil
	}
	if b.Type == wire.ExDepositUnverified {
		if err := w.keepBox(b.Door); err != nil {
			return "", err
		}
	}
	return "", w.raise(r, b.ID, b.Type, b.Severity, nil, b.Door, b.Evidence)
}

// keepBox: the cabinet says that something may lie behind a door of an opening
// that runs. The compartment is its delivery's, though it was let go meanwhile or
// will be when the opening ends as cancelled.
func (w reports) keepBox(door uint) error {
	c, err := w.cell(door)
	if err != nil || c == nil {
		return err
	}
	rows, err := w.v.RunningOpenings(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		o, err := read(w.openings, row.ID, func() (cloud.Opening, error) { return row, nil })
		if err != nil {
			return err
		}
		i := slices.IndexFunc(o.Doors, func(d cloud.OpeningDoor) bool { return d.Door == door })
		free := c.State == cloud.GridFree && c.DeliveryID == 0
		if i < 0 || o.DeliveryID == 0 || !o.Kind.IsDeposit() || o.Ended() || !free && c.DeliveryID != o.DeliveryID {
			continue
		}
		c.State, c.DeliveryID = cloud.GridOccupied, o.DeliveryID
		o.Doors[i].Error = doorKept
		w.touch(c)
		w.touch(o)
	}
	return nil
}

// doorKept is a door of an opening behind which something may lie.
const doorKept = "deposit_unverified"

// exceptionClosed: the first close wins.
func (w reports) exceptionClosed(r Occurrence, b wire.Exception) (string, error) {
	e, err := w.exception(b.ID)
	if err != nil {
		return "", err
	}
	if e == nil {
		return foreign, nil
	}
	if e.Status != "open" {
		e.Note += "; at the device: " + b.Evidence
	} else {
		e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", b.Evidence, r.OccurredAt, "device"
		if !slices.ContainsFunc(slices.Collect(maps.Values(resolutions)), func(list []string) bool { return slices.Contains(list, b.Evidence) }) {
			e.Resolution, e.Note = noAction, joinNotes(e.Note, b.Evidence)
		}
	}
	w.touch(e)
	return "", nil
}

func (w reports) tamper(r Occurrence, b wire.Tamper) (string, error) {
	w.audit(r, "tamper", b.What, fmt.Sprintf(`{"door":%d,"count":%d}`, b.Door, b.Count))
	return "", nil
}

func (w *rows) audit(r Occurrence, action, target, detail string) {
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: w.device.BusinessID, At: r.OccurredAt, Actor: "device:" + w.device.Code,
		Action: action, Target: target, Detail: detail})
}

// StoreLost: the device begins anew without its old state. Openings that ran on it end
// unverified, and people look.
func (w reports) StoreLost(at time.Time) error {
	// It does not know any more which commands it has taken: none of them may
	// come again.
	commands, err := w.v.OpenCommands(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range commands {
		c, err := read(w.commands, row.ID, func() (cloud.Command, error) { return row, nil })
		if err != nil {
			return err
		}
		if c.State == cloud.CommandAccepted {
			c.State, c.Reason, c.EndedAt = cloud.CommandInterrupted, "store_lost", at
			w.touch(c)
		}
	}
	running, err := w.v.RunningOpenings(w.device.ID)
	if err != nil {
		return err
	}
	slices.SortStableFunc(running, func(a, b cloud.Opening) int { return a.RequestedAt.Compare(b.RequestedAt) })
	var lost []*cloud.Opening
	for _, row := range running {
		o, err := read(w.openings, row.ID, func() (cloud.Opening, error) { return row, nil })
		if err != nil {
			return err
		}
		if o.State != cloud.OpeningRunning {
			continue
		}
		o.State, o.EndReason, o.EndedAt = cloud.OpeningEnded, wire.EndDepositUnverified, at
		w.touch(o)
		if o.DeliveryID == 0 || !o.Kind.IsDeposit() || len(o.Doors) == 0 {
			continue
		}
		d, err := w.delivery(o.DeliveryID)
		if err != nil || d == nil {
			return err
		}
		r := Occurrence{OccurredAt: at}
		if o.Kind == wire.OpenCorrection {
			err = w.notCorrected(r, o, d)
		} else {
			lost = append(lost, o)
			err = w.unverified(r, o, d)
		}
		if err != nil {
			return err
		}
		if err := w.raise(r, "store:"+o.ID, wire.ExDepositUnverified, wire.SeverityMedium, d, o.Doors[0].Door, "the cabinet lost its store during the opening"); err != nil {
			return err
		}
	}
	for _, o := range lost { // now that it is known where each package is to go
		if err := w.blockUnlisted(o); err != nil {
			return err
		}
	}
	return nil
}

// blockUnlisted: a deposit was open while the cabinet lost its store. The whole list
// names the compartments that its packages are to go to, and the cabinet keeps
// them. One that the cabinet had chosen by itself, or that another one has replaced,
// is in no list: it is blocked, at the cabinet as well, until staff have looked.
func (w reports) blockUnlisted(o *cloud.Opening) error {
	d, err := w.delivery(o.DeliveryID)
	if err != nil || d == nil {
		return err
	}
	for _, od := range o.Doors {
		c, err := w.cell(od.Door)
		if err != nil {
			return err
		}
		if c == nil || len(packagesIn(d, c.GridID)) > 0 {
			continue
		}
		c.State, c.BlockReason, c.DeliveryID = cloud.GridBlocked, wire.ExDepositUnverified, 0
		if _, err := w.send("", wire.CmdBlock, wire.DoorReason{Door: c.Door, Reason: wire.ExDepositUnverified}, []uint{c.Door}, longCommandLife); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a package belongs to one of the opening's doors.
func holds(o *cloud.Opening, number string) bool {
	return slices.ContainsFunc(o.Doors, func(d cloud.OpeningDoor) bool { return slices.Contains(d.Packages, number) })
}
