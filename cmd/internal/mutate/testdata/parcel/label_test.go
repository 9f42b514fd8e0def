package parcel_test

import (
	"strings"
	"testing"

	"github.com/postern-io/postern/cmd/internal/mutate/testdata/parcel/label"
)

func TestLabel(t *testing.T) {
	if !label.Fits(strings.Repeat("x", 32)) || label.Fits(strings.Repeat("x", 33)) {
		t.Fatal("a line has 32 characters")
	}
}
