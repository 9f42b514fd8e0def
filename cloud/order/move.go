package order

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// MoveInput is a move that another feature saw happen.
type MoveInput struct {
	BusinessID cloud.BusinessID
	OrderID    cloud.OrderID
	To         cloud.OrderStatus // 0: the order stays where it is; only Set and Operation count
	Trigger    Trigger
	Operation  int    // type
	Reason     string // OTEP incident reason
	Note       string
	// Delivered are the packages that were handed over when only some were:
	// required with, and only with, a move to PARTIALLY_DELIVERED.
	Delivered []cloud.PackageID
	// Recipient is who took the goods, Place where it happened: both are kept in
	// the event that the move writes, if it writes one.
	Recipient string
	Place     *otep.Location
	// At is when it happened, the zero time is this moment. Approximate is set when that
	// is not sure; Earliest and Latest bound it, as in cloud.Moment.
	At               time.Time
	Approximate      bool
	Earliest, Latest time.Time
	// Packages are the packages that it happened to, with what they are after it;
	// the others stay as they were. nil: it happened to all of them.
	Packages map[cloud.PackageID]cloud.OrderPackageStatus
	// Source is the OTEP type of who saw what became of Packages; "" when that is no event of theirs.
	Source string
	// Set puts what the other feature keeps in the order into it, after the move;
	// nil puts nothing. It may run more than once.
	Set func(*cloud.Order)
	// Quiet says that the caller that moves the order notifies the drivers of it.
	Quiet bool
	// Noted says that the timeline has the event of the move.
	Noted bool
}

// Move moves an order by the table, on behalf of a driver, a scanner, a cabinet
// or a third party. The caller is who did it and may be anonymous. To go back
// to the status before planning, ask for that status. Errors: ORDER_NOT_FOUND,
// ORDER_STATUS_CONFLICT.
func (s *Service) Move(ctx context.Context, c cloud.Caller, in MoveInput) error {
	return s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) { return s.Steps(v, c, in) })
}

// Steps makes moves inside a decision of another feature and gives what is to be
// written besides. Moves of one order go on from one another; all of them are
// made or none. Errors: those of Move.
func (s *Service) Steps(v cloud.View, c cloud.Caller, list ...MoveInput) (*cloud.Changes, error) {
	now := s.time()
	var all decisions
	for _, in := range list {
		d, err := all.find(v, in.BusinessID, in.OrderID, func(o cloud.Order) *Decision { return s.begin(v, c, now, o) })
		if errors.Is(err, cloud.ErrNotFound) {
			return nil, cloud.E(cloud.NotFound, CodeNotFound)
		}
		if err != nil {
			return nil, err
		}
		if err := d.Step(in); err != nil {
			return nil, err
		}
	}
	return all.finish()
}

// decisions are decisions about several orders that are written together.
type decisions []*Decision

// find is the decision about an order, which begins when there is none yet.
func (all *decisions) find(v cloud.View, b cloud.BusinessID, id cloud.OrderID, begin func(cloud.Order) *Decision) (*Decision, error) {
	for _, d := range *all {
		if d.Order.ID == id && d.Order.BusinessID == b {
			return d, nil
		}
	}
	o, err := v.Order(b, id)
	if err != nil {
		return nil, err
	}
	d := begin(o)
	*all = append(*all, d)
	return d, nil
}

func (all decisions) finish() (*cloud.Changes, error) {
	ch := &cloud.Changes{}
	for _, d := range all {
		if err := d.finish(); err != nil {
			return nil, err
		}
		ch.Join(&d.Changes)
	}
	return ch, nil
}

