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
	// Set puts what the other feature keeps in the order into it, after the move;
	// nil puts nothing. It may run more than once.
	Set func(*cloud.Order)
	// Quiet says that whoever moves the order tells the drivers of it.
	Quiet bool
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
	var all works
	for _, in := range list {
		w, err := all.find(v, in.BusinessID, in.OrderID, func(o cloud.Order) *work { return s.work(v, c, now, o) })
		if errors.Is(err, cloud.ErrNotFound) {
			return nil, cloud.E(cloud.NotFound, codeNotFound)
		}
		if err != nil {
			return nil, err
		}
		if err := w.step(in); err != nil {
			return nil, err
		}
	}
	return all.finish()
}

// works are decisions about several orders that are written together.
type works []*work

// find is the decision about an order, which begins when there is none yet.
func (all *works) find(v cloud.View, b cloud.BusinessID, id cloud.OrderID, begin func(cloud.Order) *work) (*work, error) {
	for _, w := range *all {
		if w.o.ID == id && w.o.BusinessID == b {
			return w, nil
		}
	}
	o, err := v.Order(b, id)
	if err != nil {
		return nil, err
	}
	w := begin(o)
	*all = append(*all, w)
	return w, nil
}

func (all works) finish() (*cloud.Changes, error) {
	ch := &cloud.Changes{}
	for _, w := range all {
		if err := w.finish(); err != nil {
			return nil, err
		}
		ch.Join(&w.ch)
	}
	return ch, nil
}

// step is one of Steps.
func (w *work) step(in MoveInput) error {
	if (in.To == cloud.OrderPartlyDelivered) != (len(in.Delivered) > 0) || !someOf(w.o, in.Delivered) {
		return conflict(w.o)
	}
	w.quiet = w.quiet || in.Quiet
	w.at, w.only = in.At, in.Packages != nil
	if w.at.IsZero() || w.at.After(w.now) {
		w.at = w.now
	}
	defer func() { w.at, w.only = w.now, false }()
	if in.To == 0 {
		w.did(in.Operation, w.o.Status, in.Note, nil)
	} else if err := w.witnessed(in); err != nil {
		return err
	}
	w.o.Packages = slices.Clone(w.o.Packages)
	for i, p := range w.o.Packages {
		if slices.Contains(in.Delivered, p.ID) {
			w.o.Packages[i].Status = cloud.OrderPackageDelivered
		}
		if status, ok := in.Packages[p.ID]; ok {
			w.o.Packages[i].Status = status
		}
	}
	if in.To == cloud.OrderReceived && w.o.Type == cloud.PickupOrder && in.Trigger != ExecuteOutcome {
		if err := w.move(cloud.OrderDelivered, Complete, 1005, "", ""); err != nil {
			return err
		}
	}
	if in.Set != nil {
		in.Set(&w.o)
	}
	return nil
}

// witnessed is a move with what was seen of it.
func (w *work) witnessed(in MoveInput) error {
	l, err := w.timeline()
	if err != nil {
		return err
	}
	told := len(l.fresh)
	if err := w.move(in.To, in.Trigger, in.Operation, in.Reason, in.Note); err != nil {
		return err
	}
	if len(l.fresh) > told {
		l.witness(in)
	}
	return nil
}

// someOf reports whether ids are packages of an order, but not all of them.
func someOf(o cloud.Order, ids []cloud.PackageID) bool {
	n := 0
	for _, p := range o.Packages {
		if slices.Contains(ids, p.ID) {
			n++
		}
	}
	return n == len(ids) && (n == 0 || n < len(o.Packages))
}

// move moves the order by the table: status, packages, times, timeline,
// operation, and what becomes of its interception. Error:
// ORDER_STATUS_CONFLICT.
func (w *work) move(to cloud.OrderStatus, t Trigger, operation int, reason, note string) error {
	stop, err := w.interception()
	if err != nil {
		return err
	}
	var before cloud.OrderStatus
	if stop != nil && stop.InForce() {
		before = stop.Before
	}
	m := rowOf(w.o, to, t, before)
	if m == nil {
		return conflict(w.o)
	}
	l, err := w.timeline()
	if err != nil {
		return err
	}
	if code := m.tells(w.o, l, to); code != silent {
		if reason == "" && code == to.State().Code {
			reason = to.State().Reason
		}
		l.tell(code, m.source, reason, w.at, w.now)
	}
	if (t == Withdraw || t == InterceptionFailed && to == before) && stop.BeforeCode != "" {
		l.tell(stop.BeforeCode, m.source, "", w.at, w.now)
	}
	w.trigger, w.reason = t, cmp.Or(reason, to.State().Reason)
	w.enter(w.resumed(to), operation, note)
	w.trigger, w.reason = "", ""
	w.unstop(t)
	return nil
}

