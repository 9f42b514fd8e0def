package locker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// EditInput changes a delivery; what is absent stays.
type EditInput struct {
	Delivery      DeliveryKey      `path:"id" json:"-"`
	Recipient     *cloud.Recipient `json:"recipient"`
	Courier       *cloud.Courier   `json:"courier"`
	DeliverBefore string           `json:"deliver_before" format:"date-time"`
	Notify        *cloud.Notify    `json:"notify"`
	Metadata      json.RawMessage  `json:"metadata"`
}

// Edit changes who brings, who collects and until when the courier may come.
// The recipient stays once the parcels were collected, the deadline once they
// were left. Errors: DELIVERY_NOT_FOUND, VALIDATION_FAILED,
// DELIVERY_STATE_CONFLICT.
func (s partners) Edit(ctx context.Context, c cloud.Caller, in EditInput) (DeliveryOutput, error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return w.edit(d, in) })
	if err != nil {
		return DeliveryOutput{}, err
	}
	return s.show(ctx, id)
}

func (w requests) edit(d *cloud.Delivery, in EditInput) error {
	biz, err := w.v.Business(d.BusinessID)
	if err != nil {
		return err
	}
	f := newFields()
	var before time.Time
	if in.DeliverBefore != "" {
		before = f.deliverBefore(in.DeliverBefore, biz.Location(), w.received)
	}
	if in.Recipient != nil {
		f.recipient(*in.Recipient)
	}
	f.metadata(in.Metadata)
	if err := f.Err(); err != nil {
		return err
	}
	if in.Recipient != nil {
		if d.Status == cloud.DeliveryPickedUp {
			return conflict(*d)
		}
		d.Recipient = *in.Recipient
	}
	if in.Courier != nil {
		d.Courier = in.Courier
	}
	if in.Notify != nil {
		d.Notify = *in.Notify
	}
	if len(in.Metadata) > 0 {
		d.Metadata = in.Metadata
	}
	w.touch(d)
	if in.DeliverBefore == "" {
		return nil
	}
	switch d.Status {
	case cloud.DeliveryCreated, cloud.DeliveryDoorsOpened:
		d.DeliverBefore = before
		return w.place(d)
	case cloud.DeliveryFailed:
		d.DeliverBefore = before
		return nil // its codes are listed anew by the next try
	}
	return conflict(*d)
}

// AddPackageInput is one more package of a delivery.
type AddPackageInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	PackageInput
}

// AddPackage adds a package to a delivery that no door has opened for.
// Errors: DELIVERY_NOT_FOUND, VALIDATION_FAILED, DELIVERY_STATE_CONFLICT,
// NO_COMPARTMENT, PARCEL_TOO_LARGE.
func (s partners) AddPackage(ctx context.Context, c cloud.Caller, in AddPackageInput) (DeliveryOutput, error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return w.addPackage(c, d, in.PackageInput) })
	if err != nil {
		return DeliveryOutput{}, err
	}
	return s.show(ctx, id)
}

// untouched refuses to change the packages of a delivery that has begun.
func (w requests) untouched(d *cloud.Delivery) error {
	if d.Status != cloud.DeliveryCreated {
		return conflict(*d)
	}
	last, err := w.lastOpening(d)
	if err == nil && last != nil && !last.Ended() {
		err = conflict(*d)
	}
	return err
}

func (w requests) addPackage(c cloud.Caller, d *cloud.Delivery, in PackageInput) error {
	if err := w.untouched(d); err != nil {
		return err
	}
	f := newFields()
	if slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return strings.EqualFold(p.TrackingNumber, in.TrackingNumber) }) {
		f.Say("tracking_number", check.MessageTwice)
	}
	if len(d.Packages) >= maxPackages {
		f.Add("tracking_number", "A delivery has 1 to 10 packages.")
	}
	if err := f.Err(); err != nil {
		return err
	}
	reserved := slices.ContainsFunc(d.Packages, func(p cloud.Package) bool { return p.GridID != 0 })
	d.Packages = append(d.Packages, newPackage(len(d.Packages), in))
	if err := w.s.link(w.v, d, len(d.Packages)-1, "tracking_number"); err != nil {
		return err
	}
	w.touch(d)
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	if err := refuseTooLarge(cells, d.Packages[len(d.Packages)-1]); err != nil {
		return err
	}
	if reserved {
		taken, err := reserve(cells, d)
		if err != nil {
			return err
		}
		for _, cell := range taken {
			w.touch(cell)
		}
	}
	added := &d.Packages[len(d.Packages)-1]
	if added.OrderID != 0 {
		w.toOrder(cloud.LockerAnnounced, d, added, cloud.Moment{At: w.received})
	} else if err := announce(w.v, &w.ch, c, *d, len(d.Packages)-1, w.received); err != nil {
		return err
	}
	return w.place(d)
}

