package locker

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// DropoffInput names a delivery that its sender brings, for that sender.
type DropoffInput struct {
	Number string `path:"delivery_number" doc:"As in LD-000064021"`
	Key    string `header:"X-Tracking-Key"` // secret of the sender's link
}

// DropoffOutput shows a delivery to its sender.
type DropoffOutput struct {
	Result  bool        `json:"result"`
	Dropoff DropoffBody `json:"dropoff"`
}

// DropoffBody is a delivery as its sender sees it: nothing of its recipient.
type DropoffBody struct {
	ReturnBody
	Purpose   string       `json:"purpose" doc:"send or return"`
	State     DropoffState `json:"state" doc:"to_bring; brought: it waits for a courier; collected; cancelled; too_late: it was not brought in time; failed"`
	CanCancel bool         `json:"can_cancel" doc:"The sender can cancel it: it was not brought yet"`
	Timezone  string       `json:"timezone" doc:"Of the locker and its opening hours"`
}

// DropoffState is how far a delivery has come for its sender.
type DropoffState string

// States of a drop-off.
const (
	DropoffToBring   DropoffState = "to_bring"
	DropoffBrought   DropoffState = "brought"
	DropoffCollected DropoffState = "collected"
	DropoffCancelled DropoffState = "cancelled"
	DropoffTooLate   DropoffState = "too_late"
	DropoffFailed    DropoffState = "failed"
)

// dropoffState is how far a delivery that its sender brings has come at now.
func dropoffState(d cloud.Delivery, now time.Time) DropoffState {
	switch {
	case waits(d), d.Status == cloud.DeliveryCorrecting:
		return DropoffBrought
	case canBeBrought(d, now):
		return DropoffToBring
	case d.Status == cloud.DeliveryPickedUp:
		return DropoffCollected
	case d.Status == cloud.DeliveryCancelled:
		return DropoffCancelled
	case d.Status == cloud.DeliveryFailed:
		return DropoffFailed
	}
	return DropoffTooLate
}

// FindDropoff shows a delivery to the sender who brings it: by the key of the sender's link,
// or signed in as a customer with the sender's mail address. Error: DELIVERY_NOT_FOUND, alike
// for a number that is not known, a wrong key and another person's account.
func (s senders) FindDropoff(ctx context.Context, c cloud.Caller, in DropoffInput) (out DropoffOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := s.broughtBy(v, in.Number, proof{c, in.Key})
		if err != nil {
			return err
		}
		out, err = s.dropoff(v, d, time.Now())
		return err
	})
	return out, err
}

// CancelDropoff ends a delivery for the sender who was to bring it. With doors opened the
// cabinet has to answer first. Errors: those of FindDropoff, DELIVERY_STATE_CONFLICT,
// DEVICE_OFFLINE, DEVICE_TIMEOUT.
func (s senders) CancelDropoff(ctx context.Context, c cloud.Caller, in DropoffInput) (out DropoffOutput, err error) {
	by, id, partner := proof{c, in.Key}, cloud.DeliveryID(0), cloud.Caller{}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := s.broughtBy(v, in.Number, by)
		if err != nil {
			return err
		}
		id = d.ID
		partner.Provider, err = v.Provider(d.ProviderID)
		return err
	})
	if err != nil {
		return out, err
	}
	_, err = partners(s).giveUp(ctx, partner, DeliveryKey(strconv.FormatInt(int64(id), 10)), func(w *handling, d *cloud.Delivery) error {
		if err := s.isSender(w.v, *d, by); err != nil {
			return err
		}
		if !canBeBrought(*d, w.received) {
			return conflict(*d)
		}
		d.CancelReason, d.CancelledBy, d.FailureCode = "", bySender, ""
		w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: by.actor(), Action: "dropoff_cancelled", Target: d.Number, Detail: "{}"})
		return nil
	})
	if err != nil {
		return out, err
	}
	return s.FindDropoff(ctx, c, in)
}

// broughtBy is the delivery of a number that the sender brings whose proof p is. Error:
// DELIVERY_NOT_FOUND.
func (s senders) broughtBy(v cloud.View, number string, p proof) (cloud.Delivery, error) {
	d, err := v.DeliveryByNumber(strings.ToUpper(strings.TrimSpace(number)))
	if errors.Is(err, cloud.ErrNotFound) {
		return d, cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	}
	if err != nil {
		return d, err
	}
	return d, s.isSender(v, d, p)
}

// isSender refuses with DELIVERY_NOT_FOUND a proof that is not of a delivery's sender.
func (s senders) isSender(v cloud.View, d cloud.Delivery, p proof) error {
	good := s.cfg.Links.IsLink(s.cfg.Links.OfSender(d.ID), p.key)
	if p.byAccount() {
		mail, err := mailOf(v, p.caller)
		if err != nil {
			return err
		}
		good = d.Livemode && d.BusinessID == p.caller.Account.BusinessID && d.Sender != nil && isAddress(d.Sender.Email, mail)
	}
	if !good || !d.IsOutgoing() {
		return cloud.E(cloud.NotFound, "DELIVERY_NOT_FOUND")
	}
	return nil
}

// dropoff shows a delivery at now.
func (s senders) dropoff(v cloud.View, d cloud.Delivery, now time.Time) (DropoffOutput, error) {
	dev, err := v.Device(d.DeviceID)
	if err != nil {
		return DropoffOutput{}, err
	}
	b, err := recipients(s).returnBody(v, d, now)
	state := dropoffState(d, now)
	return DropoffOutput{Result: true, Dropoff: DropoffBody{ReturnBody: b, Purpose: purposeName(d), State: state, CanCancel: state == DropoffToBring, Timezone: dev.Timezone}}, err
}

// senderLink is the link to the page of a delivery for the sender who brings it; "" in a
// deployment without a public address.
func (s *core) senderLink(d cloud.Delivery) string {
	secret := s.cfg.Links.OfSender(d.ID)
	if s.cfg.LinkBase == "" || secret == "" {
		return ""
	}
	return s.cfg.LinkBase + "/dropoff/" + url.PathEscape(d.Number) + "?k=" + url.QueryEscape(secret)
}
