// Package parcel has rules of which its tests know some.
package parcel

import "errors"

// ErrHeavy is the answer to a parcel over 30 kilograms.
var ErrHeavy = errors.New("too heavy")

// Price is that of a parcel: its tests know it at either side of the bound.
func Price(kilograms int) (int, error) {
	if kilograms > 30 {
		return 0, ErrHeavy
	}
	return 500 + kilograms, nil
}

// Late is not tested where the two are the same.
func Late(now, due int) bool { return now > due }

// Wait has a mutant that never ends.
func Wait(n int) (steps int) {
	for i := 0; i < n; i++ {
		steps = i
	}
	return steps
}
