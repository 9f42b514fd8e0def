package locker

import (
	"slices"

	"github.com/postern-io/postern/cloud"
)

// takeOver moves packages that a running deposit was to leave elsewhere into the
// compartment that the courier took instead, at the cabinet: refs are those that go there, nil
// for all. A delivery for which it was reserved is given another one.
func (w reports) takeOver(d *cloud.Delivery, c *cloud.Compartment, refs []string) error {
	packages, err := w.awaited(d, refs)
	if err != nil || len(packages) == 0 {
		return err
	}
	other := cloud.DeliveryID(0)
	if c.State == cloud.GridReserved && c.DeliveryID != d.ID {
		other = c.DeliveryID
	}
	if c.State == cloud.GridFree || c.State == cloud.GridReserved {
		c.State, c.DeliveryID = cloud.GridReserved, d.ID
		w.touch(c)
	}
	for _, p := range packages {
		p.GridID = c.GridID
	}
	w.touch(d)
	if err := w.place(d); err != nil || other == 0 {
		return err
	}
	return w.displace(other, c)
}

// awaited are the packages of a delivery that no settlement has named yet: refs, or where that
// is nil those of its running deposits.
func (w reports) awaited(d *cloud.Delivery, refs []string) (out []*cloud.Package, err error) {
	stored, err := w.v.DeliveryOpenings(d.ID)
	if err != nil {
		return nil, err
	}
	for _, o := range stored {
		if _, err := w.opening(o.ID); err != nil {
			return nil, err
		}
	}
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.Status != cloud.PackageCreated && p.Status != cloud.PackageAwaitingDeposit {
			continue
		}
		if refs != nil {
			if slices.Contains(refs, p.TrackingNumber) {
				out = append(out, p)
			}
			continue
		}
		for _, o := range w.openings {
			if o != nil && o.DeliveryID == d.ID && o.Kind.IsDeposit() && !o.Ended() && holds(o, p.TrackingNumber) {
				out = append(out, p)
				break
			}
		}
	}
	return out, nil
}

// displace finds other compartments for packages of a delivery that has not come yet,
// whose compartment another delivery has taken.
func (w reports) displace(id cloud.DeliveryID, taken *cloud.Compartment) error {
	d, err := w.delivery(id)
	if err != nil || d == nil || d.Status != cloud.DeliveryCreated {
		return err
	}
	return w.moveAway(d, taken)
}

// moveAway finds other compartments for packages that have yet to be brought to one. Where none
// is free the cabinet chooses one when the courier is there.
func (w reports) moveAway(d *cloud.Delivery, taken *cloud.Compartment) error {
	cells, err := w.allCells()
	if err != nil {
		return err
	}
	w.touch(d)
	var next *cloud.Compartment
	for i := range d.Packages {
		p := &d.Packages[i]
		if p.GridID != taken.GridID || p.Status != cloud.PackageCreated && p.Status != cloud.PackageAwaitingDeposit {
			continue
		}
		p.GridID, p.Status = 0, cloud.PackageCreated
		if next == nil || !takes(*next, append(packagesFor(d.Packages[:i], next.GridID), *p)...) {
			next = pick(cells, *p, func(c *cloud.Compartment) bool { return !slices.Contains([]*cloud.Compartment{taken, next}, c) })
		}
		if next != nil {
			p.GridID = next.GridID
			next.State, next.DeliveryID = cloud.GridReserved, d.ID
			w.touch(next)
		}
	}
	return w.place(d)
}
