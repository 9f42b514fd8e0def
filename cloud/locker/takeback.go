package locker

import (
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// takeBackFailure takes the failure of a delivery at failedAt out of the timeline of a package without an
// order, where the cabinet says only now that the package was deposited before, at a time. A zero
// failedAt is none.
func (w *timeline) takeBackFailure(p *cloud.Package, failedAt, at time.Time) error {
	if p.OrderID != 0 || !failedAt.After(at) {
		return nil
	}
	s, err := w.shipment(p.TrackingNumber)
	if err != nil || s == nil {
		return err
	}
	events, err := w.events(s)
	if err != nil {
		return err
	}
	var last *otep.Event
	taken := false
	for i := range events {
		e := &events[i]
		isOurs := e.Source != nil && e.Source.Type == otep.Locker && e.Source.Provider == "" && e.OccurredAt.UnixMilli() == failedAt.UnixMilli()
		switch {
		case e.Withdrawn:
		case isOurs && (e.StatusCode == otep.DeliveryFailed || e.StatusCode == otep.PickupFailed || e.StatusCode == otep.OutForDelivery):
			e.Withdrawn, taken = true, true
			w.ch.Withdrawn = append(w.ch.Withdrawn, cloud.EventRef{ShipmentID: s.ID, EventID: e.EventID, At: w.received, Reason: otep.DidNotOccur, By: string(otep.Locker)})
		case last == nil || otep.Compare(last, e) <= 0:
			last = e
		}
	}
	if last != nil && taken {
		s.Current, s.LastAt = last.StatusCode, last.OccurredAt.Time
		w.touch(s)
	}
	return nil
}
