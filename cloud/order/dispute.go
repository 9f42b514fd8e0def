package order

import (
	"errors"
	"time"

	"github.com/postern-io/postern/cloud"
)

// hookDisputed is the data of tracking.disputed.
type hookDisputed struct {
	hookTracking
	Dispute dispute `json:"dispute"`
}

// parcelDisputed is the data of tracking.disputed about a parcel without an order.
type parcelDisputed struct {
	parcelTracking
	Dispute dispute `json:"dispute"`
}

// dispute says how an event is disputed.
type dispute struct {
	ReviewID cloud.ReviewID `json:"review_id"` // that staff decide
	EventID  string         `json:"event_id"`  // in the timeline
	Kind     string         `json:"kind"`      // not_received, wrong_place, damaged or other
	Note     *string        `json:"note"`      // null for providers
	By       string         `json:"by"`        // recipient, customer, staff, or the code of a provider
	At       *string        `json:"at"`
}

func disputeOf(r cloud.Review, by string, l *time.Location) dispute {
	return dispute{r.ID, r.EventID, r.DisputeKind, cloud.OrNull(r.Note), by, cloud.Stamp(r.CreatedAt, l)}
}

// FanOutDispute returns the outbox writes for the subscribers of a dispute of an event, inside a decision of
// another feature.
func (p Parcels) FanOutDispute(v cloud.View, s cloud.Shipment, row cloud.TimelineEvent, r cloud.Review, by string) ([]cloud.OutboxWrite, error) {
	if s.OrderID != 0 {
		o, err := v.Order(s.BusinessID, s.OrderID)
		if err == nil {
			return p.fanOutOrderDispute(v, o, row, r, by)
		}
		if !errors.Is(err, cloud.ErrNotFound) {
			return nil, err
		}
	}
	at := parcel{v, s}
	data := func(number int64, r cloud.Review) (any, error) {
		h, zone, err := at.tracking(row.Event, number)
		return parcelDisputed{h, disputeOf(r, by, zone)}, err
	}
	events := at.add(nil, r.CreatedAt, eventDisputed, "TRC-", row.Event, func(number int64) (any, error) { return data(number, r) })
	for _, e := range events {
		e.Tracked.Data = func(number int64) (any, error) {
			r := r
			r.Note = ""
			return data(number, r)
		}
	}
	return p.s.webhooks.FanOut(v, events...)
}

func (p Parcels) fanOutOrderDispute(v cloud.View, o cloud.Order, row cloud.TimelineEvent, r cloud.Review, by string) ([]cloud.OutboxWrite, error) {
	d := p.s.begin(v, cloud.Caller{}, p.s.time(), o)
	if _, err := d.Timeline(); err != nil {
		return nil, err
	}
	addTracked(d, eventDisputed, "TRC-", row, func(t *eventWriter) (any, error) {
		return hookDisputed{t.tracking(row), disputeOf(r, by, t.zone)}, nil
	})
	err := d.collectEvents()
	return d.Changes.Outbox, err
}
