package search

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// doorName is what people call a door: letters and a number, A-4 or a04, or a number with a
// sign before it.
var doorName = regexp.MustCompile(`^(?:(.+) )??([A-Za-z]{1,3})[-. ]?0{0,2}([1-9][0-9]{0,2})$`)

// Door reads a text as the name of a door and gives every way of writing it, at most
// cloud.DoorSpellings, and the name of the cabinet that stands before it. names is nil for
// what is no door's name.
//
//	A-4, a04, A 4   A4, A04, A004, A-4, …
//	Old Yard A4     the same, of Old Yard
func Door(text string) (cabinet string, names []string) {
	m := doorName.FindStringSubmatch(text)
	if m == nil {
		return "", nil
	}
	for _, sign := range []string{"", "-", ".", " "} {
		for width := 1; width <= 3; width++ {
			names = append(names, strings.ToUpper(m[2])+sign+fmt.Sprintf("%0*s", width, m[3]))
		}
	}
	return m[1], names[:min(len(names), cloud.DoorSpellings)]
}