// RemovePackageInput takes a package out of a delivery.
type RemovePackageInput struct {
	Delivery       DeliveryKey `path:"id"`
	TrackingNumber string      `path:"tracking_number"`
}

// RemovePackage takes a package out of a delivery that no door has opened for.
// Errors: DELIVERY_NOT_FOUND, PACKAGE_NOT_IN_DELIVERY, DELIVERY_STATE_CONFLICT
// (also for the last one).
func (s partners) RemovePackage(ctx context.Context, c cloud.Caller, in RemovePackageInput) (DeliveryOutput, error) {
	id, err := s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error { return w.removePackage(d, in.TrackingNumber) })
	if err != nil {
		return DeliveryOutput{}, err
	}
	return s.show(ctx, id)
}

func (w requests) removePackage(d *cloud.Delivery, number string) error {
	i := slices.IndexFunc(d.Packages, func(p cloud.Package) bool { return p.TrackingNumber == number })
	if i < 0 {
		return cloud.E(cloud.Conflict, "PACKAGE_NOT_IN_DELIVERY")
	}
	if err := w.untouched(d); err != nil {
		return err
	}
	if len(d.Packages) == 1 {
		return conflict(*d)
	}
	d.Packages = slices.Delete(slices.Clone(d.Packages), i, i+1)
	for j := range d.Packages {
		d.Packages[j].Position = j
	}
	w.touch(d)
	s, err := w.shipment(number)
	if err != nil {
		return err
	}
	if s != nil && s.DeliveryID == d.ID {
		held, err := w.v.DeliveriesOf(s.Shipment)
		if err != nil {
			return err
		}
		s.DeliveryID = 0
		for _, x := range held {
			if x.ID != d.ID {
				s.DeliveryID = x.ID
			}
		}
		w.touch(s)
	}
	if err := w.releaseSpare(d); err != nil {
		return err
	}
	return w.place(d)
}

// PickupBody is the block "pickup".
type PickupBody struct {
	Status           string      `json:"status"` // waiting, collected, overdue
	PickupCodeActive bool        `json:"pickup_code_active"`
	DueAt            *string     `json:"due_at"`
	PickedUpAt       *string     `json:"picked_up_at"`
	PickedUpBy       *pickedUpBy `json:"picked_up_by"`
}

// PickupOutput shows how far a pickup is.
type PickupOutput struct {
	Result bool       `json:"result"`
	Pickup PickupBody `json:"pickup"`
}

// Pickup shows whether a deposit was collected. Errors: DELIVERY_NOT_FOUND,
// DELIVERY_STATE_CONFLICT when nothing was deposited.
func (s partners) Pickup(ctx context.Context, c cloud.Caller, key DeliveryKey) (out PickupOutput, err error) {
	err = s.lookAt(ctx, c, key, func(v cloud.View, d cloud.Delivery, biz cloud.Business) error {
		l := biz.Location()
		out = PickupOutput{Result: true, Pickup: PickupBody{Status: "waiting", PickupCodeActive: d.PickupCodeActive,
			DueAt: cloud.Stamp(d.DueAt, l), PickedUpAt: cloud.Stamp(d.PickedUpAt, l)}}
		switch {
		case d.Status == cloud.DeliveryPickedUp:
			out.Pickup.Status, out.Pickup.PickedUpBy = "collected", &pickedUpBy{d.PickedUpBy, d.PickedUpMethod}
			if d.PickedUpBy == byCourier && !d.IsOutgoing() || d.PickedUpBy == byStaff && d.PickedUpMethod == overdueReturn {
				out.Pickup.Status = "returned"
			}
		case isOverdue(d):
			out.Pickup.Status = "overdue"
		case d.Status == cloud.DeliveryDelivered, d.Status == cloud.DeliveryCorrecting:
		default:
			return conflict(d)
		}
		return nil
	})
	return out, err
}
