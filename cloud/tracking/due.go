package tracking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/timeline"
)

const (
	duePage  = 100
	dueLook  = time.Second
	dueRetry = time.Minute // of an event that fails, so that others do not wait for it
)

// Dues has events that were ahead of their time count when it comes.
type Dues struct{ s *Service }

// DuesOf is that of a service.
func DuesOf(s *Service) Dues { return Dues{s} }

// Run does so until ctx ends.
func (d Dues) Run(ctx context.Context) error {
	return repeat(ctx, dueLook, d.s.log, "events ahead of their time", d.Follow)
}

// Follow does what there is to do of Run. It may be ended at any moment, and run at several nodes at once: the
// transaction in which an event comes to count removes what is due.
func (d Dues) Follow(ctx context.Context) (failed error) {
	for {
		now := milliseconds(time.Now())
		list, err := d.s.store.DueEvents(ctx, now, duePage)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("list events that are due: %w", err))
		}
		for _, x := range list {
			err := d.takeEvent(ctx, x, now)
			if err == nil {
				continue
			}
			failed = errors.Join(failed, fmt.Errorf("event %s of shipment %d: %w", x.EventID, x.ShipmentID, err))
			if err := d.putOff(ctx, x, now.Add(dueRetry)); err != nil {
				return errors.Join(failed, err)
			}
		}
		if len(list) < duePage {
			return failed
		}
	}
}

// withDue decides about an event that is still due; nothing happens where another node was faster.
func (d Dues) withDue(ctx context.Context, x cloud.DueEvent, change func(cloud.View, cloud.DueEvent) (*cloud.Changes, error)) error {
	return d.s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		s, err := v.ShipmentByID(x.ShipmentID)
		switch { // waits for others that decide about it
		case err != nil:
		case s.OrderID != 0:
			_, err = v.Order(s.BusinessID, s.OrderID)
		default:
			_, err = v.ShipmentByNumber(s.Number)
		}
		if err != nil && !isMissing(err) {
			return nil, err
		}
		row, err := cloud.Find(v, cloud.DueEvent{Kept: x.Kept})
		if isMissing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return change(v, row)
	})
}

// putOff has an event come to count later.
func (d Dues) putOff(ctx context.Context, x cloud.DueEvent, at time.Time) error {
	return d.withDue(ctx, x, func(_ cloud.View, row cloud.DueEvent) (*cloud.Changes, error) {
		row.DueAt = at
		return &cloud.Changes{Unaudited: true, RowChanges: cloud.RowChanges{Rows: []cloud.Row{row}}}, nil
	})
}

// takeEvent has an event count from now: its order moves, and subscribers get it.
func (d Dues) takeEvent(ctx context.Context, x cloud.DueEvent, now time.Time) error {
	return d.withDue(ctx, x, func(v cloud.View, row cloud.DueEvent) (*cloud.Changes, error) {
		ch := &cloud.Changes{}
		e, err := v.TimelineEvent(row.ShipmentID, row.Ref().Key())
		if err == nil && !e.Event.Withdrawn && !e.Event.Reported {
			ch, err = d.count(v, row, e, now)
		}
		if err != nil && !isMissing(err) {
			return nil, err
		}
		if ch == nil || err != nil { // what it was about is gone
			ch = &cloud.Changes{}
		}
		ch.Unaudited = len(ch.Audits) == 0
		ch.DroppedRows = append(ch.DroppedRows, row)
		return ch, nil
	})
}

// count is what follows from an event that comes to count.
func (d Dues) count(v cloud.View, row cloud.DueEvent, e cloud.TimelineEvent, now time.Time) (*cloud.Changes, error) {
	s, err := v.ShipmentByID(row.ShipmentID)
	if err != nil {
		return nil, err
	}
	by := cloud.Provider{BusinessID: s.BusinessID}
	if row.ProviderID != 0 {
		if by, err = v.Provider(row.ProviderID); err != nil && !isMissing(err) {
			return nil, err
		}
		by.ID, by.BusinessID = row.ProviderID, s.BusinessID // also one that was deleted since
	}
	news := cloud.TrackingNews{Shipment: s, By: by, Events: []cloud.TimelineEvent{e}, Due: true}
	if d.s.orders != nil && s.OrderID != 0 {
		ch, order, err := d.s.orders.FromTracking(v, cloud.Caller{}, news)
		if err == nil && len(order.Contested) > 0 {
			number, err := numberOf(v, s, e.Package)
			if err != nil {
				return nil, err
			}
			r := cloud.Review{Kind: cloud.ReviewCustody, TrackingNumber: number, ShipmentID: s.ID, PackageID: e.Package, ProviderID: row.ProviderID, EventID: e.Event.EventID,
				StatusCode: string(e.Event.StatusCode), OccurredAt: e.Event.OccurredAt.UTC()}
			if _, err = addReview(v, ch, s.BusinessID, r, now); err != nil {
				return nil, err
			}
		}
		if !isMissing(err) {
			return ch, err
		}
	}
	rows, err := v.Timeline(s.ID)
	if err != nil {
		return nil, err
	}
	ch := &cloud.Changes{}
	if right := timeline.StateAt(s, rows, nil, now); right.Current != "" {
		ch.Shipments = append(ch.Shipments, right)
	}
	if d.s.parcels != nil {
		ch.Outbox, err = d.s.parcels.FanOutParcel(v, news)
	}
	return ch, err
}

// numberOf is the tracking number of a package of a shipment's order, or with 0 of the whole.
func numberOf(v cloud.View, s cloud.Shipment, id cloud.PackageID) (string, error) {
	if id == 0 {
		return s.Number, nil
	}
	list, err := v.PackagesOf(s.BusinessID, s.OrderID)
	for _, x := range list {
		if x.ID == id {
			return x.Number, nil
		}
	}
	return s.Number, err
}
