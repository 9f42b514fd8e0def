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
		if !j.viewsAgree(b, d, door, cabinet, believed) {
			continue
		}
		if cabinet == "" || !b.Kept[door] || !d.keeps(c) {
			j.believed(b, d, door, cabinet, inside[door])
		}
	}
	for _, number := range slices.Sorted(maps.Keys(d.Deliveries)) {
		for _, p := range d.Deliveries[number].Packages {
			j.parcel(b, d, d.Deliveries[number], p, inside)
		}
	}
}

// lying is the delivery that the cloud believes lies in a compartment. One that
// is kept for a delivery, in use or blocked, holds it where the cabinet says so:
// something may have been left there although the delivery was given up.
func (d Device) lying(c cloud.Compartment, cabinet string) string {
	kept := c.State == cloud.GridReserved || c.State == cloud.GridBlocked && d.keeps(c)
	for _, x := range d.Deliveries {
		if x.ID == c.DeliveryID && (!kept || x.Number == cabinet) {
			return x.Number
		}
	}
	return ""
}

// keeps reports whether the cloud keeps a compartment for a delivery of which no
// package is known to lie there.
func (d Device) keeps(c cloud.Compartment) bool {
	for _, x := range d.Deliveries {
		if x.ID == c.DeliveryID {
			return !slices.ContainsFunc(x.Packages, func(p cloud.Package) bool {
				return p.GridID == c.GridID && (p.Status == cloud.PackageInCompartment || p.Status == cloud.PackageCorrecting)
			})
		}
	}
	return true
}

// mismatch is the device exception of a compartment about which cabinet and
// cloud disagree.
const mismatch = "contents_mismatch"

// doubtsDeposit reports whether staff are asked to look what lies in a compartment:
// an exception names it, or another one of the same opening.
func (j *judge) doubtsDeposit(d Device, grid string) bool {
	return slices.ContainsFunc(d.Exceptions, func(e cloud.Exception) bool {
		return e.Type == wire.ExDepositUnverified && e.Status == "open" && (e.GridCode == grid || j.inOpening(d, e, grid))
	})
}

// inOpening reports whether an exception is about an opening that has a compartment.
func (j *judge) inOpening(d Device, e cloud.Exception, grid string) bool {
	_, opening, _ := strings.Cut(e.Source, ":")
	return slices.ContainsFunc(j.Cloud.Audit.Openings[opening].Doors, func(n uint) bool { return d.Cells[n].GridCode == grid })
}

// viewsAgree compares two views of a compartment. Where they differ an exception
// says so, and nothing else than the exception is judged then: it has a cause that
// the script made, and the compartment is out of use. Where they do not the
// exception is over.
func (j *judge) viewsAgree(b *Cabinet, d Device, door uint, cabinet, believed string) bool {
	c := d.Cells[door]
	e, told := d.tells(door, mismatch)
	switch {
	case cabinet == believed && told:
		j.find("views", b, door, e.OpenedAt, "both hold %q, and the exception still says: %s", cabinet, e.Detail)
	case cabinet == believed:
	case !told:
		j.find("views", b, door, time.Time{}, "the cabinet holds %q, the cloud %q (%s), and no exception says so", cabinet, believed, c.State)
	case !c.OutOfUse():
		j.find("views", b, door, e.OpenedAt, "the cabinet holds %q, the cloud %q (%s), and it is in use", cabinet, believed, c.State)
	case j.doubtsDeposit(d, c.GridCode): // confirmed as another than the cabinet settled later
	case !slices.ContainsFunc(b.Trouble, func(s Span) bool {
		return s.What == forgot && (s.Door == 0 || s.Door == door) && !s.At.After(e.SeenAt)
	}):
		j.find("views", b, door, e.OpenedAt, "the cabinet holds %q, the cloud %q (%s), and nothing made either forget", cabinet, believed, c.State)
	}
	return cabinet == believed
}

// tells gives the open device exception of a type that names a door.
func (d Device) tells(door uint, typ string) (cloud.DeviceException, bool) {
	for _, e := range d.Faults {
		if e.Type != typ || !e.ClosedAt.IsZero() {
			continue
		}
		for part := range strings.SplitSeq(e.Detail, "; ") {
			if strings.HasPrefix(part, fmt.Sprintf("door %d:", door)) {
				return e, true
			}
		}
	}
	return cloud.DeviceException{}, false
}

// believed: a box holds what it is believed to hold, and an empty one nothing,
// unless a doubt is on record about what happened there.
func (j *judge) believed(b *Cabinet, d Device, door uint, ref string, inside []string) {
	if j.Unscripted {
		return
	}
	if ref == "" {
		if len(inside) > 0 && !j.doubted(b, d, door, b.around(door, board.ItemIn, inside)) {
			j.find("place", b, door, time.Time{}, "%s inside, and the box counts as empty", strings.Join(inside, ", "))
		}
		return
	}
	x := d.Deliveries[ref]
	if slices.ContainsFunc(x.Packages, func(p cloud.Package) bool { return slices.Contains(inside, p.TrackingNumber) }) {
		return
	}
	var names []string
	for _, p := range x.Packages {
		names = append(names, p.TrackingNumber)
	}
	if !j.doubted(b, d, door, b.around(door, board.ItemOut, names)) {
		j.find("place", b, door, time.Time{}, "counts as holding %s, and holds %v", ref, inside)
	}
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
	waiting = []string{"x-available_for_pickup", "x-pickup_overdue"}
	gone    = []string{"delivered", "picked_up", "x-picked_up"}
	removed = []string{"x-removed_from_device"}
	partial = []string{"delivery_failed"} // an order of which a part was collected
	ended   = []string{"cancelled", "return_to_sender", "rejected_by_recipient"}
)

