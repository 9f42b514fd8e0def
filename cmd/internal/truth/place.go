package truth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// items is what lies in a box at the end.
func (b *Cabinet) items() map[uint][]string {
	out := map[uint][]string{}
	for _, f := range b.Facts {
		switch f.Kind {
		case board.ItemIn:
			out[f.Door] = append(out[f.Door], f.Item)
		case board.ItemOut:
			if i := slices.Index(out[f.Door], f.Item); i >= 0 {
				out[f.Door] = slices.Delete(out[f.Door], i, i+1)
			}
		}
	}
	return out
}

// places compares, door by door, what lies there with what cabinet, cloud,
// registry and timeline believe. Items are named by tracking number.
func (j *judge) places(b *Cabinet) {
	d := j.Cloud.Devices[b.Code]
	inside := b.items()
	for _, door := range slices.Sorted(maps.Keys(d.Cells)) {
		c := d.Cells[door]
		j.Items += len(inside[door])
		cabinet, believed := b.Contents[door], d.lying(c, b.Contents[door])
		if cabinet != believed && !d.tells(door, mismatch) {
			j.find("views", b, door, time.Time{}, "the cabinet holds %q, the cloud %q (%s), and no exception says so", cabinet, believed, c.State)
			continue
		}
		for _, ref := range []string{cabinet, believed} {
			j.believed(b, d, door, ref, inside[door])
		}
	}
	for _, number := range slices.Sorted(maps.Keys(d.Deliveries)) {
		for _, p := range d.Deliveries[number].Packages {
			j.parcel(b, d, d.Deliveries[number], p, inside)
		}
	}
}

// lying is the delivery that the cloud believes lies in a compartment. One that
// is kept for a delivery holds it where the cabinet says so: something may have
// been left there although the delivery was given up.
func (d Device) lying(c cloud.Compartment, cabinet string) string {
	for _, x := range d.Deliveries {
		if x.ID == c.DeliveryID && (c.State != cloud.GridReserved || x.Number == cabinet) {
			return x.Number
		}
	}
	return ""
}

// mismatch is the device exception of a compartment about which cabinet and
// cloud disagree.
const mismatch = "contents_mismatch"

// tells reports whether an open device exception of a type names a door.
func (d Device) tells(door uint, typ string) bool {
	return slices.ContainsFunc(d.Faults, func(e cloud.DeviceException) bool {
		return e.Type == typ && e.ClosedAt.IsZero() && strings.Contains(e.Detail+" ", fmt.Sprintf("door %d", door))
	})
}

// believed: a box holds what it is believed to hold, and an empty one nothing,
// unless a doubt about it is on record.
func (j *judge) believed(b *Cabinet, d Device, door uint, ref string, inside []string) {
	if j.Unscripted || j.doubted(b, d, door) {
		return
	}
	if ref == "" {
		if len(inside) > 0 {
			j.find("place", b, door, time.Time{}, "%s inside, and the box counts as empty", strings.Join(inside, ", "))
		}
		return
	}
	x := d.Deliveries[ref]
	if !slices.ContainsFunc(x.Packages, func(p cloud.Package) bool { return slices.Contains(inside, p.TrackingNumber) }) {
		j.find("place", b, door, time.Time{}, "counts as holding %s, and holds %v", ref, inside)
	}
}

