package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
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
// that waits, by each channel that the partner wants and the recipient has. None go while
// another person was named to collect.
func (w *rows) notifyRecipient(d *cloud.Delivery, kind cloud.NotificationKind) error {
	if d.Handover != nil || d.IsOutgoing() {
		return nil
	}
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

// notifyOfCode notifies the person who collects a delivery of its new code. A person whom the
// recipient has named is notified by SMS when the partner or staff have done it: a link that
// anyone may have is no leave to send messages to any number.
func (w *rows) notifyOfCode(d *cloud.Delivery, by string) error {
	if d.Handover == nil {
		return w.notifyRecipient(d, cloud.NotifyParcelCode)
	}
	if by == byRecipient {
		return nil
	}
	_, err := w.sendCode(d, cloud.NotifyParcelCode, cloud.BySMS)
	return err
}

// sendCode adds a notification with the pickup code to the person who collects a delivery
// that waits, and gives where it goes: "" nowhere, without the channel, and to a person
// without an address for it.
func (w *rows) sendCode(d *cloud.Delivery, kind cloud.NotificationKind, by cloud.NotificationChannel) (to string, err error) {
	reader := collector(*d)
	to = addressOf(reader, by)
	if to == "" || !w.s.reaches(*d, by) {
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
	var from time.Time
	if kind == cloud.NotifyParcelCode {
		if from, err = w.codeTurn(d, by); err != nil {
			return "", err
		}
	}
	link, err := w.recipientLink(d)
	if err != nil {
		return "", err
	}
	return to, w.notify(d, cloud.Notification{Kind: kind, From: from, Channel: by, Until: until, NotificationText: cloud.NotificationText{To: to, Language: reader.Language, Name: reader.Name, Link: link, Parcel: &p}})
}

// unreached is CHANNEL_NOT_CONFIGURED with the one reason why a message about a delivery does not
// reach a person by a channel.
func (s *core) unreached(d cloud.Delivery, by cloud.NotificationChannel) *cloud.Error {
	reason := "no_phone"
	switch {
	case !s.reaches(d, by):
		reason = "not_offered"
	case by == cloud.ByEmail && d.Handover != nil:
		reason = "handed_over"
	case by == cloud.ByEmail:
		reason = "no_email"
	}
	return notSent(by, reason)
}

// notSent is CHANNEL_NOT_CONFIGURED for one reason, of which locale has the words.
func notSent(by cloud.NotificationChannel, reason string) *cloud.Error {
	return &cloud.Error{Kind: cloud.Conflict, Code: "CHANNEL_NOT_CONFIGURED", Args: []any{reason}, Details: map[string]any{"channel": by, "reason": reason}}
}

// recipientLink is the link to the page of a delivery that waits, for its recipient: "" while
// another person collects, and in a deployment without a public address.
func (w *rows) recipientLink(d *cloud.Delivery) (string, error) {
	if w.s.cfg.LinkBase == "" || d.Handover != nil {
		return "", nil
	}
	for _, p := range d.Packages {
		sh, err := shipmentOf(w.v, *d, p)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (p.Status != cloud.PackageInCompartment || len(d.PackagesOf(sh)) == 0) {
			continue
		}
		if err != nil {
			return "", err
		}
		secret, err := recipients{w.s}.link(w.v, sh)
		if err != nil || secret == "" {
			return "", err
		}
		return w.s.cfg.LinkBase + "/track/" + url.PathEscape(sh.Number) + "?k=" + url.QueryEscape(secret), nil
	}
	return "", nil
}

// collector is the person who collects a delivery: its recipient, or the one whom the
// recipient has named.
func collector(d cloud.Delivery) cloud.Recipient {
	if h := d.Handover; h != nil {
		return cloud.Recipient{Name: h.Name, Phone: h.Phone, Language: d.Recipient.Language}
	}
	return d.Recipient
}

// addressOf is where a person is reached by a channel; "" nowhere.
func addressOf(r cloud.Recipient, by cloud.NotificationChannel) string {
	if by == cloud.BySMS {
		return cloud.PhoneNumber(r.Phone)
	}
	return r.Email
}

// languages are those of a person who reads one of them, the best first: lang, where it is
// the tag of one, then that of the business.
func languages(lang string, b cloud.Business) string {
	if !languageTag.MatchString(lang) || lang == b.Settings.Locale() {
		return b.Settings.Locale()
	}
	return strings.ReplaceAll(lang, "_", "-") + ", " + b.Settings.Locale()
}

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$`)

// codePause is how much time there is at least between two codes to one person.
const codePause = time.Minute

// codeTurn is when a further code of a delivery may go by a channel: codes that follow each
// other within a minute wait for it, and the last one of them alone is still true then.
func (w *rows) codeTurn(d *cloud.Delivery, by cloud.NotificationChannel) (time.Time, error) {
	recent, _, err := w.v.Notifications(cloud.NotificationFilter{BusinessID: d.BusinessID, DeliveryID: d.ID, Page: cloud.Page{Sort: "id", Down: true, Limit: 8}})
	turn := w.received
	for _, n := range recent {
		if n.Channel != by || n.Kind != cloud.NotifyParcelCode || !n.At.After(w.received.Add(-codePause)) {
			continue
		}
		if n.NextAt.After(w.received) && !n.NextAt.After(n.At.Add(codePause)) { // it has the next turn
			return n.NextAt, err
		}
		if after := n.At.Add(codePause); after.After(turn) {
			turn = after
		}
	}
	return turn, err
}

// notify adds a notification about a delivery, with what all have.
func (w *rows) notify(d *cloud.Delivery, n cloud.Notification) error {
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return err
	}
	n.ID, n.At, n.BusinessID, n.ProviderID, n.DeliveryID, n.Sandbox = rand.Text()[:24], w.received, d.BusinessID, d.ProviderID, d.ID, !d.Livemode
	n.Business, n.Language = b.Name, languages(n.Language, b)
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

// waking is a time, or the next morning at the cabinet.
func (w *rows) waking(d *cloud.Delivery, at time.Time) (time.Time, error) {
	b, err := w.v.Business(d.BusinessID)
	if err != nil {
		return at, err
	}
	return waking(at, w.zone(b)), nil
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
	if d.Livemode && len(w.s.cfg.Channels) == 0 {
		at = time.Time{}
	}
	if !at.IsZero() {
		var err error
		if at, err = w.waking(d, at); err != nil {
			return err
		}
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
	later, err := w.waking(d, w.received)
	if err != nil {
		return err
	}
	if later.After(w.received) { // the look is late
		w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID, At: later})
		return nil
	}
	w.ch.Reminders = append(w.ch.Reminders, cloud.Reminder{DeliveryID: d.ID})
	switch {
	case !d.PickupCodeActive: // nothing can be collected
	case d.Status == cloud.DeliveryDelivered && w.received.Before(d.DueAt):
		return w.notifyRecipient(d, cloud.NotifyParcelReminder)
	case isOverdue(*d):
		return w.notifyRecipient(d, cloud.NotifyParcelOverdue)
	}
	return nil
}

// WhenToNotify is when a notification that waits may be sent, asked at now: at that time,
// later where it can wait for the morning or a courier corrects the deposit, and never (zero)
// once it is no longer true. The code in it is another one by now, the parcel was collected,
// another person collects it or brings it, or its reader has another address.
func (s deadlines) WhenToNotify(ctx context.Context, n cloud.Notification, now time.Time) (when time.Time, err error) {
	if n.DeliveryID == 0 || n.Parcel == nil {
		return now, nil
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		d, err := v.Delivery(n.DeliveryID)
		if errors.Is(err, cloud.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		codes, err := s.openCodes(d)
		if err != nil {
			return err
		}
		if n.Kind == cloud.NotifyDropoffCode || n.Kind == cloud.NotifyParcelCollected {
			if isTrueForSender(d, codes, n, canBeBrought(d, now)) {
				when = now
			}
			return nil
		}
		if d.Status == cloud.DeliveryCorrecting && n.Kind != cloud.NotifyDeliveryCode {
			when = now.Add(time.Minute) // what comes of it is known soon
			return nil
		}
		holds := waits(d) && d.PickupCodeActive && codes.Pickup == n.Parcel.Code && addressOf(collector(d), n.Channel) == n.To
		switch n.Kind {
		case cloud.NotifyDeliveryCode:
			holds = canBeBrought(d, now) && codes.Delivery == n.Parcel.Code && d.Courier != nil && cloud.PhoneNumber(d.Courier.Phone) == n.To
		case cloud.NotifyParcelReminder:
			holds = holds && d.Handover == nil && now.Before(d.DueAt)
		case cloud.NotifyParcelOverdue:
			holds = holds && d.Handover == nil && isOverdue(d)
		}
		if !holds {
			return nil
		}
		when = now
		if n.Kind == cloud.NotifyParcelReminder || n.Kind == cloud.NotifyParcelOverdue {
			when = waking(now, n.Parcel.Until.Location()) // that of the cabinet
		}
		return nil
	})
	return when, err
}

// canBeBrought reports whether the code of a courier still opens compartments.
func canBeBrought(d cloud.Delivery, now time.Time) bool {
	return (d.Status == cloud.DeliveryCreated || d.Status == cloud.DeliveryDoorsOpened) && now.Before(d.DeliverBefore)
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

// ResendPickupCode sends the pickup code of a delivery that waits to the person who collects
// it once more. Errors: DELIVERY_NOT_FOUND, DELIVERY_STATE_CONFLICT, CHANNEL_NOT_CONFIGURED,
// VALIDATION_FAILED. Source: lockers-devices 5, operation 23.
func (s partners) ResendPickupCode(ctx context.Context, c cloud.Caller, in ResendInput) (ResendOutput, error) {
	return s.resend(ctx, c, in, "pickup_code_resent", func(w *Work, d *cloud.Delivery) (string, error) {
		if !waits(*d) || !d.PickupCodeActive {
			return "", conflict(*d)
		}
		to, err := w.sendCode(d, cloud.NotifyParcelCode, in.Channel)
		if err == nil && to == "" {
			err = s.unreached(*d, in.Channel)
		}
		return to, err
	})
}

// ResendDeliveryCode sends the code of a delivery that can be brought to its courier, who has
// a telephone number alone, or to the sender of a send or return. Errors: those of ResendPickupCode. Source: lockers-devices 5,
// operation 14.
func (s partners) ResendDeliveryCode(ctx context.Context, c cloud.Caller, in ResendInput) (ResendOutput, error) {
	return s.resend(ctx, c, in, "delivery_code_resent", func(w *Work, d *cloud.Delivery) (string, error) {
		if !canBeBrought(*d, w.received) {
			return "", conflict(*d)
		}
		if d.IsOutgoing() {
			to, err := sendToSender(w.rows, d, cloud.NotifyDropoffCode, in.Channel)
			if err == nil && to == "" {
				err = s.unreached(*d, in.Channel)
			}
			return to, err
		}
		if in.Channel == cloud.ByEmail {
			return "", notSent(in.Channel, "courier_email")
		}
		if d.Courier == nil {
			return "", notSent(in.Channel, "no_courier")
		}
		to := cloud.PhoneNumber(d.Courier.Phone)
		if to == "" || !s.reaches(*d, in.Channel) {
			return "", s.unreached(*d, in.Channel)
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
