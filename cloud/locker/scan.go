package locker

import (
	"maps"

	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// trackingEvent is an event made at the device, for a parcel of its business.
// It is held to the rules that a partner's events are held to, and normalised
// as they are.
func (w reports) trackingEvent(r Occurrence, b wire.TrackingEvent) (string, error) {
	s, e, problem, err := w.scanned(r, b)
	if problem != "" || err != nil {
		return problem, err
	}
	w.add(s, e)
	return "", nil
}

func (w *timeline) scanned(r Occurrence, b wire.TrackingEvent) (s *shipment, e otep.Event, problem string, err error) {
	s, number, err := w.parcel(b.Subject)
	if err != nil {
		return nil, e, "", err
	}
	if s == nil {
		return nil, e, foreign, nil
	}
	code, _, ok := otep.Canonical(b.StatusCode)
	if !ok {
		return nil, e, badBody, nil
	}
	e = w.event(r, number, code)
	if b.Location != "" {
		e.Location.Name = b.Location
	}
	if len(b.Extensions) > 0 {
		own := e.Extensions
		e.Extensions = make(otep.Extensions, len(b.Extensions)+len(own))
		for k, v := range b.Extensions {
			e.Extensions[k] = v
		}
		maps.Copy(e.Extensions, own)
	}
	events, report, err := otep.Check(otep.Subject{TrackingNumber: s.Number}, []otep.Event{e}, w.received)
	if err != nil || len(report.Errors) > 0 || e.OverLimit() != "" {
		return nil, e, badBody, nil
	}
	return s, events[0], "", nil
}

// parcel is the shipment of the device's business that a label names: by its
// tracking number, else by a carrier's, else by the SSCC of a GS1 label, of several the
// newest; nil for none. number is what events of it are named by.
func (w *timeline) parcel(label string) (s *shipment, number string, err error) {
	if s, err = w.shipment(label); err != nil || s != nil && s.BusinessID == w.device.BusinessID {
		return s, label, err
	}
	found, err := w.v.ShipmentsBySubject(w.device.BusinessID, otep.Subject{ExternalTrackingNumber: label})
	if err != nil {
		return nil, "", err
	}
	if len(found) == 0 {
		scan, bad := gs1.Read([]byte(label))
		ai, sscc := scan.Subject()
		if bad != nil || ai != "00" {
			return nil, "", nil
		}
		if found, err = w.v.ShipmentsBySubject(w.device.BusinessID, otep.Subject{SSCC: sscc}); err != nil || len(found) == 0 {
			return nil, "", err
		}
	}
	number = found[len(found)-1].Number
	s, err = w.shipment(number)
	return s, number, err
}
