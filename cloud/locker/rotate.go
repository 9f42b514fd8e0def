package locker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/passcode"
	"github.com/postern-io/postern/protocol/wire"
)

// RotateInput replaces a code.
type RotateInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Reason   string      `json:"reason" enum:"recipient_request,partner_request,security,resend,reassign" doc:"partner_request when absent"`
}

// RotateOutput is the answer to a rotation. AppliedOnDevice tells whether a
// status of the cabinet has confirmed the list with the new code; until then it
// may take the former one.
type RotateOutput struct {
	Result          bool     `json:"result"`
	PickupCode      string   `json:"pickup_code"`
	Rotation        Rotation `json:"rotation"`
	AppliedOnDevice bool     `json:"applied_on_device"`
}

// RotateDeliveryOutput is the answer to the rotation of a delivery code.
type RotateDeliveryOutput struct {
	Result          bool   `json:"result"`
	DeliveryCode    string `json:"delivery_code"`
	RotatedAt       string `json:"rotated_at"`
	AppliedOnDevice bool   `json:"applied_on_device"`
}

// RotatePickupCode replaces the pickup code. The former dies at once in the
// cloud, and at the cabinet as soon as its list has the new one. Errors:
// DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, VALIDATION_FAILED.
func (s partners) RotatePickupCode(ctx context.Context, c cloud.Caller, in RotateInput) (RotateOutput, error) {
	code, rot, applied, err := s.rotate(ctx, c, in, wire.CodePickup)
	return RotateOutput{Result: err == nil, PickupCode: code, Rotation: rot, AppliedOnDevice: applied}, err
}

// RotateDeliveryCode replaces the courier's code, as RotatePickupCode does the
// recipient's.
func (s partners) RotateDeliveryCode(ctx context.Context, c cloud.Caller, in RotateInput) (RotateDeliveryOutput, error) {
	code, rot, applied, err := s.rotate(ctx, c, in, wire.CodeDelivery)
	return RotateDeliveryOutput{Result: err == nil, DeliveryCode: code, RotatedAt: rot.RotatedAt, AppliedOnDevice: applied}, err
}

func (s partners) rotate(ctx context.Context, c cloud.Caller, in RotateInput, kind string) (code string, rot Rotation, applied bool, err error) {
	if in.Reason == "" {
		in.Reason = "partner_request"
	}
	return s.renew(ctx, c, in.Delivery, kind, func(w *Work, d *cloud.Delivery, code string, verifier []byte) (Rotation, error) {
		return w.rotate(d, kind, in.Reason, "partner_api", code, verifier)
	})
}

// renew draws a code for a delivery of the caller and runs change with it, in a
// decision that may run again with another one: a drawn code may be in use.
func (s partners) renew(ctx context.Context, c cloud.Caller, key DeliveryKey, kind string, change func(w *Work, d *cloud.Delivery, code string, verifier []byte) (Rotation, error)) (code string, rot Rotation, applied bool, err error) {
	var device cloud.Device
	if err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := find(v, c, key)
		if err == nil {
			device, err = v.Device(d.DeviceID)
		}
		return err
	}); err != nil {
		return "", rot, false, err
	}
	for range 20 {
		code, verifier, sealed, err := s.drawOne(ctx, device, kind)
		if err != nil {
			return "", rot, false, err
		}
		var number uint64
		_, err = s.decide(ctx, c, key, func(w *Work, d *cloud.Delivery) (err error) {
			if !bytes.Equal(w.device.SealedCode, sealed) {
				return errSecretsChanged
			}
			rot, err = change(w, d, code, verifier)
			number = w.device.CodeList
			return err
		})
		if errors.Is(err, errCodeTaken) || errors.Is(err, errSecretsChanged) {
			continue
		}
		if err != nil {
			return "", Rotation{}, false, err
		}
		return code, rot, s.listReached(ctx, device.ID, number), nil
	}
	return "", rot, false, errors.New("no free code could be drawn")
}

func (s partners) drawOne(ctx context.Context, d cloud.Device, kind string) (code string, verifier, sealed []byte, err error) {
	secrets, sealed, err := s.secrets(ctx, d.ID)
	if err != nil {
		return "", nil, nil, fmt.Errorf("device %s: %w", d.Code, err)
	}
	digits := passcode.PickupDigits
	if kind == wire.CodeDelivery {
		digits = passcode.DeliveryDigits
	}
	code = passcode.Draw(digits)
	verifier, err = s.verifier(ctx, code, secrets)
	return code, verifier, sealed, err
}

// rotate replaces a code in the cabinet's list and in the delivery. The one for the
// pickup is listed for whom the recipient has named, if anybody.
func (w *codeList) rotate(d *cloud.Delivery, kind, reason, by, code string, verifier []byte) (Rotation, error) {
	ended := d.Status == cloud.DeliveryPickedUp || d.Status == cloud.DeliveryFailed || d.Status == cloud.DeliveryCancelled ||
		d.Status == cloud.DeliveryExpired && d.ExpiredKind == expiredUnused
	if ended || kind == wire.CodePickup && d.IsOutgoing() || kind == wire.CodeDelivery && d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened {
		return Rotation{}, conflict(*d)
	}
	if err := codeFree(w.v, w.device, verifier); err != nil {
		return Rotation{}, err
	}
	doors, err := w.doorsByGrid()
	if err != nil {
		return Rotation{}, err
	}
	ends := []string{kind}
	if kind == wire.CodePickup {
		kind, ends = pickupKind(*d), []string{wire.CodePickup, wire.CodeHandover}
	}
	entry := codeEntry(*d, doors, kind, verifier)
	if kind != wire.CodeDelivery && d.PickupCodeActive {
		if entry, err = w.activeEntry(d, entry); err != nil {
			return Rotation{}, err
		}
	}
	if err := w.revoke(d, ends...); err != nil {
		return Rotation{}, err
	}
	if err := w.list(d.ID, entry); err != nil {
		return Rotation{}, err
	}
	codes, err := w.s.openCodes(*d)
	if err != nil {
		return Rotation{}, err
	}
	name := "pickup_code"
	if kind == wire.CodeDelivery {
		codes.Delivery, name = code, "delivery_code"
	} else {
		codes.Pickup = code
	}
	d.SealedCodes, d.Rotation = w.s.sealCodes(codes), &cloud.Rotation{CodeKind: name, Reason: reason, By: by, At: w.received}
	w.touch(d)
	biz, err := w.v.Business(d.BusinessID)
	if err != nil {
		return Rotation{}, err
	}
	if kind == wire.CodeDelivery && d.IsOutgoing() {
		if err := w.notifySender(d, cloud.NotifyDropoffCode); err != nil {
			return Rotation{}, err
		}
	}
	if kind != wire.CodeDelivery && waits(*d) {
		if err := w.notifyOfCode(d, by); err != nil {
			return Rotation{}, err
		}
	}
	rot := rotationBody(*d, biz.Location())
	return *rot, w.s.addDeliveryEvent(w.v, &w.ch, EventPickupCodeChanged, w.received, *d, nil, rot)
}

// listReached waits a moment for a connected cabinet to confirm a number of the
// present list: what it said of a list of another generation counts for nothing.
func (s partners) listReached(ctx context.Context, dev cloud.DeviceID, number uint64) bool {
	for range 10 {
		reached, online := false, false
		err := s.cfg.Store.Look(ctx, func(v cloud.View) error {
			d, err := v.Device(dev)
			if err != nil {
				return err
			}
			row, err := v.Session(dev)
			reached, online = d.ListHeld() >= number, err == nil && row.Online
			return nil
		})
		if err != nil || reached || !online {
			return reached
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return false
}
