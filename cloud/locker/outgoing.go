package locker

import (
	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
	"github.com/postern-io/postern/protocol/wire"
)

// Purposes of deliveries as the interface names them. The first is "" in rows and code lists.
const purposeDelivery = "delivery"

// bySender names who brings a parcel that a courier collects.
const bySender = "sender"

// purposeName is the purpose of a delivery in the interface.
func purposeName(d cloud.Delivery) string {
	if d.Purpose == "" {
		return purposeDelivery
	}
	return d.Purpose
}

// orderKinds are the kinds of device orders, by the purpose of their delivery.
var orderKinds = map[string]string{"": "locker_delivery", wire.PurposeSend: "customer_dropoff", wire.PurposeReturn: "return_dropoff"}

// nextActor is who is to collect a delivery that waits.
func nextActor(d cloud.Delivery) string {
	if d.IsOutgoing() {
		return byCourier
	}
	return byRecipient
}

// depositedCode is what a deposit means for the timeline of a parcel.
func depositedCode(d cloud.Delivery) otep.Code {
	if d.IsOutgoing() {
		return otep.AwaitingPickup
	}
	return otep.AvailableForPickup
}

// collectedCode is what a collection by the awaited person means for the timeline of a parcel.
func collectedCode(d cloud.Delivery) otep.Code {
	if d.IsOutgoing() {
		return otep.PickedUp
	}
	return otep.Delivered
}

// checkPurpose checks who brings a delivery against what it is for.
func (f fields) checkPurpose(in CreateInput) {
	outgoing := in.Purpose == wire.PurposeSend || in.Purpose == wire.PurposeReturn
	switch {
	case !outgoing && in.Sender != nil:
		f.Add("sender", "A sender is allowed for the purposes send and return alone.")
	case outgoing && in.Sender == nil:
		f.Add("sender", "The purposes send and return need a sender: who brings the parcel.")
	case outgoing && in.Sender.Phone == "" && in.Sender.Email == "":
		f.Add("sender", "A phone number or an email address is required.")
	}
	if !outgoing && in.Recipient.Address != "" {
		f.Add("recipient.address", "An address is allowed for the purposes send and return alone.")
	}
	if outgoing && in.Notify != nil && in.Notify.Push {
		f.Add("notify.push", "A sender is notified by sms and email alone.")
	}
}

// reader is a sender as a person who is notified.
func reader(s cloud.Sender) cloud.Recipient {
	return cloud.Recipient{Name: s.Name, Phone: s.Phone, Email: s.Email, Language: s.Language}
}

// notifySender adds notifications to the sender of a delivery, by each channel that the
// partner wants and the sender has: its code with place and time limit, or word that a
// courier has collected it.
func (w *rows) notifySender(d *cloud.Delivery, kind cloud.NotificationKind) error {
	for by, wanted := range map[cloud.NotificationChannel]bool{cloud.ByEmail: d.Notify.Email, cloud.BySMS: d.Notify.SMS} {
		if !wanted {
			continue
		}
		if _, err := sendToSender(w, d, kind, by); err != nil {
			return err
		}
	}
	return nil
}

// sendToSender adds one notification, and gives where it goes: "" nowhere.
func sendToSender(w *rows, d *cloud.Delivery, kind cloud.NotificationKind, by cloud.NotificationChannel) (to string, err error) {
	if d.Sender == nil {
		return "", nil
	}
	to = addressOf(reader(*d.Sender), by)
	if to == "" || !w.s.reaches(*d, by) {
		return "", nil
	}
	p, link := cloud.ParcelNotice{}, ""
	for _, x := range d.Packages {
		p.Numbers = append(p.Numbers, x.TrackingNumber)
	}
	n := cloud.Notification{Kind: kind, Channel: by}
	if kind == cloud.NotifyParcelCollected {
		n.Until = w.received.Add(lateNotice)
		if n.From, err = w.waking(d, w.received); err != nil {
			return "", err
		}
	} else {
		codes, err := w.s.openCodes(*d)
		if err != nil {
			return "", err
		}
		p.Code, p.Until, n.Until, link = codes.Delivery, d.DeliverBefore, d.DeliverBefore, w.s.senderLink(*d)
	}
	n.NotificationText = cloud.NotificationText{To: to, Language: d.Sender.Language, Name: d.Sender.Name, Link: link, Parcel: &p}
	return to, w.notify(d, n)
}

// isTrueForSender reports whether a notification to the sender of a delivery is still true.
func isTrueForSender(d cloud.Delivery, codes Codes, n cloud.Notification, canBring bool) bool {
	if d.Sender == nil || addressOf(reader(*d.Sender), n.Channel) != n.To {
		return false
	}
	if n.Kind == cloud.NotifyParcelCollected {
		return d.Status == cloud.DeliveryPickedUp
	}
	return canBring && codes.Delivery == n.Parcel.Code
}