// Step is one of Steps.
func (d *Decision) Step(in MoveInput) error {
	if (in.To == cloud.OrderPartlyDelivered) != (len(in.Delivered) > 0) || !isProperSubset(d.Order, in.Delivered) {
		return StatusConflict(d.Order)
	}
	d.quiet = d.quiet || in.Quiet
	d.At, d.only, d.apart = in.At, in.Packages != nil, parcelsOf(d.Order, in)
	if d.At.IsZero() || d.At.After(d.Now) {
		d.At = d.Now
	}
	defer func() { d.At, d.only, d.apart = d.Now, false, parcels{} }()
	var l *Timeline
	before := 0
	if in.To != 0 || d.apart.each {
		var err error
		if l, err = d.Timeline(); err != nil {
			return err
		}
		before = len(l.fresh)
	}
	if d.apart.each {
		d.noteParcels(l, in)
	}
	if in.To == 0 {
		d.LogOperation(in.Operation, d.Order.Status, in.Note, nil)
	} else {
		d.noted = in.Noted
		err := d.Move(in.To, in.Trigger, in.Operation, in.Reason, in.Note)
		if d.noted = false; err != nil {
			return err
		}
	}
	if l != nil {
		l.setProof(in, before)
	}
	d.Order.Packages = slices.Clone(d.Order.Packages)
	for i, p := range d.Order.Packages {
		if slices.Contains(in.Delivered, p.ID) {
			d.Order.Packages[i].Status = cloud.OrderPackageDelivered
		}
		if status, ok := in.Packages[p.ID]; ok {
			d.Order.Packages[i].Status = status
		}
	}
	if in.To == cloud.OrderReceived && d.Order.Type == cloud.PickupOrder && in.Trigger != ExecuteOutcome {
		if err := d.Move(cloud.OrderDelivered, Complete, 1005, "", ""); err != nil {
			return err
		}
	}
	if in.Set != nil {
		in.Set(&d.Order)
	}
	return nil
}

// parcels says to which packages of an order a move's events belong, when not to all alike.
type parcels struct {
	each      bool              // those that it is about have an event each
	delivered []cloud.PackageID // handed over with a move to PARTIALLY_DELIVERED
}

// parcelsOf is what a move is about.
func parcelsOf(o cloud.Order, in MoveInput) (out parcels) {
	alike, first := true, cloud.OrderPackageStatus("")
	for _, p := range o.Packages {
		if slices.Contains(in.Delivered, p.ID) && p.Status != cloud.OrderPackageDelivered {
			out.delivered = append(out.delivered, p.ID)
		}
		if IsFinalPackage(p.Status) || p.Status == cloud.OrderPackageReturned {
			continue
		}
		status := in.Packages[p.ID]
		first = cmp.Or(first, status)
		alike = alike && status != "" && status == first
	}
	out.each = in.Source != "" && len(in.Packages) > 0 && len(o.Packages) > 1 && !alike
	return out
}

// note adds the event of a move to the timeline of the order, unless its packages say it.
func (d *Decision) note(l *Timeline, to cloud.OrderStatus, code otep.Code, source, reason string) {
	switch ends := to.State().Terminal || to == cloud.OrderPartlyDelivered; {
	case d.noted:
		return
	case d.apart.each && (!ends || l.Current() == code):
		return
	case !d.apart.each:
		for _, id := range d.apart.delivered {
			l.appendTo(id, otep.Delivered, source, "", d.At, d.Now)
		}
	}
	l.Append(code, source, reason, d.At, d.Now)
}

// packageCodes are the events of packages that came to a status by themselves.
var packageCodes = map[cloud.OrderPackageStatus]otep.Code{cloud.OrderPackageInLocker: otep.AvailableForPickup, cloud.OrderPackageDelivered: otep.Delivered,
	cloud.OrderPackageFailed: otep.DeliveryFailed, cloud.OrderPackageReturned: otep.ReturnToSender, cloud.OrderPackageInTransit: otep.PickedUp}

// noteParcels adds to their timelines what became of single packages of several.
func (d *Decision) noteParcels(l *Timeline, in MoveInput) {
	for _, p := range d.Order.Packages {
		status, ok := in.Packages[p.ID]
		if !ok || status == p.Status {
			continue
		}
		code := packageCodes[status]
		if code == otep.PickedUp && otep.Reached(l.events(p.ID)) {
			code = otep.PackageOutbound
		}
		l.appendTo(p.ID, code, in.Source, in.Reason, d.At, d.Now)
	}
}