// Those of a parcel that a courier collects.
var (
	waitingOut = []string{"awaiting_pickup"}
	goneOut    = []string{"picked_up"}
)

// judgeOutgoing judges what senders have brought: the list has no code with which a recipient
// would collect it, and it is collected once.
func judgeOutgoing(j *judge, b *Cabinet, d Device) {
	for number, x := range d.Deliveries {
		if !x.IsOutgoing() {
			continue
		}
		for _, r := range d.Codes {
			if r.Entry.DeliveryRef != number || r.Entry.Op != wire.CodeSet {
				continue
			}
			if r.Entry.Kind == wire.CodePickup || r.Entry.Kind == wire.CodeHandover || r.Entry.Kind == wire.CodeOutgoing && len(r.Entry.Verifier) > 0 {
				j.find("outgoing", b, 0, r.CreatedAt, "entry %d is a %s code of %s, which a courier collects", r.Entry.Number, r.Entry.Kind, number)
			}
		}
		if x.Status == cloud.DeliveryPickedUp && x.PickedUpBy == "recipient" {
			j.find("outgoing", b, 0, x.PickedUpAt, "%s was collected by its recipient", number)
		}
		for _, p := range x.Packages {
			times := 0
			for _, o := range d.Orders {
				if o.DeliveryID == x.ID && o.Tracking == p.TrackingNumber && o.Status == "picked_up" {
					times++
				}
			}
			if times > 1 {
				j.find("outgoing", b, 0, x.PickedUpAt, "%s was collected %d times", p.TrackingNumber, times)
			}
		}
	}
}

// courses are the timeline codes of a parcel of a delivery that waits, and of one that was
// collected.
func courses(x cloud.Delivery) (waits, taken []string) {
	if x.IsOutgoing() {
		return waitingOut, goneOut
	}
	return waiting, gone
}

// parcel compares registry and timeline of one package with where the cloud says
// that it lies.
func (j *judge) parcel(b *Cabinet, d Device, x cloud.Delivery, p cloud.Package, inside map[uint][]string) {
	var row *cloud.DeviceOrder
	for i := range d.Orders {
		if o := &d.Orders[i]; o.DeliveryID == x.ID && o.Tracking == p.TrackingNumber {
			row = o
		}
	}
	steps := j.Cloud.Timelines[p.TrackingNumber]
	door := d.cell(p.GridID).Door
	waits, taken := courses(x)
	switch p.Status {
	case cloud.PackageInCompartment:
		// A correction that the cabinet lost leaves the deposit as it was, and staff to
		// look whether it still is.
		looked := row != nil && row.Status == "unverified" && j.doubtsDeposit(d, row.GridCode)
		if row == nil || !looked && !slices.Contains([]string{"stored", "overdue"}, row.Status) {
			j.find("device_order", b, 0, time.Time{}, "%s lies in a compartment, and the registry says %s", p.TrackingNumber, statusOf(row))
		}
		if row != nil && row.EndedAt.IsZero() && !looked {
			if cell := d.cell(p.GridID); cell.GridCode != row.GridCode {
				j.find("device_order", b, cell.Door, time.Time{}, "%s lies in compartment %s, and the registry names %s", p.TrackingNumber, cell.GridCode, row.GridCode)
			}
		}
		if x.Livemode && !shows(steps, p, waits) {
			j.find("timeline", b, door, time.Time{}, "%s waits to be collected, and its timeline is %v", p.TrackingNumber, steps)
		}
	case cloud.PackagePickedUp:
		if row != nil && row.EndedAt.IsZero() {
			j.find("device_order", b, 0, time.Time{}, "%s was collected, and the registry says %s", p.TrackingNumber, statusOf(row))
		}
		ends := taken
		if row != nil && row.Status == "removed" {
			if ends = removed; row.RemovalReason == "handover" { // by a courier, or by staff to its recipient
				ends = slices.Concat(removed, taken)
			}
		}
		if p.OrderID != 0 && slices.ContainsFunc(x.Packages, func(o cloud.Package) bool { return o.Status != cloud.PackagePickedUp }) {
			ends = slices.Concat(ends, waits, partial)
		}
		if x.Livemode && !shows(steps, p, ends) {
			j.find("timeline", b, door, time.Time{}, "%s was collected, and its timeline is %v", p.TrackingNumber, steps)
		}
	}
}

// shows reports whether a timeline shows one of the codes that a package has come to: as the
// last of its own; of an order's since it waited in a
// locker, for the order goes on afterwards, or had ended before.
func shows(steps []Step, p cloud.Package, codes []string) bool {
	if p.OrderID == 0 {
		return len(steps) > 0 && slices.Contains(codes, steps[len(steps)-1].Code)
	}
	waits := false
	return slices.ContainsFunc(steps, func(s Step) bool {
		waits = waits || slices.Contains(waiting, s.Code)
		return waits && slices.Contains(codes, s.Code) || slices.Contains(ended, s.Code)
	})
}

func statusOf(o *cloud.DeviceOrder) string {
	if o == nil {
		return "nothing"
	}
	return o.Status
}

// cell is a compartment by its number.
func (d Device) cell(id cloud.GridID) cloud.Compartment {
	for _, c := range d.Cells {
		if c.GridID == id {
			return c
		}
	}
	return cloud.Compartment{}
}
