package locker

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/wire"
)

// CancelInput ends a delivery before its deposit.
type CancelInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Reason   string      `json:"reason" max:"255"`
}

// Cancel ends a delivery. With doors opened the cabinet has to answer first.
// Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, DEVICE_OFFLINE,
// DEVICE_TIMEOUT.
func (s partners) Cancel(ctx context.Context, c cloud.Caller, in CancelInput) (DeliveryOutput, error) {
	return s.giveUp(ctx, c, in.Delivery, func(_ *handling, d *cloud.Delivery) error {
		d.CancelReason, d.CancelledBy, d.FailureCode = in.Reason, "partner_api", ""
		return nil
	})
}

// FailInput reports that packages could not be delivered: all of them by one
// failure_code, or those that are named, each with its own.
type FailInput struct {
	Delivery    DeliveryKey   `path:"id" json:"-"`
	Packages    []FailPackage `json:"packages"`
	FailureCode string        `json:"failure_code" enum:"NO_COMPARTMENT,DOOR_NOT_OPENED,DEVICE_OFFLINE,PARCEL_TOO_LARGE,COMPARTMENT_OCCUPIED,COURIER_ABORTED,NOT_DEPOSITED,RECIPIENT_UNKNOWN,OTHER" doc:"Of all packages; required when none is named"`
	Note        string        `json:"note" max:"255"`
}

// FailPackage is one package that could not be delivered.
type FailPackage struct {
	TrackingNumber string `json:"tracking_number"`
	FailureCode    string `json:"failure_code" required:"true" enum:"NO_COMPARTMENT,DOOR_NOT_OPENED,DEVICE_OFFLINE,PARCEL_TOO_LARGE,COMPARTMENT_OCCUPIED,COURIER_ABORTED,NOT_DEPOSITED,RECIPIENT_UNKNOWN,OTHER"`
}

const doorNotOpened = "DOOR_NOT_OPENED"

func (in FailInput) check() error {
	f := newFields()
	switch {
	case len(in.Packages) == 0 && in.FailureCode == "":
		f.Say("failure_code", check.MessageRequired)
	case len(in.Packages) > 0 && in.FailureCode != "":
		f.Add("failure_code", "Give one failure_code for all packages, or packages with their own.")
	}
	return f.Err()
}

// Fail takes a report that packages could not be delivered. When none is left
// the delivery fails; with doors opened the cabinet has to answer first.
// Packages that fail while others are being deposited keep their code and are
// reported when the rest has settled, and so are those that are taken out in a
// correction: their door has to be one that it opened, and one package has to
// stay. Errors: DELIVERY_NOT_FOUND,
// VALIDATION_FAILED, PACKAGE_NOT_IN_DELIVERY, DELIVERY_STATE_CONFLICT,
// DEVICE_OFFLINE, DEVICE_TIMEOUT.
func (s partners) Fail(ctx context.Context, c cloud.Caller, in FailInput) (DeliveryOutput, error) {
	if err := in.check(); err != nil {
		return DeliveryOutput{}, err
	}
	return s.giveUp(ctx, c, in.Delivery, func(w *handling, d *cloud.Delivery) error {
		d.CancelReason, d.CancelledBy, d.FailureCode = "", "", in.FailureCode
		left := len(d.Packages)
		for i := range d.Packages {
			p := &d.Packages[i]
			code := in.FailureCode
			if j := slices.IndexFunc(in.Packages, func(x FailPackage) bool { return x.TrackingNumber == p.TrackingNumber }); j >= 0 {
				code = in.Packages[j].FailureCode
			}
			if code == "" && p.Status != cloud.PackageFailed {
				continue
			}
			left--
			if code != "" {
				p.FailureCode, d.FailureCode = code, code
			}
		}
		for _, x := range in.Packages {
			if findPackage(d, x.TrackingNumber) == nil {
				return cloud.E(cloud.Conflict, "PACKAGE_NOT_IN_DELIVERY")
			}
		}
		if in.Note != "" {
			w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: "provider:" + strconv.FormatInt(int64(d.ProviderID), 10),
				Action: "delivery_failed", Target: d.Number, Detail: `{"note":` + strconv.Quote(in.Note) + `}`})
		}
		if left == 0 {
			return nil
		}
		if d.Status == cloud.DeliveryCreated {
			return conflict(*d) // before doors have opened, a package is taken out of the delivery
		}
		d.FailureCode = ""
		var correction *cloud.Opening
		if d.Status == cloud.DeliveryCorrecting {
			var err error
			if correction, err = w.newestOpening(d, func(o cloud.Opening) bool { return o.Kind == wire.OpenCorrection }); err != nil {
				return err
			}
		}
		for _, x := range in.Packages {
			p := findPackage(d, x.TrackingNumber)
			if d.Status == cloud.DeliveryCorrecting && p.Status != cloud.PackageFailed && !hasOpened(correction, x.TrackingNumber) {
				return conflict(*d) // its door stayed closed
			}
			p.Status = cloud.PackageFailed
		}
		return errPart
	})
}

