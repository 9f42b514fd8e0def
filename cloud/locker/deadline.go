package locker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Kinds of expiry.
const (
	expiredUnused  = "delivery_code_expired" // it was not brought
	expiredOverdue = "pickup_overdue"        // it was not collected
)

// exOverdue is the exception of a parcel that was not collected in time.
const exOverdue = "overdue"

const (
	deadlineEvery = 10 * time.Second
	deadlinePage  = 100
)

// Due lists deliveries, of every business, whose deadline is not after now, by
// deadline and id, behind after.
type Due interface {
	ListDueDeliveries(ctx context.Context, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error)
	ListDueReminders(ctx context.Context, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error)
}

// RunDeadlines reminds recipients, and expires deliveries that were not brought or collected in time,
// until ctx ends. The rows are the truth: nothing is remembered between looks,
// any number of nodes may run it, and the second one finds nothing to do.
func (s deadlines) RunDeadlines(ctx context.Context, rows Due) error {
	t := time.NewTicker(deadlineEvery)
	defer t.Stop()
	for {
		now := time.Now().UTC()
		err := errors.Join(s.dueAll(ctx, now, rows.ListDueReminders, (*Work).remind, "remind of delivery"),
			s.dueAll(ctx, now, rows.ListDueDeliveries, (*Work).expireDelivery, "expire delivery"))
		if err != nil && ctx.Err() == nil {
			s.log.Error("look for deadlines", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

// dueAll decides about all deliveries of a list that are due at now, each in a decision of
// its own. One that fails does not hold up the others; it comes again with the next look.
func (s deadlines) dueAll(ctx context.Context, now time.Time, due func(ctx context.Context, now time.Time, after cloud.DueDelivery, limit int) ([]cloud.DueDelivery, error), decide func(*Work, *cloud.Delivery) error, failed string) error {
	for after := (cloud.DueDelivery{}); ; {
		list, err := due(ctx, now, after, deadlinePage)
		if err != nil {
			return err
		}
		for _, x := range list {
			after = x
			err := s.decideOn(ctx, x.DeviceID, x.ID, now, decide)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				s.log.Error(failed, "delivery_id", x.ID, "err", err)
			}
		}
		if len(list) < deadlinePage {
			return nil
		}
	}
}

// expireDelivery expires a delivery whose deadline has passed.
func (w requests) expireDelivery(d *cloud.Delivery) error {
	switch {
	case d.Status == cloud.DeliveryCreated && !w.received.Before(d.DeliverBefore):
		return w.expireUnused(d)
	case d.Status == cloud.DeliveryDelivered && !w.received.Before(d.DueAt):
		return w.expireOverdue(d)
	}
	return nil // decided meanwhile
}

// expireUnused ends a delivery that was not brought. An opening that runs may
// still become a deposit: it is waited for.
func (w requests) expireUnused(d *cloud.Delivery) error {
	last, err := w.lastOpening(d)
	if err != nil || last != nil && !last.Ended() {
		return err
	}
	d.Status, d.ExpiredKind, d.ExpiredAt = cloud.DeliveryExpired, expiredUnused, d.DeliverBefore
	w.touch(d)
	for i := range d.Packages {
		w.toOrder(cloud.LockerExpired, d, &d.Packages[i], cloud.Moment{At: d.ExpiredAt})
	}
	if err := w.releaseCells(d); err != nil {
		return err
	}
	if err := w.revoke(d, deliveryKinds...); err != nil {
		return err
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventExpired, d.ExpiredAt, *d, nil, nil)
}

// expireOverdue marks a deposit that was not collected. The parcel stays and its
// code works.
func (w requests) expireOverdue(d *cloud.Delivery) error {
	d.Status, d.ExpiredKind, d.ExpiredAt = cloud.DeliveryExpired, expiredOverdue, d.DueAt
	w.touch(d)
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	door := uint(0)
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	for _, row := range orders {
		if row.Status != "stored" {
			continue
		}
		row.Status, row.NextActor, row.DueAt, row.OverdueAt = "overdue", "operator", d.DueAt, d.DueAt
		w.touch(row)
		for _, c := range cells {
			if c.GridCode == row.GridCode {
				door = c.Door
			}
		}
	}
	source := fmt.Sprintf("overdue:%s:%d", d.Number, d.DueAt.Unix())
	if err := w.raise(Occurrence{OccurredAt: d.DueAt}, source, exOverdue, wire.SeverityLow, d, door, "not collected in time"); err != nil {
		return err
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		switch {
		case p.Status != cloud.PackageInCompartment, d.IsOutgoing(): // nothing has happened to what a courier is to collect
		case p.OrderID != 0:
			w.toOrder(cloud.LockerOverdue, d, p, cloud.Moment{At: d.DueAt})
		default:
			if err := w.trackOverdue(p.TrackingNumber, d.DueAt); err != nil {
				return err
			}
		}
	}
	if !d.IsOutgoing() {
		if err := w.plan(d, w.received); err != nil {
			return err
		}
	}
	if err := w.activateInside(d); err != nil {
		return err
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventExpired, d.ExpiredAt, *d, nil, nil)
}

// trackOverdue adds the event of a parcel that was not collected in time. No record tells of
// it, so its event has the id that any other of its kind would have.
func (w *timeline) trackOverdue(number string, due time.Time) error {
	return w.track(Occurrence{OccurredAt: due}, number, otep.PickupOverdue, func(e *otep.Event) {
		e.IncidentReason, e.EventID = "pickup_expired", otep.ID(otep.Subject{TrackingNumber: number}, *e)
	})
}

// closeOverdue closes a delivery's overdue exception.
func (w *handling) closeOverdue(d *cloud.Delivery, resolution, by string) error {
	if d.Status != cloud.DeliveryExpired {
		return nil
	}
	rows, err := w.v.OpenExceptions(w.device.ID)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Type != exOverdue || row.DeliveryID != d.ID {
			continue
		}
		e, err := w.exception(row.Source)
		if err != nil || e == nil {
			return err
		}
		e.Status, e.Resolution, e.ClosedAt, e.ClosedBy = "resolved", resolution, w.received, by
		w.touch(e)
	}
	return nil
}

// isOverdue reports whether a delivery lies in its compartments past the time to collect it.
func isOverdue(d cloud.Delivery) bool {
	return d.Status == cloud.DeliveryExpired && d.ExpiredKind == expiredOverdue
}

// waits reports whether a delivery waits to be collected, in time or overdue.
func waits(d cloud.Delivery) bool { return d.Status == cloud.DeliveryDelivered || isOverdue(d) }

// ExtendInput gives the recipient more time.
type ExtendInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Hours    int         `json:"hours" required:"true" min:"1" max:"168"`
}

// ExtendOutput is the answer to an extension.
type ExtendOutput struct {
	Result bool    `json:"result"`
	DueAt  *string `json:"due_at"`
}

// Extend moves a deposit's due time by 1 to 168 hours; an overdue one counts
// from now and waits for its recipient again. Errors: DELIVERY_NOT_FOUND,
// VALIDATION_FAILED, DELIVERY_STATE_CONFLICT.
func (s partners) Extend(ctx context.Context, c cloud.Caller, in ExtendInput) (ExtendOutput, error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return w.extend(c, d, time.Duration(in.Hours)*time.Hour) })
	if err != nil {
		return ExtendOutput{}, err
	}
	shown, err := s.show(ctx, id)
	return ExtendOutput{Result: err == nil, DueAt: shown.Delivery.DueAt}, err
}

func (w requests) extend(c cloud.Caller, d *cloud.Delivery, by time.Duration) error {
	if !waits(*d) {
		return conflict(*d)
	}
	from := d.DueAt
	if from.Before(w.received) {
		from = w.received
	}
	if err := w.closeOverdue(d, extended, closer(c)); err != nil {
		return err
	}
	d.DueAt = from.Add(by)
	if !d.IsOutgoing() {
		if err := w.remindLater(d); err != nil {
			return err
		}
	}
	d.Status, d.ExpiredKind, d.ExpiredAt = cloud.DeliveryDelivered, "", time.Time{}
	w.touch(d)
	if err := w.activateInside(d); err != nil {
		return err
	}
	orders, err := w.deviceOrders(d.ID)
	if err != nil {
		return err
	}
	for _, row := range orders {
		if row.EndedAt.IsZero() && !row.StoredAt.IsZero() && !row.IsUnverified() {
			row.DueAt, row.OverdueAt, row.Status, row.NextActor = d.DueAt, time.Time{}, "stored", nextActor(*d)
			w.touch(row)
		}
	}
	w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c),
		Action: "delivery_extended", Target: d.Number, Detail: fmt.Sprintf(`{"hours":%d}`, int(by/time.Hour))})
	return nil
}
