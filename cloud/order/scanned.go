package order

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Operation types of scans (interface 4.5).
const (
	ScanReceived = 4001
	ScanArrived  = 4002
	ScanOutbound = 4003
	ScanShelved  = 4005
	ScanHeld     = 4006
)

// scans are the statuses that scans lead to, by their codes.
var scans = map[otep.Code]cloud.OrderStatus{otep.Received: cloud.OrderReceived, otep.ArrivalScan: cloud.OrderArrivalScan, otep.InTransit: cloud.OrderInTransit,
	otep.PackageOutbound: cloud.OrderOutbound}

// ScanMove is what a scan, which leads to a status, does to an order, and what its packages are after it: of the package that was scanned,
// or with nil of all that are on their way. Of an order that is already where the scan leads, To is 0; Operation
// is 0 where the scan is out of place.
func ScanMove(o cloud.Order, pkg *cloud.OrderPackage, scan cloud.OrderStatus) MoveInput {
	in, state := scanTarget(o.Status, scan)
	if in.Operation == 0 {
		return in
	}
	in.BusinessID, in.OrderID, in.Packages = o.BusinessID, o.ID, map[cloud.PackageID]cloud.OrderPackageStatus{}
	for _, p := range o.Packages {
		if (pkg == nil || p.ID == pkg.ID) && p.Status != state && isUnderway(p.Status) {
			in.Packages[p.ID] = state
		}
	}
	ends := o.Type == cloud.PickupOrder && in.To == cloud.OrderReceived
	if ends && waitsFor(o, in.Packages) {
		in.To = 0
	}
	if in.To != 0 && (ends || pkg == nil) { // what becomes of the order becomes of its packages
		in.Packages = nil
	}
	return in
}

// scanTarget is where a scan leads from a status.
func scanTarget(from, scan cloud.OrderStatus) (in MoveInput, state cloud.OrderPackageStatus) {
	switch scan {
	case cloud.OrderReceived:
		switch from {
		case cloud.OrderPickedUp, cloud.OrderDeliveryFailed:
			return MoveInput{To: cloud.OrderReceived, Trigger: ReceiveScan, Operation: ScanReceived}, cloud.OrderPackageReceived
		case cloud.OrderInTransit, cloud.OrderOutbound:
			return MoveInput{To: cloud.OrderReceived, Trigger: ArriveScan, Operation: ScanReceived}, cloud.OrderPackageReceived
		case cloud.OrderReceived:
			return MoveInput{Operation: ScanReceived}, cloud.OrderPackageReceived
		case cloud.OrderDeliveryRescheduled:
			return MoveInput{Operation: ScanShelved}, cloud.OrderPackageReceived
		}
	case cloud.OrderArrivalScan:
		switch from {
		case cloud.OrderInTransit, cloud.OrderOutbound:
			return MoveInput{To: cloud.OrderArrivalScan, Trigger: ArriveScan, Operation: ScanArrived}, cloud.OrderPackageReceived
		case cloud.OrderArrivalScan:
			return MoveInput{Operation: ScanArrived}, cloud.OrderPackageReceived
		}
	case cloud.OrderOutbound, cloud.OrderInTransit:
		switch from {
		case cloud.OrderReceived, cloud.OrderArrivalScan:
			return MoveInput{To: scan, Trigger: OutboundScan, Operation: ScanOutbound}, cloud.OrderPackageInTransit
		case scan:
			return MoveInput{Operation: ScanOutbound}, cloud.OrderPackageInTransit
		}
	}
	return MoveInput{}, ""
}

// isUnderway reports whether a package in a state can still be scanned.
func isUnderway(s cloud.OrderPackageStatus) bool {
	switch s {
	case cloud.OrderPackageDelivered, cloud.OrderPackageReturned, cloud.OrderPackageCancelled:
		return false
	}
	return true
}

// waitsFor reports whether packages of an order are still on the way when those that are scanned now are there.
func waitsFor(o cloud.Order, now map[cloud.PackageID]cloud.OrderPackageStatus) bool {
	return slices.ContainsFunc(o.Packages, func(p cloud.OrderPackage) bool {
		_, here := now[p.ID]
		return !here && p.Status != cloud.OrderPackageReceived && p.Status != cloud.OrderPackageLost && isUnderway(p.Status)
	})
}

// noteEvent adds an event that a device has made to the timeline. A scan moves the order by the table once its
// timeline has come to the code of the scan; an event that cannot follow the end is a report.
func noteEvent(d *Decision, n cloud.LockerNews) error {
	l, err := d.Timeline()
	if err != nil {
		return err
	}
	row := *n.Event
	row.Event.Reported = follower{d, l, cloud.Provider{}, map[cloud.PackageID]otep.Timeline{}}.isPastEnd(row)
	l.add(row)
	e := row.Event
	if e.Reported || e.OccurredAt.Before(storedTime(l.latest())) {
		return nil
	}
	if d.Order.Status == cloud.OrderIntercepted && e.StatusCode == otep.Received {
		if i, err := d.Interception(); err != nil || i == nil || !i.InForce() {
			return err
		}
		_, err := HoldIntercepted(d, "")
		return err
	}
	var pkg *cloud.OrderPackage
	if i := slices.IndexFunc(d.Order.Packages, func(p cloud.OrderPackage) bool { return p.ID == row.Package }); i >= 0 {
		pkg = &d.Order.Packages[i]
	}
	in := ScanMove(d.Order, pkg, scans[e.StatusCode])
	if in.To != 0 && l.Current() != e.StatusCode { // other packages are not there yet
		in.To = 0
	}
	if in.To == 0 && len(in.Packages) == 0 || in.To != 0 && !d.CanMove(in.To, in.Trigger) {
		return nil
	}
	in.Noted, in.At, in.Place = true, e.OccurredAt.Time, n.Place
	return d.Step(in)
}

// HoldIntercepted notes that the goods of a stopped order are at a warehouse. changed is false when that was
// known. Error: ORDER_STATUS_CONFLICT when no interception is in force.
func HoldIntercepted(d *Decision, note string) (changed bool, err error) {
	i, err := d.Interception()
	switch {
	case err != nil:
		return false, err
	case i == nil || !i.InForce():
		return false, StatusConflict(d.Order)
	case i.Status == cloud.InterceptionHeld:
		return false, nil
	}
	d.LogOperation(ScanHeld, d.Order.Status, note, nil)
	i.Status, i.HeldAt, i.Operation = cloud.InterceptionHeld, d.Now, ScanHeld
	return true, nil
}