// hasOpened reports whether the door behind which a package lies was seen open in an opening.
func hasOpened(o *cloud.Opening, number string) bool {
	return o != nil && slices.ContainsFunc(o.Doors, func(d cloud.OpeningDoor) bool { return slices.Contains(d.Packages, number) && !d.OpenedAt.IsZero() })
}

// errPart says that a report was about a part of the packages: the delivery goes
// on with the others.
var errPart = errors.New("the other packages go on")

// giveUp ends a delivery before its deposit for a reason that mark writes into
// it. While an opening runs it asks the cabinet to end it, and its answer ends
// the delivery.
func (s partners) giveUp(ctx context.Context, c cloud.Caller, key DeliveryKey, mark func(*handling, *cloud.Delivery) error) (out DeliveryOutput, err error) {
	var order *cloud.Command
	id, err := s.decide(ctx, c, key, func(w *Work, d *cloud.Delivery) (err error) {
		order, err = w.giveUp(d, mark)
		return err
	})
	if err != nil {
		return out, err
	}
	if order != nil {
		if _, err := s.await(ctx, *order, maxWait*time.Second); err != nil {
			return out, err
		}
	}
	return s.show(ctx, id)
}

func (w requests) giveUp(d *cloud.Delivery, mark func(*handling, *cloud.Delivery) error) (*cloud.Command, error) {
	if d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened && d.Status != cloud.DeliveryCorrecting {
		return nil, conflict(*d)
	}
	last, err := w.lastOpening(d)
	if err != nil {
		return nil, err
	}
	w.touch(d)
	switch err := mark(w.handling, d); {
	case errors.Is(err, errPart):
		return nil, nil
	case err != nil:
		return nil, err
	case d.Status == cloud.DeliveryCorrecting:
		return nil, conflict(*d) // what was deposited is no longer given up as a whole
	}
	if last != nil && !last.Ended() {
		if err := w.online(); err != nil {
			return nil, err
		}
		cmd, err := w.send(last.ID, wire.CmdCloseSession, wire.CloseSession{OpeningID: last.ID, How: wire.CloseCancel}, nil, commandLife)
		return &cmd, err
	}
	if err := w.releaseCells(d); err != nil {
		return nil, err
	}
	return nil, w.givenUp(w.stated(wire.KindOpeningEnded), d)
}

// givenUp ends a delivery that its partner has cancelled or reported as failed.
func (w *handling) givenUp(r Occurrence, d *cloud.Delivery) error {
	if d.CancelledBy == "" {
		return w.fail(r, nil, d)
	}
	if err := w.revoke(d, deliveryKinds...); err != nil {
		return err
	}
	d.Status, d.CancelledAt, d.PickupCodeActive = cloud.DeliveryCancelled, r.OccurredAt, false
	for i := range d.Packages {
		d.Packages[i].Status = cloud.PackageCancelled
	}
	w.touch(d)
	return w.s.addDeliveryEvent(w.v, &w.ch, EventCancelled, r.OccurredAt, *d, nil, nil)
}

// fail ends a delivery none of whose packages could be delivered, for its
// failure code; a package may have its own. Its codes end: another try has
// them listed anew.
func (w *handling) fail(r Occurrence, o *cloud.Opening, d *cloud.Delivery) error {
	d.Status, d.FailedAt, d.PickupCodeActive = cloud.DeliveryFailed, r.OccurredAt, false
	w.touch(d)
	if err := w.revoke(d, deliveryKinds...); err != nil {
		return err
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.FailureCode == "" {
			p.FailureCode = d.FailureCode
		}
		p.Status, p.GridID = cloud.PackageFailed, 0
		if err := w.trackLoss(r, o, d, p); err != nil {
			return err
		}
	}
	return w.s.addDeliveryEvent(w.v, &w.ch, EventDeliveryFailed, r.OccurredAt, *d, o, nil)
}