// resumed is the status in which an order that was stopped comes back to its
// route: the route may have got a driver meanwhile, or lost the one it had.
func (w *work) resumed(to cloud.OrderStatus) cloud.OrderStatus {
	p := w.o.Paused
	switch {
	case w.o.Status != cloud.OrderIntercepted || p == nil || p.RouteID == 0 || !slices.Contains(planned, to):
		return to
	case p.DriverID == 0:
		return cloud.OrderRoutePlanned
	case to == cloud.OrderRoutePlanned:
		return cloud.OrderDriverAssigned
	}
	return to
}

// tells is the code that a move writes, or silent.
func (m *move) tells(o cloud.Order, l *line, to cloud.OrderStatus) otep.Code {
	switch {
	case m.trigger == Withdraw || m.trigger == InterceptionFailed && to != cloud.OrderDelivered:
		return silent // what was current before comes again
	case m.code != "":
		return m.code
	case m.trigger == ThirdPartyTracking && to.State().Terminal && l.universal() == to.State().Code:
		return silent // whoever carries it has told it itself
	case to == cloud.OrderDriverAccepted && !l.bookable():
		return silent
	case to == cloud.OrderHandedOver && otep.Reached(l.events):
		return otep.PackageOutbound
	}
	return to.State().Code
}

// enter puts the order into a status.
func (w *work) enter(to cloud.OrderStatus, operation int, note string) {
	from, before := w.o.Status, w.o.Before
	switch held := slices.Contains(planned, to) || to == cloud.OrderHandedOver; {
	case to == cloud.OrderIntercepted || from == cloud.OrderIntercepted && held:
	case !held:
		w.o.Before = 0
	case !slices.Contains(planned, from):
		w.o.Before = from
	}
	switch to {
	case cloud.OrderPickedUp, cloud.OrderReceived, cloud.OrderArrivalScan, cloud.OrderInTransit, cloud.OrderOutbound, cloud.OrderOutForDelivery, cloud.OrderInLocker:
		w.o.Collected = true
	case cloud.OrderDelivered:
		w.o.Collected, w.o.DeliveredAt = true, w.at
	case cloud.OrderCancelled:
		w.o.CancelledAt = w.now
	}
	if from.State().Terminal && !to.State().Terminal && w.o.AssignmentID == 0 {
		w.o.BrokerID = 0 // who completed it has no part in what comes now
	}
	if to == cloud.OrderHandedOver {
		w.o.SelfDelivery = false
	} else if from == cloud.OrderHandedOver && slices.Contains(resting, to) {
		w.o.SelfDelivery = true // it was given back
	}
	if slices.Contains(attempted, to) && slices.Contains(attempting, from) {
		w.o.Attempts++
	}
	if s, ok := packageStates[to]; ok && !w.only {
		w.o.Packages = slices.Clone(w.o.Packages)
		for i := range w.o.Packages {
			if p := &w.o.Packages[i]; p.Status != cloud.OrderPackageLost && (p.Status != cloud.OrderPackageDelivered || to == cloud.OrderCancelled) {
				p.Status = s
			}
		}
	}
	w.o.Status, w.o.StatusAt = to, w.now
	w.ride(from, to, before)
	w.did(operation, from, note, nil)
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

// unstop ends an interception that the order has got away from.
func (w *work) unstop(t Trigger) {
	i := w.stop
	if i == nil || !i.Open() || t == Intercept || t == Withdraw || t == ExecuteOutcome || t == InterceptionFailed {
		return
	}
	if i.InForce() && w.o.Status != cloud.OrderIntercepted || !i.InForce() && w.o.Status.State().Terminal {
		i.Status, i.FailureReason, i.EndedAt, i.After = cloud.InterceptionFailed, string(t), w.now, w.o.Status
	}
}
