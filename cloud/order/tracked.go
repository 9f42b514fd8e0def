package order

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Operation types of what providers report (interface 4.5).
const (
	statusTracked = 1005
	custodyTaken  = 8002
)

// tracked are the statuses that follow from where an order's timeline is, while a carrier has the goods.
var tracked = map[otep.Code]cloud.OrderStatus{
	otep.Received: cloud.OrderInTransit, otep.ArrivalScan: cloud.OrderInTransit, otep.InTransit: cloud.OrderInTransit, otep.PackageOutbound: cloud.OrderInTransit,
	otep.OutForDelivery: cloud.OrderOutForDelivery, otep.AvailableForPickup: cloud.OrderOutForDelivery, otep.Delivered: cloud.OrderDelivered,
	otep.DeliveryFailed: cloud.OrderDeliveryFailed, otep.DeliveryRescheduled: cloud.OrderDeliveryRescheduled,
	otep.RejectedByRecipient: cloud.OrderRejected, otep.ReturnToSender: cloud.OrderReturned,
}

// trackedPackages are what packages are at codes that a carrier reports.
var trackedPackages = map[otep.Code]cloud.OrderPackageStatus{
	otep.PickedUp: cloud.OrderPackageInTransit, otep.Received: cloud.OrderPackageReceived, otep.ArrivalScan: cloud.OrderPackageReceived,
	otep.InTransit: cloud.OrderPackageInTransit, otep.PackageOutbound: cloud.OrderPackageInTransit, otep.OutForDelivery: cloud.OrderPackageOutForDelivery,
	otep.AvailableForPickup: cloud.OrderPackageOutForDelivery, otep.Delivered: cloud.OrderPackageDelivered, otep.DeliveryFailed: cloud.OrderPackageFailed,
	otep.DeliveryRescheduled: cloud.OrderPackageFailed, otep.RejectedByRecipient: cloud.OrderPackageReturned, otep.ReturnToSender: cloud.OrderPackageReturned,
}

// Carriers has orders follow what providers say about them.
type Carriers struct{ s *Service }

// CarriersOf is that of a service.
func CarriersOf(s *Service) Carriers { return Carriers{s} }

// FromTracking adds a provider's news to an order's timeline, inside a decision of another feature,
// and moves the order by the table of custody. It gives what is to be written and refuses nothing.
//
// The goods are with their business, a cabinet, or a carrier. Events of the carrier that has them count.
// So do those of a provider while the goods rest with the business, and the first that says that the
// goods were picked up, or anything after that, takes them over. Events of others, and those that
// cannot follow the end of the order, are reports: stored, shown, and counted for nothing.
func (c Carriers) FromTracking(v cloud.View, caller cloud.Caller, news cloud.TrackingNews) (*cloud.Changes, cloud.TrackedOrder, error) {
	o, err := v.Order(news.Shipment.BusinessID, news.Shipment.OrderID)
	if err != nil {
		return nil, cloud.TrackedOrder{}, err
	}
	d := c.s.begin(v, caller, c.s.time(), o)
	d.news = news
	l, err := d.Timeline()
	if err != nil {
		return nil, cloud.TrackedOrder{}, err
	}
	f := follower{d, l, news.By, map[cloud.PackageID]otep.Timeline{}}
	t, err := f.takeNews(news)
	if err != nil {
		return nil, t, err
	}
	if err := d.finish(); err != nil {
		return nil, t, err
	}
	t.OrderID, t.Status, t.Moved = o.ID, d.Order.Status, d.Order.Status != o.Status
	if t.Moved {
		t.Reason = ""
	}
	return &d.Changes, t, nil
}

// about is a decision about the order that a review is about. Error: ORDER_NOT_FOUND.
func (c Carriers) about(v cloud.View, caller cloud.Caller, r cloud.Review, fn func(d *Decision, l *Timeline) error) (*cloud.Changes, error) {
	s, err := v.ShipmentByID(r.ShipmentID)
	if err == nil && (s.OrderID == 0 || s.BusinessID != r.BusinessID) {
		err = cloud.ErrNotFound
	}
	var o cloud.Order
	if err == nil {
		o, err = v.Order(s.BusinessID, s.OrderID)
	}
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, cloud.E(cloud.NotFound, CodeNotFound)
	}
	if err != nil {
		return nil, err
	}
	return c.s.DecideIn(v, caller, o, func(d *Decision) error {
		d.news.Events = []cloud.TimelineEvent{{Event: otep.Event{OccurredAt: otep.Time{Time: r.OccurredAt}}}} // that the timeline is to have
		l, err := d.Timeline()
		if err != nil {
			return err
		}
		return fn(d, l)
	})
}

