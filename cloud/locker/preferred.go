package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// PreferredInput chooses the locker that a customer prefers.
type PreferredInput struct {
	DeviceID *cloud.DeviceID `json:"device_id" doc:"A pickup point of the business; null: none is preferred"`
}

// PreferredOutput shows the locker that a customer prefers.
type PreferredOutput struct {
	Result      bool            `json:"result"`
	Preferred   *PickupPoint    `json:"preferred" doc:"Null: none was chosen, or the one that was chosen is no pickup point now"`
	Unavailable *cloud.DeviceID `json:"unavailable_device_id" doc:"The locker that was chosen, while it is no pickup point: it is out of service, or the business shows it no more. It is preferred again when it is one"`
}

// SetPreferred chooses the locker that the caller prefers, or none. Error: DEVICE_NOT_FOUND,
// for a locker that is no pickup point of the caller's business. Source: lockers-devices 11.
func (s recipients) SetPreferred(ctx context.Context, c cloud.Caller, in PreferredInput) (out PreferredOutput, err error) {
	now := time.Now().UTC()
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		a, err := v.Account(c.Account.ID)
		if err != nil {
			return nil, err
		}
		if a.PreferredDevice = 0; in.DeviceID != nil {
			a.PreferredDevice = *in.DeviceID
		}
		if out, err = preferredOf(v, a); err != nil {
			return nil, err
		}
		if in.DeviceID != nil && out.Preferred == nil {
			return nil, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
		}
		target := fmt.Sprintf("account:%d", a.ID)
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Accounts: []cloud.Account{a}}, Answer: out,
			AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: a.BusinessID, At: now, Actor: target, Action: "preferred_locker_set", Target: target, Detail: "{}"}}}}, nil
	})
	return out, err
}

// FindPreferred shows the locker that the caller prefers.
func (s recipients) FindPreferred(ctx context.Context, c cloud.Caller, _ check.None) (out PreferredOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		a, err := v.Account(c.Account.ID)
		if err != nil {
			return err
		}
		out, err = preferredOf(v, a)
		return err
	})
	return out, err
}

// preferredOf shows the locker that an account prefers.
func preferredOf(v cloud.View, a cloud.Account) (out PreferredOutput, err error) {
	out.Result = true
	d, err := preferredDevice(v, a)
	if err != nil || a.PreferredDevice == 0 {
		return out, err
	}
	if d == nil {
		out.Unavailable = &a.PreferredDevice
		return out, nil
	}
	has, err := v.PickupSizes([]cloud.DeviceID{d.ID})
	out.Preferred = new(pickupPoint(*d, has[d.ID]))
	out.Preferred.Preferred = true
	return out, err
}

// preferredDevice is the cabinet that an account prefers, nil when there is none that is a
// pickup point of its business now.
func preferredDevice(v cloud.View, a cloud.Account) (*cloud.Device, error) {
	if a.PreferredDevice == 0 {
		return nil, nil
	}
	d, err := v.Device(a.PreferredDevice)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && (d.BusinessID != a.BusinessID || !isPickupPoint(d)) {
		return nil, nil
	}
	return &d, err
}

// isPickupPoint reports whether everybody is shown a cabinet, as DeviceFilter.Public chooses.
func isPickupPoint(d cloud.Device) bool {
	return d.Public && d.Livemode && d.Protocol != cloud.ProtocolMock && d.TakesDeliveries()
}

// preferFirst marks the cabinet that a customer prefers in a page of the business's pickup
// points, and has it first on the first page. One that the filters leave out stays out.
func preferFirst(v cloud.View, c cloud.Caller, b cloud.BusinessID, f cloud.DeviceFilter, list []cloud.Device) (cloud.DeviceID, []cloud.Device, error) {
	if c.Account.Type != cloud.Customer || c.Account.BusinessID != b {
		return 0, list, nil
	}
	a, err := v.Account(c.Account.ID)
	if err != nil {
		return 0, list, err
	}
	d, err := preferredDevice(v, a)
	if err != nil || d == nil {
		return 0, list, err
	}
	first := f.Offset == 0 && f.After == nil
	f.Only, f.Page = d.ID, cloud.Page{Sort: "name", Limit: 1}
	found, _, err := v.Devices(f)
	if err != nil || len(found) == 0 {
		return 0, list, err
	}
	list = slices.DeleteFunc(list, func(x cloud.Device) bool { return x.ID == d.ID })
	if first {
		list = append(found, list...)
	}
	return d.ID, list, nil
}
