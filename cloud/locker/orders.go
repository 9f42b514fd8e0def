package locker

import (
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/otep"
)

// link finds out whether package i of a live delivery is one of an order's: by its
// own number, the order's, or a carrier's for either, of several the newest
// order's. Only orders of the device's business count. path is the input's field.
// Error: VALIDATION_FAILED for a second order in one delivery, and for what is
// listed by another number already.
func (s *core) link(v cloud.View, d *cloud.Delivery, i int, path string) error {
	if s.cfg.Orders == nil || !d.Livemode || d.IsOutgoing() {
		return nil // what a sender brings has a timeline of its own
	}
	p := &d.Packages[i]
	found, err := v.ShipmentsBySubject(d.BusinessID, otep.Subject{TrackingNumber: p.TrackingNumber, ExternalTrackingNumber: p.TrackingNumber})
	if err != nil || len(found) == 0 || found[len(found)-1].OrderID == 0 {
		return err
	}
	o, err := v.Order(d.BusinessID, found[len(found)-1].OrderID)
	if err != nil {
		return err
	}
	for _, x := range o.Packages {
		if strings.EqualFold(x.Number, p.TrackingNumber) || strings.EqualFold(x.ExternalNumber, p.TrackingNumber) {
			p.OrderPackage = x.ID
		}
	}
	f := newFields()
	for _, other := range d.Packages[:i] {
		switch {
		case other.OrderID == 0:
		case other.OrderID != o.ID:
			f.Add(path, "The tracking_number belongs to another order than the other packages.")
		case other.OrderPackage == p.OrderPackage || other.OrderPackage == 0 || p.OrderPackage == 0:
			f.Say(path, check.MessageTwice)
		}
	}
	p.OrderID = o.ID
	return f.Err()
}

// announceAll begins the timelines of packages that have their own, and tells
// the order of the others.
func (s *core) announceAll(v cloud.View, ch *cloud.Changes, c cloud.Caller, d *cloud.Delivery, device cloud.Device, now time.Time) error {
	w := s.Begin(v, device, now)
	for i := range d.Packages {
		if d.Packages[i].OrderID != 0 {
			w.toOrder(cloud.LockerAnnounced, d, &d.Packages[i], cloud.Moment{At: now})
		} else if err := announce(v, ch, c, *d, i, now); err != nil {
			return err
		}
	}
	if err := s.fanOutParcels(v, ch, ch.Shipments, ch.Events); err != nil {
		return err
	}
	return w.applyToOrders(ch)
}

// news are the codes that reach an order as something else.
var news = map[otep.Code]cloud.LockerNewsKind{otep.AvailableForPickup: cloud.LockerDeposited, otep.Delivered: cloud.LockerCollected,
	otep.RemovedFromDevice: cloud.LockerRemoved}

// addPackageEvent says what happened to a package: its order makes its own move and event
// of it, a parcel without an order has it in its timeline.
func (w *timeline) addPackageEvent(r Occurrence, d *cloud.Delivery, p *cloud.Package, code otep.Code) error {
	if p.OrderID == 0 {
		return w.track(r, p.TrackingNumber, code, nil)
	}
	w.toOrder(news[code], d, p, r.moment())
	return nil
}

// toOrder tells the order of a package, if it has one, when the decision is
// complete. A change of several packages of a delivery at once is one piece
// of news.
func (w *timeline) toOrder(kind cloud.LockerNewsKind, d *cloud.Delivery, p *cloud.Package, m cloud.Moment) {
	if p.OrderID == 0 {
		return
	}
	if i := slices.IndexFunc(w.news, func(n cloud.LockerNews) bool {
		return n.Kind == kind && n.DeliveryID == d.ID && n.OrderID == p.OrderID && n.At.Equal(m.At)
	}); i >= 0 {
		w.news[i].Packages = append(w.news[i].Packages, p.OrderPackage)
		return
	}
	w.news = append(w.news, cloud.LockerNews{Kind: kind, BusinessID: d.BusinessID, OrderID: p.OrderID, Packages: []cloud.PackageID{p.OrderPackage},
		DeliveryID: d.ID, Device: operatorOf(w.device), DeviceCode: w.device.Code,
		Place: w.location(), Trace: w.traceOf(d), Moment: m})
}

// operatorOf is a device as orders have it.
func operatorOf(d cloud.Device) cloud.Operator {
	return cloud.Operator{Type: "device", ID: cloud.AccountID(d.ID), Name: d.Name}
}

// traceOf is the trace of the latest of a delivery's openings that the decision is about.
func (w *rows) traceOf(d *cloud.Delivery) string {
	var latest cloud.Opening
	for _, o := range w.openings {
		if o.DeliveryID == d.ID && o.RequestedAt.After(latest.RequestedAt) {
			latest = *o
		}
	}
	return latest.Trace
}

// applyToOrders adds what the news mean for orders to the changes of the decision.
func (w *timeline) applyToOrders(ch *cloud.Changes) error {
	if len(w.news) == 0 {
		return nil
	}
	more, err := w.s.cfg.Orders.FromLocker(ahead{w.v, ch}, w.news)
	if err != nil {
		return err
	}
	ch.Join(more)
	return nil
}

// ahead is a View after changes that are not written yet, as far as orders look
// at what this feature writes.
type ahead struct {
	cloud.View
	ch *cloud.Changes
}

func (a ahead) Delivery(id cloud.DeliveryID) (cloud.Delivery, error) {
	for _, d := range a.ch.Deliveries {
		if d.ID == id {
			return d, nil
		}
	}
	return a.View.Delivery(id)
}

func (a ahead) OrderShipment(b cloud.BusinessID, id cloud.OrderID) (cloud.Shipment, error) {
	for _, s := range a.ch.Shipments {
		if s.BusinessID == b && s.OrderID == id {
			return s, nil
		}
	}
	return a.View.OrderShipment(b, id)
}

func (a ahead) RecentTimeline(id cloud.ShipmentID) (cloud.RecentTimeline, error) {
	t, err := a.View.RecentTimeline(id)
	fresh := a.events(id)
	t.Events, t.Count = append(t.Events, fresh...), t.Count+len(fresh)
	return t, err
}

func (a ahead) Timeline(id cloud.ShipmentID) ([]cloud.TimelineEvent, error) {
	rows, err := a.View.Timeline(id)
	return append(rows, a.events(id)...), err
}

// events are those of a shipment that are not written yet.
func (a ahead) events(id cloud.ShipmentID) (out []cloud.TimelineEvent) {
	for _, e := range a.ch.Events {
		if e.ShipmentID == id {
			out = append(out, e)
		}
	}
	return out
}