// Cancel cancels the order that a review is about. Errors: ORDER_NOT_FOUND, ORDER_NOT_CANCELLABLE.
func (c Carriers) Cancel(v cloud.View, caller cloud.Caller, r cloud.Review, note string) (*cloud.Changes, error) {
	return c.about(v, caller, r, func(d *Decision, _ *Timeline) error { return cancelOrder(d, actCancel.Operation(caller), note) })
}

// Accept has the report that a review is about count, as if its provider had the goods: those that rest it takes
// over, and the order moves by the table. Errors: ORDER_NOT_FOUND, cloud.ErrNotFound of a report that is gone,
// ORDER_STATUS_CONFLICT of one that cannot follow the end of the order.
func (c Carriers) Accept(v cloud.View, caller cloud.Caller, r cloud.Review) (*cloud.Changes, error) {
	return c.about(v, caller, r, func(d *Decision, l *Timeline) error {
		e, ok := l.takeOut(cloud.EventRef{ShipmentID: r.ShipmentID, Package: r.PackageID, EventID: r.EventID}, true)
		if !ok {
			return cloud.ErrNotFound
		}
		by := cloud.Provider{ID: r.ProviderID, BusinessID: r.BusinessID}
		f := follower{d, l, by, map[cloud.PackageID]otep.Timeline{}}
		e.Event.Reported = false
		if f.isPastEnd(e) {
			return StatusConflict(d.Order)
		}
		before := l.Current()
		if f.mayTakeOver(e.Event) {
			if err := f.takeOver(); err != nil {
				return err
			}
			before = ""
		}
		l.readd(e)
		_, err := f.followCode(before)
		return err
	})
}

// Settle puts the order that a review is about where its timeline is, also when it had come to its end. Errors:
// ORDER_NOT_FOUND, ORDER_STATUS_CONFLICT of one that no status follows for.
func (c Carriers) Settle(v cloud.View, caller cloud.Caller, r cloud.Review, note string) (*cloud.Changes, error) {
	return c.about(v, caller, r, func(d *Decision, l *Timeline) error {
		to, ok := tracked[l.Current()]
		if !ok && otep.Collected(l.events(0)) {
			to, ok = cloud.OrderHandedOver, true
		}
		if !ok || to == d.Order.Status {
			return StatusConflict(d.Order)
		}
		codes := l.codes()
		d.only = true
		d.enterStatus(to, overridden, cmp.Or(note, "review "+r.EventID))
		d.only = false
		d.Order.DeliveredAt = time.Time{}
		d.Order.Packages = slices.Clone(d.Order.Packages)
		for i := range d.Order.Packages {
			if s, ok := trackedPackages[codes[d.Order.Packages[i].ID]]; ok {
				d.Order.Packages[i].Status = s
			}
		}
		return nil
	})
}

// follower has an order follow what a provider says about it.
type follower struct {
	*Decision
	l    *Timeline
	by   cloud.Provider
	ends map[cloud.PackageID]otep.Timeline // of packages, and with 0 of the whole, before the news that end them
}

// takeNews is FromTracking about one order.
func (d follower) takeNews(news cloud.TrackingNews) (t cloud.TrackedOrder, err error) {
	l := d.l
	if !news.Due {
		l.Changed = l.Shipment != news.Shipment
		l.Shipment = news.Shipment
	}
	before := l.Shipment.Current // as it was written: an event may have come to its time since
	for _, ref := range news.Withdrawn {
		l.takeBack(ref)
	}
	newest := time.Time{}
	own, err := d.custody()
	if err != nil {
		return t, err
	}
	counted := len(news.Withdrawn) > 0
	for i, e := range news.Events {
		if news.Due {
			var ok bool
			if e, ok = l.takeOut(e.Ref(), false); !ok {
				continue // it was taken back, or is a report
			}
		}
		e.Event.Withdrawn = slices.ContainsFunc(news.Withdrawn, func(ref cloud.EventRef) bool { return ref.Key() == e.Ref().Key() })
		if own == canTake && d.isTaking(e.Event) {
			if err := d.takeOver(); err != nil {
				return t, err
			}
			own, before = holds, "" // whatever the code was, it is the carrier's now
		}
		if e.Event.Reported = own == another || own == canTake && d.isBeyond(e.Event) || d.isPastEnd(e); e.Event.Reported {
			t.Reported = append(t.Reported, i)
			if d.isContested(e) {
				t.Contested = append(t.Contested, i)
			}
		} else {
			counted = true
			if e.Event.CountsAt(d.Now) && e.Event.OccurredAt.After(newest) {
				newest = e.Event.OccurredAt.Time
			}
		}
		if news.Due {
			l.readd(e)
		} else {
			l.add(e)
		}
	}
	t.Current = l.Current()
	t.Disagrees = len(news.Withdrawn) > 0 && d.Order.Status.State().Terminal && t.Current != before && tracked[t.Current] != d.Order.Status
	switch {
	case !counted:
		t.Reason = cloud.TrackingCustody
		if own == holds {
			t.Reason = cloud.TrackingTerminal
		}
		return t, nil
	case own != holds: // it is not the carrier's yet
		t.Reason = cloud.TrackingNoRule
		if own == canTake && t.Current == before && !newest.IsZero() {
			t.Reason = cloud.TrackingLate
		}
		return t, nil
	}
	if !newest.IsZero() && t.Current == before && newest.Truncate(time.Millisecond).Before(storedTime(l.latest())) {
		t.Reason = cloud.TrackingLate
	}
	reason, err := d.followCode(before)
	t.Reason = cmp.Or(t.Reason, reason)
	return t, err
}

