package order

import (
	"cmp"
	"errors"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/otep"
)

// Operation types of cabinets (interface 4.5).
const (
	doorsOpened      = 7001
	depositConfirmed = 7002
	collected        = 7003
	lockerExpired    = 7004
	lockerRemoved    = 7005
)

// FromLocker makes, inside a decision of another feature, what news from
// cabinets mean for orders, and gives what is to be written besides. It refuses
// nothing: orders that are deleted or done stay as they are.
//
//	deposited  → IN_LOCKER with its first package; further ones are only noted
//	collected  stays while another package waits in a locker; then → DELIVERED,
//	           or → PARTIALLY_DELIVERED when some were never brought
//	removed    stays while another package waits; then → DELIVERY_FAILED
//	overdue    stays and is told
//	event      as scans in a warehouse, once the timeline has come to it
func (s *Service) FromLocker(v cloud.View, news []cloud.LockerNews) (*cloud.Changes, error) {
	now := s.time()
	var all decisions
	for _, n := range news {
		d, err := all.find(v, n.BusinessID, n.OrderID, func(o cloud.Order) *Decision {
			d := s.begin(v, cloud.Caller{}, now, o)
			for _, n := range news {
				if n.Event != nil && n.OrderID == o.ID {
					d.news.Events = append(d.news.Events, *n.Event)
				}
			}
			return d
		})
		if errors.Is(err, cloud.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d.device, d.code, d.trace = &n.Device, n.DeviceCode, cmp.Or(n.Trace, d.trace)
		if err := applyLockerNews(d, n); err != nil {
			return nil, err
		}
	}
	return all.finish()
}

// applyLockerNews is one of FromLocker.
func applyLockerNews(d *Decision, n cloud.LockerNews) error {
	if n.Kind == cloud.LockerAnnounced {
		d.Order.DeliveryID, d.touched = n.DeliveryID, true
		return nil
	}
	if n.Kind == cloud.LockerEvent {
		return noteEvent(d, n)
	}
	if d.Order.Status.State().Terminal {
		return nil
	}
	if err := noteLockerPush(d, n); err != nil {
		return err
	}
	in := MoveInput{BusinessID: d.Order.BusinessID, OrderID: d.Order.ID, Place: n.Place, At: n.At, Approximate: n.Approximate, Earliest: n.Earliest, Latest: n.Latest,
		Packages: map[cloud.PackageID]cloud.OrderPackageStatus{}}
	switch n.Kind {
	case cloud.LockerOpened:
		in.Operation = doorsOpened
	case cloud.LockerExpired:
		in.Operation = lockerExpired
	case cloud.LockerOverdue:
		in.Operation = lockerExpired
		if d.Order.Status == cloud.OrderInLocker {
			in.To, in.Trigger, in.Reason = cloud.OrderInLocker, Overdue, "pickup_expired"
		}
	case cloud.LockerDeposited:
		return noteDeposit(d, in, n.Packages)
	case cloud.LockerCollected:
		return noteCollection(d, in, n.Packages)
	case cloud.LockerRemoved:
		return noteRemoval(d, in, n.Packages)
	}
	return d.Step(in)
}

func noteDeposit(d *Decision, in MoveInput, which []cloud.PackageID) error {
	changed := false
	for _, p := range openPackages(d, which) {
		in.Packages[p.ID] = cloud.OrderPackageInLocker
		changed = changed || p.Status != cloud.OrderPackageInLocker
	}
	if d.Order.Status != cloud.OrderInLocker {
		in.To, in.Trigger = cloud.OrderInLocker, Deposit
	} else if !changed {
		return nil // confirmed once more
	}
	in.Operation = depositConfirmed
	return d.Step(in)
}

// noteCollection: what was collected had been deposited, whether that was reported or
// not, and whatever was decided about the order since.
func noteCollection(d *Decision, in MoveInput, which []cloud.PackageID) error {
	taken := openPackages(d, which)
	if len(taken) == 0 {
		return nil
	}
	if d.Order.Status != cloud.OrderInLocker {
		before := in
		before.Packages = map[cloud.PackageID]cloud.OrderPackageStatus{}
		if err := noteDeposit(d, before, which); err != nil {
			return err
		}
	}
	for _, p := range taken {
		in.Packages[p.ID] = cloud.OrderPackageDelivered
	}
	in.Operation, in.Source = collected, otep.Locker
	var done []cloud.PackageID
	left, waiting := false, false
	for _, p := range d.Order.Packages {
		switch {
		case in.Packages[p.ID] != "" || p.Status == cloud.OrderPackageDelivered:
			done = append(done, p.ID)
		case p.Status == cloud.OrderPackageInLocker:
			waiting = true
		case !IsFinalPackage(p.Status):
			left = true
		}
	}
	switch {
	case waiting:
	case left:
		in.To, in.Trigger, in.Delivered = cloud.OrderPartlyDelivered, Collect, done
	default:
		in.To, in.Trigger = cloud.OrderDelivered, Collect
	}
	return d.Step(in)
}

func noteRemoval(d *Decision, in MoveInput, which []cloud.PackageID) error {
	for _, p := range openPackages(d, which) {
		if p.Status == cloud.OrderPackageInLocker {
			in.Packages[p.ID] = cloud.OrderPackageFailed
		}
	}
	if len(in.Packages) == 0 {
		return nil
	}
	in.Operation = lockerRemoved
	waits := slices.ContainsFunc(d.Order.Packages, func(p cloud.OrderPackage) bool {
		return p.Status == cloud.OrderPackageInLocker && in.Packages[p.ID] == ""
	})
	if d.Order.Status == cloud.OrderInLocker && !waits {
		in.To, in.Trigger = cloud.OrderDeliveryFailed, RemoveFromLocker
	}
	return d.Step(in)
}

// openPackages are those of the named packages, or with a 0 of all, that have not come
// to their end.
func openPackages(d *Decision, which []cloud.PackageID) (out []cloud.OrderPackage) {
	for _, p := range d.Order.Packages {
		if !IsFinalPackage(p.Status) && (slices.Contains(which, 0) || slices.Contains(which, p.ID)) {
			out = append(out, p)
		}
	}
	return out
}

func IsFinalPackage(s cloud.OrderPackageStatus) bool {
	return s == cloud.OrderPackageDelivered || s == cloud.OrderPackageLost
}

// LockerRef is the latest locker delivery of an order.
type LockerRef struct {
	DeviceID   cloud.DeviceID       `json:"device_id"`
	DeviceName string               `json:"device_name"`
	DeliveryID cloud.DeliveryID     `json:"delivery_id"`
	Status     cloud.DeliveryStatus `json:"status"`
}

// locker shows an order's locker delivery; nil when it has none.
func (s *shower) locker(o cloud.Order) (*LockerRef, error) {
	if o.DeliveryID == 0 {
		return nil, nil
	}
	d, err := s.v.Delivery(o.DeliveryID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && d.OrderID() != o.ID {
		return nil, nil // its packages were taken out of the delivery
	}
	if err != nil {
		return nil, err
	}
	device, err := s.v.Device(d.DeviceID)
	return &LockerRef{DeviceID: d.DeviceID, DeviceName: device.Name, DeliveryID: d.ID, Status: d.Status}, err
}
