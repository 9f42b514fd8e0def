package truth

import (
	"fmt"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/edge"
	"github.com/postern-io/postern/protocol/wire"
)

// namesDoor reports whether an act of the script was let in to a door.
func (a Act) namesDoor(door uint) bool { return a.OK && slices.Contains(a.Doors, door) }

// refusesGuest says why nothing allowed a pulse that belongs to no act of the
// script, "" when something did: a listed code, or a pickup that a code began. ok is
// false when no guest can have caused it.
func (j *judge) refusesGuest(b *Cabinet, p Pulse, began time.Time) (why string, ok bool) {
	if !j.Unscripted {
		return "", false
	}
	e := j.entry(b, p.CodeNumber)
	switch {
	case p.Kind == edge.ByReopen:
		return b.refusesReopening(p), true
	case p.Kind == edge.ByLarger:
		if e == nil || e.Entry.Kind != wire.CodeDelivery {
			return "", false
		}
		return b.refusesGuestLarger(p), true
	case p.Kind == edge.ByPass:
		return refusesGuestPass(j, b, p, began), true
	case e == nil || (e.Entry.Kind == wire.CodeStaff) != (p.Kind == edge.ByStaff):
		return "", false
	}
	return j.refusesCode(b, p, Act{Cabinet: b.Code, Delivery: e.Entry.DeliveryRef, Code: e.Entry.Kind}, began), true
}

// refusesGuestPass: a signed QR code that the cloud gave out opens the doors of the opening that
// the cabinet has reported for it, at that moment.
func refusesGuestPass(j *judge, b *Cabinet, p Pulse, began time.Time) string {
	d := j.Cloud.Devices[b.Code]
	for _, q := range d.QRCodes {
		o, known := d.Openings[q.OpeningID]
		names := slices.ContainsFunc(o.Doors, func(x cloud.OpeningDoor) bool { return x.Door == uint(p.Door) })
		if known && names && within(began, q.UsedAt.Add(-clockSlack), q.UsedAt.Add(clockSlack)) && within(began, q.CreatedAt.Add(-clockSlack), q.EndsAt.Add(clockSlack)) {
			return ""
		}
	}
	return "no signed QR code that the cloud gave out is known to have opened the door"
}

// refusesReopening: a pickup is opened once more in what is left of the session
// that a code began, in the same boot.
func (b *Cabinet) refusesReopening(p Pulse) string {
	if slices.ContainsFunc(b.Pulses, func(x Pulse) bool {
		return x.Kind == edge.ByCode && x.Boot == p.Boot && x.Door == p.Door && x.At.Before(p.At) && p.At.Sub(x.At) <= longOpen
	}) {
		return ""
	}
	return fmt.Sprintf("no code had opened the door in the %s before", longOpen)
}
