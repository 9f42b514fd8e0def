package locker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// lateNotice is how long a notification is tried whose parcel is overdue already, or soon.
const lateNotice = 3 * 24 * time.Hour

// reaches reports whether notifications about a delivery go by a channel. Those about tests
// go into the inbox of the sandbox by each.
func (s *core) reaches(d cloud.Delivery, by cloud.NotificationChannel) bool {
	return !d.Livemode || slices.Contains(s.cfg.Channels, by)
}

// notifyRecipient adds notifications with the pickup code to the recipient of a delivery
// that waits, by each channel that the partner wants and the recipient has.
func (w *rows) notifyRecipient(d *cloud.Delivery, kind cloud.NotificationKind) error {
	for by, wanted := range map[cloud.NotificationChannel]bool{cloud.ByEmail: d.Notify.Email, cloud.BySMS: d.Notify.SMS} {
		if !wanted {
			continue
		}
		if _, err := w.sendCode(d, kind, by); err != nil {
			return err
		}
	}
	return nil
}

// sendCode adds a notification with the pickup code to the recipient of a delivery that
// waits, and gives where it goes: "" nowhere, without the channel, to a person without an
// address for it, and while another person was named to collect, who has the code.
func (w *rows) sendCode(d *cloud.Delivery, kind cloud.NotificationKind, by cloud.NotificationChannel) (to string, err error) {
	to = d.Recipient.Email
	if by == cloud.BySMS {
		to = cloud.PhoneNumber(d.Recipient.Phone)
	}
	if to == "" || !w.s.reaches(*d, by) || d.Handover != nil {
		return "", nil
	}
	codes, err := w.s.openCodes(*d)
	if err != nil {
		return "", err
	}
	p := cloud.ParcelNotice{Code: codes.Pickup, Until: d.DueAt}
	for _, x := range d.Packages {
		if x.Status == cloud.PackageInCompartment {
			p.Numbers = append(p.Numbers, x.TrackingNumber)
		}
	}
	cells, err := w.allCells()
	if err != nil {
		return "", err
	}
	for _, c := range cells {
		if slices.ContainsFunc(d.Packages, func(x cloud.Package) bool { return x.GridID == c.GridID && x.Status == cloud.PackageInCompartment }) {
			p.Doors = append(p.Doors, c.Name())
		}
	}
	until := d.DueAt
	if late := w.received.Add(lateNotice); until.Before(late) {
		until = late
	}
	return to, w.notify(d, cloud.Notification{Kind: kind, Channel: by, Until: until, NotificationText: cloud.NotificationText{To: to, Language: d.Recipient.Language, Name: d.Recipient.Name, Parcel: &p}})
}

// notify adds a notification about a delivery, with what all have.
func (w *rows) notify(d *cloud.Delivery, n cloud.Notification) error {
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return err
	}
	n.ID, n.At, n.BusinessID, n.ProviderID, n.DeliveryID, n.Sandbox = rand.Text()[:24], w.received, d.BusinessID, d.ProviderID, d.ID, !d.Livemode
	n.Business, n.Language = b.Name, cmp.Or(n.Language, b.Settings.Locale())
	n.Parcel.Locker, n.Parcel.Address, n.Parcel.Until = w.device.Name, w.device.Address, n.Parcel.Until.In(w.zone(b))
	w.ch.Notifications = append(w.ch.Notifications, n)
	return nil
}

// zone is the time zone of the cabinet.
func (w *rows) zone(b cloud.Business) *time.Location {
	if zone, err := time.LoadLocation(w.device.Timezone); err == nil {
		return zone
	}
	return b.Location()
}

// The hours in which people are notified of what can wait.
const (
	morning = 8
	evening = 21
)

// waking is a time, or the next morning where it lies in the night.
func waking(t time.Time, zone *time.Location) time.Time {
	local := t.In(zone)
	switch h := local.Hour(); {
	case h >= evening:
		local = local.AddDate(0, 0, 1)
	case h >= morning:
		return t
	}
	return time.Date(local.Year(), local.Month(), local.Day(), morning, 0, 0, 0, zone)
}

// remindBefore is how long before the end of its time to collect a recipient is reminded of
// a delivery, where at least half as long has passed since the deposit.
const remindBefore = 24 * time.Hour

// remindLater plans the reminder of a delivery that waits, by its present time to collect.
func (w *rows) remindLater(d *cloud.Delivery) error {
	at := d.DueAt.Add(-remindBefore)
	if at.Before(w.received.Add(remindBefore / 2)) {
		at = time.Time{}
	}
	return w.plan(d, at)
}

