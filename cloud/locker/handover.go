package locker

import (
	"context"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// HandoverInput names the person who collects a delivery in the recipient's place.
type HandoverInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Name     string      `json:"name" required:"true" max:"120" doc:"Who collects"`
	Phone    string      `json:"phone" max:"32" format:"phone"`
}

// TakeBackInput ends a handover.
type TakeBackInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
}

// ParcelHandoverInput is HandoverInput from a recipient.
type ParcelHandoverInput struct {
	Number string `path:"delivery_number" doc:"As in LD-000064021"`
	Key    string `header:"X-Tracking-Key"` // secret of the parcel's link
	Name   string `json:"name" required:"true" max:"120" doc:"Who collects"`
	Phone  string `json:"phone" max:"32" format:"phone"`
}

// ParcelTakeBackInput is TakeBackInput from a recipient.
type ParcelTakeBackInput struct {
	Number string `path:"delivery_number" doc:"As in LD-000064021"`
	Key    string `header:"X-Tracking-Key"`
}

// HandoverBody is the person who collects in the recipient's place.
type HandoverBody struct {
	Name  string  `json:"name"`
	Phone *string `json:"phone"`
	Since *string `json:"since"`
}

// HandoverOutput is the answer to a handover and to its end. AppliedOnDevice tells
// whether a status of the cabinet has confirmed the list with the new code; until then
// it may take the former one.
type HandoverOutput struct {
	Result          bool          `json:"result"`
	DeliveryNumber  string        `json:"delivery_number"`
	Handover        *HandoverBody `json:"handover" doc:"null once it was taken back"`
	PickupCode      *string       `json:"pickup_code" doc:"The only code that opens from now on; null for staff, who see no codes"`
	AppliedOnDevice bool          `json:"applied_on_device"`
}

// recipientReason is why a code is replaced for whom a recipient names.
const recipientReason = "recipient_request"

// HandOver gives the pickup of a delivery that waits to another person: a handover
// code takes the place of the pickup code, which is dead in the cloud at once, and at
// the cabinet as soon as its list has the new one. A second handover takes the place
// of the first. Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT (no pickup code
// is active). Source: lockers-devices 3, 11.
func (s partners) HandOver(ctx context.Context, c cloud.Caller, in HandoverInput) (HandoverOutput, error) {
	return s.handOver(ctx, c, in.Delivery, &cloud.Handover{Name: in.Name, Phone: in.Phone}, doneBy(c), nil)
}

// TakeBack ends a handover: the handover code dies, and the recipient has a pickup
// code again, another than before. Errors: DELIVERY_NOT_FOUND,
// DELIVERY_STATE_CONFLICT (also without a handover).
func (s partners) TakeBack(ctx context.Context, c cloud.Caller, in TakeBackInput) (HandoverOutput, error) {
	return s.handOver(ctx, c, in.Delivery, nil, doneBy(c), nil)
}

// HandOverByStaff is HandOver; the code goes to the partner of the delivery alone.
func (s staff) HandOverByStaff(ctx context.Context, c cloud.Caller, in HandoverInput) (HandoverOutput, error) {
	out, err := partners(s).HandOver(ctx, c, in)
	out.PickupCode = nil
	return out, err
}

// TakeBackByStaff is TakeBack; the code goes to the partner of the delivery alone.
func (s staff) TakeBackByStaff(ctx context.Context, c cloud.Caller, in TakeBackInput) (HandoverOutput, error) {
	out, err := partners(s).TakeBack(ctx, c, in)
	out.PickupCode = nil
	return out, err
}

// HandOverParcel is HandOver by the recipient. A number that is not known, a link that is
// not the delivery's and an account that it is not for are answered alike.
func (s recipients) HandOverParcel(ctx context.Context, c cloud.Caller, in ParcelHandoverInput) (HandoverOutput, error) {
	return s.handOverByRecipient(ctx, in.Number, proof{c, in.Key}, &cloud.Handover{Name: in.Name, Phone: in.Phone})
}

// TakeBackParcel is TakeBack by the recipient.
func (s recipients) TakeBackParcel(ctx context.Context, c cloud.Caller, in ParcelTakeBackInput) (HandoverOutput, error) {
	return s.handOverByRecipient(ctx, in.Number, proof{c, in.Key}, nil)
}

// byRecipient names the recipient of a parcel, in a rotation.
const byRecipient = "recipient"

func (s recipients) handOverByRecipient(ctx context.Context, number string, p proof, to *cloud.Handover) (HandoverOutput, error) {
	of, err := s.parcelOf(ctx, number, p)
	if err != nil {
		return HandoverOutput{}, err
	}
	return partners(s).handOver(ctx, of.partner, DeliveryKey(strconv.FormatInt(int64(of.ID), 10)), to, byRecipient, &of)
}

// doneBy names a caller in a rotation.
func doneBy(c cloud.Caller) string {
	if c.Account.Type.IsStaff() {
		return string(wire.ByConsole)
	}
	return string(wire.ByPartnerAPI)
}

// handOver draws a code for another person, or for the recipient again (nil). of is the
// delivery of a recipient who asks for it, nil when others do.
func (s partners) handOver(ctx context.Context, c cloud.Caller, key DeliveryKey, to *cloud.Handover, by string, of *received) (out HandoverOutput, err error) {
	code, _, applied, err := s.renew(ctx, c, key, wire.CodePickup, func(w *Work, d *cloud.Delivery, code string, verifier []byte) (rot Rotation, err error) {
		if of != nil {
			if err := of.proven(w.v, *d); err != nil {
				return rot, err
			}
		}
		if !d.PickupCodeActive || to == nil && d.Handover == nil {
			return rot, conflict(*d)
		}
		d.Handover = nil
		if to != nil {
			d.Handover = &cloud.Handover{Name: to.Name, Phone: to.Phone, At: w.received}
		}
		if rot, err = w.rotate(d, wire.CodePickup, recipientReason, by, code, verifier); err != nil {
			return rot, err
		}
		biz, err := w.v.Business(d.BusinessID)
		if err != nil {
			return rot, err
		}
		out = HandoverOutput{DeliveryNumber: d.Number, Handover: handoverBody(*d, biz.Location())}
		who, action := actor(c), "parcel_handed_over"
		if of != nil {
			who = of.actor
		}
		if to == nil {
			action = "parcel_taken_back"
		}
		w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: who, Action: action, Target: d.Number, Detail: "{}"})
		return rot, nil
	})
	if err != nil {
		return HandoverOutput{}, err
	}
	out.Result, out.PickupCode, out.AppliedOnDevice = true, &code, applied
	return out, nil
}
