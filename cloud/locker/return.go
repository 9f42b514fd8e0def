package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// returnWithin is how long after the collection a recipient may ask for a return.
const returnWithin = 14 * 24 * time.Hour

// ParcelReturnInput names a delivery that was collected, for its recipient.
type ParcelReturnInput struct {
	Number string `path:"delivery_number" doc:"As in LD-000064021"`
	Key    string `header:"X-Tracking-Key"` // secret of the parcel's link
}

// ParcelReturnOutput shows the return of a delivery.
type ParcelReturnOutput struct {
	Result bool       `json:"result"`
	Return ReturnBody `json:"return"`
	// Created is set for one that did not exist before.
	Created bool `json:"-"`
}

// ReturnBody is a return, or another parcel that a person brings, as that person sees it.
type ReturnBody struct {
	DeliveryNumber  string                `json:"delivery_number" doc:"Of what is brought"`
	TrackingNumbers []string              `json:"tracking_numbers" doc:"Packages of what is brought, with which it is tracked"`
	Status          cloud.DeliveryStatus  `json:"status" doc:"created and doors_opened: it can be brought; delivered: it waits for a courier; picked_up: a courier has collected it"`
	Locker          ParcelLocker          `json:"locker"`
	DropoffCode     *string               `json:"dropoff_code" doc:"Opens the compartment to put the parcel in; null once that is over"`
	DropoffQR       *string               `json:"dropoff_qr" doc:"Text of the QR code that the cabinet's scanner reads in place of dropoff_code"`
	BringBefore     *string               `json:"bring_before"`
	OpeningHours    *[]cloud.OpeningHours `json:"opening_hours" doc:"Null is always open"`
}

// CollectedBody is a delivery that its recipient has collected and can return.
type CollectedBody struct {
	DeliveryNumber  string      `json:"delivery_number"`
	TrackingNumbers []string    `json:"tracking_numbers"`
	LockerName      string      `json:"device_name" doc:"Of the locker to which it can be brought back"`
	ReturnBefore    *string     `json:"return_before" doc:"Until when a return can be asked for"`
	Return          *ReturnBody `json:"return" doc:"Null: none was asked for"`
}

// ReturnParcel makes the return of a delivery that its recipient has collected: a delivery
// with the purpose return to the same cabinet, which the recipient brings and a courier of
// the partner collects. A delivery has one return, unless that was cancelled, has failed or
// was not brought in time: asked again, it is shown. Errors: DELIVERY_NOT_FOUND (also for a
// link that is not the delivery's, and an account that it is not for), DELIVERY_STATE_CONFLICT (its recipient has not collected
// it), RETURN_NOT_OFFERED, RETURN_WINDOW_CLOSED, DEVICE_DISABLED, NO_COMPARTMENT,
// PARCEL_TOO_LARGE.
func (s recipients) ReturnParcel(ctx context.Context, c cloud.Caller, in ParcelReturnInput) (out ParcelReturnOutput, err error) {
	now := time.Now().UTC()
	device, made, err := s.toReturn(ctx, in.Number, proof{c, in.Key}, now)
	if err != nil {
		return out, err
	}
	if made {
		return s.FindReturn(ctx, c, in)
	}
	for range 20 { // a drawn code may be in use
		drawn, err := partners(s).draw(ctx, device, wire.PurposeReturn)
		if err != nil {
			return out, err
		}
		err = s.cfg.Store.Decide(ctx, device.ID, func(v cloud.View) (*cloud.Changes, error) {
			ch, shown, err := s.makeReturn(v, in.Number, proof{c, in.Key}, now, drawn)
			out = shown
			return ch, err
		})
		if errors.Is(err, errCodeTaken) || errors.Is(err, errSecretsChanged) || errors.Is(err, cloud.ErrExists) {
			continue
		}
		return out, err
	}
	return ParcelReturnOutput{}, errors.New("no free code could be drawn")
}

// FindReturn shows the return of a delivery. Errors: DELIVERY_NOT_FOUND (also for a link that
// is not the delivery's, and without a return).
func (s recipients) FindReturn(ctx context.Context, c cloud.Caller, in ParcelReturnInput) (out ParcelReturnOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := s.collectedBy(v, in.Number, proof{c, in.Key})
		if err != nil {
			return err
		}
		back, err := returnOf(v, d)
		if err != nil {
			return err
		}
		if back == nil {
			return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
		}
		out.Result = true
		out.Return, err = s.returnBody(v, *back, time.Now())
		return err
	})
	return out, err
}

