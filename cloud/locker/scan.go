package locker

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/gs1"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// trackingEvent is an event made at the device, for a parcel of its business.
// It is held to the rules that a partner's events are held to, and normalised
// as they are.
func (w reports) trackingEvent(r Occurrence, b wire.TrackingEvent) (string, error) {
	s, e, problem, err := w.scanned(r, b)
	switch {
	case err != nil:
		return "", err
	case problem == foreign: // of another business or of none: staff learn which label it was, and no more
		return "", unknownLabel(w, r, labelDetail(b))
	case problem != "":
		return problem, nil
	}
	if known, err := w.isKnown(s, e); known || err != nil {
		return "", err
	}
	w.add(r, s, e)
	return "", nil
}

// isKnown reports whether an event of a parcel is stored, or made by this decision, about the parcel or the
// shipment that it belonged to once.
func (w *timeline) isKnown(s *shipment, e otep.Event) (bool, error) {
	isSame := func(x cloud.TimelineEvent) bool {
		return x.ShipmentID == s.ID && x.Package == s.part && x.Event.EventID == e.EventID
	}
	if slices.ContainsFunc(w.ch.Events, isSame) || slices.ContainsFunc(w.news, func(n cloud.LockerNews) bool { return n.Event != nil && isSame(*n.Event) }) {
		return true, nil
	}
	for _, ref := range []cloud.EventRef{{EventID: e.EventID, Package: s.part}, {EventID: e.EventID}} {
		if _, err := w.v.TimelineEvent(s.ID, ref.Key()); !errors.Is(err, cloud.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// unknownLabel keeps a label that names no parcel, before those that were scanned earlier.
func unknownLabel(w reports, r Occurrence, label string) error {
	before, err := newestFault(w.handling, cloud.DevUnknownLabel)
	if err != nil {
		return err
	}
	labels := []string{cloud.DetailText(strings.ReplaceAll(label, labelEnds, " "))}
	for l := range strings.SplitSeq(before.Detail, labelEnds) {
		if l != "" && !slices.Contains(labels, l) && len(strings.Join(labels, labelEnds)+labelEnds+l) <= labelsLength {
			labels = append(labels, l)
		}
	}
	w.ch.DeviceFaults = append(w.ch.DeviceFaults, cloud.DeviceException{DeviceID: w.device.ID, Type: cloud.DevUnknownLabel,
		Detail: strings.Join(labels, labelEnds), OpenedAt: r.OccurredAt, SeenAt: r.OccurredAt})
	return nil
}

// Labels that name no parcel are kept in one text.
const (
	labelEnds    = "; " // between two of them
	labelsLength = 2000 // bytes
)

// labelDetail is a label that names no parcel, and where it was scanned.
func labelDetail(b wire.TrackingEvent) string {
	if b.Location == "" {
		return b.Subject
	}
	return b.Subject + ", " + b.Location
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
	e = w.scanEvent(r, number, code, b)
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
	if err != nil || len(report.Errors) > 0 {
		return nil, e, badBody, nil
	}
	return s, events[0], "", nil
}

// maxScanAge is how old a scan that was sent later may be by its scanner's clock.
const maxScanAge = 90 * 24 * time.Hour

// scanEvent is the event of a record; of a scan that was sent later at the time that its
// scanner's clock gave, where that may be. Such a scan is known again however often a scanner
// sends it.
func (w *timeline) scanEvent(r Occurrence, number string, code otep.Code, b wire.TrackingEvent) otep.Event {
	if b.ScannedAt == 0 {
		return w.event(r, number, code)
	}
	sent, at := r.OccurredAt, time.Unix(0, b.ScannedAt).UTC()
	r.Approximate, r.Latest = true, sent
	known := b.ScannedAt != wire.ScannedUnknown && !at.After(sent.Add(scanClock)) && sent.Sub(at) <= maxScanAge
	if known && at.Before(sent) {
		r.OccurredAt = at.Truncate(time.Millisecond)
	}
	e := w.event(r, number, code)
	if b.ScannedAt != wire.ScannedUnknown {
		e.EventID = eventID("scan\n%s\n%d\n%s\n%s\n%s", w.device.Code, b.ScannedAt, number, code, b.Location)
	}
	return e
}

// scanClock is how far a scanner's clock may be ahead.
const scanClock = 5 * time.Minute

// pending is how many events of a shipment its order is to write.
func (w *timeline) pending(id cloud.ShipmentID) (n int) {
	for _, x := range w.news {
		if x.Event != nil && x.Event.ShipmentID == id {
			n++
		}
	}
	return n
}

// parcel is the shipment of the device's business that a label names, and of several packages of its order the
// one: by its tracking number, else by a carrier's, else by the SSCC of a GS1 label, of several the
// newest; nil for none. An SSCC may be the tracking number itself, with its application
// identifier or without. number is what events of it are named by.
func (w *timeline) parcel(label string) (s *shipment, number string, err error) {
	if s, number, err = w.numbered(label); err != nil || s != nil {
		return s, number, err
	}
	scan, bad := gs1.Read([]byte(label))
	ai, sscc := scan.Subject()
	if bad != nil || ai != "00" {
		return nil, "", nil
	}
	for _, form := range []string{sscc, ai + sscc} {
		if s, number, err = w.numbered(form); err != nil || s != nil {
			return s, number, err
		}
	}
	return w.newestOf(otep.Subject{SSCC: sscc})
}

// numbered is the shipment that has a number as its own or as a carrier's; nil for none.
func (w *timeline) numbered(label string) (s *shipment, number string, err error) {
	if s, err = w.shipment(label); err != nil || s != nil && s.BusinessID == w.device.BusinessID {
		return s, label, err
	}
	s, number, err = w.newestOf(otep.Subject{TrackingNumber: label, ExternalTrackingNumber: label})
	if err != nil || s == nil || s.OrderID == 0 {
		return s, number, err
	}
	packages, err := w.v.PackagesOf(s.BusinessID, s.OrderID)
	for _, p := range packages {
		if key := cloud.NumberKey(label); len(packages) > 1 && (p.Number == key || p.External == key) {
			part := *s
			part.part = p.ID
			return &part, number, err
		}
	}
	return s, number, err
}

// newestOf is the shipment of the device's business that was made last for a subject; nil for none.
func (w *timeline) newestOf(of otep.Subject) (s *shipment, number string, err error) {
	found, err := w.v.ShipmentsBySubject(w.device.BusinessID, of)
	if err != nil || len(found) == 0 {
		return nil, "", err
	}
	number = found[len(found)-1].Number
	s, err = w.shipment(number)
	return s, number, err
}

// Problems of a reported event beside those of a record.
const ProblemFull = "timeline_full"

// ReportEvent takes an event that a device names itself. One with the name of an earlier one of
// the same device changes nothing. problem is "", foreign_reference, bad_batch or ProblemFull.
func (w reports) ReportEvent(id string, r Occurrence, b wire.TrackingEvent) (problem string, err error) {
	s, e, problem, err := w.scanned(r, b)
	if problem != "" || err != nil {
		return problem, err
	}
	e.EventID = eventID("event\n%s\n%s\n%s", w.device.Code, id, s.Number)
	if known, err := w.isKnown(s, e); known || err != nil {
		return "", err
	}
	there, err := w.v.CountEvents(s.ID)
	switch {
	case err != nil:
		return "", err
	case there+len(ahead{ch: &w.ch}.events(s.ID))+w.pending(s.ID) >= w.s.cfg.TimelineEvents:
		return ProblemFull, nil
	}
	w.add(r, s, e)
	return "", nil
}