// custody is how far the goods of an order are a provider's to move.
type custody int

const (
	another custody = iota // has them
	canTake                // they rest
	holds                  // the provider has them
)

func (d follower) custody() (custody, error) {
	if d.Order.Status == cloud.OrderInLocker {
		return another, nil
	}
	if d.Order.ThirdPartyOpen {
		switch a, err := d.ThirdParty(); {
		case err != nil || a == nil || a.ProviderID != d.by.ID:
			return another, err
		case a.Status == cloud.ThirdPartyHandedOver:
			return holds, nil
		}
	}
	switch mine := d.l.Shipment.ProviderID == d.by.ID || d.by.ID == 0; { // staff decide about all
	case d.l.Shipment.ProviderID != 0 && !mine:
		return another, nil
	case mine && !d.Order.SelfDelivery:
		return holds, nil
	case Resting(d.Order.Status) && d.Order.AssignmentID == 0 && d.by.Authority != cloud.AuthorityReports:
		return canTake, nil
	}
	return another, nil
}

// isTaking reports whether an event says that its provider has got the goods, after all that is
// known of them.
func (d follower) isTaking(e otep.Event) bool {
	return e.CountsAt(d.Now) && e.IsCollected() && d.isNewest(e)
}

// isNewest reports whether an event comes after all that is known of the goods.
func (d follower) isNewest(e otep.Event) bool { return !e.OccurredAt.Before(storedTime(d.l.latest())) }

// isBeyond reports whether an event says of goods that rest what only who has them can: a failure, a return, an end.
func (d follower) isBeyond(e otep.Event) bool {
	s, ok := otep.Lookup(e.StatusCode)
	return e.CountsAt(d.Now) && ok && s.Phase != otep.PhasePreShipment && !e.IsCollected()
}

// takeOver gives the order to a carrier that says that it has it.
func (d follower) takeOver() error {
	in := MoveInput{To: cloud.OrderHandedOver, Trigger: TakeOver, Operation: custodyTaken}
	if err := d.Step(in); err != nil {
		return err
	}
	d.l.Shipment.ProviderID, d.l.Changed = d.by.ID, true
	if !d.Order.ThirdPartyOpen {
		return nil
	}
	a, err := d.ThirdParty()
	if err != nil {
		return err
	}
	for i := range a.Packages {
		if p := &a.Packages[i]; p.Outcome == cloud.OutcomePending {
			p.Outcome, p.OccurredAt = cloud.OutcomeHandedOver, d.Now
		}
	}
	a.Status, a.HandedOverAt = cloud.ThirdPartyHandedOver, d.Now
	d.SaveThirdParty(EventThirdPartyHandedOver)
	return nil
}

// isPastEnd reports whether an event comes after the end of what it is about, where it cannot.
func (d follower) isPastEnd(e cloud.TimelineEvent) bool {
	if !d.Order.Status.State().Terminal || !e.Event.CountsAt(d.Now) {
		return false
	}
	t, ok := d.ends[e.Package]
	if !ok {
		t = d.l.fold(e.Package)
		d.ends[e.Package] = t
	}
	if t.Current == nil || e.Event.OccurredAt.Before(t.LastEventAt.Time) {
		return false
	}
	past := t.Terminal && !otep.Transition(*t.Current, e.Event.StatusCode)
	if !past {
		clear(d.ends) // it is the latest now
	}
	return past
}