// plan has the recipient of a delivery notified at a time, or in the morning after it; never
// at the zero time, and without a channel.
func (w *rows) plan(d *cloud.Delivery, at time.Time) error {
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return err
	}
	if d.Livemode && len(w.s.cfg.Channels) == 0 {
		at = time.Time{}
	}
	if !at.IsZero() {
		at = waking(at, w.zone(b))
	}
	w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID, At: at})
	return nil
}

// remind sends what was planned for a recipient once its time has come: a reminder of a
// delivery that still waits, or word that it is overdue.
func (w *Work) remind(d *cloud.Delivery) error {
	planned, err := w.v.Reminder(d.ID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && planned.At.After(w.received) {
		return nil // another node was faster, or there is more time by now
	}
	if err != nil {
		return err
	}
	w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID})
	switch {
	case d.Status == cloud.DeliveryDelivered && w.received.Before(d.DueAt):
		return w.notifyRecipient(d, cloud.NotifyParcelReminder)
	case isOverdue(*d):
		return w.notifyRecipient(d, cloud.NotifyParcelOverdue)
	}
	return nil
}

// ResendInput asks for the pickup code to be sent to the recipient again.
type ResendInput struct {
	Delivery DeliveryKey               `path:"id" json:"-"`
	Channel  cloud.NotificationChannel `json:"channel" required:"true" enum:"sms,email" doc:"sms reaches telephone numbers with a country code, such as +14165550123"`
}

// ResendOutput says where a code went.
type ResendOutput struct {
	Result bool   `json:"result"`
	SentTo string `json:"sent_to" doc:"The address or telephone number, masked"`
}

// ResendPickupCode sends the pickup code of a delivery that waits to its recipient once
// more. Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, CHANNEL_NOT_CONFIGURED,
// VALIDATION_FAILED. Source: lockers-devices 5, operation 23.
func (s partners) ResendPickupCode(ctx context.Context, c cloud.Caller, in ResendInput) (ResendOutput, error) {
	return s.resend(ctx, c, in, "pickup_code_resent", func(w *Work, d *cloud.Delivery) (string, error) {
		if !waits(*d) || !d.PickupCodeActive {
			return "", conflict(*d)
		}
		return w.sendCode(d, cloud.NotifyParcelCode, in.Channel)
	})
}

// ResendDeliveryCode sends the code of a delivery that can be brought to its courier, who has
// a telephone number alone. Errors: those of ResendPickupCode. Source: lockers-devices 5,
// operation 14.
func (s partners) ResendDeliveryCode(ctx context.Context, c cloud.Caller, in ResendInput) (ResendOutput, error) {
	return s.resend(ctx, c, in, "delivery_code_resent", func(w *Work, d *cloud.Delivery) (string, error) {
		if d.Status != cloud.DeliveryCreated && d.Status != cloud.DeliveryDoorsOpened {
			return "", conflict(*d)
		}
		to := ""
		if in.Channel == cloud.BySMS && d.Courier != nil && s.reaches(*d, in.Channel) {
			to = cloud.PhoneNumber(d.Courier.Phone)
		}
		if to == "" {
			return "", nil
		}
		codes, err := s.openCodes(*d)
		if err != nil {
			return "", err
		}
		p := cloud.ParcelNotice{Code: codes.Delivery, Until: d.DeliverBefore}
		for _, x := range d.Packages {
			p.Numbers = append(p.Numbers, x.TrackingNumber)
		}
		return to, w.notify(d, cloud.Notification{Kind: cloud.NotifyDeliveryCode, Channel: in.Channel, Until: d.DeliverBefore, NotificationText: cloud.NotificationText{To: to, Name: d.Courier.Name, Parcel: &p}})
	})
}

// resend has a code of a delivery sent, and says where to.
func (s partners) resend(ctx context.Context, c cloud.Caller, in ResendInput, action string, send func(*Work, *cloud.Delivery) (to string, err error)) (out ResendOutput, err error) {
	_, err = s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error {
		to, err := send(w, d)
		if err != nil {
			return err
		}
		if to == "" {
			return cloud.E(cloud.Conflict, "CHANNEL_NOT_CONFIGURED")
		}
		out = ResendOutput{Result: true, SentTo: maskAddress(to)}
		w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c), Action: action, Target: d.Number, Detail: fmt.Sprintf(`{"channel":%q}`, in.Channel)})
		w.ch.Answer = out
		return nil
	})
	return out, err
}

// maskAddress is an email address of which the first letter and the domain are left, or a
// telephone number of which the last three digits are.
func maskAddress(address string) string {
	name, domain, mail := strings.Cut(address, "@")
	if !mail {
		return "***" + address[max(0, len(address)-3):]
	}
	for _, first := range name {
		return string(first) + "***@" + domain
	}
	return "***@" + domain
}