// toReturn is the cabinet of a delivery that can be returned at now, or has a return already.
func (s recipients) toReturn(ctx context.Context, number string, p proof, now time.Time) (device cloud.Device, made bool, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		d, err := s.collectedBy(v, number, p)
		if err != nil {
			return err
		}
		if device, err = v.Device(d.DeviceID); err != nil {
			return err
		}
		back, err := returnOf(v, d)
		if made = back != nil; err != nil || made {
			return err
		}
		return s.returnable(v, d, device, now)
	})
	return device, made, err
}

// collectedBy is a delivery for the recipient whose proof is p, whatever has become of it. Error: DELIVERY_NOT_FOUND.
func (s recipients) collectedBy(v cloud.View, number string, by proof) (cloud.Delivery, error) {
	missing := cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	d, err := v.DeliveryByNumber(strings.ToUpper(strings.TrimSpace(number)))
	if errors.Is(err, cloud.ErrNotFound) {
		return d, missing
	}
	if err != nil {
		return d, err
	}
	if by.byAccount() {
		mail, err := mailOf(v, by.caller)
		if err == nil && !isRecipient(d, by.caller.Account.BusinessID, mail) {
			err = missing
		}
		return d, err
	}
	for _, p := range d.Packages {
		sh, err := shipmentOf(v, d, p)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && len(d.PackagesOf(sh)) == 0 {
			continue
		}
		if err != nil {
			return d, err
		}
		link, err := s.link(v, sh)
		if err != nil {
			return d, err
		}
		if s.cfg.Links.IsLink(link, by.key) {
			return d, nil
		}
	}
	return d, missing
}

// returnable refuses the return of a delivery that cannot be returned at now.
func (s recipients) returnable(v cloud.View, d cloud.Delivery, device cloud.Device, now time.Time) error {
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return err
	}
	ends := d.PickedUpAt.Add(returnWithin)
	switch {
	case d.IsOutgoing() || d.Status != cloud.DeliveryPickedUp || d.PickedUpBy != byRecipient:
		return conflict(d)
	case !biz.Settings.LockerReturns || !device.Livemode || device.Protocol == cloud.ProtocolMock:
		return cloud.E(cloud.Conflict, "RETURN_NOT_OFFERED")
	case now.After(ends):
		return &cloud.Error{Kind: cloud.Conflict, Code: "RETURN_WINDOW_CLOSED", Details: map[string]any{"return_before": cloud.Stamp(ends, biz.Location())}}
	case !device.TakesDeliveries():
		return cloud.E(cloud.Conflict, "DEVICE_DISABLED")
	}
	return nil
}

// returnOf is the return of a delivery that counts: nil when none was asked for, or the last
// one was cancelled, has failed or was not brought in time.
func returnOf(v cloud.View, d cloud.Delivery) (*cloud.Delivery, error) {
	list, err := v.ReturnsOf(d.ID)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	last := list[len(list)-1]
	switch {
	case last.Status == cloud.DeliveryCancelled, last.Status == cloud.DeliveryFailed, last.Status == cloud.DeliveryExpired && !isOverdue(last):
		return nil, nil
	}
	return &last, nil
}

// makeReturn decides on a return once more and makes it.
func (s recipients) makeReturn(v cloud.View, number string, p proof, now time.Time, drawn drawnCodes) (*cloud.Changes, ParcelReturnOutput, error) {
	var out ParcelReturnOutput
	d, err := s.collectedBy(v, number, p)
	if err != nil {
		return nil, out, err
	}
	back, err := returnOf(v, d)
	if err != nil {
		return nil, out, err
	}
	ch := &cloud.Changes{}
	if back == nil {
		device, err := v.Device(d.DeviceID)
		if err != nil {
			return nil, out, err
		}
		if err := s.returnable(v, d, device, now); err != nil {
			return nil, out, err
		}
		asked, c, err := s.askReturn(v, d, now)
		if err != nil {
			return nil, out, err
		}
		if ch, _, err = partners(s).create(v, c, asked, drawn); err != nil {
			return nil, out, err
		}
		back, out.Created = &ch.Deliveries[0], true
		ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: now, Actor: p.actor(), Action: "parcel_return_requested",
			Target: back.Number, Detail: fmt.Sprintf(`{"delivery_number":%q}`, d.Number)})
	}
	out.Result = true
	out.Return, err = s.returnBody(v, *back, now)
	ch.Answer = out
	return ch, out, err
}

