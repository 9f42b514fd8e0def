package locker

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// turnsIn reports whether a box goes into a compartment in one of its six positions.
func turnsIn(p cloud.Package, in cloud.Inner) bool {
	a, b, c := p.Length, p.Width, p.Height
	for _, t := range [][3]float64{{a, b, c}, {a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
		if t[0] <= float64(in.Width) && t[1] <= float64(in.Height) && t[2] <= float64(in.Depth) {
			return true
		}
	}
	return false
}

// takesByModel says at length what a compartment takes: letters first, and measures where both
// sides have all three.
func takesByModel(c cloud.Compartment, packages ...cloud.Package) bool {
	letters := map[string]int{"": 0, "S": 1, "M": 2, "L": 3, "XL": 4}
	sum, room := 0.0, float64(c.Inner.Width*c.Inner.Height*c.Inner.Depth)
	for _, p := range packages {
		if letters[p.Size] > letters[c.Size] {
			return false
		}
		if room == 0 || p.Length == 0 || p.Width == 0 || p.Height == 0 {
			continue
		}
		if !turnsIn(p, c.Inner) {
			return false
		}
		sum += p.Length * p.Width * p.Height
	}
	return room == 0 || sum <= room
}

func drawCabinet(t *rapid.T) (cells []*cloud.Compartment) {
	for i := range rapid.IntRange(1, 8).Draw(t, "compartments") {
		c := &cloud.Compartment{GridID: cloud.GridID(i + 1), Door: uint(i + 1), Size: rapid.SampledFrom(sizes).Draw(t, "size"), PickupEnabled: rapid.IntRange(0, 5).Draw(t, "pickup") > 0,
			State: rapid.SampledFrom([]string{cloud.GridFree, cloud.GridFree, cloud.GridOccupied, cloud.GridBlocked}).Draw(t, "state")}
		if rapid.IntRange(0, 3).Draw(t, "measured") > 0 {
			side := rapid.IntRange(1, 6)
			c.Inner = cloud.Inner{Width: side.Draw(t, "width"), Height: side.Draw(t, "height"), Depth: side.Draw(t, "depth")}
		}
		cells = append(cells, c)
	}
	return cells
}

func drawPackages(t *rapid.T) (list []cloud.Package) {
	for range rapid.IntRange(1, 4).Draw(t, "packages") {
		side := rapid.SampledFrom([]float64{0, 1, 1, 2, 2.5, 3, 4, 5, 6, 7})
		list = append(list, cloud.Package{Size: rapid.SampledFrom([]string{"", "", "S", "M", "L", "XL"}).Draw(t, "asked"), Status: cloud.PackageCreated,
			Length: side.Draw(t, "length"), Width: side.Draw(t, "width"), Height: side.Draw(t, "height")})
	}
	return list
}

func errorCode(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Whatever the cabinet and the packages: each package is given the first of the smallest
// compartments that take it, and where there is none the refusal says whether there ever could
// be one.
func TestCompartmentsAreChosenByMeasures(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells, d := drawCabinet(t), &cloud.Delivery{ID: 7, Packages: drawPackages(t)}
		free, want, refusal := map[cloud.GridID]bool{}, []cloud.GridID{}, ""
		for _, c := range cells {
			free[c.GridID] = c.State == cloud.GridFree && c.PickupEnabled
		}
		for _, p := range d.Packages {
			best, ever := (*cloud.Compartment)(nil), false
			for _, size := range []string{"S", "M", "L", "XL"} {
				for _, c := range cells {
					takes := c.Size == size && c.PickupEnabled && takesByModel(*c, p)
					ever = ever || takes
					if best == nil && takes && free[c.GridID] {
						best = c
					}
				}
			}
			if best == nil {
				if refusal = "NO_COMPARTMENT"; !ever {
					refusal = "PARCEL_TOO_LARGE"
				}
				break
			}
			free[best.GridID], want = false, append(want, best.GridID)
		}
		_, err := reserve(cells, d)
		require.Equal(t, refusal, errorCode(err))
		if err == nil {
			for i, p := range d.Packages {
				require.Equal(t, want[i], p.GridID)
			}
		}
	})
}

// Whatever a reassignment asks for, the packages that share a compartment afterwards fit into
// it, each alone and all by their volume.
func TestPackagesThatMoveTogetherFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cells, d := drawCabinet(t), &cloud.Delivery{ID: 7, Packages: drawPackages(t)}
		was := rapid.SampledFrom([]cloud.GridID{0, 90})
		for i := range d.Packages {
			d.Packages[i].GridID = was.Draw(t, "from")
		}
		in := ReassignInput{Size: rapid.SampledFrom(sizes).Draw(t, "to size")}
		if rapid.Bool().Draw(t, "by grid") {
			in = ReassignInput{GridID: cells[0].GridID}
		}
		first, all := *cells[0], d.Packages
		free := first.State == cloud.GridFree && first.PickupEnabled
		_, err := chooseOthers(d, cells, in)
		if in.GridID != 0 && free {
			require.Equal(t, takesByModel(first, all...), err == nil)
		}
		if err != nil {
			return
		}
		for _, c := range cells {
			var inside []cloud.Package
			for _, p := range d.Packages {
				if p.GridID == c.GridID {
					inside = append(inside, p)
				}
			}
			require.True(t, takesByModel(*c, inside...))
		}
	})
}

// A refusal names the roomiest compartment, where it is known.
func TestTooLargeSaysTheLargestMeasures(t *testing.T) {
	t.Parallel()
	small := &cloud.Compartment{GridID: 1, Size: "S", PickupEnabled: true, State: cloud.GridFree, Inner: cloud.Inner{Width: 40, Height: 10, Depth: 50}}
	large := &cloud.Compartment{GridID: 2, Size: "L", PickupEnabled: true, State: cloud.GridOccupied, Inner: cloud.Inner{Width: 40, Height: 30, Depth: 50}}
	long := cloud.Package{Length: 90, Width: 5, Height: 5}
	var e *cloud.Error
	_, err := reserve([]*cloud.Compartment{small, large}, &cloud.Delivery{Packages: []cloud.Package{long}})
	require.ErrorAs(t, err, &e)
	require.Equal(t, []any{40, 30, 50}, e.Args)
	require.Equal(t, map[string]any{"largest_inner": large.Inner}, e.Details)
	require.Contains(t, locale.Error("en", e.Code, e.Args...), "40 × 30 × 50 cm")
	small.Inner, large.Inner = cloud.Inner{}, cloud.Inner{}
	_, err = reserve([]*cloud.Compartment{small, large}, &cloud.Delivery{Packages: []cloud.Package{{Size: "XL"}}})
	require.ErrorAs(t, err, &e)
	require.Equal(t, "PARCEL_TOO_LARGE", e.Code)
	require.Empty(t, e.Args)
	require.Empty(t, e.Details)
}
