package truth

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// refusals: a delivery code is not refused as expired before its end. A clock that
// may be wrong by its error refuses only what has certainly ended.
func (j *judge) refusals(b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	for _, a := range j.Acts {
		if a.Cabinet != b.Code || a.Outcome != wire.CodeExpired || a.Code != wire.CodeDelivery || b.usedBefore(d, a.Delivery, a.Until) {
			continue
		}
		ended := slices.ContainsFunc(d.Codes, func(c cloud.CodeRow) bool {
			e := c.Entry
			return e.Op == wire.CodeSet && e.Kind == a.Code && e.DeliveryRef == a.Delivery && e.NotAfter != 0 && a.Until.Add(b.slackOfEnd()).After(time.Unix(0, e.NotAfter))
		})
		if !ended {
			j.find("refused", b, 0, a.Until, "the delivery code of %s counts as expired before its end", a.Delivery)
		}
	}
}

// replacedCodes: a code that another one has replaced lets no person in once the
// cabinet has reported that it holds that list.
func (j *judge) replacedCodes(b *Cabinet) {
	for _, a := range j.Acts {
		if a.Cabinet != b.Code || a.Replaced == 0 || !a.OK {
			continue
		}
		for _, h := range b.Held {
			if h.Number >= a.Replaced && h.At.Before(a.At) && !j.forgot(b, h.At, a.At) {
				j.find("dead_code", b, 0, a.At, "a %s code of %s was replaced in list %d, which the cabinet had reported as held at %s", a.Code, a.Delivery, a.Replaced, clockTime(h.At))
				break
			}
		}
	}
}

// slackOfEnd is how exactly the moment of an answer is known.
func (b *Cabinet) slackOfEnd() time.Duration {
	if b.WallClock {
		return startTakes
	}
	return 0
}

// usedBefore reports whether an opening of a delivery was begun before a moment,
// or may have been and is forgotten: its delivery code may be used.
func (b *Cabinet) usedBefore(d Device, ref string, at time.Time) bool {
	for _, r := range d.Records {
		var s wire.OpeningStarted
		if r.Kind == wire.KindOpeningStarted && wire.Decode(r.Body, &s) == nil && s.DeliveryRef == ref && !b.at(r).After(at) {
			return true
		}
	}
	return slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.What == forgot && s.Door == 0 && !s.At.After(at) })
}

// cancels: what a command has cancelled ends so.
func (j *judge) cancels(b *Cabinet) {
	for _, c := range j.Cancels {
		if c.Cabinet != b.Code {
			continue
		}
		done := false
		for _, r := range j.Cloud.Devices[b.Code].Records {
			var o wire.CommandOutcome
			var p wire.PickupCompleted
			var s wire.OpeningSettled
			switch {
			case r.Kind == wire.KindCommandOutcome && wire.Decode(r.Body, &o) == nil && o.CommandID == c.CommandID:
				done = o.Outcome == wire.OutcomeDone
			case done && r.Kind == wire.KindPickupCompleted && wire.Decode(r.Body, &p) == nil && p.OpeningID == c.OpeningID:
				j.find("cancelled", b, 0, b.at(r), "%s was cancelled and counts as collected", c.OpeningID)
			case done && r.Kind == wire.KindOpeningSettled && wire.Decode(r.Body, &s) == nil && s.OpeningID == c.OpeningID:
				j.find("cancelled", b, 0, b.at(r), "%s was cancelled and counts as settled", c.OpeningID)
			}
		}
	}
}