// isProperSubset reports whether ids are packages of an order, but not all of them.
func isProperSubset(o cloud.Order, ids []cloud.PackageID) bool {
	n := 0
	for _, p := range o.Packages {
		if slices.Contains(ids, p.ID) {
			n++
		}
	}
	return n == len(ids) && (n == 0 || n < len(o.Packages))
}

// Move moves the order by the table: status, packages, times, timeline,
// operation, and what becomes of its interception. Error:
// ORDER_STATUS_CONFLICT.
func (d *Decision) Move(to cloud.OrderStatus, t Trigger, operation int, reason, note string) error {
	stop, err := d.Interception()
	if err != nil {
		return err
	}
	var before cloud.OrderStatus
	if stop != nil && stop.InForce() {
		before = stop.Before
	}
	m := rowOf(d.Order, to, t, before)
	if m == nil {
		return StatusConflict(d.Order)
	}
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	if code := m.tells(d.Order, l, to); code != silent {
		if reason == "" && code == to.State().Code {
			reason = to.State().Reason
		}
		d.note(l, to, code, m.source, reason)
	}
	if (t == Withdraw || t == InterceptionFailed && to == before) && stop.BeforeCode != "" {
		l.Append(stop.BeforeCode, m.source, "", d.At, d.Now)
	}
	if m.source == otep.SelfDelivery || m.source == otep.Warehouse || t == PutOnRoute || t == AssignDriver || Resting(to) && (t == ExecuteOutcome || t == RemoveFromLocker) {
		giveBack(d, l)
	}
	d.trigger, d.reason = t, cmp.Or(reason, to.State().Reason)
	d.enterStatus(d.resumedStatus(to), operation, note)
	d.trigger, d.reason = "", ""
	d.failInterception(t)
	return nil
}

// giveBack makes an order the business's own again that a carrier took over by its events.
func giveBack(d *Decision, l *Timeline) {
	if l.Shipment.ProviderID != 0 && !d.Order.ThirdPartyOpen {
		l.Shipment.ProviderID, l.Changed, d.Order.SelfDelivery = 0, true, true
	}
}

// resumedStatus is the status in which an order that was stopped comes back to its
// route: the route may have got a driver meanwhile, or lost the one it had.
func (d *Decision) resumedStatus(to cloud.OrderStatus) cloud.OrderStatus {
	p := d.Order.Paused
	switch {
	case d.Order.Status != cloud.OrderIntercepted || p == nil || p.RouteID == 0 || !slices.Contains(planned, to):
		return to
	case p.DriverID == 0:
		return cloud.OrderRoutePlanned
	case to == cloud.OrderRoutePlanned:
		return cloud.OrderDriverAssigned
	}
	return to
}

// tells is the code that a move writes, or silent.
func (m *move) tells(o cloud.Order, l *Timeline, to cloud.OrderStatus) otep.Code {
	switch {
	case m.trigger == Withdraw || m.trigger == InterceptionFailed && to != cloud.OrderDelivered:
		return silent // what was current before comes again
	case m.code != "":
		return m.code
	case (m.trigger == ThirdPartyTracking || m.trigger == InterceptionFailed) && to.State().Terminal && l.universal(0) == to.State().Code:
		return silent // the third party that carries it has reported it itself
	case to == cloud.OrderDriverAccepted && !l.Bookable():
		return silent
	case to == cloud.OrderHandedOver && otep.Reached(l.events(0)):
		return otep.PackageOutbound
	}
	return to.State().Code
}