// followCode moves the order to where its timeline has come, and says why it does not.
func (d follower) followCode(before otep.Code) (cloud.TrackingReason, error) {
	last, codes := d.l.latest(), d.l.codes()
	in := MoveInput{Trigger: Track, Operation: statusTracked, Reason: last.IncidentReason, At: storedTime(last), Packages: map[cloud.PackageID]cloud.OrderPackageStatus{}}
	var delivered []cloud.PackageID
	for _, p := range d.Order.Packages {
		if s, ok := trackedPackages[codes[p.ID]]; ok && s != p.Status && p.Status != cloud.OrderPackageLost {
			in.Packages[p.ID] = s
		}
		if codes[p.ID] == otep.Delivered {
			delivered = append(delivered, p.ID)
		}
	}
	var reason cloud.TrackingReason
	in.To, in.Trigger, reason = d.nextStatus(last.StatusCode, before, len(delivered) > 0)
	switch {
	case in.To == cloud.OrderPartlyDelivered:
		in.Delivered = delivered
	case in.To == 0 && (len(in.Packages) == 0 || d.Order.Status.State().Terminal):
		return reason, nil
	}
	if in.To == 0 {
		in.Trigger = ""
	}
	if err := d.Step(in); err != nil {
		return reason, err
	}
	if in.Trigger == InterceptionFailed {
		if err := d.EndInterception(Track); err != nil {
			return reason, err
		}
	}
	return reason, d.concludeThirdParty(codes)
}

// nextStatus is where the order goes with a code of its timeline, by which trigger, or with 0 why it does not.
// partly says that some of its packages are delivered.
func (d follower) nextStatus(now, before otep.Code, partly bool) (cloud.OrderStatus, Trigger, cloud.TrackingReason) {
	to, ok := tracked[now]
	if to == cloud.OrderDeliveryFailed && partly {
		to = cloud.OrderPartlyDelivered
	}
	switch from := d.Order.Status; {
	case !ok:
		return 0, Track, cloud.TrackingNoRule
	case to == from:
		return 0, Track, ""
	case now == before && to != cloud.OrderPartlyDelivered:
		return 0, Track, cloud.TrackingLate
	case from == cloud.OrderHold || from == cloud.OrderUnpaid:
		return 0, Track, cloud.TrackingHeld
	case from == cloud.OrderIntercepted && to == cloud.OrderDelivered:
		return to, InterceptionFailed, cloud.TrackingNoRule
	case from == cloud.OrderIntercepted:
		return 0, Track, cloud.TrackingIntercepted
	case from.State().Terminal:
		return 0, Track, cloud.TrackingTerminal
	case d.CanMove(to, Track):
		return to, Track, cloud.TrackingNoRule
	}
	return 0, Track, cloud.TrackingCustody
}

// isContested reports whether a report would move the order if it counted.
func (d follower) isContested(e cloud.TimelineEvent) bool {
	e.Event.Reported = false
	if !e.Event.CountsAt(d.Now) || d.isPastEnd(e) {
		return false
	}
	if d.mayTakeOver(e.Event) {
		return true
	}
	before, rows := d.l.Current(), d.l.rows
	d.l.rows = append(slices.Clip(rows), e)
	now, codes := d.l.Current(), d.l.codes()
	d.l.rows = rows
	clear(d.ends)
	partly := slices.ContainsFunc(d.Order.Packages, func(p cloud.OrderPackage) bool { return codes[p.ID] == otep.Delivered })
	to, _, _ := d.nextStatus(now, before, partly)
	return to != 0
}

// mayTakeOver reports whether the goods rest, and an event says, after all that is known of them, that its provider
// has or had them.
func (d follower) mayTakeOver(e otep.Event) bool {
	_, moves := tracked[e.StatusCode]
	rests := Resting(d.Order.Status) && d.Order.AssignmentID == 0 && !d.Order.ThirdPartyOpen && d.l.Shipment.ProviderID == 0
	return rests && d.isNewest(e) && (moves || e.IsCollected())
}

// concludeThirdParty ends an assignment all of whose packages have come to their end by the events of
// the carrier.
func (d follower) concludeThirdParty(codes map[cloud.PackageID]otep.Code) error {
	if !d.Order.ThirdPartyOpen {
		return nil
	}
	a, err := d.ThirdParty()
	if err != nil {
		return err
	}
	open := false
	for i := range a.Packages {
		p := &a.Packages[i]
		outcome, failure := p.Outcome, p.Failure
		switch codes[p.ID] {
		case otep.Delivered:
			outcome, failure = cloud.OutcomeDelivered, ""
		case otep.ReturnToSender:
			outcome, failure = cloud.OutcomeReturned, ""
		case otep.RejectedByRecipient:
			outcome, failure = cloud.OutcomeFailed, GoodsRefused
		}
		if outcome != p.Outcome {
			p.Outcome, p.Failure, p.OccurredAt = outcome, failure, d.Now
			d.SaveThirdParty()
		}
		open = open || !p.Outcome.Final()
	}
	if open {
		return nil
	}
	return d.CloseThirdParty(a.Conclusion())
}

// GoodsRefused is the incident reason of goods that the recipient did not want.
const GoodsRefused = "recipient_refused"
