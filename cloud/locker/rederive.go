package locker

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Rederived is an event of a parcel.
type Rederived struct {
	Shipment cloud.Shipment
	Package  cloud.PackageID // of several, 0 for the whole shipment
	Event    otep.Event
}

// Rederive gives the timeline events that a record led to when it was taken, as
// far as the record and what is stored prove it, with the ids that they had
// then:
//
//	made at the device   the record says it all
//	deposit              the stored opening has this record's end; it was the
//	                     delivery's first, or added to it
//	collected            the stored opening or delivery has this record's end
//
// What followed from the timeline as it stood then (a failed delivery, the moves
// of an order) is not proven and not given. Nothing is written.
func (w reports) Rederive(r Occurrence) ([]Rederived, error) {
	switch r.Kind {
	case wire.KindTrackingEvent:
		return rederive(r, w.scannedAgain)
	case wire.KindOpeningSettled:
		return rederive(r, w.depositedAgain)
	case wire.KindPickupCompleted:
		return rederive(r, w.collectedAgain)
	}
	return nil, nil
}

func rederive[B any](r Occurrence, f func(Occurrence, B) ([]Rederived, error)) ([]Rederived, error) {
	var b B
	if wire.Decode(r.Body, &b) != nil {
		return nil, nil
	}
	return f(r, b)
}

func (w reports) scannedAgain(r Occurrence, b wire.TrackingEvent) ([]Rederived, error) {
	s, e, problem, err := w.scanned(r, b)
	if problem != "" || err != nil {
		return nil, err
	}
	return []Rederived{filled(s, e)}, nil
}

func filled(s *shipment, e otep.Event) Rederived {
	return Rederived{s.Shipment, s.part, e.Fill(s.Profile)}
}

// stored reports whether a stored time is that of a record.
func stored(t, record time.Time) bool { return !t.IsZero() && t.UnixMilli() == record.UnixMilli() }

func (w reports) depositedAgain(r Occurrence, b wire.OpeningSettled) ([]Rederived, error) {
	o, d, problem, err := w.own(b.OpeningID)
	if problem != "" || err != nil || d == nil {
		return nil, err
	}
	if o.State != cloud.OpeningSettled || o.ConfirmedBy != b.ConfirmedBy || !stored(o.EndedAt, r.OccurredAt) {
		return nil, nil
	}
	closed, _ := settleTimes(r, b)
	closedAt := closed.OccurredAt
	var failed, deposited []string
	for _, p := range b.Packages {
		switch c, err := w.cell(p.Door); {
		case err != nil:
			return nil, err
		case c == nil || findPackage(d, p.Ref) == nil || findPackage(d, p.Ref).OrderID != 0 || p.Outcome == wire.Unverified:
		case p.Outcome == wire.Deposited && findPackage(d, p.Ref).Status == cloud.PackageFailed && d.Corrections == 0:
			// Reported as failed before its doors closed, or given up after: nothing
			// that is stored tells which.
		case p.Outcome == wire.Deposited:
			deposited = append(deposited, p.Ref)
		default:
			failed = append(failed, p.Ref)
		}
	}
	r = closed
	var out []Rederived
	for _, n := range deposited {
		if !stored(d.DepositedAt, closedAt) && (slices.Contains(failed, n) || o.Kind == wire.OpenCorrection) {
			continue
		}
		s, err := w.shipment(n)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, filled(s, w.event(r, n, depositedCode(*d))))
		}
	}
	return out, nil
}

func (w reports) collectedAgain(r Occurrence, b wire.PickupCompleted) ([]Rederived, error) {
	d, err := w.deliveryByNumber(b.DeliveryRef)
	if err != nil || d == nil || d.DeviceID != w.device.ID {
		return nil, err
	}
	o, err := w.opening(b.OpeningID)
	if err != nil {
		return nil, err
	}
	last := len(b.Left) == 0
	switch {
	case o != nil && (o.DeviceID != w.device.ID || o.DeliveryID != d.ID || o.State != cloud.OpeningSettled || !stored(o.EndedAt, r.OccurredAt)),
		o == nil && !last,
		last && !stored(d.PickedUpAt, r.OccurredAt),
		!last && !d.PickedUpAt.IsZero() && r.OccurredAt.After(d.PickedUpAt):
		return nil, nil
	}
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return nil, err
	}
	var out []Rederived
	for _, n := range b.Doors {
		c, err := w.cell(n)
		if err != nil {
			return nil, err
		}
		for _, p := range d.Packages {
			if c == nil || p.GridID != c.GridID || p.Status != cloud.PackagePickedUp || p.OrderID != 0 {
				continue
			}
			if slices.ContainsFunc(orders, func(o *cloud.DeviceOrder) bool { return o.Tracking == p.TrackingNumber && o.Status == "removed" }) {
				continue // a courier took it back
			}
			s, err := w.shipment(p.TrackingNumber)
			if err != nil {
				return nil, err
			}
			if s != nil {
				out = append(out, filled(s, w.event(r, p.TrackingNumber, collectedCode(*d))))
			}
		}
	}
	return out, nil
}
