package locker_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/postern-io/postern/cloud/locker"
)

// Whatever the layout, and in whatever order its compartments are listed: a person who walks
// along the cabinet, from the left to the right and in each column from the top down, passes
// the doors for pickup in the order of their numbers, from 1 without a gap, and no other door
// has one.
func TestDisplayNumbersCountAlongTheCabinet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type spot struct{ shelf, column, row int }
		var shelves []locker.LayoutShelf
		forPickup, doorAt, door := map[int]bool{}, map[spot]int{}, 0
		for i := range rapid.IntRange(1, 5).Draw(t, "shelves") {
			s := locker.LayoutShelf{Code: string(rune('A' + (i*7)%26))} // in no order of the alphabet
			taken := map[spot]bool{}
			for range rapid.IntRange(0, 12).Draw(t, "grids") {
				at := spot{i, rapid.IntRange(1, 4).Draw(t, "column"), rapid.IntRange(1, 6).Draw(t, "row")}
				if taken[at] {
					continue
				}
				taken[at] = true
				door++
				g := locker.LayoutGrid{Door: door, Column: at.column, Row: at.row, Size: "M"}
				if is := rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "pickup"); is != nil {
					g.PickupEnabled = is
				}
				forPickup[door], doorAt[at] = g.PickupEnabled == nil || *g.PickupEnabled, door
				s.Grids = append(s.Grids, g)
			}
			shelves = append(shelves, s)
		}
		labels, numbers := map[int]string{}, map[int]int{}
		placed := locker.PlaceGrids(shelves)
		require.Len(t, placed, door)
		for _, p := range placed {
			labels[p.Door], numbers[p.Door] = p.Label(), p.Number
		}
		next := 1
		for shelf := range shelves {
			for column := 1; column <= 4; column++ {
				for row := 1; row <= 6; row++ {
					n, there := doorAt[spot{shelf, column, row}]
					switch {
					case !there:
					case !forPickup[n]:
						require.Zero(t, numbers[n])
						require.Empty(t, labels[n])
					default:
						require.Equal(t, next, numbers[n])
						require.Equal(t, fmt.Sprint(shelves[shelf].Code, "-", next), labels[n])
						next++
					}
				}
			}
		}
	})
}