// askReturn is the return of a delivery as its partner would have made it: what was collected,
// brought by its recipient.
func (s recipients) askReturn(v cloud.View, d cloud.Delivery, now time.Time) (x creation, c cloud.Caller, err error) {
	if c.Provider, err = v.Provider(d.ProviderID); err != nil {
		return x, c, err
	}
	x = creation{returns: d.ID, before: now.Add(72 * time.Hour), now: now}
	x.DeviceID, x.Purpose, x.CollectWithin = d.DeviceID, wire.PurposeReturn, 72
	x.Recipient = cloud.Recipient{Name: c.Provider.Name}
	x.Sender = &cloud.Sender{Name: d.Recipient.Name, Phone: d.Recipient.Phone, Email: d.Recipient.Email, Language: d.Recipient.Language}
	x.Notify = &cloud.Notify{SMS: d.Notify.SMS, Email: d.Notify.Email}
	cells, err := v.Compartments(d.DeviceID)
	if err != nil {
		return x, c, err
	}
	for _, p := range d.Packages {
		if p.Status != cloud.PackagePickedUp {
			continue
		}
		size := p.Size
		for _, cell := range cells {
			if cell.GridID == p.GridID {
				size = cell.Size // what it lay in
			}
		}
		x.Packages = append(x.Packages, PackageInput{Reference: p.TrackingNumber, Size: size, Weight: p.Weight, Length: p.Length, Width: p.Width, Height: p.Height, Description: p.Description})
	}
	return x, c, nil
}

// nameReturn gives a return its reference, by the delivery's own number, and its packages their
// tracking numbers, which cannot be counted to: 80 random bits.
func nameReturn(d *cloud.Delivery, packages []PackageInput) []PackageInput {
	d.Reference = "RETURN-" + d.Number
	out, secret := make([]PackageInput, len(packages)), rand.Text()[:16]
	for i, p := range packages {
		p.TrackingNumber = fmt.Sprintf("RT-%s-%d", secret, i+1)
		out[i] = p
	}
	return out
}

// returnBody shows a return to the recipient who brings it.
func (s recipients) returnBody(v cloud.View, d cloud.Delivery, now time.Time) (b ReturnBody, err error) {
	biz, err := v.Business(d.BusinessID)
	if err != nil {
		return b, err
	}
	dev, err := v.Device(d.DeviceID)
	if err != nil {
		return b, err
	}
	facts, err := readFacts(v, dev, time.UTC)
	if err != nil {
		return b, err
	}
	b = ReturnBody{DeliveryNumber: d.Number, TrackingNumbers: []string{}, Status: d.Status, Locker: parcelLocker(dev, facts), BringBefore: cloud.Stamp(d.DeliverBefore, biz.Location()), OpeningHours: facts.hours()}
	for _, p := range d.Packages {
		b.TrackingNumbers = append(b.TrackingNumbers, p.TrackingNumber)
	}
	if canBeBrought(d, now) {
		codes, err := s.openCodes(d)
		if err != nil {
			return b, err
		}
		b.DropoffCode, b.DropoffQR = &codes.Delivery, new(passcode.QR(dev.Code, codes.Delivery))
	}
	return b, nil
}

// collected lists what a recipient has collected and can return, or returns.
func (s recipients) collected(v cloud.View, held []cloud.Delivery, now time.Time) ([]CollectedBody, error) {
	out := []CollectedBody{}
	for _, d := range held {
		if d.IsOutgoing() || d.Status != cloud.DeliveryPickedUp {
			continue
		}
		dev, err := v.Device(d.DeviceID)
		if err != nil {
			return nil, err
		}
		biz, err := v.Business(d.BusinessID)
		if err != nil {
			return nil, err
		}
		x := CollectedBody{DeliveryNumber: d.Number, TrackingNumbers: []string{}, LockerName: dev.Name, ReturnBefore: cloud.Stamp(d.PickedUpAt.Add(returnWithin), biz.Location())}
		back, err := returnOf(v, d)
		if err != nil {
			return nil, err
		}
		switch {
		case back != nil:
			shown, err := s.returnBody(v, *back, now)
			if err != nil {
				return nil, err
			}
			x.Return = &shown
		default:
			var refused *cloud.Error
			if err := s.returnable(v, d, dev, now); errors.As(err, &refused) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		for _, p := range d.Packages {
			if p.Status == cloud.PackagePickedUp {
				x.TrackingNumbers = append(x.TrackingNumbers, p.TrackingNumber)
			}
		}
		out = append(out, x)
	}
	return out, nil
}