// enterStatus puts the order into a status.
func (d *Decision) enterStatus(to cloud.OrderStatus, operation int, note string) {
	from, before := d.Order.Status, d.Order.Before
	switch held := slices.Contains(planned, to) || to == cloud.OrderHandedOver; {
	case to == cloud.OrderIntercepted || from == cloud.OrderIntercepted && held:
	case !held:
		d.Order.Before = 0
	case !slices.Contains(planned, from):
		d.Order.Before = from
	}
	switch to {
	case cloud.OrderPickedUp, cloud.OrderReceived, cloud.OrderArrivalScan, cloud.OrderInTransit, cloud.OrderOutbound, cloud.OrderOutForDelivery, cloud.OrderInLocker:
		d.Order.Collected = true
	case cloud.OrderDelivered:
		d.Order.Collected, d.Order.DeliveredAt = true, d.At
	case cloud.OrderCancelled:
		d.Order.CancelledAt = d.Now
	}
	if from.State().Terminal && !to.State().Terminal && d.Order.AssignmentID == 0 {
		d.Order.BrokerID = 0 // who completed it has no part in what comes now
	}
	if to == cloud.OrderHandedOver {
		d.Order.SelfDelivery = false
	} else if from == cloud.OrderHandedOver && Resting(to) && d.trigger != Track {
		d.Order.SelfDelivery = true // it was given back
	}
	if slices.Contains(attempted, to) && slices.Contains(attempting, from) {
		d.Order.Attempts++
	}
	if s, ok := packageStates[to]; ok && !d.only {
		d.Order.Packages = slices.Clone(d.Order.Packages)
		for i := range d.Order.Packages {
			if p := &d.Order.Packages[i]; p.Status != cloud.OrderPackageLost && (p.Status != cloud.OrderPackageDelivered || to == cloud.OrderCancelled) {
				p.Status = s
			}
		}
	}
	d.Order.Status, d.Order.StatusAt = to, d.Now
	linkRoute(d, from, to, before)
	d.LogOperation(operation, from, note, nil)
}

// A move from one of attempting to one of attempted was an attempt to deliver.
var (
	attempting = statuses{cloud.OrderOutForDelivery, cloud.OrderHandedOver, cloud.OrderPartlyDelivered}
	attempted  = statuses{cloud.OrderDelivered, cloud.OrderPartlyDelivered, cloud.OrderDeliveryFailed, cloud.OrderRejected}
)

// packageStates are what becomes of an order's packages with it; those that
// were delivered stay so.
var packageStates = map[cloud.OrderStatus]cloud.OrderPackageStatus{
	cloud.OrderNew: cloud.OrderPackageCreated, cloud.OrderReady: cloud.OrderPackageCreated, cloud.OrderHandedOver: cloud.OrderPackageInTransit,
	cloud.OrderPickedUp: cloud.OrderPackageInTransit, cloud.OrderReceived: cloud.OrderPackageReceived, cloud.OrderArrivalScan: cloud.OrderPackageReceived,
	cloud.OrderInTransit: cloud.OrderPackageInTransit, cloud.OrderOutbound: cloud.OrderPackageInTransit, cloud.OrderOutForDelivery: cloud.OrderPackageOutForDelivery,
	cloud.OrderDelivered: cloud.OrderPackageDelivered, cloud.OrderPartlyDelivered: cloud.OrderPackageFailed, cloud.OrderDeliveryFailed: cloud.OrderPackageFailed,
	cloud.OrderRejected: cloud.OrderPackageReturned, cloud.OrderInLocker: cloud.OrderPackageInLocker, cloud.OrderReturned: cloud.OrderPackageReturned,
	cloud.OrderCancelled: cloud.OrderPackageCancelled,
}

// EndInterception notes that the order's interception failed by a trigger that moved the order.
func (d *Decision) EndInterception(t Trigger) error {
	i, err := d.Interception()
	if err == nil && i != nil {
		i.Status, i.FailureReason, i.EndedAt, i.After = cloud.InterceptionFailed, string(t), d.Now, d.Order.Status
	}
	return err
}

// failInterception ends an interception that the order has got away from.
func (d *Decision) failInterception(t Trigger) {
	i := d.interception
	if i == nil || !i.Open() || t == Intercept || t == Withdraw || t == ExecuteOutcome || t == InterceptionFailed {
		return
	}
	if i.InForce() && d.Order.Status != cloud.OrderIntercepted || !i.InForce() && d.Order.Status.State().Terminal {
		i.Status, i.FailureReason, i.EndedAt, i.After = cloud.InterceptionFailed, string(t), d.Now, d.Order.Status
	}
}
