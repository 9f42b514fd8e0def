package truth

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// Names of the events that follow from what happened at a door.
const (
	newsDelivered = "locker_delivery.delivered"
	newsPickedUp  = "locker_delivery.picked_up"
)

// statements judges what the cloud has kept and sent of what happened.
type statements struct{ *judge }

// news judges what the webhook log says of each delivery: a deposit and a collection
// have an event, one thing that happened has one, and it names the cabinet, and the
// compartment where the parcel lies. A log without names is not judged.
func (j statements) news() {
	if !slices.ContainsFunc(j.Cloud.Events, func(e Event) bool { return e.Name != "" }) {
		return
	}
	type one struct {
		name, reference, opening string
		at                       int64
	}
	told, openings := map[one]string{}, j.openings()
	for _, e := range j.Cloud.Events {
		k := one{e.Name, e.Reference, openings[e.ID], e.OccurredAt.UnixNano()}
		if first, again := told[k]; again && first != e.ID && e.Name != "" {
			j.find("news", nil, 0, e.OccurredAt, "%s of %s is in the log as %s and as %s", e.Name, e.Reference, first, e.ID)
		}
		told[k] = e.ID
	}
	cabinets := slices.Clone(j.Cabinets)
	for _, x := range j.Simple {
		cabinets = append(cabinets, Cabinet{Code: x.Code})
	}
	for i := range cabinets {
		b := &cabinets[i]
		d := j.Cloud.Devices[b.Code]
		for number, x := range d.Deliveries {
			if x.ProviderID != j.Cloud.Provider {
				continue // others are told at an address of their own
			}
			if !x.DepositedAt.IsZero() && j.Cloud.newest(newsDelivered, number) == nil {
				j.find("news", b, 0, x.DepositedAt, "%s was deposited, and no event says so", number)
			}
			if x.Status == cloud.DeliveryPickedUp && j.Cloud.newest(newsPickedUp, number) == nil {
				j.find("news", b, 0, x.PickedUpAt, "%s was collected, and no event says so", number)
			}
			if e := j.Cloud.newest(newsDelivered, number); e != nil && x.Status == cloud.DeliveryDelivered {
				j.newsBody(b, x, *e)
			}
		}
	}
}

// openings are those that events which a receiver got tell of, by event: two may be seen
// at the same moment, when boards answer again.
func (j statements) openings() map[string]string {
	out := map[string]string{}
	for _, r := range j.Received {
		var body struct {
			Data struct {
				Opening struct {
					ID string `json:"opening_id"`
				} `json:"opening"`
			} `json:"data"`
		}
		if json.Unmarshal([]byte(r.Body), &body) == nil {
			out[r.EventID] = body.Data.Opening.ID
		}
	}
	return out
}

// newest is the last event of a name about a delivery, nil when there is none.
func (c Cloud) newest(name, number string) (e *Event) {
	for i := range c.Events {
		x := &c.Events[i]
		if x.Name == name && x.Reference == number && (e == nil || x.CreatedAt.After(e.CreatedAt)) {
			e = x
		}
	}
	return e
}

// newsBody compares what a receiver got about a deposit with where its parcels lie.
func (j statements) newsBody(b *Cabinet, x cloud.Delivery, e Event) {
	i := slices.IndexFunc(j.Received, func(r Received) bool { return r.EventID == e.ID })
	if i < 0 {
		return // the events' own rule says so
	}
	var body struct {
		Data struct {
			Locker struct {
				DeviceCode string `json:"device_code"`
			} `json:"locker"`
			Packages []struct {
				TrackingNumber string              `json:"tracking_number"`
				GridID         cloud.GridID        `json:"grid_id"`
				Status         cloud.PackageStatus `json:"status"`
			} `json:"packages"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(j.Received[i].Body), &body); err != nil {
		j.find("news", b, 0, e.OccurredAt, "%s cannot be read: %v", e.ID, err)
		return
	}
	if body.Data.Locker.DeviceCode != b.Code {
		j.find("news", b, 0, e.OccurredAt, "%s tells of the cabinet %q", e.ID, body.Data.Locker.DeviceCode)
	}
	for _, p := range x.Packages {
		if p.Status != cloud.PackageInCompartment {
			continue
		}
		for _, q := range body.Data.Packages {
			if q.TrackingNumber == p.TrackingNumber && q.Status == p.Status && q.GridID != p.GridID {
				j.find("news", b, 0, e.OccurredAt, "%s tells that %s lies in compartment %d, and it lies in %d", e.ID, p.TrackingNumber, q.GridID, p.GridID)
			}
		}
	}
}

// exceptionRows judges that what a cabinet says of an exception has arrived: the cloud has it
// about the same door, and of a door that is shut again it is over.
func (j statements) exceptionRows(b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	rows := map[string]cloud.Exception{}
	for _, e := range d.Exceptions {
		rows[e.Source] = e
	}
	checked := map[string]bool{}
	for _, r := range d.Records {
		var x wire.Exception
		if r.Kind != wire.KindExceptionOpened || wire.Decode(r.Body, &x) != nil || checked[x.ID] {
			continue
		}
		checked[x.ID] = true
		e, ok := rows[x.ID]
		cell, has := d.Cells[x.Door]
		at := b.at(r)
		switch {
		case !has:
		case !ok || e.Type != x.Type:
			j.find("told", b, x.Door, at, "the cabinet tells of %s, and the cloud has no such exception", x.Type)
		case e.GridCode != cell.GridCode:
			j.find("told", b, x.Door, at, "%s of %s is kept about %q", x.Type, cell.GridCode, e.GridCode)
		case x.Type == wire.ExDoorLeftOpen && e.Status == "open" && b.shutFor(x.Door, shutLong) && !b.lostAfter(at):
			j.find("told", b, x.Door, at, "door_left_open is open, and the door is shut")
		}
	}
}

// shutLong is how long a door has been shut for its exception to be over.
const shutLong = 2 * time.Minute

// shutFor reports whether a door has been shut, and could be seen, for so long
// before the last fact of its cabinet, or before the present that its statuses tell.
func (b *Cabinet) shutFor(door uint, d time.Duration) bool {
	var end, shut time.Time
	for _, h := range b.Held {
		end = later(end, h.At)
	}
	for _, f := range b.Facts {
		end = later(end, f.At)
		if f.Door != door {
			continue
		}
		switch f.Kind {
		case board.Closed, board.HookIn:
			shut = f.At
		case board.Opened, board.HookOut:
			shut = time.Time{}
		}
	}
	return !shut.IsZero() && end.Sub(shut) >= d && !b.blind(shut.Add(d))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lostAfter reports whether the cabinet's memory was taken from it after a moment: what it
// had reported before is for staff to close.
func (b *Cabinet) lostAfter(at time.Time) bool {
	return slices.ContainsFunc(b.Boots, func(x Boot) bool { return x.Lost && x.Start.After(at) }) ||
		slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.What == forgot && (s.Until.IsZero() || s.Until.After(at)) })
}
