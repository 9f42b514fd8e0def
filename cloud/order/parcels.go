package order

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Parcels sends what happens to parcels without an order to their subscribers.
type Parcels struct{ s *Service }

// ParcelsOf is that of a service.
func ParcelsOf(s *Service) Parcels { return Parcels{s} }

// FanOutParcel returns the outbox writes for the subscribers of news about a parcel without an order, inside a
// decision of another feature. Reports and news about an order make none: the order sends its own.
func (p Parcels) FanOutParcel(v cloud.View, news cloud.TrackingNews) ([]cloud.OutboxWrite, error) {
	if news.Shipment.OrderID != 0 || len(news.Events)+len(news.Withdrawn) == 0 {
		return nil, nil
	}
	taken, err := takenBack(v, news)
	if err != nil {
		return nil, err
	}
	at, now := parcel{v, news.Shipment}, p.s.time()
	var events []cloud.AccountEvent
	for _, w := range taken {
		events = at.add(events, now, eventWithdrawn, "TRC-", w.Event, func(number int64) (any, error) {
			h, zone, err := at.tracking(w.Event, number)
			return parcelWithdrawn{h, withdrawalOf(w, zone)}, err
		})
	}
	for _, e := range news.Events {
		events = at.add(events, now, eventTracking, "TRE-", e.Event, func(number int64) (any, error) {
			h, _, err := at.tracking(e.Event, number)
			return h, err
		})
	}
	return p.s.webhooks.FanOut(v, events...)
}

// takenBack are the events of a parcel that are taken back, as they were.
func takenBack(v cloud.View, news cloud.TrackingNews) (out []cloud.WithdrawnEvent, err error) {
	if len(news.Withdrawn) == 0 {
		return nil, nil
	}
	rows, err := v.Timeline(news.Shipment.ID)
	for _, ref := range news.Withdrawn {
		for _, e := range slices.Concat(rows, news.Events) {
			if e.Event.EventID == ref.EventID {
				out = append(out, cloud.WithdrawnEvent{EventRef: ref, Event: e.Event})
				break
			}
		}
	}
	return out, err
}

// parcel is one without an order, in a decision.
type parcel struct {
	v cloud.View
	s cloud.Shipment
}

// add adds an event about one of the parcel's timeline, unless that is a report.
func (p parcel) add(to []cloud.AccountEvent, now time.Time, event, id string, e otep.Event, data func(number int64) (any, error)) []cloud.AccountEvent {
	if e.Reported {
		return to
	}
	return append(to, cloud.AccountEvent{BusinessID: p.s.BusinessID, Event: event, ID: id, ReferenceType: "parcel", ReferenceID: p.s.Number, OccurredAt: now,
		Data:    func(number int64, _ bool) (any, error) { return data(number) },
		Tracked: &cloud.TrackedEvent{Shipment: p.s, Code: e.StatusCode, Data: data}})
}

// parcelTracking is the data of tracking.event about a parcel without an order.
type parcelTracking struct {
	Order   *hookOrder `json:"order"` // null
	Package parcelName `json:"package"`
	trackingData
}

// parcelName is hookParcel of a parcel that is no order's.
type parcelName struct {
	PackageID *cloud.PackageID `json:"package_id"` // null
	Ref       *string          `json:"package_ref"`
	Number    string           `json:"tracking_number"`
}

// parcelWithdrawn is the data of tracking.event_withdrawn about a parcel without an order.
type parcelWithdrawn struct {
	parcelTracking
	Withdrawn withdrawal `json:"withdrawn"`
}

// tracking is the data of tracking.event, and the zone of its times.
func (p parcel) tracking(e otep.Event, number int64) (parcelTracking, *time.Location, error) {
	b, err := p.v.Business(p.s.BusinessID)
	return parcelTracking{Package: parcelName{Number: p.s.Number}, trackingData: trackingOf(b, e, number)}, b.Location(), err
}

// hideOrder is the data of an event of a timeline as a provider sees it: of the order the numbers that its
// timeline has, and no proof.
func hideOrder(data any) any {
	hide := func(h hookTracking) hookTracking {
		h.Order = hookOrder{OrderID: h.Order.OrderID, Number: h.Order.Number, ExternalNumber: h.Order.ExternalNumber, Type: h.Order.Type, Metadata: map[string]string{}}
		if h.Package != nil {
			h.Package = &hookParcel{PackageID: h.Package.PackageID, Number: h.Package.Number}
		}
		h.Files, h.Detail, h.Signature = []string{}, []hookFile{}, nil
		return h
	}
	switch d := data.(type) {
	case hookTracking:
		return hide(d)
	case hookWithdrawn:
		d.hookTracking = hide(d.hookTracking)
		return d
	case hookDisputed:
		d.hookTracking, d.Dispute.Note = hide(d.hookTracking), nil
		return d
	}
	return data
}