// doubted reports whether something on record leaves it open what
// lies behind a door: an exception, an opening that ended without a door being
// seen, a lost memory, a door that was forced.
func (j *judge) doubted(b *Cabinet, d Device, door uint) bool {
	if slices.ContainsFunc(b.Trouble, func(s Span) bool { return s.What == "force" && s.Door == door && b.blind(s.At) }) {
		return true // forced while nothing looked
	}
	for _, r := range d.Records {
		switch r.Kind {
		case wire.KindExceptionOpened:
			var e wire.Exception
			if wire.Decode(r.Body, &e) == nil && e.Door == door && e.Type != wire.ExDoorLeftOpen {
				return true
			}
			if e.Door == door && e.Evidence == "forced" {
				return true
			}
		case wire.KindOpeningEnded:
			var e wire.OpeningEnded
			if wire.Decode(r.Body, &e) == nil && e.Reason != wire.EndOpenFailed && e.Reason != wire.EndDone && slices.Contains(j.Cloud.Audit.Openings[e.OpeningID].Doors, door) {
				return true
			}
		case wire.KindCommandOutcome:
			var e wire.CommandOutcome
			if wire.Decode(r.Body, &e) == nil && e.Doors[door] == wire.DoorNotSeen {
				return true
			}
		case wire.KindPickupCompleted:
			var e wire.PickupCompleted
			if wire.Decode(r.Body, &e) == nil && (e.StillOpen || slices.Contains(e.Left, door)) {
				return true
			}
		case wire.KindOpeningSettled:
			var e wire.OpeningSettled
			if wire.Decode(r.Body, &e) == nil && slices.ContainsFunc(e.Packages, func(p wire.SettledPackage) bool { return p.Door == door && p.Outcome == wire.Unverified }) {
				return true
			}
		case wire.KindTamper:
			var x wire.Tamper
			if wire.Decode(r.Body, &x) == nil && x.What == wire.TamperStoreRolledBack {
				return true
			}
		case wire.KindGap:
			var g wire.Gap
			if wire.Decode(r.Body, &g) == nil && (g.Reason == wire.GapStoreDamaged || g.Reason == wire.GapStoreRolledBack || g.Reason == wire.GapStoreCreated && r.Boot > 1) {
				return true
			}
		}
	}
	grid := d.Cells[door].GridCode
	return slices.ContainsFunc(d.Exceptions, func(e cloud.Exception) bool {
		return e.GridCode == grid && e.Type != wire.ExDoorLeftOpen && e.Type != "overdue"
	})
}

// blind reports whether a cabinet could not see its doors: its boards had no
// power, or no agent ran.
func (b *Cabinet) blind(at time.Time) bool {
	dark := false
	for _, f := range b.Facts {
		if f.At.After(at) {
			break
		}
		if f.Kind == board.PowerOff || f.Kind == board.PowerOn {
			dark = f.Kind == board.PowerOff
		}
	}
	return dark || !slices.ContainsFunc(b.Boots, func(x Boot) bool { return !x.Start.After(at) && (x.End.IsZero() || !x.End.Before(at)) })
}

// Timeline codes of a parcel that waits in a box, and of one that was taken.
var (
	waiting = []string{"x-available_for_pickup"}
	gone    = []string{"delivered", "picked_up", "x-picked_up"}
)

// parcel compares registry and timeline of one package with where the cloud says
// that it lies.
func (j *judge) parcel(b *Cabinet, d Device, x cloud.Delivery, p cloud.Package, inside map[uint][]string) {
	var row *cloud.DeviceOrder
	for i := range d.Orders {
		if o := &d.Orders[i]; o.DeliveryID == x.ID && o.Tracking == p.TrackingNumber {
			row = o
		}
	}
	codes := j.Cloud.Timelines[p.TrackingNumber]
	last := ""
	if len(codes) > 0 {
		last = codes[len(codes)-1]
	}
	switch p.Status {
	case cloud.PackageInCompartment:
		if row == nil || !slices.Contains([]string{"stored", "overdue"}, row.Status) {
			j.find("device_order", b, 0, time.Time{}, "%s lies in a compartment, and the registry says %s", p.TrackingNumber, statusOf(row))
		}
		if !slices.Contains(waiting, last) {
			j.find("timeline", b, 0, time.Time{}, "%s waits to be collected, and its timeline ends with %q", p.TrackingNumber, last)
		}
	case cloud.PackagePickedUp:
		if row != nil && row.EndedAt.IsZero() {
			j.find("device_order", b, 0, time.Time{}, "%s was collected, and the registry says %s", p.TrackingNumber, statusOf(row))
		}
		if !slices.Contains(gone, last) {
			j.find("timeline", b, 0, time.Time{}, "%s was collected, and its timeline ends with %q", p.TrackingNumber, last)
		}
	}
}

func statusOf(o *cloud.DeviceOrder) string {
	if o == nil {
		return "nothing"
	}
	return o.Status
}
