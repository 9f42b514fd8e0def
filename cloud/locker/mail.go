package locker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// lateMail is how long a mail is tried whose parcel is overdue already, or soon.
const lateMail = 3 * 24 * time.Hour

// mailRecipient adds a mail with the pickup code to the recipient of a delivery that waits,
// and reports whether it did. None goes without a mail server, to a person without an
// address, about a test, against the wish of the partner unless the partner asks for it, and
// while another person was named to collect: that one has the code.
func (w *rows) mailRecipient(d *cloud.Delivery, kind cloud.MailKind, asked bool) (bool, error) {
	if !w.s.cfg.Mails || !d.Livemode || d.Recipient.Email == "" || d.Handover != nil || !d.Notify.Email && !asked {
		return false, nil
	}
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return false, err
	}
	codes, err := w.s.openCodes(*d)
	if err != nil {
		return false, err
	}
	cells, err := w.allCells()
	if err != nil {
		return false, err
	}
	zone, err := time.LoadLocation(w.device.Timezone)
	if err != nil {
		zone = b.Location()
	}
	p := cloud.MailParcel{Code: codes.Pickup, Locker: w.device.Name, Address: w.device.Address, Until: d.DueAt.In(zone)}
	for _, x := range d.Packages {
		if x.Status == cloud.PackageInCompartment {
			p.Numbers = append(p.Numbers, x.TrackingNumber)
		}
	}
	for _, c := range cells {
		if slices.ContainsFunc(d.Packages, func(x cloud.Package) bool { return x.GridID == c.GridID && x.Status == cloud.PackageInCompartment }) {
			p.Doors = append(p.Doors, cmp.Or(c.Label, c.GridCode))
		}
	}
	until := d.DueAt
	if late := w.received.Add(lateMail); until.Before(late) {
		until = late
	}
	w.ch.Mails = append(w.ch.Mails, cloud.Mail{ID: rand.Text()[:24], BusinessID: d.BusinessID, Kind: kind, At: w.received, Until: until,
		MailText: cloud.MailText{To: d.Recipient.Email, Language: cmp.Or(d.Recipient.Language, b.Settings.Locale()), Name: d.Recipient.Name, Business: b.Name, Parcel: &p}})
	return true, nil
}

// remindBefore is how long before the end of its time to collect a recipient is reminded of
// a delivery, where at least as long has passed since the deposit.
const remindBefore = 24 * time.Hour

// remindLater plans the reminder of a delivery that waits, by its present time to collect.
func (w *rows) remindLater(d *cloud.Delivery) {
	at := d.DueAt.Add(-remindBefore)
	if !w.s.cfg.Mails || !d.Livemode || at.Before(w.received.Add(remindBefore/2)) {
		at = time.Time{}
	}
	w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID, At: at})
}

// remind sends the reminder whose time has come, once, unless the delivery does not wait any
// more.
func (w *Work) remind(d *cloud.Delivery) error {
	planned, err := w.v.Reminder(d.ID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && planned.At.After(w.received) {
		return nil // another node was faster, or there is more time by now
	}
	if err != nil {
		return err
	}
	w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID})
	if d.Status != cloud.DeliveryDelivered || !w.received.Before(d.DueAt) {
		return nil
	}
	_, err = w.mailRecipient(d, cloud.ParcelReminderMail, false)
	return err
}

// ResendInput asks for the pickup code to be sent to the recipient again.
type ResendInput struct {
	Delivery DeliveryKey `path:"id" json:"-"`
	Channel  string      `json:"channel" required:"true" enum:"sms,email" doc:"sms once the deployment has a gateway for it"`
}

// ResendOutput says where a code went.
type ResendOutput struct {
	Result bool   `json:"result"`
	SentTo string `json:"sent_to" doc:"The address, masked"`
}

// ResendPickupCode sends the pickup code of a delivery that waits to its recipient once
// more. Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, CHANNEL_NOT_CONFIGURED,
// VALIDATION_FAILED. Source: lockers-devices 5, operation 23.
func (s partners) ResendPickupCode(ctx context.Context, c cloud.Caller, in ResendInput) (out ResendOutput, err error) {
	_, err = s.decide(ctx, c, in.Delivery, func(w *Work, d *cloud.Delivery) error {
		if !waits(*d) || !d.PickupCodeActive {
			return conflict(*d)
		}
		sent := false
		if in.Channel == "email" {
			if sent, err = w.mailRecipient(d, cloud.ParcelCodeMail, true); err != nil {
				return err
			}
		}
		if !sent {
			return cloud.E(cloud.Conflict, "CHANNEL_NOT_CONFIGURED")
		}
		out = ResendOutput{Result: true, SentTo: maskMail(d.Recipient.Email)}
		w.ch.Audits = append(w.ch.Audits, cloud.Audit{BusinessID: d.BusinessID, At: w.received, Actor: actor(c), Action: "pickup_code_resent", Target: d.Number, Detail: `{"channel":"email"}`})
		w.ch.Answer = out
		return nil
	})
	return out, err
}

// maskMail is an address of which the first letter and the domain are left.
func maskMail(address string) string {
	name, domain, _ := strings.Cut(address, "@")
	for _, first := range name {
		return string(first) + "***@" + domain
	}
	return "***@" + domain
}
