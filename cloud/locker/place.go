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

// pick finds the smallest free compartment that fits and that ok allows.
func pick(cells []*cloud.Compartment, size string, ok func(*cloud.Compartment) bool) *cloud.Compartment {
	var best *cloud.Compartment
	for _, c := range cells {
		if !isFree(*c) || !fits(size, c.Size) || !ok(c) {
			continue
		}
		if best == nil || slices.Index(sizes, c.Size) < slices.Index(sizes, best.Size) {
			best = c
		}
	}
	return best
}
