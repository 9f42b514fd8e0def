package locker

import (
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/protocol/wire"
)

// sizes in growing order.
var sizes = wire.Sizes()

// fits reports whether a parcel of size want goes into a compartment of size
// have; a parcel without a size goes anywhere.
func fits(want, have string) bool {
	return want == "" || slices.Index(sizes, have) >= slices.Index(sizes, want)
}

// isFree reports whether a compartment can be given to a delivery.
func isFree(c cloud.Compartment) bool {
	return c.State == cloud.GridFree && c.PickupEnabled && !c.OutOfUse() && c.OpeningID == ""
}

// takes reports whether packages go into a compartment together: each by its size, and, where
// it and the compartment have all three measures, each by itself, turned as it needs to be, and
// all of them by the sum of their volumes. That they can be laid beside each other is not
// promised.
func takes(c cloud.Compartment, packages ...cloud.Package) bool {
	room := []float64{float64(c.Inner.Width), float64(c.Inner.Height), float64(c.Inner.Depth)}
	slices.Sort(room)
	volume := 0.0
	for _, p := range packages {
		if !fits(p.Size, c.Size) {
			return false
		}
		box := []float64{p.Length, p.Width, p.Height}
		if slices.Sort(box); c.Inner.Volume() == 0 || box[0] == 0 {
			continue
		}
		for i := range box {
			if box[i] > room[i] {
				return false
			}
		}
		volume += box[0] * box[1] * box[2]
	}
	return c.Inner.Volume() == 0 || volume <= float64(c.Inner.Volume())
}

// packagesFor are those of a list that go to a compartment.
func packagesFor(list []cloud.Package, grid cloud.GridID) (out []cloud.Package) {
	for _, p := range list {
		if p.GridID == grid && p.Status != cloud.PackageFailed {
			out = append(out, p)
		}
	}
	return out
}

// pick finds the smallest free compartment that takes a package and that ok allows.
func pick(cells []*cloud.Compartment, p cloud.Package, ok func(*cloud.Compartment) bool) *cloud.Compartment {
	var best *cloud.Compartment
	for _, c := range cells {
		if !isFree(*c) || !takes(*c, p) || !ok(c) {
			continue
		}
		if best == nil || slices.Index(sizes, c.Size) < slices.Index(sizes, best.Size) {
			best = c
		}
	}
	return best
}

// refuseTooLarge refuses a package that no compartment, free or not, could ever take.
// Error: PARCEL_TOO_LARGE.
func refuseTooLarge(cells []*cloud.Compartment, p cloud.Package) error {
	if slices.ContainsFunc(cells, func(c *cloud.Compartment) bool { return c.PickupEnabled && takes(*c, p) }) {
		return nil
	}
	return tooLarge(cells)
}

// noRoom says why no compartment was found for a package. Errors: PARCEL_TOO_LARGE,
// NO_COMPARTMENT.
func noRoom(cells []*cloud.Compartment, p cloud.Package) error {
	if err := refuseTooLarge(cells, p); err != nil {
		return err
	}
	return cloud.E(cloud.Conflict, "NO_COMPARTMENT")
}

// tooLarge is PARCEL_TOO_LARGE with the inner measures of the roomiest of the compartments,
// where they are known.
func tooLarge(cells []*cloud.Compartment) *cloud.Error {
	var largest cloud.Inner
	for _, c := range cells {
		if c.PickupEnabled && c.Inner.Volume() > largest.Volume() {
			largest = c.Inner
		}
	}
	e := cloud.E(cloud.Invalid, "PARCEL_TOO_LARGE")
	if largest.Volume() > 0 {
		e.Args, e.Details = []any{largest.Width, largest.Height, largest.Depth}, map[string]any{"largest_inner": largest}
	}
	return e
}

// tooLargeFor is PARCEL_TOO_LARGE for a compartment that was named, with its measures where
// they are known.
func tooLargeFor(c cloud.Compartment) *cloud.Error {
	e := cloud.E(cloud.Invalid, "PARCEL_TOO_LARGE")
	if e.Args = []any{"compartment"}; c.Inner.Volume() > 0 {
		e.Args, e.Details = []any{"compartment", c.Inner.Width, c.Inner.Height, c.Inner.Depth}, map[string]any{"inner": c.Inner}
	}
	return e
}
